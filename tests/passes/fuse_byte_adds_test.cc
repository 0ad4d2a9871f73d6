// fuse_byte_adds: which sums convolutions of bytes take in, and that every bit stays.
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

// x [1, 4, 5, 5] in bytes q, and its convolution c; what a test puts behind them makes e.
ModelWriter bytes_and(const Rest& rest, const std::vector<int64_t>& dims) {
  ModelWriter writer = plain_model(8, 18);
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 4, 5, 5}));
  graph.initializer(f32_tensor("s", {}, {0.02F}));
  graph.initializer(f32_tensor("t", {}, {0.05F}));
  graph.initializer(TensorWriter("z", ElementType::kUint8, {}).raw("\x80"));
  graph.initializer(TensorWriter("wz", ElementType::kInt8, {}).raw(std::string(1, '\0')));
  graph.initializer(TensorWriter("w", ElementType::kInt8, {4, 4, 1, 1})
                        .raw("\x01\x02\x03\xfc\x05\x06\xf7\x08\x09\x0a\x0b\xfc\x0d\x0e\x0f\x10"));
  graph.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  graph.node("QLinearConv", {"q", "s", "z", "w", "s", "wz", "s", "z"}, {"c"});
  rest(graph);
  graph.node("DequantizeLinear", {"e", "s", "z"}, {"y"});
  graph.output("y", f32_type({dims.begin(), dims.end()}));
  return writer;
}

void add(GraphWriter& graph, const char* a, const char* b) {
  graph.node("QLinearAdd", {a, "s", "z", b, "t", "z", "t", "z"}, {"e"}).in_domain("com.microsoft");
}

std::vector<float> result(const ModelWriter& writer, Optimize level) {
  return floats_at(writer, {{"x", make_tensor<float>({1, 4, 5, 5}, wave(100))}}, level);
}

std::string types_after(const Rest& rest, const std::vector<int64_t>& dims = {1, 4, 5, 5}) {
  const ModelWriter writer = bytes_and(rest, dims);
  const auto want = result(writer, Optimize::kOff);
  EXPECT_EQ(result(writer, Optimize::kUnpacked), want);
  EXPECT_EQ(result(writer, Optimize::kAll), want);
  const auto model = optimized(writer, Optimize::kUnpacked);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

TEST(FuseByteAdds, ConvolutionsTakeInTheSumOnEitherSide) {
  const std::string want = "QuantizeLinear folio.QLinearConvAdd DequantizeLinear";
  EXPECT_EQ(types_after([](GraphWriter& graph) { add(graph, "c", "q"); }), want);
  EXPECT_EQ(types_after([](GraphWriter& graph) { add(graph, "q", "c"); }), want);
}

TEST(FuseByteAdds, OfTwoConvolutionsTheLaterTakesIt) {
  const auto two = [](const char* a, const char* b) {
    return [a, b](GraphWriter& graph) {
      graph.node("QLinearConv", {"c", "s", "z", "w", "s", "wz", "s", "z"}, {"d"});
      graph.node("MaxPool", {"c"}, {"m"}).attr_ints("kernel_shape", {1, 1});
      add(graph, a, b);
    };
  };
  const std::string want = "QuantizeLinear QLinearConv folio.QLinearConvAdd DequantizeLinear";
  EXPECT_EQ(types_after(two("c", "d")), want);
  EXPECT_EQ(types_after(two("d", "c")), want);
}

TEST(FuseByteAdds, SharedResultsAndSumsThatBroadcastStay) {
  // Its own double, which is a function of it.
  EXPECT_EQ(types_after([](GraphWriter& graph) { add(graph, "c", "c"); }),
            "QuantizeLinear QLinearConv folio.ByteTable DequantizeLinear");
  // Another reader, an output.
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.output("c", model_writer::Type::tensor(ElementType::kUint8, {1, 4, 5, 5}));
              add(graph, "c", "q");
            }),
            "QuantizeLinear QLinearConv com.microsoft.QLinearAdd DequantizeLinear");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MaxPool", {"q"}, {"m"}).attr_ints("kernel_shape", {5, 5});
              add(graph, "c", "m");
            }),
            "QuantizeLinear QLinearConv MaxPool com.microsoft.QLinearAdd DequantizeLinear");
}

TEST(FuseByteAdds, ChannelsLastGoThrough) {
  const ModelWriter writer =
      bytes_and([](GraphWriter& graph) { add(graph, "q", "c"); }, {1, 4, 5, 5});
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph),
            "QuantizeLinear Transpose folio.QLinearConvAdd DequantizeLinear Transpose");
}

}  // namespace
}  // namespace folio
