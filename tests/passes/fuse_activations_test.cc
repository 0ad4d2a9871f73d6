// fuse_activations: what becomes FusedConv and FusedGemm, what must stay, and that results do not
// change by a bit.
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

// x [1, 1, 2, 2] -> Conv 1x1 with weight 2 -> c, and what a test puts behind it; z like x.
ModelWriter conv_and(const Rest& rest) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 1, 2, 2}));
  graph.input("z", f32_type({1, 1, 2, 2}));
  graph.initializer(f32_tensor("w", {1, 1, 1, 1}, {2}));
  graph.initializer(f32_tensor("low", {}, {-1}));
  graph.initializer(f32_tensor("high", {}, {4}));
  graph.node("Conv", {"x", "w"}, {"c"}).named("conv");
  rest(graph);
  graph.output("y", f32_type({1, 1, 2, 2}));
  return writer;
}

std::vector<float> result(const ModelWriter& writer, bool optimize) {
  SessionOptions options;
  options.optimize = optimize ? Optimize::kAll : Optimize::kOff;
  const auto outputs = run_once(writer,
                                {{"x", make_tensor<float>({1, 1, 2, 2}, {-3, -0.25F, 1, 3})},
                                 {"z", make_tensor<float>({1, 1, 2, 2}, {1, 2, -3, -4})}},
                                options);
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  return outputs.is_ok() ? floats_of(outputs.value().back()) : std::vector<float>();
}

struct Counts {
  int conv, fused, rest;
};

// Counts after the passes; the model must compute the same with and without them.
Counts counts_of(const Rest& rest, const char* other) {
  const ModelWriter writer = conv_and(rest);
  const auto model = optimized(writer);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return {};
  EXPECT_EQ(result(writer, true), result(writer, false));
  const Graph& graph = model.value()->graph;
  return {count_nodes(graph, "Conv"), count_nodes(graph, "FusedConv"), count_nodes(graph, other)};
}

void expect_fused(const Rest& rest, const char* gone) {
  const Counts counts = counts_of(rest, gone);
  EXPECT_EQ(counts.conv, 0);
  EXPECT_EQ(counts.fused, 1);
  EXPECT_EQ(counts.rest, 0);
}

void expect_kept(const Rest& rest, const char* kept) {
  const Counts counts = counts_of(rest, kept);
  EXPECT_EQ(counts.conv, 1);
  EXPECT_EQ(counts.fused, 0);
  EXPECT_EQ(counts.rest, 1);
}

TEST(FuseActivations, AFunctionThatAloneReadsTheResultGoesIn) {
  for (const char* function : {"Relu", "Sigmoid", "Tanh", "HardSigmoid", "LeakyRelu"}) {
    SCOPED_TRACE(function);
    expect_fused([&](GraphWriter& graph) { graph.node(function, {"c"}, {"y"}); }, function);
  }
  expect_fused([](GraphWriter& graph) { graph.node("Clip", {"c", "low", "high"}, {"y"}); }, "Clip");
  expect_fused([](GraphWriter& graph) { graph.node("Clip", {"c", "", "high"}, {"y"}); }, "Clip");
}

TEST(FuseActivations, ASumGoesInWithItsFunction) {
  expect_fused(
      [](GraphWriter& graph) {
        graph.node("Add", {"z", "c"}, {"s"});
        graph.node("Relu", {"s"}, {"y"});
      },
      "Add");
  expect_fused([](GraphWriter& graph) { graph.node("Add", {"c", "z"}, {"y"}); }, "Add");
}

TEST(FuseActivations, OfTwoResultsThatAreAddedOneGoesInto) {
  const Counts counts = counts_of(
      [](GraphWriter& graph) {
        graph.node("Conv", {"z", "w"}, {"d"});
        graph.node("Add", {"c", "d"}, {"s"});
        graph.node("Relu", {"s"}, {"y"});
      },
      "Add");
  EXPECT_EQ(counts.conv, 1);
  EXPECT_EQ(counts.fused, 1);
  EXPECT_EQ(counts.rest, 0);
}

TEST(FuseActivations, AResultThatOthersReadStays) {
  expect_kept(
      [](GraphWriter& graph) {
        graph.node("Relu", {"c"}, {"r"});
        graph.node("Mul", {"r", "c"}, {"y"});
      },
      "Relu");
  expect_kept([](GraphWriter& graph) { graph.node("Add", {"c", "c"}, {"y"}); }, "Add");
  expect_kept(
      [](GraphWriter& graph) {
        graph.node("Relu", {"c"}, {"y"});
        graph.output("c", f32_type({1, 1, 2, 2}));
      },
      "Relu");
}

TEST(FuseActivations, WhatIsOnlyKnownAtRunStays) {
  // A bound that is computed, and a sum that is broadcast.
  expect_kept(
      [](GraphWriter& graph) {
        graph.node("ReduceMin", {"z"}, {"bound"}).attr_int("keepdims", 0);
        graph.node("Clip", {"c", "bound"}, {"y"});
      },
      "Clip");
  expect_kept(
      [](GraphWriter& graph) {
        graph.node("ReduceMin", {"z"}, {"bound"}).attr_int("keepdims", 0);
        graph.node("Add", {"c", "bound"}, {"y"});
      },
      "Add");
}

TEST(FuseActivations, GemmTakesItsFunction) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 2}));
  graph.initializer(f32_tensor("w", {2, 2}, {1, -1, 1, -1}));
  graph.node("Gemm", {"x", "w"}, {"g"});
  graph.node("LeakyRelu", {"g"}, {"y"}).attr_float("alpha", 0.5F);
  graph.output("y", f32_type({1, 2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "FusedGemm"), 1);
  const auto outputs = run_once(writer, {{"x", make_tensor<float>({1, 2}, {1, 3})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{4, -2}));
}

}  // namespace
}  // namespace folio
