#include "core/os/tile_threads.h"

#include <immintrin.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "core/os/cpu_features.h"
#include "core/os/fork.h"
#include "core/os/own_thread.h"
#include "core/os/throwing.h"
#include "core/os/waiting.h"

namespace folio {
namespace {

constexpr timespec kMostIdle = {1, 0};

// Something to be done, and what it threw.
struct Job {
  void (*run)(void* state) = nullptr;
  void* state = nullptr;
  std::exception_ptr failure;

  void finish() {
    try {
      run(state);
    } catch (...) {
      failure = std::current_exception();
    }
  }
  void rethrow() {
    if (const std::exception_ptr thrown = std::exchange(failure, nullptr)) {
      std::rethrow_exception(thrown);
    }
  }
};

// A thread, what it is to do, and the caller who waits for it. Whose turn it is says `turn`.
struct TileThread {
  enum Turn : uint32_t {
    kIdle,   // nobody's, or the caller's, whose work is done
    kWorks,  // the thread's
    kAsks,   // the caller's, for whom there is a question
  };
  std::atomic<uint32_t> turn{kIdle};
  std::atomic<uint32_t> sleepers{0};
  Job work;
  Job question;
  unsigned mxcsr = 0;
  bool has_no_memory = false;  // to work in
  TileThread* next = nullptr;  // in the list of those without work
};

struct TileThreads {
  std::mutex mutex;
  TileThread* idle = nullptr;  // the last that worked is the first
  std::atomic<int> count{0};
};

TileThreads& threads() {
  // Never destroyed, nor allocated: threads outlive static objects.
  alignas(TileThreads) static uint8_t place[sizeof(TileThreads)];
  static auto* const all = new (place) TileThreads;
  return *all;
}

// Before there is a thread. Where there is no memory for it, it throws, and is tried again: the
// lock must be the last, as it may be in the list only once.
void hold_threads_across_fork() {
  [[maybe_unused]] static const bool is_held = [] {
    call_in_fork_child([] {
      threads().idle = nullptr;
      threads().count.store(0);
    });
    hold_across_fork(ForkOrder::kPool, &threads().mutex);
    return true;
  }();
}

int64_t spin_ns() {
  static const int64_t ns = affinity_cpu_count() > 1 ? kSpinNs : 0;
  return ns;
}

void give_turn(TileThread* t, uint32_t turn) {
  t->turn.store(turn);
  if (t->sleepers.load() > 0) futex_wake(&t->turn, 1);
}

// Until it is no longer that turn. False if `most` went by.
bool wait_while(TileThread* t, uint32_t turn, const timespec* most = nullptr) {
  const auto has_moved = [&] { return t->turn.load(std::memory_order_acquire) != turn; };
  if (spin_until(spin_ns(), has_moved)) return true;
  const int64_t end = most ? monotonic_ns() + most->tv_sec * 1000000000 : INT64_MAX;
  // Either the other sees this sleeper and wakes it, or this one sees the new turn.
  t->sleepers.fetch_add(1);
  while (t->turn.load() == turn && monotonic_ns() < end) futex_wait(&t->turn, turn, most);
  t->sleepers.fetch_sub(1);
  return has_moved();
}

// Of threads of ours: their TileThread.
pthread_key_t* own_key() {
  static pthread_key_t key;
  static const bool is_made = pthread_key_create(&key, nullptr) == 0;
  return is_made ? &key : nullptr;
}

// Takes an idle thread out of the list; false if a caller has it.
bool leave_list(const TileThread* t) {
  TileThreads& all = threads();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (TileThread** at = &all.idle; *at; at = &(*at)->next) {
    if (*at != t) continue;
    *at = t->next;
    return true;
  }
  return false;
}

void* entry(void* argument) {
  auto* const t = static_cast<TileThread*>(argument);
  const pthread_key_t* const key = own_key();
  t->has_no_memory = !is_ready_to_throw() || !key || pthread_setspecific(*key, t) != 0;
  const unsigned own = _mm_getcsr();
  while (wait_while(t, TileThread::kIdle, &kMostIdle) || !leave_list(t)) {
    if (t->turn.load() == TileThread::kIdle) continue;  // a caller has it, and gives it work soon
    _mm_setcsr(t->mxcsr);
    if (!t->has_no_memory) t->work.finish();
    _mm_setcsr(own);
    give_turn(t, TileThread::kIdle);
  }
  threads().count.fetch_sub(1);
  delete t;
  return nullptr;
}

// One without work, or a new one; null when there is none.
TileThread* take_thread() {
  hold_threads_across_fork();
  TileThreads& all = threads();
  {
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (TileThread* const t = all.idle) {
      all.idle = t->next;
      return t;
    }
  }
  auto made = std::make_unique<TileThread>();
  if (!start_own_thread("folio-tiles", entry, made.get(), nullptr)) return nullptr;
  all.count.fetch_add(1);
  return made.release();
}

void give_back(TileThread* t) {
  TileThreads& all = threads();
  const std::lock_guard<std::mutex> lock(all.mutex);
  t->next = all.idle;
  all.idle = t;
}

}  // namespace

bool holds_frames_of_tiles(uint64_t bytes) {
  constexpr unsigned long kMinSigStkSz = 51;  // AT_MINSIGSTKSZ, which old headers lack
  // A handler, and a page that forbids access, which hosts count as part of the stack: as much more
  // than the least as hosts have that ask for the least (SIGSTKSZ, CPython's faulthandler).
  constexpr uint64_t kHandlerBytes = 8 * 1024;
  return bytes >= getauxval(kMinSigStkSz) + kHandlerBytes;
}

bool may_use_tiles() {
  // Asking the kernel takes 140 ns, as much as a small model's nodes. No thread_local: where there
  // is no memory for one, the C library ends the process.
  static char answers[2];  // their addresses: no, yes
  static const auto key = [] {
    std::pair<bool, pthread_key_t> made;
    made.first = pthread_key_create(&made.second, nullptr) == 0;
    return made;
  }();
  if (const void* const known = key.first ? pthread_getspecific(key.second) : nullptr) {
    return known == &answers[1];
  }
  stack_t stack = {};
  const bool has_one = sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0;
  const bool may = !has_one || holds_frames_of_tiles(stack.ss_size);
  if (key.first) (void)pthread_setspecific(key.second, &answers[may ? 1 : 0]);
  return may;
}

Status run_in_tile_thread(void (*work)(void* state), void* state) {
  TileThread* const t = take_thread();
  if (!t)
    return error(Code::kOutOfMemory,
                 "no thread can be made for AMX, whose tiles this one must not use");
  t->work = {work, state, nullptr};
  t->mxcsr = _mm_getcsr();
  give_turn(t, TileThread::kWorks);
  wait_while(t, TileThread::kWorks);
  while (t->turn.load() == TileThread::kAsks) {
    t->question.finish();
    give_turn(t, TileThread::kWorks);
    wait_while(t, TileThread::kWorks);
  }
  Job done = std::move(t->work);
  const bool has_no_memory = t->has_no_memory;
  give_back(t);
  if (has_no_memory) throw std::bad_alloc();
  done.rethrow();
  return Status::ok();
}

void run_in_callers_thread(void (*call)(void* state), void* state) {
  const pthread_key_t* const key = own_key();
  auto* const t = key ? static_cast<TileThread*>(pthread_getspecific(*key)) : nullptr;
  if (!t) return call(state);
  t->question = {call, state, nullptr};
  give_turn(t, TileThread::kAsks);
  wait_while(t, TileThread::kAsks);
  t->question.rethrow();
}

int tile_thread_count() { return threads().count.load(); }

}  // namespace folio
