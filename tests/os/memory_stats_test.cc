#include "core/os/memory_stats.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace folio {
namespace {

constexpr size_t kPage = 4096;

// `pages` anonymous pages between two that cannot be touched, so that no neighbour is merged with
// them.
class Pages {
 public:
  explicit Pages(size_t pages) : bytes_(pages * kPage) {
    all_ = static_cast<uint8_t*>(
        mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(all_ + kPage, bytes_, PROT_READ | PROT_WRITE);
    madvise(all_ + kPage, bytes_, MADV_NOHUGEPAGE);
  }
  ~Pages() { munmap(all_, bytes_ + 2 * kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  uint8_t* data() const { return all_ + kPage; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  uint8_t* all_;
};

TEST(MemoryStats, SeesMemoryThatWasTouched) {
  const Pages pages(4096);
  const MemoryStats before = read_memory_stats().value();
  std::memset(pages.data(), 1, pages.bytes());
  const MemoryStats after = read_memory_stats().value();
  EXPECT_GE(after.anonymous, before.anonymous + 15 * 1024);
  EXPECT_GE(after.private_dirty, before.private_dirty + 15 * 1024);
  EXPECT_GE(after.pss_anon, before.pss_anon + 15 * 1024);
}

TEST(MemoryStats, AgreesWithItself) {
  const MemoryStats stats = read_memory_stats().value();
  EXPECT_GT(stats.pss, 0u);
  EXPECT_GT(stats.pss_file, 0u);
  EXPECT_LE(stats.pss, stats.rss);
  EXPECT_EQ(stats.rss,
            stats.shared_clean + stats.shared_dirty + stats.private_clean + stats.private_dirty);
  EXPECT_GT(stats.vm_hwm, 0u);
  EXPECT_GT(stats.vm_pte, 0u);
  EXPECT_GE(stats.threads, 1u);
}

TEST(MemoryStats, ReadsAnotherProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    (void)!read(ends[0], &byte, 1);  // until the parent closes its end
    _exit(0);
  }
  close(ends[0]);
  const Result<MemoryStats> stats = read_memory_stats(child);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(stats.is_ok()) << stats.status().message();
  EXPECT_GT(stats.value().rss, 0u);
  EXPECT_EQ(read_memory_stats(child).status().code(), Code::kIo);
}

TEST(RangeStats, CountsTouchedPagesOfAWholeMapping) {
  const Pages pages(64);
  std::memset(pages.data(), 1, 16 * kPage);
  const AddressRange range{pages.data(), pages.bytes()};
  const RangeStats stats = read_range_stats({&range, 1}).value();
  EXPECT_TRUE(stats.exact);
  EXPECT_EQ(stats.size, 256u);
  EXPECT_EQ(stats.rss, 64u);
  EXPECT_EQ(stats.private_dirty, 64u);
  EXPECT_EQ(stats.anonymous, 64u);
}

TEST(RangeStats, AddsRangesAndSharesOutMappingsInPart) {
  const Pages a(64);
  const Pages b(64);
  std::memset(a.data(), 1, a.bytes());
  std::memset(b.data(), 1, b.bytes());
  const AddressRange both[] = {{a.data(), a.bytes()}, {b.data(), b.bytes() - 5}};
  const RangeStats whole = read_range_stats(both).value();
  EXPECT_TRUE(whole.exact);  // the last page belongs to the range that ends in it
  EXPECT_EQ(whole.rss, 512u);
  const AddressRange half{a.data(), a.bytes() / 2};
  const RangeStats part = read_range_stats({&half, 1}).value();
  EXPECT_FALSE(part.exact);
  EXPECT_EQ(part.rss, 128u);
}

TEST(RangeStats, CountsNothingForNoRange) {
  const RangeStats stats = read_range_stats({}).value();
  EXPECT_EQ(stats.size, 0u);
  EXPECT_TRUE(stats.exact);
}

}  // namespace
}  // namespace folio
