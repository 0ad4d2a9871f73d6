// fuse_attention: the spellings of attention that become one node, and the near misses that stay.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

constexpr const char* kFused = "folio.StridedAttention";

// x, z, w [2, 5, 3, 4] (batch, positions, heads, elements); q, k, v the same as heads of positions;
// kt [2, 3, 4, 5]; mask [2, 1, 1, 5]; hidden [5, 5] (bool, upper triangle).
std::unique_ptr<Model> model_after(const Rest& rest, int64_t opset = 17) {
  ModelWriter writer = plain_model(8, opset);
  GraphWriter& graph = writer.graph();
  std::vector<NamedValue> inputs;
  float phase = 0;
  for (const char* name : {"x", "z", "w"}) {
    graph.input(name, f32_type({2, 5, 3, 4}));
    inputs.push_back({name, make_tensor<float>({2, 5, 3, 4}, wave(120, phase += 1))});
  }
  for (const char* name : {"q", "k", "v"}) {
    graph.input(name, f32_type({2, 3, 5, 4}));
    inputs.push_back({name, make_tensor<float>({2, 3, 5, 4}, wave(120, phase += 1))});
  }
  graph.input("kt", f32_type({2, 3, 4, 5}));
  inputs.push_back({"kt", make_tensor<float>({2, 3, 4, 5}, wave(120, phase += 1))});
  graph.input("mask", f32_type({2, 1, 1, 5}));
  inputs.push_back({"mask", make_tensor<float>({2, 1, 1, 5}, wave(10, phase + 1))});
  graph.input("hidden", model_writer::Type::tensor(kBoolean, {5, 5}));
  std::vector<bool> hidden;
  for (int i = 0; i < 25; ++i) hidden.push_back(i % 5 > i / 5);
  inputs.push_back({"hidden", make_tensor<bool>({5, 5}, hidden)});
  graph.initializer(f32_tensor("eight", {}, {8}));
  graph.initializer(f32_tensor("half", {}, {0.5F}));
  graph.initializer(f32_tensor("zero", {}, {0}));
  graph.initializer(f32_tensor("low", {}, {-1e9F}));
  graph.initializer(f32_tensor("causal", {1, 1, 5, 5}, wave(25)));
  graph.initializer(f32_tensor("deep", {1, 1, 1, 1, 5}, wave(5)));
  graph.initializer(f32_tensor("weights", {2, 3, 5, 4}, wave(120)));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  return fused(writer, inputs);
}
std::string types_after(const Rest& rest, int64_t opset = 17) {
  return types_of(model_after(rest, opset)->graph);
}

void finish(GraphWriter& graph, const char* scores, const char* v = "v") {
  graph.node("Softmax", {scores}, {"p"}).attr_int("axis", -1);
  graph.node("MatMul", {"p", v}, {"y"});
}

// As BERT has it: transposes around, K^T by its own, a divisor and a mask.
void bert(GraphWriter& graph) {
  graph.node("Transpose", {"x"}, {"qh"}).attr_ints("perm", {0, 2, 1, 3});
  graph.node("Transpose", {"z"}, {"kh"}).attr_ints("perm", {0, 2, 3, 1});
  graph.node("Transpose", {"w"}, {"vh"}).attr_ints("perm", {0, 2, 1, 3});
  graph.node("MatMul", {"qh", "kh"}, {"s"});
  graph.node("Div", {"s", "eight"}, {"scaled"});
  graph.node("Add", {"scaled", "mask"}, {"masked"});
  graph.node("Softmax", {"masked"}, {"p"}).attr_int("axis", 3);
  graph.node("MatMul", {"p", "vh"}, {"o"});
  graph.node("Transpose", {"o"}, {"y"}).attr_ints("perm", {0, 2, 1, 3});
}

TEST(FuseAttention, TransposesAroundGoIn) {
  for (const int64_t opset : {11, 17}) {
    const auto model = model_after(bert, opset);
    ASSERT_EQ(types_of(model->graph), kFused);
    const Attributes& attrs = model->graph.nodes[0].attributes;
    EXPECT_EQ(attrs.get_float("scale").value(), 0.125F);
    for (const char* name : {"perm_q", "perm_k", "perm_v", "perm_y"}) {
      EXPECT_EQ(attrs.get_ints(name).value(), (std::vector<int64_t>{0, 2, 1, 3})) << name;
    }
  }
}

TEST(FuseAttention, WhatLiesInHeadsIsReadAsItIs) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              finish(graph, "s");
            }),
            kFused);
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // whisper: K's last dims swapped, Q scaled
              graph.node("Mul", {"q", "half"}, {"scaled"});
              graph.node("Transpose", {"k"}, {"swapped"}).attr_ints("perm", {0, 1, 3, 2});
              graph.node("MatMul", {"scaled", "swapped"}, {"s"});
              graph.node("Add", {"causal", "s"}, {"masked"});
              finish(graph, "masked");
            }),
            kFused);
}

TEST(FuseAttention, FactorsOfBothOperandsMultiply) {
  const auto model = model_after([](GraphWriter& graph) {
    graph.node("Mul", {"half", "q"}, {"qs"});
    graph.node("Transpose", {"k"}, {"swapped"}).attr_ints("perm", {0, 1, 3, 2});
    graph.node("Mul", {"swapped", "half"}, {"ks"});
    graph.node("MatMul", {"qs", "ks"}, {"s"});
    finish(graph, "s");
  });
  ASSERT_EQ(types_of(model->graph), kFused);
  EXPECT_EQ(model->graph.nodes[0].attributes.get_float("scale").value(), 0.25F);
}

TEST(FuseAttention, WhereOnEitherSideIsAMask) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Where", {"hidden", "low", "s"}, {"masked"});
              finish(graph, "masked");
            }),
            kFused);
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Add", {"s", "mask"}, {"t"});
              graph.node("Not", {"hidden"}, {"seen"});
              graph.node("Where", {"seen", "t", "low"}, {"masked"});
              finish(graph, "masked");
            }),
            std::string("Not ") + kFused);
}

TEST(FuseAttention, HeadsAsTheBatchOfThreeDims) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.initializer(i64_tensor("flat", {3}, {6, 5, 4}));
              for (const char* name : {"q", "k", "v"}) {
                graph.node("Reshape", {name, "flat"}, {std::string(name) + "3"});
              }
              graph.node("Transpose", {"k3"}, {"t"}).attr_ints("perm", {0, 2, 1});
              graph.node("MatMul", {"q3", "t"}, {"s"});
              finish(graph, "s", "v3");
            }),
            std::string("Reshape Reshape Reshape ") + kFused);
}

TEST(FuseAttention, TransposesThatOthersReadStayAndAreRead) {
  const auto model = model_after([](GraphWriter& graph) {
    graph.node("Transpose", {"z"}, {"cache"}).attr_ints("perm", {0, 2, 1, 3});
    graph.node("Transpose", {"cache"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
    graph.node("MatMul", {"q", "t"}, {"s"});
    finish(graph, "s");
    graph.output("cache", f32_type({2, 3, 5, 4}));
  });
  EXPECT_EQ(types_of(model->graph), std::string("Transpose ") + kFused);
}

TEST(FuseAttention, TransposesOfRowsStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // the result's elements no longer lie together
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Softmax", {"s"}, {"p"});
              graph.node("MatMul", {"p", "v"}, {"o"});
              graph.node("Transpose", {"o"}, {"y"}).attr_ints("perm", {0, 1, 3, 2});
            }),
            std::string(kFused) + " Transpose");
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // nor do those of Q
              graph.node("Transpose", {"kt"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
              graph.node("MatMul", {"t", "kt"}, {"s"});
              finish(graph, "s");
            }),
            std::string("Transpose ") + kFused);
}

TEST(FuseAttention, ScoresOrWeightsThatOthersReadStay) {
  for (const char* shared : {"s", "masked", "p"}) {
    SCOPED_TRACE(shared);
    const std::string types = types_after([&](GraphWriter& graph) {
      graph.node("MatMul", {"q", "kt"}, {"s"});
      graph.node("Add", {"s", "causal"}, {"masked"});
      finish(graph, "masked");
      graph.output(shared, f32_type({2, 3, 5, 5}));
    });
    EXPECT_EQ(types, "MatMul Add Softmax MatMul");
  }
}

TEST(FuseAttention, OtherAxesAndSidesStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Softmax", {"s"}, {"p"}).attr_int("axis", 2);
              graph.node("MatMul", {"p", "v"}, {"y"});
            }),
            "MatMul Softmax MatMul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Softmax", {"s"}, {"p"});
              graph.node("MatMul", {"kt", "p"}, {"y"});
            }),
            "MatMul Softmax MatMul");
  EXPECT_EQ(types_after(
                [](GraphWriter& graph) {  // before opset 13 the default is axis 1 and all after it
                  graph.node("MatMul", {"q", "kt"}, {"s"});
                  graph.node("Softmax", {"s"}, {"p"});
                  graph.node("MatMul", {"p", "v"}, {"y"});
                },
                11),
            "MatMul Softmax MatMul");
}

TEST(FuseAttention, ConstantOperandsAndDeepMasksStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              finish(graph, "s", "weights");
            }),
            "MatMul Softmax MatMul");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Add", {"s", "deep"}, {"masked"});
              finish(graph, "masked");
            }),
            "MatMul Add Softmax MatMul");
}

TEST(FuseAttention, FactorsThatVanishStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("MatMul", {"q", "kt"}, {"s"});
              graph.node("Mul", {"s", "zero"}, {"scaled"});
              finish(graph, "scaled");
            }),
            "MatMul Mul Softmax MatMul");
}

}  // namespace
}  // namespace folio
