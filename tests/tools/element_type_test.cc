// Elements that the command reads and writes: every type, each where it belongs and nowhere else.
#include "tools/folio/element_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace folio_cli {
namespace {

constexpr FolioElementType kSmall[] = {FOLIO_FLOAT16,        FOLIO_BFLOAT16,   FOLIO_FLOAT8E4M3FN,
                                       FOLIO_FLOAT8E4M3FNUZ, FOLIO_FLOAT8E5M2, FOLIO_FLOAT8E5M2FNUZ,
                                       FOLIO_FLOAT8E8M0,     FOLIO_FLOAT4E2M1, FOLIO_UINT8,
                                       FOLIO_INT8,           FOLIO_UINT4,      FOLIO_INT4,
                                       FOLIO_UINT2,          FOLIO_INT2};

TEST(ElementType, NumbersOfFewBitsAreStoredAsTheyWereRead) {
  for (const FolioElementType type : kSmall) {
    const uint32_t bits = facts_of(type).bits;
    std::vector<std::byte> data(2);
    for (uint32_t pattern = 0; pattern < 1U << bits; ++pattern) {
      store_bits(type, pattern, data.data(), 0);
      EXPECT_EQ(element_bits(type, data.data(), 0), pattern);
      const double number = element_as_double(type, data.data(), 0);
      store_double(type, number, data.data(), 0);
      if (std::isnan(number)) {
        EXPECT_TRUE(std::isnan(element_as_double(type, data.data(), 0)));
      } else {
        EXPECT_EQ(element_bits(type, data.data(), 0), pattern) << facts_of(type).name;
      }
    }
  }
}

// The bytes around an element stay.
TEST(ElementType, ElementsStayWithinTheirBytes) {
  for (int number = FOLIO_FLOAT; number <= FOLIO_INT2; ++number) {
    const auto type = static_cast<FolioElementType>(number);
    if (facts_of(type).bits == 0 || is_complex(type)) continue;
    for (const size_t count : {1U, 2U, 3U, 5U, 8U}) {
      const size_t bytes = packed_bytes(type, count);
      std::vector<std::byte> data(bytes + 16, std::byte{0xa5});
      for (size_t i = 0; i < count; ++i) store_double(type, 1, data.data(), i);
      for (size_t i = 0; i < count; ++i)
        EXPECT_EQ(std::abs(element_as_double(type, data.data(), i)), 1);
      for (size_t i = bytes; i < data.size(); ++i) {
        EXPECT_EQ(data[i], std::byte{0xa5}) << facts_of(type).name << ", " << count;
      }
    }
  }
}

TEST(ElementType, WhatIsTooLargeIsInfinityOrTheLargestNumber) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const struct {
    FolioElementType type;
    double largest, beyond;
  } cases[] = {{FOLIO_FLOAT16, 65504, kInfinity},    {FOLIO_FLOAT8E5M2, 57344, kInfinity},
               {FOLIO_FLOAT8E4M3FN, 448, 448},       {FOLIO_FLOAT8E4M3FNUZ, 240, 240},
               {FOLIO_FLOAT8E5M2FNUZ, 57344, 57344}, {FOLIO_FLOAT4E2M1, 6, 6},
               {FOLIO_FLOAT8E8M0, 0x1p127, 0x1p127}};
  for (const auto& c : cases) {
    std::byte data[2] = {};
    for (const double value : {c.largest, 1e300, kInfinity}) {
      store_double(c.type, value, data, 0);
      EXPECT_EQ(element_as_double(c.type, data, 0), value == c.largest ? c.largest : c.beyond)
          << facts_of(c.type).name;
    }
  }
}

TEST(ElementType, HalvesAreRoundedToEven) {
  std::byte data[2] = {};
  const struct {
    double given, stored;
  } cases[] = {{0.25, 0}, {0.75, 1}, {1.25, 1}, {1.75, 2},
               {2.5, 2},  {3.5, 4},  {-5, -4},  {0.3, 0.5}};
  for (const auto& c : cases) {
    store_double(FOLIO_FLOAT4E2M1, c.given, data, 1);
    EXPECT_EQ(element_as_double(FOLIO_FLOAT4E2M1, data, 1), c.stored) << c.given;
  }
}

}  // namespace
}  // namespace folio_cli
