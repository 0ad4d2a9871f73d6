#include "tools/folio/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "tools/folio/element_type.h"

namespace folio_cli {

namespace {

constexpr size_t kShownCharsMax = 40;

bool close_parts(double got, double expected, FolioElementType type, const Tolerance& t) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return true;
  if (std::isinf(expected) || std::isinf(got)) return false;
  return std::fabs(got - expected) <= t.of(type, std::fabs(expected));
}

struct Mismatches {
  size_t count = 0;
  size_t first = 0;
  size_t worst = 0;
  double worst_difference = -1;  // NaN and infinities do not take part

  void add(size_t index, double difference) {
    if (count++ == 0) first = index;
    if (difference > worst_difference) {
      worst = index;
      worst_difference = difference;
    }
  }
};

struct Pair {
  double distance = 0;   // not finite: one of the two is not
  double magnitude = 0;  // of what is expected
  bool good = false;
};

// Of integers of 64 bits, which doubles may take for equal.
template <typename T>
double distance_of(const HostValue& got, const HostValue& expected, size_t i) {
  T g = 0;
  T e = 0;
  std::memcpy(&g, got.bytes.data() + i * sizeof(T), sizeof(T));
  std::memcpy(&e, expected.bytes.data() + i * sizeof(T), sizeof(T));
  const auto low = static_cast<uint64_t>(std::min(g, e));
  return static_cast<double>(static_cast<uint64_t>(std::max(g, e)) - low);
}

Pair compare_pair(const HostValue& got, const HostValue& expected, size_t i, const Tolerance& t) {
  const FolioElementType type = expected.type;
  const double g = element_as_double(type, got.bytes.data(), i);
  const double e = element_as_double(type, expected.bytes.data(), i);
  Pair pair = {std::fabs(g - e), std::fabs(e), close_parts(g, e, type, t)};
  if (type == FOLIO_INT64 || type == FOLIO_UINT64) {
    pair.distance = type == FOLIO_INT64 ? distance_of<int64_t>(got, expected, i)
                                        : distance_of<uint64_t>(got, expected, i);
    pair.good = pair.distance <= t.of(type, pair.magnitude);
  }
  if (is_complex(type)) {
    const double g_imaginary = imaginary_part(type, got.bytes.data(), i);
    const double e_imaginary = imaginary_part(type, expected.bytes.data(), i);
    pair.distance = std::hypot(g - e, g_imaginary - e_imaginary);
    pair.magnitude = std::hypot(e, e_imaginary);
    pair.good = std::isfinite(pair.distance)
                    ? pair.distance <= t.of(type, pair.magnitude)
                    : pair.good && close_parts(g_imaginary, e_imaginary, type, t);
  }
  return pair;
}

Mismatches compare_numbers(const HostValue& got, const HostValue& expected, const Tolerance& t) {
  Mismatches result;
  const size_t count = expected.element_count();
  for (size_t i = 0; i < count; ++i) {
    const Pair pair = compare_pair(got, expected, i, t);
    if (!pair.good) result.add(i, std::isfinite(pair.distance) ? pair.distance : -1);
  }
  return result;
}

Mismatches compare_strings(const HostValue& got, const HostValue& expected) {
  Mismatches result;
  for (size_t i = 0; i < expected.strings.size(); ++i) {
    if (got.strings[i] != expected.strings[i]) result.add(i, -1);
  }
  return result;
}

std::string index_text(const folio::Dims& dims, size_t index) {
  folio::Dims at(dims.size());
  for (size_t k = dims.size(); k-- > 0;) {
    at[k] = static_cast<int64_t>(index % static_cast<size_t>(dims[k]));
    index /= static_cast<size_t>(dims[k]);
  }
  return dims_text(at);
}

std::string element_text(const HostValue& value, size_t index) {
  if (value.type != FOLIO_STRING) return element_as_text(value.type, value.bytes.data(), index);
  const std::string& text = value.strings[index];
  return "'" + text.substr(0, kShownCharsMax) + (text.size() > kShownCharsMax ? "...'" : "'");
}

std::string tensor_difference(const std::string& name, const HostValue& got,
                              const HostValue& expected, const Tolerance& tolerance) {
  if (got.type != expected.type || got.dims != expected.dims) {
    return name + ": got " + describe(got) + ", expected " + describe(expected);
  }
  const Mismatches wrong = expected.type == FOLIO_STRING
                               ? compare_strings(got, expected)
                               : compare_numbers(got, expected, tolerance);
  if (wrong.count == 0) return "";
  std::string text = name + index_text(expected.dims, wrong.first) + ": got " +
                     element_text(got, wrong.first) + ", expected " +
                     element_text(expected, wrong.first) + " (" + std::to_string(wrong.count) +
                     " of " + std::to_string(expected.element_count()) + " differ";
  if (wrong.worst_difference >= 0) {
    char number[32];
    std::snprintf(number, sizeof number, "%.3g", wrong.worst_difference);
    text += std::string(", most by ") + number;
    if (wrong.worst != wrong.first) {
      text += " at " + index_text(expected.dims, wrong.worst) + ": got " +
              element_text(got, wrong.worst) + ", expected " + element_text(expected, wrong.worst);
    }
  }
  return text + ")";
}

std::string key_text(const HostValue& keys, size_t index) {
  return keys.type == FOLIO_STRING ? keys.strings[index]
                                   : element_as_text(keys.type, keys.bytes.data(), index);
}

// Copies one element between tensors of one type.
void copy_element(const HostValue& from, size_t from_index, HostValue* to, size_t to_index) {
  if (from.type == FOLIO_STRING) {
    to->strings[to_index] = from.strings[from_index];
    return;
  }
  const size_t width = packed_bytes(from.type, 1);
  std::memcpy(&to->bytes[to_index * width], &from.bytes[from_index * width], width);
}

// A map has no order: both are put into that of `expected`'s keys before they are compared.
HostValue in_order_of(const HostValue& map, const HostValue& expected) {
  const HostValue& keys = map.parts[0];
  const HostValue& values = map.parts[1];
  const size_t count = keys.element_count();
  if (keys.type != expected.parts[0].type || keys.dims != expected.parts[0].dims ||
      values.kind != FOLIO_KIND_TENSOR || values.dims != keys.dims ||
      facts_of(values.type).bits % 8 != 0) {
    return map;
  }
  HostValue result = map;
  for (size_t i = 0; i < count; ++i) {
    const std::string wanted = key_text(expected.parts[0], i);
    for (size_t k = 0; k < count; ++k) {
      if (key_text(keys, k) != wanted) continue;
      copy_element(keys, k, &result.parts[0], i);
      copy_element(values, k, &result.parts[1], i);
    }
  }
  return result;
}

// Sums of products of the numbers of both.
struct Angle {
  double got = 0;
  double expected = 0;
  double both = 0;

  double cosine() const { return both / (std::sqrt(got) * std::sqrt(expected)); }
};

// Direction and largest numbers; of two tensors of one type and shape.
void add_rows(const HostValue& got, const HostValue& expected, Angle* angle, Distance* sum) {
  const FolioElementType type = expected.type;
  const auto row = static_cast<size_t>(expected.dims.empty() ? 1 : expected.dims.back());
  const size_t count = expected.element_count();
  double top_got = 0;
  double top_expected = 0;
  size_t got_at = 0;
  size_t expected_at = 0;
  for (size_t i = 0; i < count; ++i) {
    const double g = element_as_double(type, got.bytes.data(), i);
    const double e = element_as_double(type, expected.bytes.data(), i);
    angle->got += g * g;
    angle->expected += e * e;
    angle->both += g * e;
    if (row < 2) continue;
    const bool is_first = i % row == 0;
    if (is_first || g > top_got) top_got = g, got_at = i;
    if (is_first || e > top_expected) top_expected = e, expected_at = i;
    if (i % row != row - 1) continue;
    ++sum->rows;
    if (got_at == expected_at) ++sum->same_top;
  }
}

// Of two tensors of one type and shape; `part` is where they stand in a container.
void add_tensors(const std::string& part, const HostValue& got, const HostValue& expected,
                 const Tolerance& tolerance, Angle* angle, Distance* sum) {
  const size_t count = expected.element_count();
  sum->elements += count;
  if (expected.type == FOLIO_STRING) {
    sum->beyond += compare_strings(got, expected).count;
    return;
  }
  if (!is_complex(expected.type)) add_rows(got, expected, angle, sum);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  size_t absolute_at = count;
  size_t relative_at = count;
  for (size_t i = 0; i < count; ++i) {
    Pair pair = compare_pair(got, expected, i, tolerance);
    if (std::isfinite(pair.magnitude)) sum->magnitude = std::max(sum->magnitude, pair.magnitude);
    if (!pair.good) ++sum->beyond;
    if (!std::isfinite(pair.distance)) pair.distance = pair.good ? 0 : kInfinite;
    if (pair.distance > sum->absolute) {
      sum->absolute = pair.distance;
      absolute_at = i;
    }
    const bool has_relative = pair.magnitude > 0 && std::isfinite(pair.magnitude);
    if (has_relative && pair.distance / pair.magnitude > sum->relative) {
      sum->relative = pair.distance / pair.magnitude;
      relative_at = i;
    }
  }
  if (absolute_at != count) sum->absolute_at = part + index_text(expected.dims, absolute_at);
  if (relative_at != count) sum->relative_at = part + index_text(expected.dims, relative_at);
}

bool is_full_optional(const HostValue& value) {
  return value.kind == FOLIO_KIND_OPTIONAL && value.parts.size() == 1;
}

// What cannot be put side by side takes no part.
void add_values(const std::string& part, const HostValue& got, const HostValue& expected,
                const Tolerance& tolerance, Angle* angle, Distance* sum) {
  if (is_full_optional(got)) {
    return add_values(part, got.parts[0], expected, tolerance, angle, sum);
  }
  if (is_full_optional(expected)) {
    return add_values(part, got, expected.parts[0], tolerance, angle, sum);
  }
  if (got.kind != expected.kind || got.parts.size() != expected.parts.size()) return;
  if (expected.kind == FOLIO_KIND_TENSOR) {
    if (got.type != expected.type || got.dims != expected.dims) return;
    return add_tensors(part, got, expected, tolerance, angle, sum);
  }
  const bool is_map = expected.kind == FOLIO_KIND_MAP;
  const HostValue ordered = is_map ? in_order_of(got, expected) : HostValue();
  const HostValue& source = is_map ? ordered : got;
  for (size_t i = 0; i < expected.parts.size(); ++i) {
    const std::string name = is_map ? (i == 0 ? "keys" : "values") : std::to_string(i);
    add_values(part + "(" + name + ")", source.parts[i], expected.parts[i], tolerance, angle, sum);
  }
}

}  // namespace

std::string difference(const std::string& name, const HostValue& got, const HostValue& expected,
                       const Tolerance& tolerance) {
  // An optional that holds something is what it holds.
  if (got.kind == FOLIO_KIND_OPTIONAL && got.parts.size() == 1) {
    return difference(name, got.parts[0], expected, tolerance);
  }
  if (expected.kind == FOLIO_KIND_OPTIONAL && expected.parts.size() == 1) {
    return difference(name, got, expected.parts[0], tolerance);
  }
  if (got.kind != expected.kind || got.parts.size() != expected.parts.size()) {
    return name + ": got " + describe(got) + ", expected " + describe(expected);
  }
  if (expected.kind == FOLIO_KIND_TENSOR) {
    return tensor_difference(name, got, expected, tolerance);
  }
  const bool is_map = expected.kind == FOLIO_KIND_MAP;
  const HostValue ordered = is_map ? in_order_of(got, expected) : HostValue();
  const HostValue& source = is_map ? ordered : got;
  for (size_t i = 0; i < expected.parts.size(); ++i) {
    const std::string part = is_map ? (i == 0 ? "keys" : "values") : std::to_string(i);
    std::string text =
        difference(name + "(" + part + ")", source.parts[i], expected.parts[i], tolerance);
    if (!text.empty()) return text;
  }
  return "";
}

Distance distance(const std::string& name, const HostValue& got, const HostValue& expected,
                  const Tolerance& tolerance) {
  Distance result;
  Angle angle;
  add_values("", got, expected, tolerance, &angle, &result);
  result.cosine = angle.cosine();
  result.difference = difference(name, got, expected, tolerance);
  return result;
}

}  // namespace folio_cli
