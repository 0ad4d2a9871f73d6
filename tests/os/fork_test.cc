#include "core/os/fork.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/support/child.h"

namespace folio {
namespace {

std::mutex g_outer;
std::mutex g_inner;
std::atomic<int> g_resets{0};

void register_once() {
  static const bool done = [] {
    hold_across_fork(ForkOrder::kBase, &g_inner);  // registered first, taken last
    hold_across_fork(ForkOrder::kSession, &g_outer);
    call_in_fork_child([] { g_resets.fetch_add(1); });
    return true;
  }();
  (void)done;
}

TEST(Fork, LeavesNoLockHeldInTheChild) {
  register_once();
  std::atomic<bool> stop{false};
  std::thread nesting([&] {  // outer before inner: fork must take them in this order
    while (!stop.load()) {
      const std::lock_guard<std::mutex> outer(g_outer);
      const std::lock_guard<std::mutex> inner(g_inner);
    }
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const std::lock_guard<std::mutex> outer(g_outer);
      const std::lock_guard<std::mutex> inner(g_inner);
      _exit(0);
    }
    ASSERT_EQ(verdict_of(child), 0) << i;
  }
  stop.store(true);
  nesting.join();
}

TEST(Fork, CallsResetsInTheChildOnly) {
  register_once();
  g_resets.store(0);
  const pid_t child = fork();
  if (child == 0) _exit(g_resets.load());
  EXPECT_EQ(verdict_of(child), 1);
  EXPECT_EQ(g_resets, 0);
}

}  // namespace
}  // namespace folio
