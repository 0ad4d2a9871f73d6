// SIGBUS guard: a mapped file that became shorter is an error of the run, not the process's end.
//
// Flow:    a mapping registers its range (GuardedRange), guard on or off -> enable_sigbus_guard
//          installs one handler for the process -> a fault in a range puts zeros there, marks the
//          range, and the code that read goes on -> whoever reads the mark (FileWatch) reports it.
//          A SIGBUS anywhere else goes to the handler that was there before, as if we were not.
// Owns:    a table of ranges that a signal handler can read: chunks that are never freed, slots of
//          atomics, no lock. A child of fork has the handler, the table and the mappings.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace folio {

// For the process and for ever; again is nothing. A host that installs a handler of its own later
// must call the one it finds (as everyone does who shares a signal).
void enable_sigbus_guard();
bool sigbus_guard_is_on();

// Faults that the guard has turned away, in all ranges: cheap to compare around a run.
uint64_t sigbus_guard_faults();

class GuardedRange {
 public:
  GuardedRange() = default;
  ~GuardedRange() { clear(); }
  GuardedRange(const GuardedRange&) = delete;
  GuardedRange& operator=(const GuardedRange&) = delete;

  // A mapping of whole pages, all of it ours; to be cleared before it is unmapped. Without memory
  // for the table the range stays unguarded.
  void set(const void* data, size_t bytes);
  void clear();

  // Zeros stand where bytes of the file should.
  bool was_hit() const;

 private:
  void* slot_ = nullptr;
};

}  // namespace folio
