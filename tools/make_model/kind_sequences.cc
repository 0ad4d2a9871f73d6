#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kWidth = 4;

Type rows() { return Type::tensor(ElementType::kFloat, {"batch", kWidth}); }

// x, then a constant row, then -x; without its first element again; as one tensor.
void add_construct(GraphWriter& graph) {
  graph.node("Neg", {"x"}, {"negative"}).named("x/Neg");
  graph.node("SequenceConstruct", {"x", "negative"}, {"pair"}).named("pair/SequenceConstruct");
  graph.node("SequenceInsert", {"pair", "table", "one"}, {"three"}).named("three/SequenceInsert");
  graph.node("SequenceAt", {"three", "minus_one"}, {"last"}).named("last/SequenceAt");
  graph.node("SequenceErase", {"three", "zero"}, {"two"}).named("two/SequenceErase");
  graph.node("SequenceLength", {"two"}, {"length"}).named("two/SequenceLength");
  graph.node("ConcatFromSequence", {"two"}, {"joined"})
      .named("two/ConcatFromSequence")
      .attr_int("axis", 0);
}

// Parts of equal and of given size, of which some are put together again along another axis.
void add_split(GraphWriter& graph) {
  graph.initializer(i64_tensor("split.sizes", {2}, {1, 3}));
  graph.node("SplitToSequence", {"x", "split.sizes"}, {"uneven"})
      .named("uneven/SplitToSequence")
      .attr_int("axis", 1);
  graph.node("SequenceAt", {"uneven", "one"}, {"tail"}).named("uneven/SequenceAt");
  graph.node("SplitToSequence", {"x"}, {"columns"})
      .named("columns/SplitToSequence")
      .attr_int("axis", 1)
      .attr_int("keepdims", 0);
  graph.node("ConcatFromSequence", {"columns"}, {"stacked"})
      .named("columns/ConcatFromSequence")
      .attr_int("axis", 0)
      .attr_int("new_axis", 1);
  graph.node("SequenceEmpty", {}, {"empty"})
      .named("SequenceEmpty")
      .attr_int("dtype", static_cast<int64_t>(ElementType::kFloat));
  graph.node("SequenceInsert", {"empty", "tail"}, {"single"}).named("single/SequenceInsert");
  graph.node("SequenceLength", {"single"}, {"single.length"}).named("single/SequenceLength");
}

void add_optional(GraphWriter& graph) {
  graph.node("Optional", {"last"}, {"maybe"}).named("maybe/Optional");
  graph.node("OptionalHasElement", {"maybe"}, {"has"}).named("maybe/OptionalHasElement");
  graph.node("OptionalGetElement", {"maybe"}, {"inside"}).named("maybe/OptionalGetElement");
  graph.node("Optional", {}, {"nothing"})
      .named("nothing/Optional")
      .attr(AttributeWriter::of_type("type", rows()));
  graph.node("OptionalHasElement", {"nothing"}, {"has_nothing"})
      .named("nothing/OptionalHasElement");
  graph.node("Add", {"inside", "x"}, {"y"}).named("y/Add");
}

}  // namespace

ModelFiles build_sequences(uint64_t seed, SequenceOutputs outputs) {
  ModelFiles files{new_model("sequences", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  GraphWriter& graph = files.model.graph();
  Seeds seeds(seed);
  graph.input("x", rows());
  graph.initializer(i64_tensor("zero", {}, {0}));
  graph.initializer(i64_tensor("one", {}, {1}));
  graph.initializer(i64_tensor("minus_one", {}, {-1}));
  graph.initializer(
      f32_tensor("table", {1, kWidth}, uniform_values(seeds.next(), kWidth, -1.0f, 1.0f)));
  add_construct(graph);
  add_split(graph);
  add_optional(graph);
  graph.output("joined", Type::tensor(ElementType::kFloat, {"joined_rows", kWidth}));
  graph.output("stacked", Type::tensor(ElementType::kFloat, {kWidth, "batch"}));
  graph.output("tail", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.output("y", rows());
  graph.output("length", Type::tensor(ElementType::kInt64, {}));
  graph.output("single.length", Type::tensor(ElementType::kInt64, {}));
  graph.output("has", Type::tensor(ElementType::kBool, {}));
  graph.output("has_nothing", Type::tensor(ElementType::kBool, {}));
  if (outputs == SequenceOutputs::kSequences) {
    graph.output("three", Type::sequence(Type::tensor(ElementType::kFloat, {"any_rows", kWidth})));
    graph.output("maybe", Type::optional(rows()));
  }
  return files;
}

}  // namespace model_writer
