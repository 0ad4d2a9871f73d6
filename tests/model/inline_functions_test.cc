// inline_functions: calls become nodes of the caller; hostile functions are refused in time.
#include "core/model/inline_functions.h"

#include <ctime>

#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::AttributeType;
using model_writer::AttributeWriter;
using model_writer::FunctionWriter;
using model_writer::GraphWriter;
using model_writer::ModelWriter;

constexpr const char* kDomain = "local";

ModelWriter calling_model(FunctionWriter function,
                          const std::vector<std::string>& outputs = {"y"}) {
  ModelWriter writer = plain_model();
  writer.opset(kDomain, 1);
  writer.function(std::move(function));
  writer.graph().input("x", f32_type({2}));
  for (const std::string& output : outputs) {
    if (!output.empty()) writer.graph().output(output, f32_type({2}));
  }
  return writer;
}

std::vector<float> result_of(const ModelWriter& writer, const std::vector<float>& x,
                             size_t output = 0) {
  const auto outputs = run_once(writer, {{"x", make_tensor<float>({2}, x)}});
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  return outputs.is_ok() ? floats_of(outputs.value()[output]) : std::vector<float>{};
}

// then_branch and else_branch negate `input`, which is a name of the enclosing scope.
GraphWriter capture_branch(const std::string& input, const std::string& output) {
  GraphWriter branch(output);
  branch.node("Neg", {input}, {output});
  branch.output(output, f32_type({2}));
  return branch;
}

TEST(InlineFunctions, AttributesComeFromTheCallThenFromTheDefault) {
  FunctionWriter function(kDomain, "Leaky", {"a"}, {"b"});
  function.opset("", 17);
  function.attribute_default(AttributeWriter::of_float("slope", 0.5F));
  function.node("LeakyRelu", {"a"}, {"b"}).attr_ref("alpha", "slope", AttributeType::kFloat);
  ModelWriter writer = calling_model(function, {"y", "z"});
  writer.graph().node("Leaky", {"x"}, {"y"}).in_domain(kDomain);
  writer.graph().node("Leaky", {"x"}, {"z"}).in_domain(kDomain).attr_float("slope", 0.25F);
  EXPECT_EQ(result_of(writer, {-4, 4}, 0), (std::vector<float>{-2, 4}));
  EXPECT_EQ(result_of(writer, {-4, 4}, 1), (std::vector<float>{-1, 4}));
}

// outer(slope = 0.5) calls inner(alpha = 0.25) with alpha = its slope; bare calls it without.
ModelWriter two_levels() {
  FunctionWriter inner(kDomain, "Inner", {"a"}, {"b"});
  inner.opset("", 17).attribute_default(AttributeWriter::of_float("alpha", 0.25F));
  inner.node("LeakyRelu", {"a"}, {"b"}).attr_ref("alpha", "alpha", AttributeType::kFloat);
  ModelWriter writer = calling_model(std::move(inner), {});
  FunctionWriter outer(kDomain, "Outer", {"a"}, {"b"});
  outer.opset("", 17).opset(kDomain, 1);
  outer.attribute_default(AttributeWriter::of_float("slope", 0.5F));
  outer.node("Inner", {"a"}, {"b"})
      .in_domain(kDomain)
      .attr_ref("alpha", "slope", AttributeType::kFloat);
  writer.function(std::move(outer));
  FunctionWriter bare(kDomain, "Bare", {"a"}, {"b"});
  bare.opset("", 17).opset(kDomain, 1).attribute("slope");
  bare.node("Inner", {"a"}, {"b"})
      .in_domain(kDomain)
      .attr_ref("alpha", "slope", AttributeType::kFloat);
  writer.function(std::move(bare));
  return writer;
}

TEST(InlineFunctions, AttributesGoThroughTwoLevels) {
  struct Case {
    const char* function;
    bool given;
    float expected;
  };
  // Of Bare, which has no default, nothing is handed on: Inner's own holds.
  for (const Case& each : {Case{"Outer", true, -3}, Case{"Outer", false, -2},
                           Case{"Bare", true, -3}, Case{"Bare", false, -1}}) {
    ModelWriter writer = two_levels();
    auto& node = writer.graph().node(each.function, {"x"}, {"y"}).in_domain(kDomain);
    if (each.given) node.attr_float("slope", 0.75F);
    writer.graph().output("y", f32_type({2}));
    EXPECT_EQ(result_of(writer, {-4, 4}), (std::vector<float>{each.expected, 4}));
  }
}

TEST(InlineFunctions, ReferencesStandInSubgraphsAndConstants) {
  FunctionWriter function(kDomain, "Scaled", {"cond", "a"}, {"b"});
  function.opset("", 17).attribute("by");
  GraphWriter branch("branch");
  branch.node("Constant", {}, {"factor"}).attr_ref("value_float", "by", AttributeType::kFloat);
  branch.node("Mul", {"a", "factor"}, {"t"});
  branch.output("t", f32_type({2}));
  function.node("If", {"cond"}, {"b"})
      .attr_graph("then_branch", std::move(branch))
      .attr_graph("else_branch", capture_branch("a", "e"));
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().initializer(model_writer::TensorWriter("yes", kBoolean, {}).int32s({1}));
  writer.graph().node("Scaled", {"yes", "x"}, {"y"}).in_domain(kDomain).attr_float("by", 3);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{3, -6}));
}

TEST(InlineFunctions, OverloadsAreFunctionsOfTheirOwn) {
  const auto body = [](std::string_view overload, std::string_view type) {
    FunctionWriter function(kDomain, "F", {"a"}, {"b"});
    function.opset("", 17).overload(overload);
    function.node(type, {"a"}, {"b"});
    return function;
  };
  ModelWriter writer = calling_model(body("", "Neg"), {"y", "z", "v"});
  writer.function(body("abs", "Abs"));
  // One overload may call another of the same name.
  FunctionWriter both(kDomain, "F", {"a"}, {"b"});
  both.opset("", 17).opset(kDomain, 1).overload("both");
  both.node("F", {"a"}, {"t"}).in_domain(kDomain).overload("abs");
  both.node("F", {"t"}, {"b"}).in_domain(kDomain);
  writer.function(std::move(both));
  writer.graph().node("F", {"x"}, {"y"}).in_domain(kDomain);
  writer.graph().node("F", {"x"}, {"z"}).in_domain(kDomain).overload("abs");
  writer.graph().node("F", {"x"}, {"v"}).in_domain(kDomain).overload("both");
  EXPECT_EQ(result_of(writer, {1, -2}, 0), (std::vector<float>{-1, 2}));
  EXPECT_EQ(result_of(writer, {1, -2}, 1), (std::vector<float>{1, 2}));
  EXPECT_EQ(result_of(writer, {1, -2}, 2), (std::vector<float>{-1, -2}));
}

TEST(InlineFunctions, AnOverloadThatIsNotThereIsAnUnknownOperator) {
  FunctionWriter function(kDomain, "F", {"a"}, {"b"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().node("F", {"x"}, {"y"}).in_domain(kDomain).overload("other");
  EXPECT_TRUE(fails_with(run_once(writer, {{"x", make_tensor<float>({2}, {1, 2})}}).status(),
                         Code::kUnsupportedOperator, {"local.F"}));
}

TEST(InlineFunctions, EachLevelHasItsOwnOpset) {
  // Clip takes its limits from attributes at opset 6, from inputs since 11; the model has 17.
  FunctionWriter old(kDomain, "Old", {"a"}, {"b"});
  old.opset("", 6);
  old.node("Clip", {"a"}, {"b"}).attr_float("max", 3);
  FunctionWriter newer(kDomain, "Newer", {"a", "least"}, {"b"});
  newer.opset("", 12).opset(kDomain, 1);
  GraphWriter branch("branch");
  branch.node("Old", {"a"}, {"o"}).in_domain(kDomain);
  branch.node("Clip", {"o", "least"}, {"t"});
  branch.output("t", f32_type({2}));
  newer.node("Constant", {}, {"one"})
      .attr_tensor("value", model_writer::TensorWriter("", kBoolean, {}).int32s({1}));
  newer.node("If", {"one"}, {"b"})
      .attr_graph("then_branch", std::move(branch))
      .attr_graph("else_branch", capture_branch("a", "e"));
  ModelWriter writer = calling_model(std::move(old));
  writer.function(std::move(newer));
  writer.graph().initializer(f32_tensor("least", {}, {-1}));
  writer.graph().node("Newer", {"x", "least"}, {"y"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {-5, 5}), (std::vector<float>{-1, 3}));
}

// Names that a value of the body would get.
TEST(InlineFunctions, TheModelMayHaveNamesLikeThoseThatAreMade) {
  FunctionWriter function(kDomain, "F", {"a"}, {"b"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"t"});
  function.node("Neg", {"t"}, {"b"});
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().node("Abs", {"x"}, {"__fn0_F_t"});
  writer.graph().node("Abs", {"x"}, {"__fn_0_F_t"});
  writer.graph().node("F", {"x"}, {"f"}).in_domain(kDomain);
  writer.graph().node("Sum", {"f", "__fn0_F_t", "__fn_0_F_t"}, {"y"});
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{3, 2}));
}

TEST(InlineFunctions, ABodySeesItsOwnNamesOnly) {
  FunctionWriter function(kDomain, "Twice", {"x"}, {"y"});
  function.opset("", 17);
  function.node("Neg", {"x"}, {"t"});
  function.node("Add", {"t", "t"}, {"y"});
  ModelWriter writer = calling_model(function, {"z"});
  writer.graph().node("Twice", {"x"}, {"t"}).in_domain(kDomain);
  writer.graph().node("Twice", {"t"}, {"z"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{4, -8}));
}

TEST(InlineFunctions, SubgraphsOfABodyCaptureItsNames) {
  FunctionWriter function(kDomain, "Choose", {"cond", "a"}, {"b"});
  function.opset("", 17);
  function.node("Abs", {"a"}, {"inner"});
  function.node("If", {"cond"}, {"b"})
      .attr_graph("then_branch", capture_branch("inner", "t"))
      .attr_graph("else_branch", capture_branch("a", "e"));
  ModelWriter writer = calling_model(function);
  writer.graph().initializer(model_writer::TensorWriter("yes", kBoolean, {}).int32s({1}));
  writer.graph().node("Choose", {"yes", "x"}, {"y"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{-1, -2}));
}

TEST(InlineFunctions, CallsInSubgraphsAreInlined) {
  FunctionWriter inner(kDomain, "Half", {"a"}, {"b"});
  inner.opset("", 17);
  inner.node("Constant", {}, {"h"}).attr_float("value_float", 0.5F);
  inner.node("Mul", {"a", "h"}, {"b"});
  FunctionWriter function(kDomain, "ChooseHalf", {"cond", "a"}, {"b"});
  function.opset("", 17).opset(kDomain, 1);
  GraphWriter then_graph("then");
  then_graph.node("Half", {"a"}, {"t"}).in_domain(kDomain);
  then_graph.output("t", f32_type({2}));
  function.node("If", {"cond"}, {"b"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", capture_branch("a", "e"));
  ModelWriter writer = calling_model(function);
  writer.function(std::move(inner));
  writer.graph().initializer(model_writer::TensorWriter("yes", kBoolean, {}).int32s({1}));
  writer.graph().node("ChooseHalf", {"yes", "x"}, {"y"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{0.5F, -1}));
}

TEST(InlineFunctions, AGraphGivenAsAnAttributeMayBeUsedTwice) {
  FunctionWriter function(kDomain, "ChooseTwice", {"cond"}, {"p", "q"});
  function.opset("", 17);
  function.attribute("branch");
  for (const char* output : {"p", "q"}) {
    function.node("If", {"cond"}, {output})
        .attr_ref("then_branch", "branch", AttributeType::kGraph)
        .attr_ref("else_branch", "branch", AttributeType::kGraph);
  }
  ModelWriter writer = calling_model(function, {"y", "z"});
  writer.graph().initializer(model_writer::TensorWriter("yes", kBoolean, {}).int32s({1}));
  writer.graph()
      .node("ChooseTwice", {"yes"}, {"y", "z"})
      .in_domain(kDomain)
      .attr_graph("branch", capture_branch("x", "t"));
  EXPECT_EQ(result_of(writer, {1, -2}, 0), (std::vector<float>{-1, 2}));
  EXPECT_EQ(result_of(writer, {1, -2}, 1), (std::vector<float>{-1, 2}));
}

TEST(InlineFunctions, AnOutputThatIsAnInputIsCopiedOut) {
  FunctionWriter function(kDomain, "Pass", {"a"}, {"a"});
  function.opset("", 17);
  ModelWriter writer = calling_model(function);
  writer.graph().node("Pass", {"x"}, {"y"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{1, -2}));
}

TEST(InlineFunctions, AnUnwantedOutputThatNobodyMakesDoesNoHarm) {
  FunctionWriter function(kDomain, "Two", {"a"}, {"b", "never_made"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter writer = calling_model(function);
  writer.graph().node("Two", {"x"}, {"y", ""}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{-1, 2}));
  ModelWriter wanted = calling_model(std::move(function));
  wanted.graph().node("Two", {"x"}, {"", "y"}).in_domain(kDomain);
  EXPECT_TRUE(fails_with(build(wanted).status(), Code::kInvalidGraph, {"'y'"}));
}

TEST(InlineFunctions, TheSameOutputTwiceGoesToBothNames) {
  FunctionWriter function(kDomain, "Both", {"a"}, {"b", "b"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter writer = calling_model(function, {"y", "z"});
  writer.graph().node("Both", {"x"}, {"y", "z"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {1, -2}, 0), (std::vector<float>{-1, 2}));
  EXPECT_EQ(result_of(writer, {1, -2}, 1), (std::vector<float>{-1, 2}));
}

TEST(InlineFunctions, AModelWithoutTheStandardDomainMayForwardAnInput) {
  ModelWriter writer(8);
  writer.opset(kDomain, 1);
  FunctionWriter function(kDomain, "Pass", {"a"}, {"a"});
  function.opset("", 17);
  writer.function(std::move(function));
  writer.graph().input("x", f32_type({2}));
  writer.graph().node("Pass", {"x"}, {"y"}).in_domain(kDomain);
  writer.graph().output("y", f32_type({2}));
  EXPECT_EQ(result_of(writer, {1, -2}), (std::vector<float>{1, -2}));
}

TEST(InlineFunctions, TooManyArgumentsAreRefused) {
  FunctionWriter function(kDomain, "One", {"a"}, {"b"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter inputs = calling_model(function);
  inputs.graph().node("One", {"x", "x"}, {"y"}).in_domain(kDomain).named("call");
  EXPECT_TRUE(fails_with(build(inputs).status(), Code::kInvalidGraph, {"call", "One", "2", "1"}));
  ModelWriter outputs = calling_model(std::move(function));
  outputs.graph().node("One", {"x"}, {"y", "z"}).in_domain(kDomain).named("call");
  EXPECT_TRUE(fails_with(build(outputs).status(), Code::kInvalidGraph, {"call", "One", "2", "1"}));
}

TEST(InlineFunctions, RecursionIsRefused) {
  FunctionWriter function(kDomain, "Self", {"a"}, {"b"});
  function.opset("", 17).opset(kDomain, 1);
  function.node("Self", {"a"}, {"b"}).in_domain(kDomain);
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().node("Self", {"x"}, {"y"}).in_domain(kDomain);
  EXPECT_TRUE(fails_with(build(writer).status(), Code::kInvalidGraph, {"Self", "calls itself"}));
}

TEST(InlineFunctions, RecursionThroughSubgraphsIsRefused) {
  FunctionWriter function(kDomain, "Self", {"c"}, {"b"});
  function.opset("", 17).opset(kDomain, 1);
  GraphWriter then_graph("then");
  then_graph.node("Self", {"c"}, {"t"}).in_domain(kDomain);
  then_graph.output("t", f32_type({2}));
  GraphWriter else_graph = then_graph;
  function.node("If", {"c"}, {"b"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().input("c", model_writer::Type::tensor(kBoolean, {}));
  writer.graph().node("Self", {"c"}, {"y"}).in_domain(kDomain);
  EXPECT_TRUE(fails_with(build(writer).status(), Code::kInvalidGraph, {"Self"}));
}

// A function of `calls` calls of the next one, `levels` deep; the last has the body `leaf`.
ModelWriter bomb(int levels, int calls, bool empty_leaf) {
  ModelWriter writer = plain_model(10);
  writer.opset(kDomain, 1);
  for (int level = 0; level < levels; ++level) {
    FunctionWriter function(kDomain, "F" + std::to_string(level), {"a"}, {"b0"});
    function.opset("", 17).opset(kDomain, 1);
    for (int i = 0; i < calls; ++i) {
      const std::string out = "b" + std::to_string(i);
      if (level + 1 < levels) {
        function.node("F" + std::to_string(level + 1), {"a"}, {out}).in_domain(kDomain);
      } else if (!empty_leaf) {
        function.node("Neg", {"a"}, {out});
      }
    }
    writer.function(std::move(function));
  }
  writer.graph().input("x", f32_type({2}));
  writer.graph().node("F0", {"x"}, {""}).in_domain(kDomain);
  return writer;
}

TEST(InlineFunctions, ExponentialGrowthIsStopped) {
  for (const bool empty_leaf : {false, true}) {
    const std::clock_t start = std::clock();  // of this process: machines are shared
    const auto model = build(bomb(30, 10, empty_leaf));
    const std::clock_t elapsed = std::clock() - start;
    EXPECT_TRUE(fails_with(model.status(), Code::kInvalidGraph, {"inlining functions", "'F"}));
    EXPECT_LT(elapsed, 60 * CLOCKS_PER_SEC);
  }
}

TEST(InlineFunctions, GrowthCanBeCancelled) {
  auto def = load_def(bomb(30, 10, false).serialize());
  ASSERT_TRUE(def.is_ok()) << text_of(def.status());
  int asked = 0;
  const auto model = build_model(std::move(def).take(), {}, [&] { return ++asked < 3; });
  EXPECT_TRUE(fails_with(model.status(), Code::kModelLoadCancelled, {"cancelled"}));
  EXPECT_EQ(asked, 3);
}

TEST(InlineFunctions, LongNamesAndAttributesDoNotMultiply) {
  const std::string big(size_t{1} << 20, 'n');
  FunctionWriter named(kDomain, big, {"a"}, {"b"});
  named.opset("", 17);
  for (int i = 0; i < 20000; ++i)
    named.node("Neg", {"a"}, {i == 0 ? "b" : "t" + std::to_string(i)});
  ModelWriter names = calling_model(std::move(named));
  names.graph().node(big, {"x"}, {"y"}).in_domain(kDomain);
  const auto model = build(names);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_LT(model.value()->graph.nodes[5].name.size(), 1000U);

  FunctionWriter given(kDomain, "Given", {"a"}, {"b"});
  given.opset("", 17);
  given.attribute("text");
  for (int i = 0; i < 2000; ++i) {
    given.node("Neg", {"a"}, {i == 0 ? "b" : "t" + std::to_string(i)})
        .attr_ref("text", "text", AttributeType::kString);
  }
  ModelWriter attributes = calling_model(std::move(given));
  attributes.graph().node("Given", {"x"}, {"y"}).in_domain(kDomain).attr_string("text", big);
  EXPECT_TRUE(
      fails_with(build(attributes).status(), Code::kInvalidGraph, {"inlining functions", "bytes"}));
}

TEST(InlineFunctions, AFunctionDefinedTwiceIsRefused) {
  FunctionWriter function(kDomain, "One", {"a"}, {"b"});
  function.opset("", 17);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter writer = calling_model(function);
  writer.function(std::move(function));
  writer.graph().node("One", {"x"}, {"y"}).in_domain(kDomain);
  EXPECT_TRUE(fails_with(build(writer).status(), Code::kInvalidGraph, {"One", "twice"}));
}

TEST(InlineFunctions, BodiesUseTheirOwnOpsets) {
  // Clip takes its limits from attributes at opset 6, from inputs since 11.
  FunctionWriter function(kDomain, "OldClip", {"a"}, {"b"});
  function.opset("", 6);
  function.node("Clip", {"a"}, {"b"}).attr_float("min", 0).attr_float("max", 1);
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().node("OldClip", {"x"}, {"y"}).in_domain(kDomain);
  EXPECT_EQ(result_of(writer, {-3, 3}), (std::vector<float>{0, 1}));
}

TEST(InlineFunctions, OpsetsOfFunctionsAreChecked) {
  FunctionWriter function(kDomain, "One", {"a"}, {"b"});
  function.opset("", -5);
  function.node("Neg", {"a"}, {"b"});
  ModelWriter writer = calling_model(std::move(function));
  writer.graph().node("One", {"x"}, {"y"}).in_domain(kDomain);
  EXPECT_TRUE(fails_with(build(writer).status(), Code::kInvalidGraph, {"-5"}));
}

}  // namespace
}  // namespace folio
