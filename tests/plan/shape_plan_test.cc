// Shape plans: no two values that live at the same time share a byte.
#include "core/plan/shape_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

namespace folio {
namespace {

PlannedSlot slot_of(int32_t slot, int32_t first, int32_t last, Dims dims = {}) {
  PlannedSlot out;
  out.slot = slot;
  out.dtype = DType::kFloat;
  out.dims = std::move(dims);
  out.first_step = first;
  out.last_step = last;
  return out;
}

void expect_disjoint(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes) {
  std::vector<size_t> offsets;
  const size_t total = pack_lifetimes(slots, bytes, &offsets);
  ASSERT_EQ(offsets.size(), slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (bytes[i] == kNoOffset) {
      EXPECT_EQ(offsets[i], kNoOffset);
      continue;
    }
    ASSERT_NE(offsets[i], kNoOffset);
    EXPECT_EQ(offsets[i] % 64, 0U);
    EXPECT_LE(offsets[i] + bytes[i], total);
  }
  // By start, so that only those that may live together are compared.
  std::vector<size_t> order;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (bytes[i] != kNoOffset) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return slots[a].first_step < slots[b].first_step; });
  for (size_t a = 0; a < order.size(); ++a) {
    const size_t i = order[a];
    for (size_t b = a + 1; b < order.size() && slots[order[b]].first_step <= slots[i].last_step;
         ++b) {
      const size_t j = order[b];
      const bool apart = offsets[i] + bytes[i] <= offsets[j] || offsets[j] + bytes[j] <= offsets[i];
      ASSERT_TRUE(apart) << "slots " << i << " and " << j;
    }
  }
}

TEST(PackLifetimes, RandomIntervalsNeverOverlap) {
  std::mt19937 random(1);
  // The largest counts take the linear way.
  for (const size_t count : {0U, 1U, 2U, 10U, 100U, 1000U, 4096U, 4097U, 6000U}) {
    for (int round = 0; round < (count > 500 ? 2 : 50); ++round) {
      std::vector<PlannedSlot> slots;
      std::vector<size_t> bytes;
      for (size_t i = 0; i < count; ++i) {
        const auto first = static_cast<int32_t>(random() % (count + 1));
        slots.push_back(
            slot_of(static_cast<int32_t>(i), first, first + static_cast<int32_t>(random() % 12)));
        const uint32_t kind = random() % 10;
        bytes.push_back(kind == 0 ? kNoOffset : kind == 1 ? 0 : random() % 5000);
      }
      expect_disjoint(slots, bytes);
    }
  }
}

TEST(PackLifetimes, AChainNeedsTwoPlaces) {
  for (const size_t count : {100U, 10000U}) {
    std::vector<PlannedSlot> slots;
    for (size_t i = 0; i < count; ++i) {
      slots.push_back(
          slot_of(static_cast<int32_t>(i), static_cast<int32_t>(i), static_cast<int32_t>(i) + 1));
    }
    std::vector<size_t> offsets;
    EXPECT_EQ(pack_lifetimes(slots, std::vector<size_t>(count, 128), &offsets), 256U);
  }
}

// 0 -> 1 -> 2 each over the one before: one place, which nobody else has in all that time.
TEST(PackLifetimes, OneThatOverwritesAnotherTakesItsPlace) {
  std::vector<PlannedSlot> slots = {slot_of(0, 0, 2), slot_of(1, 2, 5), slot_of(2, 5, 9),
                                    slot_of(3, 1, 2), slot_of(4, 3, 8), slot_of(5, 9, 10)};
  slots[1].overwrites = 0;
  slots[2].overwrites = 1;
  std::vector<size_t> offsets;
  EXPECT_EQ(pack_lifetimes(slots, std::vector<size_t>(6, 640), &offsets), 1280U);
  EXPECT_EQ(offsets[1], offsets[0]);
  EXPECT_EQ(offsets[2], offsets[0]);
  for (const size_t other : {3U, 4U, 5U}) EXPECT_NE(offsets[other], offsets[0]) << other;
}

TEST(PackLifetimes, OneOfAnotherSizeOverwritesNobody) {
  std::vector<PlannedSlot> slots = {slot_of(0, 0, 2), slot_of(1, 2, 5)};
  slots[1].overwrites = 0;
  for (const size_t size : {size_t{64}, size_t{704}, kNoOffset}) {
    std::vector<size_t> offsets;
    pack_lifetimes(slots, {640, size}, &offsets);
    EXPECT_NE(offsets[0], offsets[1]);
    pack_lifetimes(slots, {size, 640}, &offsets);
    EXPECT_NE(offsets[0], offsets[1]);
  }
}

TEST(PackLifetimes, AHundredThousandSlotsTakeNoMinutes) {
  constexpr size_t kCount = 100000;
  std::vector<PlannedSlot> slots;
  std::vector<size_t> bytes;
  for (size_t i = 0; i < kCount; ++i) {
    slots.push_back(
        slot_of(static_cast<int32_t>(i), static_cast<int32_t>(i), static_cast<int32_t>(i) + 3));
    bytes.push_back(64 + i % 777);
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<size_t> offsets;
  pack_lifetimes(slots, bytes, &offsets);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// One symbol "n"; slot 0 is [n, 4], slot 1 [n * 2^20, n * 2^20], slot 2 [7].
TEST(LiveBytes, AreTheLargestSumOfOneStep) {
  // 0 and 1 together, then 1 and 2, then 3 alone; rooms are multiples of 64.
  const std::vector<PlannedSlot> slots = {slot_of(0, 0, 2), slot_of(1, 1, 3), slot_of(2, 3, 4),
                                          slot_of(3, 5, 5), slot_of(4, 0, 9)};
  EXPECT_EQ(live_bytes_max(slots, {64, 640, 100, 700, kNoOffset}), 768U);
  EXPECT_EQ(live_bytes_max(slots, {128, 640, 65, 700, kNoOffset}), 768U) << "128 + 640 = 640 + 128";
  EXPECT_EQ(live_bytes_max(slots, {0, 0, 0, 1000, kNoOffset}), 1024U);
  EXPECT_EQ(live_bytes_max({}, {}), 0U);
}

TEST(LiveBytes, CountWhatOverwritesAsOnePlace) {
  std::vector<PlannedSlot> slots = {slot_of(0, 0, 1), slot_of(1, 1, 2)};
  EXPECT_EQ(live_bytes_max(slots, {64, 64}), 128U);
  slots[1].overwrites = 0;
  EXPECT_EQ(live_bytes_max(slots, {64, 64}), 64U);
  EXPECT_EQ(live_bytes_max(slots, {64, 128}), 192U) << "of another size: a place of its own";
}

TEST(LiveBytes, AreNeverMoreThanAnArena) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<PlannedSlot> slots;
    std::vector<size_t> bytes;
    for (int32_t i = 0; i < 60; ++i) {
      const auto first = static_cast<int32_t>(random() % 40);
      slots.push_back(slot_of(i, first, first + static_cast<int32_t>(random() % 6)));
      bytes.push_back(random() % 9 == 0 ? kNoOffset : random() % 5000);
    }
    std::vector<size_t> offsets;
    EXPECT_LE(live_bytes_max(slots, bytes), pack_lifetimes(slots, bytes, &offsets));
  }
}

struct Planner {
  DimTable dims;
  ShapePlanner planner;

  Planner() {
    const Dim n = dims.named("n");
    const Dim big = dims.mul(n, Dim::of(1 << 20));
    planner.reset(&dims,
                  {slot_of(0, 0, 1, {n, Dim::of(4)}), slot_of(1, 0, 1, {big, big}),
                   slot_of(2, 0, 1, {Dim::of(7)})},
                  {n.symbol}, 4);
  }
};

TEST(ShapePlanner, SizesFollowTheSymbols) {
  Planner made;
  const auto plan = made.planner.plan_for({3});
  EXPECT_EQ(plan->bytes[0], 48U);
  EXPECT_EQ(plan->bytes[2], 28U);
  EXPECT_EQ(plan->offsets[3], kNoOffset) << "no planned slot";
  EXPECT_EQ(made.planner.plan_for({5})->bytes[0], 80U);
}

TEST(ShapePlanner, TellsTheSizesOfTheLastPlan) {
  Planner made;
  EXPECT_EQ(made.planner.arena_sizes().arena_bytes, 0U);
  made.planner.plan_for({-1});  // only the slot of 28 bytes is planned
  EXPECT_EQ(made.planner.arena_sizes().arena_bytes, 64U);
  EXPECT_EQ(made.planner.arena_sizes().live_bytes_max, 64U);
  const size_t arena = made.planner.plan_for({3})->arena_bytes;
  EXPECT_EQ(made.planner.arena_sizes().arena_bytes, arena);
  EXPECT_EQ(made.planner.arena_sizes().live_bytes_max, arena) << "all live at once";
}

TEST(ShapePlanner, UnknownAndAbsurdSizesAreLeftToTheHeap) {
  Planner made;
  const auto unknown = made.planner.plan_for({-1});
  EXPECT_EQ(unknown->offsets[0], kNoOffset);
  EXPECT_NE(unknown->offsets[2], kNoOffset);
  const auto huge = made.planner.plan_for({int64_t{1} << 40});
  EXPECT_EQ(huge->offsets[1], kNoOffset);
  EXPECT_LT(huge->arena_bytes, uint64_t{1} << 50);
}

TEST(ShapePlanner, EqualSignaturesShareAPlan) {
  Planner made;
  const auto first = made.planner.plan_for({3});
  for (int64_t n = 10; n < 20; ++n) made.planner.plan_for({n});
  EXPECT_EQ(made.planner.plan_for({3}), first);
  // Only so many are kept, and those dropped live on with their runs.
  for (int64_t n = 100; n < 200; ++n) made.planner.plan_for({n});
  EXPECT_NE(made.planner.plan_for({3}), first);
  EXPECT_EQ(first->bytes[0], 48U);
}

TEST(ShapePlanner, ThreadsMayAskAtOnce) {
  Planner made;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&made, t] {
      for (int64_t i = 0; i < 300; ++i) {
        const int64_t n = (i * 7 + t) % 40;
        EXPECT_EQ(made.planner.plan_for({n})->bytes[0], static_cast<size_t>(n) * 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace folio
