#include <gtest/gtest.h>

#include <cmath>

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
  OpTester t = classifier({1, 1}, {-1, 1});
  t.attr_ints("classlabels_int64s", {0, 1}).attr("post_transform", "LOGISTIC");
  t.input<double>({2, 2}, {0, 1, 0, 2});
  t.expect<int64_t>(0, {2}, {0, 1});
  t.expect<float>(1, {2, 2}, {0.731058F, 0.268941F, 0.268941F, 0.731058F}, 1e-5);
  t.run();
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
