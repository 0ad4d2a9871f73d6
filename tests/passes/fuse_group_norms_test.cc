// fuse_group_norms: which parts are a group normalization, and that results stay; and that
// normalizations follow convolutions with channels last.
#include <gtest/gtest.h>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

struct Parts {
  std::vector<int64_t> flat = {0, 2, -1};
  std::vector<int64_t> scale = {4, 1, 1};
  bool has_bias = true;
  bool has_other_reader = false;
  std::vector<float> group_scale = {1, 1};
};

// x [batch, 4, 5, 6] in groups of two channels.
ModelWriter group_norm(const Parts& parts) {
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  const std::vector<model_writer::Dim> image = {model_writer::Dim("batch"), 4, 5, 6};
  graph.input("x", f32_type(image));
  graph.initializer(i64_tensor("flat", {static_cast<int64_t>(parts.flat.size())}, parts.flat));
  graph.initializer(i64_tensor("back", {4}, {0, 4, 5, 6}));
  graph.initializer(f32_tensor("gs", {2}, parts.group_scale));
  graph.initializer(f32_tensor("gb", {2}, {0, 0}));
  int64_t count = 1;
  for (const int64_t dim : parts.scale) count *= dim;
  graph.initializer(f32_tensor("scale", parts.scale, wave(count)));
  graph.initializer(f32_tensor("bias", {4, 1, 1}, {1, -2, 3, 0.5F}));
  graph.node("Reshape", {"x", "flat"}, {"f"});
  graph.node("InstanceNormalization", {"f", "gs", "gb"}, {"n"}).attr_float("epsilon", 1e-3F);
  graph.node("Reshape", {"n", "back"}, {"r"});
  graph.node("Mul", {"scale", "r"}, {parts.has_bias ? "m" : "y"});
  if (parts.has_bias) graph.node("Add", {"m", "bias"}, {"y"});
  graph.output("y", f32_type(image));
  if (parts.has_other_reader) graph.output("n", f32_type({"batch", 2, 60}));
  return writer;
}

// With passes and without; nearer than fused() asks for.
void expect_same(const ModelWriter& writer, const std::vector<NamedValue>& inputs) {
  const std::vector<float> with = floats_at(writer, inputs, Optimize::kAll);
  const std::vector<float> without = floats_at(writer, inputs, Optimize::kOff);
  ASSERT_EQ(with.size(), without.size());
  for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 2e-6) << i;
}

std::string types_after(const Parts& parts) {
  const ModelWriter writer = group_norm(parts);
  const std::vector<NamedValue> inputs = {{"x", make_tensor<float>({3, 4, 5, 6}, wave(360, 0.3F))}};
  expect_same(writer, inputs);
  const auto model = optimized(writer, Optimize::kAll);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

TEST(FuseGroupNorms, PartsAreOneNode) {
  EXPECT_EQ(types_after({}), "GroupNormalization");
  EXPECT_EQ(types_after({.flat = {0, 2, 10, 6}}), "GroupNormalization");
  EXPECT_EQ(types_after({.scale = {1, 4, 1, 1}}), "GroupNormalization");
  EXPECT_EQ(types_after({.scale = {1}}), "GroupNormalization");
  EXPECT_EQ(types_after({.has_bias = false}), "GroupNormalization");
  EXPECT_EQ(types_after({.group_scale = {2, -3}}), "GroupNormalization");
}

TEST(FuseGroupNorms, OtherPartsStay) {
  // A scale of pixels is none of channels.
  EXPECT_EQ(types_after({.scale = {4, 5, 1}}), "GroupNormalization Mul Add");
  EXPECT_NE(types_after({.has_other_reader = true}).find("InstanceNormalization"),
            std::string::npos);
}

TEST(FuseGroupNorms, IsNotSaved) {
  const auto model = optimized(group_norm({}), Optimize::kExtended);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_NE(types_of(model.value()->graph).find("InstanceNormalization"), std::string::npos);
}

TEST(ChannelsLast, NormalizationsFollowWithTheirFunctions) {
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 3, 6, 6}));
  graph.initializer(f32_tensor("w", {4, 3, 3, 3}, wave(108)));
  graph.initializer(f32_tensor("s", {4}, {1, 2, -3, 0.5F}));
  graph.initializer(f32_tensor("b", {4}, {0, 1, 0.25F, -1}));
  graph.node("Conv", {"x", "w"}, {"c"}).attr_ints("pads", {1, 1, 1, 1});
  graph.node("InstanceNormalization", {"c", "s", "b"}, {"n"});
  graph.node("Relu", {"n"}, {"r"});
  graph.node("MaxPool", {"r"}, {"y"}).attr_ints("kernel_shape", {2, 2});
  graph.output("y", f32_type({1, 4, 5, 5}));
  const std::vector<NamedValue> inputs = {{"x", make_tensor<float>({1, 3, 6, 6}, wave(108, 0.1F))}};
  expect_same(writer, inputs);
  const auto model = optimized(writer, Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph),
            "folio.nhwc.Conv folio.nhwc.InstanceNormalization folio.nhwc.MaxPool Transpose");
}

}  // namespace
}  // namespace folio
