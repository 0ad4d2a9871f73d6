#include "core/os/idle_worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "core/os/fork.h"
#include "core/os/quiet_signals.h"

namespace folio {
namespace {

struct Queued {
  Ref<IdleTask> task;
  bool is_asked_again = false;  // since its last step began
};

struct Worker {
  std::mutex mutex;
  std::deque<Queued> tasks;
  bool is_alive = false;
};

Worker& worker() {
  // Never destroyed: the thread may be at work while static objects die.
  static Worker* const only = [] {
    auto* const made = new Worker;
    hold_across_fork(ForkOrder::kPrepack, &made->mutex);
    call_in_fork_child([] { worker().is_alive = false; });
    return made;
  }();
  return *only;
}

auto find_task(Worker* w, const IdleTask* task) {
  return std::find_if(w->tasks.begin(), w->tasks.end(),
                      [&](const Queued& queued) { return queued.task.get() == task; });
}

// Null once the queue is empty: the thread has ended then as far as others are concerned.
Ref<IdleTask> first_task() {
  Worker& w = worker();
  const std::lock_guard<std::mutex> lock(w.mutex);
  if (w.tasks.empty()) {
    w.is_alive = false;
    return nullptr;
  }
  w.tasks.front().is_asked_again = false;
  return w.tasks.front().task;
}

void drop_if(const IdleTask* task, bool (*condition)(const Queued&)) {
  Worker& w = worker();
  Ref<IdleTask> dropped;  // perhaps the last: it ends without the lock
  const std::lock_guard<std::mutex> lock(w.mutex);
  const auto at = find_task(&w, task);
  if (at == w.tasks.end() || !condition(*at)) return;
  dropped = std::move(at->task);
  w.tasks.erase(at);
}

void* work(void*) {
  const sched_param none = {};
  (void)sched_setscheduler(0, SCHED_IDLE, &none);  // 0: this thread
  while (const Ref<IdleTask> task = first_task()) {
    if (task->step()) continue;
    drop_if(task.get(), [](const Queued& queued) { return !queued.is_asked_again; });
  }
  return nullptr;
}

// With the lock held.
void start_thread(Worker* w) {
  if (w->is_alive || w->tasks.empty()) return;
  const QuietSignals quiet;
  pthread_attr_t attributes;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (pthread_create(&thread, &attributes, work, nullptr) == 0) {
    w->is_alive = true;
    pthread_setname_np(thread, "folio-idle");
  }
  pthread_attr_destroy(&attributes);
}

}  // namespace

void run_when_idle(const Ref<IdleTask>& task) {
  Worker& w = worker();
  const std::lock_guard<std::mutex> lock(w.mutex);
  const auto at = find_task(&w, task.get());
  if (at == w.tasks.end()) {
    w.tasks.push_back({task});
  } else {
    at->is_asked_again = true;
  }
  start_thread(&w);
}

void drop_idle_task(const IdleTask* task) {
  drop_if(task, [](const Queued&) { return true; });
}

void wake_idle_worker() {
  Worker& w = worker();
  const std::lock_guard<std::mutex> lock(w.mutex);
  start_thread(&w);
}

bool idle_worker_is_alive() {
  Worker& w = worker();
  const std::lock_guard<std::mutex> lock(w.mutex);
  return w.is_alive;
}

}  // namespace folio
