// fold_focus: phases of an image in every spelling become one convolution with the same results,
// and what is not all of them, or is needed elsewhere, stays.
#include <algorithm>
#include <array>
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::Type;

constexpr int64_t kFar = 9223372036854775807;

using Pair = std::array<int64_t, 2>;  // of H and W

// A model of phases, and what a test changes in it.
struct Focus {
  enum class Slices { kBothAxes, kNested, kShared, kAllAxes };

  std::vector<model_writer::Dim> dims{2, 3, 8, 12};
  std::vector<int64_t> x{2, 3, 8, 12};
  Slices slices = Slices::kBothAxes;
  Pair step{2, 2};
  std::vector<Pair> starts{{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  Pair end{kFar, kFar};
  int64_t concat_axis = 1;
  std::vector<std::string> images{"x", "x", "x", "x", "x", "x", "x", "x"};  // of each phase
  int64_t filters = 17;
  Pair kernel{3, 3};
  std::vector<int64_t> pads{1, 1, 1, 1};
  std::vector<int64_t> strides{1, 1};
  int64_t group = 1;
  std::function<void(model_writer::NodeWriter&)> conv = [](auto&) {};
  bool has_constant_weights = true;
  std::function<void(GraphWriter&)> more = [](auto&) {};
};

void cut(GraphWriter& graph, const std::string& from, const std::string& to,
         const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
         const std::vector<int64_t>& ends, const std::vector<int64_t>& steps) {
  const auto n = static_cast<int64_t>(axes.size());
  graph.initializer(i64_tensor(to + ".starts", {n}, starts));
  graph.initializer(i64_tensor(to + ".ends", {n}, ends));
  graph.initializer(i64_tensor(to + ".axes", {n}, axes));
  graph.initializer(i64_tensor(to + ".steps", {n}, steps));
  graph.node("Slice", {from, to + ".starts", to + ".ends", to + ".axes", to + ".steps"}, {to});
}

// Phase i as the value "p<i>".
void add_phase(GraphWriter& graph, const Focus& focus, size_t i) {
  const Pair start = focus.starts[i];
  const std::string name = "p" + std::to_string(i);
  const std::string& image = focus.images[i];
  switch (focus.slices) {
    case Focus::Slices::kBothAxes:
      cut(graph, image, name, {2, -1}, {start[0], start[1]}, {focus.end[0], focus.end[1]},
          {focus.step[0], focus.step[1]});
      break;
    case Focus::Slices::kAllAxes:
      cut(graph, image, name, {0, 1, 2, 3}, {0, 0, start[0], start[1]},
          {kFar, kFar, focus.end[0], focus.end[1]}, {1, 1, focus.step[0], focus.step[1]});
      break;
    case Focus::Slices::kNested:
      cut(graph, image, name + "h", {2}, {start[0]}, {focus.end[0]}, {focus.step[0]});
      cut(graph, name + "h", name, {3}, {start[1]}, {focus.end[1]}, {focus.step[1]});
      break;
    case Focus::Slices::kShared: {  // one first Slice for all phases that begin with it
      const std::string half = "half" + std::to_string(start[0]);
      const auto first = std::find_if(focus.starts.begin(), focus.starts.end(),
                                      [&](const Pair& each) { return each[0] == start[0]; });
      if (first - focus.starts.begin() == static_cast<int64_t>(i)) {
        cut(graph, image, half, {2}, {start[0]}, {focus.end[0]}, {focus.step[0]});
      }
      cut(graph, half, name, {3}, {start[1]}, {focus.end[1]}, {focus.step[1]});
      break;
    }
  }
}

ModelWriter model_of(const Focus& focus) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type(focus.dims));
  std::vector<std::string> parts;
  for (size_t i = 0; i < focus.starts.size(); ++i) {
    if (focus.images[i] == "other" && i == 0) graph.node("Neg", {"x"}, {"other"});
    add_phase(graph, focus, i);
    parts.push_back("p" + std::to_string(i));
  }
  graph.node("Concat", parts, {"joined"}).attr_int("axis", focus.concat_axis);
  const int64_t joined = focus.concat_axis == 2 ? 1 : static_cast<int64_t>(parts.size());
  const std::vector<int64_t> w{focus.filters, focus.x[1] * joined / focus.group, focus.kernel[0],
                               focus.kernel[1]};
  const auto weights = f32_tensor("w", w, wave(w[0] * w[1] * w[2] * w[3]));
  if (focus.has_constant_weights) {
    graph.initializer(weights);
  } else {
    graph.input("w", f32_type({w[0], w[1], w[2], w[3]}));
  }
  graph.initializer(f32_tensor("b", {focus.filters}, wave(focus.filters, 2)));
  auto& conv = graph.node("Conv", {"joined", "w", "b"}, {"y"});
  conv.attr_ints("strides", focus.strides);
  if (!focus.pads.empty()) conv.attr_ints("pads", focus.pads);
  if (focus.group != 1) conv.attr_int("group", focus.group);
  focus.conv(conv);
  graph.output("y", Type::tensor_of_unknown_rank(kF32));
  focus.more(graph);
  return writer;
}

std::string types_at(const ModelWriter& writer, Optimize level) {
  const auto model = optimized(writer, level);
  EXPECT_TRUE(model.is_ok()) << text_of(model.status());
  return model.is_ok() ? types_of(model.value()->graph) : "";
}

// The types left, where the model gives the same results with and without passes.
std::string types_after(const Focus& focus) {
  int64_t count = 1;
  for (const int64_t dim : focus.x) count *= dim;
  std::vector<NamedValue> inputs{{"x", make_tensor<float>(Shape(focus.x), wave(count, 1))}};
  if (!focus.has_constant_weights) {
    const Shape w{focus.filters, focus.x[1] * 4, focus.kernel[0], focus.kernel[1]};
    inputs.push_back({"w", make_tensor<float>(w, wave(w.count()))});
  }
  const ModelWriter writer = model_of(focus);
  fused(writer, inputs);
  return types_at(writer, Optimize::kExtended);
}

bool folds(const Focus& focus) {
  const std::string types = types_after(focus);
  EXPECT_TRUE(types == "Conv" || types.find("Concat") != std::string::npos) << types;
  return types == "Conv";
}

TEST(FoldFocus, PhasesInEverySpellingBecomeOneConvolution) {
  using Slices = Focus::Slices;
  for (const Slices slices :
       {Slices::kBothAxes, Slices::kNested, Slices::kShared, Slices::kAllAxes}) {
    SCOPED_TRACE(static_cast<int>(slices));
    Focus focus;
    focus.slices = slices;
    EXPECT_TRUE(folds(focus));
    focus.concat_axis = -3;
    focus.end = {8, 12};
    EXPECT_TRUE(folds(focus));
  }
}

TEST(FoldFocus, PhasesComeInAnyOrder) {
  Focus focus;
  std::sort(focus.starts.begin(), focus.starts.end());
  do {
    EXPECT_TRUE(folds(focus));
  } while (std::next_permutation(focus.starts.begin(), focus.starts.end()));
}

TEST(FoldFocus, PadsStridesAndKernelsGrowByTheSteps) {
  for (const Pair kernel : {Pair{1, 1}, Pair{3, 3}, Pair{2, 4}}) {
    for (const int64_t stride : {1, 2}) {
      Focus focus;
      focus.kernel = kernel;
      focus.strides = {stride, 3 - stride};
      focus.pads = {0, 1, 2, 0};
      EXPECT_TRUE(folds(focus));
    }
  }
  const auto model = optimized(model_of(Focus()), Optimize::kExtended);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& graph = model.value()->graph;
  ASSERT_EQ(graph.nodes.size(), 1U);
  const Attributes& attrs = graph.nodes[0].attributes;
  EXPECT_EQ(attrs.get_ints("kernel_shape").value(), (std::vector<int64_t>{6, 6}));
  EXPECT_EQ(attrs.get_ints("strides").value(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(attrs.get_ints("pads").value(), (std::vector<int64_t>{2, 2, 2, 2}));
}

TEST(FoldFocus, StepsMayDifferAndBeLarger) {
  for (const Pair step : {Pair{1, 2}, Pair{2, 1}, Pair{4, 1}, Pair{4, 2}, Pair{2, 3}}) {
    SCOPED_TRACE(std::to_string(step[0]) + " " + std::to_string(step[1]));
    Focus focus;
    focus.dims = {2, 1, 8, 12};  // so that no phases are 16 channels
    focus.x = {2, 1, 8, 12};
    focus.step = step;
    focus.kernel = {3, 2};
    focus.starts.clear();
    for (int64_t j = 0; j < step[1]; ++j) {
      for (int64_t i = 0; i < step[0]; ++i) focus.starts.push_back({i, j});
    }
    EXPECT_TRUE(folds(focus));
  }
}

TEST(FoldFocus, TheFunctionBehindIsStillTakenIn) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 1, 4, 4}));
  cut(graph, "x", "p0", {3}, {0}, {kFar}, {2});
  cut(graph, "x", "p1", {3}, {1}, {kFar}, {2});
  graph.initializer(f32_tensor("w", {16, 2, 1, 1}, wave(32)));
  graph.node("Concat", {"p0", "p1"}, {"joined"}).attr_int("axis", 1);
  graph.node("Conv", {"joined", "w"}, {"c"});
  graph.node("Relu", {"c"}, {"y"});
  graph.output("y", Type::tensor_of_unknown_rank(kF32));
  EXPECT_EQ(types_at(writer, Optimize::kExtended), "com.microsoft.FusedConv");
  EXPECT_EQ(types_at(writer, Optimize::kBasic), "Slice Slice Concat Conv Relu");
  EXPECT_EQ(types_at(writer, Optimize::kAll).find("Slice"), std::string::npos);
  // Without packed weights phases are gathered faster.
  EXPECT_EQ(types_at(writer, Optimize::kUnpacked), "Slice Slice Concat com.microsoft.FusedConv");
}

// Concat refuses phases of an image that the steps do not divide; a convolution would not.
TEST(FoldFocus, HeightAndWidthAreKnown) {
  Focus focus;
  focus.dims = {"n", 3, 8, 12};
  EXPECT_TRUE(folds(focus));
  for (const auto slices : {Focus::Slices::kBothAxes, Focus::Slices::kNested}) {
    focus.slices = slices;
    focus.dims = {2, 3, "h", 12};
    EXPECT_FALSE(folds(focus));
    focus.dims = {2, 3, 8, "w"};
    EXPECT_FALSE(folds(focus));
  }
}

TEST(FoldFocus, WhatIsNotEachPhaseOnceStays) {
  Focus missing;
  missing.starts = {{0, 0}, {1, 0}, {0, 1}};
  EXPECT_FALSE(folds(missing));
  Focus twice;
  twice.starts = {{0, 0}, {1, 0}, {0, 1}, {0, 1}};
  EXPECT_FALSE(folds(twice));
  Focus beyond;  // lines 1, 3, 5 and 2, 4, 6 of seven
  beyond.x = {2, 3, 7, 12};
  beyond.dims = {2, 3, 7, 12};
  beyond.starts = {{1, 0}, {1, 1}, {2, 0}, {2, 1}};
  EXPECT_FALSE(folds(beyond));
  Focus other_axis;
  other_axis.concat_axis = 2;
  EXPECT_FALSE(folds(other_axis));
  Focus mixed;
  mixed.images[0] = "other";
  EXPECT_FALSE(folds(mixed));
}

TEST(FoldFocus, SlicesThatTakeLessStay) {
  Focus odd;  // each phase has two lines of five
  odd.x = {2, 3, 5, 12};
  odd.dims = {2, 3, 5, 12};
  odd.end = {4, kFar};
  EXPECT_FALSE(folds(odd));
  Focus cut_off;
  cut_off.end = {kFar, 10};
  EXPECT_FALSE(folds(cut_off));
  Focus from_behind;
  from_behind.end = {-2, kFar};
  EXPECT_FALSE(folds(from_behind));
  Focus wide;  // phases of 3 steps, of which there are two
  wide.step = {3, 2};
  wide.x = {2, 3, 9, 12};
  wide.dims = {2, 3, 9, 12};
  EXPECT_FALSE(folds(wide));
  Focus backward;  // from the last on
  backward.step = {-2, 2};
  backward.starts = {{-1, 0}, {-2, 0}, {-1, 1}, {-2, 1}};
  backward.end = {-kFar, kFar};
  EXPECT_FALSE(folds(backward));
}

TEST(FoldFocus, WhatOthersReadStays) {
  for (const char* value : {"p1", "joined", "half0"}) {
    for (const bool is_output : {true, false}) {
      SCOPED_TRACE(value);
      Focus focus;
      focus.slices = Focus::Slices::kShared;
      focus.more = [=](GraphWriter& graph) {
        const char* out = is_output ? value : "more";
        if (!is_output) graph.node("Neg", {value}, {"more"});
        graph.output(out, Type::tensor_of_unknown_rank(kF32));
      };
      EXPECT_NE(types_after(focus).find("Concat"), std::string::npos);
    }
  }
}

TEST(FoldFocus, ConvolutionsOfOtherKindsStay) {
  Focus groups;
  groups.group = 2;
  groups.filters = 32;
  EXPECT_FALSE(folds(groups));
  Focus varying;
  varying.has_constant_weights = false;
  EXPECT_FALSE(folds(varying));
  Focus dilated;
  dilated.conv = [](auto& conv) { conv.attr_ints("dilations", {1, 2}); };
  EXPECT_FALSE(folds(dilated));
  Focus large;
  large.filters = (1 << 16) / (12 * 9) + 1;
  EXPECT_FALSE(folds(large));
  Focus winograd;  // of 3x3, stride 1, 16 channels and 16 filters
  winograd.x = {1, 4, 8, 12};
  winograd.dims = {1, 4, 8, 12};
  EXPECT_FALSE(folds(winograd));
  winograd.strides = {1, 2};
  EXPECT_TRUE(folds(winograd));
  Focus few;
  few.filters = 15;
  EXPECT_FALSE(folds(few));
  Focus same;
  same.pads = {};
  same.conv = [](auto& conv) { conv.attr_string("auto_pad", "SAME_UPPER"); };
  EXPECT_FALSE(folds(same));
}

}  // namespace
}  // namespace folio
