#include "core/os/new_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <tuple>
#include <vector>

#include "core/os/sigbus_guard.h"
#include "tests/support/child.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::contents;
using testing::TempFolder;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

size_t files_in(const std::string& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(NewFile, HasNoNameBeforeItIsPublished) {
  const TempFolder folder;
  {
    auto file = NewFile::create(folder.path("f"));
    ASSERT_TRUE(file.is_ok());
    ASSERT_TRUE(file.value()->write(bytes_of("abc")).is_ok());
    ASSERT_TRUE(file.value()->finish().is_ok());
    EXPECT_FALSE(std::filesystem::exists(folder.path("f")));
  }
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(NewFile, ReplacesWhatHasItsNameWhole) {
  const TempFolder folder;
  const std::string path = folder.write("f", "something longer");
  auto file = NewFile::create(path);
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(file.value()->write(bytes_of("abc")).is_ok());
  ASSERT_TRUE(file.value()->pad_until(8).is_ok());
  ASSERT_TRUE(file.value()->write(bytes_of("de")).is_ok());
  ASSERT_TRUE(file.value()->write_at(1, bytes_of("X")).is_ok());
  EXPECT_EQ(file.value()->size(), 10u);
  EXPECT_EQ(contents(path), "something longer");
  ASSERT_TRUE(file.value()->publish().is_ok());
  EXPECT_EQ(contents(path), std::string("aXc\0\0\0\0\0de", 10));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(NewFile, RetractTakesAwayOnlyANameThatWasFree) {
  const TempFolder folder;
  for (const char* name : {"fresh", "taken"}) {
    if (std::strcmp(name, "taken") == 0) folder.write(name, "old");
    auto file = NewFile::create(folder.path(name));
    ASSERT_TRUE(file.is_ok());
    ASSERT_TRUE(file.value()->publish().is_ok());
    file.value()->retract();
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("fresh")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("taken")));
}

// The mark is the file's time of modification; the inode's own, of the name, comes from a clock
// that steps by some ms.
TEST(NewFile, TheSignedTimeIsNotAfterTheInodesOwn) {
  const TempFolder folder;
  for (int i = 0; i < 100; ++i) {
    auto file = NewFile::create(folder.path("f"));
    ASSERT_TRUE(file.is_ok());
    timespec now = {};
    ASSERT_EQ(clock_gettime(CLOCK_REALTIME, &now), 0);
    file.value()->sign_time(now.tv_nsec);
    ASSERT_TRUE(file.value()->publish().is_ok());
    struct stat s = {};
    ASSERT_EQ(stat(folder.path("f").c_str(), &s), 0);
    ASSERT_EQ(s.st_mtim.tv_nsec, now.tv_nsec);
    ASSERT_LE(std::tie(s.st_mtim.tv_sec, s.st_mtim.tv_nsec),
              std::tie(s.st_ctim.tv_sec, s.st_ctim.tv_nsec))
        << i;
  }
}

// Published, with one mapped page of two.
struct Written {
  Ref<Buffer> range;
  Ref<const ByteSource> mapped;
};
Written write_and_map(const std::string& path) {
  auto file = NewFile::create(path).take();
  EXPECT_TRUE(file->write(bytes_of(std::string(8192, 'Z'))).is_ok());
  Written written{file->map(4096, 4096).take(), file->mapped()};
  EXPECT_TRUE(written.mapped->check_unchanged().is_ok());
  EXPECT_EQ(written.mapped->identity(), nullptr) << "it has no name";
  EXPECT_TRUE(file->publish(NewFile::Mode::kReadOnly).is_ok());
  return written;
}

TEST(NewFile, WhoHasMappedItIsToldWhenItIsWrittenTo) {
  const TempFolder folder;
  Written written = write_and_map(folder.path("f"));
  ASSERT_NE(written.mapped->identity(), nullptr);
  EXPECT_TRUE(written.mapped->check_unchanged().is_ok()) << "what publishing does is no change";
  ASSERT_EQ(chmod(folder.path("f").c_str(), 0644), 0);
  std::filesystem::rename(folder.path("f"), folder.path("g"));
  EXPECT_TRUE(written.mapped->check_unchanged().is_ok());
  usleep(20'000);  // a tick of the file system's clock
  std::ofstream(folder.path("g"), std::ios::in | std::ios::binary) << "X";
  EXPECT_EQ(written.mapped->check_unchanged().code(), Code::kModelChanged);
  written.range = nullptr;
  EXPECT_TRUE(written.mapped->check_unchanged().is_ok()) << "nobody reads it any more";
}

TEST(NewFile, WhatIsMappedOfItIsGuarded) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);  // what a sanitizer may have put there
    enable_sigbus_guard();
    const std::string path = folder.path("f");
    auto file = NewFile::create(path).take();
    if (!file->write(bytes_of(std::string(8192, 'Z'))).is_ok()) _exit(1);
    Ref<Buffer> range = file->map(4096, 4096).take();
    const Ref<const ByteSource> mapped = file->mapped();
    if (!file->publish().is_ok() || mapped->is_damaged()) _exit(2);
    if (truncate(path.c_str(), 0) != 0) _exit(3);
    if (*static_cast<const volatile uint8_t*>(range->data()) != 0) _exit(4);
    if (!mapped->is_damaged()) _exit(5);
    range = nullptr;
    _exit(mapped->is_damaged() ? 0 : 6);
  }
  EXPECT_EQ(verdict_of(child), 0);
}

TEST(NewFile, RefusesWhatIsNoNameOfAFile) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path("folder"));
  for (const std::string& path : {std::string(), folder.path("folder"), folder.path("x/"),
                                  std::string("a\0b", 3), std::string("/dev/null")}) {
    EXPECT_EQ(NewFile::create(path).status().code(), Code::kInvalidArgument) << path;
  }
  EXPECT_EQ(NewFile::create(folder.path("none/f")).status().code(), Code::kNoSuchFile);
}

// What a process that may write files of 100 bytes only says of a longer one.
int write_beyond_the_limit(const std::string& path) {
  const rlimit limit = {100, 100};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  auto file = NewFile::create(path);
  if (!file.is_ok()) return 3;
  if (!file.value()->write(bytes_of(std::string(60, 'x'))).is_ok()) return 4;
  const Status status = file.value()->write(bytes_of(std::string(60, 'x')));
  if (status.code() != Code::kIo) return 5;
  if (status.message().find("File too large") == std::string_view::npos) return 6;
  sigset_t now;
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return sigismember(&now, SIGXFSZ) ? 7 : 0;
}

TEST(NewFile, TheProcessesLimitIsAnErrorAndNoSignal) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) _exit(write_beyond_the_limit(folder.path("f")));
  EXPECT_EQ(verdict_of(child), 0) << "minus the signal that ended it";
  EXPECT_EQ(files_in(folder.path()), 0u);
}

// A host that blocks the signal and asks for it keeps one that was its own.
TEST(NewFile, AHostsOwnSignalOfThatKindStaysPending) {
  const TempFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    raise(SIGXFSZ);
    const bool is_error = write_beyond_the_limit(folder.path("f")) == 7;  // blocked, as it was
    sigset_t pending;
    sigpending(&pending);
    _exit(is_error && sigismember(&pending, SIGXFSZ) ? 0 : 1);
  }
  EXPECT_EQ(verdict_of(child), 0);
}

TEST(NewFile, LongNamesHaveRoomForTheHiddenOne) {
  const TempFolder folder;
  const std::string path = folder.path(std::string(255, 'n'));
  auto file = NewFile::create(path);
  ASSERT_TRUE(file.is_ok());
  ASSERT_TRUE(file.value()->publish().is_ok());
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace folio
