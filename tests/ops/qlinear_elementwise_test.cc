#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

OpTester binary(const char* type) {
  OpTester t(type, 1, "com.microsoft");
  t.input<uint8_t>({2}, {10, 20}).input<float>({}, {0.5F}).input<uint8_t>({}, {10});
  t.input<uint8_t>({1}, {4}).input<float>({}, {1}).input<uint8_t>({}, {2});
  t.input<float>({}, {0.5F}).input<uint8_t>({}, {1});
  return t;
}

TEST(QLinearAdd, AddsWhatTheBytesMean) {
  binary("QLinearAdd").expect<uint8_t>(0, {2}, {5, 15}).run();
}

TEST(QLinearMul, MultipliesWhatTheBytesMean) {
  binary("QLinearMul").expect<uint8_t>(0, {2}, {1, 21}).run();
}

TEST(QLinearAdd, MixedTypesAreAnError) {
  OpTester t("QLinearAdd", 1, "com.microsoft");
  t.input<uint8_t>({1}, {1}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<int8_t>({1}, {1}).input<float>({}, {1}).input<int8_t>({}, {0});
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.outputs(1).fails("int8");
}

TEST(QLinearSigmoid, OfZeroIsAHalf) {
  OpTester t("QLinearSigmoid", 1, "com.microsoft");
  t.input<int8_t>({2}, {-128, 0}).input<float>({}, {1}).input<int8_t>({}, {0});
  t.input<float>({}, {1.0F / 256}).input<int8_t>({}, {-128});
  t.expect<int8_t>(0, {2}, {-128, 0});
  t.run();
}

TEST(QLinearLeakyRelu, ScalesWhatIsNegative) {
  OpTester t("QLinearLeakyRelu", 1, "com.microsoft");
  t.attr("alpha", 0.5F);
  t.input<int8_t>({2}, {-4, 4}).input<float>({}, {1}).input_absent().input<float>({}, {1});
  t.expect<int8_t>(0, {2}, {-2, 4});
  t.run();
}

TEST(QLinearSoftmax, SplitsEvenly) {
  OpTester t("QLinearSoftmax", 1, "com.microsoft");
  t.attr("axis", 0).attr("opset", 13);
  t.input<uint8_t>({2, 2}, {7, 0, 7, 255}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<float>({}, {1.0F / 256}).input<uint8_t>({}, {0});
  t.expect<uint8_t>(0, {2, 2}, {128, 0, 128, 255});
  t.run();
}

TEST(QLinearConcat, RequantizesEachPart) {
  OpTester t("QLinearConcat", 1, "com.microsoft");
  t.attr("axis", 1);
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<uint8_t>({2, 1}, {2, 4}).input<float>({}, {0.5F}).input<uint8_t>({}, {0});
  t.input<uint8_t>({2, 2}, {5, 6, 7, 8}).input<float>({}, {2}).input<uint8_t>({}, {4});
  t.expect<uint8_t>(0, {2, 3}, {1, 2, 4, 2, 6, 8});
  t.run();
}

// By a table or one by one: each code becomes the nearest, ties to even.
TEST(QLinearConcat, PartsOfAnySizeHaveTheSameCodes) {
  constexpr float kScale = 0.03F;
  std::vector<uint8_t> codes(256);
  std::iota(codes.begin(), codes.end(), uint8_t{0});
  std::vector<uint8_t> expected;
  for (const uint8_t code : codes) {
    const float value = static_cast<float>(code - 100) * kScale;
    const float nearest = std::nearbyint(value / 0.05F) + 90;
    expected.push_back(static_cast<uint8_t>(std::clamp(nearest, 0.0F, 255.0F)));
  }
  for (const int64_t first : {1, 100, 127, 128, 129, 200}) {
    OpTester t("QLinearConcat", 1, "com.microsoft");
    t.attr("axis", 0);
    t.input<float>({}, {0.05F}).input<uint8_t>({}, {90});
    t.input<uint8_t>({first}, {codes.begin(), codes.begin() + first});
    t.input<float>({}, {kScale}).input<uint8_t>({}, {100});
    t.input<uint8_t>({256 - first}, {codes.begin() + first, codes.end()});
    t.input<float>({}, {kScale}).input<uint8_t>({}, {100});
    t.expect<uint8_t>(0, {256}, expected);
    t.run();
  }
}

TEST(QLinearConcat, PartsOfOtherRankAreAnError) {
  OpTester t("QLinearConcat", 1, "com.microsoft");
  t.attr("axis", 0);
  t.input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<uint8_t>({1, 1}, {2}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.input<uint8_t>({1}, {2}).input<float>({}, {1}).input<uint8_t>({}, {0});
  t.outputs(1).fails("does not fit the first");
}

}  // namespace
}  // namespace folio
