// fuse_tables: functions of one quantized value become a table; the codes stay.
#include <gtest/gtest.h>

#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using Function = std::function<void(GraphWriter&)>;

// x [1, 4, 8, 8] -> Q -> DQ: d -> `function` -> v -> Q -> q, all 256 codes among them.
ModelWriter around(const Function& function, ElementType from = ElementType::kUint8,
                   ElementType to = ElementType::kUint8) {
  ModelWriter writer = plain_model(8, 20);
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 4, 8, 8}));
  graph.initializer(f32_tensor("xs", {}, {0.05F}));
  graph.initializer(f32_tensor("ys", {}, {0.03F}));
  graph.initializer(f32_tensor("three", {}, {3.0F}));
  graph.initializer(f32_tensor("sixth", {1}, {1.0F / 6}));
  graph.initializer(f32_tensor("zero", {}, {0.0F}));
  graph.initializer(f32_tensor("six", {}, {6.0F}));
  graph.initializer(f32_tensor("many", {8}, wave(8)));
  graph.initializer(TensorWriter("xz", from, {}).int32s({from == ElementType::kUint8 ? 120 : -8}));
  graph.initializer(TensorWriter("yz", to, {}).int32s({to == ElementType::kUint8 ? 60 : -70}));
  graph.node("QuantizeLinear", {"x", "xs", "xz"}, {"c"});
  graph.node("DequantizeLinear", {"c", "xs", "xz"}, {"d"});
  function(graph);
  graph.node("QuantizeLinear", {"v", "ys", "yz"}, {"q"});
  graph.node("DequantizeLinear", {"q", "ys", "yz"}, {"y"});
  graph.output("y", f32_type({1, 4, 8, 8}));
  return writer;
}

// `to`: the floats that `from` is as codes of scale and zero point x or y.
void round_to(GraphWriter& graph, const std::string& from, char parameters, const std::string& to) {
  const std::string scale = std::string(1, parameters) + "s";
  const std::string zero = std::string(1, parameters) + "z";
  graph.node("QuantizeLinear", {from, scale, zero}, {from + "q"});
  graph.node("DequantizeLinear", {from + "q", scale, zero}, {to});
}

std::unique_ptr<Model> after(const ModelWriter& writer) {
  std::vector<float> x;
  for (int i = 0; i < 256; ++i) x.push_back(0.05F * static_cast<float>(i - 128));
  return fused(writer, {{"x", make_tensor<float>({1, 4, 8, 8}, x)}});
}

Function unary(const std::string& type, const std::string& domain = "") {
  return [=](GraphWriter& graph) { graph.node(type, {"d"}, {"v"}).in_domain(domain); };
}

TEST(FuseTables, FunctionsOfOneValueBecomeATable) {
  for (const char* type : {"Tanh", "Erf", "Exp", "HardSwish", "Gelu", "Abs", "Sqrt", "Neg"}) {
    for (const ElementType to : {ElementType::kUint8, ElementType::kInt8}) {
      SCOPED_TRACE(type);
      const auto model = after(around(unary(type), ElementType::kInt8, to));
      EXPECT_EQ(types_of(model->graph), "QuantizeLinear folio.ByteTable DequantizeLinear");
    }
  }
  // One scale in a list, with an axis that a list of codes has not.
  const Function listed = [](GraphWriter& graph) {
    graph.initializer(f32_tensor("xs1", {1}, {0.05F}));
    graph.initializer(TensorWriter("xz1", ElementType::kUint8, {1}).int32s({120}));
    graph.node("DequantizeLinear", {"c", "xs1", "xz1"}, {"e"}).attr_int("axis", 3);
    graph.node("Tanh", {"e"}, {"v"});
  };
  SessionOptions plain;
  EXPECT_TRUE(run_once(around(listed), {{"x", make_tensor<float>({1, 4, 8, 8}, wave(256))}}, plain)
                  .is_ok());
  const auto gelu = after(around(unary("QuickGelu", "com.microsoft")));
  EXPECT_EQ(count_nodes(gelu->graph, "ByteTable"), 1);
}

TEST(FuseTables, ChainsWithConstantsAndTheValueItselfAreTaken) {
  const Function hard_swish = [](GraphWriter& graph) {
    graph.node("Add", {"d", "three"}, {"a"});
    graph.node("Clip", {"a", "zero", "six"}, {"b"});
    graph.node("Mul", {"d", "b"}, {"m"});
    graph.node("Mul", {"m", "sixth"}, {"v"});
  };
  const auto model = after(around(hard_swish));
  EXPECT_EQ(types_of(model->graph), "QuantizeLinear folio.ByteTable DequantizeLinear");
}

TEST(FuseTables, PartsThatOthersReadStay) {
  const Function shared = [](GraphWriter& graph) {
    graph.node("Tanh", {"d"}, {"t"});
    graph.node("Exp", {"t"}, {"v"});
    graph.output("t", f32_type({1, 4, 8, 8}));
  };
  const auto model = after(around(shared));
  EXPECT_EQ(count_nodes(model->graph, "ByteTable"), 1);
  EXPECT_EQ(count_nodes(model->graph, "Tanh"), 1);
  EXPECT_EQ(count_nodes(model->graph, "Exp"), 0);
}

TEST(FuseTables, OtherOperandsAndOperatorsStay) {
  const Function with_row = [](GraphWriter& graph) {
    graph.node("Mul", {"d", "many"}, {"m"});
    graph.node("Tanh", {"m"}, {"v"});
  };
  const Function with_input = [](GraphWriter& graph) {
    graph.node("Max", {"d", "x"}, {"m"});
    graph.node("Tanh", {"m"}, {"v"});
  };
  const Function not_by_element = [](GraphWriter& graph) {
    graph.node("Softmax", {"d"}, {"m"});
    graph.node("Tanh", {"m"}, {"v"});
  };
  for (const Function& function : {with_row, with_input, not_by_element}) {
    EXPECT_EQ(count_nodes(after(around(function))->graph, "ByteTable"), 0);
  }
  const Function wide = [](GraphWriter& graph) {
    graph.initializer(TensorWriter("wz", ElementType::kUint16, {}).int32s({30000}));
    graph.node("QuantizeLinear", {"d", "xs", "wz"}, {"w"});
    graph.node("DequantizeLinear", {"w", "xs", "wz"}, {"wd"});
    graph.node("Tanh", {"wd"}, {"v"});
  };
  EXPECT_EQ(count_nodes(after(around(wide))->graph, "ByteTable"), 0);
}

// x sigmoid(x), rounded in between, and functions of that.
TEST(FuseTables, FunctionsInCodesAndOfTheseAreOneTable) {
  const Function rounded = [](GraphWriter& graph) {
    graph.node("Sigmoid", {"d"}, {"s"});
    round_to(graph, "s", 'y', "sd");
    graph.node("Mul", {"d", "sd"}, {"v"});
  };
  const char* kOne = "QuantizeLinear folio.ByteTable DequantizeLinear";
  EXPECT_EQ(types_of(after(around(rounded))->graph), kOne);
  const Function further = [&](GraphWriter& graph) {
    graph.node("LeakyRelu", {"d"}, {"l"});
    round_to(graph, "l", 'y', "ld");
    graph.node("Tanh", {"ld"}, {"t"});
    round_to(graph, "t", 'x', "td");
    graph.node("Add", {"ld", "td"}, {"v"});
  };
  EXPECT_EQ(types_of(after(around(further))->graph), kOne);
  const Function of_two = [](GraphWriter& graph) {
    graph.node("Transpose", {"d"}, {"f"}).attr_ints("perm", {0, 1, 3, 2});
    graph.node("Sigmoid", {"f"}, {"s"});
    round_to(graph, "s", 'y', "sd");
    graph.node("Mul", {"d", "sd"}, {"v"});
  };
  const auto model = after(around(of_two));
  EXPECT_EQ(count_nodes(model->graph, "QLinearMul"), 1);
}

TEST(FuseTables, ChainsOfAnyLengthAreRead) {
  const Function chain = [](GraphWriter& graph) {
    std::string from = "d";
    for (int i = 0; i < 20000; ++i) {
      const std::string to = i == 19999 ? "v" : "n" + std::to_string(i);
      graph.node("Neg", {from}, {to});
      from = to;
    }
  };
  const auto model = optimized(around(chain), Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "ByteTable"), 0);
}

TEST(FuseTables, TablesStayBetweenConvolutionsWithChannelsLast) {
  const Function between = [](GraphWriter& graph) {
    graph.initializer(TensorWriter("w", ElementType::kInt8, {4, 4, 1, 1})
                          .int32s({1, -2, 3, 4, 5, 6, -7, 8, 9, 1, 2, 3, -4, 5, 6, 7}));
    graph.initializer(TensorWriter("wz", ElementType::kInt8, {}).int32s({0}));
    graph.node("DequantizeLinear", {"w", "xs", "wz"}, {"wd"});
    graph.node("Conv", {"d", "wd"}, {"c1"});
    round_to(graph, "c1", 'x', "d1");
    graph.node("HardSwish", {"d1"}, {"h"});
    round_to(graph, "h", 'x', "d2");
    graph.node("Conv", {"d2", "wd"}, {"v"});
  };
  const ModelWriter writer = around(between);
  const std::vector<NamedValue> inputs = {{"x", make_tensor<float>({1, 4, 8, 8}, wave(256))}};
  SessionOptions first;
  first.optimize = Optimize::kUnpacked;  // channels first
  const auto expected = run_once(writer, inputs, first);
  const auto got = run_once(writer, inputs);
  ASSERT_TRUE(expected.is_ok() && got.is_ok()) << text_of(got.status());
  EXPECT_EQ(floats_of(got.value()[0]), floats_of(expected.value()[0]));
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "ByteTable"), 1);
  EXPECT_LE(count_nodes(model.value()->graph, "Transpose"), 2);  // in and out
}

TEST(FuseTables, SavedModelsKeepTheirParts) {
  const auto model = optimized(around(unary("Tanh")), Optimize::kExtended);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "ByteTable"), 0);
  EXPECT_EQ(count_nodes(model.value()->graph, "Tanh"), 1);
}

}  // namespace
}  // namespace folio
