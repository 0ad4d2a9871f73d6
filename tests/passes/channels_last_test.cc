// channels_last: which nodes compute with channels last, where transposes stand, and that results
// stay.
#include <gtest/gtest.h>

#include "tests/passes/conv_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

TEST(ChannelsLast, TransposesStandAtTheEdgesOfARegionOnly) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Softplus", {"c"}, {"s"});
              graph.node("MaxPool", {"s"}, {"m"}).attr_ints("kernel_shape", {1, 1});
              graph.node("Conv", {"m", "w2"}, {"y"});
            }),
            "folio.nhwc.Conv Softplus folio.nhwc.MaxPool folio.nhwc.Conv Transpose");
}

TEST(ChannelsLast, AResidualIsAddedInTheSameForm) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Conv", {"c", "w2"}, {"d"});
              graph.node("Add", {"d", "c"}, {"e"});
              graph.node("Relu", {"e"}, {"y"});
            }),
            "folio.nhwc.Conv folio.nhwc.Conv Transpose");
}

// FusedConv's Z in a file is whatever the file says.
TEST(ChannelsLast, ASumOfAnotherFormStays) {
  const auto with_z = [](const std::vector<model_writer::Dim>& z, bool is_computed) {
    ModelWriter writer = conv_and(
        [&](GraphWriter& graph) {
          graph.input("z", f32_type(z));
          graph.input("shape", model_writer::Type::tensor(kI64, {"r"}));
          if (is_computed) graph.node("Reshape", {"z", "shape"}, {"of_unknown_rank"});
          graph.node("FusedConv", {"c", "w2", "", is_computed ? "of_unknown_rank" : "z"}, {"y"})
              .in_domain("com.microsoft");
        },
        {1, 4, 6, 6});
    writer.opset("com.microsoft", 1);
    return optimized(writer, Optimize::kAll);
  };
  const auto stays = [](const Result<std::unique_ptr<Model>>& model) {
    return !model.is_ok() || types_of(model.value()->graph).find("FusedConv") != std::string::npos;
  };
  EXPECT_TRUE(stays(with_z({1, 4, 36}, true))) << "of unknown rank";
  for (const std::vector<model_writer::Dim>& z :
       {std::vector<model_writer::Dim>{}, {144}, {4, 36}, {4, 6, 6}}) {
    EXPECT_TRUE(stays(with_z(z, false))) << z.size();
  }
}

// What fold_scales put into the weights comes out again, so that these stay the file's bytes.
TEST(ChannelsLast, SumsAreScaledInsteadOfWeights) {
  const ModelWriter writer = conv_and(
      [](GraphWriter& graph) {
        graph.initializer(f32_tensor("scale", {4, 1, 1}, {0.5F, -1.5F, 3.0F, 0.1F}));
        graph.node("Mul", {"c", "scale"}, {"y"});
      },
      {1, 4, 6, 6});
  fused(writer, {{"x", make_tensor<float>({1, 3, 6, 6}, wave(108, 0.1F))}});
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& graph = model.value()->graph;
  ASSERT_EQ(types_of(graph), "folio.nhwc.Conv Transpose");
  const Node& conv = graph.nodes[0];
  ASSERT_EQ(conv.inputs.size(), 5U);
  const Initializer& weights = *graph.value(conv.inputs[1]).initializer;
  EXPECT_EQ(weights.name, "w");
  EXPECT_FALSE(weights.recipe);
  EXPECT_EQ(graph.value(conv.inputs[4]).initializer->shape.count(), 4);
}

TEST(ChannelsLast, DepthwiseFiltersAreScaledThemselves) {
  const auto rest = [](GraphWriter& graph) {
    graph.initializer(f32_tensor("each", {4, 1, 3, 3}, wave(36)));
    graph.initializer(f32_tensor("scale", {4, 1, 1}, {0.5F, -1.5F, 3.0F, 0.1F}));
    graph.node("Conv", {"c", "each"}, {"d"}).attr_int("group", 4).attr_ints("pads", {1, 1, 1, 1});
    graph.node("Mul", {"d", "scale"}, {"y"});
  };
  EXPECT_EQ(types_after(rest), "folio.nhwc.Conv folio.nhwc.Conv Transpose");
}

TEST(ChannelsLast, ConstantsOfChannelsAndScalarsFollow) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.initializer(f32_tensor("slope", {4, 1, 1}, {0.1F, 0.2F, 0.3F, 0.4F}));
              graph.initializer(f32_tensor("two", {}, {2}));
              graph.node("PRelu", {"c", "slope"}, {"p"});
              graph.node("Max", {"p", "two"}, {"y"});
            }),
            "folio.nhwc.Conv PRelu Max Transpose");
}

// y = x * scale + shift of channels, one of which is 1000 times the others.
void normalize(GraphWriter& graph, const std::string& x, const std::string& y, int64_t channels) {
  std::vector<float> variance(static_cast<size_t>(channels), 0.7F);
  variance[0] = 7e-7F;
  graph.initializer(f32_tensor("scale", {channels}, wave(channels, 0.5F)));
  graph.initializer(f32_tensor("bias", {channels}, wave(channels, 1.5F)));
  graph.initializer(f32_tensor("mean", {channels}, wave(channels, 2.5F)));
  graph.initializer(f32_tensor("variance", {channels}, variance));
  graph.node("BatchNormalization", {x, "scale", "bias", "mean", "variance"}, {y})
      .attr_float("epsilon", 1e-7F);
}

// Concat -> BatchNormalization -> Relu -> Conv, as DenseNet has it.
TEST(ChannelsLast, NormalizationFollowsWithItsFunction) {
  const auto rest = [](const std::string& function) {
    return [=](GraphWriter& graph) {
      graph.initializer(f32_tensor("w8", {4, 8, 1, 1}, wave(32)));
      graph.node("Concat", {"c", "c"}, {"cc"}).attr_int("axis", 1);
      normalize(graph, "cc", "n", 8);
      graph.node(function, {"n"}, {"f"});
      graph.node("Conv", {"f", "w8"}, {"y"});
    };
  };
  for (const std::string function : {"Relu", "LeakyRelu", "HardSwish"}) {
    EXPECT_EQ(types_after(rest(function)),
              "folio.nhwc.Conv Concat folio.nhwc.Conv folio.nhwc.Conv Transpose");
  }
  EXPECT_EQ(types_after(rest("Softplus")),
            "folio.nhwc.Conv Concat folio.nhwc.Conv Softplus folio.nhwc.Conv Transpose");
}

TEST(ChannelsLast, WhatIsReadBesideAFunctionIsMade) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Softplus", {"c"}, {"s"});
              normalize(graph, "s", "n", 4);
              graph.node("Relu", {"n"}, {"f"});
              graph.node("Sub", {"n", "f"}, {"y"});
            }),
            "folio.nhwc.Conv Softplus folio.nhwc.Conv Relu Sub Transpose");
}

// Nothing is turned for a normalization alone.
TEST(ChannelsLast, NormalizationBeginsNoRegion) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Transpose", {"c"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
              normalize(graph, "t", "n", 4);
              graph.node("Relu", {"n"}, {"y"});
            }),
            "folio.nhwc.Conv Transpose BatchNormalization Relu");
}

// Conv -> Relu -> LRN -> MaxPool, as AlexNet has it; by itself it is no reason to turn an image.
TEST(ChannelsLast, LrnFollows) {
  const auto normalize = [](GraphWriter& graph, const std::string& x, const std::string& y) {
    graph.node("LRN", {x}, {y}).attr_int("size", 3).attr_float("alpha", 0.5F);
  };
  EXPECT_EQ(types_after(
                [&](GraphWriter& graph) {
                  graph.node("Relu", {"c"}, {"r"});
                  normalize(graph, "r", "l");
                  graph.node("MaxPool", {"l"}, {"y"}).attr_ints("kernel_shape", {2, 2});
                },
                {1, 4, 5, 5}),
            "folio.nhwc.Conv folio.nhwc.LRN folio.nhwc.MaxPool Transpose");
  EXPECT_EQ(types_after([&](GraphWriter& graph) {
              graph.node("Transpose", {"c"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
              normalize(graph, "t", "y");
            }),
            "folio.nhwc.Conv Transpose LRN");
}

// Sums over channels and pixels, or over pixels, with which an image is normalized.
TEST(ChannelsLast, ReductionsFollow) {
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{1, 2, 3}, {-1, 2}, {1}}) {
    EXPECT_EQ(types_after([&](GraphWriter& graph) {
                graph.initializer(i64_tensor("axes", {static_cast<int64_t>(axes.size())}, axes));
                graph.node("ReduceMean", {"c", "axes"}, {"m"});
                graph.node("Sub", {"c", "m"}, {"y"});
              }),
              "folio.nhwc.Conv ReduceMean Sub Transpose");
  }
}

// Without the dims that go, what is left has one order in both forms, or has not.
TEST(ChannelsLast, ReductionsToFewerDims) {
  const auto reduce = [](const std::vector<int64_t>& axes) {
    return [=](GraphWriter& graph) {
      graph.initializer(i64_tensor("axes", {static_cast<int64_t>(axes.size())}, axes));
      graph.node("ReduceMax", {"c", "axes"}, {"y"}).attr_int("keepdims", 0);
    };
  };
  EXPECT_EQ(types_after(reduce({2, 3}), {1, 4}), "folio.nhwc.Conv ReduceMax");
  EXPECT_EQ(types_after(reduce({1}), {1, 6, 6}), "folio.nhwc.Conv ReduceMax");
  EXPECT_EQ(types_after(reduce({3}), {1, 4, 6}), "folio.nhwc.Conv Transpose ReduceMax");
  EXPECT_EQ(types_after(reduce({0, 2}), {4, 6}), "folio.nhwc.Conv Transpose ReduceMax");
}

TEST(ChannelsLast, AxesFollow) {
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {
                  graph.initializer(i64_tensor("pads", {8}, {0, 1, 0, 2, 0, 0, 3, 0}));
                  graph.initializer(i64_tensor("starts", {2}, {1, 0}));
                  graph.initializer(i64_tensor("ends", {2}, {5, 3}));
                  graph.initializer(i64_tensor("axes", {2}, {-1, 1}));
                  graph.initializer(f32_tensor("scales", {4}, {1, 1, 2, 3}));
                  graph.node("Concat", {"c", "c"}, {"cc"}).attr_int("axis", 1);
                  graph.node("Softmax", {"cc"}, {"s"}).attr_int("axis", 1);
                  graph.node("Pad", {"s", "pads"}, {"p"});
                  graph.node("Slice", {"p", "starts", "ends", "axes"}, {"l"});
                  graph.node("Resize", {"l", "", "scales"}, {"y"});
                },
                {1, 3, 18, 12}),
            "folio.nhwc.Conv Concat Softmax Pad Slice Resize Transpose");
}

TEST(ChannelsLast, ATransposeToChannelsLastIsNothing) {
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"c"}, {"t"}).attr_ints("perm", {0, 2, 3, 1});
                  graph.node("Softplus", {"t"}, {"y"});
                },
                {1, 6, 6, 4}),
            "folio.nhwc.Conv Identity Softplus");
}

TEST(ChannelsLast, BothFormsAreThereWhenBothAreRead) {
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {
                  graph.initializer(i64_tensor("flat", {2}, {1, -1}));
                  graph.node("Reshape", {"c", "flat"}, {"r"});
                  graph.node("Conv", {"c", "w2"}, {"d"});
                  graph.node("Reshape", {"d", "flat"}, {"e"});
                  graph.node("Add", {"r", "e"}, {"y"});
                },
                {1, 144}),
            "folio.nhwc.Conv Transpose Reshape folio.nhwc.Conv Transpose Reshape Add");
}

// x [1, 32, 8, 8] -> what a test puts there -> y; the weights' name moves their bytes in the file.
std::string types_of_planes(const Rest& rest, const std::vector<model_writer::Dim>& y,
                            const std::string& w = "w") {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 32, 8, 8}));
  graph.initializer(f32_tensor(w, {32, 32, 1, 1}, wave(1024)));
  graph.initializer(f32_tensor("each", {32, 1, 3, 3}, wave(288)));
  std::vector<float> full = wave(1152);
  for (float& weight : full) weight *= 0.01F;
  graph.initializer(f32_tensor("full", {4, 32, 3, 3}, full));
  graph.initializer(i64_tensor("flat", {2}, {1, -1}));
  rest(graph);
  graph.output("y", f32_type(y));
  fused(writer, {{"x", make_tensor<float>({1, 32, 8, 8}, wave(2048, 0.1F))}});
  const auto model = optimized(writer, Optimize::kAll);
  return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
}

void each_filter(GraphWriter& graph, const std::string& x, const std::string& y) {
  graph.node("Conv", {x, "each"}, {y}).attr_int("group", 32).attr_ints("pads", {1, 1, 1, 1});
}

// Conv 1x1: two Transposes would be all that it gains. Its weights may stand at any address.
TEST(ChannelsLast, OneConvolutionThatWouldBeTurnedAndTurnedBackKeepsChannelsFirst) {
  for (const std::string name : {"w", "ww", "www", "wwww"}) {
    EXPECT_EQ(types_of_planes(
                  [&](GraphWriter& graph) {
                    graph.node("Conv", {"x", name}, {"c"});
                    graph.node("Reshape", {"c", "flat"}, {"y"});
                  },
                  {1, 2048}, name),
              "folio.PlanesConv Reshape");
  }
}

// Conv 1x1 -> Softplus -> filters over one channel each -> Add of what came in.
TEST(ChannelsLast, AShortChainOfSuchConvolutionsKeepsChannelsFirst) {
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  graph.node("Softplus", {"c"}, {"s"});
                  each_filter(graph, "s", "d");
                  graph.node("Max", {"d", "x"}, {"y"});
                },
                {1, 32, 8, 8}),
            "folio.PlanesConv Softplus folio.PlanesConv Max");
}

// However many there are in a row; with more filters, or in short lines, channels come last.
TEST(ChannelsLast, FewFiltersOverDeepImagesKeepChannelsFirst) {
  const auto types_after = [](int64_t filters, int64_t line) {
    ModelWriter writer = plain_model(8, 17);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 4, 5, 6, line}));
    std::vector<float> weights = wave(filters * 4 * 27);
    for (float& weight : weights) weight /= 16;  // four layers keep the size of numbers
    graph.initializer(f32_tensor("a", {filters, 4, 3, 3, 3}, weights));
    graph.initializer(f32_tensor("b", {4, filters, 3, 3, 3}, weights));
    std::string from = "x";
    for (const std::string to : {"c", "d", "e", "y"}) {
      graph.node("Conv", {from, to == "c" || to == "e" ? "a" : "b"}, {to})
          .attr_ints("pads", {1, 1, 1, 1, 1, 1});
      from = to;
    }
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    fused(writer, {{"x", make_tensor<float>({1, 4, 5, 6, line}, wave(120 * line))}});
    const auto model = optimized(writer, Optimize::kAll);
    return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
  };
  const std::string planes = "folio.PlanesConv folio.PlanesConv folio.PlanesConv folio.PlanesConv";
  EXPECT_EQ(types_after(5, 32), planes);
  EXPECT_NE(types_after(5, 16), planes);
  EXPECT_NE(types_after(6, 32), planes);
}

// What turns along gains nothing by itself.
TEST(ChannelsLast, ANormalizationAndAReductionLetChannelsStayFirst) {
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  graph.node("Softplus", {"c"}, {"s"});
                  normalize(graph, "s", "n", 32);
                  graph.initializer(i64_tensor("axes", {2}, {2, 3}));
                  graph.node("ReduceMean", {"n", "axes"}, {"y"});
                },
                {1, 32, 1, 1}),
            "folio.PlanesConv Softplus BatchNormalization ReduceMean");
}

// Three in a row.
TEST(ChannelsLast, ALongerChainOfSuchConvolutionsIsTurned) {
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  each_filter(graph, "c", "d");
                  graph.node("Conv", {"d", "w"}, {"y"});
                },
                {1, 32, 8, 8}),
            "Transpose folio.nhwc.Conv folio.nhwc.Conv folio.nhwc.Conv Transpose");
}

// Conv 1x1 -> Softplus -> Conv 3x3; Conv 1x1 -> MaxPool.
TEST(ChannelsLast, WhatGainsByChannelsLastTakesItsNeighboursWithIt) {
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  graph.node("Softplus", {"c"}, {"s"});
                  graph.node("Conv", {"s", "full"}, {"y"});
                },
                {1, 4, 6, 6}),
            "Transpose folio.nhwc.Conv Softplus folio.nhwc.Conv Transpose");
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  graph.node("MaxPool", {"c"}, {"y"}).attr_ints("kernel_shape", {2, 2});
                },
                {1, 32, 7, 7}),
            "Transpose folio.nhwc.Conv folio.nhwc.MaxPool Transpose");
}

// Conv 1x1 -> Transpose to channels last; Transpose from channels last -> Conv 1x1.
TEST(ChannelsLast, ATransposeThatIsThereAnywayIsMet) {
  EXPECT_EQ(types_of_planes(
                [](GraphWriter& graph) {
                  graph.node("Conv", {"x", "w"}, {"c"});
                  graph.node("Transpose", {"c"}, {"y"}).attr_ints("perm", {0, 2, 3, 1});
                },
                {1, 8, 8, 32}),
            "Transpose folio.nhwc.Conv Identity");
}

// x [1, 4, 5, 5] of bytes through convolution, sum, maximum and average of com.microsoft.
// Found by RandomGraphs: a Transpose as of an image with channels last, but of one with channels
// first, which has a twin that the Transpose reads instead; the next convolution wants the image.
TEST(ChannelsLast, ATransposeOfAnImageThatHasATwinLeavesTheImageThere) {
  const std::string types = types_after(
      [](GraphWriter& graph) {
        graph.node("Transpose", {"c"}, {"t"}).attr_ints("perm", {0, 3, 1, 2});
        graph.initializer(f32_tensor("w6", {16, 6, 1, 1}, wave(96)));
        graph.node("Conv", {"t", "w6"}, {"y"}).attr_ints("strides", {2, 2});
      },
      {1, 16, 2, 3});
  EXPECT_EQ(types, "folio.nhwc.Conv Transpose folio.nhwc.Conv Transpose");
}

TEST(ChannelsLast, BytesFollowToo) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  writer.opset("com.microsoft", 1);
  graph.input("x", f32_type({1, 4, 5, 5}));
  graph.initializer(f32_tensor("s", {}, {0.02F}));
  graph.initializer(
      model_writer::TensorWriter("z", model_writer::ElementType::kUint8, {}).raw("\x80"));
  graph.initializer(model_writer::TensorWriter("wz", model_writer::ElementType::kInt8, {})
                        .raw(std::string(1, '\0')));
  graph.initializer(model_writer::TensorWriter("w", model_writer::ElementType::kInt8, {4, 4, 1, 1})
                        .raw("\x01\x02\x03\xfc\x05\x06\xf7\x08\x09\x0a\x0b\xfc\x0d\x0e\x0f\x10"));
  graph.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  graph.node("QLinearConv", {"q", "s", "z", "w", "s", "wz", "s", "z"}, {"c"});
  graph.node("QLinearConv", {"c", "s", "z", "w", "s", "wz", "s", "z"}, {"d"});
  graph.node("QLinearAdd", {"c", "s", "z", "d", "s", "z", "s", "z"}, {"e"})
      .in_domain("com.microsoft");
  graph.node("MaxPool", {"e"}, {"m"}).attr_ints("kernel_shape", {2, 2});
  graph.node("QLinearGlobalAveragePool", {"m", "s", "z", "s", "z"}, {"g"})
      .in_domain("com.microsoft");
  graph.node("DequantizeLinear", {"g", "s", "z"}, {"y"});
  graph.output("y", f32_type({1, 4, 1, 1}));
  fused(writer, {{"x", make_tensor<float>({1, 4, 5, 5}, wave(100))}});
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph),
            "QuantizeLinear Transpose com.microsoft.QLinearConv folio.QLinearConvAdd "
            "com.microsoft.NhwcMaxPool "
            "com.microsoft.QLinearGlobalAveragePool DequantizeLinear Transpose");
}

// x [1, 3, 6, 6] as codes of scale s and zero point z: d are their floats.
void quantized_image(GraphWriter& graph) {
  graph.input("x", f32_type({1, 3, 6, 6}));
  graph.initializer(f32_tensor("s", {}, {0.02F}));
  graph.initializer(
      model_writer::TensorWriter("z", model_writer::ElementType::kUint8, {}).raw("\x80"));
  graph.node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  graph.node("DequantizeLinear", {"q", "s", "z"}, {"d"});
}

// The operators after c [1, 4, 6, 6] became codes and floats again; results compared by fused().
std::string types_around(ModelWriter& writer) {
  GraphWriter& graph = writer.graph();
  graph.node("QuantizeLinear", {"c", "s", "z"}, {"p"});
  graph.node("DequantizeLinear", {"p", "s", "z"}, {"y"});
  graph.output("y", f32_type({1, 4, 6, 6}));
  fused(writer, {{"x", make_tensor<float>({1, 3, 6, 6}, wave(108))}});
  const auto model = optimized(writer, Optimize::kAll);
  return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
}

TEST(ChannelsLast, FloatsBetweenCodesKeepTheOrderOfTheirSums) {
  // Weights of 4 bits: fuse_qdq leaves them to floats.
  ModelWriter writer = plain_model(10, 21);
  GraphWriter& graph = writer.graph();
  quantized_image(graph);
  graph.initializer(model_writer::TensorWriter("w", model_writer::ElementType::kInt4, {4, 3, 1, 1})
                        .raw("\x21\x43\x65\x17\x1f\x2e"));
  graph.node("DequantizeLinear", {"w", "s"}, {"v"});
  graph.node("Conv", {"d", "v"}, {"c"});
  EXPECT_EQ(types_around(writer),
            "QuantizeLinear DequantizeLinear Conv QuantizeLinear DequantizeLinear");
}

// Sums of other weights do not stand in the middle between two codes.
TEST(ChannelsLast, FloatWeightsBetweenCodesFollow) {
  ModelWriter writer = plain_model(10, 21);
  GraphWriter& graph = writer.graph();
  quantized_image(graph);
  graph.initializer(f32_tensor("w", {4, 3, 1, 1}, wave(12)));
  graph.node("Conv", {"d", "w"}, {"c"});
  EXPECT_EQ(types_around(writer),
            "QuantizeLinear DequantizeLinear Transpose folio.nhwc.Conv QuantizeLinear "
            "DequantizeLinear Transpose");
}

// Nor is one scale for each filter, or a filter of zeros, a reason to follow.
TEST(ChannelsLast, NarrowCodesAreSeenWithOneScaleAFilter) {
  ModelWriter writer = plain_model(10, 21);
  GraphWriter& graph = writer.graph();
  quantized_image(graph);
  graph.initializer(f32_tensor("ws", {4}, {0.013F, 0.17F, 0.00091F, 0.3F}));
  graph.initializer(model_writer::TensorWriter("w", model_writer::ElementType::kInt4, {4, 3, 1, 1})
                        .raw(std::string("\x21\x43\x65\x17\x0f\x00", 6)));
  graph.node("DequantizeLinear", {"w", "ws"}, {"v"}).attr_int("axis", 0);
  graph.node("Conv", {"d", "v"}, {"c"});
  graph.node("QuantizeLinear", {"c", "s", "z"}, {"y"});
  graph.output("y", model_writer::Type::tensor(model_writer::ElementType::kUint8, {1, 4, 6, 6}));
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph), "QuantizeLinear DequantizeLinear Conv QuantizeLinear");
}

// x [1, channels, 6, 6] -> what `before` makes of it, c -> Conv -> y.
std::string types_of_first(int64_t channels, const Shape& x, const Rest& before) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({x[0], x[1], x[2], x[3]}));
  graph.initializer(f32_tensor("w", {4, channels, 3, 3}, wave(static_cast<size_t>(36 * channels))));
  before(graph);
  graph.node("Conv", {"c", "w"}, {"y"});
  graph.output("y", f32_type({1, 4, 4, 4}));
  fused(writer, {{"x", make_tensor<float>(x, wave(static_cast<size_t>(36 * channels)))}});
  const auto model = optimized(writer, Optimize::kAll);
  return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
}

TEST(ChannelsLast, AnImageIsReadAsItLiesWhereThatIsCheaperThanTurningIt) {
  const Rest relu = [](GraphWriter& graph) { graph.node("Softplus", {"x"}, {"c"}); };
  EXPECT_EQ(types_of_first(3, {1, 3, 6, 6}, relu), "Softplus folio.nhwc.Conv Transpose");
  EXPECT_EQ(types_of_first(9, {1, 9, 6, 6}, relu), "Softplus Transpose folio.nhwc.Conv Transpose");
  // What came with channels last already.
  const Rest turned = [](GraphWriter& graph) {
    graph.node("Transpose", {"x"}, {"c"}).attr_ints("perm", {0, 3, 1, 2});
  };
  EXPECT_EQ(types_of_first(3, {1, 6, 6, 3}, turned), "folio.nhwc.Conv Transpose");
}

TEST(ChannelsLast, GraphsWithoutConvolutionsStay) {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({1, 2, 4, 4}));
  writer.graph().node("MaxPool", {"x"}, {"p"}).attr_ints("kernel_shape", {2, 2});
  writer.graph().node("Softplus", {"p"}, {"y"});
  writer.graph().output("y", f32_type({1, 2, 3, 3}));
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok());
  EXPECT_EQ(types_of(model.value()->graph), "MaxPool Softplus");
}

TEST(ChannelsLast, ComputedWeightsOfKnownShapeAreTakenAsTheyLie) {
  const auto types = [](const std::vector<model_writer::Dim>& w) {
    ModelWriter writer = plain_model();
    writer.graph().input("x", f32_type({1, 2, 4, 4}));
    writer.graph().input("w", f32_type(w));
    writer.graph().node("Exp", {"w"}, {"e"});
    writer.graph().node("Conv", {"x", "e"}, {"y"}).attr_ints("pads", {1, 1, 1, 1});
    writer.graph().output("y", f32_type({1, 3, 4, 4}));
    fused(writer, {{"x", make_tensor<float>({1, 2, 4, 4}, wave(32, 0.1F))},
                   {"w", make_tensor<float>({3, 2, 3, 3}, wave(54))}});
    const auto model = optimized(writer, Optimize::kAll);
    EXPECT_TRUE(model.is_ok()) << text_of(model.status());
    return model.is_ok() ? types_of(model.value()->graph) : "";
  };
  EXPECT_EQ(types({3, 2, 3, 3}), "Exp folio.nhwc.Conv Transpose");
  EXPECT_EQ(types({model_writer::Dim("filters"), 2, 3, 3}), "Exp Conv");
}

// Few filters leave most of a vector empty.
TEST(ChannelsLast, TransposedConvolutionsTakeTheirFunctions) {
  const auto types = [](int64_t filters) {
    return types_after(
        [filters](GraphWriter& graph) {
          graph.initializer(f32_tensor("v", {4, filters, 2, 2}, wave(16 * filters)));
          graph.initializer(f32_tensor("b", {filters}, wave(filters)));
          graph.node("ConvTranspose", {"c", "v", "b"}, {"t"}).attr_ints("strides", {2, 2});
          graph.node("Relu", {"t"}, {"r"});
          graph.node("MaxPool", {"r"}, {"y"}).attr_ints("kernel_shape", {2, 2});
        },
        {1, filters, 11, 11});
  };
  EXPECT_EQ(types(8), "folio.nhwc.Conv folio.nhwc.ConvTranspose folio.nhwc.MaxPool Transpose");
  EXPECT_EQ(types(7), "folio.nhwc.Conv Transpose ConvTranspose Relu MaxPool");
}

}  // namespace
}  // namespace folio
