#include "core/os/idle_worker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/log.h"
#include "core/os/fork.h"
#include "core/os/quiet_signals.h"
#include "core/os/throwing.h"

namespace folio {
namespace {

struct Queued {
  Ref<IdleTask> task;
  bool is_asked_again = false;  // since its last step began
};

struct Worker {
  std::mutex mutex;
  std::vector<Queued> tasks;  // the first is being done
  bool is_alive = false;
};

Worker& worker() {
  // Never destroyed: the thread may be at work while static objects die. Nor allocated: tasks are
  // dropped in destructors.
  alignas(Worker) static uint8_t place[sizeof(Worker)];
  static auto* const only = new (place) Worker;
  return *only;
}

// Before the first task is queued. Where there is no memory for it, it throws, and is tried again:
// the lock must be the last, as it may be in the list only once.
void hold_worker_across_fork() {
  [[maybe_unused]] static const bool is_held = [] {
    call_in_fork_child([] { worker().is_alive = false; });
    hold_across_fork(ForkOrder::kPrepack, &worker().mutex);
    return true;
  }();
}

auto find_task(Worker* w, const IdleTask* task) {
  return std::find_if(w->tasks.begin(), w->tasks.end(),
                      [&](const Queued& queued) { return queued.task.get() == task; });
}

// Null once the queue is empty, or when the thread `has_no_memory` to work: it has ended then as
// far as others are concerned.
Ref<IdleTask> first_task(bool has_no_memory) {
  Worker& w = worker();
  const std::lock_guard<std::mutex> lock(w.mutex);
  if (w.tasks.empty() || has_no_memory) {
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

// A task that throws does not keep the others waiting: it has no piece left.
bool do_step(IdleTask* task) {
  try {
    return task->step();
  } catch (...) {
    log(LogLevel::kWarning, "work that was to be done when idle was left: no memory");
    return false;
  }
}

void* work(void*) {
  const sched_param none = {};
  (void)sched_setscheduler(0, SCHED_IDLE, &none);  // 0: this thread
  const bool has_no_memory = !is_ready_to_throw();
  while (const Ref<IdleTask> task = first_task(has_no_memory)) {
    if (do_step(task.get())) continue;
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

bool run_when_idle(const Ref<IdleTask>& task) noexcept {
  try {
    hold_worker_across_fork();
    Worker& w = worker();
    const std::lock_guard<std::mutex> lock(w.mutex);
    const auto at = find_task(&w, task.get());
    if (at == w.tasks.end()) {
      w.tasks.push_back({task});
    } else {
      at->is_asked_again = true;
    }
    start_thread(&w);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
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
