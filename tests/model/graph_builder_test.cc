// build_model: names, scopes, order, cycles, and what hostile graphs get told.
#include "core/model/graph_builder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "tests/support/model_tester.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

// x[2] -> Relu -> y
ModelWriter relu_model() {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({2}));
  writer.graph().node("Relu", {"x"}, {"y"}).named("relu");
  writer.graph().output("y", f32_type({2}));
  return writer;
}

void expect_refused(const ModelWriter& writer, const std::vector<std::string>& parts) {
  const auto model = build(writer);
  EXPECT_TRUE(fails_with(model.status(), Code::kInvalidGraph, parts));
}

TEST(GraphBuilder, NodesAreSortedHoweverTheFileHasThem) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  graph.node("Neg", {"b"}, {"y"}).named("third");
  graph.node("Relu", {"a"}, {"b"}).named("second");
  graph.node("Abs", {"x"}, {"a"}).named("first");
  graph.output("y", f32_type({2}));
  const auto model = build(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& built = model.value()->graph;
  ASSERT_EQ(built.nodes.size(), 3U);
  EXPECT_EQ(built.nodes[0].name, "first");
  EXPECT_EQ(built.nodes[1].name, "second");
  EXPECT_EQ(built.nodes[2].name, "third");
  for (size_t i = 0; i < built.nodes.size(); ++i) {
    EXPECT_EQ(built.value(built.nodes[i].outputs[0]).producer, static_cast<NodeId>(i));
  }
}

TEST(GraphBuilder, AMissingValueIsNamedWithItsNode) {
  ModelWriter writer = plain_model();
  writer.graph().node("Relu", {"nowhere"}, {"y"}).named("relu");
  writer.graph().output("y", f32_type({2}));
  expect_refused(writer, {"node 'relu' (Relu)", "'nowhere'"});
}

TEST(GraphBuilder, AMissingOutputIsNamed) {
  ModelWriter writer = relu_model();
  writer.graph().output("z", f32_type({2}));
  expect_refused(writer, {"output 'z'"});
}

TEST(GraphBuilder, ACycleIsNamed) {
  ModelWriter writer = plain_model();
  writer.graph().node("Add", {"b", "b"}, {"a"}).named("one");
  writer.graph().node("Relu", {"a"}, {"b"}).named("two");
  writer.graph().output("a", f32_type({2}));
  expect_refused(writer, {"cycle", "node 'one' (Add)"});
}

TEST(GraphBuilder, ANodeThatReadsItselfIsACycle) {
  ModelWriter writer = plain_model();
  writer.graph().node("Relu", {"a"}, {"a"}).named("self");
  writer.graph().output("a", f32_type({2}));
  expect_refused(writer, {"cycle", "self"});
}

GraphWriter branch_of(const std::string& op, const std::string& input, const std::string& output) {
  GraphWriter branch(output + "_graph");
  branch.node(op, {input}, {output}).named(output + "_node");
  branch.output(output, f32_type({2}));
  return branch;
}

TEST(GraphBuilder, ACycleThroughACaptureIsFound) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.node("If", {"c"}, {"a"})
      .named("choose")
      .attr_graph("then_branch", branch_of("Relu", "b", "t"))
      .attr_graph("else_branch", branch_of("Abs", "b", "e"));
  graph.node("Neg", {"a"}, {"b"}).named("neg");
  graph.output("b", f32_type({2}));
  expect_refused(writer, {"cycle"});
}

TEST(GraphBuilder, ACaptureOfTheNodesOwnOutputIsACycle) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.node("If", {"c"}, {"a"})
      .named("choose")
      .attr_graph("then_branch", branch_of("Relu", "a", "t"))
      .attr_graph("else_branch", branch_of("Abs", "a", "e"));
  graph.output("a", f32_type({2}));
  expect_refused(writer, {"cycle", "choose"});
}

TEST(GraphBuilder, DuplicateNamesAreRefused) {
  ModelWriter twice = relu_model();
  twice.graph().node("Abs", {"x"}, {"y"}).named("again");
  expect_refused(twice, {"'y'", "exists already", "again"});

  ModelWriter inputs = relu_model();
  inputs.graph().input("x", f32_type({2}));
  expect_refused(inputs, {"'x'", "exists already"});

  ModelWriter over_input = relu_model();
  over_input.graph().node("Abs", {"y"}, {"x"}).named("writes x");
  expect_refused(over_input, {"'x'", "exists already", "writes x"});

  ModelWriter initializers = relu_model();
  initializers.graph().initializer(f32_tensor("w", {1}, {1}));
  initializers.graph().initializer(f32_tensor("w", {1}, {2}));
  expect_refused(initializers, {"'w'", "exists already"});
}

TEST(GraphBuilder, AConstantNodeMayNotGiveAGraphInput) {
  ModelWriter writer = relu_model();
  writer.graph()
      .node("Constant", {}, {"x"})
      .named("const")
      .attr_tensor("value", f32_tensor("", {2}, {1, 2}));
  expect_refused(writer, {"'x'", "exists already"});
}

TEST(GraphBuilder, InnerNamesShadowOuterOnes) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.input("x", f32_type({2}));
  graph.node("Relu", {"x"}, {"v"});
  // Each branch makes a `v` of its own.
  GraphWriter then_graph("then");
  then_graph.node("Neg", {"x"}, {"v"});
  then_graph.output("v", f32_type({2}));
  GraphWriter else_graph("else");
  else_graph.node("Identity", {"v"}, {"w"});
  else_graph.output("w", f32_type({2}));
  graph.node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  graph.output("y", f32_type({2}));
  for (const bool condition : {true, false}) {
    const auto outputs = run_once(writer, {{"c", make_tensor<bool>({}, {condition})},
                                           {"x", make_tensor<float>({2}, {1, -2})}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    const std::vector<float> expected =
        condition ? std::vector<float>{-1, 2} : std::vector<float>{1, 0};
    EXPECT_EQ(floats_of(outputs.value()[0]), expected);
  }
}

TEST(GraphBuilder, InitializersOfOldFilesAreConstants) {
  for (const int64_t ir : {3, 4}) {
    ModelWriter writer = plain_model(ir);
    GraphWriter& graph = writer.graph();
    graph.input("w", f32_type({2}));
    graph.input("x", f32_type({2}));
    graph.initializer(f32_tensor("w", {2}, {1, 2}));
    graph.node("Add", {"x", "w"}, {"y"});
    graph.output("y", f32_type({2}));
    const auto model = build(writer);
    ASSERT_TRUE(model.is_ok()) << text_of(model.status());
    const Graph& built = model.value()->graph;
    ASSERT_EQ(built.inputs.size(), 1U);
    EXPECT_EQ(built.value(built.inputs[0]).name, "x");
    EXPECT_EQ(built.overridable.size(), ir >= 4 ? 1U : 0U);
    EXPECT_EQ(built.value(find_value(built, "w")).is_constant(), ir < 4);
  }
}

TEST(GraphBuilder, AnOverridableInitializerMustBeOfItsDeclaredType) {
  const auto model_with = [](const model_writer::TensorWriter& tensor) {
    ModelWriter writer = plain_model();
    writer.graph().input("w", f32_type({2, "n"}));
    writer.graph().initializer(tensor);
    writer.graph().node("Relu", {"w"}, {"y"});
    writer.graph().output("y", f32_type({2, "n"}));
    return writer;
  };
  EXPECT_TRUE(build(model_with(f32_tensor("w", {2, 1}, {1, 2}))).is_ok());
  expect_refused(model_with(i64_tensor("w", {2, 1}, {1, 2})), {"'w'", "int64", "float"});
  expect_refused(model_with(f32_tensor("w", {2}, {1, 2})), {"'w'", "[2]", "[2,?]"});
  expect_refused(model_with(f32_tensor("w", {3, 1}, {1, 2, 3})), {"'w'", "[3,1]", "[2,?]"});
}

TEST(GraphBuilder, OpsetsOfUnknownDomainsAreNamed) {
  ModelWriter writer = relu_model();
  writer.graph().node("Thing", {"x"}, {"z"}).in_domain("com.example").named("thing");
  expect_refused(writer, {"thing", "com.example"});
}

TEST(GraphBuilder, OpsetVersionsAreChecked) {
  ModelWriter writer(8);
  writer.opset("", 0);
  expect_refused(writer, {"version 0"});
}

TEST(GraphBuilder, AnAttributeReferenceOutsideOfAFunctionIsRefused) {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({2}));
  writer.graph()
      .node("LeakyRelu", {"x"}, {"y"})
      .named("leaky")
      .attr_ref("alpha", "slope", model_writer::AttributeType::kFloat);
  writer.graph().output("y", f32_type({2}));
  expect_refused(writer, {"leaky", "alpha", "slope", "function"});
}

// `depth` If nodes, each in the branch of the one before, made without a parser and its limits.
ModelDef nested_def(int depth) {
  ModelDef def;
  def.ir_version = 8;
  def.opsets = {{"", 17}};
  GraphDef* graph = &def.graph;
  for (int i = 0; i < depth; ++i) {
    NodeDef node;
    node.op_type = "If";
    node.outputs = {"y" + std::to_string(i)};
    AttributeDef branch;
    branch.name = "then_branch";
    branch.type = AttributeDef::Type::kGraph;
    branch.graphs = {std::make_shared<GraphDef>()};
    GraphDef* const inner = branch.graphs[0].get();
    node.attributes.push_back(std::move(branch));
    graph->nodes.push_back(std::move(node));
    graph = inner;
  }
  return def;
}

TEST(GraphBuilder, NestingIsLimited) {
  EXPECT_TRUE(build_model(nested_def(kMaxSubgraphDepth), {}).is_ok());
  const auto model = build_model(nested_def(kMaxSubgraphDepth + 1), {});
  EXPECT_TRUE(fails_with(model.status(), Code::kInvalidGraph, {"nested deeper than 64"}));
}

TEST(GraphBuilder, TenThousandLevelsAreRefused) {
  const auto model = build(model_writer::build_deep(1, 10000).model);
  ASSERT_FALSE(model.is_ok());
  EXPECT_NE(model.status().message().find("deeper"), std::string_view::npos)
      << model.status().message();
}

// A run may give inputs whose dims share a name different sizes.
TEST(GraphBuilder, DimsOfOneNameAreApartUnlessItIsFixed) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 3}));
  graph.input("z", f32_type({"n", "m"}));
  graph.node("Relu", {"x"}, {"y"});
  graph.output("y", f32_type({"n", 3}));
  const auto model = build(writer);
  ASSERT_TRUE(model.is_ok());
  const Graph& built = model.value()->graph;
  const Dims& x = *built.value(built.inputs[0]).type.dims;
  const Dims& z = *built.value(built.inputs[1]).type.dims;
  EXPECT_FALSE(x[0] == z[0]);
  EXPECT_FALSE(z[0] == z[1]);
  EXPECT_EQ(model.value()->dims.name(z[0].symbol), "n");
  const auto fixed = build(writer, {{"n", 7}});
  ASSERT_TRUE(fixed.is_ok());
  EXPECT_EQ((*fixed.value()->graph.value(fixed.value()->graph.inputs[1]).type.dims)[0], Dim::of(7));
  EXPECT_TRUE(
      fails_with(build(writer, {{"n", -1}}).status(), Code::kInvalidArgument, {"'n'", "-1"}));
}

TEST(GraphBuilder, InputsOfTooManyDimsAreRefused) {
  ModelDef def;
  def.ir_version = 8;
  ValueDef input;
  input.name = "x";
  input.type.kind = TypeInfo::Kind::kTensor;
  input.type.dtype = DType::kFloat;
  input.type.has_shape = true;
  input.type.dims.resize(kMaxRank + 1);
  def.graph.inputs = {input};
  const auto model = build_model(std::move(def), {});
  EXPECT_TRUE(fails_with(model.status(), Code::kNotImplemented, {"'x'", "17", "16"}));
}

TEST(GraphBuilder, ManyInitializersAmongTheInputsAreFast) {
  // Old files list every weight as an input; taking each out of the list must not cost a pass.
  constexpr int kCount = 200000;
  ModelDef def;
  def.ir_version = 3;
  def.opsets = {{"", 17}};
  for (int i = 0; i < kCount; ++i) {
    ValueDef input;
    input.name = "w" + std::to_string(i);
    input.type.kind = TypeInfo::Kind::kTensor;
    input.type.dtype = DType::kFloat;
    def.graph.inputs.push_back(std::move(input));
  }
  const Tensor tensor = make_tensor<float>({1}, {1});
  for (int i = kCount; i-- > 0;) {
    InitializerDef initializer;
    initializer.name = "w" + std::to_string(i);
    initializer.tensor = tensor;
    def.graph.initializers.push_back(std::move(initializer));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto model = build_model(std::move(def), {});
  const auto elapsed = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_TRUE(model.value()->graph.inputs.empty());
  EXPECT_LT(elapsed, std::chrono::seconds(8));
}

TEST(GraphBuilder, ConstantsOfEveryFormAreInitializers) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.node("Constant", {}, {"a"}).attr_tensor("value", f32_tensor("", {2}, {1, 2}));
  graph.node("Constant", {}, {"b"}).attr_int("value_int", 7);
  graph.node("Constant", {}, {"c"}).attr_ints("value_ints", {7, 8});
  graph.node("Constant", {}, {"d"}).attr_float("value_float", 0.5F);
  graph.node("Constant", {}, {"e"}).attr_floats("value_floats", {0.5F});
  graph.node("Constant", {}, {"f"}).attr_string("value_string", "text");
  graph.node("Constant", {}, {"g"}).attr_strings("value_strings", {"s", "t"});
  // Protobuf leaves out what holds its default.
  graph.node("Constant", {}, {"h"}).attr_int("value_int", 0);
  const auto model = build(writer);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  const Graph& built = model.value()->graph;
  EXPECT_TRUE(built.nodes.empty());
  const auto tensor_of = [&](const char* name) -> const Tensor& {
    return *built.value(find_value(built, name)).initializer->tensor;
  };
  EXPECT_EQ(tensor_of("a").shape(), Shape({2}));
  EXPECT_EQ(*tensor_of("b").data<int64_t>(), 7);
  EXPECT_EQ(tensor_of("b").rank(), 0);
  EXPECT_EQ(tensor_of("c").shape(), Shape({2}));
  EXPECT_EQ(*tensor_of("d").data<float>(), 0.5F);
  EXPECT_EQ(tensor_of("e").shape(), Shape({1}));
  EXPECT_EQ(*tensor_of("f").data<std::string>(), "text");
  EXPECT_EQ(tensor_of("g").data<std::string>()[1], "t");
  EXPECT_EQ(tensor_of("h").count(), 1);
  EXPECT_EQ(*tensor_of("h").data<int64_t>(), 0);
}

TEST(GraphBuilder, SingleConstantsWithoutAValueHoldTheDefault) {
  // The model writer writes zeros out; a file may as well leave them away.
  for (const char* name : {"value_int", "value_float", "value_string"}) {
    ModelDef def;
    def.ir_version = 8;
    def.opsets = {{"", 17}};
    NodeDef node;
    node.op_type = "Constant";
    node.outputs = {"c"};
    AttributeDef value;
    value.name = name;
    value.type = name == std::string("value_int")     ? AttributeDef::Type::kInt
                 : name == std::string("value_float") ? AttributeDef::Type::kFloat
                                                      : AttributeDef::Type::kString;
    node.attributes = {value};
    def.graph.nodes = {node};
    const auto model = build_model(std::move(def), {});
    ASSERT_TRUE(model.is_ok()) << text_of(model.status());
    const Tensor& tensor = *model.value()->graph.values[0].initializer->tensor;
    ASSERT_EQ(tensor.count(), 1);
    if (tensor.is_string()) {
      EXPECT_EQ(*tensor.data<std::string>(), "");
    } else {
      for (size_t i = 0; i < tensor.bytes(); ++i) EXPECT_EQ(tensor.raw()[i], 0) << name;
    }
  }
}

TEST(GraphBuilder, ASingleConstantOfTwoValuesIsRefused) {
  ModelDef def;
  def.ir_version = 8;
  def.opsets = {{"", 17}};
  NodeDef node;
  node.op_type = "Constant";
  node.outputs = {"c"};
  AttributeDef value;
  value.name = "value_int";
  value.type = AttributeDef::Type::kInt;
  value.ints = {1, 2, 3};
  node.attributes = {value};
  def.graph.nodes = {node};
  EXPECT_TRUE(
      fails_with(build_model(std::move(def), {}).status(), Code::kInvalidGraph, {"value_int"}));
}

// A file must not speak to kernels in the words of passes.
TEST(GraphBuilder, AttributesThatOnlyPassesWriteAreLeftOut) {
  const struct {
    const char* domain;
    const char* type;
    std::vector<std::string> kept;
  } cases[] = {
      {"", "Conv", {"group"}},
      {"", "CausalConvWithState", {"group", "activation", "activation_params", "channels_last"}},
      {"com.microsoft",
       "FusedConv",
       {"group", "activation", "activation_params", "channels_last"}}};
  for (const auto& each : cases) {
    ModelWriter writer = plain_model(8, 17);
    writer.opset("com.microsoft", 1);
    auto& node = writer.graph().node(each.type, {"x", "w"}, {"y"}).in_domain(each.domain);
    for (const char* name :
         {"group", "planes", "winograd", "half_weights", "keeps_finite", "channels_last"}) {
      node.attr_int(name, 1);
    }
    node.attr_string("activation", "Relu").attr_floats("activation_params", {1});
    writer.graph().input("x", f32_type({1, 1, 4, 4}));
    writer.graph().input("w", f32_type({1, 1, 1, 1}));
    writer.graph().output("y", f32_type({1, 1, 4, 4}));
    const auto model = build(writer);
    ASSERT_TRUE(model.is_ok()) << text_of(model.status());
    std::set<std::string> names;
    for (const AttributeDef& attribute : model.value()->graph.nodes[0].attributes.all()) {
      names.insert(attribute.name);
    }
    EXPECT_EQ(names, std::set<std::string>(each.kept.begin(), each.kept.end())) << each.type;
  }
}

}  // namespace
}  // namespace folio
