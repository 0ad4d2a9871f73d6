// pair_convs: which convolutions become one step, which has the bits of two.
#include <gtest/gtest.h>

#include "core/ops/op_nhwc.h"
#include "tests/passes/pass_tester.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::ModelWriter;

struct PairCase {
  int64_t batch = 1, in = 3, between = 32, side = 100;
  int64_t kernel = 1;  // of the first
  int64_t kernel2 = 3, stride = 1, dilation = 1;
  std::vector<int64_t> pads = {1, 1, 1, 1};
  bool has_bias = true;
  bool is_read_twice = false;  // what stands between them is an output too
  bool is_known = true;        // height and width
};

ModelWriter pair_model(const PairCase& c) {
  ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  const Dim side = c.is_known ? Dim(c.side) : Dim("side");
  graph.input("x", f32_type({Dim("batch"), c.in, side, side}));
  graph.initializer(f32_tensor("w1", {c.between, c.in, c.kernel, c.kernel},
                               wave(c.between * c.in * c.kernel * c.kernel)));
  graph.initializer(f32_tensor("w2", {c.between, 1, c.kernel2, c.kernel2},
                               wave(c.between * c.kernel2 * c.kernel2)));
  graph.initializer(f32_tensor("b", {c.between}, wave(c.between)));
  const int64_t same = c.kernel / 2;
  std::vector<std::string> first = {"x", "w1"};
  std::vector<std::string> second = {"r", "w2"};
  if (c.has_bias) {
    first.push_back("b");
    second.push_back("b");
  }
  graph.node("Conv", first, {"y"}).attr_ints("pads", {same, same, same, same});
  graph.node("Relu", {"y"}, {"r"});
  graph.node("Conv", second, {"z"})
      .attr_int("group", c.between)
      .attr_ints("strides", {c.stride, c.stride})
      .attr_ints("dilations", {c.dilation, c.dilation})
      .attr_ints("pads", c.pads);
  graph.node("HardSwish", {"z"}, {"out"});
  const auto type = f32_type({Dim("n"), c.between, Dim("h"), Dim("w")});
  graph.output("out", type);
  if (c.is_read_twice) graph.output("r", type);
  return writer;
}

int pairs(const PairCase& c) {
  const auto model = optimized(pair_model(c), Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  if (!model.is_ok()) return -1;
  choose_winograd(model.value().get());
  pair_convs(model.value().get());
  return count_nodes(model.value()->graph, "ConvPair");
}

TEST(PairConvs, TakesALargeImageBetweenAProductAndADepthwiseFilter) {
  EXPECT_EQ(pairs({}), 1);
  EXPECT_EQ(pairs({.has_bias = false}), 1);
  EXPECT_EQ(pairs({.kernel = 3}), 1);
  EXPECT_EQ(pairs({.kernel2 = 5, .stride = 2, .dilation = 2}), 1);
  EXPECT_EQ(pairs({.is_known = false}), 1) << "a run decides";
}

TEST(PairConvs, LeavesWhatACacheKeepsAndWhatOthersRead) {
  EXPECT_EQ(pairs({.side = 90}), 0) << "259200 floats";
  EXPECT_EQ(pairs({.is_read_twice = true}), 0);
  EXPECT_EQ(pairs({.in = 16, .kernel = 3}), 0) << "by Winograd's algorithm";
  EXPECT_EQ(pairs({.in = 2100}), 0) << "packing the weights at each call would take too long";
}

// Outputs of the first run, and of one with packed weights.
std::vector<std::vector<float>> outputs(const PairCase& c, int threads) {
  SessionOptions options;
  options.threads = threads;
  const auto session = open_session(pair_model(c), options);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  if (!session.is_ok()) return {};
  const auto count = static_cast<size_t>(c.batch * c.in * c.side * c.side);
  std::vector<float> image(count);
  for (size_t i = 0; i < count; ++i) image[i] = static_cast<float>(i % 251) / 125.0F - 1.0F;
  const Value x(make_tensor<float>(Shape{c.batch, c.in, c.side, c.side}, image));
  std::vector<std::vector<float>> out;
  for (int run = 0; run < 2; ++run) {
    const auto values = run_all(*session.value(), {{"x", x}});
    EXPECT_TRUE(values.is_ok()) << text_of(values.status());
    if (!values.is_ok()) return {};
    out.push_back(floats_of(values.value()[0]));
    EXPECT_TRUE(session.value()->wait_packed(std::chrono::milliseconds(-1)));
  }
  return out;
}

TEST(ConvPair, HasTheBitsOfTwoSteps) {
  const PairCase cases[] = {
      {},
      {.batch = 3},
      {.has_bias = false},
      {.kernel = 3},
      {.stride = 2, .pads = {0, 0, 1, 1}},
      {.stride = 2, .pads = {1, 0, 2, 1}},
      {.kernel2 = 5, .stride = 3, .dilation = 2, .pads = {4, 4, 4, 4}},
      {.kernel2 = 5, .pads = {0, 0, 0, 0}},
      {.kernel2 = 3, .stride = 1, .dilation = 40, .pads = {40, 40, 40, 40}},
      {.between = 1100, .side = 17},
      {.side = 120, .kernel2 = 1, .stride = 5, .pads = {0, 0, 0, 0}},
      {.batch = 2, .side = 40, .is_known = false},
      {.batch = 2, .kernel = 3, .is_known = false},
  };
  for (const PairCase& c : cases) {
    SCOPED_TRACE("case " + std::to_string(&c - cases));
    EXPECT_EQ(pairs(c), 1);
    PairCase two = c;
    two.is_read_twice = true;
    const auto expected = outputs(two, 1);
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
