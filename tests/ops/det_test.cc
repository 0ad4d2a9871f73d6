#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Det, TakesBatchesOfMatrices) {
  OpTester t("Det", 11);
  t.input<float>({3, 2, 2}, {1, 2, 3, 4, 1, 2, 2, 1, 1, 3, 3, 1});
  t.expect<float>(0, {3}, {-2, -3, -8}, 1e-6);
  t.run();
}

TEST(Det, SingularMatricesHaveZero) {
  OpTester t("Det", 11);
  t.input<double>({2, 2}, {0, 0, 0, 1});
  t.expect<double>(0, {}, {0});
  t.run();
}

TEST(Det, MatricesThatAreNotSquareAreAnError) {
  OpTester t("Det", 11);
  t.input<float>({1, 2}, {1, 2});
  t.outputs(1).fails("no square matrices");
}

TEST(Shrink, MovesTowardsZero) {
  OpTester t("Shrink", 9);
  t.attr("lambd", 1.5F).attr("bias", 1.5F);
  t.input<float>({5}, {-2, -1, 0, 1, 2});
  t.expect<float>(0, {5}, {-0.5F, 0, 0, 0, 0.5F});
  t.run();
}

TEST(Shrink, SaturatesIntegers) {
  OpTester t("Shrink", 9);
  t.attr("bias", 100.0F);
  t.input<uint8_t>({2}, {50, 200});
  t.expect<uint8_t>(0, {2}, {0, 100});
  t.run();
}

}  // namespace
}  // namespace folio
