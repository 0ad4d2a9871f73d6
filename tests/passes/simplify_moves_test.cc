// simplify_moves: what is removed and merged, and what only looks like it.
#include <ctime>
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

std::string types_after(const Rest& rest, int64_t opset = 17) {
  ModelWriter writer = plain_model(8, opset);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 3, 4}));
  graph.input("z", f32_type({"a", "b", 4}));
  graph.initializer(i64_tensor("zeros", {3}, {0, 0, 0}));
  graph.initializer(i64_tensor("ones", {3}, {1, 1, 1}));
  graph.initializer(i64_tensor("ends", {3}, {2, 3, 9223372036854775807}));
  graph.initializer(i64_tensor("short", {3}, {2, 3, 3}));
  graph.initializer(i64_tensor("same", {3}, {2, 3, 4}));
  graph.initializer(i64_tensor("flat", {2}, {6, 4}));
  graph.initializer(i64_tensor("copy", {3}, {0, -1, 2}));
  graph.initializer(i64_tensor("i0", {1}, {0}));
  graph.initializer(i64_tensor("i1", {1}, {1}));
  graph.initializer(i64_tensor("two", {1}, {2}));
  graph.initializer(i64_tensor("no_pads", {6}, {0, 0, 0, 0, 0, 0}));
  graph.initializer(f32_tensor("number", {}, {0.5F}));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto model = fused(writer, {{"x", make_tensor<float>({2, 3, 4}, wave(24))},
                                    {"z", make_tensor<float>({1, 5, 4}, wave(20))}});
  return types_of(model->graph);
}

// A node between two others, so that its result is no output.
Rest between(const Rest& middle) {
  return [=](GraphWriter& graph) {
    graph.node("Sin", {"x"}, {"from"});
    middle(graph);
    graph.node("Cos", {"to"}, {"y"});
  };
}

// Optimized, a model that a run refuses is still refused.
TEST(SimplifyMoves, WhatARunRefusesStays) {
  const Rest wrong[] = {[](GraphWriter& graph) {
                          graph.initializer(i64_tensor("four", {3}, {2, 4, 4}));
                          graph.node("Expand", {"from", "four"}, {"to"});
                        },
                        [](GraphWriter& graph) {
                          graph.initializer(i64_tensor("minus", {1}, {-1}));
                          graph.node("Expand", {"from", "minus"}, {"to"});
                        },
                        [](GraphWriter& graph) {
                          graph.node("ReduceSum", {"from"}, {"sum"}).attr_int("keepdims", 0);
                          graph.node("Tile", {"sum", "ones"}, {"to"});
                        },
                        [](GraphWriter& graph) {
                          graph.initializer(i64_tensor("seven", {1}, {7}));
                          graph.node("Reshape", {"from", "seven"}, {"between"});
                          graph.node("Reshape", {"between", "flat"}, {"to"});
                        },
                        [](GraphWriter& graph) {
                          graph.node("Squeeze", {"from", "i1"}, {"between"});
                          graph.node("Reshape", {"between", "flat"}, {"to"});
                        },
                        [](GraphWriter& graph) {
                          graph.node("Flatten", {"from"}, {"between"}).attr_int("axis", 4);
                          graph.node("Reshape", {"between", "flat"}, {"to"});
                        }};
  for (const Rest& middle : wrong) {
    ModelWriter writer = plain_model(8, 17);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({2, 3, 4}));
    graph.initializer(i64_tensor("ones", {3}, {1, 1, 1}));
    graph.initializer(i64_tensor("flat", {2}, {6, 4}));
    graph.initializer(i64_tensor("i1", {1}, {1}));
    between(middle)(graph);
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    SCOPED_TRACE(&middle - wrong);
    expect_refused(writer, {{"x", make_tensor<float>({2, 3, 4}, wave(24))}});
  }
}

TEST(SimplifyMoves, WhatDoesNothingGoes) {
  const Rest idle[] = {
      [](GraphWriter& graph) { graph.node("Concat", {"from"}, {"to"}).attr_int("axis", 1); },
      [](GraphWriter& graph) { graph.node("Sum", {"from"}, {"to"}); },
      [](GraphWriter& graph) {
        graph.node("Slice", {"from", "zeros", "ends"}, {"to"});
      },
      [](GraphWriter& graph) {
        graph.node("Pad", {"from", "no_pads"}, {"to"});
      },
      [](GraphWriter& graph) {
        graph.node("Expand", {"from", "ones"}, {"to"});
      },
      [](GraphWriter& graph) {
        graph.node("Tile", {"from", "ones"}, {"to"});
      },
      [](GraphWriter& graph) {
        graph.node("Reshape", {"from", "same"}, {"to"});
      },
      [](GraphWriter& graph) {
        graph.node("Transpose", {"from"}, {"to"}).attr_ints("perm", {0, 1, 2});
      },
  };
  for (const Rest& each : idle) EXPECT_EQ(types_after(between(each)), "Sin Cos");
}

TEST(SimplifyMoves, WhatTakesAPartStays) {
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              graph.node("Slice", {"from", "zeros", "short"}, {"to"});
            })),
            "Sin Slice Cos");
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              graph.node("Slice", {"from", "zeros", "same", "", "ones"}, {"part"});
              graph.node("Slice", {"part", "i1", "two", "i0"}, {"to"});
            })),
            "Sin Slice Cos");
}

TEST(SimplifyMoves, ASumOfTwoIsAnAdd) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Sum", {"x", "number"}, {"y"});
            }),
            "Add");
}

void transpose(GraphWriter& graph, const char* x, const char* y, const std::vector<int64_t>& perm) {
  graph.node("Transpose", {x}, {y}).attr_ints("perm", perm);
}

// As torch.nn.functional.normalize is written: x / norm.expand_as(x).
TEST(SimplifyMoves, WhatBroadcastsReadsWhatExpandReads) {
  const auto after = [](const char* type, const char* norm_of, const char* beside) {
    return types_after([&](GraphWriter& graph) {
      graph.node("ReduceSum", {norm_of, "i1"}, {"sum"});
      graph.node("Shape", {norm_of}, {"dims"});
      graph.node("Expand", {"sum", "dims"}, {"all"});
      graph.node(type, {beside, "all"}, {"y"});
    });
  };
  EXPECT_EQ(after("Div", "x", "x"), "ReduceSum Div");
  EXPECT_EQ(after("Div", "z", "z"), "ReduceSum Div");
  EXPECT_EQ(after("Less", "z", "z"), "ReduceSum Less");
  EXPECT_EQ(after("Mul", "z", "number"), "ReduceSum Shape Expand Mul");
}

TEST(SimplifyMoves, TransposesBecomeOneOrNone) {
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              transpose(graph, "from", "t", {2, 0, 1});
              transpose(graph, "t", "to", {1, 2, 0});
            })),
            "Sin Cos");
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              transpose(graph, "from", "t", {2, 0, 1});
              transpose(graph, "t", "to", {2, 0, 1});
            })),
            "Sin Transpose Cos");
}

TEST(SimplifyMoves, TransposesMeetThroughFunctions) {
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              transpose(graph, "from", "t", {2, 0, 1});
              graph.node("Relu", {"t"}, {"r"});
              graph.node("Mul", {"number", "r"}, {"m"});
              transpose(graph, "m", "to", {1, 2, 0});
            })),
            "Sin Relu Mul Cos");
  // Another order, and a result that others read.
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              transpose(graph, "from", "t", {2, 0, 1});
              graph.node("Relu", {"t"}, {"r"});
              transpose(graph, "r", "to", {2, 0, 1});
            })),
            "Sin Transpose Relu Transpose Cos");
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              transpose(graph, "from", "t", {2, 0, 1});
              graph.node("Relu", {"t"}, {"r"});
              transpose(graph, "r", "to", {1, 2, 0});
              graph.output("r", f32_type({4, 2, 3}));
            })),
            "Sin Transpose Relu Transpose Cos");
}

TEST(SimplifyMoves, AReshapeOfAReshapeIsOne) {
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {
              graph.node("Reshape", {"from", "flat"}, {"r"});
              graph.node("Unsqueeze", {"r", "i0"}, {"u"});
              graph.node("Reshape", {"u", "same"}, {"s"});
              graph.node("Reshape", {"s", "flat"}, {"to"});
            })),
            "Sin Reshape Cos");
  EXPECT_EQ(types_after(between([](GraphWriter& graph) {  // 0 copies a dim of what is between
              graph.node("Reshape", {"from", "flat"}, {"r"});
              graph.node("Reshape", {"r", "copy"}, {"to"});
            })),
            "Sin Reshape Reshape Cos");
}

TEST(SimplifyMoves, ATargetOfKnownDimsIsConstant) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Shape", {"z"}, {"dims"});
              graph.node("Gather", {"dims", "i0"}, {"a"});
              graph.node("Gather", {"dims", "i1"}, {"b"});
              graph.node("Concat", {"a", "b", "two", "two"}, {"target"}).attr_int("axis", 0);
              graph.node("Reshape", {"z", "target"}, {"r"});
              graph.node("Sin", {"r"}, {"y"});
            }),
            "Reshape Sin");
}

TEST(SimplifyMoves, ATargetOfItsInputsDimsIsConstantWhateverTheyAre) {
  const auto types = [](const char* of, const char* second) {
    ModelWriter writer = plain_model();
    GraphWriter& graph = writer.graph();
    graph.input("u", f32_type({"a", "b", 4}));
    graph.input("v", f32_type({"c", "d", 4}));
    graph.initializer(i64_tensor("i0", {}, {0}));
    graph.initializer(i64_tensor("i1", {}, {1}));
    graph.initializer(i64_tensor("two", {1}, {2}));
    graph.initializer(i64_tensor("axes", {1}, {0}));
    graph.node("Add", {"u", "v"}, {"x"});  // broadcasts: nobody knows its dims
    graph.node("Shape", {of}, {"dims"});
    graph.node("Gather", {"dims", "i0"}, {"first"});
    graph.node("Gather", {"dims", second}, {"second"});
    graph.node("Unsqueeze", {"first", "axes"}, {"first1"});
    graph.node("Unsqueeze", {"second", "axes"}, {"second1"});
    graph.node("Concat", {"first1", "second1", "two", "two"}, {"target"}).attr_int("axis", 0);
    graph.node("Reshape", {"x", "target"}, {"y"});
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    return types_of(fused(writer, {{"u", make_tensor<float>({3, 3, 4}, wave(36))},
                                   {"v", make_tensor<float>({1, 3, 4}, wave(12))}})
                        ->graph);
  };
  EXPECT_EQ(types("x", "i1"), "Add Reshape");
  EXPECT_NE(types("u", "i1"), "Add Reshape");
  EXPECT_NE(types("x", "i0"), "Add Reshape") << "its own first dim at the place of its second";
}

TEST(SimplifyMoves, DimsAreSeenThroughATranspose) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 3, "h", "w"}));
  graph.initializer(i64_tensor("i0", {}, {0}));
  graph.initializer(i64_tensor("rest", {1}, {-1}));
  graph.initializer(i64_tensor("three", {1}, {3}));
  graph.initializer(i64_tensor("axes", {1}, {0}));
  graph.node("Sin", {"x"}, {"v"});
  transpose(graph, "v", "t", {0, 2, 3, 1});
  graph.node("Shape", {"v"}, {"dims"});
  graph.node("Gather", {"dims", "i0"}, {"n"});
  graph.node("Unsqueeze", {"n", "axes"}, {"n1"});
  graph.node("Concat", {"n1", "rest", "three"}, {"target"}).attr_int("axis", 0);
  graph.node("Reshape", {"t", "target"}, {"y"});
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto model = fused(writer, {{"x", make_tensor<float>({2, 3, 2, 2}, wave(24))}});
  EXPECT_EQ(types_of(model->graph), "Sin Transpose Reshape");
}

TEST(SimplifyMoves, DimsOfSizeOneMoveByAView) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 1, 4}));
  transpose(graph, "x", "y", {1, 0, 2});
  graph.output("y", f32_type({1, "n", 4}));
  const auto model = fused(writer, {{"x", make_tensor<float>({3, 1, 4}, wave(12))}});
  EXPECT_EQ(types_of(model->graph), "Reshape");
}

TEST(SimplifyMoves, CastsThroughAWiderTypeAreOne) {
  const auto casts = [](model_writer::ElementType first, model_writer::ElementType second) {
    return types_after([=](GraphWriter& graph) {
      graph.node("Sin", {"x"}, {"from"});
      graph.node("Cast", {"from"}, {"c"}).attr_int("to", static_cast<int64_t>(first));
      graph.node("Cast", {"c"}, {"to"}).attr_int("to", static_cast<int64_t>(second));
      graph.node("Cast", {"to"}, {"last"}).attr_int("to", static_cast<int64_t>(kF32));
      graph.node("Cos", {"last"}, {"y"});
    });
  };
  EXPECT_EQ(casts(model_writer::ElementType::kDouble, kI64), "Sin Cast Cast Cos");
  EXPECT_EQ(casts(model_writer::ElementType::kDouble, kF32), "Sin Cos");
  EXPECT_EQ(casts(kI64, model_writer::ElementType::kInt32), "Sin Cast Cast Cast Cos");
}

TEST(SimplifyMoves, ZeroPadsGoIntoConv) {
  const auto types = [](const std::vector<int64_t>& pads, float value) {
    ModelWriter writer = plain_model();
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 1, 4, 4}));
    graph.initializer(i64_tensor("pads", {8}, pads));
    graph.initializer(f32_tensor("value", {}, {value}));
    graph.initializer(f32_tensor("w", {1, pads[1] + 1, 2, 2}, wave(4 * (pads[1] + 1))));
    graph.node("Pad", {"x", "pads", "value"}, {"p"});
    graph.node("Conv", {"p", "w"}, {"y"}).attr_ints("pads", {1, 0, 0, 0});
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    return types_of(fused(writer, {{"x", make_tensor<float>({1, 1, 4, 4}, wave(16))}})->graph);
  };
  EXPECT_EQ(types({0, 0, 1, 2, 0, 0, 0, 1}, 0), "Conv");
  EXPECT_EQ(types({0, 0, 1, 2, 0, 0, 0, 1}, 1), "Pad Conv");
  EXPECT_EQ(types({0, 1, 0, 0, 0, 0, 0, 0}, 0), "Pad Conv");
  EXPECT_EQ(types({0, 0, -1, 0, 0, 0, 0, 0}, 0), "Pad Conv");
}

struct PoolCase {
  const char* type = "MaxPool";
  std::vector<int64_t> pads = {0, 0, 1, 0, 0, 0, 1, 2};
  float value = 0;
  bool is_positive = true;
  int64_t ceil_mode = 0;
  std::vector<int64_t> own_pads = {};
  int64_t dilation = 1;
  bool has_indices = false;
  const char* joined = nullptr;  // a function of x that Concat joins to that of the image
};

TEST(SimplifyMoves, PadsGoIntoPools) {
  const auto types = [](const PoolCase& c) {
    ModelWriter writer = plain_model(8, c.dilation > 1 ? 19 : 17);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({1, 2, 7, 8}));
    graph.initializer(i64_tensor("pads", {8}, c.pads));
    graph.initializer(f32_tensor("value", {}, {c.value}));
    graph.node(c.is_positive ? "Relu" : "Sin", {"x"}, {"f"});
    if (c.joined) {
      graph.node(c.joined, {"x"}, {"g"});
      graph.node("Concat", {"f", "g"}, {"all"}).attr_int("axis", 1);
    }
    graph.node("Pad", {c.joined ? "all" : "f", "pads", "value"}, {"p"});
    std::vector<std::string> outputs = {"y"};
    if (c.has_indices) outputs.push_back("at");
    auto& pool = graph.node(c.type, {"p"}, outputs)
                     .attr_ints("kernel_shape", {3, 3})
                     .attr_ints("strides", {2, 1})
                     .attr_int("ceil_mode", c.ceil_mode);
    if (!c.own_pads.empty()) pool.attr_ints("pads", c.own_pads);
    if (c.dilation > 1) pool.attr_ints("dilations", {c.dilation, c.dilation});
    if (c.has_indices) {
      graph.output("at", model_writer::Type::tensor_of_unknown_rank(kI64));
    }
    graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
    const Value x(make_tensor<float>({1, 2, 7, 8}, wave(112)));
    const std::string all = types_of(fused(writer, {{"x", x}})->graph);
    return all.substr(all.find(' ') + 1);
  };
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(types({}), "MaxPool");
  EXPECT_EQ(types({.value = -3.4e38F}), "MaxPool");
  EXPECT_EQ(types({.own_pads = {1, 1, 1, 0}}), "MaxPool");
  EXPECT_EQ(types({.value = kLowest, .is_positive = false}), "MaxPool");
  EXPECT_EQ(types({.joined = "Sigmoid"}), "Sigmoid Concat MaxPool");
  EXPECT_EQ(types({.joined = "Sin"}), "Sin Concat Pad MaxPool");
  EXPECT_EQ(types({.value = 0.1F}), "Pad MaxPool");
  EXPECT_EQ(types({.is_positive = false}), "Pad MaxPool");
  EXPECT_EQ(types({.pads = {0, 0, 1, 0, 0, 0, 3, 0}}), "Pad MaxPool") << "a window of pads alone";
  EXPECT_EQ(types({.own_pads = {2, 0, 0, 1}}), "Pad MaxPool") << "the same together";
  EXPECT_EQ(types({.pads = {0, 1, 0, 0, 0, 0, 0, 0}}), "Pad MaxPool");
  EXPECT_EQ(types({.ceil_mode = 1}), "Pad MaxPool");
  EXPECT_EQ(types({.dilation = 2}), "Pad MaxPool");
  EXPECT_EQ(types({.has_indices = true}), "Pad MaxPool");
  EXPECT_EQ(types({.type = "AveragePool", .is_positive = false}), "AveragePool");
  EXPECT_EQ(types({.type = "AveragePool", .value = -1}), "Pad AveragePool");
  EXPECT_EQ(types({.type = "AveragePool", .own_pads = {1, 0, 0, 0}}), "Pad AveragePool")
      << "its own pads are not counted";
}

// 200 thousand nodes with one constant took minutes: each that went looked through all its readers.
TEST(SimplifyMoves, ManyNodesThatReadOneConstantTakeTheTimeOfAFew) {
  constexpr int kNodes = 200'000;
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 3}));
  graph.initializer(i64_tensor("same", {2}, {2, 3}));
  std::string from = "x";
  for (int i = 0; i < kNodes; ++i) {
    const std::string to = "v" + std::to_string(i);
    graph.node("Reshape", {from, "same"}, {to});
    from = to;
  }
  graph.node("Neg", {from}, {"y"});
  graph.output("y", f32_type({2, 3}));
  const std::clock_t start = std::clock();  // of this process: machines are shared
  const auto model = optimized(writer);
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(types_of(model.value()->graph), "Neg");
}

}  // namespace
}  // namespace folio
