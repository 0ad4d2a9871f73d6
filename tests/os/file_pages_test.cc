// Mapped files: where they are mapped, and that cold ones are read as huge pages.
#include "core/os/file_pages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

#include "core/base/checked_math.h"
#include "core/os/huge_pages.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

constexpr uint64_t kBlocks = 12;
constexpr uint64_t kFileBytes = kBlocks * kHugePage + 5000;

struct ColdFile {
  TempFolder folder;
  std::string path;
  Ref<ByteSource> bytes;
  bool is_cold = false;

  // Bytes tell their block.
  ColdFile() {
    std::string text;
    for (uint64_t i = 0; i < kFileBytes; i += kHugePage) {
      text.append(std::min<uint64_t>(kHugePage, kFileBytes - i), static_cast<char>(i / kHugePage));
    }
    path = folder.write("weights", text);
    const int fd = open(path.c_str(), O_RDWR);
    const bool done = fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    close(fd);
    bytes = open_mapped_file(path).take();
    is_cold = done && pages_cached(file(), {0, kFileBytes}).value_or(kFileBytes) < 100;
  }

  const MappedFile& file() const { return *as_mapped_file(*bytes); }
  uint64_t cached(uint64_t offset, uint64_t count) const {
    return pages_cached(file(), {offset, count}).value_or(0);
  }
  void wait_for(uint64_t offset, uint64_t count) const {
    for (int i = 0; i < 500 && cached(offset, count) < count / 4096; ++i) usleep(10000);
  }
  void expect_right_bytes() const {
    for (uint64_t i = 0; i < kFileBytes; i += 997) {
      ASSERT_EQ(bytes->bytes()[i], i / kHugePage) << "byte " << i;
    }
  }
};

// Bytes of the mapping at `address` that stand in the page tables as huge pages.
uint64_t mapped_as_huge_pages(const uint8_t* address, uint64_t bytes) {
  std::ifstream file("/proc/self/smaps");
  uint64_t sum = 0;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<uintptr_t>(address);
      is_inside = at <= begin && end <= at + align_up(bytes, 4096);
    } else if (is_inside && std::sscanf(line.c_str(), "FilePmdMapped: %lu kB", &kib) == 1) {
      sum += kib * 1024;
    }
  }
  return sum;
}

TEST(MapFile, StandsAsFarBehindAHugePageAsItsOffset) {
  const ColdFile cold;
  const int fd = open(cold.path.c_str(), O_RDONLY);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{4096}, kHugePage - 4096, 3 * kHugePage}) {
    for (const size_t bytes : {size_t{4096}, kHugePage - 1, kHugePage, 3 * kHugePage + 1}) {
      uint8_t* const data = map_file(fd, offset, bytes);
      ASSERT_NE(data, nullptr);
      if (bytes >= kHugePage) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kHugePage, offset % kHugePage);
      }
      EXPECT_EQ(data[0], offset / kHugePage);
      EXPECT_EQ(data[bytes - 1], (offset + bytes - 1) / kHugePage);
      EXPECT_EQ(munmap(data, bytes), 0);
    }
  }
  close(fd);
  errno = 0;
  EXPECT_EQ(map_file(fd, 0, 2 * kHugePage), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST(MapFile, LeavesNothingBesideTheMapping) {
  const auto mappings = [] {
    std::ifstream file("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  };
  const int before = mappings();
  for (int i = 0; i < 20; ++i) {
    for (const size_t phase : {size_t{0}, size_t{4096}, kHugePage - 4096}) {
      uint8_t* const data = map_behind_huge_page(kHugePage + 5, phase, PROT_NONE);
      ASSERT_NE(data, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kHugePage, phase);
      munmap(data, kHugePage + 5);
    }
  }
  EXPECT_LE(mappings(), before + 1);
}

TEST(MappedFile, ReadsNoMoreThanIsTouchedWhileReadsAreSparse) {
  // As a graph is read that stands between weights of 4 MiB.
  constexpr uint64_t kBytes = uint64_t{80} << 20;
  constexpr uint64_t kStep = uint64_t{4} << 20;
  const TempFolder folder;
  const std::string path = folder.write("weights", std::string(1, 'w'));
  ASSERT_EQ(truncate(path.c_str(), kBytes), 0);
  const Ref<ByteSource> bytes = open_mapped_file(path).take();
  const MappedFile& file = *as_mapped_file(*bytes);
  const FileRange middle{kStep, kBytes - 2 * kStep};
  if (pages_cached(file, middle).value_or(1) != 0) GTEST_SKIP() << "no cold files here";
  file.expect_sparse_reads(true);
  uint64_t sum = 0;
  for (uint64_t at = kStep; at < kBytes - kStep; at += kStep) sum += bytes->bytes()[at + 100000];
  EXPECT_EQ(sum, 0u);
  EXPECT_LE(pages_cached(file, middle).value_or(0), 2 * middle.count / kStep);
  file.expect_sparse_reads(false);
}

TEST(ColdReader, ReadsWhatIsWantedAndRightly) {
  const ColdFile cold;
  if (!cold.is_cold) GTEST_SKIP() << "no cold files here";
  const FileRange late{7 * kHugePage + 100, 3 * kHugePage};
  const FileRange early{100, 2 * kHugePage};
  ColdReader reader(cold.file(), {late, early});
  reader.read(late);
  reader.read(early);
  for (const FileRange& range : {late, early}) {
    cold.wait_for(range.offset, range.count);
    EXPECT_GE(cold.cached(range.offset, range.count), range.count / 4096);
  }
  cold.expect_right_bytes();
}

TEST(ColdReader, ReadsHugePagesWhereTheSystemHasThem) {
  const ColdFile cold;
  if (!cold.is_cold) GTEST_SKIP() << "no cold files here";
  // Whether it has them of files: what a mapping that wants them gets by one fault.
  const ColdFile probe;
  auto* const start = const_cast<uint8_t*>(probe.bytes->bytes().data());
  const bool has_them = probe.is_cold && madvise(start, kHugePage, MADV_HUGEPAGE) == 0 &&
                        madvise(start, 1, MADV_POPULATE_READ) == 0 &&
                        mapped_as_huge_pages(start, kFileBytes) == kHugePage;
  if (!has_them) GTEST_SKIP() << "no huge pages of files here";
  // A graph between the weights: a page is there in each block.
  auto* const begin = const_cast<uint8_t*>(cold.bytes->bytes().data());
  ASSERT_EQ(madvise(begin, kFileBytes, MADV_RANDOM), 0);
  uint64_t sum = 0;
  for (uint64_t block = 0; block < kBlocks; ++block) {
    sum += cold.bytes->bytes()[block * kHugePage + 123456];
  }
  EXPECT_EQ(sum, kBlocks * (kBlocks - 1) / 2);
  ASSERT_EQ(madvise(begin, kFileBytes, MADV_NORMAL), 0);
  const FileRange all{0, kFileBytes};
  ColdReader reader(cold.file(), {all});
  reader.read(all);
  // One or another may find no memory in one piece.
  EXPECT_GE(mapped_as_huge_pages(cold.bytes->bytes().data(), kFileBytes), kBlocks / 2 * kHugePage);
  EXPECT_EQ(cold.cached(0, kFileBytes), (kFileBytes + 4095) / 4096);
  cold.expect_right_bytes();
}

TEST(ColdReader, ReadsNoWholeBlockForALittle) {
  // Weights packed elsewhere: a bias in each block is all that is read.
  const ColdFile cold;
  if (!cold.is_cold) GTEST_SKIP() << "no cold files here";
  std::vector<FileRange> biases;
  for (uint64_t block = 0; block < kBlocks; ++block) {
    biases.push_back({block * kHugePage + (1 << 20), 3000});
  }
  ColdReader reader(cold.file(), biases);
  for (const FileRange& bias : biases) reader.read(bias);
  for (const FileRange& bias : biases) cold.wait_for(bias.offset / 4096 * 4096, 4096);
  usleep(200000);
  EXPECT_LT(cold.cached(0, kFileBytes), kFileBytes / 4096 / 2);
  cold.expect_right_bytes();
}

TEST(ColdReader, AsksForTheRestOfWhatIsMostlyThere) {
  const ColdFile cold;
  if (!cold.is_cold) GTEST_SKIP() << "no cold files here";
  auto* const start = const_cast<uint8_t*>(cold.bytes->bytes().data());
  ASSERT_EQ(madvise(start + kHugePage, kHugePage / 4 * 3, MADV_POPULATE_READ), 0);
  const FileRange block{kHugePage, kHugePage};
  ColdReader reader(cold.file(), {block});
  EXPECT_GE(cold.cached(block.offset, block.count), block.count / 4096 / 4 * 3);  // not forgotten
  reader.read(block);
  cold.wait_for(block.offset, block.count);
  EXPECT_EQ(cold.cached(block.offset, block.count), block.count / 4096);
}

}  // namespace
}  // namespace folio
