// Tiles for threads whose signal stacks are too small for them: work goes to threads of ours, with
// the caller's control word, and comes back with what it gave or threw.
#include "core/os/tile_threads.h"

#include <gtest/gtest.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/signal_stack.h"

namespace folio {
namespace {

using testing::small_signal_stack;
using testing::with_signal_stack;
using namespace std::chrono_literals;

struct Place {
  std::thread::id id;
  char name[16] = {};
  bool may = false;
};

Place here() {
  Place place;
  place.id = std::this_thread::get_id();
  pthread_getname_np(pthread_self(), place.name, sizeof place.name);
  place.may = may_use_tiles();
  return place;
}

// Where work with kernels of `bits` is done.
Place place_of_work(CpuBits bits) {
  auto place = with_tiles(bits, []() -> Result<Place> { return here(); });
  EXPECT_TRUE(place.is_ok());
  return place.is_ok() ? place.value() : Place();
}

TEST(TileThreads, FramesOfTilesNeedRoomForAHandler) {
  EXPECT_FALSE(holds_frames_of_tiles(small_signal_stack()));
  EXPECT_TRUE(holds_frames_of_tiles(64 << 10));
}

TEST(TileThreads, WorkStaysWhereTheStackHasRoom) {
  EXPECT_EQ(place_of_work(kCpuAmxTile).id, std::this_thread::get_id());
  with_signal_stack(64 << 10, [] {
    EXPECT_TRUE(may_use_tiles());
    EXPECT_EQ(place_of_work(kCpuAmxTile).id, std::this_thread::get_id());
  });
}

TEST(TileThreads, WorkOfAThreadWithASmallStackIsDoneInOneOfOurs) {
  with_signal_stack(small_signal_stack(), [] {
    EXPECT_FALSE(may_use_tiles());
    const Place first = place_of_work(kCpuAmxTile);
    EXPECT_NE(first.id, std::this_thread::get_id());
    EXPECT_STREQ(first.name, "folio-tiles");
    EXPECT_TRUE(first.may);
    EXPECT_EQ(place_of_work(kCpuAmxTile).id, first.id) << "the next work finds the thread";
    EXPECT_EQ(place_of_work(kCpuAvx2).id, std::this_thread::get_id()) << "without tiles";
  });
}

TEST(TileThreads, WhatWorkGivesOrThrowsComesBack) {
  with_signal_stack(small_signal_stack(), [] {
    const auto failed =
        with_tiles(kCpuAmxTile, []() -> Status { return invalid_argument("of ours"); });
    EXPECT_EQ(failed.message(), "of ours");
    const auto throwing = []() -> Status { throw std::runtime_error("thrown"); };
    EXPECT_THROW((void)with_tiles(kCpuAmxTile, throwing), std::runtime_error);
    EXPECT_TRUE(place_of_work(kCpuAmxTile).may) << "the thread lives on";
  });
}

TEST(TileThreads, QuestionsAreAskedInTheCallersThread) {
  const auto id = [] { return std::this_thread::get_id(); };
  EXPECT_EQ(in_callers_thread(id), std::this_thread::get_id()) << "nobody waits for this thread";
  with_signal_stack(small_signal_stack(), [&] {
    const auto ask = [&]() -> Status {
      for (int i = 0; i < 1000; ++i) {
        if (in_callers_thread(id) == std::this_thread::get_id()) return invalid_argument("here");
        if (i % 300 == 0) std::this_thread::sleep_for(1ms);  // longer than threads spin
      }
      EXPECT_THROW(in_callers_thread([]() -> int { throw std::runtime_error("no"); }),
                   std::runtime_error);
      const std::thread::id asked = in_callers_thread(id);
      return asked == std::thread::id() ? invalid_argument("nowhere") : Status::ok();
    };
    EXPECT_TRUE(with_tiles(kCpuAmxTile, ask).is_ok());
    const auto asked =
        with_tiles(kCpuAmxTile, [&]() -> Result<std::thread::id> { return in_callers_thread(id); });
    ASSERT_TRUE(asked.is_ok());
    EXPECT_EQ(asked.value(), std::this_thread::get_id());
  });
}

TEST(TileThreads, WorkHasTheCallersControlWordAndLeavesNone) {
  static constexpr unsigned kFlushes = 0x8000;
  with_signal_stack(small_signal_stack(), [] {
    const auto control = [] {
      auto word = with_tiles(kCpuAmxTile, []() -> Result<unsigned> { return _mm_getcsr(); });
      EXPECT_TRUE(word.is_ok());
      return word.is_ok() ? word.value() & kFlushes : 1;
    };
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushes);
    EXPECT_EQ(control(), kFlushes);
    _mm_setcsr(before & ~kFlushes);
    EXPECT_EQ(control(), 0U);
    _mm_setcsr(before);
  });
}

TEST(TileThreads, CallersAtOnceHaveAThreadEach) {
  constexpr int kCallers = 5;
  std::atomic<int> inside{0};
  std::vector<std::thread::id> ids(kCallers);
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      with_signal_stack(small_signal_stack(), [&] {
        const auto meet = [&]() -> Status {
          inside.fetch_add(1);
          while (inside.load() < kCallers) std::this_thread::yield();
          ids[static_cast<size_t>(i)] = std::this_thread::get_id();
          return Status::ok();
        };
        EXPECT_TRUE(with_tiles(kCpuAmxTile, meet).is_ok());
      });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), size_t{kCallers});
  EXPECT_GE(tile_thread_count(), kCallers);
}

TEST(TileThreads, ManyCallsInTurnAreAllDone) {
  std::atomic<int> done{0};
  const auto call_often = [&] {
    with_signal_stack(small_signal_stack(), [&] {
      for (int i = 0; i < 2000; ++i) {
        const auto count = [&]() -> Status {
          done.fetch_add(1);
          return Status::ok();
        };
        ASSERT_TRUE(with_tiles(kCpuAmxTile, count).is_ok());
        if (i % 500 == 0) std::this_thread::sleep_for(1ms);  // longer than threads spin
      }
    });
  };
  std::thread other(call_often);
  call_often();
  other.join();
  EXPECT_EQ(done.load(), 4000);
}

TEST(TileThreads, ThreadsWithoutWorkEnd) {
  with_signal_stack(small_signal_stack(), [] { (void)place_of_work(kCpuAmxTile); });
  EXPECT_GE(tile_thread_count(), 1);
  for (int i = 0; i < 1000 && tile_thread_count() > 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(tile_thread_count(), 0);
  with_signal_stack(small_signal_stack(), [] { EXPECT_TRUE(place_of_work(kCpuAmxTile).may); });
}

TEST(TileThreads, AChildOfForkStartsItsOwn) {
  with_signal_stack(small_signal_stack(), [] {
    (void)place_of_work(kCpuAmxTile);
    const pid_t child = fork();
    if (child == 0) _exit(place_of_work(kCpuAmxTile).may && tile_thread_count() == 1 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_TRUE(place_of_work(kCpuAmxTile).may) << "the parent's thread is there";
  });
}

}  // namespace
}  // namespace folio
