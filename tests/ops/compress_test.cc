#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Compress, PicksEntriesOfAnAxis) {
  OpTester rows("Compress", 11);
  rows.attr("axis", 0).input<float>({3, 2}, {1, 2, 3, 4, 5, 6}).input<bool>({3}, {0, 1, 1});
  rows.expect<float>(0, {2, 2}, {3, 4, 5, 6}).expect_inferred(0, "tensor(float)[?,2]").run();
  OpTester columns("Compress", 11);
  columns.attr("axis", -1).input<float>({3, 2}, {1, 2, 3, 4, 5, 6}).input<bool>({2}, {0, 1});
  columns.expect<float>(0, {3, 1}, {2, 4, 6}).run();
}

TEST(Compress, WithoutAnAxisSeesOneDimAndMayStopEarly) {
  OpTester t("Compress", 9);
  t.input<std::string>({2, 2}, {"a", "b", "c", "d"}).input<bool>({3}, {1, 0, 1});
  t.expect<std::string>(0, {2}, {"a", "c"}).run();
}

TEST(Compress, RefusesAPickBeyondTheAxis) {
  OpTester t("Compress", 11);
  t.attr("axis", 0).input<float>({1}, {1}).input<bool>({2}, {1, 1}).outputs(1).fails("entry 1");
  OpTester type("Compress", 11);
  type.input<float>({1}, {1}).input<int64_t>({1}, {1}).outputs(1).fails("expected bool");
}

}  // namespace
}  // namespace folio
