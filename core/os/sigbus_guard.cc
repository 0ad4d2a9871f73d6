#include "core/os/sigbus_guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "core/os/fork.h"

namespace folio {
namespace {

// Written by whoever owns it; the handler only reads it and sets `hit`. Lock-free atomics are what
// a signal handler may touch.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<bool> hit{false};
  std::atomic<uintptr_t> begin{0};  // 0: no range
  std::atomic<uintptr_t> end{0};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

constexpr size_t kSlotsPerChunk = 256;

struct Chunk {
  Slot slots[kSlotsPerChunk];
  std::atomic<Chunk*> next{nullptr};
};

Chunk g_first;  // the others are allocated and never freed: a handler may be reading them
std::atomic<uint64_t> g_faults{0};
std::atomic<bool> g_on{false};

// x86-64 has pages of one size, but for hugetlbfs, where putting zeros fails and the fault stays.
constexpr uintptr_t page_bytes() { return 4096; }

// The handler that was there; written before ours is installed. Its parts are atomics because one
// with SA_RESETHAND is used up by its first call.
using InfoHandler = void (*)(int, siginfo_t*, void*);
struct Previous {
  std::atomic<void (*)(int)> plain{SIG_DFL};
  std::atomic<InfoHandler> with_info{nullptr};
  int flags = 0;
};
Previous g_previous;

Slot* slot_at(uintptr_t address) {
  for (Chunk* chunk = &g_first; chunk; chunk = chunk->next.load(std::memory_order_acquire)) {
    for (Slot& slot : chunk->slots) {
      const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
      if (begin == 0 || address < begin || address >= slot.end.load(std::memory_order_acquire)) {
        continue;
      }
      // Not one that was given up and taken again between the two loads.
      if (slot.begin.load(std::memory_order_acquire) == begin) return &slot;
    }
  }
  return nullptr;
}

// Zeros from the page at `address` to the range's end: what follows the first page that is gone is
// gone too, or belongs to a model that gives only errors from now on. One mapping for all of it:
// page by page, a large file would take a fault for each and run into the limit of mappings.
bool put_zeros(Slot* slot, uintptr_t address) {
  const uintptr_t begin = address / page_bytes() * page_bytes();
  const uintptr_t end = slot->end.load(std::memory_order_relaxed);
  void* const wanted = reinterpret_cast<void*>(begin);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (mmap(wanted, end - begin, PROT_READ, kFlags, -1, 0) != wanted) return false;
  slot->hit.store(true, std::memory_order_release);
  g_faults.fetch_add(1, std::memory_order_release);
  return true;
}

// What the kernel would have done. The signal is sent again with what it said about the fault;
// blocked here, it is delivered on return, and ends the process with the right cause in its core.
void default_action(int signal, siginfo_t* info) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), signal, info);
}

void call_previous(int signal, siginfo_t* info, void* context) {
  InfoHandler with_info = g_previous.with_info.load(std::memory_order_relaxed);
  void (*plain)(int) = g_previous.plain.load(std::memory_order_relaxed);
  if ((g_previous.flags & SA_RESETHAND) != 0) {
    with_info = g_previous.with_info.exchange(nullptr);
    plain = g_previous.plain.exchange(SIG_DFL);
  }
  if (with_info) {
    with_info(signal, info, context);
  } else if (plain == SIG_IGN && info->si_code <= 0) {
    return;  // sent by a process, and ignored; a fault cannot be
  } else if (plain == SIG_DFL || plain == SIG_IGN) {
    default_action(signal, info);
  } else {
    plain(signal);
  }
}

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  // A page beyond the file's end or one that cannot be read; a page whose memory has failed.
  const bool is_fault = info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  Slot* const slot = is_fault ? slot_at(address) : nullptr;
  const bool done = slot && put_zeros(slot, address);
  errno = saved_errno;
  if (!done) call_previous(signal, info, context);
}

void install() {
  struct sigaction before = {};
  sigaction(SIGBUS, nullptr, &before);
  const bool has_info = (before.sa_flags & SA_SIGINFO) != 0;
  g_previous.flags = before.sa_flags;
  g_previous.with_info.store(has_info ? before.sa_sigaction : nullptr);
  g_previous.plain.store(has_info ? SIG_DFL : before.sa_handler);
  struct sigaction action = {};
  action.sa_sigaction = on_sigbus;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (has_info || (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)) {
    // The stack, the mask and the restarts that its handler expects.
    action.sa_flags = SA_SIGINFO | (before.sa_flags & (SA_ONSTACK | SA_NODEFER | SA_RESTART));
    action.sa_mask = before.sa_mask;
  }
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace

void enable_sigbus_guard() {
  static std::mutex& mutex = new_mutex_held_across_fork(ForkOrder::kBase);
  if (sigbus_guard_is_on()) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (sigbus_guard_is_on()) return;
  install();
  g_on.store(true, std::memory_order_release);
}

bool sigbus_guard_is_on() { return g_on.load(std::memory_order_acquire); }

uint64_t sigbus_guard_faults() { return g_faults.load(std::memory_order_acquire); }

void GuardedRange::set(const void* data, size_t bytes) {
  clear();
  Slot* free_slot = nullptr;
  for (Chunk* chunk = &g_first; !free_slot;) {
    for (Slot& slot : chunk->slots) {
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true)) {
        free_slot = &slot;
        break;
      }
    }
    if (free_slot) break;
    Chunk* next = chunk->next.load(std::memory_order_acquire);
    if (!next) {
      auto* const fresh = new (std::nothrow) Chunk;
      if (!fresh) return;
      if (chunk->next.compare_exchange_strong(next, fresh, std::memory_order_acq_rel)) {
        next = fresh;
      } else {
        delete fresh;  // another thread was first; `next` is its chunk
      }
    }
    chunk = next;
  }
  const auto begin = reinterpret_cast<uintptr_t>(data);
  free_slot->hit.store(false, std::memory_order_relaxed);
  free_slot->end.store((begin + bytes + page_bytes() - 1) / page_bytes() * page_bytes(),
                       std::memory_order_relaxed);
  free_slot->begin.store(begin, std::memory_order_release);
  slot_ = free_slot;
}

void GuardedRange::clear() {
  if (!slot_) return;
  auto* const slot = static_cast<Slot*>(slot_);
  slot->begin.store(0, std::memory_order_release);
  slot->taken.store(false, std::memory_order_release);
  slot_ = nullptr;
}

bool GuardedRange::was_hit() const {
  return slot_ && static_cast<const Slot*>(slot_)->hit.load(std::memory_order_acquire);
}

}  // namespace folio
