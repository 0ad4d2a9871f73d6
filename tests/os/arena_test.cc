#include "core/os/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace folio {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

ArenaLease lease_of(ArenaPool& pool, size_t bytes) {
  Result<ArenaLease> lease = pool.acquire(bytes);
  EXPECT_TRUE(lease.is_ok()) << lease.status().message();
  return lease.is_ok() ? std::move(lease).take() : ArenaLease();
}

TEST(ArenaPool, HandsOutAlignedWritableMemory) {
  ArenaPool pool;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, kMiB - 1, kMiB, 3 * kMiB + 1}) {
    const ArenaLease lease = lease_of(pool, bytes);
    EXPECT_GE(lease.bytes(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lease.data()) % 64, 0u);
    EXPECT_EQ(lease.arena()->kind(), Buffer::Kind::kArena);
    std::memset(lease.data(), 0xAB, lease.bytes());
  }
}

TEST(ArenaPool, ReusesAnArenaThatWasGivenBack) {
  ArenaPool pool;
  const uint8_t* first = nullptr;
  {
    const ArenaLease lease = lease_of(pool, 2 * kMiB);
    first = lease.data();
  }
  EXPECT_EQ(pool.stats().idle, 1u);
  const ArenaLease again = lease_of(pool, kMiB);
  EXPECT_EQ(again.data(), first);
  EXPECT_EQ(pool.stats().created, 1u);
  EXPECT_EQ(pool.stats().idle, 0u);
  EXPECT_EQ(pool.stats().leased, 1u);
}

TEST(ArenaPool, PrefersTheSmallestThatFits) {
  ArenaPool pool;
  ArenaLease large = lease_of(pool, 8 * kMiB);
  ArenaLease small = lease_of(pool, 2 * kMiB);
  large.release();
  small.release();
  EXPECT_EQ(lease_of(pool, kMiB).bytes(), 2 * kMiB);
  EXPECT_EQ(lease_of(pool, 3 * kMiB).bytes(), 8 * kMiB);
}

TEST(ArenaPool, GrowsByReplacing) {
  ArenaPool pool;
  lease_of(pool, kMiB).release();
  lease_of(pool, 4 * kMiB).release();
  EXPECT_EQ(pool.stats().idle, 1u);
  EXPECT_EQ(pool.stats().idle_bytes, 4 * kMiB);
  EXPECT_EQ(pool.stats().created, 2u);
}

TEST(ArenaPool, HoldsAsManyAsAreInFlight) {
  ArenaPool pool;
  ArenaLease a = lease_of(pool, kMiB);
  ArenaLease b = lease_of(pool, kMiB);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(pool.stats().leased, 2u);
  EXPECT_EQ(pool.stats().leased_bytes, 2 * kMiB);
  a.release();
  b.release();
  a.release();  // an empty lease gives nothing back
  EXPECT_EQ(pool.stats().leased, 0u);
  EXPECT_EQ(pool.stats().idle, 2u);
}

TEST(ArenaPool, FreesWhatIsBeyondTheMaximum) {
  ArenaPool pool;
  pool.set_max_arenas(1);
  ArenaLease kept = lease_of(pool, kMiB);
  ArenaLease extra = lease_of(pool, kMiB);  // nobody waits
  EXPECT_EQ(pool.stats().temporary, 1u);
  kept.release();
  extra.release();
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST(ArenaPool, FreesIdleArenasWhenTheMaximumSinks) {
  ArenaPool pool;
  ArenaLease a = lease_of(pool, kMiB);
  ArenaLease b = lease_of(pool, kMiB);
  ArenaLease c = lease_of(pool, kMiB);
  a.release();
  b.release();
  pool.set_max_arenas(2);
  EXPECT_EQ(pool.stats().idle, 1u);
  pool.set_max_arenas(1);
  EXPECT_EQ(pool.stats().idle, 0u);
  c.release();
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST(ArenaPool, TrimsIdleArenasOnly) {
  ArenaPool pool;
  ArenaLease busy = lease_of(pool, kMiB);
  ArenaLease idle = lease_of(pool, 2 * kMiB);
  idle.release();
  EXPECT_EQ(pool.trim(), 2 * kMiB);
  EXPECT_EQ(pool.trim(), 0u);
  EXPECT_EQ(pool.stats().idle, 0u);
  busy.data()[0] = 1;
  busy.release();
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST(ArenaPool, DoesNotReuseAnArenaThatSomebodyStillHolds) {
  ArenaPool pool;
  ArenaLease lease = lease_of(pool, kMiB);
  lease.data()[0] = 42;
  Ref<Buffer> held = lease.arena();
  lease.release();
  EXPECT_EQ(pool.stats().idle, 0u);
  const ArenaLease next = lease_of(pool, kMiB);
  EXPECT_NE(next.data(), held->data());
  EXPECT_EQ(held->data()[0], 42);
}

TEST(ArenaPool, MovesLeases) {
  ArenaPool pool;
  ArenaLease a = lease_of(pool, kMiB);
  const uint8_t* const data = a.data();
  ArenaLease b = std::move(a);
  EXPECT_EQ(b.data(), data);
  ArenaLease c = lease_of(pool, kMiB);
  c = std::move(b);  // gives its own back
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(pool.stats().leased, 1u);
  EXPECT_EQ(pool.stats().idle, 1u);
}

TEST(ArenaPool, RefusesWhatTheHookOrTheMachineRefuses) {
  ArenaPool pool;
  pool.set_max_arenas(1);
  set_allocation_hook([](size_t bytes) { return bytes != 12345; });
  const Status refused = pool.acquire(12345).status();
  const bool other_is_ok = pool.acquire(12346).is_ok();
  set_allocation_hook(nullptr);
  EXPECT_EQ(refused.code(), Code::kOutOfMemory);
  EXPECT_NE(refused.message().find("12345"), std::string_view::npos) << refused.message();
  EXPECT_TRUE(other_is_ok);
  EXPECT_EQ(pool.acquire(SIZE_MAX).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(pool.acquire(SIZE_MAX / 4).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(pool.stats().temporary, 0u);
  const ArenaLease lease = lease_of(pool, kMiB);  // failures took no place under the maximum
  EXPECT_EQ(pool.stats().temporary, 0u);
}

TEST(ArenaPool, GivesEachThreadItsOwn) {
  ArenaPool pool;
  pool.set_max_arenas(2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        ArenaLease lease = lease_of(pool, static_cast<size_t>(64 + round * 100));
        std::memset(lease.data(), t, 64);
        std::this_thread::yield();
        for (int i = 0; i < 64; ++i) {
          if (lease.data()[i] != t) wrong.fetch_add(1);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool.stats().leased, 0u);
  EXPECT_LE(pool.stats().idle, 2u);
}

TEST(ArenaPool, IsOnePerProcess) {
  EXPECT_EQ(&ArenaPool::process(), &ArenaPool::process());
  lease_of(ArenaPool::process(), 100).release();
  EXPECT_GT(ArenaPool::process().trim(), 0u);
}

}  // namespace
}  // namespace folio
