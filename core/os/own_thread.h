// Threads of ours that compute: the pool's workers and those that use tiles for others.
#pragma once

#include <pthread.h>

namespace folio {

// Starts a thread called `name` (at most 15 characters) with the host's signals blocked, and a
// stack of what kernels use (up to 320 KiB of 1 MiB) beside what the C library keeps there for
// thread-local objects. `thread` is to be joined; null: nobody joins it. False when there is none.
[[nodiscard]] bool start_own_thread(const char* name, void* (*entry)(void*), void* argument,
                                    pthread_t* thread) noexcept;

}  // namespace folio
