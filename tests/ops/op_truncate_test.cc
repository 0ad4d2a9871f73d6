// Floats to integers: blocks give the bits that a clamp of each element alone gives.
#include "core/ops/op_truncate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace folio {
namespace {

// A clamp in steps; NaN is 0.
template <typename To, typename From>
To clamped(From value) {
  using Limits = std::numeric_limits<To>;
  if (std::isnan(value)) return 0;
  if (value >= std::ldexp(From{1}, Limits::digits)) return Limits::max();
  if (value < static_cast<From>(Limits::min())) return Limits::min();
  return static_cast<To>(value);
}

template <typename To, typename From>
To expected(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return std::isnan(value) || value < 0 || value > 0;
  } else if constexpr (sizeof(To) < 4) {
    return static_cast<To>(static_cast<uint32_t>(clamped<int32_t>(value)) & 0xffffU);
  } else if constexpr (std::is_unsigned_v<To>) {
    return value < 0 ? static_cast<To>(clamped<int64_t>(value)) : clamped<To>(value);
  } else {
    return clamped<To>(value);
  }
}

// Around every type's limits, numbers next to them, halves, denormals, infinities and NaN.
template <typename From>
std::vector<From> edges() {
  constexpr From kInf = std::numeric_limits<From>::infinity();
  std::vector<From> values = {0, std::numeric_limits<From>::denorm_min(),
                              std::numeric_limits<From>::min(), std::numeric_limits<From>::max(),
                              kInf};
  for (int bits = 0; bits <= 65; ++bits) {
    const From power = std::ldexp(From{1}, bits);
    for (const From step : {From{0}, From{0.5}, From{1}, From{1.5}}) {
      for (const From near : {power - step, power + step}) {
        values.insert(values.end(),
                      {near, std::nextafter(near, kInf), std::nextafter(near, -kInf)});
      }
    }
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<From>::quiet_NaN());
  values.push_back(-std::numeric_limits<From>::quiet_NaN());
  return values;
}

// Values at an address that is not aligned.
template <typename From, typename To>
void expect_blocks(const std::vector<From>& values) {
  const auto n = static_cast<int64_t>(values.size());
  std::vector<uint8_t> from(values.size() * sizeof(From) + 1);
  std::vector<uint8_t> to(values.size() * sizeof(To) + 3, 0xa5);
  std::memcpy(from.data() + 1, values.data(), values.size() * sizeof(From));
  const int64_t done = truncate_blocks<From, To>(from.data() + 1, to.data() + 3, n);
  ASSERT_LE(done, n);
  ASSERT_LT(n - done, done == 0 ? n + 1 : kTruncateBlock);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    const To want = expected<To>(values[at]);
    const To one = truncate<To>(values[at]);
    EXPECT_EQ(std::memcmp(&one, &want, sizeof(To)), 0) << "alone, of " << values[at];
    const uint8_t* const found = to.data() + 3 + at * sizeof(To);
    if (i < done) {
      EXPECT_EQ(std::memcmp(found, &want, sizeof(To)), 0) << "in a block, of " << values[at];
    } else {
      EXPECT_EQ(*found, 0xa5) << "written behind the blocks";
    }
  }
}

template <typename From, typename To>
void expect_all() {
  const std::vector<From> all = edges<From>();
  expect_blocks<From, To>(all);
  for (int64_t n = 0; n <= 2 * kTruncateBlock + 1; ++n) {
    expect_blocks<From, To>(std::vector<From>(all.begin(), all.begin() + n));
  }
  // Each at a place of its own in a block of small numbers, whose way it changes.
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<From> mixed(kTruncateBlock);
    for (size_t k = 0; k < mixed.size(); ++k) mixed[k] = static_cast<From>(k) * 37 - From{200.5};
    mixed[i % mixed.size()] = all[i];
    expect_blocks<From, To>(mixed);
  }
}

template <typename To>
void expect_from_floats() {
  SCOPED_TRACE(dtype_name(dtype_of<To>()));
  expect_all<float, To>();
  expect_all<double, To>();
}

TEST(Truncate, BlocksAreTheClampOfEachElement) {
  expect_from_floats<bool>();
  expect_from_floats<int8_t>();
  expect_from_floats<uint8_t>();
  expect_from_floats<int16_t>();
  expect_from_floats<uint16_t>();
  expect_from_floats<int32_t>();
  expect_from_floats<uint32_t>();
  expect_from_floats<int64_t>();
  expect_from_floats<uint64_t>();
}

}  // namespace
}  // namespace folio
