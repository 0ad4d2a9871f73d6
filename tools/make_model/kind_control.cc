#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kWidth = 8;
constexpr int64_t kTrips = 4;

TensorWriter weights(Seeds& seeds, const std::string& name, const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<uint64_t>(dim);
  const float scale = weight_scale(kWidth);
  return f32_tensor(name, dims, uniform_values(seeds.next(), count, -scale, scale));
}

Type rows() { return Type::tensor(ElementType::kFloat, {"batch", kWidth}); }
Type scalar(ElementType element) { return Type::tensor(element, {}); }

// Both branches own an initializer, and capture the graph input x and the outer initializer.
void add_if(GraphWriter& graph, Seeds& seeds) {
  GraphWriter then_graph("then_branch");
  then_graph.initializer(weights(seeds, "then.weight", {kWidth, kWidth}));
  then_graph.node("MatMul", {"x", "then.weight"}, {"then.product"}).named("then/MatMul");
  then_graph.node("Add", {"then.product", "outer.bias"}, {"then.out"}).named("then/Add");
  then_graph.output("then.out", rows());

  GraphWriter else_graph("else_branch");
  else_graph.initializer(weights(seeds, "else.scale", {kWidth}));
  else_graph.node("Mul", {"x", "else.scale"}, {"else.scaled"}).named("else/Mul");
  else_graph.node("Sub", {"else.scaled", "outer.bias"}, {"else.out"}).named("else/Sub");
  else_graph.output("else.out", rows());

  graph.node("If", {"flag"}, {"chosen"})
      .named("choice")
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
}

// In the loop's body: even iterations add what the main graph computed, odd ones an own constant;
// so that a value is captured through two levels.
void add_inner_if(GraphWriter& body) {
  body.initializer(i64_tensor("loop.two", {}, {2}));
  body.initializer(i64_tensor("loop.zero", {}, {0}));
  body.node("Mod", {"loop.iteration", "loop.two"}, {"loop.parity"}).named("loop/Mod");
  body.node("Equal", {"loop.parity", "loop.zero"}, {"loop.even"}).named("loop/Equal");

  GraphWriter even("even_branch");
  even.node("Add", {"loop.active", "chosen"}, {"even.out"}).named("even/Add");
  even.output("even.out", rows());
  GraphWriter odd("odd_branch");
  odd.initializer(f32_tensor("odd.half", {}, {0.5f}));
  odd.node("Mul", {"loop.active", "odd.half"}, {"odd.out"}).named("odd/Mul");
  odd.output("odd.out", rows());
  body.node("If", {"loop.even"}, {"loop.next"})
      .named("loop/If")
      .attr_graph("then_branch", std::move(even))
      .attr_graph("else_branch", std::move(odd));
}

// Carries h; gives the mean of each iteration's h as scan output.
void add_loop(GraphWriter& graph, Seeds& seeds) {
  GraphWriter body("loop_body");
  body.input("loop.iteration", scalar(ElementType::kInt64));
  body.input("loop.condition", scalar(ElementType::kBool));
  body.input("loop.h", rows());
  body.initializer(weights(seeds, "loop.weight", {kWidth, kWidth}));
  body.node("MatMul", {"loop.h", "loop.weight"}, {"loop.product"}).named("loop/MatMul");
  body.node("Add", {"loop.product", "outer.bias"}, {"loop.sum"}).named("loop/Add");
  body.node("Tanh", {"loop.sum"}, {"loop.active"}).named("loop/Tanh");
  add_inner_if(body);
  body.node("ReduceMean", {"loop.next"}, {"loop.mean"})
      .named("loop/ReduceMean")
      .attr_ints("axes", {1})
      .attr_int("keepdims", 0);
  body.node("Identity", {"loop.condition"}, {"loop.go_on"}).named("loop/Identity");
  body.output("loop.go_on", scalar(ElementType::kBool));
  body.output("loop.next", rows());
  body.output("loop.mean", Type::tensor(ElementType::kFloat, {"batch"}));

  graph.initializer(i64_tensor("trips", {}, {kTrips}));
  graph.node("Loop", {"trips", "", "chosen"}, {"looped", "means"})
      .named("loop")
      .attr_graph("body", std::move(body));
}

// Runs along the rows of `looped`: a decaying sum as state, each step's value as scan output.
void add_scan(GraphWriter& graph, Seeds& seeds) {
  GraphWriter body("scan_body");
  body.input("scan.state", Type::tensor(ElementType::kFloat, {kWidth}));
  body.input("scan.row", Type::tensor(ElementType::kFloat, {kWidth}));
  body.initializer(weights(seeds, "scan.decay", {kWidth}));
  body.node("Mul", {"scan.state", "scan.decay"}, {"scan.decayed"}).named("scan/Mul");
  body.node("Add", {"scan.decayed", "scan.row"}, {"scan.sum"}).named("scan/Add");
  body.node("Add", {"scan.sum", "outer.bias"}, {"scan.out"}).named("scan/AddBias");
  body.output("scan.sum", Type::tensor(ElementType::kFloat, {kWidth}));
  body.output("scan.out", Type::tensor(ElementType::kFloat, {kWidth}));

  graph.initializer(f32_tensor("scan.start", {kWidth}, std::vector<float>(kWidth, 0.0f)));
  graph.node("Scan", {"scan.start", "looped"}, {"last", "steps"})
      .named("scan")
      .attr_int("num_scan_inputs", 1)
      .attr_graph("body", std::move(body));
}

}  // namespace

ModelFiles build_control(uint64_t seed) {
  ModelFiles files{new_model("control", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  GraphWriter& graph = files.model.graph();
  Seeds seeds(seed);
  graph.input("x", rows());
  graph.input("flag", scalar(ElementType::kBool));
  graph.initializer(weights(seeds, "outer.bias", {kWidth}));
  add_if(graph, seeds);
  add_loop(graph, seeds);
  add_scan(graph, seeds);
  graph.output("steps", rows());
  graph.output("last", Type::tensor(ElementType::kFloat, {kWidth}));
  graph.output("means", Type::tensor(ElementType::kFloat, {kTrips, "batch"}));
  graph.output("looped", rows());
  return files;
}

}  // namespace model_writer
