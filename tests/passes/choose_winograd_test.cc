// choose_winograd: which convolutions compute by Winograd's algorithm.
#include <gtest/gtest.h>

#include "core/ops/op_winograd.h"
#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::ModelWriter;

struct ConvCase {
  int64_t channels = 16, filters = 16, image = 16, kernel = 3;
  int64_t group = 1, stride = 1, dilation = 1;
  bool is_known = true;       // height and width
  bool has_constants = true;  // as weights; else inputs
};

ModelWriter conv_model(const ConvCase& c, int64_t count = 1) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  const auto side = c.is_known ? model_writer::Dim(c.image) : model_writer::Dim("side");
  graph.input("x0", f32_type({model_writer::Dim("batch"), c.channels, side, side}));
  for (int64_t i = 0; i < count; ++i) {
    const std::string at = std::to_string(i);
    const int64_t pad = c.kernel / 2 * c.dilation;
    const std::vector<int64_t> w = {c.filters, c.channels / c.group, c.kernel, c.kernel};
    if (c.has_constants) {
      graph.initializer(f32_tensor("w" + at, w, wave(w[0] * w[1] * w[2] * w[3])));
    } else {
      graph.input("w" + at, f32_type({w.begin(), w.end()}));
    }
    graph.node("Conv", {"x" + at, "w" + at}, {"x" + std::to_string(i + 1)})
        .attr_int("group", c.group)
        .attr_ints("strides", {c.stride, c.stride})
        .attr_ints("dilations", {c.dilation, c.dilation})
        .attr_ints("pads", {pad, pad, pad, pad});
  }
  graph.output("x" + std::to_string(count),
               f32_type({model_writer::Dim("batch"), c.filters, model_writer::Dim("h"),
                         model_writer::Dim("w")}));
  return writer;
}

int chosen(const ModelWriter& writer) {
  const auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  int before = 0;
  for (const Node& node : model.value()->graph.nodes) before += node.attributes.has("winograd");
  EXPECT_EQ(before, 0) << "run_passes alone chooses none";
  choose_winograd(model.value().get());
  int count = 0;
  for (const Node& node : model.value()->graph.nodes) count += node.attributes.has("winograd");
  return count;
}

int chosen(const ConvCase& c) { return chosen(conv_model(c)); }

TEST(ChooseWinograd, TakesConvolutionsWithStride1) {
  EXPECT_EQ(chosen(ConvCase{}), 1);
  EXPECT_EQ(chosen(ConvCase{.filters = 40}), 1);
  EXPECT_EQ(chosen(ConvCase{.group = 2}), 0);
  EXPECT_EQ(chosen(ConvCase{.group = 16}), 0);
  EXPECT_EQ(chosen(ConvCase{.stride = 2}), 0);
  for (const auto& [kernel, taken] : {std::pair{1, 0}, {3, 1}, {5, 1}, {7, 1}, {9, 1}, {11, 0}}) {
    EXPECT_EQ(chosen(ConvCase{.kernel = kernel}), taken) << kernel;
  }
}

TEST(ChooseWinograd, LeavesFewChannelsAndSmallImages) {
  EXPECT_EQ(chosen(ConvCase{.channels = 7}), 0);
  EXPECT_EQ(chosen(ConvCase{.filters = 7}), 0);
  EXPECT_EQ(chosen(ConvCase{.channels = 9}), 1);
  EXPECT_EQ(chosen(ConvCase{.filters = 8}), 1);
  EXPECT_EQ(chosen(ConvCase{.image = 7}), 0);
  EXPECT_EQ(chosen(ConvCase{.image = 10}), 1);
}

// Up to eight channels of an image that has them first are read as they lie, as planes.
TEST(ChooseWinograd, LeavesConvolutionsThatReadPlanes) {
  const ConvCase c{.channels = 8, .filters = 8};
  EXPECT_EQ(chosen(conv_model(c, 1)), 0);
  EXPECT_EQ(chosen(conv_model(c, 3)), 2);
  EXPECT_EQ(chosen(conv_model({.channels = 7, .filters = 7}, 3)), 0) << "too few";
}

// Of 2 x 2 taps a full tile takes 36 products for 64, of 4 x 4 144 for 256: 17 x 17 outputs are
// covered by 20 x 20.
TEST(ChooseWinograd, WantsThatTilesOfEvenFiltersAreFull) {
  for (const int64_t kernel : {2, 4}) {
    ConvCase c{.channels = 64, .filters = 64, .image = 15, .kernel = kernel};
    EXPECT_EQ(chosen(c), 1) << kernel;
    c.image = 16;
    EXPECT_EQ(chosen(c), 0) << kernel;
  }
}

// A tile's transforms take as long for each channel of each piece, whatever the other side has.
TEST(ChooseWinograd, WantsThatProductsAreMostOfTheWork) {
  EXPECT_EQ(chosen(ConvCase{.image = 9}), 0);
  EXPECT_EQ(chosen(ConvCase{.channels = 32, .filters = 32, .image = 9}), 1);
  EXPECT_EQ(chosen(ConvCase{.channels = 32, .filters = 32, .image = 31, .kernel = 4}), 1);
  EXPECT_EQ(chosen(ConvCase{.image = 31, .kernel = 4}), 0);
}

// Outputs that are the dilation apart are tiles of their own: 16 x 16 are four of 8 x 8, sixteen of
// 4 x 4, nine of 6 x 6, whose tiles cover 8 x 8 and 2.25 times as much, and 64 of 2 x 2, each of
// which would take a tile that covers four times as much.
TEST(ChooseWinograd, TakesDilatedOnesWhoseTilesAreFull) {
  for (const auto& [dilation, taken] : {std::pair{2, 1}, {4, 1}, {3, 1}, {8, 0}, {100, 0}}) {
    const ConvCase c{.channels = 64, .filters = 64, .dilation = dilation};
    EXPECT_EQ(chosen(c), taken) << dilation;
  }
}

// Cubes of `depth` squares, over `slices` of 16 x 16.
ModelWriter cube_model(int64_t depth, int64_t slices, const std::vector<int64_t>& strides) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  const int64_t pad = depth / 2;
  graph.input("x", f32_type({1, 16, slices, 16, 16}));
  graph.initializer(f32_tensor("w", {16, 16, depth, 3, 3}, wave(16 * 16 * depth * 9)));
  graph.node("Conv", {"x", "w"}, {"y"})
      .attr_ints("strides", strides)
      .attr_ints("pads", {pad, 1, 1, pad, 1, 1});
  graph.output("y", f32_type({1, 16, model_writer::Dim("d"), model_writer::Dim("h"),
                              model_writer::Dim("w")}));
  return writer;
}

TEST(ChooseWinograd, TakesCubesAsTheirSquares) {
  for (const auto& [depth, taken] : {std::pair{1, 1}, {2, 1}, {3, 1}, {5, 1}, {9, 1}, {11, 0}}) {
    EXPECT_EQ(chosen(cube_model(depth, 8, {1, 1, 1})), taken) << depth;
  }
  EXPECT_EQ(chosen(cube_model(3, 1, {1, 1, 1})), 1);
  EXPECT_EQ(chosen(cube_model(3, 8, {2, 1, 1})), 0);
  EXPECT_EQ(chosen(cube_model(3, 8, {1, 2, 2})), 0);
}

// Filters along a line, of an image [batch, channels, width] or, with a height, of its lines.
struct LineCase {
  int64_t channels = 32, filters = 32, width = 56, taps = 3;
  int64_t stride = 1, dilation = 1, group = 1;
  int64_t height = 0;
  bool is_column = false;  // height and width change places
};

ModelWriter line_model(const LineCase& c) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  std::vector<model_writer::Dim> x = {1, c.channels};
  std::vector<int64_t> w = {c.filters, c.channels / c.group};
  std::vector<int64_t> strides, dilations, begin;
  std::vector<model_writer::Dim> y = {1, c.filters};
  if (c.height > 0) {
    x.push_back(c.height), w.push_back(1), strides.push_back(1), dilations.push_back(1);
    begin.push_back(0), y.push_back(c.height);
  }
  x.push_back(c.width), w.push_back(c.taps), strides.push_back(c.stride);
  dilations.push_back(c.dilation), begin.push_back(0), y.push_back(model_writer::Dim("out"));
  if (c.is_column) {
    std::swap(x[2], x[3]), std::swap(w[2], w[3]), std::swap(strides[0], strides[1]);
    std::swap(dilations[0], dilations[1]), std::swap(y[2], y[3]);
  }
  std::vector<int64_t> pads = begin;
  pads.insert(pads.end(), begin.begin(), begin.end());
  pads[pads.size() - (c.is_column ? 2 : 1)] = (c.taps - 1) * c.dilation;
  graph.input("x", f32_type(x));
  graph.initializer(f32_tensor("w", w, wave(c.filters * (c.channels / c.group) * c.taps)));
  graph.node("Conv", {"x", "w"}, {"y"})
      .attr_int("group", c.group)
      .attr_ints("strides", strides)
      .attr_ints("dilations", dilations)
      .attr_ints("pads", pads);
  graph.output("y", f32_type(y));
  return writer;
}

int chosen(const LineCase& c) { return chosen(line_model(c)); }

TEST(ChooseWinograd, TakesFiltersAlongLines) {
  for (const int64_t height : {0, 1, 5}) {
    SCOPED_TRACE(height);
    EXPECT_EQ(chosen(LineCase{.height = height}), 1);
    EXPECT_EQ(chosen(LineCase{.dilation = 3, .height = height}), 1);
    EXPECT_EQ(chosen(LineCase{.stride = 2, .height = height}), 0);
    EXPECT_EQ(chosen(LineCase{.group = 2, .height = height}), 0);
    EXPECT_EQ(chosen(LineCase{.channels = 31, .height = height}), 0);
    EXPECT_EQ(chosen(LineCase{.filters = 31, .height = height}), 0);
  }
  EXPECT_EQ(chosen(LineCase{.height = 5, .is_column = true}), 1);
  EXPECT_EQ(chosen(LineCase{.taps = 2, .height = 5, .is_column = true}), 0);
  EXPECT_EQ(chosen(LineCase{.width = 52}), 0) << "13 tiles";
  EXPECT_EQ(chosen(LineCase{.width = 28, .height = 2}), 1);
}

TEST(ChooseWinograd, LinesHaveThreeTapsAtLeast) {
  for (const auto& [taps, taken] :
       {std::pair{1, 0}, {2, 0}, {3, 1}, {4, 1}, {5, 1}, {7, 1}, {11, 1}, {33, 1}, {34, 0}}) {
    EXPECT_EQ(chosen(LineCase{.taps = taps}), taken) << taps;
  }
}

// What it is behind strides of 2 says how large it is.
TEST(ChooseWinograd, TakesImagesThatOnlyARunKnowsForUsualOnes) {
  EXPECT_EQ(chosen(ConvCase{.is_known = false}), 1);
  for (const int halvings : {4, 5}) {  // of 224: 14 and 7
    ModelWriter writer = plain_model();
    auto& graph = writer.graph();
    graph.input("x0", f32_type({1, 16, model_writer::Dim("h"), model_writer::Dim("w")}));
    graph.initializer(f32_tensor("w", {16, 16, 3, 3}, wave(16 * 16 * 9)));
    for (int i = 0; i < halvings; ++i) {
      graph.node("Conv", {"x" + std::to_string(i), "w"}, {"x" + std::to_string(i + 1)})
          .attr_ints("strides", {2, 2})
          .attr_ints("pads", {1, 1, 1, 1});
    }
    graph.node("Conv", {"x" + std::to_string(halvings), "w"}, {"y"})
        .attr_ints("pads", {1, 1, 1, 1});
    graph.output("y", f32_type({1, 16, model_writer::Dim("a"), model_writer::Dim("b")}));
    EXPECT_EQ(chosen(writer), halvings == 4 ? 1 : 0) << halvings;
  }
}

// 14 x 14 outputs are 16 tiles.
// More than is usual: of filters that gain most, too.
TEST(ChooseWinograd, WantsAsManyTilesAsItIsTold) {
  const auto count = [](const ConvCase& c, int64_t fewest) {
    const auto model = optimized(conv_model(c), Optimize::kAll);
    EXPECT_TRUE(model.is_ok()) << text_of(model.status());
    choose_winograd(model.value().get(), {fewest, false});
    int taken = 0;
    for (const Node& node : model.value()->graph.nodes) taken += node.attributes.has("winograd");
    return taken;
  };
  EXPECT_EQ(count({.image = 14}, 16), 1);
  EXPECT_EQ(count({.image = 14}, 17), 0);
  EXPECT_EQ(count({.image = 40, .kernel = 5}, kWinogradTiles), 1);
  EXPECT_EQ(count({.image = 40, .kernel = 5}, 16), 0);
}

bool is_packed(const Node& node) {
  const auto how = node.attributes.get_int("winograd", 0);
  return how.is_ok() && how.value() == kWinogradPacked;
}

int packed_of(const ModelWriter& writer) {
  const auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  choose_winograd(model.value().get());
  int count = 0;
  for (const Node& node : model.value()->graph.nodes) count += is_packed(node);
  return count;
}

// A weight of 128 x 128 takes 1.69 MiB more: nine of them are below 16 MiB, and half of the weights
// themselves is not that much. Each run transforms the others.
TEST(ChooseWinograd, PacksWithinItsBudget) {
  const ConvCase c{.channels = 128, .filters = 128};
  EXPECT_EQ(packed_of(conv_model(c, 9)), 9);
  EXPECT_EQ(packed_of(conv_model(c, 12)), 9);
  EXPECT_EQ(chosen(conv_model(c, 12)), 12);
}

// 9 x 9 outputs take 9 tiles, 0.44 of the products, and with the weights 0.74.
TEST(ChooseWinograd, BeyondItsBudgetLeavesWhatTransformsOfWeightsDoNotRepay) {
  const ConvCase c{.channels = 128, .filters = 128, .image = 9};
  EXPECT_EQ(packed_of(conv_model(c, 12)), 9);
  EXPECT_EQ(chosen(conv_model(c, 12)), 9);
}

TEST(ChooseWinograd, ComputedWeightsAreTransformedByEachRun) {
  const ConvCase c{.channels = 128, .filters = 128, .has_constants = false};
  EXPECT_EQ(packed_of(conv_model(c, 12)), 0);
  EXPECT_EQ(chosen(conv_model(c, 12)), 12);
}

TEST(ChooseWinograd, TakesLargeImagesFirst) {
  // Behind twelve such weights one of a larger image, which takes the place of the last.
  ModelWriter writer = conv_model({.channels = 128, .filters = 128}, 12);
  auto& graph = writer.graph();
  graph.input("z", f32_type({1, 128, 20, 20}));
  graph.initializer(f32_tensor("wz", {128, 128, 3, 3}, wave(128 * 128 * 9)));
  graph.node("Conv", {"z", "wz"}, {"yz"}).attr_ints("pads", {1, 1, 1, 1});
  graph.output("yz", f32_type({1, 128, 20, 20}));
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  choose_winograd(model.value().get());
  int count = 0;
  bool is_large_chosen = false;
  for (const Node& node : model.value()->graph.nodes) {
    if (!is_packed(node)) continue;
    ++count;
    const Initializer& w = *model.value()->graph.value(node.inputs[1]).initializer;
    is_large_chosen |= w.name == "wz";
  }
  EXPECT_EQ(count, 9);
  EXPECT_TRUE(is_large_chosen);
}

}  // namespace
}  // namespace folio
