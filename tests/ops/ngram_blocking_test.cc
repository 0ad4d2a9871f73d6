#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

TEST(NGramRepeatBlock, BlocksWhatWouldComeAgain) {
  OpTester t("NGramRepeatBlock", 1, kMs);
  t.attr("ngram_size", 3);
  t.input<int64_t>({3, 5}, {1, 2, 3, 1, 2, 4, 4, 4, 4, 4, 0, 1, 2, 3, 4});
  t.input<float>({3, 5}, {1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  t.expect<float>(0, {3, 5}, {1, 2, 3, kMinusInf, 5, 1, 2, 3, 4, kMinusInf, 1, 2, 3, 4, 5});
  t.run();
}

TEST(NGramRepeatBlock, OfOneTokenBlocksAllThatAreThere) {
  OpTester t("NGramRepeatBlock", 1, kMs);
  t.attr("ngram_size", 1);
  t.input<int64_t>({1, 2}, {2, 0}).input<float>({1, 3}, {1, 2, 3});
  t.expect<float>(0, {1, 3}, {kMinusInf, 2, kMinusInf});
  t.run();
}

TEST(NGramRepeatBlock, ShortTextsPass) {
  OpTester t("NGramRepeatBlock", 1, kMs);
  t.attr("ngram_size", INT64_MAX);
  t.input<int64_t>({1, 2}, {9, 9}).input<float>({1, 3}, {1, 2, 3});
  t.expect<float>(0, {1, 3}, {1, 2, 3});
  t.run();
}

TEST(NGramRepeatBlock, RefusesTokensOutsideAndOtherShapes) {
  for (const int64_t token : {int64_t{3}, int64_t{-1}}) {
    OpTester t("NGramRepeatBlock", 1, kMs);
    t.attr("ngram_size", 1).input<int64_t>({1, 1}, {token}).input<float>({1, 3}, {1, 2, 3});
    t.outputs(1).fails("is outside the 3 scores");
  }
  OpTester rows("NGramRepeatBlock", 1, kMs);
  rows.attr("ngram_size", 1).input<int64_t>({2, 1}, {0, 0}).input<float>({1, 3}, {1, 2, 3});
  rows.outputs(1).fails("input_ids [2,1] and scores [1,3]");
  OpTester size("NGramRepeatBlock", 1, kMs);
  size.attr("ngram_size", 0).input<int64_t>({1, 1}, {0}).input<float>({1, 3}, {1, 2, 3});
  size.outputs(1).fails("ngram_size is 0");
  OpTester absent("NGramRepeatBlock", 1, kMs);
  absent.input<int64_t>({1, 1}, {0}).input<float>({1, 3}, {1, 2, 3});
  absent.outputs(1).fails("ngram_size");
}

TEST(BifurcationDetector, TakesPredictionsUpToTheFirstThatDiffers) {
  OpTester t("BifurcationDetector", 1, kMs);
  t.input<int64_t>({3}, {1, 2, 3}).input<int64_t>({1}, {8}).input<int64_t>({1}, {1});
  t.input<int64_t>({3}, {2, 9, 7});
  t.expect<int64_t>(0, {3}, {8, 2, 9}).expect<int64_t>(1, {1}, {-1});
  t.run();
  OpTester match("BifurcationDetector", 1, kMs);
  match.input<int64_t>({3}, {1, 2, 3}).input<int64_t>({1}, {8}).input<int64_t>({}, {1});
  match.input<int64_t>({3}, {3, 0, 0});
  match.expect<int64_t>(0, {2}, {8, 3}).expect<int64_t>(1, {}, {3});
  match.run();
  OpTester all("BifurcationDetector", 1, kMs);
  all.input<int64_t>({2}, {1, 2}).input<int64_t>({0}, {}).input<int64_t>({1}, {0});
  all.input<int64_t>({3}, {1, 2, 1});
  all.expect<int64_t>(0, {3}, {1, 2, 1}).expect<int64_t>(1, {1}, {1});
  all.run();
}

TEST(BifurcationDetector, FindsTheOnlyCopyOfTheLastTokens) {
  const auto suffix = [](std::vector<int64_t> current, int64_t most, int64_t expected) {
    OpTester t("BifurcationDetector", 1, kMs);
    t.attr("max_ngram_size", most).input<int64_t>({6}, {1, 2, 3, 1, 2, 4});
    t.input<int64_t>({3}, current).input<int64_t>({1}, {0});
    t.expect<int64_t>(0, {3}, current).expect<int64_t>(1, {1}, {expected});
    t.run();
  };
  suffix({3, 1, 2}, 3, 5);
  suffix({3, 1, 2}, 2, -1);  // 1, 2 is there twice
  suffix({9, 1, 2}, 3, -1);
  suffix({9, 9, 4}, 3, 6);
  suffix({9, 9, 9}, 3, -1);
}

TEST(BifurcationDetector, RefusesPlacesAndLengthsThatDoNotFit) {
  OpTester place("BifurcationDetector", 1, kMs);
  place.input<int64_t>({1}, {1}).input<int64_t>({1}, {8}).input<int64_t>({1}, {2});
  place.input<int64_t>({1}, {1}).outputs(2).fails("prev_suffix_match_idx is 2, expected 0 to 1");
  OpTester length("BifurcationDetector", 1, kMs);
  length.input<int64_t>({1}, {1}).input<int64_t>({1}, {8}).input<int64_t>({1}, {0});
  length.input<int64_t>({1}, {1}).outputs(2).fails("pred_tokens has 1 elements, expected 2");
  OpTester sizes("BifurcationDetector", 1, kMs);
  sizes.attr("min_ngram_size", 4).input<int64_t>({1}, {1}).input<int64_t>({1}, {8});
  sizes.input<int64_t>({1}, {0}).outputs(2).fails("min_ngram_size is 4, max_ngram_size 3");
}

}  // namespace
}  // namespace folio
