// fuse_integer_conv: which convolutions of dynamically quantized images give floats at once, and
// that every bit stays.
#include <gtest/gtest.h>

#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using Rest = std::function<void(GraphWriter&)>;

// x [1, 4, 5, 5], quantized dynamically to q, s, z; its sums c with w [4, 4, 1, 1] as floats f;
// what a test puts behind them makes y.
ModelWriter sums_and(const Rest& rest) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 4, 5, 5}));
  graph.initializer(f32_tensor("one", {}, {0.02F}));
  graph.initializer(f32_tensor("each", {4, 1, 1}, {0.02F, 0.03F, 0.05F, 0.07F}));
  graph.initializer(f32_tensor("row", {1, 1, 1, 5}, {1, 2, 3, 4, 5}));
  graph.initializer(f32_tensor("bias", {1, 4, 1, 1}, {0.5F, -1, 2, 0.25F}));
  graph.initializer(TensorWriter("wz", ElementType::kUint8, {}).raw("\x7d"));
  graph.initializer(TensorWriter("w", ElementType::kUint8, {4, 4, 1, 1})
                        .raw("\x01\x02\x03\xfc\x05\x06\xf7\x08\x09\x0a\x0b\xfc\x0d\x0e\x0f\x10"));
  graph.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  graph.node("ConvInteger", {"q", "w", "z", "wz"}, {"c"});
  graph.node("Cast", {"c"}, {"f"}).attr_int("to", 1);
  rest(graph);
  graph.output("y", f32_type({1, 4, 5, 5}));
  return writer;
}

std::vector<float> result(const ModelWriter& writer, Optimize level) {
  return floats_at(writer, {{"x", make_tensor<float>({1, 4, 5, 5}, wave(100))}}, level);
}

std::string types_after(const Rest& rest, Optimize level = Optimize::kUnpacked) {
  const ModelWriter writer = sums_and(rest);
  const auto want = result(writer, Optimize::kOff);
  EXPECT_EQ(result(writer, Optimize::kUnpacked), want);
  EXPECT_EQ(result(writer, Optimize::kAll), want);
  const auto model = optimized(writer, level);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

TEST(FuseIntegerConv, SumsScaledByOneNumberOrOneAChannel) {
  const std::string want = "DynamicQuantizeLinear Mul folio.ConvIntegerToFloat";
  for (const char* scale : {"one", "each"}) {
    EXPECT_EQ(types_after([scale](GraphWriter& graph) {
                graph.node("Mul", {"s", scale}, {"m"});
                graph.node("Mul", {"f", "m"}, {"y"});
              }),
              want);
    EXPECT_EQ(types_after([scale](GraphWriter& graph) {
                graph.node("Mul", {"s", scale}, {"m"});
                graph.node("Mul", {"m", "f"}, {"g"});
                graph.node("Add", {"bias", "g"}, {"y"});
              }),
              want);
  }
}

TEST(FuseIntegerConv, WhatIsNoBiasIsAddedAfterwards) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"f", "s"}, {"g"});
              graph.node("Add", {"g", "row"}, {"y"});
            }),
            "DynamicQuantizeLinear folio.ConvIntegerToFloat Add");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"f", "s"}, {"g"});
              graph.node("Add", {"g", "x"}, {"y"});
            }),
            "DynamicQuantizeLinear folio.ConvIntegerToFloat Add");
}

TEST(FuseIntegerConv, SumsThatOthersReadAndOtherFactorsStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"f", "row"}, {"y"});
            }),
            "DynamicQuantizeLinear ConvInteger Cast Mul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.output("f", f32_type({1, 4, 5, 5}));
              graph.node("Mul", {"f", "s"}, {"y"});
            }),
            "DynamicQuantizeLinear ConvInteger Cast Mul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"f", "f"}, {"y"});
            }),
            "DynamicQuantizeLinear ConvInteger Cast Mul");
}

// What stands between two of them is turned only where the graph begins and ends.
TEST(FuseIntegerConv, ChannelsAreLastBetween) {
  const auto two = [](GraphWriter& graph) {
    graph.node("Mul", {"f", "s"}, {"g"});
    graph.node("Relu", {"g"}, {"r"});
    graph.node("DynamicQuantizeLinear", {"r"}, {"q2", "s2", "z2"});
    graph.node("ConvInteger", {"q2", "w", "z2", "wz"}, {"c2"});
    graph.node("Cast", {"c2"}, {"f2"}).attr_int("to", 1);
    graph.node("Mul", {"f2", "s2"}, {"y"});
  };
  EXPECT_EQ(types_after(two, Optimize::kAll),
            "DynamicQuantizeLinear Transpose folio.ConvIntegerToFloat Relu DynamicQuantizeLinear "
            "folio.ConvIntegerToFloat Transpose");
}

}  // namespace
}  // namespace folio
