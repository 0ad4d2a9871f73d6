// What is done about pages: the decision as a table, its evidence, and that it happens.
#include "core/os/residency.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "core/base/log.h"
#include "core/os/mapped_file.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

constexpr uint64_t kMb = uint64_t{1} << 20;
constexpr size_t kFileBytes = 24 * kMb;

struct Case {
  ResidencyMode mode;
  FileSystem file_system;
  std::optional<double> cached;
  ResidencyAction expected;
  std::optional<uint64_t> spare = std::nullopt;
};

TEST(Residency, TheDecisionIsThisTable) {
  using Mode = ResidencyMode;
  using Where = FileSystem;
  using Action = ResidencyAction;
  const Case cases[] = {
      {Mode::kCache, Where::kLocal, 1.0, Action::kPopulateAtRun},
      {Mode::kCache, Where::kLocal, 0.96, Action::kPopulateAtRun},
      {Mode::kCache, Where::kLocal, 0.9, Action::kReadAhead},
      {Mode::kCache, Where::kLocal, 0.0, Action::kReadAhead},
      {Mode::kCache, Where::kLocal, std::nullopt, Action::kLeave},
      {Mode::kCache, Where::kNetwork, 1.0, Action::kPopulateAtRun},
      {Mode::kCache, Where::kNetwork, 0.0, Action::kReadThrough},
      {Mode::kCache, Where::kNetwork, std::nullopt, Action::kReadThrough},
      {Mode::kCache, Where::kFuse, 0.5, Action::kReadThrough},
      {Mode::kCache, Where::kFuse, 1.0, Action::kPopulateAtRun},
      {Mode::kCache, Where::kMemory, std::nullopt, Action::kPopulateAtRun},
      {Mode::kCache, Where::kLocal, 0.0, Action::kReadAhead, 101 * kMb},
      {Mode::kCache, Where::kLocal, 0.0, Action::kLeave, 99 * kMb},
      {Mode::kCache, Where::kNetwork, 0.0, Action::kLeave, 99 * kMb},
      {Mode::kPrefetch, Where::kLocal, 0.0, Action::kReadAhead, 99 * kMb},
      {Mode::kPrefetch, Where::kLocal, 1.0, Action::kPopulate},
      {Mode::kPrefetch, Where::kLocal, 0.0, Action::kReadAhead},
      {Mode::kPrefetch, Where::kLocal, std::nullopt, Action::kReadAhead},
      {Mode::kPrefetch, Where::kNetwork, 0.0, Action::kReadThrough},
      {Mode::kPrefetch, Where::kFuse, 1.0, Action::kPopulate},
      {Mode::kPrefetch, Where::kMemory, std::nullopt, Action::kPopulate},
      {Mode::kLock, Where::kLocal, 1.0, Action::kLock},
      {Mode::kLock, Where::kNetwork, 0.0, Action::kLock},
      {Mode::kLock, Where::kMemory, std::nullopt, Action::kLock},
  };
  for (const Case& one : cases) {
    const ResidencyEvidence evidence{one.file_system, 100 * kMb, one.cached, one.spare};
    EXPECT_EQ(decide_residency(one.mode, evidence), one.expected) << "row " << &one - cases;
  }
}

TEST(Residency, LittleIsNotWorthAThreadAndNothingIsNothing) {
  const ResidencyEvidence little{FileSystem::kLocal, kMb, 0.0, std::nullopt};
  EXPECT_EQ(decide_residency(ResidencyMode::kCache, little), ResidencyAction::kLeave);
  EXPECT_EQ(decide_residency(ResidencyMode::kPrefetch, little), ResidencyAction::kReadAhead);
  const ResidencyEvidence warm{FileSystem::kMemory, 15 * kMb, std::nullopt, std::nullopt};
  EXPECT_EQ(decide_residency(ResidencyMode::kCache, warm), ResidencyAction::kLeave);
  for (const auto mode : {ResidencyMode::kCache, ResidencyMode::kPrefetch, ResidencyMode::kLock}) {
    const ResidencyEvidence nothing{FileSystem::kLocal, 0, 0.0, std::nullopt};
    EXPECT_EQ(decide_residency(mode, nothing), ResidencyAction::kLeave);
  }
}

TEST(Residency, FileSystemsAreToldByTheirNumbers) {
  const struct {
    uint64_t magic;
    FileSystem expected;
  } cases[] = {
      {0xEF53, FileSystem::kLocal},        // ext4
      {0x58465342, FileSystem::kLocal},    // xfs
      {0x9123683E, FileSystem::kLocal},    // btrfs
      {0x794C7630, FileSystem::kLocal},    // overlayfs
      {0x12345678, FileSystem::kLocal},    // nobody's
      {0x01021994, FileSystem::kMemory},   // tmpfs
      {0x6969, FileSystem::kNetwork},      // NFS
      {0xFF534D42, FileSystem::kNetwork},  // CIFS
      {0xFE534D42, FileSystem::kNetwork},  // SMB2
      {0x01021997, FileSystem::kNetwork},  // 9p
      {0x00C36400, FileSystem::kNetwork},  // Ceph
      {0x01161970, FileSystem::kNetwork},  // GFS2
      {0x65735546, FileSystem::kFuse},
  };
  for (const auto& one : cases) EXPECT_EQ(file_system_of(one.magic), one.expected) << one.magic;
}

std::unique_ptr<Residency> start(ResidencyMode mode, std::vector<WantedFile> files) {
  return Residency::start(plan_residency(mode, std::move(files)).now);
}

WantedFile all_of(const Ref<ByteSource>& file) { return {file, {{0, file->bytes().size()}}}; }

double share(const Ref<ByteSource>& file) {
  const FileRange all{0, file->bytes().size()};
  const auto pages = internal::pages_by_mincore(*as_mapped_file(*file), all);
  return pages ? static_cast<double>(*pages) * 4096 / static_cast<double>(all.count) : -1;
}

// Out of the page cache, as after a start of the machine; false where the file system does not.
bool make_cold(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR);
  const bool done = fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  close(fd);
  const Ref<ByteSource> file = open_mapped_file(path).take();
  return done && share(file) < 0.1;
}

bool is_local(const std::string& path) {
  struct statfs s = {};
  return statfs(path.c_str(), &s) == 0 &&
         file_system_of(static_cast<uint32_t>(s.f_type)) == FileSystem::kLocal;
}

TEST(Residency, EvidenceTellsWarmFromCold) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  if (!is_local(path)) GTEST_SKIP() << "temporary files are in memory here";
  const Ref<ByteSource> warm = open_mapped_file(path).take();
  const ResidencyEvidence found = residency_evidence(all_of(warm));
  EXPECT_EQ(found.file_system, FileSystem::kLocal);
  EXPECT_EQ(found.wanted_bytes, kFileBytes);
  ASSERT_TRUE(found.cached);
  EXPECT_GT(*found.cached, 0.99);
  const ResidencyPlan plan = plan_residency(ResidencyMode::kCache, {all_of(warm)});
  EXPECT_TRUE(plan.now.empty());
  EXPECT_EQ(plan.at_first_run.size(), 1U);
  if (!make_cold(path)) GTEST_SKIP() << "the page cache does not let go here";
  const ResidencyEvidence cold = residency_evidence(all_of(warm));
  ASSERT_TRUE(cold.cached);
  EXPECT_LT(*cold.cached, 0.1);
}

TEST(Residency, CachestatAndMincoreAgree) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const MappedFile& mapped = *as_mapped_file(*file);
  const FileRange range{3 * 4096, 5 * kMb + 100};
  const auto counted = internal::pages_by_cachestat(mapped, range);
  if (!counted) GTEST_SKIP() << "this kernel has no cachestat";
  EXPECT_EQ(*counted, (range.count + 4095) / 4096);
  EXPECT_EQ(internal::pages_by_mincore(mapped, range), counted);
}

TEST(Residency, ColdFilesAreReadAheadInTheBackground) {
  for (const auto mode : {ResidencyMode::kCache, ResidencyMode::kPrefetch}) {
    const TempFolder folder;
    const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
    if (!is_local(path) || !make_cold(path)) GTEST_SKIP() << "no cold files here";
    const Ref<ByteSource> file = open_mapped_file(path).take();
    const auto residency = start(mode, {all_of(file)});
    ASSERT_TRUE(residency);
    residency->wait();
    for (int i = 0; i < 500 && share(file) < 0.99; ++i) usleep(10000);  // asked for, not yet there
    EXPECT_GT(share(file), 0.99);
  }
}

TEST(Residency, ReadingThroughFillsThePageCacheWhateverTheOrder) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  if (!is_local(path) || !make_cold(path)) GTEST_SKIP() << "no cold files here";
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const WantedFile wanted{file, {{12 * kMb, 12 * kMb}, {0, 12 * kMb}}};
  const auto residency = Residency::start({ResidencyTask{wanted, ResidencyAction::kReadThrough}});
  ASSERT_TRUE(residency);
  residency->wait();
  EXPECT_GT(share(file), 0.99);
}

// Faults of this process that found their page in the page cache.
long minor_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(Residency, PopulatedPagesTakeNoFault) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const auto residency =
      Residency::start({ResidencyTask{all_of(file), ResidencyAction::kPopulate}});
  ASSERT_TRUE(residency);
  residency->wait();
  const auto start = reinterpret_cast<uintptr_t>(file->bytes().data());
  if (madvise(reinterpret_cast<void*>(start), 4096, MADV_POPULATE_READ) != 0) {
    GTEST_SKIP() << "this kernel cannot populate";
  }
  const long before = minor_faults();
  uint8_t sum = 0;
  for (const uint8_t byte : file->bytes()) sum = static_cast<uint8_t>(sum + byte);
  EXPECT_LT(minor_faults() - before, 20) << int{sum};
}

TEST(Residency, WhatIsNotWantedIsNotRead) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(4 * kFileBytes, 'w'));
  if (!is_local(path) || !make_cold(path)) GTEST_SKIP() << "no cold files here";
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const auto residency =
      start(ResidencyMode::kCache, {{file, {{0, 5 * kMb}, {80 * kMb, 5 * kMb}}}});
  ASSERT_TRUE(residency);
  residency->wait();
  usleep(200000);  // for what was asked for to come
  const MappedFile& mapped = *as_mapped_file(*file);
  EXPECT_LT(*internal::pages_by_mincore(mapped, {20 * kMb, 40 * kMb}), 40 * kMb / 4096 / 2);
}

TEST(Residency, BytesInMemoryNeedNothing) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  const Ref<ByteSource> copy = open_mapped_file(path, FileLoading::kRead).take();
  for (const auto mode : {ResidencyMode::kCache, ResidencyMode::kPrefetch, ResidencyMode::kLock}) {
    EXPECT_EQ(start(mode, {all_of(copy)}), nullptr);
  }
}

TEST(Residency, EndsEarlyWhenNobodyNeedsIt) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  for (int i = 0; i < 50; ++i) {
    const Ref<ByteSource> file = open_mapped_file(path).take();
    (void)start(ResidencyMode::kPrefetch, {all_of(file)});
  }
}

TEST(Residency, AChildOfForkDoesNotWaitForTheThread) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  const Ref<ByteSource> file = open_mapped_file(path).take();
  auto residency = start(ResidencyMode::kLock, {all_of(file)});
  ASSERT_TRUE(residency);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    residency.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
}

// Bytes of this process that are locked, or -1.
long locked_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmLck:")) return std::stol(line.substr(6));
  }
  return -1;
}

TEST(Residency, LockedPagesAreLocked) {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  constexpr size_t kBytes = 2 * kMb;
  if (limit.rlim_cur < 2 * kBytes) GTEST_SKIP() << "RLIMIT_MEMLOCK is " << limit.rlim_cur;
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kBytes, 'w'));
  const Ref<ByteSource> file = open_mapped_file(path).take();
  const auto residency = start(ResidencyMode::kLock, {all_of(file)});
  ASSERT_TRUE(residency);
  residency->wait();
  EXPECT_GE(locked_kib(), static_cast<long>(kBytes / 1024));
}

std::string* g_logged = nullptr;

TEST(Residency, ARefusedLockIsOneWarningThatNamesTheLimit) {
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(kFileBytes, 'w'));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::string logged;
    g_logged = &logged;
    set_log([](void*, LogLevel, const char* text) { *g_logged += std::string(text) + "\n"; },
            nullptr, LogLevel::kWarning);
    const Ref<ByteSource> file = open_mapped_file(path).take();
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) _exit(1);
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);  // root may lock whatever the limit
    const auto residency = start(ResidencyMode::kLock, {all_of(file)});
    if (!residency) _exit(3);
    residency->wait();
    const bool named = logged.find("RLIMIT_MEMLOCK is 0 bytes") != std::string::npos &&
                       logged.find(path) != std::string::npos;
    _exit(named && logged.find('\n') == logged.size() - 1 ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace folio
