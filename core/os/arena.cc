#include "core/os/arena.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/base/checked_math.h"
#include "core/os/anonymous_memory.h"
#include "core/os/fork.h"

namespace folio {
namespace {

constexpr size_t kAlignment = 64;             // one cache line, one zmm register
constexpr size_t kMapFrom = size_t{1} << 20;  // below, malloc's own memory does as well

}  // namespace

Result<Ref<Arena>> Arena::create(size_t bytes) {
  const auto refuse = [&] {
    return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  };
  if (bytes > SIZE_MAX / 2 || !allocation_allowed(bytes)) return refuse();
  const bool mapped = bytes >= kMapFrom;
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t rounded = align_up(std::max<size_t>(bytes, 1), mapped ? page : kAlignment);
  void* const data = mapped ? map_anonymous(rounded) : std::aligned_alloc(kAlignment, rounded);
  if (!data) return refuse();
  return Ref<Arena>(new Arena(static_cast<uint8_t*>(data), rounded, mapped));
}

Arena::~Arena() {
  if (mapped_) {
    unmap_anonymous(data_, bytes_);
  } else {
    std::free(data_);
  }
}

ArenaLease::ArenaLease(ArenaPool* pool, Ref<Arena> arena, bool temporary)
    : pool_(pool), arena_(std::move(arena)), temporary_(temporary) {}

ArenaLease::ArenaLease(ArenaLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      arena_(std::move(other.arena_)),
      temporary_(other.temporary_) {}

ArenaLease& ArenaLease::operator=(ArenaLease&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  arena_ = std::move(other.arena_);
  temporary_ = other.temporary_;
  return *this;
}

void ArenaLease::release() {
  if (!pool_) return;
  std::exchange(pool_, nullptr)->give_back(std::move(arena_), temporary_);
}

ArenaPool::ArenaPool() = default;
ArenaPool::~ArenaPool() = default;

ArenaPool& ArenaPool::process() {
  static ArenaPool* const pool = [] {
    auto* const made = new ArenaPool;  // never destroyed: leases may outlive static objects
    hold_across_fork(ForkOrder::kArena, &made->mutex_);
    return made;
  }();
  return *pool;
}

// Caller holds the lock. Null: none fits.
Ref<Arena> ArenaPool::take_idle(size_t bytes) {
  size_t best = idle_.size();
  for (size_t i = 0; i < idle_.size(); ++i) {
    const bool smaller = best == idle_.size() || idle_[i]->bytes() < idle_[best]->bytes();
    if (idle_[i]->bytes() >= bytes && smaller) best = i;
  }
  if (best == idle_.size()) return nullptr;
  std::swap(idle_[best], idle_.back());
  Ref<Arena> found = std::move(idle_.back());
  idle_.pop_back();
  return found;
}

Result<ArenaLease> ArenaPool::acquire(size_t bytes) {
  Ref<Arena> outgrown;
  bool temporary = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    Ref<Arena> arena = take_idle(bytes);
    if (arena) {
      ++kept_leased_;
      ++stats_.leased;
      stats_.leased_bytes += arena->bytes();
      return ArenaLease(this, std::move(arena), false);
    }
    if (!idle_.empty()) {
      const auto largest = std::max_element(
          idle_.begin(), idle_.end(),
          [](const Ref<Arena>& a, const Ref<Arena>& b) { return a->bytes() < b->bytes(); });
      outgrown = std::move(*largest);
      idle_.erase(largest);
    }
    temporary = max_ > 0 && kept_leased_ + idle_.size() >= max_;
    if (!temporary) {
      idle_.reserve(idle_.size() + kept_leased_ + 1);  // giving back must not allocate
      ++kept_leased_;
    }
  }
  outgrown = nullptr;  // before the new one is made, outside the lock: unmapping takes time
  Result<Ref<Arena>> made = Arena::create(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!made.is_ok()) {
    if (!temporary) --kept_leased_;
    return error(Code::kOutOfMemory, "cannot allocate the arena of ", bytes,
                 " bytes, in which the values of all nodes of a run stand");
  }
  Ref<Arena> arena = std::move(made).take();
  ++stats_.created;
  if (temporary) ++stats_.temporary;
  ++stats_.leased;
  stats_.leased_bytes += arena->bytes();
  return ArenaLease(this, std::move(arena), temporary);
}

// What is not kept is freed when `arena` goes, after the lock is.
void ArenaPool::give_back(Ref<Arena> arena, bool temporary) {
  const std::lock_guard<std::mutex> lock(mutex_);
  --stats_.leased;
  stats_.leased_bytes -= arena->bytes();
  if (temporary) return;
  --kept_leased_;
  const bool room = max_ == 0 || kept_leased_ + idle_.size() < max_;
  // Somebody who still holds the arena must not see the next run write into it.
  if (room && arena->is_unique()) idle_.push_back(std::move(arena));
}

void ArenaPool::set_max_arenas(size_t count) {
  std::vector<Ref<Arena>> excess;
  const std::lock_guard<std::mutex> lock(mutex_);
  max_ = count;
  while (max_ > 0 && !idle_.empty() && kept_leased_ + idle_.size() > max_) {
    excess.push_back(std::move(idle_.back()));
    idle_.pop_back();
  }
}

uint64_t ArenaPool::trim() {
  std::vector<Ref<Arena>> freed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    freed.swap(idle_);
    idle_.reserve(kept_leased_);
  }
  uint64_t bytes = 0;
  for (const Ref<Arena>& arena : freed) bytes += arena->bytes();
  return bytes;
}

ArenaPool::Stats ArenaPool::stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stats now = stats_;
  now.idle = idle_.size();
  for (const Ref<Arena>& arena : idle_) now.idle_bytes += arena->bytes();
  return now;
}

}  // namespace folio
