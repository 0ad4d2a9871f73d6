#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

// Heads of one element on one head of keys; queries are zero, so that all that is seen weighs the
// same.
OpTester sparse(int heads) {
  OpTester t("SparseAttention", 1, "com.microsoft");
  t.attr("num_heads", heads).attr("kv_num_heads", 1).attr("sparse_block_size", 2);
  return t;
}

TEST(SparseAttention, HeadsSeeTheBlocksOfTheirLayouts) {
  OpTester t = sparse(2);
  t.input<float>({1, 4, 2}, std::vector<float>(8, 0));
  t.input<float>({1, 4, 1}, {5, 6, 7, 8}).input<float>({1, 4, 1}, {1, 2, 3, 4});
  t.input<float>({1, 1, 5, 1}, {9, 9, 9, 9, 9}).input<float>({1, 1, 5, 1}, {9, 9, 9, 9, 9});
  // The second block sees itself alone; or both, in any order.
  t.input<int32_t>({2, 3}, {0, 1, 2, 0, 1, 3}).input<int32_t>({2, 3}, {0, 1, -1, 0, 1, 0});
  t.input<int32_t>({1}, {4}).input<int32_t>({1}, {4});
  t.expect<float>(0, {1, 4, 2}, {1, 1, 1.5, 1.5, 3, 2, 3.5, 2.5}, 1e-6);
  t.expect<float>(1, {1, 1, 5, 1}, {5, 6, 7, 8, 0});
  t.expect<float>(2, {1, 1, 5, 1}, {1, 2, 3, 4, 0});
  t.run();
}

TEST(SparseAttention, StepsAddARowToEachSequence) {
  OpTester t = sparse(1);
  t.input<float>({2, 1, 3}, {0, 7, 10, 0, 8, 10});  // packed
  t.input_absent().input_absent();
  t.input<float>({2, 1, 6, 1}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  t.input<float>({2, 1, 6, 1}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  t.input<int32_t>({1, 4}, {0, 1, 2, 4}).input<int32_t>({1, 4}, {0, 1, 2, 0});
  t.input<int32_t>({}, {6}).input<int32_t>({2}, {5, 6});
  t.expect<float>(0, {2, 1, 1}, {13.0F / 3, 4.5}, 1e-6);
  t.expect<float>(1, {2, 1, 6, 1}, {1, 2, 3, 4, 7, 0, 1, 2, 3, 4, 5, 8});
  t.expect<float>(2, {2, 1, 6, 1}, {1, 2, 3, 4, 10, 0, 1, 2, 3, 4, 5, 10});
  t.run();
}

TEST(SparseAttention, RotatesWhereASequenceStands) {
  OpTester t("SparseAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("sparse_block_size", 8).attr("do_rotary", 1);
  t.input<float>({1, 1, 2}, {0, 0}).input<float>({1, 1, 2}, {3, 4}).input<float>({1, 1, 2}, {1, 2});
  t.input<float>({1, 1, 2, 2}, {5, 6, 0, 0}).input<float>({1, 1, 2, 2}, {3, 4, 0, 0});
  t.input<int32_t>({1, 2}, {0, 1}).input<int32_t>({1, 1}, {0});
  t.input<int32_t>({1}, {2}).input<int32_t>({1}, {2});
  t.input<float>({2, 1}, {1, 0}).input<float>({2, 1}, {0, 1});  // by a quarter at position 1
  t.expect<float>(0, {1, 1, 2}, {2, 3}, 1e-6);
  t.expect<float>(1, {1, 1, 2, 2}, {5, 6, -4, 3});
  t.expect<float>(2, {1, 1, 2, 2}, {3, 4, 1, 2});
  t.run();
}

TEST(SparseAttention, OfNoSequenceThereIsNothing) {
  OpTester t = sparse(1);
  for (int i = 0; i < 3; ++i) t.input<float>({0, 3, 1}, {});
  for (int i = 0; i < 2; ++i) t.input<float>({0, 1, 4, 1}, {});
  t.input<int32_t>({1, 3}, {0, 1, 2}).input<int32_t>({1, 2}, {0, 1});
  t.input<int32_t>({1}, {4}).input<int32_t>({0}, {});
  t.expect<float>(0, {0, 3, 1}, {});
  t.expect<float>(1, {0, 1, 4, 1}, {}).expect<float>(2, {0, 1, 4, 1}, {});
  t.run();
}

struct Hostile {
  std::vector<int32_t> rows = {0, 1, 2};
  std::vector<int32_t> columns = {0, 1};
  int32_t total = 4;
  int32_t length = 4;
  int64_t layouts = 1;
  int block_size = 2;
};

void refuses(const Hostile& h, std::string_view message) {
  OpTester t("SparseAttention", 1, "com.microsoft");
  t.attr("num_heads", 1).attr("kv_num_heads", 1).attr("sparse_block_size", h.block_size);
  t.input<float>({1, 3, 1}, {0, 0, 0}).input<float>({1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 3, 1}, {0, 0, 0});
  t.input<float>({1, 1, 4, 1}, {0, 0, 0, 0}).input<float>({1, 1, 4, 1}, {0, 0, 0, 0});
  const auto width = static_cast<int64_t>(h.rows.size()) / h.layouts;
  t.input<int32_t>({h.layouts, width}, h.rows);
  t.input<int32_t>({h.layouts, static_cast<int64_t>(h.columns.size()) / h.layouts}, h.columns);
  t.input<int32_t>({1}, {h.total}).input<int32_t>({1}, {h.length}).outputs(3);
  t.fails(std::string(message));
}

TEST(SparseAttention, RefusesWhatDoesNotFit) {
  refuses({.rows = {0, 1, 3}}, "row 1 from 1 to 3 of 2 blocks");
  refuses({.rows = {0, 2, 1}}, "row 1 from 2 to 1 of 2 blocks");
  refuses({.rows = {-5, 1, 2}}, "row 0 from -5 to 1 of 2 blocks");
  refuses({.columns = {0, 2}}, "expected 0 to 1");
  refuses({.columns = {0, -1}}, "expected 0 to 1");
  refuses({.rows = {0, 1}, .columns = {0}}, "1 blocks of 2 positions");
  refuses({.total = 5}, "total_sequence_length is 5, expected 3 to 4");
  refuses({.total = 2}, "total_sequence_length is 2");
  refuses({.length = 2}, "key_total_sequence_lengths holds 2");
  refuses({.length = 5}, "key_total_sequence_lengths holds 5");
  refuses({.rows = {0, 1, 2, 0, 1, 2}, .columns = {0, 1, 0, 1}, .layouts = 2}, "for 1 heads");
  refuses({.block_size = 0}, "'sparse_block_size' is 0");
}

}  // namespace
}  // namespace folio
