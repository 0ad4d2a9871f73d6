#include "core/os/fork.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

namespace folio {
namespace {

struct Held {
  ForkOrder order;
  std::mutex* mutex;
};

// Never destroyed: fork may be called while static objects die.
struct ForkList {
  std::mutex mutex;  // outermost of all: nobody registers while holding a registered lock
  std::vector<Held> held;
  std::vector<void (*)()> child_resets;
};

std::atomic<uint32_t> generation{0};

ForkList& fork_list();

void before_fork() {
  ForkList& list = fork_list();
  list.mutex.lock();
  for (const Held& entry : list.held) entry.mutex->lock();
}

void release_all(ForkList& list) {
  for (auto entry = list.held.rbegin(); entry != list.held.rend(); ++entry) entry->mutex->unlock();
  list.mutex.unlock();
}

void after_fork_in_parent() { release_all(fork_list()); }

void after_fork_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  ForkList& list = fork_list();
  for (void (*reset)() : list.child_resets) reset();
  release_all(list);
}

ForkList& fork_list() {
  static ForkList* const list = [] {
    auto* const made = new ForkList;  // first: what is registered can not be taken back
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return made;
  }();
  return *list;
}

}  // namespace

uint32_t fork_generation() {
  // The first call is before any fork that matters: from then on forks are counted.
  (void)fork_list();
  return generation.load(std::memory_order_relaxed);
}

void hold_across_fork(ForkOrder order, std::mutex* mutex) {
  ForkList& list = fork_list();
  const std::lock_guard<std::mutex> lock(list.mutex);
  const auto at = std::upper_bound(list.held.begin(), list.held.end(), order,
                                   [](ForkOrder o, const Held& h) { return o < h.order; });
  list.held.insert(at, Held{order, mutex});
}

std::mutex& new_mutex_held_across_fork(ForkOrder order) {
  auto made = std::make_unique<std::mutex>();
  hold_across_fork(order, made.get());
  return *made.release();
}

void call_in_fork_child(void (*reset)()) {
  ForkList& list = fork_list();
  const std::lock_guard<std::mutex> lock(list.mutex);
  list.child_resets.push_back(reset);
}

}  // namespace folio
