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

// Of those without work, the last that worked; with list_mutex(). These words outlive static
// objects, as threads do.
TileThread* idle_threads = nullptr;
std::atomic<int> thread_count{0};

std::mutex& list_mutex() {
  static std::mutex& only = []() -> std::mutex& {
    call_in_fork_child([] {
      idle_threads = nullptr;
      thread_count.store(0);
    });
    return new_mutex_held_across_fork(ForkOrder::kPool);
  }();
  return only;
}

int64_t spin_ns() {
  static const int64_t ns = affinity_cpu_count() > 1 ? kSpinNs : 0;
  return ns;
}

void give_turn(TileThread* t, uint32_t turn) {
  t->turn.store(turn);
  if (t->sleepers.load() > 0) futex_wake(&t->turn, 1);
}

// Until it is no longer that turn. False when it still is after `most`, or earlier.
bool wait_while(TileThread* t, uint32_t turn, const timespec* most = nullptr) {
  const auto has_moved = [&] { return t->turn.load(std::memory_order_acquire) != turn; };
  if (spin_until(spin_ns(), has_moved)) return true;
  // Either the other sees this sleeper and wakes it, or this one sees the new turn.
  t->sleepers.fetch_add(1);
  do {
    futex_wait(&t->turn, turn, most);
  } while (!most && t->turn.load() == turn);
  t->sleepers.fetch_sub(1);
  return has_moved();
}

// A pointer of each thread's own. No thread_local: where there is no memory for one, the C library
// ends the process.
class OwnPointer {
 public:
  void* get() const { return is_made_ ? pthread_getspecific(key_) : nullptr; }
  bool set(const void* p) const { return is_made_ && pthread_setspecific(key_, p) == 0; }

 private:
  pthread_key_t key_ = 0;
  bool is_made_ = pthread_key_create(&key_, nullptr) == 0;
};

// Of threads of ours: their TileThread.
const OwnPointer& own_thread() {
  static const OwnPointer own;
  return own;
}

// Takes an idle thread out of the list; false if a caller has it.
bool leave_list(const TileThread* t) {
  const std::lock_guard<std::mutex> lock(list_mutex());
  for (TileThread** at = &idle_threads; *at; at = &(*at)->next) {
    if (*at != t) continue;
    *at = t->next;
    return true;
  }
  return false;
}

void* entry(void* argument) {
  auto* const t = static_cast<TileThread*>(argument);
  t->has_no_memory = !is_ready_to_throw() || !own_thread().set(t);
  const unsigned own = _mm_getcsr();
  while (wait_while(t, TileThread::kIdle, &kMostIdle) || !leave_list(t)) {
    if (t->turn.load() == TileThread::kIdle) continue;  // a caller has it, and gives it work soon
    _mm_setcsr(t->mxcsr);
    if (!t->has_no_memory) t->work.finish();
    _mm_setcsr(own);
    give_turn(t, TileThread::kIdle);
  }
  thread_count.fetch_sub(1);
  delete t;
  return nullptr;
}

// One without work, or a new one; null when there is none.
TileThread* take_thread() {
  {
    const std::lock_guard<std::mutex> lock(list_mutex());
    if (TileThread* const t = idle_threads) {
      idle_threads = t->next;
      return t;
    }
  }
  auto made = std::make_unique<TileThread>();
  if (!start_own_thread("folio-tiles", entry, made.get(), nullptr)) return nullptr;
  thread_count.fetch_add(1);
  return made.release();
}

void give_back(TileThread* t) {
  const std::lock_guard<std::mutex> lock(list_mutex());
  t->next = idle_threads;
  idle_threads = t;
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
  // Asking the kernel takes 140 ns, as much as a small model's nodes.
  static const char answers[2] = {};  // their addresses: no, yes
  static const OwnPointer answer;
  if (const void* const known = answer.get()) return known == &answers[1];
  stack_t stack = {};
  const bool has_one = sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0;
  const bool may = !has_one || holds_frames_of_tiles(stack.ss_size);
  (void)answer.set(&answers[may ? 1 : 0]);
  return may;
}

Status run_in_tile_thread(void (*work)(void* state), void* state) {
  TileThread* const t = take_thread();
  if (!t)
    return error(Code::kOutOfMemory,
                 "no thread can be made for AMX, whose tiles this one must not use");
  t->work = {work, state, nullptr};
  t->mxcsr = _mm_getcsr();
  for (;;) {
    give_turn(t, TileThread::kWorks);
    wait_while(t, TileThread::kWorks);
    if (t->turn.load() != TileThread::kAsks) break;
    t->question.finish();
  }
  Job done = std::move(t->work);
  const bool has_no_memory = t->has_no_memory;
  give_back(t);
  if (has_no_memory) throw std::bad_alloc();
  done.rethrow();
  return Status::ok();
}

void run_in_callers_thread(void (*call)(void* state), void* state) {
  auto* const t = static_cast<TileThread*>(own_thread().get());
  if (!t) return call(state);
  t->question = {call, state, nullptr};
  give_turn(t, TileThread::kAsks);
  wait_while(t, TileThread::kAsks);
  t->question.rethrow();
}

int tile_thread_count() { return thread_count.load(); }

}  // namespace folio
