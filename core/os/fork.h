// Locks and threads across fork: one list of what must hold still while this process is copied.
//
// Flow:    whoever has a process-wide lock registers it once -> fork takes all of them, outermost
//          first -> parent and child release them; the child's pool forgets its threads.
// Owns:    nothing; what is registered lives for ever (the library is -z nodelete).
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>

namespace folio {

// Order in which locks are taken when they nest, outermost first: fork takes them in the same
// order.
enum class ForkOrder : int {
  kSession = 0,
  kPrepack = 10,
  kRun = 20,
  kPool = 30,
  kArena = 40,
  kFiles = 50,
  kBase = 60,
};

// Holds `mutex` across every later fork, so that no child finds it locked by a thread it lacks.
// Call it with no registered lock held.
void hold_across_fork(ForkOrder order, std::mutex* mutex);

// A mutex that is held so and lives for ever, as what is static may be used while it dies: for the
// static reference of the function that owns it.
std::mutex& new_mutex_held_across_fork(ForkOrder order);

// How many forks lie between this process and the one that loaded the library. What another
// generation began and did not end, nobody will.
uint32_t fork_generation();

// Called in the child, all registered locks held, before fork returns there.
void call_in_fork_child(void (*reset)());

}  // namespace folio
