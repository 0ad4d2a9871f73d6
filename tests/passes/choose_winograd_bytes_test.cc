// choose_winograd: which convolutions of bytes compute by Winograd's algorithm.
#include <gtest/gtest.h>

#include "tests/passes/pass_tester.h"
#include "tests/support/byte_conv_model.h"

namespace folio {
namespace {

int chosen(const ByteConvModel& c, const WinogradChoice& choice = {kWinogradTiles, true}) {
  const auto model = optimized(c.writer(), Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  choose_winograd(model.value().get(), choice);
  int count = 0;
  for (const Node& node : model.value()->graph.nodes) count += node.attributes.has("winograd");
  return count;
}

TEST(ChooseWinogradBytes, TakesConvolutionsWithStride1WhereTheLevelWantsIt) {
  EXPECT_EQ(chosen({}), 1);
  EXPECT_EQ(chosen({}, {0, true}), 1);
  EXPECT_EQ(chosen({}, {kWinogradTiles, false}), 0);
  EXPECT_EQ(chosen({.stride = 2}), 0);
  EXPECT_EQ(chosen({.is_known = false}), 1);
}

TEST(ChooseWinogradBytes, WantsWeightsWithoutZeroPoints) {
  EXPECT_EQ(chosen({.w_zero = 1}), 0);
  EXPECT_EQ(chosen({.is_unsigned = true}), 1);
  EXPECT_EQ(chosen({.w_zero = -128, .is_unsigned = true}), 0);
}

// 28 x 28 of 128 channels take 0.7 of direct convolution's time; of 14 x 14 the weights, and of few
// channels the transforms, take what is saved.
TEST(ChooseWinogradBytes, WantsEnoughTilesAndChannels) {
  EXPECT_EQ(chosen({.channels = 128, .filters = 128, .side = 28}), 1);
  EXPECT_EQ(chosen({.channels = 128, .filters = 128, .side = 14}), 0);
  EXPECT_EQ(chosen({.channels = 16, .filters = 16}), 0);
  EXPECT_EQ(chosen({.channels = 32, .filters = 32}), 1);
  EXPECT_EQ(chosen({.channels = 48, .filters = 48}), 1);
  EXPECT_EQ(chosen({.channels = 40, .filters = 64}), 0) << "no whole panels";
  EXPECT_EQ(chosen({.channels = 224, .filters = 64}), 1);
  EXPECT_EQ(chosen({.channels = 512, .filters = 64}), 1);
}

// A weight of 128 x 128 takes 1 MiB more: 16 MiB are fifteen of them, as sums and what is left of
// a panel are a little more.
TEST(ChooseWinogradBytes, StaysWithinTheBudgetOfAllConvolutions) {
  EXPECT_EQ(chosen({.channels = 128, .filters = 128, .side = 28, .count = 18}), 16);
}

}  // namespace
}  // namespace folio
