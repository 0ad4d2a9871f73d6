// Threads that use tiles (AMX) for those of the host that must not.
//
// The frame of a signal of a thread that has used tiles takes 12 KiB. CoreCLR's threads have
// alternate signal stacks of 16 KiB, 4 of them a page that forbids access: on such a thread a null
// reference, which the host makes an exception of, would end the process.
//
// Flow:    session/ loads and runs by way of with_tiles(): in the caller's thread, or, if its
//          signal stack is too small, in one of ours, while the caller waits. What the host is to
//          be asked meanwhile is asked in the thread that it called from (in_callers_thread).
// Owns:    the threads ("folio-tiles", 1 MiB of stack beside what the C library keeps there): as
//          many as callers are in at a time, each gone after a second without work. After fork the
//          child starts with none.
// Threads: any. Work takes over the caller's MXCSR.
// Errors:  kOutOfMemory when no thread can be made. What work throws, the caller gets.
#pragma once

#include <optional>

#include "core/base/cpu_bits.h"
#include "core/base/status.h"

namespace folio {

// Whether an alternate signal stack of so many bytes has room for the frame of a thread that has
// used tiles (the kernel says how much that is), and for a handler.
bool holds_frames_of_tiles(uint64_t bytes);

// Whether this thread may use tiles: it has no alternate signal stack, or one with room. Found once
// a thread: hosts give their threads stacks before anything else runs there.
bool may_use_tiles();

// work(state), in a thread that may use tiles; returns when it is done.
Status run_in_tile_thread(void (*work)(void* state), void* state);

// call(state) in the thread that waits for this one's work; here, if none does.
void run_in_callers_thread(void (*call)(void* state), void* state);

// Those of our threads that are alive. For tests.
int tile_thread_count();

// work(), which gives a Status or a Result and computes with kernels of `bits`, where they may.
template <typename Work>
auto with_tiles(CpuBits bits, Work&& work) -> decltype(work()) {
  if ((bits & kCpuAmxTile) == 0 || may_use_tiles()) return work();
  std::optional<decltype(work())> result;
  auto call = [&] { result.emplace(work()); };
  FOLIO_RETURN_IF_ERROR(run_in_tile_thread([](void* c) { (*static_cast<decltype(call)*>(c))(); },
                                           static_cast<void*>(&call)));
  return std::move(*result);
}

// call(), which gives a value.
template <typename Call>
auto in_callers_thread(Call&& call) -> decltype(call()) {
  std::optional<decltype(call())> result;
  auto emplace = [&] { result.emplace(call()); };
  run_in_callers_thread([](void* c) { (*static_cast<decltype(emplace)*>(c))(); },
                        static_cast<void*>(&emplace));
  return std::move(*result);
}

}  // namespace folio
