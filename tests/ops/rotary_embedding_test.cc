#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(RotaryEmbedding, RotatesHalvesOrNeighbours) {
  for (const int interleaved : {0, 1}) {
    OpTester t("RotaryEmbedding", 23);
    t.attr("interleaved", interleaved);
    t.input<float>({1, 1, 1, 4}, {1, 2, 3, 4});
    t.input<float>({1, 1, 2}, {0, 1});  // a quarter turn, then none
    t.input<float>({1, 1, 2}, {1, 0});
    using Floats = std::vector<float>;
    t.expect<float>(0, {1, 1, 1, 4}, interleaved ? Floats{-2, 1, 3, 4} : Floats{-3, 2, 1, 4});
    t.run();
  }
}

TEST(RotaryEmbedding, LeavesWhatIsBeyondTheRotatedPart) {
  OpTester t("RotaryEmbedding", 23);
  t.attr("rotary_embedding_dim", 2).attr("num_heads", 1);
  t.input<float>({1, 1, 3}, {1, 2, 9});
  t.input<float>({2, 1}, {1, 0});
  t.input<float>({2, 1}, {0, 1});
  t.input<int64_t>({1, 1}, {1});
  t.expect<float>(0, {1, 1, 3}, {-2, 1, 9});
  t.run();
}

TEST(RotaryEmbedding, OfMicrosoftCountsPositionsFromAnOffset) {
  OpTester t("RotaryEmbedding", 1, "com.microsoft");
  t.input<float>({1, 2, 2}, {1, 2, 1, 2});
  t.input<int64_t>({1}, {1});
  t.input<float>({3, 1}, {9, 0, 1});
  t.input<float>({3, 1}, {9, 1, 0});
  t.expect<float>(0, {1, 2, 2}, {-2, 1, 1, 2});
  t.run();
}

TEST(RotaryEmbedding, PositionsInOtherDimsAreRefused) {
  OpTester t("RotaryEmbedding", 23);
  t.input<float>({1, 1, 2, 2}, {1, 2, 1, 2});
  t.input<float>({3, 1}, {9, 0, 1});
  t.input<float>({3, 1}, {9, 1, 0});
  t.input<int64_t>({2, 1}, {0, 1});
  t.outputs(1).fails("position_ids is [2,1], expected [1,2]");
  OpTester contrib("RotaryEmbedding", 1, "com.microsoft");
  contrib.input<float>({1, 2, 2}, {1, 2, 1, 2});
  contrib.input<int64_t>({2, 1}, {0, 1});
  contrib.input<float>({3, 1}, {1, 1, 1});
  contrib.input<float>({3, 1}, {0, 0, 0});
  contrib.outputs(1).fails("position_ids is [2,1], expected [1,2] or one number");
}

TEST(RotaryEmbedding, PositionsBeyondTheCacheAreRefused) {
  for (const int64_t first : {int64_t{2}, int64_t{-1}, INT64_MAX}) {
    OpTester t("RotaryEmbedding", 1, "com.microsoft");
    t.input<float>({1, 2, 2}, {1, 2, 1, 2});
    t.input<int64_t>({1}, {first});
    t.input<float>({3, 1}, {1, 1, 1});
    t.input<float>({3, 1}, {0, 0, 0});
    t.outputs(1).fails("position");
  }
}

}  // namespace
}  // namespace folio
