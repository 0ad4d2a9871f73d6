// ThreadScratch: one block of scratch for each chunk that may run at once.
//
// Owns:    nothing; the blocks are scratch of the running operator, given back with the object if
//          nothing was taken after it: a loop of products needs them once.
// Threads: take and give from any thread of the parallel region.
#pragma once

#include <atomic>
#include <bit>

#include "core/base/checked_math.h"
#include "core/ops/op.h"

namespace folio {

class ThreadScratch {
 public:
  static constexpr int kMaxBlocks = 64;

  ThreadScratch() = default;
  ~ThreadScratch() {
    if (base_) run_->give_back(base_);
  }
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;

  // `blocks`: how many chunks may run at once; regions must not use more threads than that.
  static Status make(OpRun& run, size_t bytes, ThreadScratch* out) {
    const int threads = run.parallel().thread_count();
    out->each_ = align_up(bytes, 64);
    out->blocks_ = threads < kMaxBlocks ? threads : kMaxBlocks;
    if (out->base_) out->run_->give_back(out->base_);
    out->base_ = nullptr;
    out->run_ = &run;
    if (bytes > 0) {
      FOLIO_TRY(out->base_, run.scratch(out->each_ * static_cast<size_t>(out->blocks_)));
    }
    out->free_ = out->blocks_ == kMaxBlocks ? ~uint64_t{0} : (uint64_t{1} << out->blocks_) - 1;
    return Status::ok();
  }

  // Holds a block until destroyed. Waits by spinning only on machines with more than 64 threads.
  class Block {
   public:
    explicit Block(ThreadScratch& owner) : owner_(owner) {
      uint64_t free = owner_.free_.load(std::memory_order_relaxed);
      for (;;) {
        index_ = std::countr_zero(free);
        if (index_ == kMaxBlocks) {
          free = owner_.free_.load(std::memory_order_relaxed);
        } else if (owner_.free_.compare_exchange_weak(free, free & ~(uint64_t{1} << index_),
                                                      std::memory_order_acquire)) {
          return;
        }
      }
    }
    ~Block() { owner_.free_.fetch_or(uint64_t{1} << index_, std::memory_order_release); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    int index() const { return index_; }
    // Null when the blocks are empty.
    uint8_t* data() const { return owner_.base_ + owner_.each_ * static_cast<size_t>(index_); }

   private:
    ThreadScratch& owner_;
    int index_ = 0;
  };

 private:
  OpRun* run_ = nullptr;
  uint8_t* base_ = nullptr;
  size_t each_ = 0;
  int blocks_ = 0;
  std::atomic<uint64_t> free_{0};
};

}  // namespace folio
