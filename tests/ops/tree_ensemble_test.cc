#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// One branch: column 1 <= 1.5 goes to leaf 1, else to leaf 2.
void stump(OpTester* t, std::vector<int64_t> when_true = {1, 0, 0}) {
  t->attr_ints("nodes_treeids", {7, 7, 7}).attr_ints("nodes_nodeids", {0, 1, 2});
  t->attr_ints("nodes_featureids", {1, 0, 0}).attr_floats("nodes_values", {1.5F, 0, 0});
  t->attr_strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"});
  t->attr_ints("nodes_truenodeids", std::move(when_true));
  t->attr_ints("nodes_falsenodeids", {2, 0, 0});
}

OpTester classifier(std::vector<int64_t> ids, std::vector<float> weights) {
  OpTester t("TreeEnsembleClassifier", 1, "ai.onnx.ml");
  stump(&t);
  t.attr_ints("class_treeids", {7, 7}).attr_ints("class_nodeids", {1, 2});
  t.attr_ints("class_ids", std::move(ids)).attr_floats("class_weights", std::move(weights));
  return t;
}

TEST(TreeEnsembleClassifier, GivesTheClassOfTheHighestScore) {
  OpTester t = classifier({0, 2}, {0.5F, 2});
  t.attr_ints("classlabels_int64s", {10, 20, 30});
  t.input<float>({2, 2}, {0, 1, 0, 2});
  t.expect<int64_t>(0, {2}, {10, 30});
  t.expect<float>(1, {2, 3}, {0.5F, 0, 0, 0, 0, 2});
  t.run();
}

TEST(TreeEnsembleClassifier, OneScoreOfTwoClassesIsAProbability) {
  OpTester t = classifier({0, 0}, {0.25F, 0.75F});
  t.attr_strings("classlabels_strings", {"no", "yes"});
  t.input<int64_t>({2, 2}, {0, 1, 0, 2});
  t.expect<std::string>(0, {2}, {"no", "yes"});
  t.expect<float>(1, {2, 2}, {0.75F, 0.25F, 0.25F, 0.75F});
  t.run();
}

TEST(TreeEnsembleClassifier, SignedScoresOfTwoClassesAreMargins) {
  OpTester t = classifier({0, 0}, {-1, 1});
  t.attr_ints("classlabels_int64s", {0, 1}).attr("post_transform", "LOGISTIC");
  t.input<double>({2, 2}, {0, 1, 0, 2});
  t.expect<int64_t>(0, {2}, {0, 1});
  t.expect<float>(1, {2, 2}, {0.731058F, 0.268941F, 0.268941F, 0.731058F}, 1e-5);
  t.run();
}

// As ONNX Runtime gives them: the class of the label has the higher one.
TEST(TreeEnsembleClassifier, MarginsStandAtTheirClasses) {
  for (const char* transform : {"NONE", "SOFTMAX", "SOFTMAX_ZERO"}) {
    OpTester t = classifier({0, 0}, {-1.5F, 0.5F});
    t.attr_ints("classlabels_int64s", {7, 9}).attr("post_transform", transform);
    t.input<float>({2, 2}, {0, 1, 0, 2});
    t.expect<int64_t>(0, {2}, {7, 9});
    t.expect<float>(1, {2, 2}, {1.5F, -1.5F, -0.5F, 0.5F});
    t.run();
  }
}

// No leaf counts for the first class: its sum is 0, and both are transformed as they are.
TEST(TreeEnsembleClassifier, ScoresOfTheSecondClassAloneStayThere) {
  struct Case {
    const char* transform;
    std::vector<float> weights, scores;
    std::vector<int64_t> labels;
  };
  const Case cases[] = {
      {"NONE", {-1.5F, 0.5F}, {0, -1.5F, 0, 0.5F}, {7, 9}},
      {"NONE", {0.2F, 0.9F}, {0, 0.2F, 0, 0.9F}, {7, 9}},
      {"LOGISTIC", {-1, 1}, {0.5F, 0.268941F, 0.5F, 0.731058F}, {7, 9}},
      {"SOFTMAX", {-1, 2}, {0.731058F, 0.268941F, 0.119203F, 0.880797F}, {7, 9}},
      {"SOFTMAX_ZERO", {-1, 2}, {0, 1, 0, 1}, {7, 9}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(cat(c.transform, " ", c.weights[0], " ", c.weights[1]));
    OpTester t = classifier({1, 1}, c.weights);
    t.attr_ints("classlabels_int64s", {7, 9}).attr("post_transform", c.transform);
    t.input<float>({2, 2}, {0, 1, 0, 2});
    t.expect<int64_t>(0, {2}, c.labels).expect<float>(1, {2, 2}, c.scores, 1e-5).run();
  }
  OpTester based = classifier({1, 1}, {-1.5F, 0.5F});
  based.attr_ints("classlabels_int64s", {7, 9}).attr_floats("base_values", {0.25F, 1});
  based.input<float>({2, 2}, {0, 1, 0, 2}).expect<int64_t>(0, {2}, {7, 9});
  based.expect<float>(1, {2, 2}, {0.25F, -0.5F, 0.25F, 1.5F}).run();
}

TEST(TreeEnsembleClassifier, AProbabilityIsTransformedToo) {
  OpTester t = classifier({0, 0}, {0.2F, 0.7F});
  t.attr_ints("classlabels_int64s", {7, 9}).attr("post_transform", "LOGISTIC");
  t.input<float>({2, 2}, {0, 1, 0, 2});
  t.expect<int64_t>(0, {2}, {7, 9});
  t.expect<float>(1, {2, 2}, {0.450166F, 0.549834F, 0.331812F, 0.668188F}, 1e-5);
  t.run();
}

TEST(TreeEnsembleClassifier, TheOnlyClassOfStringsIsTheLabelOfEveryRow) {
  OpTester t = classifier({0, 0}, {-1.5F, 0.5F});
  t.attr_strings("classlabels_strings", {"yes"}).input<float>({2, 2}, {0, 1, 0, 2});
  t.expect<std::string>(0, {2}, {"yes", "yes"}).expect<float>(1, {2, 1}, {-1.5F, 0.5F}).run();
}

TEST(TreeEnsembleClassifier, CyclesAreRefusedAtLoad) {
  OpTester t("TreeEnsembleClassifier", 1, "ai.onnx.ml");
  t.attr_ints("nodes_treeids", {0, 0, 0}).attr_ints("nodes_nodeids", {0, 1, 2});
  t.attr_ints("nodes_featureids", {0, 0, 0}).attr_floats("nodes_values", {0, 0, 0});
  t.attr_strings("nodes_modes", {"BRANCH_LEQ", "BRANCH_LEQ", "LEAF"});
  t.attr_ints("nodes_truenodeids", {1, 1, 0}).attr_ints("nodes_falsenodeids", {2, 2, 0});
  t.attr_ints("classlabels_int64s", {0, 1});
  t.input<float>({1, 1}, {0});
  t.outputs(2).fails("form a cycle");
}

TEST(TreeEnsembleClassifier, ChildrenThatDoNotExistAreRefused) {
  OpTester t("TreeEnsembleClassifier", 1, "ai.onnx.ml");
  stump(&t, {9, 0, 0});
  t.attr_ints("classlabels_int64s", {0, 1});
  t.input<float>({1, 2}, {0, 0});
  t.outputs(2).fails("child 9, which does not exist");
}

TEST(TreeEnsembleClassifier, ClassesOutsideTheLabelsAreRefused) {
  OpTester t = classifier({0, 5}, {1, 1});
  t.attr_ints("classlabels_int64s", {0, 1});
  t.input<float>({1, 2}, {0, 0});
  t.outputs(2).fails("target 5 of 2");
}

TEST(TreeEnsembleRegressor, AveragesTreesAndAddsBase) {
  OpTester t("TreeEnsembleRegressor", 1, "ai.onnx.ml");
  stump(&t);
  t.attr_ints("target_treeids", {7, 7}).attr_ints("target_nodeids", {1, 2});
  t.attr_ints("target_ids", {0, 0}).attr_floats("target_weights", {3, 5});
  t.attr("aggregate_function", "AVERAGE").attr_floats("base_values", {100});
  t.input<float>({2, 2}, {0, 1, 0, NAN});
  t.expect<float>(0, {2, 1}, {103, 105});
  t.run();
}

// A forest of random trees whose thresholds are numbers that rows have, or next to them.
class RandomForest {
 public:
  enum class Leaves { kSome, kFirst, kOfTree, kAll };  // the targets that they count for
  enum Modes : uint32_t { kOrder = 4, kEquality = 6, kSets = 7 };

  RandomForest(uint32_t seed, Modes modes, Leaves leaves)
      : random_(seed), modes_drawn_(modes), leaves_(leaves) {
    for (int64_t tree = 0; tree < kTrees; ++tree) grow(tree, 0);
  }

  OpTester tester(const char* aggregate) const {
    OpTester t("TreeEnsembleRegressor", 3, "ai.onnx.ml");
    t.attr_ints("nodes_treeids", trees_).attr_ints("nodes_nodeids", ids_);
    t.attr_ints("nodes_featureids", features_).attr_strings("nodes_modes", modes_);
    t.attr("nodes_values_as_tensor",
           make_tensor<double>({static_cast<int64_t>(values_.size())}, values_));
    t.attr_ints("nodes_truenodeids", yes_).attr_ints("nodes_falsenodeids", no_);
    t.attr_ints("nodes_missing_value_tracks_true", missing_);
    t.attr_ints("target_treeids", leaf_trees_).attr_ints("target_nodeids", leaf_ids_);
    t.attr_ints("target_ids", targets_).attr_floats("target_weights", weights_);
    t.attr("n_targets", 2).attr("aggregate_function", aggregate);
    return t;
  }

  // Each leaf has one weight.
  OpTester tester_v5(int64_t aggregate) const {
    std::vector<int64_t> index, features, roots, yes, no, yes_leaf, no_leaf, missing;
    std::vector<uint8_t> modes;
    std::vector<double> splits, members, weights(weights_.begin(), weights_.end());
    int64_t counts[2] = {0, 0};  // of inner nodes, of leaves
    for (const std::string& mode : modes_) index.push_back(counts[mode == "LEAF"]++);
    for (size_t i = 0, root = 0; i < modes_.size(); ++i) {
      if (ids_[i] == 0) roots.push_back(index[root = i]);
      if (modes_[i] == "LEAF") continue;
      const auto yes_at = root + static_cast<size_t>(yes_[i]);
      const auto no_at = root + static_cast<size_t>(no_[i]);
      yes.push_back(index[yes_at]);
      no.push_back(index[no_at]);
      yes_leaf.push_back(modes_[yes_at] == "LEAF");
      no_leaf.push_back(modes_[no_at] == "LEAF");
      features.push_back(features_[i]);
      missing.push_back(missing_[i]);
      splits.push_back(values_[i]);
      modes.push_back(static_cast<uint8_t>(std::find(kModes, kModes + 7, modes_[i]) - kModes));
      if (modes.back() == 6) members.insert(members.end(), {values_[i], 1.0 / 3.0F, 1, NAN});
    }
    const auto count = static_cast<int64_t>(modes.size());
    OpTester t("TreeEnsemble", 5, "ai.onnx.ml");
    t.attr("n_targets", 2).attr("aggregate_function", aggregate).attr_ints("tree_roots", roots);
    t.attr_ints("nodes_featureids", features).attr_ints("nodes_truenodeids", yes);
    t.attr_ints("nodes_falsenodeids", no).attr_ints("nodes_trueleafs", yes_leaf);
    t.attr_ints("nodes_falseleafs", no_leaf);
    t.attr_ints("nodes_missing_value_tracks_true", missing);
    t.attr("nodes_modes", make_tensor<uint8_t>({count}, modes));
    t.attr("nodes_splits", make_tensor<double>({count}, splits));
    const auto set_numbers = static_cast<int64_t>(members.size());
    t.attr("membership_values", make_tensor<double>({set_numbers}, members));
    t.attr_ints("leaf_targetids", targets_);
    t.attr("leaf_weights", make_tensor<double>({counts[1]}, weights));
    return t;
  }

  float number() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const int64_t drawn = below(40);
    if (drawn == 3) return -0.0F;
    if (drawn == 0) return kInfinity;
    if (drawn == 1) return -kInfinity;
    if (drawn == 2) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(below(9) - 4) / 3;
  }

  static constexpr int64_t kColumns = 5;

 private:
  static constexpr int64_t kTrees = 19;
  static constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                           "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};

  int64_t below(uint32_t n) { return random_() % n; }

  int64_t grow(int64_t tree, int depth) {
    const bool is_same_tree = !trees_.empty() && trees_.back() == tree;
    const int64_t id = last_ = is_same_tree ? last_ + 1 : 0;
    const size_t at = trees_.size();
    const bool is_leaf = depth == 7 || (depth > 0 && below(5) == 0);
    trees_.push_back(tree);
    ids_.push_back(id);
    features_.push_back(below(kColumns));
    modes_.emplace_back(is_leaf ? "LEAF" : kModes[below(modes_drawn_)]);
    const double near = below(3) == 0 ? 1e-12 : 0;
    constexpr double kRare[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 1e-300};
    const auto drawn = static_cast<size_t>(below(60));
    values_.push_back(drawn < std::size(kRare) ? kRare[drawn]
                                               : static_cast<float>(below(9) - 4) / 3.0F +
                                                     near * (below(2) == 0 ? -1 : 1));
    missing_.push_back(below(2));
    yes_.push_back(0);
    no_.push_back(0);
    if (is_leaf) {
      const bool is_one = leaves_ == Leaves::kFirst || leaves_ == Leaves::kOfTree;
      const int64_t from = leaves_ == Leaves::kSome     ? below(2)
                           : leaves_ == Leaves::kOfTree ? tree % 2
                                                        : 0;
      for (int64_t target = from; target < (is_one ? from + 1 : 2); ++target) {
        leaf_trees_.push_back(tree);
        leaf_ids_.push_back(id);
        targets_.push_back(target);
        weights_.push_back(static_cast<float>(below(100)) / 7);
      }
      return id;
    }
    const int64_t yes = grow(tree, depth + 1);
    const int64_t no = grow(tree, depth + 1);
    yes_[at] = yes;
    no_[at] = no;
    return id;
  }

  std::mt19937 random_;
  uint32_t modes_drawn_;
  Leaves leaves_;
  int64_t last_ = 0;
  std::vector<int64_t> trees_, ids_, features_, yes_, no_, missing_;
  std::vector<std::string> modes_;
  std::vector<double> values_;
  std::vector<int64_t> leaf_trees_, leaf_ids_, targets_;
  std::vector<float> weights_;
};

// Float rows go down eight at a time, rows of doubles node by node.
// Wide: the type of the latter's results.
template <typename Wide>
void expect_same_bits(OpTester narrow, OpTester wide, RandomForest forest, int64_t rows) {
  std::vector<float> x;
  for (int64_t i = 0; i < rows * RandomForest::kColumns; ++i) x.push_back(forest.number());
  const Shape shape{rows, RandomForest::kColumns};
  wide.input<double>(shape, std::vector<double>(x.begin(), x.end()));
  wide.outputs(1);
  ASSERT_EQ(wide.survives(), 4);
  narrow.input<float>(shape, x);
  std::vector<float> expected;
  for (const Wide y : wide.output_values<Wide>(0)) expected.push_back(static_cast<float>(y));
  narrow.expect<float>(0, {rows, 2}, expected);
  narrow.run();
}

constexpr int64_t kRowCounts[] = {1, 2, 7, 8, 9, 63, 64, 65, 150};

TEST(TreeEnsembleRegressor, RowsOfFloatsGiveTheBitsOfTheSameRowsOfDoubles) {
  using Leaves = RandomForest::Leaves;
  for (const auto modes : {RandomForest::kOrder, RandomForest::kEquality}) {
    for (const Leaves leaves : {Leaves::kSome, Leaves::kFirst, Leaves::kOfTree, Leaves::kAll}) {
      for (const char* aggregate : {"SUM", "AVERAGE", "MIN", "MAX"}) {
        for (const int64_t rows : kRowCounts) {
          const RandomForest forest(static_cast<uint32_t>(rows), modes, leaves);
          expect_same_bits<float>(forest.tester(aggregate), forest.tester(aggregate), forest, rows);
        }
      }
    }
  }
}

TEST(TreeEnsemble, RowsOfFloatsGiveTheBitsOfTheSameRowsOfDoubles) {
  using Leaves = RandomForest::Leaves;
  for (const Leaves leaves : {Leaves::kFirst, Leaves::kOfTree}) {
    for (const int64_t aggregate : {0, 1, 2, 3}) {
      for (const int64_t rows : kRowCounts) {
        const RandomForest forest(static_cast<uint32_t>(rows), RandomForest::kSets, leaves);
        expect_same_bits<double>(forest.tester_v5(aggregate), forest.tester_v5(aggregate), forest,
                                 rows);
      }
    }
  }
}

// A node with two parents makes no tree of its own: no copies of it are laid out.
TEST(TreeEnsembleRegressor, NodesWithTwoParentsAreWalked) {
  OpTester t("TreeEnsembleRegressor", 1, "ai.onnx.ml");
  constexpr int64_t kLevels = 60;  // 2^60 paths
  std::vector<int64_t> trees(kLevels + 1, 0), ids, next, features(kLevels + 1, 0);
  std::vector<std::string> modes;
  for (int64_t i = 0; i <= kLevels; ++i) {
    ids.push_back(i);
    next.push_back(i < kLevels ? i + 1 : 0);
    modes.emplace_back(i < kLevels ? "BRANCH_LEQ" : "LEAF");
  }
  t.attr_ints("nodes_treeids", trees).attr_ints("nodes_nodeids", ids);
  t.attr_ints("nodes_featureids", features).attr_strings("nodes_modes", modes);
  t.attr_floats("nodes_values", std::vector<float>(kLevels + 1, 0.5F));
  t.attr_ints("nodes_truenodeids", next).attr_ints("nodes_falsenodeids", next);
  t.attr_ints("target_treeids", {0}).attr_ints("target_nodeids", {kLevels});
  t.attr_ints("target_ids", {0}).attr_floats("target_weights", {3});
  t.input<float>({2, 1}, {0, 1}).expect<float>(0, {2, 1}, {3, 3});
  t.run();
}

TEST(TreeEnsembleRegressor, TooFewColumnsAreAnError) {
  OpTester t("TreeEnsembleRegressor", 1, "ai.onnx.ml");
  stump(&t);
  t.input<float>({1, 1}, {0});
  t.outputs(1).fails("the trees ask for 2");
}

TEST(TreeEnsemble, KnowsSetMembership) {
  OpTester t("TreeEnsemble", 5, "ai.onnx.ml");
  t.attr("n_targets", 2).attr_ints("tree_roots", {0}).attr_ints("nodes_featureids", {0});
  t.attr_ints("nodes_truenodeids", {0}).attr_ints("nodes_trueleafs", {1});
  t.attr_ints("nodes_falsenodeids", {1}).attr_ints("nodes_falseleafs", {1});
  t.attr("nodes_modes", make_tensor<uint8_t>({1}, {6}));
  t.attr("nodes_splits", make_tensor<double>({1}, {0}));
  t.attr("membership_values", make_tensor<double>({3}, {2, 4, NAN}));
  t.attr_ints("leaf_targetids", {0, 1});
  t.attr("leaf_weights", make_tensor<double>({2}, {10, 20}));
  t.input<double>({2, 1}, {4, 3});
  t.expect<double>(0, {2, 2}, {10, 0, 0, 20});
  t.run();
}

TEST(TreeEnsemble, RootsOutsideTheNodesAreRefused) {
  OpTester t("TreeEnsemble", 5, "ai.onnx.ml");
  t.attr_ints("tree_roots", {3}).attr_ints("nodes_featureids", {0});
  t.attr_ints("nodes_truenodeids", {0}).attr_ints("nodes_trueleafs", {1});
  t.attr_ints("nodes_falsenodeids", {0}).attr_ints("nodes_falseleafs", {1});
  t.attr("nodes_modes", make_tensor<uint8_t>({1}, {0}));
  t.attr("nodes_splits", make_tensor<double>({1}, {0}));
  t.attr_ints("leaf_targetids", {0});
  t.attr("leaf_weights", make_tensor<double>({1}, {10}));
  t.input<double>({1, 1}, {4});
  t.outputs(1).fails("child 3 of 1");
}

}  // namespace
}  // namespace folio
