#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Identity, GivesTensorsSequencesAndStringsBack) {
  OpTester t("Identity", 13);
  t.input<float>({2, 2}, {1, 2, 3, 4}).expect<float>(0, {2, 2}, {1, 2, 3, 4});
  t.expect_inferred(0, "tensor(float)[2,2]");
  t.run();
  OpTester strings("Identity", 1);
  strings.input<std::string>({2}, {"a", "bc"}).expect<std::string>(0, {2}, {"a", "bc"});
  strings.run();
  OpTester sequence("Identity", 14);
  const Value value = make_sequence(DType::kInt64, {});
  sequence.input_value(value).expect_value(0, value);
  sequence.run();
}

TEST(SampleOp, GivesATensorBack) {
  OpTester t("SampleOp", 1, "com.microsoft");
  t.input<float>({2}, {1, 2}).expect<float>(0, {2}, {1, 2}).run();
}

TEST(Identity, KnowsSmallIntegers) {
  OpTester t("Identity");
  t.input<int64_t>({3}, {4, 0, -1}).expect<int64_t>(0, {3}, {4, 0, -1});
  t.run();
}

TEST(Dropout, InInferenceGivesInputAndFullMask) {
  OpTester t("Dropout", 13);
  t.input<float>({3}, {1, -2, 3}).input<float>({}, {0.5F}).input<bool>({}, {false});
  t.expect<float>(0, {3}, {1, -2, 3}).expect<bool>(1, {3}, {true, true, true});
  t.run();
}

TEST(Dropout, MaskBeforeOpset10HasTheTypeOfTheInput) {
  OpTester t("Dropout", 7);
  t.attr("ratio", 0.3F).input<float>({2}, {1, 2});
  t.expect<float>(0, {2}, {1, 2}).expect<float>(1, {2}, {1, 1});
  t.run();
}

TEST(Dropout, TrainingIsRefusedUnlessTheRatioIsZero) {
  OpTester t("Dropout", 12);
  t.input<float>({2}, {1, 2}).input<float>({}, {0.5F}).input<bool>({}, {true});
  t.fails("training mode");
  OpTester zero("Dropout", 12);
  zero.input<float>({2}, {1, 2}).input<float>({}, {0}).input<bool>({}, {true});
  zero.expect<float>(0, {2}, {1, 2});
  zero.run();
  OpTester old("Dropout", 1);
  old.input<float>({2}, {1, 2});
  old.fails("is_test");
}

}  // namespace
}  // namespace folio
