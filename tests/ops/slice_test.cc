#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

const std::vector<float> kEight = {1, 2, 3, 4, 5, 6, 7, 8};

TEST(Slice, TakesStepsAndNegativePlaces) {
  OpTester t("Slice", 13);
  t.input<float>({2, 4}, kEight).input<int64_t>({2}, {1, 0}).input<int64_t>({2}, {2, 3});
  t.input<int64_t>({2}, {0, 1}).input<int64_t>({2}, {1, 2}).expect<float>(0, {1, 2}, {5, 7});
  t.run();
  OpTester defaults("Slice", 10);
  defaults.input<float>({2, 4}, kEight).input<int64_t>({2}, {0, 1});
  defaults.input<int64_t>({2}, {-1, 1000}).expect<float>(0, {1, 3}, {2, 3, 4});
  defaults.run();
}

TEST(Slice, TakesEverySecondOfRowsOfEveryLength) {
  for (int64_t n = 1; n <= 40; ++n) {
    std::vector<float> x;
    std::vector<float> want;
    for (int64_t i = 0; i < 3 * n; ++i) x.push_back(static_cast<float>(i));
    for (int64_t i = 0; i < 3 * n; ++i) {
      if (i % n % 2 == 0) want.push_back(static_cast<float>(i));
    }
    OpTester t("Slice", 13);
    t.input<float>({3, n}, x).input<int64_t>({1}, {0}).input<int64_t>({1}, {n});
    t.input<int64_t>({1}, {1}).input<int64_t>({1}, {2});
    t.expect<float>(0, {3, (n + 1) / 2}, want).run();
  }
}

// Of images with channels last, which threads share.
template <typename T>
void check_channels(int64_t pixels) {
  for (int64_t channels = 2; channels <= 5; ++channels) {
    std::vector<T> x;
    for (int64_t i = 0; i < pixels * channels; ++i) x.push_back(static_cast<T>(i * 7));
    for (int64_t c = 0; c < channels; ++c) {
      std::vector<T> want;
      for (int64_t i = 0; i < pixels; ++i) want.push_back(x[static_cast<size_t>(i * channels + c)]);
      OpTester t("Slice", 13);
      t.threads(2).input<T>({pixels, channels}, x);
      t.input<int64_t>({1}, {c}).input<int64_t>({1}, {c + 1}).input<int64_t>({1}, {1});
      t.expect<T>(0, {pixels, 1}, want).run();
    }
  }
}

TEST(Slice, TakesOneChannelOfPixels) {
  for (const int64_t pixels : {1, 15, 16, 17, 70000}) {
    check_channels<uint8_t>(pixels);
    check_channels<int16_t>(pixels);
    check_channels<float>(pixels);
  }
}

TEST(Slice, RunsBackwards) {
  OpTester t("Slice", 13);
  t.input<float>({4}, {1, 2, 3, 4}).input<int64_t>({1}, {-1}).input<int64_t>({1}, {INT64_MIN});
  t.input<int64_t>({1}, {0}).input<int64_t>({1}, {-1}).expect<float>(0, {4}, {4, 3, 2, 1});
  t.run();
  OpTester some("Slice", 13);
  some.input<float>({2, 4}, kEight).constant<int32_t>({1}, {20}).constant<int32_t>({1}, {0});
  some.constant<int32_t>({1}, {-1}).constant<int32_t>({1}, {-2});
  some.expect<float>(0, {2, 2}, {4, 2, 8, 6});
  some.run();
}

TEST(Slice, TakesAttributesBeforeOpset10) {
  OpTester t("Slice", 1);
  t.attr_ints("starts", {0, 1}).attr_ints("ends", {1, -1}).input<float>({2, 4}, kEight);
  t.expect<float>(0, {1, 2}, {2, 3}).expect_inferred(0, "tensor(float)[1,2]");
  t.run();
  OpTester axes("Slice", 1);
  axes.attr_ints("starts", {2}).attr_ints("ends", {9}).attr_ints("axes", {1});
  axes.input<float>({2, 4}, kEight).expect<float>(0, {2, 2}, {3, 4, 7, 8});
  axes.run();
}

struct Case {
  int64_t start, end, step;
  std::vector<int64_t> expected;
};

// Of 0 1 2 3 4, each with the bounds known at load and not. Backwards a start before the first
// element is that element: NumPy alone takes none.
TEST(Slice, ClampsPlacesToTheDim) {
  const Case cases[] = {
      {0, 5, 1, {0, 1, 2, 3, 4}},
      {1, INT64_MAX, 1, {1, 2, 3, 4}},
      {-2, INT64_MAX, 1, {3, 4}},
      {-9, 3, 1, {0, 1, 2}},
      {3, 2, 1, {}},
      {5, 9, 1, {}},
      {0, -1, 2, {0, 2}},
      {4, INT64_MIN, -2, {4, 2, 0}},
      {1, 4, -1, {}},
      {-9, INT64_MIN, -1, {0}},
      {-6, -100, -2, {0}},
      {INT64_MIN, INT64_MIN, -1, {0}},
      {-9, 0, -1, {}},
      {9, INT64_MIN, -1, {4, 3, 2, 1, 0}},
      {0, 5, INT64_MAX, {0}},
      {4, INT64_MIN, INT64_MIN, {4}},
      {1, INT32_MAX, 3, {1, 4}},
      {-4, -1, 1, {1, 2, 3}},
      {INT64_MIN, INT64_MAX, 1, {0, 1, 2, 3, 4}},
      {INT64_MIN, -4, 1, {0}},
      {2, -1, 1, {2, 3}},
  };
  for (const Case& c : cases) {
    for (const bool constant : {true, false}) {
      OpTester t("Slice", 13);
      t.input<int64_t>({5}, {0, 1, 2, 3, 4});
      const std::vector<int64_t> numbers[] = {{c.start}, {c.end}, {0}, {c.step}};
      for (const auto& number : numbers) {
        constant ? t.constant<int64_t>({1}, number) : t.input<int64_t>({1}, number);
      }
      t.expect<int64_t>(0, {static_cast<int64_t>(c.expected.size())}, c.expected);
      SCOPED_TRACE(cat(c.start, ":", c.end, ":", c.step));
      t.run();
    }
  }
}

TEST(Slice, OfNoElementsTakesNoneEitherWay) {
  for (const int64_t step : {1, -1, -2}) {
    OpTester t("Slice", 13);
    t.input<float>({0}, {}).input<int64_t>({1}, {-3}).input<int64_t>({1}, {INT64_MIN});
    t.input<int64_t>({1}, {0}).input<int64_t>({1}, {step}).expect<float>(0, {0}, {}).run();
  }
}

TEST(Slice, SymbolicStartIsInferredFromTheEnd) {
  OpTester t("Slice", 13);
  t.input<float>({2, 4}, kEight).input<int64_t>({1}, {3}).constant<int64_t>({1}, {INT64_MAX});
  t.constant<int64_t>({1}, {1}).expect<float>(0, {2, 1}, {4, 8});
  t.run();
}

TEST(Slice, RefusesStepZeroAndBadAxes) {
  OpTester zero("Slice", 13);
  zero.input<float>({8}, kEight).input<int64_t>({1}, {0}).input<int64_t>({1}, {1});
  zero.input<int64_t>({1}, {0}).input<int64_t>({1}, {0}).fails("step is 0");
  OpTester axis("Slice", 13);
  axis.input<float>({8}, kEight).input<int64_t>({1}, {0}).input<int64_t>({1}, {1});
  axis.input<int64_t>({1}, {1}).fails("axis 1 is outside");
  OpTester lengths("Slice", 13);
  lengths.input<float>({8}, kEight).input<int64_t>({1}, {0}).input<int64_t>({2}, {1, 1});
  lengths.fails("entries");
  OpTester type("Slice", 13);
  type.input<float>({8}, kEight).input<float>({1}, {0}).input<int64_t>({1}, {1}).fails("is float");
}

TEST(Slice, MissesItsAttributes) {
  OpTester t("Slice", 1);
  t.attr_ints("starts", {0}).input<float>({2}, {1, 2});
  t.outputs(1).fails("'ends' is required but missing");
}

}  // namespace
}  // namespace folio
