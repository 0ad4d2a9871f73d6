// fuse_matmul: transposes, factors, bias and function that go into the product, and what stays.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

// a [2, 3, 4], b [2, 4, 5], bt [2, 5, 4]; constant w [4, 5].
std::unique_ptr<Model> model_after(const Rest& rest) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("a", f32_type({2, 3, 4}));
  graph.input("b", f32_type({2, 4, 5}));
  graph.input("bt", f32_type({2, 5, 4}));
  graph.initializer(f32_tensor("w", {4, 5}, wave(20)));
  graph.initializer(f32_tensor("column", {4, 1}, wave(4)));
  graph.initializer(f32_tensor("bias", {5}, {1, 2, 3, 4, 5}));
  graph.initializer(f32_tensor("rows", {3, 1}, {1, 2, 3}));
  graph.initializer(f32_tensor("deep", {1, 1, 1, 5}, {1, 2, 3, 4, 5}));
  graph.initializer(f32_tensor("half", {}, {0.5F}));
  graph.initializer(f32_tensor("zero", {}, {0}));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  return fused(writer, {{"a", make_tensor<float>({2, 3, 4}, wave(24, 1))},
                        {"b", make_tensor<float>({2, 4, 5}, wave(40, 2))},
                        {"bt", make_tensor<float>({2, 5, 4}, wave(40, 3))}});
}
std::string types_after(const Rest& rest) { return types_of(model_after(rest)->graph); }

constexpr const char* kPrivate = "folio.FusedMatMul";
constexpr const char* kMicrosoft = "com.microsoft.FusedMatMul";

TEST(FuseMatMul, ABiasPerColumnGoesIn) {
  for (const char* b : {"w", "b"}) {
    EXPECT_EQ(types_after([&](GraphWriter& graph) {
                graph.node("MatMul", {"a", b}, {"p"});
                graph.node("Add", {"bias", "p"}, {"y"});
              }),
              kPrivate);
  }
}

TEST(FuseMatMul, OtherSumsStay) {
  for (const char* term : {"rows", "deep", "half"}) {
    SCOPED_TRACE(term);
    EXPECT_EQ(types_after([&](GraphWriter& graph) {
                graph.node("MatMul", {"a", "w"}, {"p"});
                graph.node("Add", {"p", term}, {"y"});
              }),
              "MatMul Add");
  }
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // [2, 3, 1] + [5] broadcasts the product
              graph.node("MatMul", {"a", "column"}, {"p"});
              graph.node("Add", {"p", "bias"}, {"y"});
            }),
            "MatMul Add");
}

// [3, 4] times a vector: the last dim of the product is the rows'.
TEST(FuseMatMul, ABiasOfAVectorOfRowsStays) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.initializer(f32_tensor("vector", {4}, wave(4)));
              graph.initializer(f32_tensor("per_row", {3}, {1, 2, 3}));
              graph.node("MatMul", {"a", "vector"}, {"p"});
              graph.node("Add", {"p", "per_row"}, {"y"});
            }),
            "MatMul Add");
}

TEST(FuseMatMul, AFunctionGoesInAfterTheBias) {
  for (const char* function : {"Relu", "Sigmoid", "HardSwish"}) {
    const auto model = model_after([&](GraphWriter& graph) {
      graph.node("MatMul", {"a", "w"}, {"p"});
      graph.node("Add", {"p", "bias"}, {"s"});
      graph.node(function, {"s"}, {"y"});
    });
    ASSERT_EQ(types_of(model->graph), kPrivate);
    EXPECT_EQ(model->graph.nodes[0].attributes.get_string("activation").value(), function);
  }
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"a", "b"}, {"p"});
              graph.node("Clip", {"p", "zero", "half"}, {"y"});
            }),
            kPrivate);
}

TEST(FuseMatMul, TransposesOfTheLastTwoDimsGoIn) {
  const auto model = model_after([](GraphWriter& graph) {
    graph.node("Transpose", {"bt"}, {"t"}).attr_ints("perm", {0, 2, 1});
    graph.node("MatMul", {"a", "t"}, {"y"});
  });
  ASSERT_EQ(types_of(model->graph), kMicrosoft);
  EXPECT_EQ(model->graph.nodes[0].attributes.get_int("transB").value(), 1);
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Transpose", {"b"}, {"t"}).attr_ints("perm", {0, 2, 1});
              graph.node("Transpose", {"a"}, {"u"}).attr_ints("perm", {0, 2, 1});
              graph.node("MatMul", {"t", "u"}, {"y"});
            }),
            kMicrosoft);
}

TEST(FuseMatMul, OtherTransposesAndSharedOnesStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Transpose", {"bt"}, {"t"}).attr_ints("perm", {0, 2, 1});
              graph.node("MatMul", {"a", "t"}, {"y"});
              graph.output("t", f32_type({2, 4, 5}));
            }),
            "Transpose MatMul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Transpose", {"a"}, {"t"}).attr_ints("perm", {1, 0, 2});
              graph.node("MatMul", {"t", "w"}, {"y"});
            }),
            "Transpose MatMul");
}

TEST(FuseMatMul, FactorsAreAlpha) {
  const auto model = model_after([](GraphWriter& graph) {
    graph.node("Mul", {"a", "half"}, {"scaled"});
    graph.node("MatMul", {"scaled", "b"}, {"p"});
    graph.node("Div", {"p", "half"}, {"q"});
    graph.node("Mul", {"half", "q"}, {"y"});
  });
  ASSERT_EQ(types_of(model->graph), kMicrosoft);
  EXPECT_EQ(model->graph.nodes[0].attributes.get_float("alpha").value(), 0.5F);
  // x / p is no factor, and 0 would hide what is not finite.
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"a", "b"}, {"p"});
              graph.node("Div", {"half", "p"}, {"y"});
            }),
            "MatMul Div");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"a", "b"}, {"p"});
              graph.node("Mul", {"zero", "p"}, {"y"});
            }),
            "MatMul Mul");
}

TEST(FuseMatMul, AProductThatOthersReadStays) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"a", "w"}, {"p"});
              graph.node("Add", {"p", "bias"}, {"s"});
              graph.node("Mul", {"s", "p"}, {"y"});
            }),
            "MatMul Add Mul");
}

}  // namespace
}  // namespace folio
