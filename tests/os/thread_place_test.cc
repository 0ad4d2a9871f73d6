#include "core/os/thread_place.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace folio {
namespace {

// A thread that looks at its CPU all the time.
class Runner {
 public:
  Runner()
      : thread_([this] {
          while (!stop_) cpu_ = current_cpu();
        }) {}
  ~Runner() {
    stop_ = true;
    thread_.join();
  }
  pthread_t handle() { return thread_.native_handle(); }
  void set_mask(const cpu_set_t& mask) {
    ASSERT_EQ(pthread_setaffinity_np(handle(), sizeof mask, &mask), 0);
  }
  cpu_set_t mask() {
    cpu_set_t mask;
    EXPECT_EQ(pthread_getaffinity_np(handle(), sizeof mask, &mask), 0);
    return mask;
  }
  // Whether it was seen on `cpu`, or on another one, before long.
  bool is_seen(int cpu, bool there) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while ((cpu_ == cpu) != there) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> cpu_{-1};
  std::thread thread_;
};

int first_of(const cpu_set_t& mask) {
  int cpu = 0;
  while (!CPU_ISSET(cpu, &mask)) ++cpu;
  return cpu;
}

cpu_set_t only(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  return mask;
}

TEST(ThreadPlace, MovesAThreadAndLeavesItsMask) {
  Runner runner;
  const cpu_set_t before = runner.mask();
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "one CPU";
  const int cpu = first_of(before);
  runner.set_mask(only(cpu));
  ASSERT_TRUE(runner.is_seen(cpu, true));
  runner.set_mask(before);
  ASSERT_TRUE(move_off_cpu(runner.handle(), cpu));
  EXPECT_TRUE(runner.is_seen(cpu, false));
  const cpu_set_t after = runner.mask();
  EXPECT_TRUE(CPU_EQUAL(&after, &before));
}

TEST(ThreadPlace, LeavesAThreadThatMayRunNowhereElse) {
  Runner runner;
  const int cpu = first_of(runner.mask());
  const cpu_set_t pinned = only(cpu);
  runner.set_mask(pinned);
  EXPECT_FALSE(move_off_cpu(runner.handle(), cpu));
  EXPECT_FALSE(move_off_cpu(runner.handle(), -1));
  EXPECT_FALSE(move_off_cpu(runner.handle(), CPU_SETSIZE));
  const cpu_set_t after = runner.mask();
  EXPECT_TRUE(CPU_EQUAL(&after, &pinned));
}

}  // namespace
}  // namespace folio
