#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

template <typename T>
void check(T start, T limit, T delta, const std::vector<T>& expected) {
  OpTester t("Range", 11);
  for (const T bound : {start, limit, delta}) t.input<T>({}, {bound});
  t.expect<T>(0, {static_cast<int64_t>(expected.size())}, expected, 1e-6);
  t.run();
}

TEST(Range, CountsUpDownAndNotAtAll) {
  check<float>(1, 5, 2, {1, 3});
  check<int32_t>(10, 6, -3, {10, 7});
  check<int64_t>(0, 3, 1, {0, 1, 2});
  check<int64_t>(2, 5, 1, {2, 3, 4});
  check<int64_t>(5, 2, 1, {});
  check<int16_t>(3, 3, 1, {});
  check<double>(0, 1, 0.25, {0, 0.25, 0.5, 0.75});
  check<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX, {INT64_MIN, -1, INT64_MAX - 1});
}

TEST(Range, OfComMicrosoftCountsByOneIfNothingElseIsSaid) {
  OpTester one("Range", 1, "com.microsoft");
  one.input<int32_t>({}, {2}).input<int32_t>({}, {5});
  one.expect<int32_t>(0, {3}, {2, 3, 4}).run();
  OpTester two("Range", 1, "com.microsoft");
  two.input<float>({}, {1}).input<float>({}, {4}).input<float>({}, {2});
  two.expect<float>(0, {2}, {1, 3}).run();
}

TEST(Range, RefusesWhatNeverEnds) {
  OpTester zero("Range", 11);
  zero.input<int64_t>({}, {0}).input<int64_t>({}, {1}).input<int64_t>({}, {0}).fails("delta is 0");
  OpTester infinite("Range", 11);
  infinite.input<float>({}, {0}).input<float>({}, {INFINITY}).input<float>({}, {1});
  infinite.fails("no finite number");
  OpTester count("Range", 11);
  count.input<int64_t>({}, {INT64_MIN}).input<int64_t>({}, {INT64_MAX}).input<int64_t>({}, {1});
  count.fails("too many");
  OpTester type("Range", 11);
  type.input<bool>({}, {true}).input<bool>({}, {true}).input<bool>({}, {true}).fails("is bool");
}

TEST(ConstantOfShape, FillsWithTheValue) {
  OpTester t("ConstantOfShape", 9);
  t.attr("value", make_tensor<int64_t>({1}, {7})).input<int64_t>({2}, {2, 1});
  t.expect<int64_t>(0, {2, 1}, {7, 7});
  t.run();
  OpTester zero("ConstantOfShape", 9);
  zero.input<int64_t>({0}, {}).expect<float>(0, {}, {0});
  zero.run();
  OpTester nibbles("ConstantOfShape", 21);
  nibbles.attr("value", make_raw_tensor(DType::kInt4, {1}, {0x0e})).input<int64_t>({1}, {3});
  nibbles.expect_value(0, make_raw_tensor(DType::kInt4, {3}, {0xee, 0x0e}));
  nibbles.run();
}

TEST(ConstantOfShape, RefusesHostileDims) {
  OpTester t("ConstantOfShape", 9);
  t.input<int64_t>({1}, {-1}).fails("negative");
  OpTester value("ConstantOfShape", 9);
  value.attr("value", make_tensor<float>({2}, {1, 2})).input<int64_t>({1}, {1}).fails("2 elements");
}

}  // namespace
}  // namespace folio
