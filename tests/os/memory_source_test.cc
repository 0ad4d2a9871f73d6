#include "core/os/memory_source.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string text_of(const Ref<ByteSource>& source) {
  return std::string(reinterpret_cast<const char*>(source->bytes().data()), source->bytes().size());
}

void count_release(void* user) { static_cast<std::atomic<int>*>(user)->fetch_add(1); }

TEST(MemorySource, CopiesBytes) {
  std::string text = "model";
  const Ref<MemorySource> source = MemorySource::copy(bytes_of(text)).value();
  text[0] = 'X';
  EXPECT_EQ(text_of(source), "model");
  EXPECT_EQ(source->name(), "<bytes>");
}

TEST(MemorySource, BorrowsBytesAndReleasesThemOnce) {
  const std::string text = "model";
  std::atomic<int> released{0};
  Ref<ByteSource> source = MemorySource::borrow(bytes_of(text), count_release, &released);
  EXPECT_EQ(source->bytes().data(), bytes_of(text).data());
  Ref<ByteSource> second = source;
  source = nullptr;
  EXPECT_EQ(released, 0);
  second = nullptr;
  EXPECT_EQ(released, 1);
}

TEST(MemorySource, ReleasesOnceWhenThreadsDropTheirReferences) {
  const std::string text = "model";
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> released{0};
    Ref<ByteSource> source = MemorySource::borrow(bytes_of(text), count_release, &released);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) threads.emplace_back([mine = source] { (void)mine->bytes(); });
    source = nullptr;
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    ASSERT_EQ(released, 1);
  }
}

TEST(MemorySource, PassesRefusedMemoryOn) {
  set_allocation_hook([](size_t) { return false; });
  const Code code = MemorySource::copy(bytes_of("model")).status().code();
  set_allocation_hook(nullptr);
  EXPECT_EQ(code, Code::kOutOfMemory);
}

TEST(MemorySource, FindsSiblingsGivenAsBytes) {
  MemorySourceOptions options;
  options.siblings["data.bin"] = MemorySource::copy(bytes_of("data")).value();
  const Ref<MemorySource> source = MemorySource::copy(bytes_of("m"), options).value();
  EXPECT_EQ(text_of(source->open_sibling("data.bin").value()), "data");
  EXPECT_EQ(text_of(source->open_sibling("./data.bin").value()), "data");
  const Status missing = source->open_sibling("other.bin").status();
  EXPECT_EQ(missing.code(), Code::kNoSuchFile);
  EXPECT_NE(missing.message().find("other.bin"), std::string_view::npos) << missing.message();
}

TEST(MemorySource, FindsSiblingsInTheFolderAndNowhereElse) {
  const TempFolder folder;
  folder.write("models/data.bin", "data");
  folder.write("secret.bin", "secret");
  folder.link("../secret.bin", "models/link.bin");
  MemorySourceOptions options;
  options.folder = folder.path("models");
  const Ref<MemorySource> source = MemorySource::copy(bytes_of("m"), options).value();
  EXPECT_EQ(text_of(source->open_sibling("data.bin").value()), "data");
  EXPECT_EQ(source->open_sibling("../secret.bin").status().code(), Code::kInvalidGraph);
  EXPECT_EQ(source->open_sibling("link.bin").status().code(), Code::kInvalidGraph);
  EXPECT_EQ(source->open_sibling("none.bin").status().code(), Code::kNoSuchFile);
}

TEST(MemorySource, SaysThatTheFolderIsMissing) {
  const TempFolder folder;
  MemorySourceOptions options;
  options.folder = folder.path("none");
  const Ref<MemorySource> source = MemorySource::copy(bytes_of("m"), options).value();
  EXPECT_EQ(source->open_sibling("data.bin").status().code(), Code::kNoSuchFile);
}

}  // namespace
}  // namespace folio
