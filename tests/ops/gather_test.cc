#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Gather, PicksRowsAndColumns) {
  const std::vector<float> x = {1.0F, 1.2F, 2.3F, 3.4F, 4.5F, 5.7F};
  OpTester rows("Gather", 13);
  rows.input<float>({3, 2}, x).input<int64_t>({2, 2}, {0, 1, 1, -1});
  rows.expect<float>(0, {2, 2, 2}, {1.0F, 1.2F, 2.3F, 3.4F, 2.3F, 3.4F, 4.5F, 5.7F});
  rows.run();
  OpTester columns("Gather", 1);
  columns.attr("axis", 1).input<float>({3, 2}, x).input<int32_t>({1}, {1});
  columns.expect<float>(0, {3, 1}, {1.2F, 3.4F, 5.7F});
  columns.run();
}

TEST(Gather, ScalarIndexDropsTheAxisAndKnowsContents) {
  OpTester t("Gather", 11);
  t.input<int64_t>({3}, {5, 6, 7}).constant<int64_t>({}, {-2}).expect<int64_t>(0, {}, {6});
  t.run();
}

TEST(Gather, TakesStringsAndNothing) {
  OpTester strings("Gather", 13);
  strings.input<std::string>({2}, {"a", "b"}).input<int64_t>({2}, {1, 0});
  strings.expect<std::string>(0, {2}, {"b", "a"});
  strings.run();
  OpTester empty("Gather", 13);
  empty.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({0}, {});
  empty.expect<float>(0, {0, 3}, {});
  empty.run();
}

TEST(Gather, RefusesIndicesOutside) {
  OpTester t("Gather", 13);
  t.input<float>({2}, {1, 2}).input<int64_t>({1}, {2}).fails("index 2 is outside an axis of 2");
  OpTester low("Gather", 13);
  low.input<float>({2}, {1, 2}).input<int64_t>({1}, {INT64_MIN}).fails("is outside");
  OpTester type("Gather", 13);
  type.input<float>({2}, {1, 2}).input<float>({1}, {0}).fails("is float");
  OpTester scalar("Gather", 13);
  scalar.input<float>({}, {1}).input<int64_t>({1}, {0}).fails("axis 0 is outside");
}

}  // namespace
}  // namespace folio
