#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kFeatures = 16;
constexpr int64_t kHeads = 4;

void gather_dim(GraphWriter& graph, const std::string& shape, const std::string& index,
                const std::string& out) {
  graph.node("Gather", {shape, index}, {out}).named(out + "/Gather").attr_int("axis", 0);
}

// [batch, seq, 16] -> [batch, heads, seq, 4] -> back to rows [batch * seq, 16], the way exporters
// write it.
void add_reshapes(GraphWriter& graph) {
  graph.node("Shape", {"x"}, {"shape"}).named("x/Shape");
  gather_dim(graph, "shape", "zero", "batch_dim");
  gather_dim(graph, "shape", "one", "seq_dim");
  graph.node("Unsqueeze", {"batch_dim", "axis0"}, {"batch_1d"}).named("batch/Unsqueeze");
  graph.node("Unsqueeze", {"seq_dim", "axis0"}, {"seq_1d"}).named("seq/Unsqueeze");

  graph.initializer(i64_tensor("heads_dims", {2}, {kHeads, kFeatures / kHeads}));
  graph.node("Concat", {"batch_1d", "seq_1d", "heads_dims"}, {"split_shape"})
      .named("split/Concat")
      .attr_int("axis", 0);
  graph.node("Reshape", {"x", "split_shape"}, {"split"}).named("split/Reshape");
  graph.node("Transpose", {"split"}, {"heads"})
      .named("heads/Transpose")
      .attr_ints("perm", {0, 2, 1, 3});
  graph.node("Transpose", {"heads"}, {"merged"})
      .named("merged/Transpose")
      .attr_ints("perm", {0, 2, 1, 3});

  graph.node("Mul", {"batch_dim", "seq_dim"}, {"row_count"}).named("rows/Mul");
  graph.node("Unsqueeze", {"row_count", "axis0"}, {"row_count_1d"}).named("rows/Unsqueeze");
  graph.initializer(i64_tensor("minus_one", {1}, {-1}));
  graph.node("Concat", {"row_count_1d", "minus_one"}, {"rows_shape"})
      .named("rows/Concat")
      .attr_int("axis", 0);
  graph.node("Reshape", {"merged", "rows_shape"}, {"rows"}).named("rows/Reshape");
}

// A learned table cut to the sequence (Slice with a computed end) and repeated over the batch
// (Expand to a computed shape).
void add_positions(GraphWriter& graph, Seeds& seeds) {
  constexpr int64_t kPositions = 512;
  graph.initializer(f32_tensor("positions", {kPositions, kFeatures},
                               uniform_values(seeds.next(), kPositions * kFeatures, -1, 1)));
  graph.node("Slice", {"positions", "axis0", "seq_1d", "axis0"}, {"positions.cut"})
      .named("positions/Slice");
  graph.initializer(i64_tensor("features", {1}, {kFeatures}));
  graph.node("Concat", {"batch_1d", "seq_1d", "features"}, {"full_shape"})
      .named("positions/Concat")
      .attr_int("axis", 0);
  graph.node("Expand", {"positions.cut", "full_shape"}, {"positions.full"})
      .named("positions/Expand");
  graph.node("Add", {"x", "positions.full"}, {"positioned"}).named("positions/Add");
}

// Half of the sequence, rounded up, through integer arithmetic on shapes.
void add_half(GraphWriter& graph) {
  graph.initializer(i64_tensor("two", {}, {2}));
  graph.node("Add", {"seq_dim", "one"}, {"seq_plus_one"}).named("half/Add");
  graph.node("Div", {"seq_plus_one", "two"}, {"half_dim"}).named("half/Div");
  graph.node("Unsqueeze", {"half_dim", "axis0"}, {"half_1d"}).named("half/Unsqueeze");
  graph.initializer(i64_tensor("axis1", {1}, {1}));
  graph.node("Slice", {"positioned", "axis0", "half_1d", "axis1"}, {"half"}).named("half/Slice");
}

// The rows' positive elements: their count depends on data.
void add_positive(GraphWriter& graph) {
  graph.initializer(f32_tensor("threshold", {}, {0.0f}));
  graph.node("Greater", {"rows", "threshold"}, {"is_positive"}).named("positive/Greater");
  graph.node("NonZero", {"is_positive"}, {"positive.at"}).named("positive/NonZero");
  graph.node("Transpose", {"positive.at"}, {"positive.indices"})
      .named("positive/Transpose")
      .attr_ints("perm", {1, 0});
  graph.node("GatherND", {"rows", "positive.indices"}, {"positive"}).named("positive/GatherND");
}

}  // namespace

ModelFiles build_shapes(uint64_t seed) {
  ModelFiles files{new_model("shapes", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  GraphWriter& graph = files.model.graph();
  Seeds seeds(seed);
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", "seq", kFeatures}));
  graph.initializer(i64_tensor("zero", {}, {0}));
  graph.initializer(i64_tensor("one", {}, {1}));
  graph.initializer(i64_tensor("axis0", {1}, {0}));
  add_reshapes(graph);
  add_positions(graph, seeds);
  add_half(graph);
  add_positive(graph);
  graph.node("Range", {"zero", "row_count", "one"}, {"row_ids"}).named("row_ids/Range");
  graph.output("half", Type::tensor(ElementType::kFloat, {"batch", "half_seq", kFeatures}));
  graph.output("rows", Type::tensor(ElementType::kFloat, {"rows", kFeatures}));
  graph.output("heads",
               Type::tensor(ElementType::kFloat, {"batch", kHeads, "seq", kFeatures / kHeads}));
  graph.output("positive", Type::tensor(ElementType::kFloat, {"positive_count"}));
  graph.output("row_ids", Type::tensor(ElementType::kInt64, {"rows"}));
  return files;
}

}  // namespace model_writer
