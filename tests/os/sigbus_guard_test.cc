// The guard turns faults in our mappings into zeros and a mark, and changes nothing for others.
// The handler is the process's: each test runs in a child of its own.
#include "core/os/sigbus_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/os/mapped_file.h"
#include "core/os/thread_pool.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

constexpr size_t kPage = 4096;
constexpr size_t kPages = 16;
constexpr int kGood = 7;  // what a child says when all was as it should be

// The wait status of a child that does `what` and then ends with its result.
int in_child(const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);  // what a sanitizer or the test's parent may have put there
    _exit(what());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

::testing::AssertionResult ended_well(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kGood) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << (WIFSIGNALED(status) ? "killed by signal " : "ended with ")
         << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

bool killed_by_sigbus(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS; }

std::string write_pages(const TempFolder& folder, const std::string& name) {
  return folder.write(name, std::string(kPages * kPage, 'Z'));
}

uint8_t read_byte(const void* at) { return *static_cast<const volatile uint8_t*>(at); }

// A mapping that the guard knows nothing of, whose pages are gone.
const uint8_t* foreign_hole(const TempFolder& folder) {
  const std::string path = write_pages(folder, "foreign");
  const int fd = open(path.c_str(), O_RDWR);
  void* const data = mmap(nullptr, kPages * kPage, PROT_READ, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(99);
  return static_cast<const uint8_t*>(data);
}

// What is read of a model that shrank to one page: 'Z' from there, zeros from the rest.
bool reads_zeros_behind_the_first_page(const MappedFile& file) {
  const uint8_t* const data = file.bytes().data();
  bool good = read_byte(data) == 'Z' && !file.is_damaged();
  for (size_t page = kPages; page-- > 1;) good = good && read_byte(data + page * kPage) == 0;
  return good && read_byte(data) == 'Z' && file.is_damaged();
}

TEST(SigbusGuard, AShrunkFileReadsAsZerosAndIsMarked) {
  const TempFolder folder;
  const int status = in_child([&] {
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    const Ref<ByteSource> other = open_mapped_file(write_pages(folder, "other")).take();
    enable_sigbus_guard();
    enable_sigbus_guard();
    if (!sigbus_guard_is_on() || truncate(path.c_str(), kPage) != 0) return 1;
    const MappedFile& mapped = *as_mapped_file(*file);
    if (!reads_zeros_behind_the_first_page(mapped) || other->is_damaged()) return 2;
    // One fault for each page that lies below all that were read: not one for each page.
    return sigbus_guard_faults() == kPages - 1 ? kGood : 3;
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, WhatFollowsAMissingPageTakesNoFurtherFault) {
  const TempFolder folder;
  const int status = in_child([&] {
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    enable_sigbus_guard();
    if (truncate(path.c_str(), 0) != 0) return 1;
    for (size_t at = 0; at < kPages * kPage; ++at) {
      if (read_byte(file->bytes().data() + at) != 0) return 2;
    }
    return sigbus_guard_faults() == 1 ? kGood : 3;
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, WithoutItAShrunkFileEndsTheProcess) {
  const TempFolder folder;
  const int status = in_child([&] {
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    if (sigbus_guard_is_on() || truncate(path.c_str(), kPage) != 0) return 1;
    return read_byte(file->bytes().data() + kPage) == 0 ? kGood : 2;
  });
  EXPECT_TRUE(killed_by_sigbus(status)) << ended_well(status);
}

TEST(SigbusGuard, AFaultElsewhereStillEndsTheProcess) {
  const TempFolder folder;
  const int status = in_child([&] {
    enable_sigbus_guard();
    return read_byte(foreign_hole(folder)) == 0 ? kGood : 1;
  });
  EXPECT_TRUE(killed_by_sigbus(status)) << ended_well(status);
}

TEST(SigbusGuard, ARangeThatWasGivenUpIsNoLongerGuarded) {
  const TempFolder folder;
  const int status = in_child([&] {
    enable_sigbus_guard();
    const uint8_t* const hole = foreign_hole(folder);
    GuardedRange range;
    range.set(hole, kPages * kPage);
    if (read_byte(hole + kPage) != 0 || !range.was_hit()) return 1;
    range.clear();
    return read_byte(hole) == 0 ? kGood : 2;  // the page below the zeros
  });
  EXPECT_TRUE(killed_by_sigbus(status)) << ended_well(status);
}

TEST(SigbusGuard, ASignalThatWasSentStillEndsTheProcess) {
  const int status = in_child([] {
    enable_sigbus_guard();
    raise(SIGBUS);
    return kGood;
  });
  EXPECT_TRUE(killed_by_sigbus(status)) << ended_well(status);
}

const uint8_t* g_hole = nullptr;
std::atomic<int> g_calls{0};

void host_handler(int signal, siginfo_t* info, void* context) {
  const bool same = signal == SIGBUS && info->si_addr == g_hole && info->si_code == BUS_ADRERR;
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  const bool masked = sigismember(&blocked, SIGUSR1) == 1;
  _exit(same && masked && context ? kGood : 50);
}

TEST(SigbusGuard, TheHostsHandlerGetsItsOwnFaultsAsTheyWere) {
  const TempFolder folder;
  const int status = in_child([&] {
    struct sigaction host = {};
    host.sa_sigaction = host_handler;
    host.sa_flags = SA_SIGINFO;
    sigaddset(&host.sa_mask, SIGUSR1);
    sigaction(SIGBUS, &host, nullptr);
    enable_sigbus_guard();
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    if (truncate(path.c_str(), kPage) != 0) return 1;
    if (!reads_zeros_behind_the_first_page(*as_mapped_file(*file))) return 2;
    g_hole = foreign_hole(folder);
    return static_cast<int>(read_byte(g_hole));
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, AHandlerForOneCallIsCalledOnce) {
  const int status = in_child([] {
    struct sigaction host = {};
    host.sa_handler = [](int) { g_calls.fetch_add(1); };
    host.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGBUS, &host, nullptr);
    enable_sigbus_guard();
    raise(SIGBUS);
    if (g_calls.load() != 1) return 1;
    raise(SIGBUS);
    return kGood;
  });
  EXPECT_TRUE(killed_by_sigbus(status)) << ended_well(status);
}

TEST(SigbusGuard, AnIgnoredSignalStaysIgnoredAndAFaultDoesNot) {
  const TempFolder folder;
  const int sent = in_child([] {
    signal(SIGBUS, SIG_IGN);
    enable_sigbus_guard();
    raise(SIGBUS);
    return kGood;
  });
  EXPECT_TRUE(ended_well(sent));
  const int fault = in_child([&] {
    signal(SIGBUS, SIG_IGN);
    enable_sigbus_guard();
    return read_byte(foreign_hole(folder)) == 0 ? kGood : 1;
  });
  EXPECT_TRUE(killed_by_sigbus(fault)) << ended_well(fault);
}

TEST(SigbusGuard, WorksInAChildOfForkAndNotForItsParent) {
  const TempFolder folder;
  const int status = in_child([&] {
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    const MappedFile& mapped = *as_mapped_file(*file);
    enable_sigbus_guard();
    const pid_t child = fork();
    if (child == 0) {
      if (truncate(path.c_str(), kPage) != 0) _exit(1);
      _exit(reads_zeros_behind_the_first_page(mapped) ? kGood : 2);
    }
    int child_status = 0;
    waitpid(child, &child_status, 0);
    if (!WIFEXITED(child_status) || WEXITSTATUS(child_status) != kGood) return 3;
    if (mapped.is_damaged()) return 4;  // until it reads what is gone
    return reads_zeros_behind_the_first_page(mapped) ? kGood : 5;
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, WorkersOfThePoolMayFault) {
  const TempFolder folder;
  const int status = in_child([&] {
    const std::string path = write_pages(folder, "model");
    const Ref<ByteSource> file = open_mapped_file(path).take();
    enable_sigbus_guard();
    if (truncate(path.c_str(), 0) != 0) return 1;
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> workers{0};
    PoolView pool(3);
    // The caller waits, so that it is the workers who read.
    pool.for_range(3, 1, [&](int64_t begin, int64_t) {
      if (std::this_thread::get_id() == caller) {
        while (workers.load() < 2) std::this_thread::yield();
        return;
      }
      if (read_byte(file->bytes().data() + static_cast<size_t>(3 - begin) * kPage) == 0) {
        workers.fetch_add(1);
      }
      while (workers.load() < 2) std::this_thread::yield();
    });
    return file->is_damaged() ? kGood : 2;
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, HoldsAsManyRangesAsThereAre) {
  const TempFolder folder;
  const int status = in_child([&] {
    enable_sigbus_guard();
    std::vector<std::unique_ptr<GuardedRange>> others;
    for (uintptr_t i = 1; i <= 1000; ++i) {
      others.push_back(std::make_unique<GuardedRange>());
      others.back()->set(reinterpret_cast<const void*>(i * kPage), kPage);
    }
    GuardedRange range;
    const uint8_t* const hole = foreign_hole(folder);
    range.set(hole, kPages * kPage);
    if (read_byte(hole + kPage) != 0 || !range.was_hit()) return 1;
    for (const auto& other : others) {
      if (other->was_hit()) return 2;
    }
    return kGood;
  });
  EXPECT_TRUE(ended_well(status));
}

TEST(SigbusGuard, RangesMayComeAndGoWhileOthersFault) {
  const TempFolder folder;
  const int status = in_child([&] {
    enable_sigbus_guard();
    std::atomic<bool> stop{false};
    std::thread churn([&] {
      while (!stop.load()) {
        GuardedRange range;
        range.set(reinterpret_cast<const void*>(kPage), kPage);
      }
    });
    bool good = true;
    for (int i = 0; i < 200 && good; ++i) {
      const std::string path = write_pages(folder, "model" + std::to_string(i));
      const Ref<ByteSource> file = open_mapped_file(path).take();
      if (truncate(path.c_str(), kPage) != 0) return 1;
      good = reads_zeros_behind_the_first_page(*as_mapped_file(*file));
    }
    stop.store(true);
    churn.join();
    return good ? kGood : 2;
  });
  EXPECT_TRUE(ended_well(status));
}

}  // namespace
}  // namespace folio
