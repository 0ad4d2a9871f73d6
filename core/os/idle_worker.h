// The process's idle worker: one thread at idle priority for work that nobody waits for.
//
// Flow:    run_when_idle(task) -> the thread, started when there is none, calls step() until it
//          says that nothing is left -> the next task -> the thread ends.
// Owns:    the tasks that are queued, each until its step() returns false.
// Threads: any. The thread blocks the host's signals, is called folio-idle and runs under
//          SCHED_IDLE: it takes only time that nobody else wants, so that a lock or a claim which
//          it holds may be held for long on a busy machine. No caller should wait for one.
// Fork:    the child has the queue and no thread; wake_idle_worker() starts one.
// Errors:  none: where there is no memory for a thread the tasks rest until the next call.
#pragma once

#include "core/base/ref.h"

namespace folio {

class IdleTask : public RefCounted {
 public:
  // Does one piece of the work; false when none is left. One that throws is dropped.
  virtual bool step() = 0;
};

// Queues `task`. One that is queued already is not queued twice; its last step is not the last
// then. False when there was no memory to queue it.
bool run_when_idle(const Ref<IdleTask>& task) noexcept;

// Takes `task` off the queue. A step that has begun goes on.
void drop_idle_task(const IdleTask* task);

// Sees to it that there is a thread if there are tasks: after fork, or when making one failed.
void wake_idle_worker();

// Whether the thread is there. For reports and tests.
bool idle_worker_is_alive();

}  // namespace folio
