// Pack files: what is written is found again, whole and aligned; whatever is not a whole pack file
// is refused with a reason.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/prepack/fpack_writer.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using testing::TempFolder;

std::vector<uint8_t> bytes_of(size_t count, uint8_t seed) {
  std::vector<uint8_t> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(seed + i * 7);
  return bytes;
}

PackWriter::Label label(uint64_t key, const char* name = "w") {
  return {{1, key}, Layout::kF32P16, kF32P16Version, name};
}

// A file of these blobs, under the keys 1, 2, ...
std::string write_pack(const TempFolder& folder, const std::vector<std::vector<uint8_t>>& blobs,
                       const std::vector<FileMemo>& memos = {}) {
  const std::string path = folder.path("model.fpack");
  auto writer = PackWriter::create(path, "test").take();
  uint64_t key = 0;
  for (const auto& blob : blobs) {
    const auto added = writer->add(label(++key), {blob.data(), blob.size()}, BlobPlace::kSidecar);
    EXPECT_TRUE(added.is_ok()) << added.status().message();
    EXPECT_EQ(std::memcmp(added.value()->data(), blob.data(), blob.size()), 0);
  }
  for (const FileMemo& memo : memos) writer->add_memo(memo);
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "nothing stands under the name before finish";
  EXPECT_TRUE(writer->finish().is_ok());
  return path;
}

Result<Ref<PackFile>> open_pack(const std::string& path,
                                PackChecksum checksum = PackChecksum::kOff) {
  return PackFile::open(path, BlobPlace::kSidecar, checksum);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Fpack, WhatIsWrittenIsFoundAgain) {
  const TempFolder folder;
  const std::vector<std::vector<uint8_t>> blobs{bytes_of(100, 1), bytes_of(70000, 2),
                                                bytes_of(1, 3)};
  const std::string path = write_pack(folder, blobs);
  const auto file = open_pack(path, PackChecksum::kOpen);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  ASSERT_EQ(file.value()->index().entries.size(), 3U);
  EXPECT_EQ(file.value()->index().writer, "test");
  for (uint64_t i = 0; i < blobs.size(); ++i) {
    const PackEntry* entry = file.value()->index().find({1, i + 1});
    ASSERT_NE(entry, nullptr);
    const auto blob = file.value()->blob(*entry);
    ASSERT_TRUE(blob.is_ok());
    ASSERT_EQ(blob.value()->bytes(), blobs[i].size());
    EXPECT_EQ(std::memcmp(blob.value()->data(), blobs[i].data(), blobs[i].size()), 0);
    EXPECT_EQ(blob.value()->place(), BlobPlace::kSidecar);
  }
  EXPECT_EQ(file.value()->index().find({1, 9}), nullptr);
}

TEST(Fpack, BlobsAreAlignedBySize) {
  const TempFolder folder;
  const auto path = write_pack(
      folder, {bytes_of(10, 0), bytes_of(65536, 0), bytes_of(33 << 20, 0), bytes_of(10, 1)});
  const auto file = open_pack(path);
  ASSERT_TRUE(file.is_ok());
  const auto offset = [&](uint64_t key) { return file.value()->index().find({1, key})->offset; };
  EXPECT_EQ(offset(1) % 64, 0U);
  EXPECT_EQ(offset(2) % 4096, 0U);
  EXPECT_EQ(offset(3) % (2 << 20), 0U);
  EXPECT_EQ(offset(4) % 64, 0U);
}

TEST(Fpack, TheFileIsReadOnlyAndReplacedWhole) {
  const TempFolder folder;
  const std::string path = write_pack(folder, {bytes_of(10, 1)});
  struct stat s = {};
  ASSERT_EQ(stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0444U);
  const auto old = open_pack(path).take();
  const auto blob = old->blob(old->index().entries[0]).take();
  auto writer = PackWriter::create(path, "second").take();
  const auto fresh = bytes_of(10, 99);
  ASSERT_TRUE(writer->add(label(1), {fresh.data(), 10}, BlobPlace::kSidecar).is_ok());
  ASSERT_TRUE(writer->finish().is_ok());
  EXPECT_EQ(blob->data()[0], 1) << "who has the old file mapped keeps it";
  EXPECT_EQ(open_pack(path).value()->index().writer, "second");
}

TEST(Fpack, DigestsOfFilesSurvive) {
  const TempFolder folder;
  FileMemo memo;
  memo.file = {1, 2, 3, 4, 5};
  memo.hashed_at_ns = 6;
  memo.add(64, 8, {7, 8});
  memo.add(0, 8, {9, 10});
  memo.add(64, 8, {11, 12});
  const auto file = open_pack(write_pack(folder, {bytes_of(10, 1)}, {memo}));
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  ASSERT_EQ(file.value()->index().memos.size(), 1U);
  const FileMemo& found = file.value()->index().memos[0];
  EXPECT_EQ(found.file, memo.file);
  EXPECT_EQ(found.hashed_at_ns, 6);
  ASSERT_NE(found.find(64, 8), nullptr);
  EXPECT_EQ(*found.find(64, 8), (ContentId{11, 12}));
  EXPECT_EQ(found.find(64, 9), nullptr);
}

TEST(Fpack, TruncatedAnywhereIsRefused) {
  const TempFolder folder;
  const std::string text = read_text(write_pack(folder, {bytes_of(5000, 1), bytes_of(70000, 2)}));
  for (size_t size = 0; size < text.size(); size += size < 8192 ? 97 : 1501) {
    const std::string path = folder.write("cut.fpack", text.substr(0, size));
    chmod(path.c_str(), 0600);
    EXPECT_FALSE(open_pack(path).is_ok()) << size;
  }
}

TEST(Fpack, AFlippedBitInHeaderOrIndexIsRefused) {
  const TempFolder folder;
  const std::string text = read_text(write_pack(folder, {bytes_of(100, 1), bytes_of(100, 2)}));
  uint64_t index_offset = 0;
  std::memcpy(&index_offset, text.data() + offsetof(fpack_format::Header, index_offset), 8);
  const auto flipped = [&](size_t at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const std::string path = folder.write("flipped.fpack", changed);
    chmod(path.c_str(), 0600);
    return open_pack(path).is_ok();
  };
  for (size_t at = 0; at < sizeof(fpack_format::Header); ++at) EXPECT_FALSE(flipped(at)) << at;
  for (size_t at = index_offset; at < text.size(); ++at) EXPECT_FALSE(flipped(at)) << at;
}

TEST(Fpack, AFlippedBitInABlobIsFoundWhereChecksumsAreOn) {
  const TempFolder folder;
  std::string text = read_text(write_pack(folder, {bytes_of(100, 1), bytes_of(100, 2)}));
  text[fpack_format::kHeaderBytes + 50] ^= 4;
  const std::string path = folder.write("flipped.fpack", text);
  chmod(path.c_str(), 0600);
  EXPECT_TRUE(open_pack(path, PackChecksum::kOff).is_ok());
  EXPECT_FALSE(open_pack(path, PackChecksum::kOpen).is_ok());
  const auto file = open_pack(path, PackChecksum::kFirstUse);
  ASSERT_TRUE(file.is_ok());
  EXPECT_FALSE(file.value()->blob(*file.value()->index().find({1, 1})).is_ok());
  EXPECT_TRUE(file.value()->blob(*file.value()->index().find({1, 2})).is_ok());
}

// An index with right checksums and hostile contents.
TEST(Fpack, AnIndexThatPointsOutsideIsRefused) {
  PackIndex index;
  index.names = {"w"};
  PackEntry entry;
  entry.key = {1, 1};
  entry.offset = 64;
  entry.bytes = 64;
  const auto decodes = [&](const PackEntry& changed) {
    index.entries = {changed};
    const auto bytes = encode_index(index);
    return decode_index({bytes.data(), bytes.size()}, 128).is_ok();
  };
  EXPECT_TRUE(decodes(entry));
  for (int which = 0; which < 6; ++which) {
    PackEntry changed = entry;
    if (which == 0) changed.bytes = 65;
    if (which == 1) changed.offset = 128;
    if (which == 2) changed.offset = UINT64_MAX - 63;
    if (which == 3) changed.bytes = 0;
    if (which == 4) changed.offset = 32;
    if (which == 5) changed.name = 1;
    EXPECT_FALSE(decodes(changed)) << which;
  }
  index.entries = {entry, entry};
  const auto bytes = encode_index(index);
  EXPECT_FALSE(decode_index({bytes.data(), bytes.size()}, 128).is_ok()) << "a key twice";
}

TEST(Fpack, FilesOfOthersAreNotUsed) {
  const TempFolder folder;
  const std::string path = write_pack(folder, {bytes_of(10, 1)});
  chmod(path.c_str(), 0464);
  EXPECT_EQ(open_pack(path).status().code(), Code::kInvalidArgument);
  chmod(path.c_str(), 0446);
  EXPECT_EQ(open_pack(path).status().code(), Code::kInvalidArgument);
  chmod(path.c_str(), 0444);
  EXPECT_TRUE(open_pack(path).is_ok());
  EXPECT_FALSE(open_pack(folder.link(path, "link.fpack")).is_ok()) << "symlinks are not followed";
  if (geteuid() == 0) {
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_TRUE(open_pack(path).is_ok() == false);
  }
}

}  // namespace
}  // namespace folio
