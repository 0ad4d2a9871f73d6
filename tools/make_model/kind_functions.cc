#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kWidth = 8;
constexpr const char* kDomain = "folio.test";

// y = slope-ReLU(x) * gain; both come from the caller's attributes.
FunctionWriter scaled_relu() {
  FunctionWriter function(kDomain, "ScaledRelu", {"x"}, {"y"});
  function.opset("", kPlainOpset).attribute("slope").attribute("gain");
  function.node("LeakyRelu", {"x"}, {"active"})
      .named("LeakyRelu")
      .attr_ref("alpha", "slope", AttributeType::kFloat);
  function.node("Constant", {}, {"factor"})
      .named("Constant")
      .attr_ref("value_float", "gain", AttributeType::kFloat);
  function.node("Mul", {"active", "factor"}, {"y"}).named("Mul");
  return function;
}

// A layer that calls ScaledRelu twice: once with its own attribute handed on, once with numbers.
FunctionWriter layer() {
  FunctionWriter function(kDomain, "Layer", {"x", "weight", "bias"}, {"y"});
  function.opset("", kPlainOpset).opset(kDomain, 1).attribute("layer_slope");
  function.node("MatMul", {"x", "weight"}, {"product"}).named("MatMul");
  function.node("Add", {"product", "bias"}, {"sum"}).named("Add");
  function.node("ScaledRelu", {"sum"}, {"first"})
      .named("first")
      .in_domain(kDomain)
      .attr_ref("slope", "layer_slope", AttributeType::kFloat)
      .attr_float("gain", 1.25f);
  function.node("ScaledRelu", {"first"}, {"y"})
      .named("second")
      .in_domain(kDomain)
      .attr_float("slope", 0.5f)
      .attr_float("gain", 0.75f);
  return function;
}

// Holds a subgraph that captures the function's inputs, and inner names that the main graph has
// too.
FunctionWriter choose() {
  FunctionWriter function(kDomain, "Choose", {"flag", "a", "b"}, {"y"});
  function.opset("", kPlainOpset).opset(kDomain, 1);
  GraphWriter then_graph("then_branch");
  then_graph.node("ScaledRelu", {"a"}, {"then_out"})
      .named("then/ScaledRelu")
      .in_domain(kDomain)
      .attr_float("slope", 0.1f)
      .attr_float("gain", 2.0f);
  then_graph.output_without_type("then_out");
  GraphWriter else_graph("else_branch");
  else_graph.node("Sub", {"a", "b"}, {"else_out"}).named("else/Sub");
  else_graph.output_without_type("else_out");
  function.node("If", {"flag"}, {"h0"})
      .named("If")
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  function.node("Add", {"h0", "b"}, {"y"}).named("Add");
  return function;
}

}  // namespace

ModelFiles build_functions(uint64_t seed) {
  ModelFiles files{new_model("functions", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  ModelWriter& model = files.model;
  model.opset(kDomain, 1);
  model.function(scaled_relu()).function(layer()).function(choose());

  GraphWriter& graph = model.graph();
  Seeds seeds(seed);
  const float scale = weight_scale(kWidth);
  const Type rows = Type::tensor(ElementType::kFloat, {"batch", kWidth});
  graph.input("x", rows);
  graph.input("flag", Type::tensor(ElementType::kBool, {}));
  std::string value = "x";
  for (const std::string index : {"0", "1"}) {
    graph.initializer(f32_tensor("w" + index, {kWidth, kWidth},
                                 uniform_values(seeds.next(), kWidth * kWidth, -scale, scale)));
    graph.initializer(
        f32_tensor("b" + index, {kWidth}, uniform_values(seeds.next(), kWidth, -scale, scale)));
    graph.node("Layer", {value, "w" + index, "b" + index}, {"h" + index})
        .named("layer" + index)
        .in_domain(kDomain)
        .attr_float("layer_slope", index == "0" ? 0.01f : 0.2f);
    value = "h" + index;
  }
  graph.node("Choose", {"flag", "h0", "h1"}, {"y"}).named("choose").in_domain(kDomain);
  graph.output("y", rows);
  return files;
}

}  // namespace model_writer
