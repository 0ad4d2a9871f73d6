#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Unique, FindsElementsInOrderOrByPlace) {
  OpTester sorted("Unique", 11);
  sorted.input<float>({6}, {2, 1, 1, 3, 4, 3}).expect<float>(0, {4}, {1, 2, 3, 4});
  sorted.expect<int64_t>(1, {4}, {1, 0, 3, 4}).expect<int64_t>(2, {6}, {1, 0, 0, 2, 3, 2});
  sorted.expect<int64_t>(3, {4}, {2, 1, 2, 1}).run();
  OpTester placed("Unique", 11);
  placed.attr("sorted", 0).input<std::string>({2, 2}, {"b", "a", "a", "b"});
  placed.expect<std::string>(0, {2}, {"b", "a"}).expect<int64_t>(1, {2}, {0, 1});
  placed.expect<int64_t>(2, {4}, {0, 1, 1, 0}).run();
}

TEST(Unique, TakesEntriesOfAnAxisAndNan) {
  OpTester rows("Unique", 11);
  rows.attr("axis", 0)
      .input<int8_t>({3, 2}, {2, 3, 1, 0, 2, 3})
      .expect<int8_t>(0, {2, 2}, {1, 0, 2, 3});
  rows.run();
  OpTester nan("Unique", 11);
  nan.input<float>({3}, {NAN, 1, NAN}).expect<float>(0, {2}, {1, NAN}).run();
  OpTester zeros("Unique", 11);  // equal: the first stands for both
  zeros.input<float>({4}, {-0.0F, 1, 0.0F, 1}).expect<float>(0, {2}, {-0.0F, 1});
  zeros.expect<int64_t>(1, {2}, {0, 1}).expect<int64_t>(2, {4}, {0, 1, 0, 1}).run();
  EXPECT_TRUE(std::signbit(zeros.output_values<float>(0)[0]));
  OpTester column("Unique", 11);
  column.attr("axis", 0).input<uint16_t>({4, 1}, {7, 65535, 7, 0});
  column.expect<uint16_t>(0, {3, 1}, {0, 7, 65535}).expect<int64_t>(2, {4}, {1, 2, 1, 0}).run();
  OpTester empty("Unique", 11);
  empty.input<float>({0}, {}).expect<float>(0, {0}, {}).run();
  OpTester hollow("Unique", 11);
  hollow.attr("axis", 0).input<float>({3, 0}, {}).expect<float>(0, {1, 0}, {});
  hollow.expect<int64_t>(1, {1}, {0}).expect<int64_t>(2, {3}, {0, 0, 0});
  hollow.expect<int64_t>(3, {1}, {3}).run();
}

// Of numbers with and without a sign, in rows as alone.
template <typename T>
void check_order(const std::vector<T>& ascending) {
  const auto n = static_cast<int64_t>(ascending.size());
  std::vector<T> x(ascending.rbegin(), ascending.rend());
  x.insert(x.end(), ascending.begin(), ascending.end());
  OpTester numbers("Unique", 11);
  numbers.input<T>({2 * n}, x).template expect<T>(0, {n}, ascending).run();
  std::vector<T> pairs, ordered;
  for (const T& value : x) pairs.insert(pairs.end(), {ascending[0], value});
  for (const T& value : ascending) ordered.insert(ordered.end(), {ascending[0], value});
  OpTester rows("Unique", 11);
  rows.attr("axis", 0).input<T>({2 * n, 2}, pairs);
  rows.template expect<T>(0, {n, 2}, ordered).run();
}

// More than are sorted one beside the other: by first place, with counts.
TEST(Unique, OfComMicrosoftKeepsTheOrderOfFirstPlaces) {
  OpTester t("Unique", 1, "com.microsoft");
  t.input<float>({6}, {2, 1, 1, 3, 4, 3});
  t.expect<float>(0, {4}, {2, 1, 3, 4}).expect<int64_t>(1, {6}, {0, 1, 1, 2, 3, 2});
  t.expect<int64_t>(2, {4}, {1, 2, 2, 1}).expect_inferred(1, "tensor(int64)[6]");
  t.run();
  OpTester none("Unique", 1, "com.microsoft");
  none.input<float>({0}, {}).expect<float>(0, {0}, {});
  none.expect<int64_t>(1, {0}, {}).expect<int64_t>(2, {0}, {}).run();
  OpTester rank("Unique", 1, "com.microsoft");
  rank.input<float>({1, 2}, {1, 2}).outputs(3).fails("input 0");
}

TEST(Unique, SortsMany) {
  std::vector<float> x, want;
  std::vector<int64_t> first, inverse, counts;
  for (int64_t i = 0; i < 3000; ++i) x.push_back(static_cast<float>((i * 7919) % 1000 - 500) / 8);
  for (int64_t v = 0; v < 1000; ++v) {
    want.push_back(static_cast<float>(v - 500) / 8);
    first.push_back(std::find(x.begin(), x.end(), want.back()) - x.begin());
    counts.push_back(3);
  }
  for (int64_t i = 0; i < 3000; ++i) inverse.push_back((i * 7919) % 1000);
  OpTester t("Unique", 11);
  t.input<float>({3000}, x).expect<float>(0, {1000}, want).expect<int64_t>(1, {1000}, first);
  t.expect<int64_t>(2, {3000}, inverse).expect<int64_t>(3, {1000}, counts).run();
  OpTester placed("Unique", 11);
  placed.attr("sorted", 0).input<float>({3000}, x);
  placed.expect<float>(0, {1000}, {x.begin(), x.begin() + 1000}).run();
}

TEST(Unique, BytesOfABoolOtherThanZeroAreAllTrue) {
  for (const bool has_axis : {false, true}) {
    OpTester t("Unique", 11);
    if (has_axis) t.attr("axis", 0);
    t.input_value(make_raw_tensor(DType::kBool, {5}, {16, 0, 1, 255, 0}));
    t.expect<int64_t>(1, {2}, {1, 0}).expect<int64_t>(2, {5}, {1, 0, 1, 1, 0});
    t.expect<int64_t>(3, {2}, {2, 3}).run();
  }
}

TEST(Unique, OrdersNumbersOfEveryKind) {
  check_order<int8_t>({-128, -1, 0, 1, 127});
  check_order<int64_t>({INT64_MIN, -1, 0, 1, INT64_MAX});
  check_order<uint64_t>({0, 1, INT64_MAX, uint64_t{1} << 63, UINT64_MAX});
  check_order<float>({-INFINITY, -3.5F, -1e-45F, 0, 1e-45F, 2, INFINITY, NAN});
  check_order<double>({-INFINITY, -1e300, -5e-324, 0, 5e-324, INFINITY, NAN});
  check_order<std::string>({"", "a", "aa", "b"});
}

}  // namespace
}  // namespace folio
