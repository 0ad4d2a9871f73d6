#include "core/os/thread_place.h"

#include <sched.h>

namespace folio {

int current_cpu() { return sched_getcpu(); }

bool move_off_cpu(pthread_t thread, int cpu) {
  cpu_set_t own;  // of machines with more CPUs than it has bits the kernel says nothing
  if (cpu < 0 || cpu >= CPU_SETSIZE || pthread_getaffinity_np(thread, sizeof own, &own) != 0) {
    return false;
  }
  cpu_set_t others = own;
  CPU_CLR(cpu, &others);
  if (CPU_EQUAL(&others, &own) || CPU_COUNT(&others) == 0) return false;
  if (pthread_setaffinity_np(thread, sizeof others, &others) != 0) return false;
  return pthread_setaffinity_np(thread, sizeof own, &own) == 0;
}

}  // namespace folio
