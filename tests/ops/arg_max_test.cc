#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(ArgMax, FollowsTheSpecExample) {
  OpTester t("ArgMax", 13);
  t.attr("axis", 1);
  t.input<float>({2, 2}, {2, 1, 3, 10});
  t.expect<int64_t>(0, {2, 1}, {0, 1});
  t.run();
}

TEST(ArgMax, MaySelectTheLastIndex) {
  for (const int last : {0, 1}) {
    OpTester t("ArgMax", 13);
    t.attr("axis", 0).attr("keepdims", 0).attr("select_last_index", last);
    t.input<int32_t>({3}, {5, 1, 5});
    t.expect<int64_t>(0, {}, {last ? 2 : 0});
    t.run();
  }
}

TEST(ArgMin, TakesTheSmallest) {
  OpTester t("ArgMin", 13);
  t.attr("axis", -1).attr("keepdims", 0);
  t.input<double>({2, 3}, {3, 1, 2, -1, 0, -2});
  t.expect<int64_t>(0, {2}, {1, 2});
  t.run();
}

TEST(ArgMax, EmptyAxesAreAnError) {
  OpTester t("ArgMax", 13);
  t.input<float>({0, 2}, {});
  t.outputs(1).fails("is empty");
}

}  // namespace
}  // namespace folio
