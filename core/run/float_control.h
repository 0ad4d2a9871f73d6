// FloatControl: this thread's floating point control while Folio computes on it.
//
// Owns:    the host's own setting, put back when it goes.
// Threads: the setting is the thread's; pool workers take over that of the thread they work for.
#pragma once

#include <immintrin.h>

namespace folio {

// Default rounding, no trap, denormals as asked: results must not depend on what the host has set.
class FloatControl {
 public:
  explicit FloatControl(bool flush_denormals) : saved_(_mm_getcsr()) {
    constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, round to nearest even
    // Flush-to-zero and denormals-are-zero (Intel SDM volume 1, 10.2.3).
    constexpr unsigned kFlushBits = 0x8040;
    _mm_setcsr(flush_denormals ? kDefault | kFlushBits : kDefault);
  }
  ~FloatControl() { _mm_setcsr(saved_); }
  FloatControl(const FloatControl&) = delete;
  FloatControl& operator=(const FloatControl&) = delete;

 private:
  unsigned saved_;
};

}  // namespace folio
