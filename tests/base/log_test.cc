// The log: lines go to the callback that was set last, from its level on; it has no lock that a
// child of fork could find taken.
#include "core/base/log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child.h"

namespace folio {
namespace {

struct Lines {
  std::vector<std::string> all;
  static void add(void* user, LogLevel, const char* message) {
    static_cast<Lines*>(user)->all.emplace_back(message);
  }
};

class Log : public ::testing::Test {
 protected:
  void TearDown() override { set_log(nullptr, nullptr, LogLevel::kWarning); }
};

TEST_F(Log, GoesToTheCallbackThatWasSetLast) {
  Lines first;
  Lines second;
  set_log(Lines::add, &first, LogLevel::kInfo);
  log(LogLevel::kVerbose, "too low");
  log(LogLevel::kInfo, "one");
  set_log(Lines::add, &second, LogLevel::kError);
  log(LogLevel::kWarning, "too low");
  log(LogLevel::kError, "two");
  set_log(Lines::add, &first, LogLevel::kInfo);
  log(LogLevel::kInfo, "three");
  EXPECT_EQ(first.all, (std::vector<std::string>{"one", "three"}));
  EXPECT_EQ(second.all, (std::vector<std::string>{"two"}));
}

TEST_F(Log, AChildOfForkLogsWhateverOtherThreadsWereDoing) {
  static std::atomic<int> count{0};
  const LogCallback counts = [](void*, LogLevel, const char*) { ++count; };
  set_log(counts, nullptr, LogLevel::kInfo);
  std::atomic<bool> stop{false};
  std::thread logs([&] {
    while (!stop.load()) log(LogLevel::kInfo, "line");
  });
  std::thread sets([&] {
    while (!stop.load()) set_log(counts, nullptr, LogLevel::kInfo);
  });
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      const int before = count.load();
      set_log(counts, nullptr, LogLevel::kInfo);
      log(LogLevel::kInfo, "line");
      _exit(count.load() == before + 1 ? 0 : 1);
    }
    EXPECT_EQ(verdict_of(child), 0) << i;
  }
  stop.store(true);
  logs.join();
  sets.join();
}

}  // namespace
}  // namespace folio
