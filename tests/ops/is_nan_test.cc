#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

struct Float8 {
  DType type;
  uint8_t nan, infinity;  // 0: there is none
};

TEST(IsNan, KnowsFloat8) {
  // e4m3fn, e4m3fnuz, e5m2, e5m2fnuz: 1.0 is 0x38, 0x40, 0x3c, 0x40.
  const Float8 all[] = {{DType::kFloat8E4M3FN, 0x7f, 0},
                        {DType::kFloat8E4M3FNUZ, 0x80, 0},
                        {DType::kFloat8E5M2, 0x7e, 0x7c},
                        {DType::kFloat8E5M2FNUZ, 0x80, 0}};
  for (const Float8& each : all) {
    const std::vector<uint8_t> codes = {0x38, each.nan, each.infinity};
    OpTester nan("IsNaN", 20);
    nan.input_value(Value(make_raw_tensor(each.type, {3}, codes)));
    nan.expect<bool>(0, {3}, {false, true, false}).run();
    OpTester infinite("IsInf", 20);
    infinite.input_value(Value(make_raw_tensor(each.type, {3}, codes)));
    infinite.expect<bool>(0, {3}, {false, false, each.infinity != 0}).run();
  }
}

// Rows of any length, with the infinities that are asked for.
TEST(IsInf, DetectsWhatIsAskedFor) {
  std::vector<float> x;
  const float kinds[] = {1, INFINITY, -INFINITY, NAN};
  for (int i = 0; i < 45; ++i) x.push_back(kinds[i % 4]);
  for (const bool positive : {false, true}) {
    for (const bool negative : {false, true}) {
      std::vector<bool> want;
      for (int i = 0; i < 45; ++i) {
        want.push_back((i % 4 == 1 && positive) || (i % 4 == 2 && negative));
      }
      OpTester t("IsInf", 10);
      t.attr("detect_positive", positive ? 1 : 0).attr("detect_negative", negative ? 1 : 0);
      t.input<float>({45}, x).expect<bool>(0, {45}, want).run();
      for (const DType dtype : {DType::kDouble, DType::kFloat16, DType::kBfloat16}) {
        OpTester other("IsInf", 20);
        other.attr("detect_positive", positive ? 1 : 0).attr("detect_negative", negative ? 1 : 0);
        other.input_as(dtype, {45}, std::vector<double>(x.begin(), x.end()));
        other.expect<bool>(0, {45}, want).run();
      }
    }
  }
}

TEST(IsNan, RefusesScalesAndCodesOfFourBits) {
  for (const DType dtype : {DType::kFloat8E8M0, DType::kFloat4E2M1}) {
    OpTester t("IsNaN", 20);
    t.input_value(Value(make_raw_tensor(dtype, {2}, {1, 1})));
    t.outputs(1).fails("does not take");
  }
}

// Rows of any length.
TEST(IsNan, KnowsNanAtAnyPlace) {
  std::vector<float> x(45, 1);
  std::vector<bool> want(45);
  for (size_t i = 0; i < x.size(); i += 3) {
    x[i] = i % 2 == 0 ? NAN : -NAN;
    want[i] = true;
  }
  x[1] = INFINITY;
  OpTester t("IsNaN", 20);
  t.input<float>({45}, x).expect<bool>(0, {45}, want).run();
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    OpTester half("IsNaN", 20);
    half.input_as(dtype, {45}, std::vector<double>(x.begin(), x.end()));
    half.expect<bool>(0, {45}, want).run();
  }
  std::vector<double> wide(x.begin(), x.end());
  wide[0] = std::bit_cast<double>(uint64_t{0x7ff0000000000001});  // no bit of the upper half
  OpTester doubles("IsNaN", 20);
  doubles.input<double>({45}, wide).expect<bool>(0, {45}, want).run();
}

}  // namespace
}  // namespace folio
