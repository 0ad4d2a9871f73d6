// Clocks and percentiles, the same for every command that measures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <vector>

namespace folio_cli {

inline double clock_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}
inline double wall_ms() { return clock_ms(CLOCK_MONOTONIC); }

// For JSON: a tenth of a microsecond is less than any clock here means.
inline double rounded(double ms) { return std::round(ms * 1e4) / 1e4; }

// Of at least one number.
inline double percentile(const std::vector<double>& sorted, size_t tenths) {
  return sorted[std::min(sorted.size() * tenths / 10, sorted.size() - 1)];
}

}  // namespace folio_cli
