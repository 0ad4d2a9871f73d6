// untranspose_convs: transposed convolutions of stride 1 become convolutions with the same results,
// others stay.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::NodeWriter;

// x [2, C, spatial...] -> ConvTranspose -> Relu -> y.
struct Transposed {
  std::vector<int64_t> spatial{6, 7};
  std::vector<int64_t> weights{4, 3, 3, 2};  // [C, M / group, kernel...]
  int64_t group = 1;
  std::vector<int64_t> pads{};
  std::vector<int64_t> dilations{};
  std::vector<int64_t> strides{};
  std::function<void(NodeWriter&)> more = [](auto&) {};
  bool has_constant_weights = true;
};

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

std::string types_after(const Transposed& t) {
  std::vector<int64_t> x{2, t.weights[0]};
  x.insert(x.end(), t.spatial.begin(), t.spatial.end());
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({x.begin(), x.end()}));
  std::vector<NamedValue> inputs{
      {"x", make_tensor<float>(Shape(Span<const int64_t>(x)), wave(count_of(x), 1))}};
  if (t.has_constant_weights) {
    graph.initializer(f32_tensor("w", t.weights, wave(count_of(t.weights))));
  } else {
    graph.input("w", f32_type({t.weights.begin(), t.weights.end()}));
    inputs.push_back({"w", make_tensor<float>(Shape(Span<const int64_t>(t.weights)),
                                              wave(count_of(t.weights)))});
  }
  const int64_t filters = t.weights[1] * t.group;
  graph.initializer(f32_tensor("b", {filters}, wave(filters, 2)));
  NodeWriter& node = graph.node("ConvTranspose", {"x", "w", "b"}, {"c"});
  node.attr_int("group", t.group);
  if (!t.pads.empty()) node.attr_ints("pads", t.pads);
  if (!t.dilations.empty()) node.attr_ints("dilations", t.dilations);
  if (!t.strides.empty()) node.attr_ints("strides", t.strides);
  t.more(node);
  graph.node("Relu", {"c"}, {"y"});
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  fused(writer, inputs);  // the same results
  const auto model = optimized(writer, Optimize::kExtended);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

bool becomes_conv(const Transposed& t) { return types_after(t) == "com.microsoft.FusedConv"; }

TEST(UntransposeConvs, OfStrideOneAreConvolutions) {
  EXPECT_TRUE(becomes_conv({}));
  EXPECT_TRUE(becomes_conv({.pads = {1, 0, 1, 1}}));
  EXPECT_TRUE(becomes_conv({.pads = {1, 0, 0, 2}, .dilations = {2, 3}, .strides = {1, 1}}));
  EXPECT_TRUE(becomes_conv({.weights = {6, 2, 3, 3}, .group = 3, .pads = {1, 1, 1, 1}}));
  EXPECT_TRUE(becomes_conv({.weights = {4, 1, 5, 5}, .group = 4, .pads = {2, 2, 2, 2}}));
  EXPECT_TRUE(becomes_conv({.weights = {4, 2, 1, 1}}));
  EXPECT_TRUE(becomes_conv({.spatial = {9}, .weights = {3, 5, 4}, .pads = {1, 2}}));
  EXPECT_TRUE(becomes_conv({.spatial = {3, 4, 5}, .weights = {2, 3, 2, 1, 3}}));
  EXPECT_TRUE(
      becomes_conv({.more = [](NodeWriter& node) { node.attr_string("auto_pad", "VALID"); }}));
  EXPECT_TRUE(becomes_conv({.spatial = {20, 20},
                            .weights = {32, 16, 3, 3},
                            .pads = {1, 1, 1, 1},
                            .more = [](NodeWriter& node) {
                              node.attr_ints("kernel_shape", {3, 3});
                            }}));
}

TEST(UntransposeConvs, OthersStay) {
  EXPECT_FALSE(becomes_conv({.strides = {1, 2}}));
  EXPECT_FALSE(becomes_conv({.pads = {3, 0, 0, 0}}));  // more than the filter reaches
  // Of an image of one line nothing remains.
  EXPECT_FALSE(becomes_conv({.spatial = {1, 7}, .weights = {4, 3, 2, 2}, .pads = {1, 0, 1, 0}}));
  EXPECT_FALSE(becomes_conv({.has_constant_weights = false}));
  EXPECT_FALSE(
      becomes_conv({.more = [](NodeWriter& node) { node.attr_string("auto_pad", "SAME_UPPER"); }}));
  EXPECT_FALSE(becomes_conv({.more = [](NodeWriter& node) {
    node.attr_ints("output_shape", {7, 7});
  }}));
  EXPECT_FALSE(becomes_conv({.dilations = {2, 2}, .more = [](NodeWriter& node) {
                               node.attr_ints("output_padding", {1, 1});
                             }}));
}

// What does not fit is refused as what it is.
TEST(UntransposeConvs, OfOtherChannelsKeepTheirMessage) {
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 5, 4, 4}));
  graph.initializer(f32_tensor("w", {4, 2, 3, 3}, wave(72)));
  graph.node("ConvTranspose", {"x", "w"}, {"y"}).named("up");
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto result = run_once(writer, {{"x", make_tensor<float>({1, 5, 4, 4}, wave(80))}});
  ASSERT_FALSE(result.is_ok());
  const std::string text = text_of(result.status());
  EXPECT_NE(text.find("'up' (ConvTranspose)"), std::string::npos) << text;
}

}  // namespace
}  // namespace folio
