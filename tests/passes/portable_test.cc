// What is left at the levels for saving: nodes that ONNX Runtime has too, and nothing larger.
#include "tests/passes/pass_tester.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::ModelWriter;

std::string types_at(const ModelWriter& writer, Optimize level) {
  const auto model = optimized(writer, level);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

ModelWriter matmul_bias_relu() {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  graph.input("x", f32_type({"n", 4}));
  graph.initializer(f32_tensor("w", {4, 4}, wave(16)));
  graph.initializer(f32_tensor("b", {4}, wave(4)));
  graph.node("Identity", {"x"}, {"same"});
  graph.node("MatMul", {"same", "w"}, {"m"});
  graph.node("Add", {"m", "b"}, {"a"});
  graph.node("Relu", {"a"}, {"y"});
  graph.output("y", f32_type({"n", 4}));
  return writer;
}

TEST(Portable, MatMulKeepsBiasAndFunctionOutside) {
  EXPECT_EQ(types_at(matmul_bias_relu(), Optimize::kUnpacked), "folio.FusedMatMul");
  EXPECT_EQ(types_at(matmul_bias_relu(), Optimize::kExtended), "MatMul Add Relu");
  EXPECT_EQ(types_at(matmul_bias_relu(), Optimize::kBasic), "MatMul Add Relu");
  EXPECT_EQ(types_at(matmul_bias_relu(), Optimize::kOff), "Identity MatMul Add Relu");
}

ModelWriter conv_and(const char* function, int64_t opset = 17) {
  ModelWriter writer = plain_model(8, opset);
  auto& graph = writer.graph();
  graph.input("x", f32_type({1, 1, 2, 2}));
  graph.initializer(f32_tensor("w", {1, 1, 1, 1}, {2}));
  graph.node("Conv", {"x", "w"}, {"c"});
  graph.node(function, {"c"}, {"y"});
  graph.output("y", f32_type({1, 1, 2, 2}));
  return writer;
}

TEST(Portable, ConvTakesInOnlyFunctionsThatOthersKnow) {
  for (const char* function : {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid"}) {
    EXPECT_EQ(types_at(conv_and(function), Optimize::kExtended), "com.microsoft.FusedConv")
        << function;
  }
  EXPECT_EQ(types_at(conv_and("HardSwish"), Optimize::kExtended), "Conv HardSwish");
  EXPECT_EQ(types_at(conv_and("HardSwish"), Optimize::kUnpacked), "com.microsoft.FusedConv");
  EXPECT_EQ(types_at(conv_and("Relu"), Optimize::kBasic), "Conv Relu");
}

// ONNX Runtime has HardSwish as a function only, which an .ort cannot hold.
TEST(Portable, HardSwishIsLeftByParts) {
  for (const int64_t opset : {13, 14}) {
    ModelWriter writer = plain_model(8, opset);
    auto& graph = writer.graph();
    graph.input("x", f32_type({4}));
    auto& hard = graph.node("HardSigmoid", {"x"}, {"h"});
    hard.attr_float("alpha", 1.0F / 6.0F).attr_float("beta", 0.5F);
    graph.node("Mul", {"x", "h"}, {"y"});
    graph.output("y", f32_type({4}));
    EXPECT_EQ(types_at(writer, Optimize::kExtended), "HardSigmoid Mul");
  }
}

TEST(Portable, DequantizedConstantsStayAsSmallAsTheyAre) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  graph.input("x", f32_type({"n", 256}));
  graph.initializer(model_writer::u8_tensor("q", {256, 256}, std::vector<uint8_t>(256 * 256, 3)));
  graph.initializer(f32_tensor("s", {}, {0.5F}));
  graph.node("DequantizeLinear", {"q", "s"}, {"w"});
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y", f32_type({"n", 256}));
  EXPECT_EQ(types_at(writer, Optimize::kExtended), "DequantizeLinear MatMul");
  EXPECT_EQ(types_at(writer, Optimize::kBasic), "DequantizeLinear MatMul");
}

}  // namespace
}  // namespace folio
