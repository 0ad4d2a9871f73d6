#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<int64_t> kMatrix = {1, 2, 3, 4, 5, 6};

TEST(Trilu, KeepsTheUpperTriangleByDefault) {
  OpTester t("Trilu", 14);
  t.input<int64_t>({2, 3}, kMatrix).expect<int64_t>(0, {2, 3}, {1, 2, 3, 0, 5, 6}).run();
}

TEST(Trilu, KeepsTheLowerTriangleOfEachMatrixOfABatch) {
  OpTester t("Trilu", 14);
  t.attr("upper", 0).input<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}).input<int64_t>({}, {-1});
  t.expect<float>(0, {2, 2, 2}, {0, 0, 3, 0, 0, 0, 7, 0}).run();
}

TEST(Trilu, TakesAnyDiagonal) {
  OpTester all("Trilu", 14);
  all.input<int64_t>({2, 3}, kMatrix).input<int64_t>({}, {INT64_MIN});
  all.expect<int64_t>(0, {2, 3}, kMatrix).run();
  OpTester none("Trilu", 14);
  none.input<int64_t>({2, 3}, kMatrix).input<int64_t>({1}, {INT64_MAX});
  none.expect<int64_t>(0, {2, 3}, {0, 0, 0, 0, 0, 0}).run();
  OpTester lower("Trilu", 14);
  lower.attr("upper", 0).input<int64_t>({2, 3}, kMatrix).input<int64_t>({}, {INT64_MAX});
  lower.expect<int64_t>(0, {2, 3}, kMatrix).run();
}

TEST(Trilu, TakesStringsAndNothing) {
  OpTester strings("Trilu", 14);
  strings.input<std::string>({2, 2}, {"a", "b", "c", "d"});
  strings.expect<std::string>(0, {2, 2}, {"a", "b", "", "d"}).run();
  OpTester empty("Trilu", 14);
  empty.input<float>({3, 0}, {}).expect<float>(0, {3, 0}, {}).run();
}

TEST(Trilu, OfComMicrosoftIsTheSame) {
  OpTester t("Trilu", 1, "com.microsoft");
  t.attr("upper", 0).input<int64_t>({2, 2}, {1, 2, 3, 4}).input<int64_t>({}, {-1});
  t.expect<int64_t>(0, {2, 2}, {0, 0, 3, 0}).run();
}

TEST(Trilu, RefusesWhatIsNoMatrix) {
  OpTester t("Trilu", 14);
  t.input<float>({3}, {1, 2, 3}).fails("rank 1");
}

}  // namespace
}  // namespace folio
