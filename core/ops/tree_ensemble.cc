// TreeEnsembleClassifier, TreeEnsembleRegressor, TreeEnsemble.
//
// Source: ONNX operator spec, ai.onnx.ml: TreeEnsembleClassifier and TreeEnsembleRegressor 1, 3
//         (numbers as tensors), TreeEnsemble 5.
// Shapes: x [n, features] -> labels [n] and scores [n, classes], or y [n, targets].
// Math:   each tree gives the weights of the leaf that a row ends in; they are summed (or averaged,
//         or their extreme taken) by target, base_values are added, post_transform applied. The
//         label is the class of the highest score. Two classes whose leaves count for one class
//         only have one score, which says the label; of the first class the scores follow from it
//         too (op_ml.h), as ONNX Runtime has it.
// Types:  x float, double, float16, int32, int64; scores and y float; computed in double.
//         TreeEnsemble: x and y float, double, float16; computed in double.
// Errors: kInvalidGraph for trees that are none; kInvalidArgument when x has too few columns.
#include <algorithm>
#include <bit>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_ml.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"
#include "core/ops/op_tree_walk.h"

namespace folio {
namespace {

enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

constexpr int64_t kMaxTargets = 1 << 24;

// The scores of one row, or of the rows of a block.
struct Scores {
  double* sums = nullptr;
  uint8_t* seen = nullptr;  // whether any leaf counted for the target
};

struct TreeModel {
  Forest forest;
  TreeWalk walk;
  bool has_walk = false;
  int64_t trees = 0;
  int64_t targets = 1;
  Aggregate aggregate = Aggregate::kSum;
  PostTransform transform = PostTransform::kRaw;
  std::vector<double> base;

  // `x`: the type of the rows, or kUndefined.
  Status prepare(DType x) {
    FOLIO_RETURN_IF_ERROR(forest.check(targets));
    trees = static_cast<int64_t>(forest.roots.size());
    has_walk = walk.make(forest, is_sum() ? targets : 0);
    if (!has_walk) walk = TreeWalk();
    if (has_walk && x == DType::kFloat) {  // which never asks for the nodes as they stood
      std::vector<TreeNode>().swap(forest.nodes);
      if (walk.gives() != TreeWalk::Gives::kNode) std::vector<LeafWeight>().swap(forest.weights);
    }
    return Status::ok();
  }

  Result<MlRows> rows_of(const Tensor& x) const {
    FOLIO_TRY(const MlRows rows, ml_rows(x));
    if (rows.rows > 0 && rows.columns < forest.features) {
      return invalid_argument("X ", x.shape().to_string(), " has ", rows.columns,
                              " features, the trees ask for ", forest.features);
    }
    return rows;
  }

  // Calls body(row, scores) for each row of input 0, over threads.
  template <typename Body>
  Status for_rows(OpRun& run, const MlRows& rows, Body&& body) const {
    const DType dtype = run.value(0).tensor().dtype();
    const bool walks = has_walk && dtype == DType::kFloat;
    if (!walks && forest.nodes.empty()) return wrong_type(0, dtype);
    const float* floats = walks ? run.value(0).tensor().data<float>() : nullptr;
    const double* doubles = nullptr;
    if (!walks) {
      FOLIO_TRY(doubles, ml_doubles(run, 0));
    }
    // Trees serve a block of rows each, while they are near; the blocks' scores stay near too.
    const int64_t most = std::clamp<int64_t>(kBlockScores / targets, 1, kBlockRows);
    const int64_t block_rows = walks ? std::clamp<int64_t>(rows.rows, 1, most) : 1;
    const auto scores = static_cast<size_t>(block_rows * targets);
    const size_t keys = walks ? key_bytes(block_rows) : 0;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, keys + scores * (sizeof(double) + 1), &scratch));
    const int64_t grain = std::max<int64_t>(block_rows, kElementGrain / (trees * 16 + targets));
    run.parallel().for_range(rows.rows, grain, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block memory(scratch);
      auto* lanes = reinterpret_cast<TreeWalk::Lanes*>(memory.data());
      const Scores out{reinterpret_cast<double*>(memory.data() + keys),
                       memory.data() + keys + scores * sizeof(double)};
      for (int64_t row = begin; row < end; row += block_rows) {
        const int64_t count = std::min(block_rows, end - row);
        std::fill_n(out.sums, count * targets, 0.0);
        std::fill_n(out.seen, count * targets, uint8_t{0});
        if (walks) {
          score_block(floats + row * rows.columns, count, rows.columns, lanes, out);
        } else {
          score_slowly(doubles + row * rows.columns, out);
        }
        for (int64_t i = 0; i < count; ++i) {
          const Scores one{out.sums + i * targets, out.seen + i * targets};
          finish(one);
          body(row + i, one);
        }
      }
    });
    return Status::ok();
  }

 private:
  static constexpr int64_t kBlockScores = 4096;
  static constexpr int64_t kBlockRows = 64;
  static constexpr int64_t kLanes = TreeWalk::kLanes;

  bool is_sum() const { return aggregate < Aggregate::kMin; }

  size_t key_bytes(int64_t rows) const {
    return static_cast<size_t>((rows + kLanes - 1) / kLanes * walk.columns()) *
           sizeof(TreeWalk::Lanes);
  }

  void count(int32_t target, double weight, const Scores& out) const {
    double& sum = out.sums[target];
    if (!out.seen[target] || is_sum()) {
      sum += weight;
    } else {
      sum = aggregate == Aggregate::kMin ? std::min(sum, weight) : std::max(sum, weight);
    }
    out.seen[target] = 1;
  }

  void count_leaf(int32_t first, int32_t last, const Scores& out) const {
    for (int32_t i = first; i < last; ++i) {
      const LeafWeight& w = forest.weights[static_cast<size_t>(i)];
      count(w.target, w.weight, out);
    }
  }

  void score_slowly(const double* x, const Scores& out) const {
    for (const int32_t root : forest.roots) {
      const TreeNode& leaf = forest.leaf_of(root, x);
      count_leaf(leaf.first, leaf.last, out);
    }
  }

  // Rows eight at a time, tree by tree; each row's leaves count in the order of the trees.
  void score_block(const float* x, int64_t count, int64_t columns, TreeWalk::Lanes* keys,
                   const Scores& out) const {
    for (int64_t row = 0; row < count; row += kLanes) {
      const int64_t rows = std::min(kLanes, count - row);
      walk.keys_of(x + row * columns, columns, rows, keys_at(keys, row));
    }
    switch (walk.gives()) {
      case TreeWalk::Gives::kWeight:
        if (is_sum()) {
          walk_block(count, keys, [&](int64_t row, int64_t tree, int32_t bits) {
            const int64_t at = row * targets + walk.target_of(tree);
            out.sums[at] += std::bit_cast<float>(bits);
            out.seen[at] = 1;
          });
        } else {
          walk_block(count, keys, [&](int64_t row, int64_t tree, int32_t bits) {
            this->count(walk.target_of(tree), std::bit_cast<float>(bits), of_row(out, row));
          });
        }
        break;
      case TreeWalk::Gives::kRow:
        std::fill_n(out.seen, count * targets, uint8_t{1});
        walk_block(count, keys, [&](int64_t row, int64_t, int32_t index) {
          const double* weights = walk.row(index);
          double* sums = out.sums + row * targets;
          for (int64_t t = 0; t < targets; ++t) sums[t] += weights[t];
        });
        break;
      case TreeWalk::Gives::kNode:
        walk_block(count, keys, [&](int64_t row, int64_t, int32_t index) {
          const TreeWalk::Leaf& leaf = walk.leaf(index);
          count_leaf(leaf.first, leaf.last, of_row(out, row));
        });
    }
  }

  Scores of_row(const Scores& block, int64_t row) const {
    return {block.sums + row * targets, block.seen + row * targets};
  }

  TreeWalk::Lanes* keys_at(TreeWalk::Lanes* keys, int64_t row) const {
    return keys + row / kLanes * walk.columns();
  }

  // Calls add(row, tree, what the row's leaf gives): eight rows and a tree, or of rows that are
  // fewer one and eight trees.
  template <typename Add>
  void walk_block(int64_t count, TreeWalk::Lanes* keys, Add&& add) const {
    const int64_t whole = count / kLanes * kLanes;
    int32_t leaf[kLanes];
    for (int64_t tree = 0; whole > 0 && tree < trees; ++tree) {
      for (int64_t row = 0; row < whole; row += kLanes) {
        walk.walk(tree, keys_at(keys, row), leaf);
        for (int64_t lane = 0; lane < kLanes; ++lane) add(row + lane, tree, leaf[lane]);
      }
    }
    for (int64_t row = whole; row < count; ++row) {
      for (int64_t tree = 0; tree < trees; tree += kLanes) {
        walk.walk_row(tree, keys_at(keys, row), static_cast<int>(row % kLanes), leaf);
        const int64_t lanes = std::min(kLanes, trees - tree);
        for (int64_t lane = 0; lane < lanes; ++lane) add(row, tree + lane, leaf[lane]);
      }
    }
  }

  void finish(const Scores& out) const {
    if (aggregate != Aggregate::kAverage) return;
    for (int64_t t = 0; t < targets; ++t) out.sums[t] /= static_cast<double>(trees);
  }
};

// ---------------------------------------------------------------- classifier

class Classifier final : public OpKernel {
 public:
  TreeModel model;
  ClassLabels labels;
  bool one_score = false;  // two classes, leaves count for one
  int64_t scored = 0;      // that one
  BinaryScore kind = BinaryScore::kMargin;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, model.rows_of(*x));
    Tensor* y = nullptr;
    Tensor* z = nullptr;
    if (run.has_output(0)) {
      FOLIO_TRY(y, run.output(0, labels.dtype(), Shape{rows.rows}));
    }
    if (run.has_output(1)) {
      FOLIO_TRY(z, run.output(1, DType::kFloat, Shape{rows.rows, model.targets}));
    }
    return model.for_rows(run, rows, [&](int64_t row, const Scores& scores) {
      double* sums = scores.sums;
      if (model.targets == 1) {
        const double value = sums[0] + (model.base.empty() ? 0 : model.base[0]);
        if (y) labels.write_sign(value > 0, row, y);
        sums[0] = value;
        apply_post_transform(model.transform, 1, sums);
      } else if (one_score && scored == 1) {
        add_base(sums);
        if (y) labels.write(second_wins(kind, sums[1]) ? 1 : 0, row, y);
        apply_post_transform(model.transform, 2, sums);
      } else if (one_score) {
        const bool wins = expand_binary(model.transform, kind, sums[0] + base(), sums);
        if (y) labels.write(wins ? 1 : 0, row, y);
      } else {
        const int64_t best = best_class(scores);
        if (y) labels.write(best, row, y);
        apply_post_transform(model.transform, model.targets, sums);
      }
      float* out = z ? z->data_mut<float>() + row * model.targets : nullptr;
      for (int64_t t = 0; out && t < model.targets; ++t) out[t] = static_cast<float>(sums[t]);
    });
  }

 private:
  void add_base(double* sums) const {
    for (size_t t = 0; t < model.base.size(); ++t) sums[t] += model.base[t];
  }

  double base() const { return model.base.empty() ? 0 : model.base.back(); }

  int64_t best_class(const Scores& scores) const {
    add_base(scores.sums);
    int64_t best = -1;
    for (int64_t t = 0; t < model.targets; ++t) {
      const bool seen = scores.seen[t] != 0 || static_cast<size_t>(t) < model.base.size();
      if (seen && (best < 0 || scores.sums[t] > scores.sums[best])) best = t;
    }
    return std::max<int64_t>(best, 0);
  }
};

Result<std::unique_ptr<OpKernel>> make_classifier(OpBuild& build) {
  auto kernel = std::make_unique<Classifier>();
  const Attributes& attrs = build.attrs();
  TreeModel& model = kernel->model;
  FOLIO_TRY(kernel->labels, ClassLabels::parse(attrs, "classlabels_int64s", "classlabels_strings"));
  FOLIO_TRY(model.forest, make_forest(attrs, "class"));
  FOLIO_TRY(model.transform, parse_post_transform(attrs));
  FOLIO_TRY(model.base, forest_numbers(attrs, "base_values"));
  model.targets = kernel->labels.count();
  if (static_cast<int64_t>(model.base.size()) > model.targets) {
    return invalid_graph("attribute 'base_values' has ", model.base.size(), " entries for ",
                         model.targets, " classes");
  }
  const std::vector<LeafWeight>& weights = model.forest.weights;
  if (model.targets == 2 && !weights.empty()) {
    kernel->scored = weights.front().target;
    kernel->one_score = std::all_of(weights.begin(), weights.end(), [&](const LeafWeight& w) {
      return w.target == kernel->scored;
    });
    const bool positive = std::all_of(weights.begin(), weights.end(),
                                      [](const LeafWeight& w) { return w.weight >= 0; });
    kernel->kind = positive ? BinaryScore::kProbability : BinaryScore::kMargin;
  }
  FOLIO_RETURN_IF_ERROR(model.prepare(build.input(0).dtype));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_classes(OpInfer& infer) {
  FOLIO_TRY(const ClassLabels labels,
            ClassLabels::parse(infer.attrs(), "classlabels_int64s", "classlabels_strings"));
  return infer_classifier(infer, "classlabels_strings", Dim::of(labels.count()));
}

// ---------------------------------------------------------------- regressor

template <typename T>
void write_targets(const double* sums, int64_t n, T* out) {
  for (int64_t t = 0; t < n; ++t) out[t] = static_cast<T>(static_cast<Compute<T>>(sums[t]));
}

class Regressor final : public OpKernel {
 public:
  TreeModel model;
  bool like_input = false;  // the output's type is x's, not float

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, model.rows_of(*x));
    const DType dtype = like_input ? x->dtype() : DType::kFloat;
    if (!contains(FloatTypes{}, dtype)) return wrong_type(0, dtype);
    FOLIO_TRY(Tensor * y, run.output(0, dtype, Shape{rows.rows, model.targets}));
    const bool has_base = static_cast<int64_t>(model.base.size()) == model.targets;
    return model.for_rows(run, rows, [&](int64_t row, const Scores& scores) {
      for (int64_t t = 0; has_base && t < model.targets; ++t) {
        scores.sums[t] += model.base[static_cast<size_t>(t)];
      }
      apply_post_transform(model.transform, model.targets, scores.sums);
      dispatch(FloatTypes{}, dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        write_targets(scores.sums, model.targets, y->data_mut<T>() + row * model.targets);
      });
    });
  }
};

Result<int64_t> target_count(const Attributes& attrs) {
  FOLIO_TRY(const int64_t targets, attrs.get_int("n_targets", 1));
  if (targets < 1 || targets > kMaxTargets) {
    return invalid_graph("attribute 'n_targets' is ", targets, ", expected 1 to ", kMaxTargets);
  }
  return targets;
}

Result<std::unique_ptr<OpKernel>> make_regressor(OpBuild& build) {
  auto kernel = std::make_unique<Regressor>();
  const Attributes& attrs = build.attrs();
  TreeModel& model = kernel->model;
  FOLIO_TRY(model.targets, target_count(attrs));
  FOLIO_TRY(model.forest, make_forest(attrs, "target"));
  FOLIO_TRY(model.transform, parse_post_transform(attrs));
  FOLIO_TRY(model.base, forest_numbers(attrs, "base_values"));
  FOLIO_TRY(const std::string name, attrs.get_string("aggregate_function", "SUM"));
  const std::string_view names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const auto* found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names))
    return invalid_graph("attribute 'aggregate_function' is '", name, "'");
  model.aggregate = static_cast<Aggregate>(found - std::begin(names));
  FOLIO_RETURN_IF_ERROR(model.prepare(build.input(0).dtype));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

// ---------------------------------------------------------------- TreeEnsemble, version 5

struct ListsV5 {
  Span<const int64_t> features, when_true, when_false, true_leaf, false_leaf, missing, roots;
  Span<const int64_t> leaf_targets;
  std::vector<double> splits, members, leaf_weights;
  Tensor modes;
};

Result<ListsV5> lists_v5(const Attributes& attrs) {
  ListsV5 lists;
  FOLIO_TRY(lists.features, attrs.view_ints("nodes_featureids"));
  FOLIO_TRY(lists.when_true, attrs.view_ints("nodes_truenodeids"));
  FOLIO_TRY(lists.when_false, attrs.view_ints("nodes_falsenodeids"));
  FOLIO_TRY(lists.true_leaf, attrs.view_ints("nodes_trueleafs"));
  FOLIO_TRY(lists.false_leaf, attrs.view_ints("nodes_falseleafs"));
  FOLIO_TRY(lists.missing, attrs.view_ints("nodes_missing_value_tracks_true"));
  FOLIO_TRY(lists.roots, attrs.view_ints("tree_roots"));
  FOLIO_TRY(lists.leaf_targets, attrs.view_ints("leaf_targetids"));
  FOLIO_TRY(lists.splits, tensor_numbers(attrs, "nodes_splits"));
  FOLIO_TRY(lists.members, tensor_numbers(attrs, "membership_values"));
  FOLIO_TRY(lists.leaf_weights, tensor_numbers(attrs, "leaf_weights"));
  FOLIO_TRY(lists.modes, attrs.get_tensor("nodes_modes"));
  const size_t count = lists.features.size();
  const bool agree =
      count > 0 && lists.when_true.size() == count && lists.when_false.size() == count &&
      lists.true_leaf.size() == count && lists.false_leaf.size() == count &&
      lists.splits.size() == count && (lists.missing.empty() || lists.missing.size() == count) &&
      lists.modes.dtype() == DType::kUint8 && lists.modes.count() == static_cast<int64_t>(count) &&
      lists.leaf_targets.size() == lists.leaf_weights.size();
  if (!agree || count + lists.leaf_targets.size() > size_t{1} << 30) {
    return invalid_graph("the attributes nodes_* or leaf_* are empty or differ in length");
  }
  return lists;
}

// Index of a child: leaves stand behind the `count` inner nodes.
Result<int32_t> child_v5(const ListsV5& lists, bool is_leaf, int64_t id) {
  const size_t limit = is_leaf ? lists.leaf_targets.size() : lists.features.size();
  if (id < 0 || static_cast<uint64_t>(id) >= limit) {
    return invalid_graph("a node has child ", id, " of ", limit);
  }
  return static_cast<int32_t>(id) + (is_leaf ? static_cast<int32_t>(lists.features.size()) : 0);
}

Result<Forest> make_forest_v5(const Attributes& attrs) {
  FOLIO_TRY(const ListsV5 lists, lists_v5(attrs));
  Forest forest;
  forest.members = lists.members;
  size_t member = 0;
  for (size_t i = 0; i < lists.features.size(); ++i) {
    TreeNode node;
    if (lists.modes.raw()[i] > static_cast<uint8_t>(NodeMode::kMember)) {
      return invalid_graph("attribute 'nodes_modes' holds ", lists.modes.raw()[i]);
    }
    node.mode = static_cast<NodeMode>(lists.modes.raw()[i]);
    if (lists.features[i] < 0 || lists.features[i] >= (int64_t{1} << 31) - 1) {
      return invalid_graph("attribute 'nodes_featureids' holds ", lists.features[i]);
    }
    node.feature = static_cast<int32_t>(lists.features[i]);
    node.value = lists.splits[i];
    node.missing_is_true = !lists.missing.empty() && lists.missing[i] != 0;
    FOLIO_TRY(node.when_true, child_v5(lists, lists.true_leaf[i] != 0, lists.when_true[i]));
    FOLIO_TRY(node.when_false, child_v5(lists, lists.false_leaf[i] != 0, lists.when_false[i]));
    if (node.mode == NodeMode::kMember) {
      // Sets stand one after the other, each ended by NaN.
      node.first = static_cast<int32_t>(member);
      while (member < lists.members.size() && lists.members[member] == lists.members[member]) {
        ++member;
      }
      node.last = static_cast<int32_t>(member);
      member = std::min(member + 1, lists.members.size());
    }
    forest.nodes.push_back(node);
  }
  for (size_t i = 0; i < lists.leaf_targets.size(); ++i) {
    if (lists.leaf_targets[i] < 0 || lists.leaf_targets[i] > kMaxTargets) {
      return invalid_graph("attribute 'leaf_targetids' holds ", lists.leaf_targets[i]);
    }
    TreeNode leaf;
    leaf.first = static_cast<int32_t>(i);
    leaf.last = leaf.first + 1;
    forest.nodes.push_back(leaf);
    forest.weights.push_back({static_cast<int32_t>(lists.leaf_targets[i]), lists.leaf_weights[i]});
  }
  for (const int64_t root : lists.roots) {
    FOLIO_TRY(const int32_t index, child_v5(lists, false, root));
    forest.roots.push_back(index);
  }
  return forest;
}

Result<std::unique_ptr<OpKernel>> make_v5(OpBuild& build) {
  auto kernel = std::make_unique<Regressor>();
  kernel->like_input = true;
  TreeModel& model = kernel->model;
  FOLIO_TRY(model.targets, target_count(build.attrs()));
  FOLIO_TRY(model.forest, make_forest_v5(build.attrs()));
  FOLIO_TRY(const int64_t aggregate, build.attrs().get_int("aggregate_function", 1));
  FOLIO_TRY(const int64_t transform, build.attrs().get_int("post_transform", 0));
  constexpr PostTransform kTransforms[] = {PostTransform::kRaw, PostTransform::kSoftmax,
                                           PostTransform::kLogistic, PostTransform::kSoftmaxZero,
                                           PostTransform::kProbit};
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > 4) {
    return invalid_graph("attribute 'aggregate_function' is ", aggregate, ", 'post_transform' ",
                         transform);
  }
  model.aggregate = static_cast<Aggregate>(aggregate);
  model.transform = kTransforms[transform];
  FOLIO_RETURN_IF_ERROR(model.prepare(build.input(0).dtype));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_targets(OpInfer& infer) {
  FOLIO_TRY(const int64_t targets, target_count(infer.attrs()));
  FOLIO_RETURN_IF_ERROR(infer_ml_rows(infer, Dim::of(targets)));
  if (infer.node().op_type != "TreeEnsemble") return Status::ok();
  const Dims* x = infer.dims_of(0);
  const Dim rows = x && x->size() >= 2 ? (*x)[0] : Dim::unknown();
  infer.set_tensor(0, infer.dtype(0), Dims{rows, Dim::of(targets)});
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_tree_ensemble(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "TreeEnsembleClassifier";
  def.max_outputs = 2;
  def.infer = infer_classes;
  def.make = make_classifier;
  registry.add(def);
  def.type = "TreeEnsembleRegressor";
  def.max_outputs = 1;
  def.infer = infer_targets;
  def.make = make_regressor;
  registry.add(def);
  def.type = "TreeEnsemble";
  def.since = 5;
  def.make = make_v5;
  registry.add(def);
}

}  // namespace folio
