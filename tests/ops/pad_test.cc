#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Pad, ConstantFromInputs) {
  OpTester t("Pad", 13);
  t.input<float>({3, 2}, {1, 2, 3, 4, 5, 6}).input<int64_t>({4}, {0, 2, 0, 0});
  t.input<float>({}, {9}).expect<float>(0, {3, 4}, {9, 9, 1, 2, 9, 9, 3, 4, 9, 9, 5, 6});
  t.run();
  OpTester zero("Pad", 11);
  zero.input<int32_t>({1}, {7}).constant<int64_t>({2}, {1, 1}).expect<int32_t>(0, {3}, {0, 7, 0});
  zero.expect_inferred(0, "tensor(int32)[3]");
  zero.run();
}

TEST(Pad, ConstantFromAttributes) {
  OpTester two("Pad", 2);
  two.attr_ints("pads", {1, 0, 0, 1}).attr("value", 5.0F).input<float>({1, 1}, {1});
  two.expect<float>(0, {2, 2}, {5, 5, 1, 5});
  two.run();
  OpTester one("Pad", 1);
  one.attr_ints("paddings", {0, 1}).attr("mode", "edge").input<float>({2}, {1, 2});
  one.expect<float>(0, {3}, {1, 2, 2});
  one.run();
}

TEST(Pad, ReflectEdgeAndWrap) {
  const std::vector<float> x = {1, 2, 3};
  const std::pair<const char*, std::vector<float>> cases[] = {
      {"reflect", {3, 2, 1, 2, 3, 2}}, {"edge", {1, 1, 1, 2, 3, 3}}, {"wrap", {2, 3, 1, 2, 3, 1}}};
  for (const auto& [mode, expected] : cases) {
    OpTester t("Pad", 19);
    t.attr("mode", mode).input<float>({3}, x).input<int64_t>({2}, {2, 1});
    t.expect<float>(0, {6}, expected);
    t.run();
  }
}

TEST(Pad, ReflectsAgainAndAgain) {
  OpTester t("Pad", 13);
  t.attr("mode", "reflect").input<float>({2}, {1, 2}).input<int64_t>({2}, {3, 2});
  t.expect<float>(0, {7}, {2, 1, 2, 1, 2, 1, 2});
  t.run();
  OpTester one("Pad", 13);
  one.attr("mode", "reflect").input<float>({1}, {1}).input<int64_t>({2}, {2, 1});
  one.expect<float>(0, {4}, {1, 1, 1, 1});
  one.run();
}

TEST(Pad, OfComMicrosoftReadsPadsOfOneDimOrTwo) {
  for (const Shape& shape : {Shape{4}, Shape{1, 4}}) {
    OpTester t("Pad", 1, "com.microsoft");
    t.input<float>({1, 2}, {1, 2}).input<int64_t>(shape, {0, 1, 1, -1}).input<float>({}, {9});
    t.expect<float>(0, {2, 2}, {9, 1, 9, 9}).run();
  }
}

TEST(Pad, NegativePadsCut) {
  OpTester t("Pad", 13);
  t.input<float>({4}, {1, 2, 3, 4}).input<int64_t>({2}, {-1, -2}).expect<float>(0, {1}, {2});
  t.run();
  OpTester mixed("Pad", 13);
  mixed.attr("mode", "edge").input<float>({3}, {1, 2, 3}).input<int64_t>({2}, {-1, 2});
  mixed.expect<float>(0, {4}, {2, 3, 3, 3});
  mixed.run();
}

// What lies behind the last axis that is padded moves as a whole: only where it stays as it is.
TEST(Pad, InnerAxesStayOrAreMirrored) {
  OpTester whole("Pad", 13);
  whole.input<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  whole.input<int64_t>({6}, {0, 1, 0, 1, 0, 0}).input<float>({}, {9});
  whole.expect<float>(0, {3, 3, 2}, {9, 9, 1, 2, 3, 4, 9, 9, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9});
  whole.run();
  for (const int64_t by : {1, -1}) {  // as many as before, elsewhere
    OpTester moved("Pad", 13);
    moved.input<float>({2, 3}, {1, 2, 3, 4, 5, 6}).input<int64_t>({4}, {0, by, 0, -by});
    const std::vector<float> right = {0, 1, 2, 0, 4, 5};
    const std::vector<float> left = {2, 3, 0, 5, 6, 0};
    moved.expect<float>(0, {2, 3}, by > 0 ? right : left);
    moved.run();
    OpTester mirrored("Pad", 13);
    mirrored.attr("mode", "reflect").input<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    mirrored.input<int64_t>({4}, {0, by, 0, -by});
    const std::vector<float> to_right = {2, 1, 2, 5, 4, 5};
    const std::vector<float> to_left = {2, 3, 2, 5, 6, 5};
    mirrored.expect<float>(0, {2, 3}, by > 0 ? to_right : to_left);
    mirrored.run();
  }
  OpTester none("Pad", 13);
  none.input<float>({2, 2}, {1, 2, 3, 4}).input<int64_t>({4}, {0, 0, 0, 0});
  none.expect<float>(0, {2, 2}, {1, 2, 3, 4});
  none.run();
}

TEST(Pad, FillsLongStretches) {
  for (const int64_t pad : {1, 31, 33, 700, 3000}) {
    std::vector<float> want(static_cast<size_t>(2 * (3 + 2 * pad)), 0.5F);
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        want[static_cast<size_t>(i * (3 + 2 * pad) + pad + j)] = static_cast<float>(i * 3 + j);
      }
    }
    OpTester t("Pad", 13);
    t.input<float>({2, 3}, {0, 1, 2, 3, 4, 5}).input<int64_t>({4}, {0, pad, 0, pad});
    t.input<float>({}, {0.5F}).expect<float>(0, {2, 3 + 2 * pad}, want).run();
  }
}

TEST(Pad, AxesInputNamesWhatIsPadded) {
  OpTester t("Pad", 18);
  t.input<float>({1, 2}, {1, 2}).input<int64_t>({2}, {1, 0}).input_absent();
  t.input<int64_t>({1}, {-1}).expect<float>(0, {1, 3}, {0, 1, 2});
  t.run();
}

TEST(Pad, TakesFourBitAndStrings) {
  OpTester nibbles("Pad", 21);
  nibbles.input_value(make_raw_tensor(DType::kUint4, {2}, {0x21})).input<int64_t>({2}, {1, 0});
  nibbles.input_value(make_raw_tensor(DType::kUint4, {}, {0x0f}));
  nibbles.expect_value(0, make_raw_tensor(DType::kUint4, {3}, {0x1f, 0x02}));
  nibbles.run();
  OpTester strings("Pad", 13);
  strings.input<std::string>({1}, {"a"}).input<int64_t>({2}, {1, 0}).input<std::string>({}, {"-"});
  strings.expect<std::string>(0, {2}, {"-", "a"});
  strings.run();
}

TEST(Pad, OfNoElementsNeedsNoMemoryForItsOtherDims) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  OpTester t("Pad", 13);
  t.input<float>({0, 1}, {}).input<int64_t>({4}, {0, kHuge, 0, 0});
  t.expect<float>(0, {0, kHuge + 1}, {}).run();
  OpTester cut("Pad", 13);
  cut.input<float>({1, 2}, {1, 2}).input<int64_t>({4}, {0, INT64_MIN, 0, INT64_MAX});
  cut.expect<float>(0, {1, 1}, {0}).run();
}

TEST(Pad, RefusesHostilePads) {
  OpTester huge("Pad", 13);
  huge.input<float>({1}, {1}).input<int64_t>({2}, {INT64_MAX, 1}).fails("cannot be padded");
  OpTester wide("Pad", 13);
  wide.input<float>({1}, {1}).input<int64_t>({2}, {INT64_MAX / 2, 1}).fails("too large");
  OpTester negative("Pad", 13);
  negative.input<float>({1}, {1}).input<int64_t>({2}, {-1, -1}).fails("cannot be padded");
  OpTester lowest("Pad", 13);
  lowest.input<float>({1}, {1}).input<int64_t>({2}, {INT64_MIN, 0}).fails("cannot be padded");
  OpTester length("Pad", 13);
  length.input<float>({1}, {1}).input<int64_t>({1}, {1}).fails("1 entries, expected 2");
  OpTester mode("Pad", 13);
  mode.attr("mode", "wrap").input<float>({1}, {1}).input<int64_t>({2}, {0, 0}).fails("'wrap'");
  OpTester empty("Pad", 13);
  empty.attr("mode", "edge").input<float>({0}, {}).input<int64_t>({2}, {1, 0}).fails("nothing is");
}

}  // namespace
}  // namespace folio
