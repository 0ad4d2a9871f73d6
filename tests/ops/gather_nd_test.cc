#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/model_tester.h"
#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(GatherND, TakesElementsAndSlices) {
  OpTester elements("GatherND", 11);
  elements.input<int32_t>({2, 2}, {0, 1, 2, 3}).input<int64_t>({2, 2}, {0, 0, 1, -1});
  elements.expect<int32_t>(0, {2}, {0, 3}).run();
  OpTester slices("GatherND", 13);
  slices.input<float>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}).input<int64_t>({2, 1, 2}, {0, 1, 1, 0});
  slices.expect<float>(0, {2, 1, 2}, {2, 3, 4, 5}).run();
  OpTester all("GatherND", 13);
  all.input<float>({2}, {1, 2}).input<int64_t>({3, 0}, {});
  all.expect<float>(0, {3, 2}, {1, 2, 1, 2, 1, 2}).run();
}

TEST(GatherND, TakesEachBatchByItsOwnIndices) {
  OpTester t("GatherND", 12);
  t.attr("batch_dims", 1).input<int32_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  t.input<int64_t>({2, 1}, {1, 0}).expect<int32_t>(0, {2, 2}, {2, 3, 4, 5}).run();
}

TEST(GatherND, OfComMicrosoftHasNoBatches) {
  OpTester t("GatherND", 1, "com.microsoft");
  t.input<float>({2, 2}, {0, 1, 2, 3}).input<int32_t>({2, 2}, {0, 0, 1, -1});
  t.expect<float>(0, {2}, {0, 3}).run();
}

TEST(GatherND, RefusesWhatDoesNotFit) {
  OpTester index("GatherND", 13);
  index.input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {2}).outputs(1).fails("index 2");
  OpTester deep("GatherND", 13);
  deep.input<float>({2}, {1, 2}).input<int64_t>({2}, {0, 0}).outputs(1).fails("last dim");
  OpTester batch("GatherND", 13);
  batch.attr("batch_dims", 1).input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({3, 1}, {0, 0, 0});
  batch.outputs(1).fails("batch dim 0 differs");
  for (const int64_t dims : {int64_t{2}, int64_t{-1}, INT64_MAX}) {
    OpTester t("GatherND", 13);
    t.attr("batch_dims", dims).input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({2, 1}, {0, 0});
    t.outputs(1).fails("batch dims");
  }
  OpTester scalar("GatherND", 13);
  scalar.input<float>({2}, {1, 2}).input<int64_t>({}, {0}).outputs(1).fails("rank 0");
  OpTester huge("GatherND", 13);
  huge.input<float>({2}, {1, 2}).input<int64_t>({INT64_MAX, 0}, {}).outputs(1).fails("overflow");
}

TEST(ScatterND, WritesElementsAndSlices) {
  OpTester elements("ScatterND", 11);
  elements.input<float>({4}, {1, 2, 3, 4}).input<int64_t>({2, 1}, {3, -4});
  elements.input<float>({2}, {9, 10}).expect<float>(0, {4}, {10, 2, 3, 9}).run();
  OpTester slices("ScatterND", 18);
  slices.attr("reduction", "max").input_as(DType::kFloat16, {2, 2}, {1, 2, 3, 4});
  slices.input<int64_t>({2, 1}, {1, 1}).input_as(DType::kFloat16, {2, 2}, {5, 1, 4, 6});
  slices.expect_as(0, DType::kFloat16, {2, 2}, {1, 2, 5, 6}).run();
}

TEST(ScatterND, RefusesWhatDoesNotFit) {
  OpTester updates("ScatterND", 18);
  updates.input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {0}).input<float>({2}, {1, 2});
  updates.outputs(1).fails("updates are [2], expected [1]");
  OpTester index("ScatterND", 18);
  index.input<float>({2}, {1, 2}).input<int64_t>({1, 1}, {INT64_MIN}).input<float>({1}, {1});
  index.outputs(1).fails("is outside");
}

std::atomic<int64_t> g_allocations{0};
std::atomic<int64_t> g_failing{0};
bool fail_nth(size_t) { return ++g_allocations != g_failing; }

// The shapes after NonZero are known only while running, so each of them is allocated then.
TEST(GatherND, WithoutMemoryForADataDependentShapeIsAnError) {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 3}));
  graph.node("NonZero", {"x"}, {"where"});
  graph.node("Transpose", {"where"}, {"rows"});
  graph.node("GatherND", {"x", "rows"}, {"found"});
  graph.node("Shape", {"found"}, {"count"});
  graph.node("Expand", {"x_first", "count"}, {"again"});
  graph.initializer(f32_tensor("x_first", {1}, {4}));
  graph.output("found", f32_type({"found_count"}));
  graph.output("again", f32_type({"again_count"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const Value x = make_tensor<float>({2, 3}, {0, 1, 0, 2, 0, 3});
  int refused = 0;
  for (int64_t n = 1;; ++n) {
    g_allocations = 0;
    g_failing = n;
    set_allocation_hook(fail_nth);
    const auto outputs = run_all(*session.value(), {{"x", x}});
    set_allocation_hook(nullptr);
    if (!outputs.is_ok()) {
      EXPECT_EQ(outputs.status().code(), Code::kOutOfMemory) << text_of(outputs.status());
      ++refused;
    }
    if (g_allocations >= n) continue;
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(floats_of(outputs.value()[1]), (std::vector<float>{4, 4, 4}));
    break;
  }
  EXPECT_GE(refused, 4);
}

}  // namespace
}  // namespace folio
