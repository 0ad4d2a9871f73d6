// How threads wait for each other: they look for a moment, then sleep on a futex.
#pragma once

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "core/os/clock.h"

namespace folio {

// How long a thread looks before it sleeps: about what a futex wake-up costs, so that work which
// follows other work at once finds threads awake.
inline constexpr int64_t kSpinNs = 50000;

// Until the word is no longer `expected`, somebody wakes, a signal comes or `most` is over.
inline void futex_wait(std::atomic<uint32_t>* word, uint32_t expected,
                       const timespec* most = nullptr) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, most, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

// Calls `done` until it says true or the spin time is over; false when it is.
template <typename Done>
bool spin_until(int64_t spin_ns, Done done) {
  constexpr int kPausesPerLook = 32;  // between two looks at the clock, which costs 25 ns
  if (done()) return true;
  if (spin_ns == 0) return false;
  const int64_t end = monotonic_ns() + spin_ns;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      _mm_pause();
      if (done()) return true;
    }
  } while (monotonic_ns() < end);
  return false;
}

}  // namespace folio
