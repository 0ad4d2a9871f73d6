#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

OpTester flex() { return OpTester("FlexAttention", 1, "ai.onnx.preview"); }

// Scores ln 3 and 0: weights 3/4 and 1/4.
OpTester& three_to_one(OpTester& t, DType dtype = DType::kFloat) {
  t.attr("scale", 1.0F);
  t.input_as(dtype, {1, 1, 1, 1}, {1.0986122886681098});
  t.input_as(dtype, {1, 1, 2, 1}, {1, 0});
  return t.input_as(dtype, {1, 1, 2, 1}, {1, 5});
}

Result<std::vector<TypeInfo>> same_type(const std::vector<TypeInfo>& inputs) { return inputs; }

// A modifier that changes element i of its [1, 1, 1, 2] by `change`, a float or double.
OpTester::SubgraphRun changes(std::function<double(double, int64_t)> change) {
  return [change](Span<const Value> inputs, std::vector<Value>* outputs) {
    Tensor out = copy_tensor(inputs[0].tensor()).take();
    for (int64_t i = 0; i < out.count(); ++i) {
      if (out.dtype() == DType::kDouble) {
        out.data_mut<double>()[i] = change(out.data<double>()[i], i);
      } else {
        out.data_mut<float>()[i] = static_cast<float>(change(double{out.data<float>()[i]}, i));
      }
    }
    outputs->assign(1, Value(std::move(out)));
    return Status::ok();
  };
}
OpTester::SubgraphRun gives(const Value& value) {
  return [value](Span<const Value>, std::vector<Value>* outputs) {
    outputs->assign(1, value);
    return Status::ok();
  };
}

TEST(FlexAttention, WeighsValuesBySoftmaxOfScaledProducts) {
  for (const DType dtype : {DType::kFloat, DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
    OpTester t = flex();
    const bool half = dtype == DType::kFloat16 || dtype == DType::kBfloat16;
    three_to_one(t, dtype).expect_as(0, dtype, {1, 1, 1, 1}, {2}, half ? 4e-3 : 1e-6);
    t.run();
  }
}

TEST(FlexAttention, TheScaleIsOneByTheRootOfTheHeadSize) {
  // 4 elements: the products, 2 ln 3 and 0, are halved.
  OpTester t = flex();
  t.input<float>({1, 1, 1, 4}, {1.0986123F, 1.0986123F, 0, 0});
  t.input<float>({1, 1, 2, 4}, {1, 1, 1, 1, 0, 0, 0, 0});
  t.input<float>({1, 1, 2, 1}, {1, 5});
  t.expect<float>(0, {1, 1, 1, 1}, {2}, 1e-6).run();
}

TEST(FlexAttention, ContiguousQueryHeadsShareAKeyHead) {
  // Both paths: without a modifier, and with one that changes nothing.
  for (const bool modified : {false, true}) {
    OpTester t = flex();
    t.input<float>({1, 4, 1, 1}, {0, 0, 0, 0});
    t.input<float>({1, 2, 2, 1}, {0, 0, 0, 0});
    t.input<float>({1, 2, 2, 2}, {1, 2, 3, 4, 10, 20, 30, 40});
    if (modified) t.subgraph("score_mod", same_type, changes([](double x, int64_t) { return x; }));
    t.expect<float>(0, {1, 4, 1, 2}, {2, 3, 2, 3, 20, 30, 20, 30}, 1e-6);
    t.expect_inferred(0, "tensor(float)[1,4,1,2]").run();
  }
}

TEST(FlexAttention, ScoreModChangesScoresBeforeSoftmax) {
  for (const DType dtype : {DType::kFloat, DType::kDouble}) {
    OpTester t = flex();
    three_to_one(t, dtype);
    // ln 3 and ln 3: equal weights.
    t.subgraph("score_mod", same_type,
               changes([](double x, int64_t i) { return i == 0 ? x : 1.0986122886681098; }));
    t.expect_as(0, dtype, {1, 1, 1, 1}, {3}, 1e-6).run();
  }
}

TEST(FlexAttention, ProbModChangesWeightsAfterSoftmax) {
  OpTester t = flex();
  three_to_one(t);
  t.subgraph("prob_mod", same_type, changes([](double x, int64_t) { return 2 * x; }));
  t.expect<float>(0, {1, 1, 1, 1}, {4}, 1e-6).run();
}

TEST(FlexAttention, ARowOfMaskedScoresIsNan) {
  OpTester t = flex();
  three_to_one(t);
  t.subgraph("score_mod", same_type, changes([](double, int64_t) { return double{kMinusInf}; }));
  t.expect<float>(0, {1, 1, 1, 1}, {kNan}).run();
}

TEST(FlexAttention, ModifiersSeeTheTypeOfSoftmaxPrecision) {
  for (const DType precision : {DType::kDouble, DType::kFloat16}) {
    DType seen = DType::kUndefined;
    OpTester t = flex();
    three_to_one(t, DType::kFloat16).attr("softmax_precision", static_cast<int64_t>(precision));
    t.subgraph("prob_mod", same_type,
               [&seen](Span<const Value> inputs, std::vector<Value>* outputs) {
                 seen = inputs[0].tensor().dtype();
                 outputs->assign(inputs.begin(), inputs.end());
                 return Status::ok();
               });
    t.expect_as(0, DType::kFloat16, {1, 1, 1, 1}, {2}, 4e-3).run();
    EXPECT_EQ(seen, precision);
  }
}

TEST(FlexAttention, WithoutKeysGivesZeros) {
  OpTester t = flex();
  t.input<float>({1, 1, 2, 1}, {1, 1})
      .input<float>({1, 1, 0, 1}, {})
      .input<float>({1, 1, 0, 3}, {});
  t.expect<float>(0, {1, 1, 2, 3}, {0, 0, 0, 0, 0, 0}).run();
}

TEST(FlexAttention, AModifierThatChangesShapeOrTypeIsAnError) {
  OpTester shape = flex();
  three_to_one(shape).outputs(1);
  shape.subgraph("score_mod", same_type, gives(Value(make_tensor<float>({1, 1, 2, 1}, {0, 0}))));
  shape.fails("score_mod gives float [1,1,2,1], expected float [1,1,1,2]");
  OpTester type = flex();
  three_to_one(type).outputs(1);
  const auto doubles = [](const std::vector<TypeInfo>&) -> Result<std::vector<TypeInfo>> {
    return std::vector<TypeInfo>{TypeInfo::tensor(DType::kDouble, Dims(4))};
  };
  type.subgraph("prob_mod", doubles, gives(Value(make_tensor<double>({1, 1, 1, 2}, {0, 0}))));
  type.fails("prob_mod gives tensor(double)");
}

TEST(FlexAttention, ShapesThatDoNotFitAreErrors) {
  const std::vector<std::pair<Shape, Shape>> keys_and_values = {
      {{1, 2, 2, 1}, {1, 2, 2, 1}},  // 2 heads do not divide 3
      {{1, 3, 2, 2}, {1, 3, 2, 1}},  // another head size
      {{1, 3, 2, 1}, {1, 3, 1, 1}},  // fewer values than keys
      {{1, 3, 2, 1}, {1, 1, 2, 1}},  // other heads
      {{2, 3, 2, 1}, {2, 3, 2, 1}},  // another batch
      {{1, 0, 2, 1}, {1, 0, 2, 1}},
  };
  for (const auto& [k, v] : keys_and_values) {
    OpTester t = flex();
    t.input<float>({1, 3, 1, 1}, {0, 0, 0});
    t.input<float>(k, std::vector<float>(static_cast<size_t>(k.count())));
    t.input<float>(v, std::vector<float>(static_cast<size_t>(v.count())));
    t.outputs(1).fails("do not fit");
  }
  OpTester flat = flex();
  flat.input<float>({1, 1}, {0}).input<float>({1, 1}, {0}).input<float>({1, 1}, {0});
  flat.outputs(1).fails("expected 4");
}

TEST(FlexAttention, AttributesOfAnotherKindAreErrors) {
  OpTester precision = flex();
  three_to_one(precision).attr("softmax_precision", 7).outputs(1);
  precision.fails("'softmax_precision' is 7");
  OpTester modifier = flex();
  three_to_one(modifier).attr("score_mod", 1).outputs(1);
  modifier.fails("'score_mod' is no graph");
}

}  // namespace
}  // namespace folio
