// fuse_norms and fuse_skips: normalization by parts in its variants, what must stay, and sums that
// go in.
#include <functional>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using Rest = std::function<void(GraphWriter&)>;

ModelWriter norm_model(const Rest& rest, int64_t opset) {
  ModelWriter writer = plain_model(8, opset);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 3, 4}));
  graph.input("z", f32_type({2, 3, 4}));
  graph.initializer(f32_tensor("two", {}, {2}));
  graph.initializer(f32_tensor("one", {}, {1}));
  graph.initializer(f32_tensor("eps", {}, {1e-5F}));
  graph.initializer(f32_tensor("w", {4}, {1, 2, -1, 0.5F}));
  graph.initializer(f32_tensor("b", {4}, {0.5F, 1, 2, 3}));
  graph.initializer(f32_tensor("rows", {3, 1}, {1, 2, 3}));
  graph.initializer(i64_tensor("last", {1}, {-1}));
  graph.initializer(i64_tensor("middle", {1}, {1}));
  rest(graph);
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  return writer;
}

std::string types_after(const Rest& rest, int64_t opset = 17) {
  const auto model =
      fused(norm_model(rest, opset), {{"x", make_tensor<float>({2, 3, 4}, wave(24))},
                                      {"z", make_tensor<float>({2, 3, 4}, wave(24, 2))}});
  return types_of(model->graph);
}

void mean(GraphWriter& graph, const char* x, const char* y, int64_t opset, bool of_last = true) {
  if (opset >= 18) {
    graph.node("ReduceMean", {x, of_last ? "last" : "middle"}, {y});
  } else {
    graph.node("ReduceMean", {x}, {y}).attr_ints("axes", {of_last ? -1 : 1});
  }
}

// d = x - mean, n = d / sqrt(mean(d^2) + eps)
void normal(GraphWriter& graph, int64_t opset, const char* x = "x", bool of_last = true) {
  mean(graph, x, "mu", opset, of_last);
  graph.node("Sub", {x, "mu"}, {"d"});
  graph.node("Pow", {"d", "two"}, {"dd"});
  mean(graph, "dd", "var", opset, of_last);
  graph.node("Add", {"var", "eps"}, {"ve"});
  graph.node("Sqrt", {"ve"}, {"std"});
  graph.node("Div", {"d", "std"}, {"n"});
}

void scale_and_shift(GraphWriter& graph) {
  graph.node("Mul", {"w", "n"}, {"s"});
  graph.node("Add", {"s", "b"}, {"y"});
}

TEST(FuseNorms, LayerNormalizationByParts) {
  for (const int64_t opset : {11, 17, 18}) {
    SCOPED_TRACE(opset);
    EXPECT_EQ(types_after(
                  [&](GraphWriter& graph) {
                    normal(graph, opset);
                    scale_and_shift(graph);
                  },
                  opset),
              "LayerNormalization");
  }
  EXPECT_EQ(types_after([](GraphWriter& graph) {  // without a bias
              normal(graph, 17);
              graph.node("Mul", {"n", "w"}, {"y"});
            }),
            "LayerNormalization");
}

TEST(FuseNorms, ADifferenceComputedTwiceIsOne) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              mean(graph, "x", "mu", 17);
              graph.node("Sub", {"x", "mu"}, {"d"});
              graph.node("Sub", {"x", "mu"}, {"d2"});
              graph.node("Mul", {"d2", "d2"}, {"dd"});
              mean(graph, "dd", "var", 17);
              graph.node("Add", {"eps", "var"}, {"ve"});
              graph.node("Sqrt", {"ve"}, {"std"});
              graph.node("Reciprocal", {"std"}, {"r"});
              graph.node("Mul", {"d", "r"}, {"n"});
              scale_and_shift(graph);
            }),
            "LayerNormalization");
}

TEST(FuseNorms, RmsNormalizationByParts) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Pow", {"x", "two"}, {"xx"});
              mean(graph, "xx", "ms", 17);
              graph.node("Add", {"ms", "eps"}, {"me"});
              graph.node("Sqrt", {"me"}, {"rms"});
              graph.node("Div", {"one", "rms"}, {"r"});
              graph.node("Mul", {"x", "r"}, {"n"});
              graph.node("Mul", {"w", "n"}, {"y"});
            }),
            "SimplifiedLayerNormalization");
}

TEST(FuseNorms, OtherAxesAndParametersStay) {
  const auto has_norm = [](const Rest& rest) {
    return types_after(rest).find("LayerNormalization") != std::string::npos;
  };
  EXPECT_FALSE(has_norm([](GraphWriter& graph) {
    normal(graph, 17, "x", /*of_last=*/false);
    scale_and_shift(graph);
  }));
  EXPECT_FALSE(has_norm([](GraphWriter& graph) {
    normal(graph, 17);
    graph.node("Mul", {"n", "rows"}, {"y"});
  }));
  EXPECT_FALSE(has_norm([](GraphWriter& graph) {  // the variance of something else
    mean(graph, "x", "mu", 17);
    graph.node("Sub", {"x", "mu"}, {"d"});
    graph.node("Pow", {"z", "two"}, {"zz"});
    mean(graph, "zz", "var", 17);
    graph.node("Add", {"var", "eps"}, {"ve"});
    graph.node("Sqrt", {"ve"}, {"std"});
    graph.node("Div", {"d", "std"}, {"n"});
    scale_and_shift(graph);
  }));
}

// Numbers of more dims than x has give y as many.
TEST(FuseNorms, NumbersOfHigherRankStay) {
  for (const char* deep : {"two", "one"}) {
    SCOPED_TRACE(deep);
    const std::string types = types_after([&](GraphWriter& graph) {
      graph.initializer(f32_tensor("deep", {1, 1, 1, 1}, {deep[0] == 't' ? 2.0F : 1.0F}));
      const auto number = [&](const char* name) {
        return std::string(name) == deep ? "deep" : name;
      };
      graph.node("Pow", {"x", number("two")}, {"xx"});
      mean(graph, "xx", "ms", 17);
      graph.node("Add", {"ms", "eps"}, {"me"});
      graph.node("Sqrt", {"me"}, {"rms"});
      graph.node("Div", {number("one"), "rms"}, {"r"});
      graph.node("Mul", {"x", "r"}, {"n"});
      graph.node("Mul", {"w", "n"}, {"y"});
    });
    EXPECT_EQ(types.find("LayerNormalization"), std::string::npos) << types;
  }
}

TEST(FuseNorms, APartThatIsAnOutputStaysBesideIt) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              normal(graph, 17);
              scale_and_shift(graph);
              graph.output("mu", f32_type({2, 3, 1}));
            }),
            "ReduceMean LayerNormalization");
}

TEST(FuseSkips, ASumGoesIn) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Add", {"x", "z"}, {"sum"});
              graph.node("LayerNormalization", {"sum", "w", "b"}, {"y"});
            }),
            "com.microsoft.SkipLayerNormalization");
}

TEST(FuseSkips, ASumThatOthersReadIsAnOutput) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Add", {"x", "z"}, {"sum"});
              graph.node("Neg", {"sum"}, {"early"});
              graph.node("LayerNormalization", {"sum", "w", "b"}, {"n"});
              graph.node("Mul", {"early", "n"}, {"y"});
            }),
            "com.microsoft.SkipLayerNormalization Neg Mul");
}

TEST(FuseSkips, ParametersOfMoreThanTheLastDimStay) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Add", {"x", "z"}, {"sum"});
              graph.node("LayerNormalization", {"sum", "w", "rows"}, {"y"});
            }),
            "Add LayerNormalization");
}

TEST(FuseSkips, ASumOfOneInputGoesInWhateverOthersAreCalled) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"batch", 4}));
  graph.input("z", f32_type({"batch", 4}));
  graph.initializer(f32_tensor("w", {4}, wave(4)));
  graph.node("Relu", {"x"}, {"r"});
  graph.node("Add", {"x", "r"}, {"sum"});
  graph.node("LayerNormalization", {"sum", "w"}, {"n"});
  graph.node("Add", {"n", "z"}, {"y"});
  graph.output("y", f32_type({"batch", 4}));
  for (const int64_t rows : {1, 3}) {
    const auto model = fused(writer, {{"x", make_tensor<float>({3, 4}, wave(12))},
                                      {"z", make_tensor<float>({rows, 4}, wave(4 * rows, 2))}});
    EXPECT_EQ(types_of(model->graph), "Relu com.microsoft.SkipLayerNormalization Add");
  }
}

TEST(FuseSkips, ASumThatMayBroadcastStays) {
  EXPECT_EQ(types_after([](GraphWriter& graph) {
              graph.node("Add", {"x", "rows"}, {"sum"});
              graph.node("LayerNormalization", {"sum", "w", "b"}, {"y"});
            }),
            "Add LayerNormalization");
}

// Two inputs that share a name may have different sizes all the same, and some dims are not known.
TEST(FuseSkips, ASumThatBroadcastsInSomeRunsGoesIn) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"batch", 4}));
  graph.input("z", f32_type({"batch", 4}));
  graph.initializer(f32_tensor("w", {4}, wave(4)));
  graph.node("Add", {"x", "z"}, {"sum"});
  graph.node("LayerNormalization", {"sum", "w"}, {"y"});
  graph.output("y", f32_type({"batch", 4}));
  for (const auto& [x_rows, z_rows] : {std::pair{2, 2}, {2, 1}, {1, 3}, {0, 1}}) {
    const auto model = fused(writer, {{"x", make_tensor<float>({x_rows, 4}, wave(4 * x_rows))},
                                      {"z", make_tensor<float>({z_rows, 4}, wave(4 * z_rows, 2))}});
    EXPECT_EQ(types_of(model->graph), "com.microsoft.SkipLayerNormalization");
  }
  const auto saved = optimized(writer, Optimize::kExtended);
  ASSERT_TRUE(saved.is_ok());
  EXPECT_EQ(types_of(saved.value()->graph), "Add LayerNormalization");
}

TEST(FuseSkips, ASumOfUnknownRowsGoesInAndIsAnOutput) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"batch", "rows", 4}));
  graph.input("z", f32_type({"batch", "rows", 4}));
  graph.initializer(f32_tensor("w", {4}, wave(4)));
  graph.node("Add", {"x", "z"}, {"sum"});
  graph.node("LayerNormalization", {"sum", "w"}, {"n"});
  graph.node("Add", {"sum", "n"}, {"y"});
  graph.output("y", f32_type({"batch", "rows", 4}));
  const auto model = fused(writer, {{"x", make_tensor<float>({2, 1, 4}, wave(8))},
                                    {"z", make_tensor<float>({1, 3, 4}, wave(12, 2))}});
  EXPECT_EQ(types_of(model->graph), "com.microsoft.SkipLayerNormalization Add");
}

}  // namespace
}  // namespace folio
