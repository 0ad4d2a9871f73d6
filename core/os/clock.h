// Time that only goes forward, for timeouts, spinning and reports.
#pragma once

#include <time.h>

#include <cstdint>

namespace folio {

inline int64_t clock_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// Nanoseconds since some start; about 25 ns a call (vDSO).
inline int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

// The same, of the kernel's last tick: up to some milliseconds ago, about 3 ns a call.
inline int64_t monotonic_tick_ns() { return clock_ns(CLOCK_MONOTONIC_COARSE); }

}  // namespace folio
