#include "core/os/file_lock.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using std::chrono::milliseconds;
using testing::TempFolder;

TEST(FileLock, WaitsForWhoeverHoldsIt) {
  const TempFolder folder;
  auto first = std::make_unique<Result<FileLock>>(FileLock::wait(folder.path("lock")));
  ASSERT_TRUE(first->is_ok());
  std::thread holder([&] {
    std::this_thread::sleep_for(milliseconds(30));
    first = nullptr;
  });
  EXPECT_TRUE(FileLock::wait(folder.path("lock")).is_ok());
  holder.join();
}

TEST(FileLock, GivesUpWhereItIsHeldForTooLong) {
  const TempFolder folder;
  const auto first = FileLock::wait(folder.path("lock"));
  ASSERT_TRUE(first.is_ok());
  const auto second = FileLock::wait(folder.path("lock"), milliseconds(20));
  EXPECT_EQ(second.status().code(), Code::kIo);
  EXPECT_NE(second.status().message().find("20 ms"), std::string::npos);
}

}  // namespace
}  // namespace folio
