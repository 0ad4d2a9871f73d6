// read_transposed: products that read a constant matrix where it stands, and what stays.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

constexpr int64_t kK = 160;
constexpr int64_t kN = 260;  // 81 KiB in 16 bits: not computed when constants are folded

// x [2, 3, 160], flat [6, 160]; constants w [260, 160] and, of 16 bits, h [260, 160], s [4, 160].
// After it input 1 of the last node is of `shape`.
std::string product_after(const Rest& rest, Shape* shape) {
  ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 3, kK}));
  graph.input("flat", f32_type({6, kK}));
  graph.initializer(f32_tensor("w", {kN, kK}, wave(kN * kK)));
  graph.initializer(f32_tensor("s", {4, kK}, wave(4 * kK)));
  graph.initializer(model_writer::TensorWriter("h", model_writer::ElementType::kBfloat16, {kN, kK})
                        .raw(std::string(2 * kN * kK, '\x3c')));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto model = fused(writer, {{"x", make_tensor<float>({2, 3, kK}, wave(6 * kK, 1))},
                                    {"flat", make_tensor<float>({6, kK}, wave(6 * kK, 2))}});
  read_transposed(model.get());
  if (model->graph.nodes.empty()) return "nothing";
  const Node& last = model->graph.nodes.back();
  *shape = model->graph.constant_value(last.inputs[1])->initializer->shape;
  const auto trans = last.attributes.get_int("transB", 0);
  return cat(types_of(model->graph), trans.is_ok() && trans.value() != 0 ? " transB" : "");
}

TEST(ReadTransposed, ProductsTurnTheMatrixThemselves) {
  Shape shape;
  EXPECT_EQ(product_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"w"}, {"t"});
                  graph.node("MatMul", {"x", "t"}, {"y"});
                },
                &shape),
            "com.microsoft.FusedMatMul transB");
  EXPECT_EQ(shape, (Shape{kN, kK}));
  EXPECT_EQ(product_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"w"}, {"t"}).attr_ints("perm", {1, 0});
                  graph.node("MatMul", {"x", "t"}, {"p"});
                  graph.node("Relu", {"p"}, {"y"});
                },
                &shape),
            "folio.FusedMatMul transB");
  EXPECT_EQ(product_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"w"}, {"t"});
                  graph.node("Transpose", {"t"}, {"tt"});
                  graph.node("Transpose", {"tt"}, {"ttt"});
                  graph.node("Gemm", {"flat", "ttt"}, {"y"});
                },
                &shape),
            "Gemm transB");
  EXPECT_EQ(shape, (Shape{kN, kK}));
  EXPECT_EQ(product_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"w"}, {"t"});
                  graph.node("Transpose", {"t"}, {"tt"});
                  graph.node("Gemm", {"flat", "tt"}, {"p"}).attr_int("transB", 1);
                  graph.node("Sigmoid", {"p"}, {"y"});
                },
                &shape),
            "com.microsoft.FusedGemm transB");
  EXPECT_EQ(shape, (Shape{kN, kK}));
}

TEST(ReadTransposed, ATransposeOf16BitsMayStandBeforeTheCastOrAfter) {
  for (const bool is_before : {false, true}) {
    Shape shape;
    EXPECT_EQ(product_after(
                  [&](GraphWriter& graph) {
                    if (is_before) graph.node("Transpose", {"h"}, {"t"});
                    graph.node("Cast", {is_before ? "t" : "h"}, {"f"}).attr_int("to", 1);
                    if (!is_before) graph.node("Transpose", {"f"}, {"u"});
                    graph.node("MatMul", {"x", is_before ? "f" : "u"}, {"y"});
                  },
                  &shape),
              "com.microsoft.FusedMatMul transB");
    EXPECT_EQ(shape, (Shape{kN, kK}));
  }
}

TEST(ReadTransposed, SmallMatricesWereComputed) {
  Shape shape;
  EXPECT_EQ(product_after(
                [](GraphWriter& graph) {
                  graph.node("Transpose", {"s"}, {"t"});
                  graph.node("MatMul", {"x", "t"}, {"y"});
                },
                &shape),
            "MatMul");
  EXPECT_EQ(shape, (Shape{kK, 4}));
}

}  // namespace
}  // namespace folio
