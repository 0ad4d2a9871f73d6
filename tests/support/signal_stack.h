// A thread with an alternate signal stack as hosts give theirs.
#pragma once

#include <signal.h>
#include <sys/auxv.h>

#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

namespace folio::testing {

// As CoreCLR's threads have it: room for a frame, not for a frame and a handler.
inline size_t small_signal_stack() {
  constexpr unsigned long kMinSigStkSz = 51;  // AT_MINSIGSTKSZ
  return getauxval(kMinSigStkSz) + 4096;
}

// Calls body() in a thread that has `bytes` of alternate signal stack.
template <typename Body>
void with_signal_stack(size_t bytes, Body&& body) {
  std::thread([&] {
    std::vector<char> memory(bytes);
    stack_t before = {};  // a sanitizer's
    stack_t stack = {};
    stack.ss_sp = memory.data();
    stack.ss_size = bytes;
    if (sigaltstack(&stack, &before) != 0) std::abort();
    body();
    sigaltstack(&before, nullptr);
  }).join();
}

}  // namespace folio::testing
