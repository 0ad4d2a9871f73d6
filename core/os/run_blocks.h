// Blocks: what a run makes beside its arena: values whose shapes it finds out, outputs, scratch.
//
// Flow:    run/ has one RunBlocks for each run in flight; blocks that go, in the run or, as
//          outputs, after it, wait in the pool for the next run: fresh memory costs a page
//          fault every 4 KiB.
// Owns:    the pool owns idle blocks, a buffer its own. Buffers may outlive the run and the
//          session.
// Bound:   idle blocks and those of runs in flight take at most twice what runs had at once;
//          what outputs take once their runs are over is their holders'.
// Threads: the pool is safe for any; a RunBlocks belongs to one thread at a time, its buffers
//          die on any.
// Errors:  kOutOfMemory; the allocation hook of core/base/buffer.h may refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/tensor.h"
#include "core/os/arena.h"

namespace folio {

class BlockPool {
 public:
  struct Stats {
    uint64_t idle = 0;
    uint64_t idle_bytes = 0;
    uint64_t of_runs_bytes = 0;  // of runs in flight
    uint64_t created = 0;        // made so far
  };

  // The process's pool. Others are for tests; a pool must outlive its buffers.
  static BlockPool& process();

  // Frees all idle blocks; the bytes freed.
  uint64_t trim();

  Stats stats() const;

 private:
  friend class RunBlocks;
  class Block;
  // What one run holds, which its blocks know.
  struct Share final : RefCounted {
    size_t bytes = 0;
    bool is_over = false;
  };

  Result<Ref<Arena>> take(size_t bytes, bool is_scratch, const Ref<Share>& share);
  void give_back(Ref<Arena> memory, const Ref<Share>& share);
  void end(Share* share);
  Ref<Arena> take_idle(size_t bytes, size_t most);
  void free_excess(std::unique_lock<std::mutex>* lock);

  mutable std::mutex mutex_;
  std::vector<Ref<Arena>> idle_;  // the one that came last at the end
  size_t idle_bytes_ = 0;
  size_t of_runs_ = 0;  // bytes
  size_t most_ = 0;     // of_runs_ since the last trim
  size_t alive_ = 0;    // blocks, idle or not
  uint64_t created_ = 0;
};

class RunBlocks {
 public:
  explicit RunBlocks(BlockPool& pool) : pool_(pool) {}
  ~RunBlocks();
  RunBlocks(const RunBlocks&) = delete;
  RunBlocks& operator=(const RunBlocks&) = delete;

  // 64-byte aligned, uninitialised, of kind kHeap. Small ones are malloc's.
  Result<Ref<Buffer>> buffer(size_t bytes) { return take(bytes, false); }
  // The same for memory that goes before the run is over: it may be a part of a block of any size.
  Result<Ref<Buffer>> scratch(size_t bytes) { return take(bytes, true); }
  // As allocate_tensor() and copy_tensor() of core/base/tensor.h.
  Result<Tensor> tensor(DType dtype, const Shape& shape);
  Result<Tensor> copy(const Tensor& source);

 private:
  Result<Ref<Buffer>> take(size_t bytes, bool is_scratch);

  BlockPool& pool_;
  Ref<BlockPool::Share> share_;  // null: no block yet
};

}  // namespace folio
