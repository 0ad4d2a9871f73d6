#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const TypeInfo kInt64Scalar = TypeInfo::tensor(DType::kInt64, Dims{});
const TypeInfo kBoolScalar = TypeInfo::tensor(DType::kBool, Dims{});

int64_t number(const Value& value) { return *value.tensor().data<int64_t>(); }
Value scalar(int64_t value) { return Value(make_tensor<int64_t>({}, {value})); }
Value flag(bool value) { return Value(make_tensor<bool>({}, {value})); }

OpTester::SubgraphRun gives(const Value& value) {
  return [value](Span<const Value>, std::vector<Value>* outputs) {
    outputs->assign(1, value);
    return Status::ok();
  };
}
OpTester::SubgraphInfer of_types(std::vector<TypeInfo> types) {
  return [types](const std::vector<TypeInfo>&) -> Result<std::vector<TypeInfo>> { return types; };
}

TEST(If, RunsTheBranchThatTheConditionNames) {
  for (const bool condition : {true, false}) {
    OpTester t("If", 11);
    t.input<bool>({1}, {condition});
    // The order of the attributes does not matter.
    t.subgraph("else_branch", of_types({TypeInfo::tensor(DType::kInt64, Dims{Dim::of(1)})}),
               gives(Value(make_tensor<int64_t>({1}, {2}))));
    t.subgraph("then_branch", of_types({TypeInfo::tensor(DType::kInt64, Dims{Dim::of(3)})}),
               gives(Value(make_tensor<int64_t>({3}, {1, 1, 1}))));
    condition ? t.expect<int64_t>(0, {3}, {1, 1, 1}) : t.expect<int64_t>(0, {1}, {2});
    t.expect_inferred(0, "tensor(int64)[?]");
    t.run();
  }
}

TEST(If, RefusesAConditionThatIsNotOneBool) {
  OpTester t("If", 11);
  t.input<float>({}, {1});
  t.subgraph("then_branch", of_types({kInt64Scalar}), gives(scalar(1)));
  t.subgraph("else_branch", of_types({kInt64Scalar}), gives(scalar(2)));
  t.fails("bool");
}

// Carries a sum of the iteration numbers and collects it; stops when it passes `limit`.
void add_summing_body(OpTester* t, int64_t limit) {
  t->subgraph("body", of_types({kBoolScalar, kInt64Scalar, kInt64Scalar}),
              [limit](Span<const Value> inputs, std::vector<Value>* outputs) {
                const int64_t sum = number(inputs[2]) + number(inputs[0]);
                *outputs = {flag(sum < limit), scalar(sum), scalar(sum)};
                return Status::ok();
              });
}

TEST(Loop, CarriesAndCollectsUntilTheTripCount) {
  OpTester t("Loop", 13);
  t.input<int64_t>({}, {4}).input<bool>({}, {true}).input<int64_t>({}, {10});
  add_summing_body(&t, 1000);
  t.expect<int64_t>(0, {}, {16}).expect<int64_t>(1, {4}, {10, 11, 13, 16});
  t.run();
}

TEST(Loop, CarriesASequenceWhoseElementsMayChange) {
  const auto longer = [](Span<const Value> inputs, std::vector<Value>* outputs) {
    std::vector<Value> elements = inputs[2].sequence().elements;
    const int64_t at = number(inputs[0]);
    elements.push_back(
        make_tensor<int64_t>({at}, std::vector<int64_t>(static_cast<size_t>(at), 7)));
    *outputs = {flag(true), make_sequence(DType::kInt64, std::move(elements))};
    return Status::ok();
  };
  const TypeInfo declared = TypeInfo::sequence(TypeInfo::tensor(DType::kInt64, Dims{}));
  const auto as_given = [](const std::vector<TypeInfo>& inputs) -> Result<std::vector<TypeInfo>> {
    return std::vector<TypeInfo>{kBoolScalar, inputs[2]};
  };
  OpTester t("Loop", 13);
  t.input<int64_t>({}, {2}).input_absent();
  t.input_value(make_sequence(DType::kInt64, {scalar(1)}), declared);
  t.subgraph("body", as_given, longer);
  t.expect_value(0, make_sequence(DType::kInt64, {scalar(1), make_tensor<int64_t>({0}, {}),
                                                  make_tensor<int64_t>({1}, {7})}));
  t.expect_inferred(0, "seq(tensor(int64))").run();
}

TEST(Loop, StopsAtItsConditionWithoutATripCount) {
  OpTester t("Loop", 11);
  t.input_absent().input_absent().input<int64_t>({}, {0});
  add_summing_body(&t, 3);
  t.expect<int64_t>(0, {}, {3}).expect<int64_t>(1, {3}, {0, 1, 3});
  t.run();
}

TEST(Loop, CollectsMoreThanItMadeRoomForAndLessThanItsTripCount) {
  const auto squares = [](Span<const Value> inputs, std::vector<Value>* outputs) {
    const int64_t i = number(inputs[0]);
    const auto text = std::string(static_cast<size_t>(i), 'x');
    *outputs = {flag(i < 36), Value(make_tensor<int64_t>({2}, {i, i * i})),
                Value(make_tensor<std::string>({1}, {text}))};
    return Status::ok();
  };
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < 37; ++i) {
    numbers.insert(numbers.end(), {i, i * i});
    texts.emplace_back(static_cast<size_t>(i), 'x');
  }
  for (const int64_t most : {int64_t{37}, int64_t{1000}, INT64_MAX}) {
    OpTester t("Loop", 13);
    t.input<int64_t>({}, {most}).input_absent();
    t.subgraph("body",
               of_types({kBoolScalar, TypeInfo::tensor(DType::kInt64, Dims{Dim::of(2)}),
                         TypeInfo::tensor(DType::kString, Dims{Dim::of(1)})}),
               squares);
    t.expect<int64_t>(0, {37, 2}, numbers).expect<std::string>(1, {37, 1}, texts);
    t.run();
  }
}

TEST(Loop, WithoutAnIterationGivesStateAndEmptyStacks) {
  OpTester none("Loop", 13);
  none.input<int64_t>({}, {0}).input<bool>({}, {true}).input<int64_t>({}, {5});
  add_summing_body(&none, 1000);
  none.expect<int64_t>(0, {}, {5}).expect<int64_t>(1, {0}, {});
  none.run();
  OpTester refused("Loop", 13);
  refused.input<int64_t>({}, {3}).input<bool>({}, {false}).input<int64_t>({}, {5});
  add_summing_body(&refused, 1000);
  refused.expect<int64_t>(0, {}, {5}).expect<int64_t>(1, {0}, {});
  refused.run();
}

TEST(Loop, RefusesABodyThatChangesTheTypeOfItsState) {
  OpTester t("Loop", 13);
  t.outputs(1).input<int64_t>({}, {0}).input_absent().input<float>({}, {1});
  t.subgraph("body", of_types({kBoolScalar, kInt64Scalar}),
             [](Span<const Value>, std::vector<Value>* outputs) {
               *outputs = {flag(true), scalar(1)};
               return Status::ok();
             });
  t.fails("input 2 is tensor(float), the body makes it tensor(int64)");
}

TEST(Loop, RefusesStacksOfDifferentShapes) {
  OpTester t("Loop", 13);
  t.outputs(1).input<int64_t>({}, {2}).input_absent();
  t.subgraph("body", of_types({kBoolScalar, TypeInfo::tensor(DType::kInt64, Dims(1))}),
             [](Span<const Value> inputs, std::vector<Value>* outputs) {
               const int64_t n = number(inputs[0]);
               const std::vector<int64_t> ones(static_cast<size_t>(n), 1);
               *outputs = {flag(true), Value(make_tensor<int64_t>({n}, ones))};
               return Status::ok();
             });
  t.fails("[");
}

// state + element, which is also collected.
void add_adding_body(OpTester* t) {
  const TypeInfo pair = TypeInfo::tensor(DType::kFloat, Dims{Dim::of(2)});
  t->subgraph("body", of_types({pair, pair}),
              [](Span<const Value> inputs, std::vector<Value>* outputs) {
                const Tensor& a = inputs[0].tensor();
                const Tensor& b = inputs[1].tensor();
                std::vector<float> sum;
                for (int i = 0; i < 2; ++i) sum.push_back(a.data<float>()[i] + b.data<float>()[i]);
                const Value value(make_tensor<float>({2}, sum));
                *outputs = {value, value};
                return Status::ok();
              });
}

TEST(Scan, SumsAlongTheFirstAxis) {
  OpTester t("Scan", 9);
  t.attr("num_scan_inputs", 1);
  t.input<float>({2}, {0, 0}).input<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  add_adding_body(&t);
  t.expect<float>(0, {2}, {9, 12}).expect<float>(1, {3, 2}, {1, 2, 4, 6, 9, 12});
  t.run();
}

TEST(Scan, TakesAxesAndDirections) {
  OpTester t("Scan", 11);
  t.attr("num_scan_inputs", 1).attr_ints("scan_input_axes", {-1});
  t.attr_ints("scan_output_axes", {1}).attr_ints("scan_input_directions", {1});
  t.attr_ints("scan_output_directions", {1});
  t.input<float>({2}, {0, 0}).input<float>({2, 3}, {1, 3, 5, 2, 4, 6});
  add_adding_body(&t);
  t.expect<float>(0, {2}, {9, 12}).expect<float>(1, {2, 3}, {9, 8, 5, 12, 10, 6});
  t.run();
}

TEST(Scan, Opset8RunsBatchesOfTheirOwnLengths) {
  OpTester t("Scan", 8);
  t.attr("num_scan_inputs", 1).input<int64_t>({2}, {2, 1}).input<float>({2, 2}, {0, 0, 10, 20});
  t.input<float>({2, 2, 2}, {1, 2, 3, 4, 1, 1, 9, 9});
  add_adding_body(&t);
  t.expect<float>(0, {2, 2}, {4, 6, 11, 21});
  t.expect<float>(1, {2, 2, 2}, {1, 2, 4, 6, 11, 21, 0, 0});
  t.run();
}

TEST(Scan, RefusesABodyThatChangesTheKindOfItsState) {
  for (const int version : {8, 9}) {
    OpTester t("Scan", version);
    t.attr("num_scan_inputs", 1);
    if (version == 8) t.input_absent();
    t.input<float>({1}, {0}).input<float>({1, 0}, {});
    t.subgraph("body", of_types({TypeInfo::sequence(kInt64Scalar)}),
               [](Span<const Value>, std::vector<Value>*) { return Status::ok(); });
    t.outputs(1).fails("state 0 is tensor(float), the body makes seq(tensor(int64)");
  }
}

TEST(Scan, RefusesHostileAttributes) {
  OpTester count("Scan", 9);
  count.attr("num_scan_inputs", 3).input<float>({2}, {0, 0}).input<float>({1, 2}, {1, 2});
  add_adding_body(&count);
  count.outputs(2).fails("num_scan_inputs");
  OpTester axis("Scan", 9);
  axis.attr("num_scan_inputs", 1).attr_ints("scan_input_axes", {2});
  axis.input<float>({2}, {0, 0}).input<float>({1, 2}, {1, 2});
  add_adding_body(&axis);
  axis.outputs(2).fails("axis 2 is outside");
}

}  // namespace
}  // namespace folio
