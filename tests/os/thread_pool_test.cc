#include "core/os/thread_pool.h"

#include <gtest/gtest.h>
#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/sanitizers.h"

namespace folio {
namespace {

using Chunk = std::pair<int64_t, int64_t>;

std::multiset<Chunk> chunks_of(Parallel& parallel, int64_t count, int64_t grain) {
  std::mutex mutex;
  std::multiset<Chunk> chunks;
  parallel.for_range(count, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard<std::mutex> lock(mutex);
    chunks.insert({begin, end});
  });
  return chunks;
}

// True when a region over [0, count) visits every index once.
bool visits_each_once(Parallel& parallel, int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
  parallel.for_range(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) visits[static_cast<size_t>(i)].fetch_add(1);
  });
  for (const std::atomic<int>& v : visits) {
    if (v != 1) return false;
  }
  return true;
}

// Waits in each chunk until `threads` threads are inside: a region that really is parallel.
void meet(Parallel& parallel, int threads, const std::function<void(int64_t)>& inside) {
  std::atomic<int> arrived{0};
  parallel.for_range(threads, 1, [&](int64_t begin, int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < threads) std::this_thread::yield();
    inside(begin);
  });
}

int threads_of_this_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

TEST(ThreadPool, MakesNoThreadBeforeARegionNeedsOne) {
  const int before = threads_of_this_process();
  PoolView view(4);
  EXPECT_EQ(pool_worker_count(), 0);
  view.for_range(100, 100, [](int64_t, int64_t) {});  // one chunk
  view.for_range(0, 1, [](int64_t, int64_t) { ADD_FAILURE(); });
  PoolView single(1);
  single.for_range(100, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(pool_worker_count(), 0);
  EXPECT_EQ(threads_of_this_process(), before);
  view.for_range(2, 1, [](int64_t, int64_t) {});  // no more helpers than chunks need
  EXPECT_EQ(pool_worker_count(), 1);
  view.for_range(100, 1, [](int64_t, int64_t) {});
  EXPECT_EQ(pool_worker_count(), 3);
  EXPECT_EQ(threads_of_this_process(), before + 3);
}

TEST(ThreadPool, JoinsItsThreadsWithTheLastView) {
  {
    PoolView a(3);
    {
      PoolView b(3);
      b.for_range(100, 1, [](int64_t, int64_t) {});
    }
    EXPECT_EQ(pool_worker_count(), 2);
    EXPECT_TRUE(visits_each_once(a, 1000, 7));
  }
  EXPECT_EQ(pool_worker_count(), 0);
  PoolView again(3);
  EXPECT_TRUE(visits_each_once(again, 1000, 7));
  EXPECT_EQ(pool_worker_count(), 2);
}

TEST(ThreadPool, VisitsEveryIndexOnce) {
  PoolView view(4);
  for (const int64_t count : {1, 2, 3, 7, 64, 1000, 4096}) {
    for (const int64_t grain : {1, 2, 3, 64, 5000}) {
      EXPECT_TRUE(visits_each_once(view, count, grain)) << count << " by " << grain;
    }
  }
}

TEST(ThreadPool, CutsTheSameChunksForEveryThreadCount) {
  InlineParallel reference;
  for (const int threads : {1, 2, 3, 8}) {
    PoolView view(threads);
    EXPECT_EQ(chunks_of(view, 1000, 7), chunks_of(reference, 1000, 7)) << threads;
    EXPECT_EQ(chunks_of(view, 14, 7), chunks_of(reference, 14, 7)) << threads;
  }
}

TEST(ThreadPool, CutsChunksAtTheEndsOfInt64) {
  PoolView view(2);
  const int64_t half = INT64_MAX / 2 + 1;
  const std::multiset<Chunk> expected = {{0, half}, {half, INT64_MAX}};
  EXPECT_EQ(chunks_of(view, INT64_MAX, half), expected);
  PoolView single(1);
  EXPECT_EQ(chunks_of(single, INT64_MAX, half), expected);
}

// The caller's order is known when the worker stays in its first chunk.
TEST(ThreadPool, AThreadTakesItsOwnShareInOrderThenTheEndsOfOthers) {
  PoolView view(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<int64_t> taken;
  std::atomic<int64_t> workers_first{-1};
  std::atomic<bool> is_over{false};
  view.for_range(10, 1, [&](int64_t begin, int64_t) {
    if (std::this_thread::get_id() != caller) {
      workers_first.store(begin);
      while (!is_over.load()) std::this_thread::yield();
      return;
    }
    while (workers_first.load() < 0) std::this_thread::yield();
    taken.push_back(begin);
    is_over.store(taken.size() == 9);
  });
  EXPECT_EQ(workers_first.load(), 5);
  EXPECT_EQ(taken, (std::vector<int64_t>{0, 1, 2, 3, 4, 9, 8, 7, 6}));
}

TEST(ThreadPool, UsesAsManyThreadsAsTheViewAllows) {
  PoolView wide(4);
  std::atomic<int> inside{0};
  meet(wide, 4, [&](int64_t) { inside.fetch_add(1); });  // hangs if fewer take part
  EXPECT_EQ(inside, 4);

  PoolView narrow(2);  // the pool has three workers now
  std::mutex mutex;
  for (int round = 0; round < 200; ++round) {
    std::set<std::thread::id> now;
    narrow.for_range(64, 1, [&](int64_t, int64_t) {
      const std::lock_guard<std::mutex> lock(mutex);
      now.insert(std::this_thread::get_id());
    });
    ASSERT_LE(now.size(), 2u);
  }
}

TEST(ThreadPool, WhatAChunkThrowsReachesTheCallerAndThePoolGoesOn) {
  PoolView view(3);
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool by_caller : {true, false, true, false}) {
    EXPECT_THROW(meet(view, 3,
                      [&](int64_t) {
                        const bool is_caller = std::this_thread::get_id() == caller;
                        if (is_caller == by_caller) throw std::bad_alloc();
                      }),
                 std::bad_alloc);
    meet(view, 3, [](int64_t) {});  // hangs if the pool is busy for ever, or without its threads
    EXPECT_TRUE(visits_each_once(view, 1000, 7));
  }
}

TEST(ThreadPool, RunsNestedRegionsInline) {
  PoolView view(4);
  std::atomic<int64_t> sum{0};
  std::atomic<int> strangers{0};
  view.for_range(32, 1, [&](int64_t, int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    view.for_range(100, 1, [&](int64_t begin, int64_t) {
      sum.fetch_add(begin);
      if (std::this_thread::get_id() != self) strangers.fetch_add(1);
    });
  });
  EXPECT_EQ(sum, 32 * 4950);
  EXPECT_EQ(strangers, 0);
}

TEST(ThreadPool, ServesConcurrentCallers) {
  PoolView view(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      PoolView own(1 + t % 4);
      for (int round = 0; round < 200; ++round) {
        Parallel& parallel = round % 2 ? static_cast<Parallel&>(own) : view;
        if (!visits_each_once(parallel, 1 + (round * 13 + t) % 97, 1 + round % 5))
          wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, StartsAndStopsWhileOthersRun) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 30; ++round) {
        PoolView view(3);
        if (!visits_each_once(view, 50, 3)) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool_worker_count(), 0);
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  PoolView view(3);
  for (int round = 0; round < 20; ++round) {
    meet(view, 3, [](int64_t) {});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // well beyond the spin
  }
}

TEST(ThreadPool, WaitsForWorkersThatAreSlow) {
  PoolView view(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> done{false};
    meet(view, 2, [&](int64_t) {
      if (std::this_thread::get_id() == caller) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      done.store(true);
    });
    EXPECT_TRUE(done);
  }
}

TEST(ThreadPool, PublishesWhatWorkersWrote) {
  PoolView view(4);
  std::vector<int64_t> values(10000);
  for (int64_t round = 0; round < 50; ++round) {  // plain writes: TSan sees a missing order
    view.for_range(10000, 100, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i;
    });
  }
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int64_t>(i) * 50);
}

TEST(ThreadPool, BlocksSignalsAndNamesItsWorkers) {
  PoolView view(3);
  const std::thread::id caller = std::this_thread::get_id();
  std::mutex mutex;
  std::set<std::string> names;
  int open_signals = 0;
  meet(view, 3, [&](int64_t) {
    if (std::this_thread::get_id() == caller) return;
    const std::lock_guard<std::mutex> lock(mutex);
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    names.insert(name);
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1, SIGALRM}) {
      if (!sigismember(&blocked, signal)) ++open_signals;
    }
  });
  EXPECT_EQ(names, (std::set<std::string>{"folio-1", "folio-2"}));
  EXPECT_EQ(open_signals, 0);
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_FALSE(sigismember(&own, SIGTERM));
}

// The C library puts these on a thread's stack, beside what chunks need.
thread_local volatile char many_locals[size_t{768} << 10];

TEST(ThreadPool, GivesChunksTheirStackWhateverThreadsHoldThemselves) {
  PoolView view(2);
  meet(view, 2, [](int64_t) {
    many_locals[0] = 1;
    volatile char deep[size_t{640} << 10];
    for (size_t i = 0; i < sizeof deep; i += 4096) deep[sizeof deep - 1 - i] = 1;
  });
}

TEST(ThreadPool, GivesWorkersTheCallersMxcsr) {
  constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;
  PoolView view(3);
  const unsigned before = _mm_getcsr();
  const auto count_zeroing = [&] {
    std::atomic<int> zeroing{0};
    meet(view, 3, [&](int64_t) {
      if ((_mm_getcsr() & kFlushAndDenormalsAreZero) == kFlushAndDenormalsAreZero) ++zeroing;
    });
    return zeroing.load();
  };
  EXPECT_EQ(count_zeroing(), 0);
  _mm_setcsr(before | kFlushAndDenormalsAreZero);
  EXPECT_EQ(count_zeroing(), 3);
  _mm_setcsr(before);
  EXPECT_EQ(count_zeroing(), 0);
}

// The child's verdict; -1 when it hung or died.
int run_in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(ThreadPool, WorksInTheChildAfterFork) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan allows no threads after fork";
  PoolView view(3);
  ASSERT_TRUE(visits_each_once(view, 1000, 3));
  const int verdict = run_in_child([&] {
    if (pool_worker_count() != 0) return false;
    const int before = threads_of_this_process();
    bool ok = before == 1 && visits_each_once(view, 1000, 3) && pool_worker_count() == 2;
    meet(view, 3, [](int64_t) {});
    PoolView own(2);
    return ok && visits_each_once(own, 100, 1);
  });
  EXPECT_EQ(verdict, 0);
  EXPECT_TRUE(visits_each_once(view, 1000, 3));
}

TEST(ThreadPool, JoinsInTheChildWhatTheChildMade) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan allows no threads after fork";
  auto view = std::make_unique<PoolView>(3);
  ASSERT_TRUE(visits_each_once(*view, 1000, 3));
  const int verdict = run_in_child([&] {
    const bool ok = visits_each_once(*view, 1000, 3);
    view.reset();
    return ok && pool_worker_count() == 0 && threads_of_this_process() == 1;
  });
  EXPECT_EQ(verdict, 0);
}

TEST(ThreadPool, WorksInAChildForkedWhileRegionsRun) {
  if (kThreadSanitizer) GTEST_SKIP() << "TSan allows no threads after fork";
  PoolView view(3);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      PoolView other(2);
      other.for_range(64, 1, [](int64_t, int64_t) {});
      view.for_range(64, 1, [](int64_t, int64_t) {});
    }
  });
  for (int i = 0; i < 25; ++i) {
    ASSERT_EQ(run_in_child([&] { return visits_each_once(view, 500, 3); }), 0) << i;
  }
  stop.store(true);
  busy.join();
}

TEST(ThreadPool, HasADefaultWithinTheMachine) {
  const int count = default_thread_count();
  EXPECT_GE(count, 1);
  EXPECT_LE(count, kMaxThreads);
  EXPECT_EQ(PoolView().thread_count(), count);
  EXPECT_EQ(PoolView(7).thread_count(), 7);
  EXPECT_EQ(PoolView(1 << 20).thread_count(), kMaxThreads);
}

// A fresh process: the default is found once.
int default_with_environment(const char* value) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    setenv("FOLIO_THREADS", value, 1);
    dup2(ends[1], 1);
    execl("/proc/self/exe", "test", "--gtest_filter=ThreadPool.DISABLED_PrintsItsDefault",
          "--gtest_also_run_disabled_tests", static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;) {
    text.append(part, static_cast<size_t>(got));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  const size_t at = text.find("default=");
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + 8));
}

// Not a test of its own: the child of the next one.
TEST(ThreadPool, DISABLED_PrintsItsDefault) { std::printf("default=%d\n", default_thread_count()); }

TEST(ThreadPool, TakesItsDefaultFromTheEnvironment) {
  EXPECT_EQ(default_with_environment("7"), 7);
  const int unforced = default_with_environment("");
  EXPECT_GE(unforced, 1);
  for (const char* bad : {"0", "-3", "many", "3x", "257", "99999999999"}) {
    EXPECT_EQ(default_with_environment(bad), unforced) << bad;
  }
}

}  // namespace
}  // namespace folio
