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

// r, of a shape that a run gives -> a function -> Conv [filters, 2, 3] -> Add of `z` or r.
struct ResidualCase {
  std::vector<int64_t> pads = {1, 1};
  int64_t stride = 1, dilation = 1, filters = 2;
  const char* function = "LeakyRelu";
  const char* z = nullptr;  // an operator on r; null: r
};

ModelWriter residual_model(const ResidualCase& c) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({8}));
  graph.input("shape", model_writer::Type::tensor(kI64, {3}));
  std::vector<float> w;
  for (int64_t i = 0; i < c.filters * 6; ++i) w.push_back(static_cast<float>(i % 5) - 1.5F);
  graph.initializer(f32_tensor("w", {c.filters, 2, 3}, w));
  graph.node("Reshape", {"x", "shape"}, {"r"});
  graph.node(c.function, {"r"}, {"f"});
  graph.node("Conv", {"f", "w"}, {"c"})
      .attr_ints("pads", c.pads)
      .attr_ints("strides", {c.stride})
      .attr_ints("dilations", {c.dilation});
  if (c.z) graph.node(c.z, {"r"}, {"z"});
  graph.node("Add", {"c", c.z ? "z" : "r"}, {"y"});
  graph.output("y",
               f32_type({model_writer::Dim("a"), model_writer::Dim("b"), model_writer::Dim("c")}));
  return writer;
}

// -1: a run gives something with or without passes only.
int sums_taken_in(const ResidualCase& c) {
  const ModelWriter writer = residual_model(c);
  const auto model = optimized(writer);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  std::vector<std::vector<float>> results;
  for (const Optimize optimize : {Optimize::kAll, Optimize::kOff}) {
    SessionOptions options;
    options.optimize = optimize;
    const auto outputs =
        run_once(writer,
                 {{"x", make_tensor<float>({8}, {-3, -0.25F, 1, 3, 2, -1, 0.5F, -4})},
                  {"shape", make_tensor<int64_t>({3}, {1, 2, 4})}},
                 options);
    results.push_back(outputs.is_ok() ? floats_of(outputs.value()[0]) : std::vector<float>());
  }
  if (results[0].size() != results[1].size()) return -1;
  for (size_t i = 0; i < results[0].size(); ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-5);
  return 1 - count_nodes(model.value()->graph, "Add");
}

TEST(FuseActivations, ASumWithWhatTheConvReadsGoesInWhereItsShapeIsKept) {
  EXPECT_EQ(sums_taken_in({}), 1);
  EXPECT_EQ(sums_taken_in({.function = "Relu"}), 1);
  EXPECT_EQ(sums_taken_in({.pads = {2, 0}}), 1);
  EXPECT_EQ(sums_taken_in({.pads = {2, 2}, .dilation = 2}), 1);
  EXPECT_EQ(sums_taken_in({.function = "Abs"}), 0) << "of which nothing is known here";
  EXPECT_EQ(sums_taken_in({.z = "Abs"}), 0);
  EXPECT_EQ(sums_taken_in({.z = "LeakyRelu"}), 0) << "not the one that it reads";
  EXPECT_EQ(sums_taken_in({.filters = 1}), 0) << "an Add broadcasts";
  EXPECT_EQ(sums_taken_in({.pads = {0, 0}}), 0);
  EXPECT_EQ(sums_taken_in({.pads = {1, 2}}), 0);
  EXPECT_EQ(sums_taken_in({.stride = 2}), 0);
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
