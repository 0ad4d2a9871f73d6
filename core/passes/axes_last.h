// The axes of images [N, C, spatial...] where they have channels last, [N, spatial..., C].
//
// Owns:    nothing: functions of numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace folio {

inline std::vector<int64_t> to_last_order(size_t rank) {
  std::vector<int64_t> perm{0};
  for (size_t i = 2; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  perm.push_back(1);
  return perm;
}

inline std::vector<int64_t> to_first_order(size_t rank) {
  std::vector<int64_t> perm{0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) perm.push_back(static_cast<int64_t>(i));
  return perm;
}

template <typename T>
std::vector<T> to_last(const std::vector<T>& first) {
  std::vector<T> last = first;
  std::rotate(last.begin() + 1, last.begin() + 2, last.end());
  return last;
}

// Where an axis of the first stands in the second; none: the image has no such axis.
inline std::optional<int64_t> axis_last(int64_t axis, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return std::nullopt;
  if (axis < 0) axis += r;
  return axis == 0 ? 0 : axis == 1 ? r - 1 : axis - 1;
}

}  // namespace folio
