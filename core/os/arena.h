// Arenas: the scratch memory of runs, shared by all sessions of the process.
//
// Flow:    run/ acquires one for each run in flight and puts activations at planned offsets; the
// lease
//          gives it back; 200 idle sessions hold nothing.
// Owns:    the pool owns idle arenas, a lease the one it holds. A tensor that keeps the arena's Ref
//          beyond its lease is safe: such an arena does not go back, it dies with the last Ref.
// Threads: the pool is safe for any; a lease belongs to one thread at a time.
// Errors:  kOutOfMemory; the allocation hook of core/base/buffer.h may refuse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/buffer.h"

namespace folio {

// 64-byte aligned, of kind kArena. From 1 MiB on it is a mapping of its own (anonymous_memory.h).
class Arena final : public Buffer {
 public:
  // Uninitialised.
  static Result<Ref<Arena>> create(size_t bytes);

 private:
  Arena(uint8_t* data, size_t bytes, bool mapped)
      : Buffer(Kind::kArena, data, bytes), mapped_(mapped) {}
  ~Arena() override;

  bool mapped_;
};

class ArenaPool;

// Gives the arena back when it goes. Empty after being moved from.
class ArenaLease {
 public:
  ArenaLease() = default;
  ArenaLease(ArenaLease&& other) noexcept;
  ArenaLease& operator=(ArenaLease&& other) noexcept;
  ~ArenaLease() { release(); }

  void release();
  const Ref<Arena>& arena() const { return arena_; }
  uint8_t* data() const { return arena_ ? arena_->data() : nullptr; }
  size_t bytes() const { return arena_ ? arena_->bytes() : 0; }

 private:
  friend class ArenaPool;
  ArenaLease(ArenaPool* pool, Ref<Arena> arena, bool temporary);

  ArenaPool* pool_ = nullptr;
  Ref<Arena> arena_;
  bool temporary_ = false;
};

class ArenaPool {
 public:
  struct Stats {
    uint64_t idle = 0;
    uint64_t idle_bytes = 0;
    uint64_t leased = 0;  // temporary ones included
    uint64_t leased_bytes = 0;
    uint64_t temporary = 0;  // made so far beyond the maximum
    uint64_t created = 0;    // made so far, temporary ones included
  };

  // The process's pool. Others are for tests; a pool must outlive its leases.
  static ArenaPool& process();
  ArenaPool();
  ~ArenaPool();
  ArenaPool(const ArenaPool&) = delete;
  ArenaPool& operator=(const ArenaPool&) = delete;

  // An arena of at least `bytes`: the smallest idle one that fits; otherwise the largest idle one
  // is freed and a larger one made in its place. A hit allocates nothing. Contents are undefined.
  Result<ArenaLease> acquire(size_t bytes);

  // At most `count` arenas are kept, idle and leased together; runs beyond that get a temporary
  // one, freed when its lease goes. Nobody waits. 0: no limit, which is the default.
  void set_max_arenas(size_t count);

  // Frees all idle arenas; the bytes freed.
  uint64_t trim();

  Stats stats() const;

 private:
  friend class ArenaLease;
  void give_back(Ref<Arena> arena, bool temporary);
  Ref<Arena> take_idle(size_t bytes);

  mutable std::mutex mutex_;
  std::vector<Ref<Arena>> idle_;  // unsorted: a handful
  size_t kept_leased_ = 0;        // leases that are not temporary
  size_t max_ = 0;
  Stats stats_;  // idle fields are computed
};

}  // namespace folio
