// widen_conv: convolutions of bfloat16 as those of float, and what bounds their results.
#include <functional>

#include "core/ops/op_half.h"
#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using Rest = std::function<void(GraphWriter&)>;

// Small numbers of quarters: every sum is exact, whatever its order, and most are rounded.
std::string quarters(int64_t count) {
  std::string raw;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = float_to_bfloat16(static_cast<float>(i * 37 % 101 - 50) / 4);
    raw.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  }
  return raw;
}

// c = Conv(x [1, 8, 6, 7], w [16, 8, 3, 3], b) of bfloat16; y, of floats, is what `rest` makes.
std::unique_ptr<Model> model_after(const Rest& rest) {
  ModelWriter writer = plain_model(8, 22);
  GraphWriter& graph = writer.graph();
  graph.input("floats", f32_type({1, 8, 6, 7}));
  graph.node("Cast", {"floats"}, {"x"}).attr_int("to", 16);
  graph.initializer(TensorWriter("w", ElementType::kBfloat16, {16, 8, 3, 3}).raw(quarters(1152)));
  graph.initializer(TensorWriter("b", ElementType::kBfloat16, {16}).raw(quarters(16)));
  graph.initializer(TensorWriter("low", ElementType::kBfloat16, {}).raw(quarters(1)));
  graph.node("Conv", {"x", "w", "b"}, {"c"});
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  std::vector<float> x;
  for (int64_t i = 0; i < 336; ++i) x.push_back(static_cast<float>(i * 29 % 61 - 30));
  return fused(writer, {{"floats", make_tensor<float>({1, 8, 6, 7}, x)}});
}
std::string types_after(const Rest& rest) { return types_of(model_after(rest)->graph); }

TEST(WidenConv, RoundsEachResult) {
  EXPECT_EQ(
      types_after([](GraphWriter& graph) { graph.node("Cast", {"c"}, {"y"}).attr_int("to", 1); }),
      "Cast Cast Conv Cast Cast");
}

TEST(WidenConv, BoundsGoIntoTheConvolution) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Relu", {"c"}, {"r"});
              graph.node("Cast", {"r"}, {"y"}).attr_int("to", 1);
            }),
            "Cast Cast com.microsoft.FusedConv Cast Cast");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Clip", {"c", "low"}, {"r"});
              graph.node("Cast", {"r"}, {"y"}).attr_int("to", 1);
            }),
            "Cast Cast com.microsoft.FusedConv Cast Cast");
}

// 0.01 times a rounded number is another than 0.01 times the number, rounded.
TEST(WidenConv, OtherFunctionsReadWhatWasRounded) {
  const auto model = model_after([](GraphWriter& graph) {
    graph.node("LeakyRelu", {"c"}, {"r"});
    graph.node("Cast", {"r"}, {"y"}).attr_int("to", 1);
  });
  bool found = false;
  for (const Node& node : model->graph.nodes) {
    if (node.op_type != "LeakyRelu") continue;
    found = true;
    EXPECT_EQ(model->graph.value(node.inputs[0]).type.dtype, DType::kBfloat16);
  }
  EXPECT_TRUE(found);
}

TEST(WidenConv, AModelToBeSavedStaysAsItIs) {
  ModelWriter writer = plain_model(8, 22);
  GraphWriter& graph = writer.graph();
  graph.input("x", model_writer::Type::tensor(ElementType::kBfloat16, {1, 8, 6, 7}));
  graph.initializer(TensorWriter("w", ElementType::kBfloat16, {16, 8, 3, 3}).raw(quarters(1152)));
  graph.node("Conv", {"x", "w"}, {"y"});
  graph.output("y", model_writer::Type::tensor(ElementType::kBfloat16, {1, 16, 4, 5}));
  const auto model = optimized(writer, Optimize::kExtended);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph), "Conv");
}

}  // namespace
}  // namespace folio
