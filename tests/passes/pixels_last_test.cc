// Reshapes that put pixels in other dims: which stay with channels last, and that results stay.
#include "tests/passes/conv_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::GraphWriter;
using model_writer::ModelWriter;

// x [n, 3, h, w] -> Conv -> c [n, 4, h, w] -> Reshape -> r, then what `behind` says.
struct Case {
  std::vector<Dim> image = {1, 3, 6, 5};
  std::vector<int64_t> target = {1, 4, 30};
  enum { kNothing, kTranspose, kConcat, kConv } behind = kTranspose;
  bool is_computed = false;  // its last number: the height times the width
};

ModelWriter reshaped(const Case& c) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type(c.image));
  graph.initializer(f32_tensor("w", {4, 3, 3, 3}, wave(108)));
  if (c.is_computed) {
    graph.initializer(i64_tensor("begin", {2}, c.target));
    graph.initializer(i64_tensor("height", {}, {2}));
    graph.initializer(i64_tensor("width", {}, {3}));
    graph.initializer(i64_tensor("first", {1}, {0}));
    graph.node("Shape", {"x"}, {"dims"});
    graph.node("Gather", {"dims", "height"}, {"h"});
    graph.node("Gather", {"dims", "width"}, {"w_"});
    graph.node("Mul", {"h", "w_"}, {"count"});
    graph.node("Unsqueeze", {"count", "first"}, {"pixels"});
    graph.node("Concat", {"begin", "pixels"}, {"target"}).attr_int("axis", 0);
  } else {
    graph.initializer(i64_tensor("target", {static_cast<int64_t>(c.target.size())}, c.target));
  }
  graph.node("Conv", {"x", "w"}, {"c"}).attr_ints("pads", {1, 1, 1, 1});
  graph.node("Reshape", {"c", "target"}, {c.behind == Case::kNothing ? "y" : "r"});
  if (c.behind == Case::kTranspose) {
    graph.node("Transpose", {"r"}, {"y"}).attr_ints("perm", {0, 2, 1});
  } else if (c.behind == Case::kConcat) {  // heads of a detector
    graph.node("Relu", {"c"}, {"c2"});
    graph.node("Reshape", {"c2", "target"}, {"r2"});
    graph.node("Concat", {"r", "r2"}, {"joined"}).attr_int("axis", 2);
    graph.node("Transpose", {"joined"}, {"y"}).attr_ints("perm", {0, 2, 1});
  } else if (c.behind == Case::kConv) {
    graph.initializer(f32_tensor("v", {2, 4, 3}, wave(24)));
    graph.node("Conv", {"r", "v"}, {"y"});
  }
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  return writer;
}

// The node types after the passes; results must stay, of an empty batch, too.
std::string types_after(const Case& c, const std::vector<Shape>& images = {{1, 3, 6, 5}}) {
  return types_last(reshaped(c), images);
}

TEST(PixelsLast, AReshapeOfPixelsNeedsNoTranspose) {
  constexpr const char* kFollows = "folio.nhwc.Conv Reshape Identity";
  EXPECT_EQ(types_after({}), kFollows);
  EXPECT_EQ(types_after({.target = {0, 4, -1}}), kFollows);
  EXPECT_EQ(types_after({.image = {"n", 3, 6, 5}, .target = {0, 4, 30}},
                        {{1, 3, 6, 5}, {2, 3, 6, 5}, {0, 3, 6, 5}}),
            kFollows);
  EXPECT_EQ(
      types_after({.image = {2, 3, "h", "w"}, .target = {2, 4, -1}}, {{2, 3, 6, 5}, {2, 3, 1, 7}}),
      kFollows);
  EXPECT_EQ(types_after({.image = {"n", 3, "h", "w"}, .target = {0, 4, -1}},
                        {{1, 3, 6, 5}, {2, 3, 2, 7}}),
            kFollows);
  EXPECT_EQ(types_after({.behind = Case::kConv}),
            "folio.nhwc.Conv Reshape folio.nhwc.Conv Transpose");
  EXPECT_EQ(types_after({.target = {1, 4, 2, 15}, .behind = Case::kNothing}),
            "folio.nhwc.Conv Reshape Transpose");
}

TEST(PixelsLast, HeadsAreJoinedPixelByPixel) {
  EXPECT_EQ(types_after({.behind = Case::kConcat}),
            "folio.nhwc.Conv Reshape Relu Reshape Concat Identity");
}

// Tokens of a transformer, between whose layers a filter sees its neighbours.
TEST(PixelsLast, TokensAreAnImageAndBack) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({Dim("n"), 80, 8}));
  graph.initializer(f32_tensor("w", {8, 1, 3, 3}, wave(72)));
  graph.initializer(i64_tensor("image", {4}, {0, 8, 10, 8}));
  graph.initializer(i64_tensor("tokens", {3}, {0, 8, 80}));
  graph.node("Transpose", {"x"}, {"t"}).attr_ints("perm", {0, 2, 1});
  graph.node("Reshape", {"t", "image"}, {"i"});
  graph.node("Conv", {"i", "w"}, {"c"}).attr_int("group", 8).attr_ints("pads", {1, 1, 1, 1});
  graph.node("Reshape", {"c", "tokens"}, {"r"});
  graph.node("Transpose", {"r"}, {"y"}).attr_ints("perm", {0, 2, 1});
  graph.output("y", f32_type({Dim("n"), 80, 8}));
  EXPECT_EQ(types_last(writer, {{1, 80, 8}, {2, 80, 8}}),
            "Reshape folio.nhwc.Conv Reshape Identity");
}

TEST(PixelsLast, OtherReshapesHaveChannelsFirst) {
  constexpr const char* kStays = "folio.nhwc.Conv Transpose Reshape Transpose";
  EXPECT_EQ(types_after({.target = {1, 8, 15}}), kStays) << "other channels";
  EXPECT_EQ(types_after({.target = {2, 2, 30}}), kStays) << "another batch";
  EXPECT_EQ(types_after({.target = {4, 30}, .behind = Case::kNothing}),
            "folio.nhwc.Conv Transpose Reshape");
  const Case open = {.image = {"n", 3, "h", "w"}, .target = {0, 4}, .is_computed = true};
  const std::string types = types_after(open, {{1, 3, 6, 5}, {0, 3, 2, 7}});
  EXPECT_EQ(types.substr(types.rfind("folio.nhwc.Conv")), kStays)
      << "of an empty batch nobody could tell how many pixels there are";
}

}  // namespace
}  // namespace folio
