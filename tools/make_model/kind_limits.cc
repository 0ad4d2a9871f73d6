// The kinds "deep" and "many": plain graphs that are only large in one direction.

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kWidth = 4;

Type rows() { return Type::tensor(ElementType::kFloat, {"batch", kWidth}); }

// The branch at `level` that does not go deeper.
GraphWriter flat_branch(uint64_t level) {
  const std::string name = "flat" + std::to_string(level);
  GraphWriter branch(name);
  branch.node("Identity", {"x"}, {name + ".out"}).named(name + "/Identity");
  branch.output(name + ".out", rows());
  return branch;
}

}  // namespace

ModelFiles build_deep(uint64_t seed, uint64_t depth) {
  ModelFiles files{new_model("deep", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  // From the inside: a subgraph must be complete before its node.
  GraphWriter inner("bottom");
  inner.node("Add", {"x", "bottom.bias"}, {"bottom.out"}).named("bottom/Add");
  inner.initializer(
      f32_tensor("bottom.bias", {kWidth}, uniform_values(Seeds(seed).next(), kWidth, -1.0f, 1.0f)));
  inner.output("bottom.out", rows());
  for (uint64_t level = depth; level-- > 1;) {
    const std::string name = "level" + std::to_string(level);
    GraphWriter outer(name);
    outer.node("If", {"flag"}, {name + ".out"})
        .named(name + "/If")
        .attr_graph("then_branch", std::move(inner))
        .attr_graph("else_branch", flat_branch(level));
    outer.output(name + ".out", rows());
    inner = std::move(outer);
  }
  GraphWriter& graph = files.model.graph();
  graph.input("x", rows());
  graph.input("flag", Type::tensor(ElementType::kBool, {}));
  graph.node("If", {"flag"}, {"y"})
      .named("level0/If")
      .attr_graph("then_branch", std::move(inner))
      .attr_graph("else_branch", flat_branch(0));
  graph.output("y", rows());
  return files;
}

ModelFiles build_many(uint64_t seed, uint64_t nodes) {
  ModelFiles files{new_model("many", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  GraphWriter& graph = files.model.graph();
  graph.input("x", rows());
  // Small enough that a million additions stay far from a float's limits.
  graph.initializer(
      f32_tensor("step", {kWidth}, uniform_values(Seeds(seed).next(), kWidth, -1e-3f, 1e-3f)));
  std::string value = "x";
  for (uint64_t i = 0; i < nodes; ++i) {
    const std::string out = i + 1 == nodes ? "y" : "h" + std::to_string(i);
    graph.node("Add", {value, "step"}, {out}).named("add" + std::to_string(i));
    value = out;
  }
  graph.output("y", rows());
  return files;
}

}  // namespace model_writer
