#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  return make_tensor<float>(shape, values);
}
Value two() { return make_sequence(DType::kFloat, {floats({1}, {1}), floats({2}, {2, 3})}); }
const TypeInfo kFloats = TypeInfo::sequence(TypeInfo::tensor(DType::kFloat));

TEST(SequenceConstruct, HoldsItsInputsInOrder) {
  OpTester t("SequenceConstruct", 11);
  t.input<float>({1}, {1}).input<float>({2}, {2, 3}).expect_value(0, two());
  t.expect_inferred(0, "seq(tensor(float)[?])").run();
}

TEST(SequenceConstruct, RefusesTwoElementTypes) {
  OpTester t("SequenceConstruct", 11);
  t.input<float>({1}, {1}).input<int64_t>({1}, {1}).outputs(1).fails("the sequence holds float");
}

TEST(SequenceEmpty, HasAnElementType) {
  OpTester t("SequenceEmpty", 11);
  t.attr("dtype", 7).expect_value(0, make_sequence(DType::kInt64, {}));
  t.expect_inferred(0, "seq(tensor(int64))").run();
  EXPECT_EQ(t.output(0).sequence().dtype, DType::kInt64);
  OpTester wrong("SequenceEmpty", 11);
  wrong.attr("dtype", 99).outputs(1).fails("dtype is 99");
}

TEST(SequenceInsert, PutsATensorAnywhere) {
  const Value front =
      make_sequence(DType::kFloat, {floats({}, {9}), floats({1}, {1}), floats({2}, {2, 3})});
  const Value middle =
      make_sequence(DType::kFloat, {floats({1}, {1}), floats({}, {9}), floats({2}, {2, 3})});
  const Value back =
      make_sequence(DType::kFloat, {floats({1}, {1}), floats({2}, {2, 3}), floats({}, {9})});
  const std::vector<std::pair<int64_t, Value>> cases = {
      {0, front}, {-2, front}, {1, middle}, {-1, middle}, {2, back}};
  for (const auto& entry : cases) {
    OpTester t("SequenceInsert", 11);
    t.input_value(two(), kFloats).input<float>({}, {9}).input<int64_t>({}, {entry.first});
    t.expect_value(0, entry.second).run();
  }
  OpTester append("SequenceInsert", 11);
  append.input_value(two(), kFloats).input<float>({}, {9}).expect_value(0, back).run();
}

TEST(SequenceInsert, RefusesOtherTypesAndPlaces) {
  OpTester type("SequenceInsert", 11);
  type.input_value(two(), kFloats).input<int8_t>({}, {9}).outputs(1).fails("is int8");
  for (const int64_t place : {int64_t{3}, int64_t{-3}, INT64_MIN}) {
    OpTester t("SequenceInsert", 11);
    t.input_value(two(), kFloats).input<float>({}, {9}).input<int64_t>({}, {place}).outputs(1);
    t.fails("position must be one number from -2 to 2");
  }
  OpTester tensor("SequenceInsert", 11);
  tensor.input<float>({}, {1}).input<float>({}, {9}).outputs(1).fails("sequence");
}

TEST(SequenceErase, TakesOffTheLastByDefault) {
  OpTester last("SequenceErase", 11);
  last.input_value(two(), kFloats);
  last.expect_value(0, make_sequence(DType::kFloat, {floats({1}, {1})})).run();
  OpTester first("SequenceErase", 11);
  first.input_value(two(), kFloats).input<int32_t>({}, {-2});
  first.expect_value(0, make_sequence(DType::kFloat, {floats({2}, {2, 3})})).run();
  OpTester none("SequenceErase", 11);
  none.input_value(make_sequence(DType::kFloat, {}), kFloats).outputs(1).fails("is empty");
}

TEST(SequenceAt, GivesAnElement) {
  OpTester t("SequenceAt", 11);
  t.input_value(two(), kFloats).input<int64_t>({}, {-1}).expect<float>(0, {2}, {2, 3}).run();
  OpTester outside("SequenceAt", 11);
  outside.input_value(two(), kFloats).input<int64_t>({}, {2}).outputs(1).fails("position 2");
  OpTester many("SequenceAt", 11);
  many.input_value(two(), kFloats).input<int64_t>({2}, {0, 0}).outputs(1).fails("2 elements");
}

TEST(SequenceLength, CountsElements) {
  OpTester t("SequenceLength", 11);
  t.input_value(two(), kFloats).expect<int64_t>(0, {}, {2}).run();
}

TEST(SplitToSequence, CutsAnAxis) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  OpTester sizes("SplitToSequence", 11);
  sizes.attr("axis", 1).input<float>({2, 3}, x).input<int64_t>({2}, {1, 2});
  sizes.expect_value(
      0, make_sequence(DType::kFloat, {floats({2, 1}, {1, 4}), floats({2, 2}, {2, 3, 5, 6})}));
  sizes.expect_inferred(0, "seq(tensor(float)[2,?])").run();
  OpTester scalar("SplitToSequence", 11);
  scalar.input<float>({3, 2}, x).input<int32_t>({}, {2});
  scalar.expect_value(
      0, make_sequence(DType::kFloat, {floats({2, 2}, {1, 2, 3, 4}), floats({1, 2}, {5, 6})}));
  scalar.run();
  OpTester drop("SplitToSequence", 11);
  drop.attr("keepdims", 0).input<float>({2, 1}, {1, 2});
  drop.expect_value(0, make_sequence(DType::kFloat, {floats({1}, {1}), floats({1}, {2})})).run();
}

TEST(SplitToSequence, RefusesSizesThatDoNotAddUp) {
  for (const auto& sizes : {std::vector<int64_t>{1, 1}, {4, -1}, {INT64_MAX, INT64_MAX}}) {
    OpTester t("SplitToSequence", 11);
    t.input<float>({3}, {1, 2, 3}).input<int64_t>({2}, sizes).outputs(1).fails("split");
  }
  OpTester zero("SplitToSequence", 11);
  zero.input<float>({3}, {1, 2, 3}).input<int64_t>({}, {0}).outputs(1).fails("split is 0");
  OpTester many("SplitToSequence", 11);
  many.input<float>({INT64_MAX, 0}, {}).outputs(1).fails("too many");
}

TEST(ConcatFromSequence, JoinsOrStacks) {
  OpTester join("ConcatFromSequence", 11);
  join.attr("axis", 0).input_value(two(), kFloats).expect<float>(0, {3}, {1, 2, 3}).run();
  OpTester stack("ConcatFromSequence", 11);
  stack.attr("axis", -1).attr("new_axis", 1);
  stack.input_value(make_sequence(DType::kFloat, {floats({2}, {1, 2}), floats({2}, {3, 4})}),
                    kFloats);
  stack.expect<float>(0, {2, 2}, {1, 3, 2, 4}).run();
}

TEST(ConcatFromSequence, RefusesWhatDoesNotFit) {
  OpTester stack("ConcatFromSequence", 11);
  stack.attr("axis", 0).attr("new_axis", 1).input_value(two(), kFloats).outputs(1);
  stack.fails("element 1 does not fit");
  OpTester empty("ConcatFromSequence", 11);
  empty.attr("axis", 0).input_value(make_sequence(DType::kFloat, {}), kFloats).outputs(1);
  empty.fails("holds no tensor");
}

TEST(Optional, TellsWhetherItHoldsAValue) {
  OpTester made("Optional", 15);
  made.input<float>({1}, {4}).expect<float>(0, {1}, {4}).run();
  OpTester has("OptionalHasElement", 15);
  has.input<float>({1}, {4}).expect<bool>(0, {}, {true}).run();
  OpTester has_not("OptionalHasElement", 18);
  has_not.expect<bool>(0, {}, {false}).run();
  OpTester get("OptionalGetElement", 18);
  get.input_value(two(), kFloats).expect_value(0, two()).run();
  OpTester nothing("OptionalGetElement", 15);
  nothing.input_value(Value(), TypeInfo::optional_of(kFloats)).outputs(1).fails("is empty");
}

TEST(SequenceMap, CallsItsBodyForEachElement) {
  const auto add = [](Span<const Value> inputs, std::vector<Value>* outputs) {
    const Tensor& x = inputs[0].tensor();
    Tensor sum = copy_tensor(x).take();
    for (int64_t i = 0; i < x.count(); ++i) {
      sum.data_mut<float>()[i] += *inputs[1].tensor().data<float>();
    }
    outputs->assign(1, Value(std::move(sum)));
    return Status::ok();
  };
  const auto type = [](const std::vector<TypeInfo>& inputs) -> Result<std::vector<TypeInfo>> {
    return std::vector<TypeInfo>{inputs[0]};
  };
  OpTester t("SequenceMap", 17);
  t.input_value(two(), kFloats).input<float>({}, {10}).subgraph("body", type, add);
  t.expect_value(0, make_sequence(DType::kFloat, {floats({1}, {11}), floats({2}, {12, 13})}));
  t.run();
}

}  // namespace
}  // namespace folio
