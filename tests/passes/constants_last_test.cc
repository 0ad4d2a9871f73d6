// Constants beside images with channels last: which are turned, and that results stay.
#include "tests/passes/conv_tester.h"

namespace folio {
namespace {

using model_writer::Dim;
using model_writer::GraphWriter;
using model_writer::ModelWriter;

constexpr const char* kConcatFollows = "folio.nhwc.Conv Concat folio.nhwc.Conv Transpose";

// c [1, 4, 6, 6] and constants along the channels -> Conv.
Rest beside_constants(const std::vector<int64_t>& channels, const std::vector<std::string>& order,
                      int64_t pixels = 6) {
  return [=](GraphWriter& graph) {
    int64_t all = 4;
    for (const int64_t c : channels) {
      graph.initializer(f32_tensor("k" + std::to_string(c), {1, c, pixels, pixels},
                                   wave(c * pixels * pixels, 0.2F)));
      all += c;
    }
    graph.initializer(f32_tensor("w_all", {4, all, 1, 1}, wave(4 * all)));
    graph.node("Concat", order, {"j"}).attr_int("axis", 1);
    graph.node("Conv", {"j", "w_all"}, {"y"});
  };
}

TEST(ConstantsLast, ConcatTurnsThem) {
  EXPECT_EQ(types_after(beside_constants({2}, {"c", "k2"})), kConcatFollows);
  EXPECT_EQ(types_after(beside_constants({2}, {"k2", "c"})), kConcatFollows);
  EXPECT_EQ(types_after(beside_constants({1, 2, 3}, {"k1", "c", "k2", "k3"})), kConcatFollows);
}

// Each run reads it as it is then; that of one channel is the file's.
TEST(ConstantsLast, AreComputedOnce) {
  const auto model = optimized(conv_and(beside_constants({1, 2}, {"c", "k1", "k2"}), {1, 4, 6, 6}),
                               Optimize::kAll);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& graph = model.value()->graph;
  ASSERT_EQ(types_of(graph), kConcatFollows);
  const Initializer& one = *graph.value(graph.nodes[1].inputs[1]).initializer;
  EXPECT_FALSE(one.recipe);
  EXPECT_TRUE(one.shape == (Shape{1, 6, 6, 1}));
  const Initializer& two = *graph.value(graph.nodes[1].inputs[2]).initializer;
  ASSERT_TRUE(two.recipe);
  EXPECT_EQ(two.recipe->op_type, "Transpose");
  EXPECT_TRUE(two.shape == (Shape{1, 6, 6, 2}));
}

// All of images with channels first.
TEST(ConstantsLast, ConcatWantsAnImageThatHasChannelsLast) {
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {
                  graph.initializer(f32_tensor("k", {1, 2, 6, 6}, wave(72)));
                  graph.node("Exp", {"x"}, {"e"});
                  graph.node("Concat", {"e", "k"}, {"j"}).attr_int("axis", 1);
                  graph.node("Flatten", {"j"}, {"y"});
                },
                {1, 180}),
            "Exp Concat Flatten");
}

TEST(ConstantsLast, ConcatRefusesAnotherBatch) {
  ModelWriter writer = plain_model(8, 18);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({Dim("n"), 3, 6, 6}));
  graph.initializer(f32_tensor("w", {4, 3, 3, 3}, wave(108)));
  graph.initializer(f32_tensor("k", {1, 2, 4, 4}, wave(32)));
  graph.node("Conv", {"x", "w"}, {"c"});
  graph.node("Concat", {"c", "k"}, {"y"}).attr_int("axis", 1);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  fused(writer, {{"x", make_tensor<float>({1, 3, 6, 6}, wave(108, 0.1F))}});
  expect_refused(writer, {{"x", make_tensor<float>({2, 3, 6, 6}, wave(216, 0.1F))}});
}

std::string types_beside(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return types_after([&](GraphWriter& graph) {
    graph.initializer(f32_tensor("k", dims, wave(count)));
    graph.node("Min", {"c", "k"}, {"s"});
    graph.node("Max", {"k", "s"}, {"m"});
    graph.node("Conv", {"m", "w2"}, {"y"});
  });
}

TEST(ConstantsLast, ElementwiseOperatorsTurnThem) {
  const std::vector<int64_t> shapes[] = {{1, 4, 6, 6}, {4, 6, 6},    {1, 1, 6, 6}, {1, 6, 6},
                                         {6, 6},       {6},          {6, 1},       {1, 4, 1, 6},
                                         {4, 6, 1},    {1, 4, 1, 1}, {4, 1, 1},    {1, 1, 1, 1}};
  for (const std::vector<int64_t>& shape : shapes) {
    EXPECT_EQ(types_beside(shape), "folio.nhwc.Conv Min Max folio.nhwc.Conv Transpose")
        << Shape(shape).to_string();
  }
}

// They give the result its batch, and its pixels.
TEST(ConstantsLast, MayBroadcastTheImage) {
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {
                  graph.initializer(f32_tensor("k", {2, 4, 5, 5}, wave(200)));
                  graph.node("GlobalAveragePool", {"c"}, {"g"});
                  graph.node("Mul", {"k", "g"}, {"m"});
                  graph.node("Conv", {"m", "w2"}, {"y"});
                },
                {2, 4, 5, 5}),
            "folio.nhwc.Conv folio.nhwc.GlobalAveragePool Mul folio.nhwc.Conv Transpose");
}

// 4 channels of 256 x 256 floats are 1 MiB; of one channel, the file's bytes serve.
TEST(ConstantsLast, LargeOnesStayInTheFile) {
  const auto types = [](int64_t channels, int64_t side) {
    ModelWriter writer = plain_model(8, 18);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 3, side, side}));
    graph.initializer(f32_tensor("w", {4, 3, 3, 3}, wave(108)));
    graph.initializer(
        f32_tensor("k", {1, channels, side, side}, wave(channels * side * side, 0.2F)));
    graph.node("Conv", {"x", "w"}, {"c"}).attr_ints("pads", {1, 1, 1, 1});
    graph.node("Mul", {"c", "k"}, {"m"});
    graph.node("MaxPool", {"m"}, {"y"}).attr_ints("kernel_shape", {2, 2});
    graph.output("y", f32_type({1, 4, side - 1, side - 1}));
    const auto model = optimized(writer, Optimize::kAll);
    return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
  };
  EXPECT_EQ(types(4, 256), "folio.nhwc.Conv Mul folio.nhwc.MaxPool Transpose");
  EXPECT_EQ(types(4, 257), "folio.nhwc.Conv Transpose Mul MaxPool");
  EXPECT_EQ(types(1, 600), "folio.nhwc.Conv Mul folio.nhwc.MaxPool Transpose");
}

// Its slopes are of channels, whatever their rank.
TEST(ConstantsLast, PReluBeforeOpset7KeepsItsOwnRule) {
  for (const std::vector<int64_t>& slope : {std::vector<int64_t>{4}, {4, 1, 1}}) {
    ModelWriter writer = plain_model(4, 6);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 3, 4, 4}));
    graph.initializer(f32_tensor("w", {4, 3, 1, 1}, wave(12)));
    graph.initializer(f32_tensor("slope", slope, {0.1F, 0.2F, 0.3F, 0.4F}));
    graph.node("Conv", {"x", "w"}, {"c"});
    graph.node("PRelu", {"c", "slope"}, {"p"});
    graph.node("AveragePool", {"p"}, {"y"}).attr_ints("kernel_shape", {2, 2});
    graph.output("y", f32_type({1, 4, 3, 3}));
    fused(writer, {{"x", make_tensor<float>({1, 3, 4, 4}, wave(48, 0.1F))}});
  }
}

}  // namespace
}  // namespace folio
