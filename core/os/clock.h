// Time that only goes forward, for timeouts, spinning and reports.
#pragma once

#include <time.h>

#include <cstdint>

namespace folio {

// Nanoseconds since some start; about 25 ns a call (vDSO).
inline int64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace folio
