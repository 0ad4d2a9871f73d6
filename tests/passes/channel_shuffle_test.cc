// Shuffles of channels between convolutions: which stay with channels last, and that results stay.
#include "tests/passes/conv_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::GraphWriter;
using model_writer::ModelWriter;

// x [n, 2, ...] -> Conv -> c [n, 6, ...] -> Reshape -> Transpose -> Reshape -> Conv -> y.
struct Case {
  std::vector<Dim> image = {1, 2, 4, 5};
  std::vector<int64_t> parts = {1, 2, 3, 4, 5};
  std::vector<int64_t> perm = {0, 2, 1, 3, 4};
  std::vector<int64_t> joined = {1, 6, 4, 5};
  bool allows_zero = false;
  bool computes_targets = false;  // of dims of c, for `parts` {a, b}
  std::string output = {};        // of the values between
};

constexpr const char* kFollows =
    "folio.nhwc.Conv Reshape Transpose Reshape folio.nhwc.Conv Transpose";
constexpr const char* kStays =
    "folio.nhwc.Conv Transpose Reshape Transpose Reshape Transpose folio.nhwc.Conv Transpose";

// As exporters have it: the batch, numbers, and the pixels of the image's Shape.
void add_targets(GraphWriter& graph, const Case& c) {
  const auto axes = static_cast<int64_t>(c.image.size());
  graph.initializer(i64_tensor("0", {1}, {0}));
  graph.initializer(i64_tensor("1", {1}, {1}));
  graph.initializer(i64_tensor("2", {1}, {2}));
  graph.initializer(i64_tensor("end", {1}, {axes}));
  graph.initializer(i64_tensor("parts", {2}, c.parts));
  graph.initializer(i64_tensor("channels", {1}, {6}));
  graph.node("Shape", {"c"}, {"dims"});
  graph.node("Slice", {"dims", "0", "1"}, {"batch"});
  graph.node("Slice", {"dims", "2", "end"}, {"pixels"});
  graph.node("Concat", {"batch", "parts", "pixels"}, {"to_parts"}).attr_int("axis", 0);
  graph.node("Concat", {"batch", "channels", "pixels"}, {"to_joined"}).attr_int("axis", 0);
}

ModelWriter shuffled(const Case& c) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type(c.image));
  // Three taps along the last axis: the first reads its few channels as they lie.
  std::vector<int64_t> w(c.image.size(), 1);
  w[0] = 6;
  w[1] = 2;
  w.back() = 3;
  graph.initializer(f32_tensor("w", w, wave(36)));
  w[1] = 6;
  w.back() = 2;
  graph.initializer(f32_tensor("w6", w, wave(72)));
  std::vector<int64_t> pads(2 * (c.image.size() - 2), 0);
  pads[pads.size() / 2 - 1] = pads.back() = 1;
  graph.node("Conv", {"x", "w"}, {"c"}).attr_ints("pads", pads);
  if (c.computes_targets) {
    add_targets(graph, c);
  } else {
    graph.initializer(i64_tensor("to_parts", {static_cast<int64_t>(c.parts.size())}, c.parts));
    graph.initializer(i64_tensor("to_joined", {static_cast<int64_t>(c.joined.size())}, c.joined));
  }
  auto split = graph.node("Reshape", {"c", "to_parts"}, {"p"});
  if (c.allows_zero) split.attr_int("allowzero", 1);
  graph.node("Transpose", {"p"}, {"t"}).attr_ints("perm", c.perm);
  graph.node("Reshape", {"t", "to_joined"}, {"s"});
  graph.node("Conv", {"s", "w6"}, {"y"});
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  if (!c.output.empty()) {
    graph.output(c.output, model_writer::Type::tensor_of_unknown_rank(kF32));
  }
  return writer;
}

// The node types after the passes; the results of images of these shapes must stay.
std::string types_after(const Case& c, const std::vector<Shape>& images = {{1, 2, 4, 5}}) {
  return types_last(shuffled(c), images);
}

TEST(ChannelShuffle, StaysWithChannelsLast) {
  EXPECT_EQ(types_after({}), kFollows);
  EXPECT_EQ(types_after({.parts = {1, 3, 2, 4, 5}}), kFollows);
  EXPECT_EQ(types_after({.parts = {0, 2, -1, 4, 5}, .joined = {0, -1, 4, 5}}), kFollows);
  EXPECT_EQ(types_after({.allows_zero = true}), kFollows);
}

TEST(ChannelShuffle, TakesImagesOfOneToThreeAxes) {
  EXPECT_EQ(
      types_after(
          {.image = {2, 2, 7}, .parts = {2, 2, 3, 7}, .perm = {0, 2, 1, 3}, .joined = {2, 6, 7}},
          {{2, 2, 7}}),
      kFollows);
  EXPECT_EQ(types_after({.image = {2, 2, 3, 4, 5},
                         .parts = {2, 2, 3, 3, 4, 5},
                         .perm = {0, 2, 1, 3, 4, 5},
                         .joined = {2, 6, 3, 4, 5}},
                        {{2, 2, 3, 4, 5}}),
            kFollows);
}

// The pixels in one dim, or none.
TEST(ChannelShuffle, TakesPixelsInAnyDims) {
  EXPECT_EQ(types_after({.parts = {1, 2, 3, 20}, .perm = {0, 2, 1, 3}}), kFollows);
  EXPECT_EQ(types_after({.image = {1, 2, 1, 3}, .parts = {1, 2, 3, 3, 1}, .joined = {1, 6, 1, 3}},
                        {{1, 2, 1, 3}}),
            kFollows);
}

TEST(ChannelShuffle, TakesABatchThatIsNotKnown) {
  EXPECT_EQ(types_after(
                {.image = {Dim("n"), 2, 4, 5}, .parts = {-1, 2, 3, 4, 5}, .joined = {-1, 6, 4, 5}},
                {{1, 2, 4, 5}, {3, 2, 4, 5}}),
            kFollows);
  EXPECT_EQ(
      types_after({.image = {Dim("n"), 2, 4, 5}, .parts = {0, 2, 3, 4, 5}, .joined = {0, 6, 4, 5}},
                  {{0, 2, 4, 5}, {3, 2, 4, 5}}),
      kFollows);
}

// Nodes that computed the targets are gone with them.
TEST(ChannelShuffle, TakesPixelsThatAreNotKnown) {
  EXPECT_EQ(
      types_after(
          {.image = {Dim("n"), 2, Dim("h"), Dim("w")}, .parts = {2, 3}, .computes_targets = true},
          {{1, 2, 4, 5}, {2, 2, 1, 3}, {2, 2, 9, 8}}),
      kFollows);
}

TEST(ChannelShuffle, LeavesValuesThatOthersRead) {
  EXPECT_EQ(types_after({.output = "p"}), kStays);
  EXPECT_EQ(types_after({.output = "t"}), kStays);
  EXPECT_EQ(types_after({.output = "c"}),
            "folio.nhwc.Conv Reshape Transpose Reshape folio.nhwc.Conv Transpose Transpose");
}

TEST(ChannelShuffle, IsATransposeOfTwoPartsOfTheChannels) {
  const std::vector<int64_t> square = {1, 6, 4, 4};
  const auto types = [&](const std::vector<int64_t>& parts, const std::vector<int64_t>& perm) {
    return types_after({.image = {1, 2, 4, 4}, .parts = parts, .perm = perm, .joined = square},
                       {{1, 2, 4, 4}});
  };
  EXPECT_EQ(types({1, 2, 3, 4, 4}, {0, 2, 1, 3, 4}), kFollows);
  EXPECT_EQ(types({1, 2, 3, 4, 4}, {0, 2, 1, 4, 3}), kStays);
  EXPECT_EQ(types({1, 2, 3, 4, 4}, {0, 1, 3, 2, 4}), kStays);
  EXPECT_EQ(types({1, 4, 3, 8}, {0, 2, 1, 3}), kStays) << "of channels and lines";
}

TEST(ChannelShuffle, GivesAnImageOfTheSameDims) {
  EXPECT_EQ(types_after({.joined = {1, 6, 5, 4}}), kStays);
}

}  // namespace
}  // namespace folio
