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

// Query heads in groups of two: `repeat` makes the heads of k and v [2, 3, 5, 4] into those of Q.
void grouped(GraphWriter& graph, const std::function<void(const char*, const char*)>& repeat) {
  graph.initializer(i64_tensor("pairs", {4}, {2, 6, 5, 4}));
  graph.node("Concat", {"q", "k"}, {"qs"}).attr_int("axis", 1);
  repeat("k", "ks");
  repeat("v", "vs");
  graph.node("Transpose", {"ks"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
  graph.node("MatMul", {"qs", "t"}, {"s"});
  finish(graph, "s", "vs");
}

// Each head twice: by axis 2 beside itself, by axis 1 behind all of them.
void expand_heads(GraphWriter& graph, int64_t axis, const std::string& from,
                  const std::string& to) {
  std::vector<int64_t> apart{2, 3, 5, 4};
  apart.insert(apart.begin() + axis, 2);
  graph.initializer(i64_tensor(from + "_axis", {1}, {axis}));
  graph.initializer(i64_tensor(from + "_apart", {5}, apart));
  graph.node("Unsqueeze", {from, from + "_axis"}, {from + "1"});
  graph.node("Expand", {from + "1", from + "_apart"}, {from + "2"});
  graph.node("Reshape", {from + "2", "pairs"}, {to});
}

TEST(FuseAttention, HeadsThatAreRepeatedForGroupsOfQueriesAreReadOnce) {
  const auto model = model_after([](GraphWriter& graph) {
    grouped(graph, [&](const std::string& from, const std::string& to) {
      expand_heads(graph, 2, from, to);
    });
  });
  ASSERT_EQ(types_of(model->graph), std::string("Concat ") + kFused);
  EXPECT_EQ(model->graph.nodes[1].attributes.get_int("repeats", 1).value(), 2);
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // by Reshape and Tile, K and V apart
              graph.initializer(i64_tensor("apart", {5}, {2, 3, 1, 5, 4}));
              graph.initializer(i64_tensor("times", {5}, {1, 1, 2, 1, 1}));
              grouped(graph, [&](const std::string& from, const std::string& to) {
                graph.node("Reshape", {from, "apart"}, {from + "1"});
                graph.node("Tile", {from + "1", "times"}, {from + "2"});
                graph.node("Reshape", {from + "2", "pairs"}, {to});
              });
            }),
            std::string("Concat ") + kFused);
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // one head for all
              graph.initializer(i64_tensor("all", {4}, {2, 6, 5, 4}));
              graph.initializer(i64_tensor("one", {1}, {1}));
              graph.initializer(i64_tensor("none", {1}, {0}));
              grouped(graph, [&](const std::string& from, const std::string& to) {
                graph.node("Slice", {from, "none", "one", "one"}, {from + "1"});
                graph.node("Expand", {from + "1", "all"}, {to});
              });
            }),
            std::string("Concat Slice Slice ") + kFused);
}

// As Hugging Face's models have it: sizes of the cache are asked for at run time, -1 is a dim that
// stays, and inputs share names of dims.
TEST(FuseAttention, RepeatedHeadsOfUnknownSizesAreReadOnce) {
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("q", f32_type({"batch", "positions", 24}));
  std::vector<NamedValue> inputs{{"q", make_tensor<float>({2, 3, 24}, wave(144))}};
  for (const char* name : {"k", "v"}) {
    graph.input(name, f32_type({"batch", 3, "positions", 4}));
    inputs.push_back({name, make_tensor<float>({2, 3, 5, 4}, wave(120, name[0] == 'k' ? 1 : 2))});
  }
  graph.initializer(i64_tensor("two", {1}, {2}));
  graph.initializer(i64_tensor("three", {1}, {3}));
  graph.initializer(i64_tensor("four", {1}, {4}));
  graph.initializer(i64_tensor("six", {1}, {6}));
  graph.initializer(i64_tensor("ones", {5}, {1, 1, 1, 1, 1}));
  graph.initializer(i64_tensor("unset", {5}, {-1, -1, -1, -1, -1}));
  graph.initializer(i64_tensor("rest", {1}, {-1}));
  const auto dim = [&](const std::string& name, int64_t i) {
    const std::string at = name + "_at" + std::to_string(i);
    graph.initializer(i64_tensor(at, {1}, {i}));
    graph.node("Shape", {name}, {at + "_shape"});
    graph.node("Gather", {at + "_shape", at}, {at + "_dim"});
    return at + "_dim";
  };
  graph.node("Concat", {dim("q", 0), dim("q", 1), "rest", "four"}, {"split"}).attr_int("axis", 0);
  graph.node("Reshape", {"q", "split"}, {"qr"});
  graph.node("Transpose", {"qr"}, {"qs"}).attr_ints("perm", {0, 2, 1, 3});
  for (const std::string name : {"k", "v"}) {
    const std::string batch = dim(name, 0);
    const std::string positions = dim(name, 2);
    graph.node("Concat", {batch, "three", "two", positions, "four"}, {name + "_wide"})
        .attr_int("axis", 0);
    graph.node("Equal", {name + "_wide", "unset"}, {name + "_is_unset"});
    graph.node("Where", {name + "_is_unset", "ones", name + "_wide"}, {name + "_set"});
    graph.node("Concat", {batch, "six", positions, "four"}, {name + "_joined"}).attr_int("axis", 0);
    graph.node("Unsqueeze", {name, "two"}, {name + "1"});
    graph.node("Expand", {name + "1", name + "_set"}, {name + "2"});
    graph.node("Reshape", {name + "2", name + "_joined"}, {name + "s"});
  }
  graph.node("Transpose", {"ks"}, {"t"}).attr_ints("perm", {0, 1, 3, 2});
  graph.node("MatMul", {"qs", "t"}, {"s"});
  finish(graph, "s", "vs");
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  EXPECT_EQ(types_of(fused(writer, inputs)->graph), std::string("Reshape ") + kFused);
}

TEST(FuseAttention, OtherRepetitionsStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // heads one after the other, and again
              grouped(graph, [&](const std::string& from, const std::string& to) {
                expand_heads(graph, 1, from, to);
              });
            }),
            std::string("Concat Unsqueeze Expand Reshape Unsqueeze Expand Reshape ") + kFused);
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // K alone
              grouped(graph, [&](const std::string& from, const std::string& to) {
                if (from == "k") return expand_heads(graph, 2, from, to);
                graph.node("Concat", {from, from}, {to}).attr_int("axis", 1);
              });
            }),
            std::string("Concat Unsqueeze Expand Reshape Concat ") + kFused);
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
