#include <gtest/gtest.h>

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

}  // namespace
}  // namespace folio
