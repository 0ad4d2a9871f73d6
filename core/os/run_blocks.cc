#include "core/os/run_blocks.h"

#include <algorithm>
#include <utility>

#include "core/base/checked_math.h"
#include "core/os/fork.h"

namespace folio {
namespace {

constexpr size_t kSmallest = size_t{1} << 16;  // below, malloc keeps what is freed
constexpr size_t kGrain = size_t{1} << 12;

// Caches grow by a row each run: a block fits those of some runs to come. What is not written takes
// no memory.
size_t rounded(size_t bytes) {
  size_t grain = kGrain;
  while (grain <= bytes / 16) grain *= 2;
  return align_up(bytes, grain);
}

}  // namespace

class BlockPool::Block final : public Buffer {
 public:
  Block(BlockPool* pool, Ref<Arena> memory, size_t bytes, Ref<Share> share)
      : Buffer(Kind::kHeap, memory->data(), bytes),
        pool_(pool),
        memory_(std::move(memory)),
        share_(std::move(share)) {
    count_buffer(bytes_);
  }
  ~Block() override {
    uncount_buffer(bytes_);
    pool_->give_back(std::move(memory_), share_);
  }

 private:
  BlockPool* pool_;
  Ref<Arena> memory_;
  Ref<Share> share_;
};

BlockPool& BlockPool::process() {
  static BlockPool* const pool = [] {
    auto* const made = new BlockPool;  // never destroyed: outputs may outlive static objects
    hold_across_fork(ForkOrder::kArena, &made->mutex_);
    return made;
  }();
  return *pool;
}

// The smallest of `bytes` to `most`; null: none. Caller holds the lock.
Ref<Arena> BlockPool::take_idle(size_t bytes, size_t most) {
  size_t best = idle_.size();
  for (size_t i = 0; i < idle_.size(); ++i) {
    const size_t has = idle_[i]->bytes();
    if (has < bytes || has > most) continue;
    if (best == idle_.size() || has < idle_[best]->bytes()) best = i;
  }
  if (best == idle_.size()) return nullptr;
  Ref<Arena> found = std::move(idle_[best]);
  idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(best));
  idle_bytes_ -= found->bytes();
  return found;
}

// Frees the smallest, of equal ones those that came first, until the others are within the bound:
// larger ones serve as scratch of any size, and those of caches that grow are outgrown. Without the
// lock, as unmapping takes time.
void BlockPool::free_excess(std::unique_lock<std::mutex>* lock) {
  while (!idle_.empty() && idle_bytes_ + of_runs_ > 2 * most_) {
    const auto smaller = [](const Ref<Arena>& a, const Ref<Arena>& b) {
      return a->bytes() < b->bytes();
    };
    const auto at = std::min_element(idle_.begin(), idle_.end(), smaller);
    Ref<Arena> smallest = std::move(*at);
    idle_.erase(at);
    idle_bytes_ -= smallest->bytes();
    --alive_;
    lock->unlock();
    smallest = nullptr;
    lock->lock();
  }
}

// Scratch may be a part of any idle block, as it is soon given back: of blocks of all sizes that
// operators ask for, together more than may be idle, some would be made anew in each run.
Result<Ref<Arena>> BlockPool::take(size_t bytes, bool is_scratch, const Ref<Share>& share) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto hold = [&](size_t more) {
    share->bytes += more;
    of_runs_ += more;
    most_ = std::max(most_, of_runs_);
  };
  if (Ref<Arena> found = take_idle(bytes, is_scratch ? SIZE_MAX : 2 * bytes + 1)) {
    hold(found->bytes());
    return found;
  }
  idle_.reserve(alive_ + 1);  // giving back must not allocate
  ++alive_;
  hold(bytes);
  free_excess(&lock);  // before the new one is made
  lock.unlock();
  Result<Ref<Arena>> made = Arena::create(bytes);
  lock.lock();
  if (made.is_ok()) {
    hold(made.value()->bytes() - bytes);
    ++created_;
  } else {
    share->bytes -= bytes;
    of_runs_ -= bytes;
    --alive_;
  }
  return made;
}

void BlockPool::give_back(Ref<Arena> memory, const Ref<Share>& share) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!share->is_over) {
    share->bytes -= memory->bytes();
    of_runs_ -= memory->bytes();
  }
  idle_bytes_ += memory->bytes();
  idle_.push_back(std::move(memory));
  free_excess(&lock);
}

void BlockPool::end(Share* share) {
  const std::lock_guard<std::mutex> lock(mutex_);
  share->is_over = true;
  of_runs_ -= share->bytes;
}

uint64_t BlockPool::trim() {
  std::vector<Ref<Arena>> freed;
  const std::lock_guard<std::mutex> lock(mutex_);
  freed.swap(idle_);
  alive_ -= freed.size();
  idle_.reserve(alive_);
  most_ = of_runs_;
  return std::exchange(idle_bytes_, 0);
}

BlockPool::Stats BlockPool::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {idle_.size(), idle_bytes_, of_runs_, created_};
}

RunBlocks::~RunBlocks() {
  if (share_) pool_.end(share_.get());
}

Result<Ref<Buffer>> RunBlocks::take(size_t bytes, bool is_scratch) {
  if (bytes < kSmallest || bytes > SIZE_MAX / 2) return allocate_buffer(bytes);
  if (!allocation_allowed(bytes)) {
    return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  }
  if (!share_) share_ = make_ref<BlockPool::Share>();
  FOLIO_TRY(Ref<Arena> memory, pool_.take(rounded(bytes), is_scratch, share_));
  return Ref<Buffer>(make_ref<BlockPool::Block>(&pool_, std::move(memory), bytes, share_));
}

Result<Tensor> RunBlocks::tensor(DType dtype, const Shape& shape) {
  uint64_t count = 0;
  uint64_t bytes = 0;
  const bool is_sized = dtype != DType::kString && checked_count(shape.dims(), &count) &&
                        dtype_bytes(dtype, count, &bytes);
  if (!is_sized) return allocate_tensor(dtype, shape);  // strings, or an error
  FOLIO_TRY(Ref<Buffer> made, buffer(bytes));
  uint8_t* const data = made->data();
  return Tensor(dtype, shape, data, std::move(made));
}

Result<Tensor> RunBlocks::copy(const Tensor& source) {
  FOLIO_TRY(Tensor copy, tensor(source.dtype(), source.shape()));
  copy_elements(source, &copy);
  return copy;
}

}  // namespace folio
