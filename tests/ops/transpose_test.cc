#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/op_tester.h"

namespace folio {
namespace {

TEST(Transpose, ReversesByDefault) {
  OpTester t("Transpose", 13);
  t.input<float>({2, 3}, {0, 1, 2, 3, 4, 5}).expect<float>(0, {3, 2}, {0, 3, 1, 4, 2, 5});
  t.expect_inferred(0, "tensor(float)[3,2]");
  t.run();
}

// Every order of three axes, for an element of each size, against the definition.
template <typename T>
void check_all_orders(const std::vector<int64_t>& dims) {
  std::vector<T> values(static_cast<size_t>(dims[0] * dims[1] * dims[2]));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i % 251);
  std::vector<int64_t> perm = {0, 1, 2};
  do {
    std::vector<T> expected;
    int64_t i[3] = {};
    const auto p = [&](size_t k) { return static_cast<size_t>(perm[k]); };
    for (i[p(0)] = 0; i[p(0)] < dims[p(0)]; ++i[p(0)]) {
      for (i[p(1)] = 0; i[p(1)] < dims[p(1)]; ++i[p(1)]) {
        for (i[p(2)] = 0; i[p(2)] < dims[p(2)]; ++i[p(2)]) {
          expected.push_back(values[static_cast<size_t>((i[0] * dims[1] + i[1]) * dims[2] + i[2])]);
        }
      }
    }
    OpTester t("Transpose", 13);
    t.threads(2);
    t.attr_ints("perm", perm).input<T>({dims[0], dims[1], dims[2]}, values);
    t.expect<T>(0, {dims[p(0)], dims[p(1)], dims[p(2)]}, expected);
    t.run();
  } while (std::next_permutation(perm.begin(), perm.end()));
}

// Short sides and long ones; images of few channels, more of their pixels than a piece has.
TEST(Transpose, MovesElementsOfEverySize) {
  const std::vector<int64_t> sizes[] = {{3, 70, 5}, {2, 5000, 3}, {1, 9001, 4}, {2, 33, 4130}};
  for (const std::vector<int64_t>& dims : sizes) {
    check_all_orders<uint8_t>(dims);
    check_all_orders<int16_t>(dims);
    check_all_orders<float>(dims);
    check_all_orders<double>(dims);
  }
}

TEST(Transpose, MovesStringsAndFourBitElements) {
  OpTester strings("Transpose", 1);
  strings.input<std::string>({2, 2}, {"a", "b", "c", "d"});
  strings.expect<std::string>(0, {2, 2}, {"a", "c", "b", "d"});
  strings.run();
  OpTester nibbles("Transpose", 21);
  nibbles.input_value(make_raw_tensor(DType::kUint4, {3, 1, 1}, {0x21, 0x03}));
  nibbles.expect_value(0, make_raw_tensor(DType::kUint4, {1, 1, 3}, {0x21, 0x03}));
  nibbles.run();
  OpTester square("Transpose", 21);
  square.input_value(make_raw_tensor(DType::kInt4, {2, 2}, {0xba, 0xdc}));
  square.expect_value(0, make_raw_tensor(DType::kInt4, {2, 2}, {0xca, 0xdb}));
  square.run();
}

TEST(Transpose, TakesScalarsAndEmptyTensors) {
  OpTester scalar("Transpose", 13);
  scalar.input<float>({}, {1}).expect<float>(0, {}, {1});
  scalar.run();
  OpTester empty("Transpose", 13);
  empty.input<float>({2, 0}, {}).expect<float>(0, {0, 2}, {});
  empty.run();
}

TEST(Transpose, RefusesWhatIsNoPermutation) {
  OpTester twice("Transpose", 13);
  twice.attr_ints("perm", {0, 0}).input<float>({1, 1}, {1}).fails("given twice");
  OpTester length("Transpose", 13);
  length.attr_ints("perm", {0}).input<float>({1, 1}, {1}).fails("perm has 1 entries, expected 2");
  OpTester outside("Transpose", 13);
  outside.attr_ints("perm", {0, 2}).input<float>({1, 1}, {1}).fails("axis 2 is outside");
}

}  // namespace
}  // namespace folio
