#include <gtest/gtest.h>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(BiasGelu, AddsTheBiasFirst) {
  OpTester t("BiasGelu", 1, "com.microsoft");
  t.input<float>({2, 2}, {0.5f, 0, 0, -1});
  t.input<float>({2}, {0.5f, 0});
  t.expect<float>(0, {2, 2}, {0.8413447f, 0, 0.3457312f, -0.1586553f}, 1e-6);
  t.run();
}

TEST(BiasGelu, TakesDoubles) {
  OpTester t("BiasGelu", 1, "com.microsoft");
  t.input<double>({2, 2}, {0.5, 0, 0, -1});
  t.input<double>({2}, {0.5, 0});
  t.expect<double>(0, {2, 2}, {0.8413447460685429, 0, 0.34573123063700655, -0.15865525393145707},
                   1e-15);
  t.run();
}

TEST(FastGelu, TakesDoublesWithAndWithoutBias) {
  for (const bool bias : {false, true}) {
    OpTester t("FastGelu", 1, "com.microsoft");
    t.input<double>({1, 1}, {bias ? -1.0 : 1.0});
    if (bias) t.input<double>({1}, {2});
    t.expect<double>(0, {1, 1}, {0.8411919906082767}, 1e-15);
    t.run();
  }
}

TEST(BiasAdd, RefusesDoubles) {
  OpTester t("BiasAdd", 1, "com.microsoft");
  for (int i = 0; i < 3; ++i) t.input<double>({1}, {1});
  t.outputs(1).fails("double");
}

TEST(FastGelu, WorksWithAndWithoutBias) {
  for (const bool bias : {false, true}) {
    OpTester t("FastGelu", 1, "com.microsoft");
    t.input<float>({1, 1}, {bias ? -1.0f : 1.0f});
    if (bias) t.input<float>({1}, {2});
    t.expect<float>(0, {1, 1}, {0.841192f}, 1e-6);
    t.run();
  }
}

TEST(BiasAdd, AddsBiasAndSkip) {
  OpTester t("BiasAdd", 1, "com.microsoft");
  t.input<float>({1, 2, 2}, {1, 2, 3, 4});
  t.input<float>({2}, {10, 20});
  t.input<float>({1, 2, 2}, {100, 100, 200, 200});
  t.expect<float>(0, {1, 2, 2}, {111, 122, 213, 224});
  t.run();
}

TEST(BiasSplitGelu, GatesTheFirstHalfByTheSecond) {
  OpTester t("BiasSplitGelu", 1, "com.microsoft");
  t.input<float>({1, 1, 4}, {1, 5, 0, 0});
  t.input<float>({4}, {1, 0, 1, 0});
  t.expect<float>(0, {1, 1, 2}, {1.6826894f, 0}, 1e-6);
  t.run();
}

TEST(BiasGelu, ABiasOfAnotherSizeIsRefused) {
  OpTester t("BiasGelu", 1, "com.microsoft");
  t.input<float>({1, 2}, {1, 2});
  t.input<float>({3}, {1, 2, 3});
  t.outputs(1).fails("expected 2 elements");
}

}  // namespace
}  // namespace folio
