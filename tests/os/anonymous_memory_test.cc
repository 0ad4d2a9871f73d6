#include "core/os/anonymous_memory.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace folio {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kPage = 4 * kKiB;

// Of the mapping that `address` stands in, as /proc/self/smaps has it.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  size_t resident = 0;
  bool wants_huge_pages = false;
};

Mapping mapping_of(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream file("/proc/self/smaps");
  Mapping found;
  for (std::string line; std::getline(file, line);) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    size_t kib = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      if (found.end != 0) break;
      if (begin <= wanted && wanted < end) found = {begin, end, 0, false};
    } else if (found.end != 0 && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) {
      found.resident = kib * kKiB;
    } else if (found.end != 0 && line.rfind("VmFlags:", 0) == 0) {
      std::istringstream flags(line);
      for (std::string flag; flags >> flag;) found.wants_huge_pages |= flag == "hg";
    }
  }
  return found;
}

bool system_has_huge_pages() {
  return std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled").good();
}

TEST(AnonymousMemory, HasHugePagesWhereTheyAreWholeAndNotBehind) {
  if (!system_has_huge_pages()) GTEST_SKIP() << "the kernel has no transparent huge pages";
  const size_t bytes = 2 * kHugePage + 3 * kPage + 5;
  uint8_t* const data = map_anonymous(bytes);
  ASSERT_NE(data, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % kHugePage, 0u);
  std::memset(data, 1, bytes);
  const Mapping whole = mapping_of(data);
  EXPECT_TRUE(whole.wants_huge_pages);
  EXPECT_EQ(whole.end, reinterpret_cast<uintptr_t>(data) + 2 * kHugePage);
  EXPECT_FALSE(mapping_of(data + bytes - 1).wants_huge_pages);
  unmap_anonymous(data, bytes);
}

// A byte behind the last whole huge page must not cost 2 MiB.
TEST(AnonymousMemory, TakesNoMoreThanWasAskedFor) {
  const size_t bytes = kHugePage + 3 * kPage;
  uint8_t* const data = map_anonymous(bytes);
  ASSERT_NE(data, nullptr);
  std::memset(data, 1, bytes);
  const Mapping first = mapping_of(data);
  const Mapping last = mapping_of(data + bytes - 1);
  const bool is_one = first.begin == last.begin;
  // Of mappings beside it that the kernel has joined with it, nothing is known.
  if (last.end == reinterpret_cast<uintptr_t>(data) + bytes) {
    EXPECT_LE(first.resident + (is_one ? 0 : last.resident), bytes);
  }
  unmap_anonymous(data, bytes);
}

TEST(AnonymousMemory, NeedsNoHugePageForLess) {
  uint8_t* const data = map_anonymous(kHugePage - 1);
  ASSERT_NE(data, nullptr);
  std::memset(data, 1, kHugePage - 1);
  EXPECT_FALSE(mapping_of(data).wants_huge_pages);
  unmap_anonymous(data, kHugePage - 1);
}

TEST(AnonymousMemory, LargeBuffersAreCountedAndGoBack) {
  const uint64_t before = buffer_bytes_live();
  const uint8_t* data = nullptr;
  {
    Result<Ref<Buffer>> made = allocate_large_buffer(3 * kHugePage + 7);
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    const Ref<Buffer> buffer = std::move(made).take();
    EXPECT_EQ(buffer->kind(), Buffer::Kind::kHeap);
    EXPECT_EQ(buffer->bytes(), 3 * kHugePage + 7);
    EXPECT_EQ(buffer_bytes_live(), before + buffer->bytes());
    data = buffer->data();
    std::memset(buffer->data(), 1, buffer->bytes());
    EXPECT_NE(mapping_of(data).end, 0u);
  }
  EXPECT_EQ(buffer_bytes_live(), before);
  EXPECT_EQ(mapping_of(data).end, 0u) << "it is mapped still";
}

TEST(AnonymousMemory, WhatCannotBeIsAnError) {
  EXPECT_EQ(map_anonymous(SIZE_MAX - 5), nullptr);
  EXPECT_EQ(map_anonymous(size_t{1} << 62), nullptr);
  EXPECT_EQ(allocate_large_buffer(SIZE_MAX).status().code(), Code::kOutOfMemory);
  EXPECT_EQ(allocate_large_buffer(size_t{1} << 62).status().code(), Code::kOutOfMemory);
  set_allocation_hook([](size_t) { return false; });
  const Code refused = allocate_large_buffer(kHugePage).status().code();
  set_allocation_hook(nullptr);
  EXPECT_EQ(refused, Code::kOutOfMemory);
}

}  // namespace
}  // namespace folio
