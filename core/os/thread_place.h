// Moving a thread from one CPU to another.
//
// Flow:    the pool moves workers that wait behind their caller.
// Threads: any.
#pragma once

#include <pthread.h>

namespace folio {

// The calling thread's CPU; -1: unknown.
int current_cpu();

// Moves `thread`, whether it runs, waits for a CPU or sleeps, from `cpu` to another CPU of its
// affinity mask, which is afterwards what it was: the scheduler may move it again. False if it may
// run on no other, or the kernel refuses. Takes about 2 us.
bool move_off_cpu(pthread_t thread, int cpu);

}  // namespace folio
