// WeightSlots: a slot is filled once, by whoever comes first; runs never wait for the idle worker,
// and what cannot be packed stays as it is.
#include "core/prepack/weight_slots.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>
#include <thread>

#include "core/base/log.h"
#include "tests/support/child.h"
#include "tests/support/sanitizers.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Counts fills, and holds them back while `is_open` is false.
struct Gate {
  std::atomic<int> fills{0};
  std::atomic<bool> is_open{true};
  std::atomic<bool> fails{false};
  std::atomic<bool> throws{false};
};

WantedBlob job(uint64_t number, Gate* gate) {
  constexpr uint64_t kBytes = 64;
  WantedBlob job;
  job.place = PackKey{number, number};
  job.content = [place = job.place](PackLibrary&) { return WantedBlob::Content{place}; };
  job.is_placed = false;
  job.name = cat("w", number);
  job.bytes = kBytes;
  job.fill = [gate](uint8_t* blob) -> Status {
    ++gate->fills;
    while (!gate->is_open.load()) std::this_thread::sleep_for(100us);
    if (gate->throws.load()) throw std::bad_alloc();
    if (gate->fails.load()) return error(Code::kOutOfMemory, "no memory for the test");
    std::memset(blob, 7, kBytes);
    return Status::ok();
  };
  return job;
}

class WeightSlotsTest : public ::testing::Test {
 protected:
  Ref<WeightSlots> slots(int count) {
    auto made = make_ref<WeightSlots>(cache_, Ref<PackLibrary>());
    for (int i = 0; i < count; ++i) {
      all_.push_back(made->add(job(static_cast<uint64_t>(i), &gate_)));
    }
    return made;
  }

  Gate gate_;
  PackedCache cache_;
  std::vector<WeightSlot*> all_;
};

TEST_F(WeightSlotsTest, TheWorkerFillsAllAndSaysSoOnce) {
  const auto weights = slots(20);
  std::atomic<int> done{0};
  EXPECT_TRUE(weights->is_done()) << "nothing was asked for";
  EXPECT_EQ(all_[3]->get(), nullptr);
  weights->start([&](PackLibrary* library) {
    EXPECT_EQ(library, nullptr);
    ++done;
  });
  ASSERT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
  EXPECT_EQ(gate_.fills.load(), 20);
  EXPECT_EQ(done.load(), 1);
  EXPECT_EQ(weights->blobs().size(), 20U);
  for (WeightSlot* slot : all_) {
    ASSERT_NE(slot->get(), nullptr);
    EXPECT_EQ(slot->get()->data()[63], 7);
  }
  EXPECT_EQ(cache_.stats().live_blobs, 20U);
}

TEST_F(WeightSlotsTest, KeepTheLibraryOnlyWhileThereIsSomethingToPack) {
  for (const bool packs : {true, false}) {
    auto opened = PackLibrary::open({});
    ASSERT_TRUE(opened.is_ok());
    const Ref<PackLibrary> library = std::move(opened).take();
    const auto weights = make_ref<WeightSlots>(cache_, library);
    weights->add(job(1, &gate_));
    EXPECT_FALSE(library->is_unique());
    if (packs) {
      weights->start(nullptr);
      ASSERT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
    } else {
      weights->leave();
    }
    EXPECT_TRUE(library->is_unique()) << packs;
  }
}

TEST_F(WeightSlotsTest, ARunTakesTheWeightAsItIsWhileTheWorkerPacks) {
  const auto weights = slots(1);
  gate_.is_open.store(false);
  weights->start(nullptr);
  while (gate_.fills.load() == 0) std::this_thread::yield();
  EXPECT_EQ(all_[0]->get(), nullptr) << "and does not wait";
  EXPECT_FALSE(weights->wait(Clock::now() + 5ms, nullptr)) << "until the deadline only";
  EXPECT_FALSE(weights->wait(Clock::time_point::max(), [](size_t done, size_t total) {
    return done == total;  // 0 of 1: stop
  }));
  gate_.is_open.store(true);
  EXPECT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
  EXPECT_NE(all_[0]->get(), nullptr);
}

TEST_F(WeightSlotsTest, ARunThatFindsASlotEmptyAgainAndAgainFillsIt) {
  // Another task keeps the worker away: only the runs can have filled these.
  Gate busy;
  busy.is_open.store(false);
  const auto other = make_ref<WeightSlots>(cache_, Ref<PackLibrary>());
  other->add(job(100, &busy));
  other->start(nullptr);
  while (busy.fills.load() == 0) std::this_thread::yield();
  std::atomic<int> done{0};
  const auto weights = slots(3);
  weights->start([&](PackLibrary*) { ++done; });
  for (int i = 0; i < WeightSlots::kPatience; ++i) {
    for (WeightSlot* slot : all_) EXPECT_EQ(slot->get(), nullptr) << "use " << i;
  }
  EXPECT_EQ(gate_.fills.load(), 0);
  std::vector<std::thread> runs;
  for (int i = 0; i < 4; ++i) {
    runs.emplace_back([&] {
      for (WeightSlot* slot : all_) (void)slot->get();
    });
  }
  for (std::thread& run : runs) run.join();
  EXPECT_EQ(gate_.fills.load(), 3) << "each by one of them";
  for (WeightSlot* slot : all_) EXPECT_NE(slot->get(), nullptr);
  busy.is_open.store(true);
  EXPECT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
  EXPECT_TRUE(other->wait(Clock::time_point::max(), nullptr));
  EXPECT_EQ(done.load(), 1);
}

TEST_F(WeightSlotsTest, AStepDoesNotWaitForAnotherProgramThatPacksTheSame) {
  gate_.is_open.store(false);
  const auto first = slots(1);
  first->start(nullptr);
  while (gate_.fills.load() == 0) std::this_thread::yield();
  const auto second = make_ref<WeightSlots>(cache_, Ref<PackLibrary>());
  WeightSlot* const slot = second->add(job(0, &gate_));
  second->start(nullptr);
  for (int i = 0; i <= WeightSlots::kPatience; ++i) EXPECT_EQ(slot->get(), nullptr);
  gate_.is_open.store(true);
  EXPECT_TRUE(second->wait(Clock::time_point::max(), nullptr));
  EXPECT_TRUE(first->wait(Clock::time_point::max(), nullptr));
  EXPECT_EQ(gate_.fills.load(), 1) << "one blob for both";
  EXPECT_EQ(slot->get()->data(), all_[0]->get()->data());
}

TEST_F(WeightSlotsTest, AWeightThatCannotBePackedStaysAsItIsAndIsNotTriedAgain) {
  gate_.fails.store(true);
  const auto weights = slots(2);
  set_log([](void*, LogLevel, const char*) {}, nullptr, LogLevel::kFatal);
  weights->start(nullptr);
  EXPECT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
  set_log(nullptr, nullptr, LogLevel::kWarning);
  const int fills = gate_.fills.load();
  for (int i = 0; i <= WeightSlots::kPatience; ++i) {
    EXPECT_EQ(all_[0]->get(), nullptr);
    EXPECT_EQ(all_[1]->get(), nullptr);
  }
  EXPECT_EQ(gate_.fills.load(), fills);
}

// A run that packs throws nothing either.
TEST_F(WeightSlotsTest, WithoutMemoryWeightsStayAsTheyAreAndNobodyWaitsForThem) {
  set_log([](void*, LogLevel, const char*) {}, nullptr, LogLevel::kFatal);
  gate_.throws.store(true);
  const auto weights = slots(3);
  weights->start([](PackLibrary*) { throw std::bad_alloc(); });
  for (int i = 0; i <= WeightSlots::kPatience; ++i) EXPECT_EQ(all_[0]->get(), nullptr);
  EXPECT_TRUE(weights->wait(Clock::now() + 60s, nullptr));
  set_log(nullptr, nullptr, LogLevel::kWarning);
  EXPECT_EQ(gate_.fills.load(), 3) << "each was tried once";
  EXPECT_EQ(all_[1]->get(), nullptr);
}

// The worker is in the middle of a weight when the process forks: the child has neither the thread
// nor the blob, but the claim on the slot and the place in the cache.
TEST_F(WeightSlotsTest, AChildOfForkBeginsAnewWhatAThreadOfItsParentHadBegun) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan allows no threads after fork";
  gate_.is_open.store(false);
  std::atomic<int> done{0};
  const auto weights = slots(3);
  weights->start([&](PackLibrary*) { ++done; });
  while (gate_.fills.load() == 0) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    gate_.is_open.store(true);  // of this process's copy
    const bool waited = weights->wait(Clock::time_point::max(), nullptr);
    const bool all = all_[0]->get() && all_[1]->get() && all_[2]->get();
    _exit(waited && all && gate_.fills.load() == 4 && done.load() == 1 ? 0 : 1);
  }
  EXPECT_EQ(verdict_of(child), 0);
  gate_.is_open.store(true);
  EXPECT_TRUE(weights->wait(Clock::time_point::max(), nullptr));
  EXPECT_EQ(gate_.fills.load(), 3) << "in the parent each once";
}

TEST_F(WeightSlotsTest, AbandonedWeightsAreLeft) {
  gate_.is_open.store(false);
  auto weights = slots(50);
  weights->start(nullptr);
  while (gate_.fills.load() == 0) std::this_thread::yield();
  weights->abandon();
  gate_.is_open.store(true);
  weights = nullptr;
  while (idle_worker_is_alive()) std::this_thread::sleep_for(100us);
  EXPECT_LE(gate_.fills.load(), 1) << "what was begun";
  EXPECT_EQ(cache_.stats().live_blobs, 0U);
}

}  // namespace
}  // namespace folio
