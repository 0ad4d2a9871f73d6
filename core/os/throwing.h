// Exceptions need memory of the thread that throws: made sure of where there is some.
//
// The C++ library keeps what a thread throws in thread-local memory. In a host that loaded it late
// (a C program that calls dlopen) the C library allocates that when the thread first throws, which
// may be because memory is short, and ends the process when it cannot.
//
// Threads: any. Fork: the forking thread keeps what it has.
#pragma once

namespace folio {

// Whether this thread has what it needs to throw; from its first true on it has. Costs a few
// nanoseconds then. Every entry of the C API and every thread of ours asks first.
bool is_ready_to_throw() noexcept;

}  // namespace folio
