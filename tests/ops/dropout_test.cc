#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Dropout, PassesItsInputOnWhenNotTraining) {
  OpTester t("Dropout", 13);
  t.input<float>({2}, {1, 2});
  t.input<float>({}, {0.5f});
  t.input<bool>({}, {false});
  t.expect<float>(0, {2}, {1, 2});
  t.expect<bool>(1, {2}, {true, true});
  t.run();
}

TEST(Dropout, MasksWereOfTheInputsTypeBeforeOpset10) {
  OpTester t("Dropout", 7);
  t.attr("ratio", 0.5f);
  t.input<float>({2}, {1, 2});
  t.expect<float>(0, {2}, {1, 2});
  t.expect<float>(1, {2}, {1, 1});
  t.run();
}

TEST(Dropout, TrainingWithARatioOfZeroDropsNothing) {
  OpTester t("Dropout", 13);
  t.input<float>({2}, {1, 2});
  t.input<float>({}, {0});
  t.input<bool>({}, {true});
  t.expect<float>(0, {2}, {1, 2});
  t.run();
}

TEST(Dropout, TrainingIsRefused) {
  OpTester t("Dropout", 13);
  t.input<float>({2}, {1, 2});
  t.input<float>({}, {0.5f});
  t.input<bool>({}, {true});
  t.outputs(1).fails("training");
  OpTester old("Dropout", 1);
  old.input<float>({2}, {1, 2});
  old.outputs(1).fails("is_test");
}

TEST(Dropout, AnEmptyRatioIsRefused) {
  OpTester t("Dropout", 13);
  t.input<float>({1}, {1});
  t.input<float>({0}, {});
  t.input<bool>({}, {true});
  t.outputs(1).fails("empty");
}

}  // namespace
}  // namespace folio
