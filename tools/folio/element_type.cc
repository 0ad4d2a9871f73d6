#include "tools/folio/element_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace folio_cli {

namespace {

constexpr std::array<ElementTypeFacts, 27> kFacts = {{
    {"undefined", 0, nullptr, false},    {"float", 32, "<f4", true},
    {"uint8", 8, "|u1", true},           {"int8", 8, "|i1", true},
    {"uint16", 16, "<u2", true},         {"int16", 16, "<i2", true},
    {"int32", 32, "<i4", true},          {"int64", 64, "<i8", true},
    {"string", 0, nullptr, true},        {"bool", 8, "|b1", true},
    {"float16", 16, "<f2", true},        {"double", 64, "<f8", true},
    {"uint32", 32, "<u4", true},         {"uint64", 64, "<u8", true},
    {"complex64", 64, "<c8", true},      {"complex128", 128, "<c16", true},
    {"bfloat16", 16, "<u2", false},      {"float8e4m3fn", 8, "|u1", false},
    {"float8e4m3fnuz", 8, "|u1", false}, {"float8e5m2", 8, "|u1", false},
    {"float8e5m2fnuz", 8, "|u1", false}, {"uint4", 4, "|u1", false},
    {"int4", 4, "|i1", false},           {"float4e2m1", 4, "|u1", false},
    {"float8e8m0", 8, "|u1", false},     {"uint2", 2, "|u1", false},
    {"int2", 2, "|i1", false},
}};

// What a small float type does with its highest exponent.
enum class Specials { kIeee, kNanOnly, kNegativeZeroIsNan, kNone };

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

constexpr FloatFormat kFloat16 = {5, 10, 15, Specials::kIeee};

bool float_format(FolioElementType type, FloatFormat* out) {
  switch (type) {
    case FOLIO_FLOAT16:
      *out = kFloat16;
      return true;
    case FOLIO_BFLOAT16:
      *out = {8, 7, 127, Specials::kIeee};
      return true;
    case FOLIO_FLOAT8E4M3FN:
      *out = {4, 3, 7, Specials::kNanOnly};
      return true;
    case FOLIO_FLOAT8E4M3FNUZ:
      *out = {4, 3, 8, Specials::kNegativeZeroIsNan};
      return true;
    case FOLIO_FLOAT8E5M2:
      *out = {5, 2, 15, Specials::kIeee};
      return true;
    case FOLIO_FLOAT8E5M2FNUZ:
      *out = {5, 2, 16, Specials::kNegativeZeroIsNan};
      return true;
    case FOLIO_FLOAT4E2M1:
      *out = {2, 1, 1, Specials::kNone};
      return true;
    default:
      return false;
  }
}

double decode(const FloatFormat& f, uint32_t bits) {
  const uint32_t mantissa_mask = (1u << f.mantissa_bits) - 1;
  const uint32_t exponent_mask = (1u << f.exponent_bits) - 1;
  const uint32_t mantissa = bits & mantissa_mask;
  const uint32_t exponent = bits >> f.mantissa_bits & exponent_mask;
  const bool negative = (bits >> (f.mantissa_bits + f.exponent_bits) & 1) != 0;
  const double sign = negative ? -1 : 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (f.specials == Specials::kIeee && exponent == exponent_mask) {
    return mantissa != 0 ? nan : sign * std::numeric_limits<double>::infinity();
  }
  if (f.specials == Specials::kNanOnly && exponent == exponent_mask && mantissa == mantissa_mask) {
    return nan;
  }
  if (f.specials == Specials::kNegativeZeroIsNan && negative && exponent == 0 && mantissa == 0) {
    return nan;
  }
  const uint32_t significand = exponent == 0 ? mantissa : mantissa | (mantissa_mask + 1);
  const int power = static_cast<int>(exponent == 0 ? 1 : exponent) - f.bias - f.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(significand), power);
}

// Powers of two, without sign or zero.
double e8m0(uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
}

uint32_t encode_e8m0(double value) {
  constexpr int kBias = 127;
  constexpr int kLargest = 254;
  if (std::isnan(value)) return 0xff;
  if (value <= 0) return 0;
  const double power = std::isinf(value) ? kLargest : std::nearbyint(std::log2(value)) + kBias;
  return static_cast<uint32_t>(std::clamp(power, 0.0, double{kLargest}));
}

// The largest number, without its sign.
uint32_t largest_bits(const FloatFormat& f) {
  const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  if (f.specials == Specials::kIeee) return all - (1u << f.mantissa_bits);
  return f.specials == Specials::kNanOnly ? all - 1 : all;
}

uint32_t nan_bits(const FloatFormat& f) {
  const uint32_t all = (1u << (f.exponent_bits + f.mantissa_bits)) - 1;
  switch (f.specials) {
    case Specials::kIeee:
      return all - (1u << (f.mantissa_bits - 1)) + 1;  // quiet
    case Specials::kNanOnly:
      return all;
    case Specials::kNegativeZeroIsNan:
      return all + 1;
    default:
      return all;  // there is none: the largest
  }
}

// What is too large becomes infinity, or where there is none the largest number, as a Cast that
// saturates has it.
uint32_t encode(const FloatFormat& f, double value) {
  if (std::isnan(value)) return nan_bits(f);
  const uint32_t largest = largest_bits(f);
  const uint32_t beyond = f.specials == Specials::kIeee ? largest + 1 : largest;
  uint32_t magnitude = 0;
  if (std::isinf(value)) {
    magnitude = beyond;
  } else if (value != 0) {
    int power = 0;
    std::frexp(value, &power);
    const int exponent = std::max(power - 1, 1 - f.bias);  // subnormals share the lowest
    const double units = std::nearbyint(std::ldexp(std::fabs(value), f.mantissa_bits - exponent));
    // A carry out of the mantissa lands in the exponent, where it belongs.
    const int64_t biased = int64_t{exponent + f.bias - 1} << f.mantissa_bits;
    const int64_t bits = biased + static_cast<int64_t>(units);
    magnitude = bits > int64_t{largest} ? beyond : static_cast<uint32_t>(bits);
  }
  const bool has_sign =
      std::signbit(value) && (magnitude != 0 || f.specials != Specials::kNegativeZeroIsNan);
  return magnitude | (has_sign ? 1u : 0u) << (f.exponent_bits + f.mantissa_bits);
}

template <typename T>
T load(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* data, size_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

// Element `index` of `bits` (2 or 4) bits, low bits first.
uint32_t sub_byte(const std::byte* data, size_t index, uint32_t bits) {
  const size_t per_byte = 8 / bits;
  const auto byte = static_cast<uint32_t>(data[index / per_byte]);
  return byte >> (index % per_byte * bits) & ((1u << bits) - 1);
}

int signed_sub_byte(const std::byte* data, size_t index, uint32_t bits) {
  const auto value = static_cast<int>(sub_byte(data, index, bits));
  const int half = 1 << (bits - 1);
  return value >= half ? value - 2 * half : value;
}

void store_sub_byte(std::byte* data, size_t index, uint32_t bits, uint32_t value) {
  const size_t per_byte = 8 / bits;
  const size_t shift = index % per_byte * bits;
  const uint32_t mask = ((1u << bits) - 1) << shift;
  const auto old = static_cast<uint32_t>(data[index / per_byte]);
  data[index / per_byte] = static_cast<std::byte>((old & ~mask) | (value << shift & mask));
}

}  // namespace

const ElementTypeFacts& facts_of(FolioElementType type) {
  const auto number = static_cast<size_t>(type);
  return kFacts[number < kFacts.size() ? number : 0];
}

FolioElementType type_named(const std::string& name) {
  for (size_t i = 1; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<FolioElementType>(i);
  }
  return FOLIO_UNDEFINED;
}

size_t packed_bytes(FolioElementType type, size_t count) {
  const uint32_t bits = facts_of(type).bits;
  if (bits == 0) return 0;
  if (bits >= 8) return count * (bits / 8);
  const size_t per_byte = 8 / bits;
  return count / per_byte + (count % per_byte != 0 ? 1 : 0);
}

bool is_complex(FolioElementType type) {
  return type == FOLIO_COMPLEX64 || type == FOLIO_COMPLEX128;
}

bool is_float(FolioElementType type) {
  FloatFormat ignored;
  return type == FOLIO_FLOAT || type == FOLIO_DOUBLE || type == FOLIO_FLOAT8E8M0 ||
         float_format(type, &ignored);
}

bool is_integer(FolioElementType type) {
  return facts_of(type).bits != 0 && !is_float(type) && !is_complex(type);
}

double element_as_double(FolioElementType type, const std::byte* data, size_t index) {
  FloatFormat format;
  if (float_format(type, &format)) return decode(format, element_bits(type, data, index));
  switch (type) {
    case FOLIO_FLOAT:
      return load<float>(data, index);
    case FOLIO_DOUBLE:
      return load<double>(data, index);
    case FOLIO_COMPLEX64:
      return load<float>(data, 2 * index);
    case FOLIO_COMPLEX128:
      return load<double>(data, 2 * index);
    case FOLIO_UINT8:
    case FOLIO_BOOL:
      return load<uint8_t>(data, index);
    case FOLIO_INT8:
      return load<int8_t>(data, index);
    case FOLIO_UINT16:
      return load<uint16_t>(data, index);
    case FOLIO_INT16:
      return load<int16_t>(data, index);
    case FOLIO_UINT32:
      return load<uint32_t>(data, index);
    case FOLIO_INT32:
      return load<int32_t>(data, index);
    case FOLIO_UINT64:
      return static_cast<double>(load<uint64_t>(data, index));
    case FOLIO_INT64:
      return static_cast<double>(load<int64_t>(data, index));
    case FOLIO_UINT4:
    case FOLIO_UINT2:
      return sub_byte(data, index, facts_of(type).bits);
    case FOLIO_INT4:
    case FOLIO_INT2:
      return signed_sub_byte(data, index, facts_of(type).bits);
    case FOLIO_FLOAT8E8M0:
      return e8m0(load<uint8_t>(data, index));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

uint32_t element_bits(FolioElementType type, const std::byte* data, size_t index) {
  const uint32_t bits = facts_of(type).bits;
  if (bits < 8) return sub_byte(data, index, bits);
  return bits == 8 ? load<uint8_t>(data, index) : load<uint16_t>(data, index);
}

void store_bits(FolioElementType type, uint32_t bits, std::byte* data, size_t index) {
  const uint32_t width = facts_of(type).bits;
  if (width < 8) return store_sub_byte(data, index, width, bits);
  if (width == 8) return store(data, index, static_cast<uint8_t>(bits));
  store(data, index, static_cast<uint16_t>(bits));
}

double imaginary_part(FolioElementType type, const std::byte* data, size_t index) {
  if (type == FOLIO_COMPLEX64) return load<float>(data, 2 * index + 1);
  return type == FOLIO_COMPLEX128 ? load<double>(data, 2 * index + 1) : 0;
}

std::string element_as_text(FolioElementType type, const std::byte* data, size_t index) {
  if (type == FOLIO_INT64) return std::to_string(load<int64_t>(data, index));
  if (type == FOLIO_UINT64) return std::to_string(load<uint64_t>(data, index));
  if (type == FOLIO_BOOL && load<uint8_t>(data, index) <= 1) {
    return load<uint8_t>(data, index) != 0 ? "true" : "false";
  }
  if (is_float(type) && std::isnan(element_as_double(type, data, index))) return "nan";
  // Enough digits to tell two neighbours apart.
  const int digits = type == FOLIO_DOUBLE || type == FOLIO_COMPLEX128 ? 17
                     : is_integer(type)                               ? 10
                                                                      : 9;
  char text[96];
  if (is_complex(type)) {
    std::snprintf(text, sizeof text, "%.*g%+.*gi", digits, element_as_double(type, data, index),
                  digits, imaginary_part(type, data, index));
  } else {
    std::snprintf(text, sizeof text, "%.*g", digits, element_as_double(type, data, index));
  }
  return text;
}

void store_double(FolioElementType type, double value, std::byte* data, size_t index) {
  FloatFormat format;
  constexpr double kInt64Max = 0x1.fffffffffffffp62;  // the last double below 2^63
  const double whole = is_integer(type) ? std::fmin(std::fmax(value, -0x1p63), kInt64Max) : 0;
  const auto integer = static_cast<int64_t>(whole);
  if (float_format(type, &format)) return store_bits(type, encode(format, value), data, index);
  switch (type) {
    case FOLIO_FLOAT:
      return store(data, index, static_cast<float>(value));
    case FOLIO_DOUBLE:
      return store(data, index, value);
    case FOLIO_UINT16:
    case FOLIO_INT16:
      return store(data, index, static_cast<uint16_t>(integer));
    case FOLIO_UINT32:
    case FOLIO_INT32:
      return store(data, index, static_cast<uint32_t>(integer));
    case FOLIO_UINT64:
    case FOLIO_INT64:
      return store(data, index, integer);
    case FOLIO_FLOAT8E8M0:
      return store_bits(type, encode_e8m0(value), data, index);
    default:
      return store_bits(type, static_cast<uint32_t>(integer), data, index);
  }
}

}  // namespace folio_cli
