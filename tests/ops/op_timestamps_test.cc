#include "core/ops/op_timestamps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace folio {
namespace {

using testing::ElementsAre;

constexpr int64_t kWords = 75;
constexpr float kForbidden = std::numeric_limits<float>::lowest();

// Words 0 to 3, the end 4, six tokens that are neither, times from 11 on.
TimestampTokens tokens() {
  TimestampTokens out;
  out.end = 4;
  out.start = 5;
  out.translate = 6;
  out.transcribe = 7;
  out.start_of_lm = 8;
  out.none = 9;
  out.first = 11;
  return out;
}

// Each token as probable; or times as improbable as they need to be for text to be allowed.
enum class Odds { kAlike, kText };

std::vector<float> after(const std::vector<int32_t>& text, Odds odds = Odds::kText) {
  std::vector<float> scores(kWords, -4.0f);
  for (size_t i = 11; odds == Odds::kText && i < scores.size(); ++i) scores[i] = -20.0f;
  tokens().apply(text, kWords, scores.data());
  return scores;
}

// The tokens from `begin` up to `end` that may come.
std::vector<int> allowed(const std::vector<float>& scores, int begin, int end) {
  std::vector<int> out;
  for (int i = begin; i < end; ++i) {
    if (scores[static_cast<size_t>(i)] != kForbidden) out.push_back(i);
  }
  return out;
}

TEST(Timestamps, BeginWithAnythingButWhatIsNeverSaid) {
  const auto scores = after({5, 7});
  EXPECT_THAT(allowed(scores, 0, 12), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 10, 11));
}

TEST(Timestamps, BeginWithinASecond) {
  for (const std::vector<int32_t>& text : {std::vector<int32_t>{5, 7}, {5}}) {
    EXPECT_THAT(allowed(after(text), 60, kWords), ElementsAre(60, 61));
  }
  // Later ones may be any.
  EXPECT_EQ(allowed(after({5, 11, 2}), 60, kWords).size(), 15u);
}

TEST(Timestamps, TextFollowsTheFirst) {
  const auto scores = after({5, 7, 13});
  EXPECT_THAT(allowed(scores, 0, kWords), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 10));
}

TEST(Timestamps, WhatBeginsATextDoesNotComeAgain) {
  EXPECT_THAT(allowed(after({5, 7, 13, 2}), 0, 11), ElementsAre(0, 1, 2, 3, 4, 10));
}

TEST(Timestamps, DoNotGoBack) {
  EXPECT_THAT(allowed(after({5, 13, 2}), 11, 17), ElementsAre(14, 15, 16));
  // After a single one the same may come, and the end, but no word.
  EXPECT_THAT(allowed(after({5, 13, 2, 15}), 0, 18), ElementsAre(4, 10, 15, 16, 17));
  // After a pair text comes, and after that text a later time.
  EXPECT_THAT(allowed(after({5, 13, 2, 15, 15}), 0, kWords), ElementsAre(0, 1, 2, 3, 4, 10));
  EXPECT_THAT(allowed(after({5, 13, 2, 15, 15, 3}), 11, 18), ElementsAre(16, 17));
}

TEST(Timestamps, ComeWhenTogetherTheyAreMoreProbableThanAnyText) {
  // 51 times of exp(-4) beside words of exp(-4) each.
  EXPECT_TRUE(allowed(after({5, 7}, Odds::kAlike), 0, 11).empty());
  EXPECT_EQ(allowed(after({5, 7}, Odds::kAlike), 11, kWords).size(), 51u);
  std::vector<float> scores(kWords, -4.0f);
  scores[2] = 0;  // more than log(51) - 4
  tokens().apply(std::vector<int32_t>{5, 7}, kWords, scores.data());
  EXPECT_EQ(allowed(scores, 0, 5).size(), 5u);
}

TEST(Timestamps, LeaveRowsAloneThatAllowNothing) {
  std::vector<float> scores(kWords, kForbidden);
  tokens().apply(std::vector<int32_t>{5, 7}, kWords, scores.data());
  EXPECT_TRUE(allowed(scores, 0, kWords).empty());
}

TEST(Timestamps, TakeTokensOutsideTheVocabulary) {
  TimestampTokens odd = tokens();
  odd.none = -1;
  odd.start_of_lm = 1 << 30;
  odd.end = 1 << 30;
  std::vector<float> scores(kWords, -4.0f);
  odd.apply(std::vector<int32_t>{-7, 2147483647, 3, 2147483647}, kWords, scores.data());
  EXPECT_TRUE(allowed(scores, 0, kWords).empty());
}

TEST(Timestamps, AreTokensOfTheVocabulary) {
  TimestampTokens odd = tokens();
  EXPECT_TRUE(odd.check(kWords).is_ok());
  for (const int64_t first : {int64_t{-1}, int64_t{0}, kWords}) {
    odd.first = first;
    EXPECT_THAT(odd.check(kWords).message(),
                testing::HasSubstr("beginning_timestamp_token_id is " + std::to_string(first)));
  }
}

}  // namespace
}  // namespace folio
