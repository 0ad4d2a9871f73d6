// fuse_functions: the ways exporters write Gelu, SiLU and HardSwish, and near misses.
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
  graph.input("x", f32_type({2, 4}));
  const std::pair<const char*, float> numbers[] = {{"half", 0.5F},
                                                   {"one", 1},
                                                   {"two", 2},
                                                   {"three", 3},
                                                   {"six", 6},
                                                   {"zero", 0},
                                                   {"sqrt2", 1.4142135F},
                                                   {"rsqrt2", 0.70710677F},
                                                   {"c3", 0.044715F},
                                                   {"k", 0.7978846F},
                                                   {"odd", 1.4F}};
  for (const auto& [name, number] : numbers) graph.initializer(f32_tensor(name, {}, {number}));
  graph.initializer(f32_tensor("high", {1, 1, 1}, {0.5F}));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto model =
      fused(writer, {{"x", make_tensor<float>({2, 4}, {-4, -2, -0.5F, 0, 0.25F, 1, 2.5F, 5})}});
  return types_of(model->graph);
}

// e = 1 + erf(x / sqrt 2)
void erf_gate(GraphWriter& graph, const char* root = "sqrt2") {
  graph.node("Div", {"x", root}, {"scaled"});
  graph.node("Erf", {"scaled"}, {"erf"});
  graph.node("Add", {"erf", "one"}, {"e"});
}

TEST(FuseFunctions, GeluInEveryOrder) {
  const Rest forms[] = {
      [](GraphWriter& graph) {
        graph.node("Mul", {"x", "e"}, {"m"});
        graph.node("Mul", {"m", "half"}, {"y"});
      },
      [](GraphWriter& graph) {
        graph.node("Mul", {"x", "half"}, {"m"});
        graph.node("Mul", {"m", "e"}, {"y"});
      },
      [](GraphWriter& graph) {
        graph.node("Mul", {"half", "e"}, {"m"});
        graph.node("Mul", {"x", "m"}, {"y"});
      },
      [](GraphWriter& graph) {
        graph.node("Mul", {"e", "x"}, {"m"});
        graph.node("Div", {"m", "two"}, {"y"});
      },
  };
  for (const Rest& form : forms) {
    EXPECT_EQ(types_after([&](GraphWriter& graph) {
                erf_gate(graph);
                form(graph);
              }),
              "com.microsoft.Gelu");
  }
}

TEST(FuseFunctions, GeluByTanh) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Pow", {"x", "three"}, {"cube"});
              graph.node("Mul", {"cube", "c3"}, {"small"});
              graph.node("Add", {"x", "small"}, {"sum"});
              graph.node("Mul", {"sum", "k"}, {"t"});
              graph.node("Tanh", {"t"}, {"tanh"});
              graph.node("Add", {"one", "tanh"}, {"e"});
              graph.node("Mul", {"x", "half"}, {"m"});
              graph.node("Mul", {"m", "e"}, {"y"});
            }),
            "com.microsoft.FastGelu");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"x", "x"}, {"square"});
              graph.node("Mul", {"square", "c3"}, {"small"});
              graph.node("Add", {"small", "one"}, {"sum"});
              graph.node("Mul", {"x", "k"}, {"xk"});
              graph.node("Mul", {"xk", "sum"}, {"t"});
              graph.node("Tanh", {"t"}, {"tanh"});
              graph.node("Add", {"tanh", "one"}, {"e"});
              graph.node("Mul", {"x", "e"}, {"m"});
              graph.node("Mul", {"half", "m"}, {"y"});
            }),
            "com.microsoft.FastGelu");
}

TEST(FuseFunctions, NearGeluStays) {
  const auto has_gelu = [](const Rest& rest) {
    return types_after(rest).find("Gelu") != std::string::npos;
  };
  EXPECT_FALSE(has_gelu([](GraphWriter& graph) {
    erf_gate(graph, "odd");
    graph.node("Mul", {"x", "e"}, {"m"});
    graph.node("Mul", {"m", "half"}, {"y"});
  }));
  EXPECT_FALSE(has_gelu([](GraphWriter& graph) {
    erf_gate(graph);
    graph.node("Mul", {"x", "e"}, {"y"});
  }));
  EXPECT_FALSE(has_gelu([](GraphWriter& graph) {  // the result has another rank
    erf_gate(graph);
    graph.node("Mul", {"x", "e"}, {"m"});
    graph.node("Mul", {"m", "high"}, {"y"});
  }));
}

TEST(FuseFunctions, ProductsWithSigmoidAreQuickGelu) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Sigmoid", {"x"}, {"s"});
              graph.node("Mul", {"s", "x"}, {"y"});
            }),
            "com.microsoft.QuickGelu");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Mul", {"x", "odd"}, {"scaled"});
              graph.node("Sigmoid", {"scaled"}, {"s"});
              graph.node("Mul", {"x", "s"}, {"y"});
            }),
            "com.microsoft.QuickGelu");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Sigmoid", {"x"}, {"s"});
              graph.node("Mul", {"s", "x"}, {"y"});
              graph.output("s", f32_type({2, 4}));
            }),
            "Sigmoid Mul");
}

TEST(FuseFunctions, HardSwishByClip) {
  for (const int64_t opset : {10, 17}) {
    const auto clip = [&](GraphWriter& graph, const char* high) {
      graph.node("Add", {"x", "three"}, {"a"});
      if (opset >= 11) {
        graph.node("Clip", {"a", "zero", high}, {"c"});
      } else {
        graph.node("Clip", {"a"}, {"c"})
            .attr_float("min", 0)
            .attr_float("max", std::string_view(high) == "six" ? 6.0F : 5.0F);
      }
      graph.node("Mul", {"x", "c"}, {"m"});
      graph.node("Div", {"m", "six"}, {"y"});
    };
    EXPECT_EQ(types_after([&](GraphWriter& graph) { clip(graph, "six"); }, opset), "HardSwish");
    EXPECT_EQ(types_after([&](GraphWriter& graph) { clip(graph, "half"); }, opset),
              "Add Clip Mul Div");
  }
}

TEST(FuseFunctions, PReluWithOneSlopeIsLeakyRelu) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.initializer(f32_tensor("slope", {1, 1}, {-0.25F}));
              graph.node("PRelu", {"x", "slope"}, {"y"});
            }),
            "LeakyRelu");
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.initializer(f32_tensor("slopes", {4}, {0.25F, 0.5F, 0.25F, 1}));
              graph.node("PRelu", {"x", "slopes"}, {"y"});
            }),
            "PRelu");
}

TEST(FuseFunctions, HardSwishByHardSigmoid) {
  const auto gate = [](float alpha) {
    return [=](GraphWriter& graph) {
      graph.node("HardSigmoid", {"x"}, {"s"}).attr_float("alpha", alpha);
      graph.node("Mul", {"x", "s"}, {"y"});
    };
  };
  EXPECT_EQ(types_after(gate(1.0F / 6.0F)), "HardSwish");
  EXPECT_EQ(types_after(gate(0.2F)), "HardSigmoid Mul");
}

}  // namespace
}  // namespace folio
