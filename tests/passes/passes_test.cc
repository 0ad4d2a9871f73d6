// Passes: what is folded, removed and kept, and what unsupported models are told.
#include "core/passes/passes.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/ops/op_registry.h"
#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;

const GraphValue& value_of(const Model& model, std::string_view name) {
  return model.graph.value(find_value(model.graph, name));
}

// w[side, side] -> Neg -> v, and x + v -> y.
ModelWriter negated_weight(int64_t side) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({side, side}));
  graph.initializer(
      f32_tensor("w", {side, side}, std::vector<float>(static_cast<size_t>(side * side), 2)));
  graph.node("Neg", {"w"}, {"v"}).named("neg");
  graph.node("Add", {"x", "v"}, {"y"}).named("add");
  graph.output("y", f32_type({side, side}));
  return writer;
}

TEST(FoldConstants, SmallResultsAreComputedAtOnce) {
  const auto model = optimized(negated_weight(4));
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "Neg"), 0);
  const GraphValue& value = value_of(*model.value(), "v");
  ASSERT_TRUE(value.is_constant());
  ASSERT_TRUE(value.initializer->tensor);
  EXPECT_FALSE(value.initializer->recipe);
  EXPECT_EQ(value.initializer->tensor->data<float>()[5], -2);
}

TEST(FoldConstants, LargeResultsStayRecipes) {
  const auto model = optimized(negated_weight(200));
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "Neg"), 0);
  Initializer& initializer = *value_of(*model.value(), "v").initializer;
  ASSERT_TRUE(initializer.recipe);
  EXPECT_FALSE(initializer.tensor);
  EXPECT_EQ(initializer.shape, Shape({200, 200}));
  ASSERT_TRUE(evaluate(test_evaluator(), &initializer).is_ok());
  ASSERT_TRUE(initializer.tensor);
  EXPECT_FALSE(initializer.recipe) << "its inputs must not be kept";
  EXPECT_EQ(initializer.tensor->data<float>()[39999], -2);
}

TEST(FoldConstants, ANodeThatFailsIsLeftForTheRun) {
  // An index out of range has no value; the branch that asks for it is never taken.
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.initializer(f32_tensor("data", {2}, {1, 2}));
  GraphWriter bad("bad");
  bad.node("Gather", {"data", "far"}, {"t"}).named("impossible");
  bad.output("t", f32_type({1}));
  graph.initializer(i64_tensor("far", {1}, {7}));
  GraphWriter good("good");
  good.node("Neg", {"data"}, {"e"});
  good.output("e", f32_type({2}));
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(bad))
      .attr_graph("else_branch", std::move(good));
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  Session& opened = *session.value();
  const auto taken = run_all(opened, {{"c", make_tensor<bool>({}, {false})}});
  ASSERT_TRUE(taken.is_ok()) << text_of(taken.status());
  EXPECT_EQ(floats_of(taken.value()[0]), (std::vector<float>{-1, -2}));
  const auto failed = run_all(opened, {{"c", make_tensor<bool>({}, {true})}});
  ASSERT_FALSE(failed.is_ok());
  EXPECT_NE(failed.status().message().find("impossible"), std::string_view::npos);
}

// `count` of ConstantOfShape, of `mib` MiB each, whose sums x takes in.
ModelWriter filled(int count, int64_t mib) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({}));
  graph.initializer(i64_tensor("dims", {2}, {mib << 8, 1 << 10}));
  std::string sum = "x";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    graph.node("ConstantOfShape", {"dims"}, {"c" + n});
    graph.node("ReduceSum", {"c" + n}, {"s" + n}).attr_int("keepdims", 0);
    graph.node("Add", {sum, "s" + n}, {"t" + n});
    sum = "t" + n;
  }
  graph.node("Identity", {sum}, {"y"});
  graph.output("y", f32_type({}));
  return writer;
}

TEST(FoldConstants, WhatIsMuchLargerThanTheModelIsLeftForTheRun) {
  const auto large = optimized(filled(1, 2048));
  ASSERT_TRUE(large.is_ok()) << text_of(large.status());
  EXPECT_EQ(count_nodes(large.value()->graph, "ConstantOfShape"), 1);
  EXPECT_EQ(count_nodes(large.value()->graph, "ReduceSum"), 1);
  const auto small = optimized(filled(1, 1));
  ASSERT_TRUE(small.is_ok()) << text_of(small.status());
  EXPECT_EQ(count_nodes(small.value()->graph, "ConstantOfShape"), 0);
}

// ONNX's light models have no others, of up to 600 MB.
TEST(FoldConstants, WeightsThatAreFilledAreConstants) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1}));
  graph.initializer(i64_tensor("dims", {1}, {int64_t{150} << 20}));
  graph.node("ConstantOfShape", {"dims"}, {"w"});
  graph.node("Add", {"x", "w"}, {"y"});
  graph.output("y", f32_type({int64_t{150} << 20}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "ConstantOfShape"), 0);
}

TEST(FoldConstants, ManyResultsHaveOneLimitTogether) {
  const auto model = optimized(filled(3, 400));
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const int left = count_nodes(model.value()->graph, "ConstantOfShape");
  EXPECT_EQ(left, 1) << "of 1200 MiB, 1024 may be folded of any model";
  EXPECT_EQ(count_nodes(model.value()->graph, "ReduceSum"), left);
}

// Only computing it tells how large the result of NonZero is: 8 times its input.
TEST(FoldConstants, ResultsOfUnknownDimsHaveTheSameLimit) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", model_writer::Type::tensor(kI64, {}));
  graph.initializer(i64_tensor("dims", {1}, {int64_t{130} << 20}));
  graph.node("ConstantOfShape", {"dims"}, {"c"})
      .attr_tensor("value", model_writer::u8_tensor("", {1}, {1}));
  graph.node("NonZero", {"c"}, {"places"});
  graph.node("Add", {"x", "places"}, {"y"});
  graph.output("y", model_writer::Type::tensor(kI64, {1, "n"}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "ConstantOfShape"), 0);
  EXPECT_EQ(count_nodes(model.value()->graph, "NonZero"), 1);
}

TEST(FoldConstants, OverridableInitializersAreNotFolded) {
  ModelWriter writer = negated_weight(2);
  writer.graph().input("w", f32_type({2, 2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "Neg"), 1);
}

TEST(FoldConstants, ConstantsAreFoldedThroughCaptures) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.initializer(f32_tensor("w", {2}, {1, 2}));
  GraphWriter then_graph("then");
  then_graph.node("Neg", {"w"}, {"t"});
  then_graph.output("t", f32_type({2}));
  GraphWriter else_graph("else");
  else_graph.node("Abs", {"w"}, {"e"});
  else_graph.output("e", f32_type({2}));
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  graph.output("y", f32_type({2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  for (const auto& subgraph : model.value()->graph.nodes[0].subgraphs) {
    EXPECT_TRUE(subgraph->nodes.empty());
    for (const GraphValue& value : subgraph->values) EXPECT_EQ(value.outer, kNone) << value.name;
  }
}

TEST(RemoveIdentities, ChainsOnTheWayAndAtTheEnd) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  graph.node("Identity", {"x"}, {"a"});
  graph.node("Identity", {"a"}, {"b"});
  graph.node("Neg", {"b"}, {"c"});
  graph.node("Identity", {"c"}, {"d"});
  graph.node("Identity", {"d"}, {"y"});
  graph.output("y", f32_type({2}));
  graph.output("b", f32_type({2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  // Those that give an output stay; they read the very source.
  EXPECT_EQ(count_nodes(model.value()->graph, "Identity"), 2);
  const auto outputs = run_once(writer, {{"x", make_tensor<float>({2}, {1, -2})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{-1, 2}));
  EXPECT_EQ(floats_of(outputs.value()[1]), (std::vector<float>{1, -2}));
}

// Exporters name the mask, whether somebody reads it or not.
TEST(RemoveIdentities, DropoutWhoseMaskNobodyReads) {
  const auto nodes = [](bool is_read, bool may_train) {
    ModelWriter writer = plain_model();
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({2}));
    graph.input("training", model_writer::Type::tensor(kBoolean, {}));
    graph.initializer(f32_tensor("ratio", {}, {0.5F}));
    graph.node("Neg", {"x"}, {"n"});
    std::vector<std::string> inputs = {"n", "ratio"};
    if (may_train) inputs.push_back("training");
    graph.node("Dropout", inputs, {"d", "mask"});
    graph.node("Abs", {"d"}, {"y"});
    graph.output("y", f32_type({2}));
    if (is_read) graph.output("mask", model_writer::Type::tensor(kBoolean, {2}));
    const auto model = optimized(writer);
    return model.is_ok() ? types_of(model.value()->graph) : text_of(model.status());
  };
  EXPECT_EQ(nodes(false, false), "Neg Abs");
  EXPECT_EQ(nodes(true, false), "Neg Dropout Abs");
  EXPECT_EQ(nodes(false, true), "Neg Dropout Abs");
}

TEST(RemoveIdentities, AnUnwantedOutputChangesNoAbsentInput) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({}));
  graph.input("z", f32_type({2}));
  graph.initializer(f32_tensor("max", {}, {1}));
  graph.node("Identity", {"x"}, {""});
  graph.node("Clip", {"z", "", "max"}, {"y"});  // no minimum
  graph.output("y", f32_type({2}));
  const auto outputs = run_once(
      writer, {{"x", make_tensor<float>({}, {0})}, {"z", make_tensor<float>({2}, {-5, 5})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{-5, 1}));
}

TEST(RemoveIdentities, CapturesFollow) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.input("x", f32_type({2}));
  graph.node("Neg", {"x"}, {"n"});
  graph.node("Identity", {"n"}, {"copy"});
  GraphWriter then_graph("then");
  then_graph.node("Add", {"n", "copy"}, {"t"});
  then_graph.output("t", f32_type({2}));
  GraphWriter else_graph("else");
  else_graph.output("copy", f32_type({2}));  // a captured value as it is
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  graph.output("y", f32_type({2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "Identity"), 0);
  for (const bool condition : {true, false}) {
    const auto outputs = run_once(writer, {{"c", make_tensor<bool>({}, {condition})},
                                           {"x", make_tensor<float>({2}, {1, -2})}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    const float factor = condition ? 2 : 1;
    EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{-factor, 2 * factor}));
  }
}

TEST(RemoveIdentities, ALongChainIsRemovedInOnePass) {
  constexpr int kCount = 100000;
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({1}));
  std::string last = "x";
  for (int i = 0; i < kCount; ++i) {
    const std::string next = "v" + std::to_string(i);
    writer.graph().node("Identity", {last}, {next});
    last = next;
  }
  writer.graph().node("Neg", {last}, {"y"});
  writer.graph().output("y", f32_type({1}));
  const auto start = std::chrono::steady_clock::now();
  const auto model = optimized(writer);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(model.value()->graph.nodes.size(), 1U);
  EXPECT_LT(elapsed, std::chrono::seconds(20));
}

TEST(DropDead, WhatNoOutputNeedsGoes) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  graph.node("Abs", {"x"}, {"unused"});
  graph.node("Neg", {"unused"}, {"unused too"});
  graph.node("Relu", {"x"}, {"y"});
  graph.output("y", f32_type({2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok());
  ASSERT_EQ(model.value()->graph.nodes.size(), 1U);
  EXPECT_EQ(model.value()->graph.value(model.value()->graph.nodes[0].outputs[0]).producer, 0);
}

TEST(DropDead, DeadNodesInSubgraphsKeepNothingAliveOutside) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.input("x", f32_type({2}));
  graph.node("Abs", {"x"}, {"captured"});
  const auto branch = [](const std::string& output) {
    GraphWriter made(output + "_graph");
    made.node("Relu", {"captured"}, {output + "_dead"});
    made.node("Neg", {"x"}, {output});
    made.output(output, f32_type({2}));
    return made;
  };
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", branch("t"))
      .attr_graph("else_branch", branch("e"));
  graph.output("y", f32_type({2}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "Abs"), 0);
}

TEST(InferShapes, CountsAreCheckedInSubgraphsThatNobodyInfers) {
  // Add knows nothing of graphs; its node has one all the same, with an Identity without inputs.
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  GraphWriter body("body");
  body.node("Identity", {}, {"z"}).named("no inputs");
  graph.node("Add", {"x", "x"}, {"y"}).attr_graph("body", std::move(body));
  graph.output("y", f32_type({2}));
  for (const Optimize level : {Optimize::kAll, Optimize::kOff}) {
    EXPECT_TRUE(fails_with(optimized(writer, level).status(), Code::kInvalidGraph,
                           {"no inputs", "0 inputs", "expected 1"}));
  }
}

TEST(DropIdle, NodesWithoutOutputsNeedNotBeRight) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  GraphWriter branch("branch");
  branch.node("Identity", {"x"}, {"z"});
  branch.output("z", f32_type({2}));
  // No condition; and an output that is no name.
  graph.node("If", {}, {}).attr_graph("then_branch", branch).attr_graph("else_branch", branch);
  graph.node("Add", {"x"}, {""});
  graph.node("Neg", {"x"}, {"y"});
  graph.output("y", f32_type({2}));
  for (const Optimize level : {Optimize::kAll, Optimize::kOff}) {
    const auto model = optimized(writer, level);
    ASSERT_TRUE(model.is_ok()) << text_of(model.status());
    EXPECT_EQ(model.value()->graph.nodes.size(), 1U);
  }
}

TEST(InferShapes, WrongCountsNameTheNode) {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({2}));
  writer.graph().node("Add", {"x"}, {"y"}).named("half");
  writer.graph().output("y", f32_type({2}));
  EXPECT_TRUE(fails_with(optimized(writer).status(), Code::kInvalidGraph,
                         {"node 'half' (Add)", "1 inputs", "expected 2"}));
}

// Passes look at inputs that an operator must have without asking whether they are there.
TEST(InferShapes, ARequiredInputThatIsAbsentNamesTheNode) {
  for (const Optimize level : {Optimize::kOff, Optimize::kUnpacked}) {
    ModelWriter writer = plain_model();
    writer.graph().input("x", f32_type({2, 3}));
    writer.graph().node("Reshape", {"x", ""}, {"y"}).named("to_nowhere");
    writer.graph().output("y", f32_type({6}));
    EXPECT_TRUE(fails_with(optimized(writer, level).status(), Code::kInvalidGraph,
                           {"'to_nowhere' (Reshape)", "input 1 is missing"}));
  }
}

// Of [0, 2, 6, 8] any number of rows is left: what inference does not see stays unknown.
TEST(InferShapes, OfNoElementsAnUnseenDimIsNotWhatIsLeft) {
  ModelWriter writer = plain_model(8, 17);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({0, 2, 6, 8}));
  graph.initializer(i64_tensor("none", {1}, {0}));
  graph.initializer(i64_tensor("columns", {1}, {8}));
  graph.initializer(i64_tensor("parts", {4}, {1, 1, 1, 1}));
  graph.initializer(f32_tensor("six", {1, 6, 6}, wave(36)));
  graph.node("Shape", {"x"}, {"s"});
  graph.node("Split", {"s", "parts"}, {"s0", "s1", "s2", "s3"});
  graph.node("Concat", {"none", "s2", "columns"}, {"target"}).attr_int("axis", 0);
  graph.node("Reshape", {"x", "target"}, {"r"});
  graph.node("MatMul", {"six", "r"}, {"y"});
  graph.output("y", f32_type({0, 6, 8}));
  const std::vector<NamedValue> inputs = {{"x", make_tensor<float>({0, 2, 6, 8}, {})}};
  for (const Optimize level : {Optimize::kOff, Optimize::kAll}) {
    EXPECT_TRUE(floats_at(writer, inputs, level).empty());
  }
}

TEST(CheckSupported, AllUnsupportedOperatorsAreListedAtOnce) {
  ModelWriter writer = plain_model();
  writer.opset("com.example", 3);
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.input("x", f32_type({2}));
  for (int i = 0; i < 7; ++i) {
    graph.node("Foo", {"x"}, {"f" + std::to_string(i)}).named("foo" + std::to_string(i));
  }
  GraphWriter inner("inner");
  inner.node("Bar", {"x"}, {"t"}).in_domain("com.example").named("nested");
  inner.output("t", f32_type({2}));
  GraphWriter other = inner;
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(inner))
      .attr_graph("else_branch", std::move(other));
  graph.output("y", f32_type({2}));
  const auto model = optimized(writer);
  EXPECT_TRUE(fails_with(model.status(), Code::kUnsupportedOperator,
                         {"2 unsupported operators: ", "Foo (opset 17): node 'foo0', node 'foo1'",
                          "and 2 more; ", "com.example.Bar (opset 3): node 'nested'"}));
}

TEST(CheckSupported, ANewerOpsetIsNamedWithTheNewestKnown) {
  ModelWriter writer = plain_model(8, kNewestOpset + 1);
  writer.graph().input("x", f32_type({2}));
  writer.graph().node("Relu", {"x"}, {"y"});
  writer.graph().output("y", f32_type({2}));
  EXPECT_TRUE(
      fails_with(optimized(writer).status(), Code::kUnsupportedOperator,
                 {std::to_string(kNewestOpset + 1), "up to " + std::to_string(kNewestOpset)}));
}

TEST(PassList, LongChainsOfLargeRecipesLoadAndRun) {
  constexpr int kCount = 20000;
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.initializer(f32_tensor("v", {20000}, std::vector<float>(20000, 1)));
  // A model of less may not fold that much.
  constexpr int64_t kWeights = 100 << 20;
  const std::vector<uint8_t> weights(static_cast<size_t>(kWeights), 1);
  graph.initializer(model_writer::u8_tensor("w", {kWeights}, weights));
  graph.output("w", model_writer::Type::tensor(model_writer::ElementType::kUint8, {kWeights}));
  std::string last = "v";
  for (int i = 0; i < kCount; ++i) {
    const std::string next = "v" + std::to_string(i);
    graph.node("Neg", {last}, {next});
    last = next;
  }
  graph.input("x", f32_type({1}));
  graph.node("Add", {"x", last}, {"y"});
  graph.output("y", f32_type({20000}));
  const auto model = optimized(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(model.value()->graph.nodes.size(), 1U);
}

}  // namespace
}  // namespace folio
