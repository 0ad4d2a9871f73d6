// chain_convs: which convolutions become one step, which has the bits of several.
#include <gtest/gtest.h>

#include "core/ops/op_nhwc.h"
#include "tests/passes/conv_tester.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::ModelWriter;

struct ChainCase {
  int64_t batch = 1, in = 3, between = 32, side = 100;
  int64_t kernel = 1;  // of the first
  int64_t kernel2 = 3, stride = 1, dilation = 1;
  std::vector<int64_t> pads = {1, 1, 1, 1};
  int64_t out = 0;      // filters of the last; 0: there is none
  int64_t kernel3 = 1;  // of it
  bool has_bias = true;
  bool has_sum = false;        // the last one adds x
  bool first_is_read = false;  // what it makes is an output too
  bool filter_is_read = false;
  bool is_known = true;  // height and width
  bool is_pool = false;  // MaxPool in place of the filter, which has no function
  int64_t ceil_mode = 0;
};

ModelWriter chain_model(const ChainCase& c) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  const Dim side = c.is_known ? Dim(c.side) : Dim("side");
  const auto weights = [&](const char* name, int64_t m, int64_t channels, int64_t kernel) {
    const auto count = m * channels * kernel * kernel;
    graph.initializer(f32_tensor(name, {m, channels, kernel, kernel}, wave(count)));
  };
  const auto inputs = [&](const char* x, const char* w, const char* b) {
    return c.has_bias ? std::vector<std::string>{x, w, b} : std::vector<std::string>{x, w};
  };
  const auto image = [](int64_t channels) {
    return f32_type({Dim("n"), channels, Dim("h"), Dim("w")});
  };
  graph.input("x", f32_type({Dim("batch"), c.in, side, side}));
  graph.initializer(f32_tensor("b", {c.between}, wave(c.between)));
  weights("w1", c.between, c.in, c.kernel);
  const int64_t margin = c.kernel / 2;
  graph.node("Conv", inputs("x", "w1", "b"), {"y"})
      .attr_ints("pads", {margin, margin, margin, margin});
  graph.node("Relu", {"y"}, {"r"});
  if (c.first_is_read) graph.output("r", image(c.between));
  if (c.is_pool) {
    graph.node("MaxPool", {"r"}, {"f"})
        .attr_ints("kernel_shape", {c.kernel2, c.kernel2})
        .attr_ints("strides", {c.stride, c.stride})
        .attr_ints("dilations", {c.dilation, c.dilation})
        .attr_int("ceil_mode", c.ceil_mode)
        .attr_ints("pads", c.pads);
  } else {
    weights("w2", c.between, 1, c.kernel2);
    graph.node("Conv", inputs("r", "w2", "b"), {"z"})
        .attr_int("group", c.between)
        .attr_ints("strides", {c.stride, c.stride})
        .attr_ints("dilations", {c.dilation, c.dilation})
        .attr_ints("pads", c.pads);
    graph.node("HardSwish", {"z"}, {"f"});
  }
  if (c.out == 0 || c.filter_is_read) graph.output("f", image(c.between));
  if (c.out == 0) return writer;
  weights("w3", c.out, c.between, c.kernel3);
  graph.initializer(f32_tensor("b3", {c.out}, wave(c.out)));
  const int64_t same = c.kernel3 / 2;
  graph.node("Conv", inputs("f", "w3", "b3"), {c.has_sum ? "s" : "out"})
      .attr_ints("pads", {same, same, same, same});
  if (c.has_sum) graph.node("Add", {"s", "x"}, {"out"});
  graph.output("out", image(c.out));
  return writer;
}

// The steps of the only chain, -1 where there is none.
int steps(const ChainCase& c) {
  const auto model = optimized(chain_model(c), Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -2;
  choose_winograd(model.value().get());
  chain_convs(model.value().get());
  int found = -1;
  for (const Node& node : model.value()->graph.nodes) {
    if (node.dead || node.op_type != "ConvChain") continue;
    EXPECT_EQ(found, -1);
    found = 0;
    for (size_t i = 1; i < 10; i += 3) found += i < node.inputs.size() && node.inputs[i] != kNone;
    found += node.attributes.has("filter.kernel_shape");  // MaxPool
  }
  return found;
}

TEST(ChainConvs, TakesALargeImageBetweenAProductAndADepthwiseFilter) {
  EXPECT_EQ(steps({}), 2);
  EXPECT_EQ(steps({.has_bias = false}), 2);
  EXPECT_EQ(steps({.kernel = 3}), 2);
  EXPECT_EQ(steps({.kernel2 = 5, .stride = 2, .dilation = 2}), 2);
  EXPECT_EQ(steps({.is_known = false}), 2) << "a run decides";
}

TEST(ChainConvs, TakesTheProductOfPixelsAfterTheFilter) {
  EXPECT_EQ(steps({.out = 24}), 3);
  EXPECT_EQ(steps({.in = 24, .out = 24, .has_sum = true}), 3);
  EXPECT_EQ(steps({.out = 24, .is_known = false}), 3);
  EXPECT_EQ(steps({.in = 32, .out = 24, .first_is_read = true}), 2) << "the filter and the last";
}

TEST(ChainConvs, TakesMaxPoolInPlaceOfTheFilter) {
  EXPECT_EQ(steps({.is_pool = true}), 2);
  EXPECT_EQ(steps({.stride = 2, .out = 24, .is_pool = true}), 2) << "the pool makes little";
  EXPECT_EQ(steps({.out = 24, .is_pool = true}), 3);
  EXPECT_EQ(steps({.is_known = false, .is_pool = true}), 2);
  EXPECT_EQ(steps({.kernel2 = 5, .is_pool = true}), -1) << "one axis after the other";
  EXPECT_EQ(steps({.side = 90, .is_pool = true}), -1) << "little between";
  EXPECT_EQ(steps({.out = 24, .first_is_read = true, .is_pool = true}), -1) << "nothing before it";
}

TEST(ChainConvs, LeavesWhatACacheKeepsAndWhatOthersRead) {
  EXPECT_EQ(steps({.side = 90}), -1) << "259200 floats";
  EXPECT_EQ(steps({.first_is_read = true}), -1);
  EXPECT_EQ(steps({.in = 16, .kernel = 3}), -1) << "by Winograd's algorithm";
  EXPECT_EQ(steps({.in = 2100}), -1) << "packing the weights at each call would take too long";
  EXPECT_EQ(steps({.out = 24, .filter_is_read = true}), 2);
  EXPECT_EQ(steps({.stride = 2, .out = 24}), 2) << "80000 floats after the filter";
  EXPECT_EQ(steps({.out = 24, .kernel3 = 3}), 2) << "a window";
  EXPECT_EQ(steps({.out = 2100}), 2) << "many weights";
}

// Outputs of the first run, and of one with packed weights.
std::vector<std::vector<float>> outputs(const ChainCase& c, int threads) {
  const auto count = static_cast<size_t>(c.batch * c.in * c.side * c.side);
  std::vector<float> image(count);
  for (size_t i = 0; i < count; ++i) image[i] = static_cast<float>(i % 251) / 125.0F - 1.0F;
  const Value x(make_tensor<float>(Shape{c.batch, c.in, c.side, c.side}, image));
  std::vector<std::vector<float>> out;
  for (const auto& run : floats_of_runs(chain_model(c), {{"x", x}}, threads)) {
    out.push_back(run.back());
  }
  return out;
}

TEST(ConvChain, HasTheBitsOfSeveralSteps) {
  const ChainCase cases[] = {
      {},
      {.batch = 3},
      {.has_bias = false},
      {.kernel = 3},
      {.stride = 2, .pads = {0, 0, 1, 1}},
      {.stride = 2, .pads = {1, 0, 2, 1}},
      {.kernel2 = 5, .stride = 3, .dilation = 2, .pads = {4, 4, 4, 4}},
      {.kernel2 = 5, .pads = {0, 0, 0, 0}},
      {.kernel2 = 3, .stride = 1, .dilation = 40, .pads = {40, 40, 40, 40}},
      {.dilation = 5000, .pads = {5000, 5000, 5000, 5000}},
      {.between = 1100, .side = 17},
      {.side = 120, .kernel2 = 1, .stride = 5, .pads = {0, 0, 0, 0}},
      {.batch = 2, .side = 40, .is_known = false},
      {.batch = 2, .kernel = 3, .is_known = false},
      {.out = 24},
      {.batch = 2, .in = 40, .out = 40, .has_sum = true},
      {.batch = 2, .out = 5, .first_is_read = true},
      {.side = 203, .stride = 2, .out = 7, .has_bias = false},
      {.kernel2 = 5, .dilation = 3, .pads = {6, 0, 1, 6}, .out = 33},
      {.batch = 2, .side = 40, .out = 24, .is_known = false},
      {.side = 110, .stride = 2, .out = 24, .is_known = false},
      {.stride = 2, .is_pool = true},
      {.batch = 2, .kernel2 = 2, .stride = 2, .pads = {0, 0, 0, 0}, .is_pool = true},
      {.side = 111, .stride = 2, .pads = {0, 0, 0, 0}, .is_pool = true, .ceil_mode = 1},
      {.kernel = 3, .stride = 1, .dilation = 2, .pads = {2, 0, 2, 1}, .is_pool = true},
      {.batch = 2, .side = 40, .is_known = false, .is_pool = true},
      {.batch = 2, .out = 40, .is_pool = true},
  };
  for (const ChainCase& c : cases) {
    SCOPED_TRACE("case " + std::to_string(&c - cases));
    EXPECT_GT(steps(c), 1);
    ChainCase apart = c;
    apart.first_is_read = apart.filter_is_read = true;
    EXPECT_EQ(steps(apart), -1);
    const auto expected = outputs(apart, 1);
    ASSERT_EQ(expected.size(), 2U);
    for (const int threads : {1, 2, 5}) {
      const auto got = outputs(c, threads);
      ASSERT_EQ(got.size(), 2U);
      EXPECT_EQ(got[0], expected[0]) << threads;
      EXPECT_EQ(got[1], expected[1]) << threads;
    }
  }
}

}  // namespace
}  // namespace folio
