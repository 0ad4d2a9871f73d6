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

// The same, of the kernel's last tick: up to some milliseconds ago, about 3 ns a call.
inline int64_t monotonic_tick_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace folio
