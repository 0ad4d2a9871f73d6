// The region's protocol, in one 64-bit word (`gate`): epoch | open slots | active workers.
//
//   The caller writes the task, then opens the gate: a new epoch and as many slots as it wants
//   help. A worker that takes a slot (slots - 1, active + 1 in one step) may read the task until it
//   leaves (active - 1). The caller takes chunks too; when none is left it closes the slots and
//   waits until active is 0. Only then may the task be written again. All waiting is "spin, then
//   futex".
//
//   Chunks are cut into as many shares of neighbours as there are threads. A thread begins with
//   the share of its own number, from the front, so that the rows which it wrote in one region are
//   those it reads in the next: they are in its cache. Then it takes from the others' ends.
//
//   The scheduler may wake a worker on the caller's CPU, where it waits for milliseconds while the
//   caller does all the work. The caller notices that, and moves it to another CPU.
#include "core/os/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/os/clock.h"
#include "core/os/cpu_features.h"
#include "core/os/fork.h"
#include "core/os/own_thread.h"
#include "core/os/thread_place.h"
#include "core/os/throwing.h"
#include "core/os/waiting.h"

namespace folio {
namespace {

// How long a worker that was woken may be absent, and how long one that was moved then has: more
// than a wake-up takes, less than the scheduler's tick.
constexpr int64_t kAbsentNs = 200000;
constexpr int64_t kMovedNs = 2000000;

constexpr uint64_t kActiveOne = 1;
constexpr uint64_t kSlotOne = uint64_t{1} << 16;
constexpr uint64_t kEpochOne = uint64_t{1} << 32;
constexpr uint64_t kActiveMask = 0xFFFF;

uint32_t active_of(uint64_t gate) { return static_cast<uint32_t>(gate & kActiveMask); }
uint32_t slots_of(uint64_t gate) { return static_cast<uint32_t>(gate >> 16) & 0xFFFF; }
uint32_t epoch_of(uint64_t gate) { return static_cast<uint32_t>(gate >> 32); }

void run_inline(int64_t count, int64_t grain, Parallel::Task task) {
  for (int64_t begin = 0; begin < count;) {
    const int64_t end = count - begin > grain ? begin + grain : count;
    task.run(task.state, begin, end);
    begin = end;
  }
}

class Pool {
 public:
  static Pool* make();
  void add_user();
  void remove_user();
  void run(int threads, int64_t count, int64_t grain, Parallel::Task task);
  int worker_count() const { return workers_.load(std::memory_order_relaxed); }
  void forget_threads_after_fork();

 private:
  // Nothing is allocated for a thread but what the C library does.
  struct WorkerStart {
    Pool* pool;
    uint32_t number;  // from 1: 0 is the caller
    uint32_t seen_epoch;
  };
  struct Region {
    Parallel::Task task;
    int64_t count = 0;
    int64_t grain = 0;
    uint32_t shares = 0;
    unsigned mxcsr = 0;
  };
  // The chunks that nobody has taken yet: first << 32 | end.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
    std::atomic<uint32_t> ran_at{0};  // the epoch when the thread of this number was last seen
    bool take(bool from_front, int64_t* chunk);
  };

  static void* worker_entry(void* start);
  void work(uint32_t number, uint32_t seen_epoch);
  bool join_region(uint32_t* seen_epoch);
  void cut_into_shares(uint64_t chunks, uint32_t shares);
  void take_chunks(uint32_t number) noexcept;
  void leave_region();
  void ensure_workers(int wanted) noexcept;
  bool start_worker(int number) noexcept;
  void open_region(uint32_t slots);
  void close_region();
  void look_for_workers(uint64_t gate);
  int64_t spin_ns() const;

  // Each line of words that different threads write is alone on its cache line.
  alignas(64) std::atomic<uint64_t> gate_{0};
  Share shares_[kMaxThreads];
  alignas(64) std::atomic<uint32_t> wake_{0};  // workers sleep on it; moves when there is news
  std::atomic<uint32_t> sleepers_{0};
  alignas(64) std::atomic<uint32_t> caller_sleeps_{0};
  alignas(64) std::atomic<bool> busy_{false};  // a region runs
  int64_t absent_ns_ = 0;                      // since when slots were left open; 0: they are not
  uint32_t absent_epoch_ = 0;                  // as of then
  Region region_;  // written while busy_ and active == 0; read by who is active
  std::atomic<bool> has_failed_{false};
  std::exception_ptr failure_;  // written by who set has_failed_; read by the caller afterwards
  std::atomic<bool> stop_{false};
  std::atomic<int> workers_{0};
  const int cpus_ = affinity_cpu_count();

  std::mutex mutex_;  // starting and joining workers, users_
  int users_ = 0;
  pthread_t threads_[kMaxThreads] = {};
  WorkerStart starts_[kMaxThreads] = {};  // each read by its thread
};

Pool& pool() {
  static Pool* const the_pool = Pool::make();
  return *the_pool;
}

// Never destroyed: workers may outlive static objects. Nor when registering fails: the next call
// makes another.
Pool* Pool::make() {
  auto* const made = new Pool;
  hold_across_fork(ForkOrder::kPool, &made->mutex_);
  call_in_fork_child([] { pool().forget_threads_after_fork(); });
  return made;
}

// Spinning when threads outnumber CPUs keeps the one that has the work from running.
int64_t Pool::spin_ns() const { return worker_count() + 1 > cpus_ ? 0 : kSpinNs; }

void Pool::add_user() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++users_;
}

void Pool::remove_user() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--users_ > 0) return;
  const int count = workers_.load(std::memory_order_relaxed);
  if (count == 0) return;
  stop_.store(true);
  wake_.fetch_add(1);
  futex_wake(&wake_, kMaxThreads);
  for (int i = 0; i < count; ++i) pthread_join(threads_[i], nullptr);
  workers_.store(0);
  stop_.store(false);
}

// The child has the forking thread only. If that thread is inside a region, it finishes the chunks
// that nobody had taken and does not wait for the others.
void Pool::forget_threads_after_fork() {
  workers_.store(0);
  sleepers_.store(0);
  caller_sleeps_.store(0);
  stop_.store(false);
  busy_.store(false);
  gate_.store(gate_.load() & ~(kEpochOne - 1));
}

void* Pool::worker_entry(void* start) {
  (void)is_ready_to_throw();
  const WorkerStart& own = *static_cast<WorkerStart*>(start);
  own.pool->work(own.number, own.seen_epoch);
  return nullptr;
}

bool Pool::start_worker(int number) noexcept {
  starts_[number] = {this, static_cast<uint32_t>(number) + 1,
                     epoch_of(gate_.load(std::memory_order_relaxed))};
  char name[32];
  std::snprintf(name, sizeof name, "folio-%d", number + 1);
  return start_own_thread(name, worker_entry, &starts_[number], &threads_[number]);
}

void Pool::ensure_workers(int wanted) noexcept {
  if (workers_.load(std::memory_order_relaxed) >= wanted) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (int have = workers_.load(std::memory_order_relaxed); have < wanted; ++have) {
    if (!start_worker(have)) return;
    workers_.store(have + 1, std::memory_order_relaxed);
  }
}

bool Pool::join_region(uint32_t* seen_epoch) {
  uint64_t gate = gate_.load(std::memory_order_acquire);
  while (epoch_of(gate) != *seen_epoch && slots_of(gate) > 0) {
    if (gate_.compare_exchange_weak(gate, gate - kSlotOne + kActiveOne, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
      *seen_epoch = epoch_of(gate);
      return true;
    }
  }
  return false;
}

void Pool::leave_region() {
  const uint64_t before = gate_.fetch_sub(kActiveOne);
  if (active_of(before) == 1 && caller_sleeps_.exchange(0) == 1) futex_wake(&caller_sleeps_, 1);
}

void Pool::work(uint32_t number, uint32_t seen_epoch) {
  for (;;) {
    const uint32_t news = wake_.load();
    if (stop_.load()) return;
    bool joined = false;
    const bool stop_spinning = spin_until(spin_ns(), [&] {
      joined = join_region(&seen_epoch);
      return joined || wake_.load(std::memory_order_relaxed) != news;
    });
    if (joined) {
      shares_[number].ran_at.store(seen_epoch, std::memory_order_relaxed);
      const unsigned own = _mm_getcsr();
      if (own != region_.mxcsr) _mm_setcsr(region_.mxcsr);
      take_chunks(number);
      if (_mm_getcsr() != own) _mm_setcsr(own);
      leave_region();
      continue;
    }
    if (stop_spinning) continue;
    // Either the caller sees this sleeper and wakes it, or this thread sees the moved word.
    sleepers_.fetch_add(1);
    if (wake_.load() == news) futex_wait(&wake_, news);
    sleepers_.fetch_sub(1);
    shares_[number].ran_at.store(epoch_of(gate_.load(std::memory_order_relaxed)),
                                 std::memory_order_relaxed);
  }
}

void Pool::cut_into_shares(uint64_t chunks, uint32_t shares) {
  for (uint64_t i = 0; i < shares; ++i) {
    const uint64_t first = chunks * i / shares;
    const uint64_t end = chunks * (i + 1) / shares;
    shares_[i].left.store(first << 32 | end, std::memory_order_relaxed);
  }
}

bool Pool::Share::take(bool from_front, int64_t* chunk) {
  uint64_t seen = left.load(std::memory_order_relaxed);
  for (;;) {
    const uint64_t first = seen >> 32;
    const uint64_t end = seen & UINT32_MAX;
    if (first >= end) return false;
    const uint64_t rest = from_front ? seen + (uint64_t{1} << 32) : seen - 1;
    if (!left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) continue;
    *chunk = static_cast<int64_t>(from_front ? first : end - 1);
    return true;
  }
}

// Of exceptions the first is kept for the caller; the other threads take what is left.
void Pool::take_chunks(uint32_t number) noexcept {
  const Region& r = region_;
  try {
    for (uint32_t i = 0; i < r.shares; ++i) {
      Share& share = shares_[(number + i) % r.shares];
      for (int64_t chunk = 0; share.take(/*from_front=*/i == 0, &chunk);) {
        const int64_t begin = chunk * r.grain;
        r.task.run(r.task.state, begin, r.count - begin > r.grain ? begin + r.grain : r.count);
      }
    }
  } catch (...) {
    if (!has_failed_.exchange(true)) failure_ = std::current_exception();
  }
}

void Pool::open_region(uint32_t slots) {
  const uint64_t epoch = epoch_of(gate_.load(std::memory_order_relaxed)) + uint64_t{1};
  gate_.store(epoch * kEpochOne + slots * kSlotOne);  // the epoch's carry falls off the top
  wake_.fetch_add(1);
  const uint32_t asleep = sleepers_.load();
  if (asleep > 0) futex_wake(&wake_, static_cast<int>(std::min(slots, asleep)));
}

// `gate` as it was when the region ended.
void Pool::look_for_workers(uint64_t gate) {
  if (slots_of(gate) == 0 || spin_ns() == 0) {
    absent_ns_ = 0;
    return;
  }
  const int64_t now = monotonic_ns();
  if (absent_ns_ == 0) {
    absent_ns_ = now;
    absent_epoch_ = epoch_of(gate);
  }
  if (now - absent_ns_ < kAbsentNs) return;
  absent_ns_ = 0;
  for (int i = 0; i < worker_count(); ++i) {
    const uint32_t ran_at = shares_[i + 1].ran_at.load(std::memory_order_relaxed);
    if (static_cast<int32_t>(ran_at - absent_epoch_) >= 0) continue;
    move_off_cpu(threads_[i], current_cpu());
    absent_ns_ = now + kMovedNs;
  }
}

void Pool::close_region() {
  uint64_t gate = gate_.load();
  while (!gate_.compare_exchange_weak(gate, gate & ~(0xFFFF * kSlotOne))) {
  }
  look_for_workers(gate);
  const auto all_left = [&] { return active_of(gate_.load(std::memory_order_acquire)) == 0; };
  if (spin_until(spin_ns(), all_left)) return;
  while (!all_left()) {
    caller_sleeps_.store(1);
    if (active_of(gate_.load()) == 0) break;
    futex_wait(&caller_sleeps_, 1);
  }
  caller_sleeps_.store(0);
}

void Pool::run(int threads, int64_t count, int64_t grain, Parallel::Task task) {
  const int64_t chunks = count > 0 ? (count - 1) / grain + 1 : 0;
  const bool is_one_threads = threads <= 1 || chunks <= 1 || chunks > UINT32_MAX;  // see Share
  if (is_one_threads || busy_.exchange(true, std::memory_order_acquire)) {
    run_inline(count, grain, task);
    return;
  }
  const int wanted = static_cast<int>(std::min<int64_t>(threads, chunks)) - 1;
  ensure_workers(wanted);
  const int helpers = std::min(wanted, worker_count());
  const auto shares = static_cast<uint32_t>(helpers) + 1;
  region_ = Region{task, count, grain, shares, _mm_getcsr()};
  cut_into_shares(static_cast<uint64_t>(chunks), shares);
  open_region(static_cast<uint32_t>(helpers));
  take_chunks(/*number=*/0);
  close_region();
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  has_failed_.store(false, std::memory_order_relaxed);
  busy_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

int find_default_thread_count() {
  int count = std::min(affinity_cpu_count(), physical_core_count());
  const int quota = cgroup_cpu_limit();
  if (quota > 0) count = std::min(count, quota);
  count = std::clamp(count, 1, kMaxThreads);
  const char* const text = std::getenv("FOLIO_THREADS");
  if (!text || !*text) return count;
  int forced = 0;
  const char* const end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, forced);
  if (parsed.ec == std::errc() && parsed.ptr == end && forced >= 1 && forced <= kMaxThreads) {
    return forced;
  }
  log(LogLevel::kWarning, cat("FOLIO_THREADS='", text, "' ignored: expected a number from 1 to ",
                              kMaxThreads, "; using ", count));
  return count;
}

}  // namespace

int default_thread_count() {
  static const int count = find_default_thread_count();
  return count;
}

PoolView::PoolView(int threads)
    : threads_(threads <= 0 ? default_thread_count() : std::min(threads, kMaxThreads)) {
  if (threads_ > 1) pool().add_user();
}

PoolView::~PoolView() {
  if (threads_ > 1) pool().remove_user();
}

void PoolView::run(int64_t count, int64_t grain, Task task) {
  grain = std::max<int64_t>(grain, 1);
  if (threads_ <= 1) {
    run_inline(count, grain, task);
    return;
  }
  pool().run(threads_, count, grain, task);
}

int pool_worker_count() { return pool().worker_count(); }

}  // namespace folio
