// Arithmetic on sizes that come from files or users: every operation reports overflow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace folio {

// Each returns false, and leaves *out unspecified, when the exact result does not fit.
template <typename T>
[[nodiscard]] bool checked_add(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] bool checked_sub(T a, T b, T* out) {
  return !__builtin_sub_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] bool checked_mul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// a - b, or what fits that is next to it: times that files tell may be any number.
inline int64_t saturated_sub(int64_t a, int64_t b) {
  int64_t out = 0;
  if (checked_sub(a, b, &out)) return out;
  return a < b ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

// True when [offset, offset + count) lies inside [0, size), without ever wrapping.
inline bool range_inside(uint64_t offset, uint64_t count, uint64_t size) {
  return offset <= size && count <= size - offset;
}

// `alignment` is a power of two; `value` must be at most SIZE_MAX - alignment.
inline size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace folio
