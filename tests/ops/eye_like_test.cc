#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(EyeLike, FillsADiagonal) {
  OpTester t("EyeLike", 9);
  t.attr("k", 1).attr("dtype", 7).input<float>({2, 3}, {9, 9, 9, 9, 9, 9});
  t.expect<int64_t>(0, {2, 3}, {0, 1, 0, 0, 0, 1}).run();
  OpTester far("EyeLike", 22);
  far.attr("k", INT64_MIN).input<bool>({1, 1}, {true}).expect<bool>(0, {1, 1}, {false}).run();
  OpTester rank("EyeLike", 9);
  rank.input<float>({1}, {1}).outputs(1).fails("rank 1");
  OpTester type("EyeLike", 9);
  type.attr("dtype", 8).input<float>({1, 1}, {1}).outputs(1).fails("dtype is 8");
}

}  // namespace
}  // namespace folio
