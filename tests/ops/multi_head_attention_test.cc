#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(MultiHeadAttention, MasksPaddedKeys) {
  OpTester t("MultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<float>({1, 1, 1}, {0});
  t.input<float>({1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 3, 1}, {2, 4, 50});
  t.input_absent();
  t.input<int32_t>({1, 3}, {1, 1, 0});
  t.expect<float>(0, {1, 1, 1}, {3}, 1e-6);
  t.run();
}

TEST(MultiHeadAttention, UnpacksAndBiasesItsInput) {
  OpTester t("MultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("unidirectional", 1);
  t.input<float>({1, 2, 1, 3, 1}, {0, 7, 1, 0, 8, 3});  // q, k, v of each position
  t.input_absent();
  t.input_absent();
  t.input<float>({3}, {0, 1, 10});
  t.expect<float>(0, {1, 2, 1}, {11, 12}, 1e-6);
  t.expect<float>(1, {1, 1, 2, 1}, {8, 9});
  t.expect<float>(2, {1, 1, 2, 1}, {11, 13});
  t.run();
}

TEST(MultiHeadAttention, OfAnotherRankAPackedQueryIsAnError) {
  OpTester t("MultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 2);
  t.input<float>({1, 2, 3, 2}, std::vector<float>(12, 1.0F));
  t.outputs(1).fails("query has shape [1,2,3,2], expected [B,S,2,3,d] or [B,S,3*2*d] without key");
}

// Of two heads; keys and values, of two positions, stand by heads. A query of zeros sees both
// alike.
OpTester by_heads(const std::vector<float>& keys) {
  OpTester t("MultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 2);
  t.input<float>({1, 1, 2}, {0, 0});
  t.input<float>({1, 2, 2, 1}, keys);
  t.input<float>({1, 2, 2, 1}, {1, 3, 10, 30});
  t.expect<float>(0, {1, 1, 2}, {2, 20}, 1e-6);
  return t;
}

TEST(MultiHeadAttention, TakesACrossAttentionCacheAsItIs) { by_heads({0, 0, 0, 0}).run(); }

TEST(MultiHeadAttention, KeysAndValuesByHeadsArePresentOnesToo) {
  OpTester t = by_heads({1, 2, 3, 4});
  t.expect<float>(1, {1, 2, 2, 1}, {1, 2, 3, 4});
  t.expect<float>(2, {1, 2, 2, 1}, {1, 3, 10, 30});
  t.run();
}

TEST(DecoderMaskedMultiHeadAttention, WritesIntoTheSharedBuffer) {
  OpTester t("DecoderMaskedMultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("past_present_share_buffer", 1);
  t.input<float>({1, 1, 3}, {0, 5, 8});  // q, k, v packed
  for (int i = 0; i < 4; ++i) t.input_absent();
  t.input<float>({1, 1, 3, 1}, {1, 99, 99});
  t.input<float>({1, 1, 3, 1}, {2, 99, 99});
  t.input<int32_t>({1}, {1});
  t.expect<float>(0, {1, 1, 1}, {5}, 1e-6);
  t.expect<float>(1, {1, 1, 3, 1}, {1, 5, 0});
  t.expect<float>(2, {1, 1, 3, 1}, {2, 8, 0});
  t.run();
}

TEST(MultiHeadAttention, AMaskOfAnotherShapeIsRefused) {
  OpTester t("MultiHeadAttention", 1, "com.microsoft");
  t.attr("num_heads", 1);
  t.input<float>({1, 1, 1}, {0});
  t.input<float>({1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 3, 1}, {2, 4, 50});
  t.input_absent();
  t.input<int32_t>({1, 2}, {1, 1});
  t.outputs(1).fails("mask has shape");
}

}  // namespace
}  // namespace folio
