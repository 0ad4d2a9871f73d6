// fold_scales: what goes into weights and bias, what must stay, and that scaled weights are not
// held beside their packed form.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

// x [1, 2, 3, 3] -> Conv of 2 to 3 channels -> c, and what a test puts behind it.
ModelWriter conv_and(const Rest& rest, int64_t opset = 17) {
  ModelWriter writer = plain_model(8, opset);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 2, 3, 3}));
  graph.initializer(f32_tensor("w", {3, 2, 2, 2}, wave(24)));
  graph.initializer(f32_tensor("b", {3}, {1, -2, 0.5F}));
  graph.initializer(f32_tensor("scale", {3}, {2, 0.5F, -1}));
  graph.initializer(f32_tensor("shift", {3}, {1, 2, 3}));
  graph.initializer(f32_tensor("mean", {3}, {0.5F, -1, 2}));
  graph.initializer(f32_tensor("var", {3}, {1, 4, 0.25F}));
  graph.initializer(f32_tensor("channel", {3, 1, 1}, {2, 3, 4}));
  graph.initializer(f32_tensor("row", {2}, {2, 3}));
  graph.initializer(f32_tensor("deep", {1, 1, 1, 1, 1}, {2}));
  graph.node("Conv", {"x", "w", "b"}, {"c"}).named("conv");
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  return writer;
}

std::string types_after(const ModelWriter& writer) {
  const auto model = fused(writer, {{"x", make_tensor<float>({1, 2, 3, 3}, wave(18, 1))}});
  return types_of(model->graph);
}
std::string types_after(const Rest& rest) { return types_after(conv_and(rest)); }

TEST(FoldScales, BatchNormalizationGoesIntoConv) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("BatchNormalization", {"c", "scale", "shift", "mean", "var"}, {"y"})
                  .attr_float("epsilon", 0.01F);
            }),
            "Conv");
}

// Conv's B has a number for each channel; one number, or an image, is an error that a run gives.
TEST(FoldScales, BiasesThatConvRefusesStay) {
  const std::pair<std::vector<int64_t>, int64_t> cases[] = {{{1}, 1}, {{3, 1, 1}, 3}, {{1, 3}, 3}};
  for (const auto& [dims, count] : cases) {
    ModelWriter writer = plain_model(8, 17);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 2, 3, 3}));
    graph.initializer(f32_tensor("w", {3, 2, 2, 2}, wave(24)));
    graph.initializer(f32_tensor("b", dims, wave(count)));
    graph.initializer(f32_tensor("channel", {3, 1, 1}, {2, 3, 4}));
    graph.node("Conv", {"x", "w", "b"}, {"c"});
    graph.node("Mul", {"c", "channel"}, {"y"});
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    SCOPED_TRACE(dims.size());
    expect_refused(writer, {{"x", make_tensor<float>({1, 2, 3, 3}, wave(18))}});
  }
}

TEST(FoldScales, ConstantsPerChannelGoIntoConv) {
  for (const char* type : {"Mul", "Add", "Div", "Sub"}) {
    SCOPED_TRACE(type);
    EXPECT_EQ(types_after([&](GraphWriter& graph) {
                graph.node(type, {"c", "channel"}, {"y"});
              }),
              "Conv");
  }
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"channel", "c"}, {"m"});
              graph.node("Add", {"channel", "m"}, {"a"});
              graph.node("Relu", {"a"}, {"y"});
            }),
            "com.microsoft.FusedConv");
}

TEST(FoldScales, WhatIsNoConstantPerChannelStays) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"c", "row"}, {"y"});
            }),
            "Conv Mul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"c", "deep"}, {"y"});
            }),
            "Conv Mul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Div", {"channel", "c"}, {"y"});
            }),
            "Conv Div");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"c", "c"}, {"y"});
            }),
            "Conv Mul");
}

TEST(FoldScales, AResultThatOthersReadStays) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"c", "channel"}, {"y"});
              graph.output("c", f32_type({1, 3, 2, 2}));
            }),
            "Conv Mul");
}

TEST(FoldScales, ConvTransposeIsScaledAlongItsSecondDim) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 2, 3, 3}));
  graph.initializer(f32_tensor("w", {2, 3, 2, 2}, wave(24)));
  graph.initializer(f32_tensor("channel", {1, 3, 1, 1}, {2, 3, 4}));
  graph.node("ConvTranspose", {"x", "w"}, {"c"});
  graph.node("Mul", {"c", "channel"}, {"y"});
  graph.output("y", f32_type({1, 3, 4, 4}));
  EXPECT_EQ(types_after(writer), "ConvTranspose");
}

TEST(FoldScales, GemmIsScaledPerColumn) {
  for (const int64_t trans : {0, 1}) {
    ModelWriter writer = plain_model();
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({4, 2}));
    graph.initializer(
        f32_tensor("w", trans ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{2, 3}, wave(6)));
    graph.initializer(f32_tensor("b", {1, 3}, {1, 2, 3}));
    graph.initializer(f32_tensor("by", {3}, {2, 3, 4}));
    graph.node("Gemm", {"x", "w", "b"}, {"g"})
        .attr_int("transB", trans)
        .attr_float("alpha", 2)
        .attr_float("beta", 0.5F);
    graph.node("Mul", {"g", "by"}, {"y"});
    graph.output("y", f32_type({4, 3}));
    const auto model = fused(writer, {{"x", make_tensor<float>({4, 2}, wave(8, 1))}});
    EXPECT_EQ(types_of(model->graph), "Gemm");
  }
}

TEST(FoldScales, ABiasWithRowsStays) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 2}));
  graph.initializer(f32_tensor("w", {2, 3}, wave(6)));
  graph.initializer(f32_tensor("b", {3, 1}, {1, 2, 3}));
  graph.initializer(f32_tensor("by", {3}, {2, 3, 4}));
  graph.node("Gemm", {"x", "w", "b"}, {"g"});
  graph.node("Mul", {"g", "by"}, {"y"});
  graph.output("y", f32_type({3, 3}));
  const auto model = fused(writer, {{"x", make_tensor<float>({3, 2}, wave(6, 1))}});
  EXPECT_EQ(types_of(model->graph), "Gemm Mul");
}

TEST(FoldScales, ScaledWeightsAreARecipe) {
  const auto model = optimized(conv_and([](GraphWriter& graph) {
    graph.node("Mul", {"c", "channel"}, {"y"});
  }));
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& graph = model.value()->graph;
  ASSERT_EQ(graph.nodes.size(), 1U);
  const Initializer& weights = *graph.value(graph.nodes[0].inputs[1]).initializer;
  EXPECT_TRUE(weights.recipe);
  EXPECT_FALSE(weights.tensor);
}

}  // namespace
}  // namespace folio
