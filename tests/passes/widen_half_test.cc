// widen_half: where float16 values are rounded and where they stay floats.
#include <gtest/gtest.h>

#include "core/ops/op_half.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

constexpr auto kF16 = model_writer::ElementType::kFloat16;

model_writer::Type half_type(const std::vector<model_writer::Dim>& dims) {
  return model_writer::Type::tensor(kF16, dims);
}

// y = (x + small) - x through `middle` nodes that add to the graph; 1 + 2^-11 has no float16.
ModelWriter sum_and_difference(const std::function<std::string(GraphWriter&)>& middle) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", half_type({2, 1}));
  graph.input("small", half_type({2, 1}));
  graph.node("Add", {"x", "small"}, {"sum"});
  const std::string passed = middle(graph);
  graph.node("Sub", {passed, "x"}, {"y"});
  graph.output("y", half_type({2, 1}));
  return writer;
}

float difference_of(const ModelWriter& writer, Optimize level = Optimize::kAll) {
  SessionOptions options;
  options.optimize = level;
  const double small = 1.0 / 2048;
  const auto outputs =
      run_once(writer,
               {{"x", make_float_tensor(DType::kFloat16, {2, 1}, {1, 1})},
                {"small", make_float_tensor(DType::kFloat16, {2, 1}, {small, small})}},
               options);
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  if (!outputs.is_ok()) return -1;
  const Tensor& y = outputs.value()[0].tensor();
  EXPECT_EQ(y.dtype(), DType::kFloat16);
  return y.data<Float16>()[0];
}

TEST(WidenHalf, ValuesBetweenWidenedOperatorsAreNotRounded) {
  const ModelWriter writer = sum_and_difference([](GraphWriter&) { return "sum"; });
  EXPECT_EQ(difference_of(writer), 1.0f / 2048);
  EXPECT_EQ(difference_of(writer, Optimize::kOff), 0.0f);
}

TEST(WidenHalf, OneOperatorThatOnlyMovesElementsMovesFloats) {
  const ModelWriter writer = sum_and_difference([](GraphWriter& graph) {
    graph.node("Transpose", {"sum"}, {"moved"}).attr_ints("perm", {0, 1});
    return "moved";
  });
  EXPECT_EQ(difference_of(writer), 1.0f / 2048);
}

TEST(WidenHalf, ChainsOfOperatorsThatMoveElementsKeepHalf) {
  const ModelWriter writer = sum_and_difference([](GraphWriter& graph) {
    graph.node("Transpose", {"sum"}, {"t"}).attr_ints("perm", {1, 0});
    graph.node("Transpose", {"t"}, {"moved"}).attr_ints("perm", {1, 0});
    return "moved";
  });
  EXPECT_EQ(difference_of(writer), 0.0f);
}

TEST(WidenHalf, CastsToFloatAndBackVanish) {
  ModelWriter writer = sum_and_difference([](GraphWriter& graph) {
    graph.node("Cast", {"sum"}, {"wide"}).attr_int("to", 1);
    graph.node("Cast", {"wide"}, {"narrow"}).attr_int("to", 10);
    return "narrow";
  });
  EXPECT_EQ(difference_of(writer), 1.0f / 2048);
}

TEST(WidenHalf, SubgraphsReadWhatTheyCaptureAsHalf) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", half_type({1}));
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.node("Add", {"x", "x"}, {"two"});
  GraphWriter yes("yes");
  yes.node("Mul", {"two", "x"}, {"t"});
  yes.output("t", half_type({1}));
  GraphWriter no("no");
  no.node("Identity", {"two"}, {"e"});
  no.output("e", half_type({1}));
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(yes))
      .attr_graph("else_branch", std::move(no));
  graph.output("y", half_type({1}));
  for (const bool taken : {true, false}) {
    const auto outputs = run_once(writer, {{"x", make_float_tensor(DType::kFloat16, {1}, {3})},
                                           {"c", make_tensor<bool>({}, {taken})}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    EXPECT_EQ(float{outputs.value()[0].tensor().data<Float16>()[0]}, taken ? 18.0f : 6.0f);
  }
}

TEST(WidenHalf, BitCastSeesTheBitsOfHalves) {
  ModelWriter writer = plain_model(8, 26);
  GraphWriter& graph = writer.graph();
  graph.input("x", half_type({1}));
  graph.node("Abs", {"x"}, {"a"});
  graph.node("BitCast", {"a"}, {"y"}).attr_int("to", 5);
  graph.output("y", model_writer::Type::tensor(model_writer::ElementType::kInt16, {1}));
  const auto outputs = run_once(writer, {{"x", make_float_tensor(DType::kFloat16, {1}, {-1})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(outputs.value()[0].tensor().data<int16_t>()[0], 0x3C00);
}

}  // namespace
}  // namespace folio
