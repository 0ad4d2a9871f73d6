// EyeLike, ReverseSequence, Unique, TensorScatter, CenterCropPad, BitCast, Col2Im and MaxUnpool.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(EyeLike, FillsADiagonal) {
  OpTester t("EyeLike", 9);
  t.attr("k", 1).attr("dtype", 7).input<float>({2, 3}, {9, 9, 9, 9, 9, 9});
  t.expect<int64_t>(0, {2, 3}, {0, 1, 0, 0, 0, 1}).run();
  OpTester far("EyeLike", 22);
  far.attr("k", INT64_MIN).input<bool>({1, 1}, {true}).expect<bool>(0, {1, 1}, {false}).run();
  OpTester rank("EyeLike", 9);
  rank.input<float>({1}, {1}).outputs(1).fails("rank 1");
  OpTester type("EyeLike", 9);
  type.attr("dtype", 8).input<float>({1, 1}, {1}).outputs(1).fails("dtype is 8");
}

TEST(ReverseSequence, ReversesTheStartOfEachItem) {
  OpTester time("ReverseSequence", 10);
  time.input<float>({3, 2}, {0, 3, 1, 4, 2, 5}).input<int64_t>({2}, {3, 2});
  time.expect<float>(0, {3, 2}, {2, 4, 1, 3, 0, 5}).run();
  OpTester batch("ReverseSequence", 10);
  batch.attr("batch_axis", 0).attr("time_axis", 1).input<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  batch.input<int64_t>({2}, {0, 3}).expect<float>(0, {2, 3}, {0, 1, 2, 5, 4, 3}).run();
  OpTester length("ReverseSequence", 10);
  length.input<float>({1, 1}, {1}).input<int64_t>({1}, {2}).outputs(1).fails("length is 2");
  OpTester axes("ReverseSequence", 10);
  axes.attr("batch_axis", 0).input<float>({1, 1}, {1}).input<int64_t>({1}, {1}).outputs(1);
  axes.fails("time_axis 0");
}

TEST(Unique, FindsElementsInOrderOrByPlace) {
  OpTester sorted("Unique", 11);
  sorted.input<float>({6}, {2, 1, 1, 3, 4, 3}).expect<float>(0, {4}, {1, 2, 3, 4});
  sorted.expect<int64_t>(1, {4}, {1, 0, 3, 4}).expect<int64_t>(2, {6}, {1, 0, 0, 2, 3, 2});
  sorted.expect<int64_t>(3, {4}, {2, 1, 2, 1}).run();
  OpTester placed("Unique", 11);
  placed.attr("sorted", 0).input<std::string>({2, 2}, {"b", "a", "a", "b"});
  placed.expect<std::string>(0, {2}, {"b", "a"}).expect<int64_t>(1, {2}, {0, 1});
  placed.expect<int64_t>(2, {4}, {0, 1, 1, 0}).run();
}

TEST(Unique, TakesEntriesOfAnAxisAndNan) {
  OpTester rows("Unique", 11);
  rows.attr("axis", 0)
      .input<int8_t>({3, 2}, {2, 3, 1, 0, 2, 3})
      .expect<int8_t>(0, {2, 2}, {1, 0, 2, 3});
  rows.run();
  OpTester nan("Unique", 11);
  nan.input<float>({3}, {NAN, 1, NAN}).expect<float>(0, {2}, {1, NAN}).run();
  OpTester empty("Unique", 11);
  empty.input<float>({0}, {}).expect<float>(0, {0}, {}).run();
  OpTester hollow("Unique", 11);
  hollow.attr("axis", 0).input<float>({3, 0}, {}).outputs(1).fails("entries are empty");
}

TEST(TensorScatter, WritesEachItemAtItsPlace) {
  OpTester t("TensorScatter", 24);
  t.input<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6}).input<float>({2, 1, 1}, {8, 9});
  t.input<int64_t>({2}, {0, 2}).expect<float>(0, {2, 3, 1}, {8, 2, 3, 4, 5, 9}).run();
  OpTester around("TensorScatter", 24);
  around.attr("mode", "circular").attr("axis", 1).input<float>({1, 3}, {1, 2, 3});
  around.input<float>({1, 2}, {8, 9}).input<int64_t>({1}, {2}).expect<float>(0, {1, 3}, {9, 2, 8});
  around.run();
  OpTester beyond("TensorScatter", 24);
  beyond.attr("axis", 1).input<float>({1, 3}, {1, 2, 3}).input<float>({1, 2}, {8, 9});
  beyond.input<int64_t>({1}, {2}).outputs(1).fails("write index is 2, expected 0 to 1");
  OpTester wide("TensorScatter", 24);
  wide.attr("axis", 1).input<float>({1, 1}, {1}).input<float>({1, 2}, {8, 9}).outputs(1);
  wide.fails("does not fit");
}

TEST(CenterCropPad, CutsAndFills) {
  OpTester t("CenterCropPad", 18);
  t.input<float>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}).constant<int64_t>({2}, {3, 2});
  t.expect<float>(0, {3, 2}, {2, 3, 6, 7, 0, 0}).expect_inferred(0, "tensor(float)[3,2]").run();
  OpTester axes("CenterCropPad", 18);
  axes.attr_ints("axes", {-1}).input<std::string>({1, 1}, {"a"}).input<int64_t>({1}, {3});
  axes.expect<std::string>(0, {1, 3}, {"", "a", ""}).run();
  OpTester negative("CenterCropPad", 18);
  negative.input<float>({1}, {1}).input<int64_t>({1}, {-1}).outputs(1).fails("negative");
  OpTester count("CenterCropPad", 18);
  count.input<float>({1}, {1}).input<int64_t>({2}, {1, 1}).outputs(1).fails("2 entries for 1 axes");
}

TEST(BitCast, KeepsTheBits) {
  OpTester t("BitCast", 26);
  t.attr("to", 6).input<float>({2}, {1, -0.0F}).expect<int32_t>(0, {2}, {0x3f800000, INT32_MIN});
  t.run();
  OpTester size("BitCast", 26);
  size.attr("to", 7).input<float>({1}, {1}).outputs(1).fails("float cannot be seen as int64");
  OpTester strings("BitCast", 26);
  strings.attr("to", 8).input<float>({1}, {1}).outputs(1).fails("string");
}

TEST(Col2Im, SumsOverlappingBlocks) {
  OpTester t("Col2Im", 18);
  t.input<float>({1, 2, 2}, {1, 2, 3, 4}).constant<int64_t>({1}, {3}).input<int64_t>({1}, {2});
  t.expect<float>(0, {1, 1, 3}, {1, 5, 4}).run();
  OpTester padded("Col2Im", 18);
  padded.attr_ints("pads", {1, 0}).attr_ints("strides", {2}).input<float>({1, 2, 2}, {1, 2, 3, 4});
  padded.input<int64_t>({1}, {3}).input<int64_t>({1}, {2}).expect<float>(0, {1, 1, 3}, {3, 2, 4});
  padded.run();
}

TEST(Col2Im, RefusesWhatDoesNotFit) {
  OpTester columns("Col2Im", 18);
  columns.input<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({1}, {3});
  columns.input<int64_t>({1}, {2}).outputs(1).fails("expected [n, c * 2, 2]");
  for (const int64_t block : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    OpTester t("Col2Im", 18);
    t.input<float>({1, 2, 2}, {1, 2, 3, 4}).input<int64_t>({1}, {3}).input<int64_t>({1}, {block});
    t.outputs(1).fails("block");
  }
}

TEST(MaxUnpool, PutsElementsBack) {
  OpTester t("MaxUnpool", 9);
  t.attr_ints("kernel_shape", {2, 2}).attr_ints("strides", {2, 2}).input<float>({1, 1, 1, 1}, {5});
  t.input<int64_t>({1, 1, 1, 1}, {2}).expect<float>(0, {1, 1, 2, 2}, {0, 0, 5, 0}).run();
  OpTester larger("MaxUnpool", 11);
  larger.attr_ints("kernel_shape", {2}).input<float>({1, 1, 1}, {5}).input<int64_t>({1, 1, 1}, {1});
  larger.constant<int64_t>({3}, {1, 1, 3}).expect<float>(0, {1, 1, 3}, {0, 5, 0}).run();
  OpTester outside("MaxUnpool", 11);
  outside.attr_ints("kernel_shape", {2}).input<float>({1, 1, 1}, {5});
  outside.input<int64_t>({1, 1, 1}, {2}).outputs(1).fails("index 2 is outside");
  OpTester huge("MaxUnpool", 11);
  huge.attr_ints("kernel_shape", {INT64_MAX}).input<float>({1, 1, 2}, {5, 6});
  huge.input<int64_t>({1, 1, 2}, {0, 1}).outputs(1).fails("overflows");
}

}  // namespace
}  // namespace folio
