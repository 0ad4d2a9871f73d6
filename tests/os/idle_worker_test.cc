// The idle worker: every piece is done once asked for, nobody else's time is taken, and neither
// ends nor forks lose work.
#include "core/os/idle_worker.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "core/base/log.h"
#include "tests/support/held_task.h"

namespace folio {
namespace {

using namespace std::chrono_literals;

template <typename Condition>
bool becomes_true(Condition&& condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

class CountDown final : public IdleTask {
 public:
  explicit CountDown(int pieces) : left(pieces) {}
  bool step() override {
    policy.store(sched_getscheduler(0));
    pthread_getname_np(pthread_self(), name, sizeof(name));
    return left.fetch_sub(1) > 1;
  }
  std::atomic<int> left;
  std::atomic<int> policy{-1};
  char name[16] = {};
};

TEST(IdleWorker, DoesAllPiecesAtIdlePriorityAndEnds) {
  const auto first = make_ref<CountDown>(100);
  const auto second = make_ref<CountDown>(3);
  run_when_idle(first);
  run_when_idle(second);
  run_when_idle(second);
  ASSERT_TRUE(becomes_true([&] { return !idle_worker_is_alive(); }));
  EXPECT_EQ(first->left.load(), 0);
  EXPECT_LE(second->left.load(), 0) << "asked again: one step more is allowed, none less";
  EXPECT_EQ(first->policy.load(), SCHED_IDLE);
  EXPECT_STREQ(first->name, "folio-idle");
  EXPECT_TRUE(first->is_unique()) << "the queue let go of it";
}

TEST(IdleWorker, WhatIsAskedForDuringTheLastStepIsNotLost) {
  const auto task = make_ref<testing::HeldTask>();
  run_when_idle(task);
  ASSERT_TRUE(becomes_true([&] { return task->steps.load() == 1; }));
  run_when_idle(task);
  task->may_end.store(true);
  EXPECT_TRUE(becomes_true([&] { return task->steps.load() == 2; }));
  EXPECT_TRUE(becomes_true([&] { return !idle_worker_is_alive(); }));
}

TEST(IdleWorker, ADroppedTaskIsNotTouchedAgain) {
  const auto blocking = make_ref<testing::HeldTask>();
  run_when_idle(blocking);
  const auto dropped = make_ref<CountDown>(5);
  run_when_idle(dropped);
  drop_idle_task(dropped.get());
  EXPECT_TRUE(dropped->is_unique());
  blocking->may_end.store(true);
  ASSERT_TRUE(becomes_true([&] { return !idle_worker_is_alive(); }));
  EXPECT_EQ(dropped->left.load(), 5);
}

class WithoutMemory final : public IdleTask {
 public:
  bool step() override {
    ++steps;
    throw std::bad_alloc();
  }
  std::atomic<int> steps{0};
};

TEST(IdleWorker, ATaskThatThrowsIsDroppedAndTheOthersAreDone) {
  const auto throwing = make_ref<WithoutMemory>();
  const auto next = make_ref<CountDown>(3);
  set_log([](void*, LogLevel, const char*) {}, nullptr, LogLevel::kFatal);
  run_when_idle(throwing);
  run_when_idle(next);
  ASSERT_TRUE(becomes_true([&] { return !idle_worker_is_alive(); }));
  set_log(nullptr, nullptr, LogLevel::kWarning);
  EXPECT_EQ(throwing->steps.load(), 1);
  EXPECT_TRUE(throwing->is_unique());
  EXPECT_EQ(next->left.load(), 0);
}

TEST(IdleWorker, AChildOfForkHasTheQueueAndAThreadOfItsOwn) {
  const auto blocking = make_ref<testing::HeldTask>();
  const auto waiting = make_ref<CountDown>(7);
  run_when_idle(blocking);
  run_when_idle(waiting);
  ASSERT_TRUE(becomes_true([&] { return blocking->steps.load() == 1; }));
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    if (idle_worker_is_alive()) _exit(2);
    blocking->may_end.store(true);
    wake_idle_worker();
    const bool all = becomes_true([&] { return !idle_worker_is_alive(); });
    _exit(all && waiting->left.load() == 0 ? 0 : 3);
  }
  blocking->may_end.store(true);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(becomes_true([&] { return waiting->left.load() == 0; }));
}

}  // namespace
}  // namespace folio
