#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr const char* kMs = "com.microsoft";

// Characters 1, 2, 3 of one number each, one filter of two characters: their sum.
OpTester sums(const std::vector<int32_t>& words, int64_t length) {
  OpTester t("WordConvEmbedding", 1, kMs);
  t.input<int32_t>({static_cast<int64_t>(words.size()) / length, length}, words);
  t.input<float>({1, 1, 2, 1}, {1, 1}).input<float>({1}, {0.25F});
  t.input<float>({4, 1}, {0, 0.5F, -1, 2});
  return t;
}

TEST(WordConvEmbedding, IsTheLargestOfWhatAFilterSees) {
  OpTester t = sums({1, 2, 1, 3, 2, 2, 1, 0}, 4);
  t.expect<float>(0, {2, 1}, {std::tanh(2.75F), std::tanh(-0.25F)}, 1e-6).run();
}

TEST(WordConvEmbedding, ShortWordsAreAsLongAsTheFilter) {
  OpTester t = sums({1, 0, 0}, 3);
  t.expect<float>(0, {1, 1}, {std::tanh(0.75F)}, 1e-6).run();
}

TEST(WordConvEmbedding, NoCharacterIsNoVector) {
  OpTester t = sums({0, 3, 3, -7, 1, 1}, 3);
  t.expect<float>(0, {2, 1}, {0, 0}).run();
}

TEST(WordConvEmbedding, RefusesWhatDoesNotFit) {
  sums({1, 2, 4}, 3).outputs(1).fails("character 4 is not in a table of 4");
  sums({1, 2, -1, 3}, 4).outputs(1).fails("character -1 is not");
  sums({1}, 1).outputs(1).fails("words have 1 characters, expected 2");
  sums({1, 2}, 2).attr("embedding_size", 2).outputs(1).fails("do not fit each other");
  sums({1, 2}, 2).attr("conv_window_size", 3).outputs(1).fails("do not fit each other");
  sums({1, 2}, 2).attr("char_embedding_size", 2).outputs(1).fails("do not fit each other");
}

}  // namespace
}  // namespace folio
