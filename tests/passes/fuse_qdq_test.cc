// fuse_qdq and fuse_integer_matmul: what computes in bytes, what must not, and that results stay.
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

TensorWriter ints(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                  const std::vector<int64_t>& values) {
  TensorWriter tensor(name, type, dims);
  return type == ElementType::kInt64 ? tensor.int64s(values) : tensor.int32s(values);
}

// x [1, 2, 2, 2] quantized and back: xd; weights [2, 2, 1, 1] wd and bias bd; what a test puts
// behind it makes y.
ModelWriter quantized_and(const Rest& rest) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 2, 2, 2}));
  graph.input("s_in", f32_type({}));
  graph.initializer(f32_tensor("xs", {}, {0.5F}));
  graph.initializer(f32_tensor("ys", {}, {0.25F}));
  graph.initializer(f32_tensor("ws", {2}, {0.5F, 0.25F}));
  graph.initializer(f32_tensor("bs", {2}, {0.25F, 0.125F}));
  graph.initializer(f32_tensor("bad", {2}, {0.25F, 0.25F}));
  graph.initializer(ints("xz", ElementType::kUint8, {}, {100}));
  graph.initializer(ints("zero", ElementType::kUint8, {}, {0}));
  graph.initializer(ints("w", ElementType::kInt8, {2, 2, 1, 1}, {1, 2, -3, 4}));
  graph.initializer(ints("wz", ElementType::kInt8, {2}, {0, 0}));
  graph.initializer(ints("b", ElementType::kInt32, {2}, {5, -6}));
  graph.node("QuantizeLinear", {"x", "xs", "xz"}, {"xq"});
  graph.node("DequantizeLinear", {"xq", "xs", "xz"}, {"xd"});
  graph.node("DequantizeLinear", {"w", "ws", "wz"}, {"wd"}).attr_int("axis", 0);
  graph.node("DequantizeLinear", {"b", "bs"}, {"bd"}).attr_int("axis", 0);
  graph.node("DequantizeLinear", {"b", "bad"}, {"bad_bias"}).attr_int("axis", 0);
  rest(graph);
  return writer;
}

// "op" (from "c" in) -> Q -> DQ -> y.
void quantize(GraphWriter& graph, const char* value, const char* scale, const char* zero,
              const std::vector<int64_t>& dims = {1, 2, 2, 2}) {
  graph.node("QuantizeLinear", {value, scale, zero}, {"yq"});
  graph.node("DequantizeLinear", {"yq", scale, zero}, {"y"});
  graph.output("y", f32_type({dims.begin(), dims.end()}));
}

std::vector<float> result(const ModelWriter& writer, Optimize level) {
  return floats_at(
      writer,
      {{"x", make_tensor<float>({1, 2, 2, 2}, {-3, -0.25F, 1, 3, 20, -40, 0.5F, 7.5F})},
       {"s_in", make_tensor<float>({}, {0.5F})}},
      level);
}

// How many nodes of a type there are after the passes, which must not change the result.
int count_of(const Rest& rest, const char* type) {
  const ModelWriter writer = quantized_and(rest);
  const auto model = optimized(writer);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  EXPECT_EQ(result(writer, Optimize::kAll), result(writer, Optimize::kOff));
  return count_nodes(model.value()->graph, type);
}

TEST(FuseQdq, ConvWithItsBiasComputesInBytes) {
  const Rest conv = [](GraphWriter& graph) {
    graph.node("Conv", {"xd", "wd", "bd"}, {"c"});
    quantize(graph, "c", "ys", "xz");
  };
  EXPECT_EQ(count_of(conv, "QLinearConv"), 1);
  EXPECT_EQ(count_of(conv, "Conv"), 0);
}

// As a style does with the weights of its image.
TEST(FuseQdq, FiltersThatAreComputedAreBytesToo) {
  const Rest conv = [](GraphWriter& graph) {
    graph.initializer(ints("tall", ElementType::kInt64, {4}, {4, 2, 1, 1}));
    graph.node("Reshape", {"xd", "tall"}, {"filters"});
    graph.node("QuantizeLinear", {"filters", "xs", "xz"}, {"fq"});
    graph.node("DequantizeLinear", {"fq", "xs", "xz"}, {"fd"});
    graph.node("Conv", {"xd", "fd"}, {"c"});
    quantize(graph, "c", "ys", "xz", {1, 4, 2, 2});
  };
  EXPECT_EQ(count_of(conv, "QLinearConv"), 1);
  EXPECT_EQ(count_of(conv, "DequantizeLinear"), 1);
}

TEST(FuseQdq, ReluGoesOnlyWhereCodesHaveNoNegativeNumbers) {
  const auto relu = [](const char* zero) {
    return [zero](GraphWriter& graph) {
      graph.node("Conv", {"xd", "wd"}, {"c"});
      graph.node("Relu", {"c"}, {"r"});
      quantize(graph, "r", "ys", zero);
    };
  };
  EXPECT_EQ(count_of(relu("zero"), "QLinearConv"), 1);
  EXPECT_EQ(count_of(relu("zero"), "Relu"), 0);
  EXPECT_EQ(count_of(relu("xz"), "QLinearConv"), 0);
}

TEST(FuseQdq, OtherScalesOfBiasAndSharedOrUnknownValuesStay) {
  EXPECT_EQ(count_of(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"xd", "wd", "bad_bias"}, {"c"});
                  quantize(graph, "c", "ys", "xz");
                },
                "QLinearConv"),
            0);
  // Another reader of the float result.
  EXPECT_EQ(count_of(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"xd", "wd"}, {"c"});
                  graph.node("Neg", {"c"}, {"n"});
                  graph.output("n", f32_type({1, 2, 2, 2}));
                  quantize(graph, "c", "ys", "xz");
                },
                "QLinearConv"),
            0);
  // It is an output itself.
  EXPECT_EQ(count_of(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"xd", "wd"}, {"c"});
                  graph.output("c", f32_type({1, 2, 2, 2}));
                  quantize(graph, "c", "ys", "xz");
                },
                "QLinearConv"),
            0);
  // A scale that is an input.
  EXPECT_EQ(count_of(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"xd", "wd"}, {"c"});
                  quantize(graph, "c", "s_in", "xz");
                },
                "QLinearConv"),
            0);
}

TEST(FuseQdq, SumsComputeInBytes) {
  const Rest sum = [](GraphWriter& graph) {
    graph.node("Transpose", {"xd"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
    graph.node("QuantizeLinear", {"t", "xs", "xz"}, {"tq"});
    graph.node("DequantizeLinear", {"tq", "xs", "xz"}, {"td"});
    graph.node("Add", {"xd", "td"}, {"c"});
    quantize(graph, "c", "ys", "xz");
  };
  EXPECT_EQ(count_of(sum, "QLinearAdd"), 1);
}

// Where the window hangs over the padding, the two divide by different numbers.
TEST(FuseQdq, AveragesThatTheirKinCountsDifferentlyStayFloats) {
  const auto average = [](int ceil_mode, int count_pad) {
    return [=](GraphWriter& graph) {
      auto& pool = graph.node("AveragePool", {"xd"}, {"c"});
      pool.attr_ints("kernel_shape", {2, 2}).attr_ints("strides", {2, 2});
      pool.attr_ints("pads", {1, 1, 0, 0});
      pool.attr_int("ceil_mode", ceil_mode).attr_int("count_include_pad", count_pad);
      const int64_t side = 1 + ceil_mode;
      quantize(graph, "c", "ys", "xz", {1, 2, side, side});
    };
  };
  EXPECT_EQ(count_of(average(0, 1), "QLinearAveragePool"), 1);
  EXPECT_EQ(count_of(average(1, 0), "QLinearAveragePool"), 1);
  EXPECT_EQ(count_of(average(1, 1), "QLinearAveragePool"), 0);
}

TEST(FuseQdq, MovesWorkOnCodesOnlyUnderOneScale) {
  const auto pool = [](const char* scale) {
    return [scale](GraphWriter& graph) {
      graph.node("MaxPool", {"xd"}, {"c"}).attr_ints("kernel_shape", {2, 2});
      quantize(graph, "c", scale, "xz", {1, 2, 1, 1});
    };
  };
  EXPECT_EQ(count_of(pool("xs"), "QuantizeLinear"), 1);
  EXPECT_EQ(count_of(pool("ys"), "QuantizeLinear"), 2);
}

TEST(FuseQdq, ResizeMovesCodesOnlyOfNearestNeighbours) {
  const auto resize = [](const char* mode) {
    return [mode](GraphWriter& graph) {
      graph.initializer(f32_tensor("scales", {4}, {1, 1, 2, 2}));
      graph.node("Resize", {"xd", "", "scales"}, {"c"}).attr_string("mode", mode);
      quantize(graph, "c", "xs", "xz", {1, 2, 4, 4});
    };
  };
  EXPECT_EQ(count_of(resize("nearest"), "QuantizeLinear"), 1);
  EXPECT_EQ(count_of(resize("linear"), "QuantizeLinear"), 2);
}

TEST(FuseQdq, ChosenCodesAreTheSameCodes) {
  const Rest gather = [](GraphWriter& graph) {
    graph.initializer(TensorWriter("index", ElementType::kInt64, {2}).int64s({1, 0}));
    graph.node("Gather", {"xd", "index"}, {"c"}).attr_int("axis", 1);
    quantize(graph, "c", "xs", "xz");
  };
  EXPECT_EQ(count_of(gather, "QuantizeLinear"), 1);
  const Rest depth = [](GraphWriter& graph) {
    graph.node("SpaceToDepth", {"xd"}, {"c"}).attr_int("blocksize", 2);
    quantize(graph, "c", "xs", "xz", {1, 8, 1, 1});
  };
  EXPECT_EQ(count_of(depth, "QuantizeLinear"), 1);
}

TEST(FuseQdq, CodesThatComeBackAreTheSame) {
  const auto again = [](const char* scale) {
    return [scale](GraphWriter& graph) { quantize(graph, "xd", scale, "xz"); };
  };
  EXPECT_EQ(count_of(again("xs"), "QuantizeLinear"), 1);
  EXPECT_EQ(count_of(again("ys"), "ByteTable"), 1);  // other codes: fuse_tables
}

TEST(FuseQdq, WhatNobodyTakesAsBytesBecomesFloats) {
  const Rest plain = [](GraphWriter& graph) {
    graph.node("Conv", {"x", "wd"}, {"y"});
    graph.output("y", f32_type({1, 2, 2, 2}));
  };
  EXPECT_EQ(count_of(plain, "DequantizeLinear"), 0);
}

// How many nodes of a type a saved model has.
int saved_count(const Rest& rest, const char* type) {
  const auto model = optimized(quantized_and(rest), Optimize::kExtended);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? count_nodes(model.value()->graph, type) : -1;
}

// Folio computes them in bytes, ONNX Runtime refuses them.
TEST(FuseQdq, WhatOnnxRuntimeHasNoKernelForIsNotSaved) {
  const auto conv = [](const char* zero) {
    return [zero](GraphWriter& graph) {
      graph.node("DequantizeLinear", {"w", "ws", zero}, {"wf"}).attr_int("axis", 0);
      graph.node("Conv", {"xd", "wf"}, {"c"});
      quantize(graph, "c", "ys", "xz");
    };
  };
  EXPECT_EQ(saved_count(conv("wz"), "QLinearConv"), 1);
  EXPECT_EQ(saved_count(conv(""), "QLinearConv"), 0);
  EXPECT_EQ(count_of(conv(""), "QLinearConv"), 1);
  const Rest mixed = [](GraphWriter& graph) {
    graph.initializer(ints("sz", ElementType::kInt8, {}, {3}));
    graph.initializer(ints("u", ElementType::kUint8, {2, 2, 1, 1}, {1, 2, 200, 4}));
    graph.node("QuantizeLinear", {"x", "xs", "sz"}, {"sq"});
    graph.node("DequantizeLinear", {"sq", "xs", "sz"}, {"sd"});
    graph.node("DequantizeLinear", {"u", "xs", "zero"}, {"ud"});
    graph.node("Conv", {"sd", "ud"}, {"c"});
    quantize(graph, "c", "ys", "sz");
  };
  EXPECT_EQ(saved_count(mixed, "QLinearConv"), 0);
  EXPECT_EQ(count_of(mixed, "QLinearConv"), 1);
  const auto sum = [](const char* scale, const char* zero) {
    return [scale, zero](GraphWriter& graph) {
      graph.initializer(f32_tensor("scale1", {1}, {0.25F}));
      graph.initializer(ints("zero1", ElementType::kUint8, {1}, {0}));
      graph.node("Add", {"xd", "xd"}, {"c"});
      quantize(graph, "c", scale, zero);
    };
  };
  EXPECT_EQ(saved_count(sum("ys", "zero"), "QLinearAdd"), 1);
  EXPECT_EQ(saved_count(sum("scale1", "zero1"), "QLinearAdd"), 0);
  EXPECT_EQ(saved_count(sum("scale1", "zero1"), "Add"), 1);
  EXPECT_EQ(count_of(sum("scale1", "zero1"), "Add"), 0);
}

// ONNX Runtime 1.30 refuses scales of one dim of sums, products and averages alone.
TEST(FuseQdq, ScalesOfOneDimAreSavedWhereOthersTakeThem) {
  const auto unary = [](const char* type) {
    return [type](GraphWriter& graph) {
      graph.initializer(f32_tensor("scale1", {1}, {0.25F}));
      graph.initializer(ints("zero1", ElementType::kUint8, {1}, {0}));
      auto& node = graph.node(type, {"xd"}, {"c"});
      const bool is_window = std::string_view(type) == "AveragePool";
      if (is_window) node.attr_ints("kernel_shape", {1, 1});
      const bool is_global = std::string_view(type) == "GlobalAveragePool";
      const int64_t side = is_global ? 1 : 2;
      quantize(graph, "c", "scale1", "zero1", {1, 2, side, side});
    };
  };
  for (const char* type : {"Sigmoid", "LeakyRelu", "GlobalAveragePool"}) {
    EXPECT_EQ(saved_count(unary(type), (std::string("QLinear") + type).c_str()), 1) << type;
  }
  EXPECT_EQ(saved_count(unary("AveragePool"), "QLinearAveragePool"), 0);
  const Rest concat = [](GraphWriter& graph) {
    graph.initializer(f32_tensor("scale1", {1}, {0.25F}));
    graph.initializer(ints("zero1", ElementType::kUint8, {1}, {0}));
    graph.node("Concat", {"xd", "xd"}, {"c"}).attr_int("axis", 1);
    quantize(graph, "c", "scale1", "zero1", {1, 4, 2, 2});
  };
  EXPECT_EQ(saved_count(concat, "QLinearConcat"), 1);
}

TEST(FuseIntegerMatMul, GivesFloatsAtOnce) {
  const auto product = [](bool is_shared) {
    return [is_shared](GraphWriter& graph) {
      graph.initializer(ints("m", ElementType::kInt8, {2, 3}, {1, -2, 3, 4, 5, -6}));
      graph.initializer(ints("mz", ElementType::kInt8, {}, {1}));
      graph.initializer(f32_tensor("bias", {3}, {1, 2, 3}));
      graph.node("DynamicQuantizeLinear", {"x"}, {"q0", "s0", "z0"});
      graph.node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
      graph.node("MatMulInteger", {"q", "m", "z", "mz"}, {"i"});
      graph.node("Cast", {"i"}, {"f"}).attr_int("to", 1);
      graph.node("Mul", {"s", "xs"}, {"ss"});
      graph.node("Mul", {"f", "ss"}, {"p"});
      if (is_shared) graph.output("f", f32_type({1, 2, 2, 3}));
      graph.node("Add", {"bias", "p"}, {"a"});
      graph.node("Mul", {"a", "s0"}, {"y"});
      graph.output("y", f32_type({1, 2, 2, 3}));
    };
  };
  EXPECT_EQ(count_of(product(false), "MatMulIntegerToFloat"), 1);
  EXPECT_EQ(count_of(product(false), "DynamicQuantizeLinear"), 1);
  EXPECT_EQ(count_of(product(false), "Add"), 0);
  EXPECT_EQ(count_of(product(true), "MatMulIntegerToFloat"), 0);
}

}  // namespace
}  // namespace folio
