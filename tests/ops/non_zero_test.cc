#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(NonZero, GivesAColumnOfIndicesForEachElement) {
  OpTester t("NonZero", 13);
  t.input<bool>({2, 2}, {true, false, true, true});
  t.expect<int64_t>(0, {2, 3}, {0, 1, 1, 0, 0, 1}).expect_inferred(0, "tensor(int64)[2,?]").run();
}

TEST(NonZero, CountsNanButNotMinusZero) {
  OpTester t("NonZero", 9);
  t.input<float>({4}, {-0.0F, std::nanf(""), 0, 1e-45F}).expect<int64_t>(0, {1, 2}, {1, 3}).run();
}

TEST(NonZero, TakesStringsScalarsAndNothing) {
  OpTester strings("NonZero", 13);
  strings.input<std::string>({1, 2}, {"", "a"}).expect<int64_t>(0, {2, 1}, {0, 1}).run();
  OpTester scalar("NonZero", 13);
  scalar.input<int32_t>({}, {7}).expect<int64_t>(0, {0, 1}, {}).run();
  OpTester empty("NonZero", 13);
  empty.input<float>({0, 3}, {}).expect<int64_t>(0, {2, 0}, {}).run();
}

TEST(NonZero, RefusesTypesWithoutAZero) {
  OpTester t("NonZero", 13);
  t.input_value(make_raw_tensor(DType::kFloat8E8M0, {1}, {1})).fails("float8e8m0");
}

TEST(NonZero, BytesOfABoolOtherThanZeroAreAllTrue) {
  OpTester t("NonZero", 13);
  t.input_value(make_raw_tensor(DType::kBool, {4}, {16, 0, 1, 255}));
  t.expect<int64_t>(0, {1, 3}, {0, 2, 3}).run();
}

TEST(NonZero, OfComplexNumbersCountsThoseWithAPartThatIsNotZero) {
  // 0, i, 1, -0 - 0 i
  const std::vector<float> parts = {0, 0, 0, 1, 1, 0, -0.0F, -0.0F};
  std::vector<uint8_t> bytes(parts.size() * sizeof(float));
  std::memcpy(bytes.data(), parts.data(), bytes.size());
  OpTester t("NonZero", 13);
  t.input_value(make_raw_tensor(DType::kComplex64, {4}, bytes));
  t.expect<int64_t>(0, {1, 2}, {1, 2}).run();
}

}  // namespace
}  // namespace folio
