// Digests of model files as pack files, stores and records keep them: what was hashed too soon
// after a write is never vouched for, and memos do not grow for ever.
#include <gtest/gtest.h>

#include "core/prepack/fpack_index.h"

namespace folio {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Changed at second `changed`, hashed so many nanoseconds later.
FileMemo memo_of(uint64_t inode, int64_t changed, int64_t later, uint64_t offset) {
  FileMemo memo;
  memo.file = {1, inode, 4096, changed * kSecond, changed * kSecond};
  memo.hashed_at_ns = changed * kSecond + later;
  memo.add(offset, 64, {inode, offset});
  return memo;
}

TEST(FileMemo, SettledOnesOfOneStateAreJoined) {
  std::vector<FileMemo> memos = {memo_of(7, 10, kSecond, 0)};
  merge_memos({memo_of(7, 10, 2 * kSecond, 64)}, &memos);
  ASSERT_EQ(memos.size(), 1U);
  EXPECT_NE(memos[0].find(0, 64), nullptr);
  EXPECT_NE(memos[0].find(64, 64), nullptr);
  EXPECT_EQ(memos[0].hashed_at_ns, 12 * kSecond);
}

TEST(FileMemo, ALaterOneDoesNotVouchForOneThatWasTooEarly) {
  std::vector<FileMemo> memos = {memo_of(7, 10, kSecond / 20, 0)};
  EXPECT_FALSE(memos[0].is_settled());
  merge_memos({memo_of(7, 10, 2 * kSecond, 64)}, &memos);
  ASSERT_EQ(memos.size(), 1U);
  EXPECT_TRUE(memos[0].is_settled());
  EXPECT_EQ(memos[0].find(0, 64), nullptr) << "the file may have been written to since";
  EXPECT_NE(memos[0].find(64, 64), nullptr);
  // Nor the other way round.
  merge_memos({memo_of(7, 10, kSecond / 20, 128)}, &memos);
  EXPECT_EQ(memos[0].find(128, 64), nullptr);
  EXPECT_NE(memos[0].find(64, 64), nullptr);
}

TEST(FileMemo, AnOlderStateOfTheFileIsForgotten) {
  std::vector<FileMemo> memos = {memo_of(7, 10, kSecond, 0), memo_of(8, 10, kSecond, 0)};
  merge_memos({memo_of(7, 20, kSecond, 0)}, &memos);
  ASSERT_EQ(memos.size(), 2U);
  for (const FileMemo& memo : memos) {
    EXPECT_EQ(memo.file.mtime_ns, (memo.file.inode == 7 ? 20 : 10) * kSecond);
  }
}

TEST(FileMemo, TheOldestGoWhenThereAreTooMany) {
  std::vector<FileMemo> memos;
  for (uint64_t i = 0; i < 10; ++i) {
    memos.push_back(memo_of(i, static_cast<int64_t>(i), kSecond, 0));
    memos.back().add(64, 64, {});
  }
  limit_memos(7, &memos);
  ASSERT_EQ(memos.size(), 3U) << "two digests each";
  for (const FileMemo& memo : memos) EXPECT_GE(memo.file.inode, 7U);
  limit_memos(0, &memos);
  EXPECT_TRUE(memos.empty());
}

}  // namespace
}  // namespace folio
