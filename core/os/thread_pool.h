// The process's thread pool: caller + workers, behind core/base/parallel.h.
//
// Flow:    session/ makes a PoolView with its thread limit -> run/ hands it to kernels' callers ->
//          run() opens a region in which the caller and up to limit - 1 workers take chunks: each
//          its own share of neighbours first, then what others have left -> workers spin for a
//          moment, then sleep on a futex.
// Owns:    the workers. None exists before the first region that needs one; the last PoolView to go
//          joins them. The pool itself is never destroyed (the library is -z nodelete).
// Threads: any thread may start a region; one runs at a time, a second caller and nested regions
// run
//          inline. Workers block all signals, are called folio-1, folio-2 ..., take over the
//          caller's MXCSR for each region, and have 1 MiB of stack beside what the C library keeps
//          there for thread-local objects. After fork the child starts with none.
// Errors:  when a thread cannot be made, the region runs with those there are. Of what chunks throw
//          the caller gets the first.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/parallel.h"

namespace folio {

// More are never made, whatever is asked for.
inline constexpr int kMaxThreads = 256;

// FOLIO_THREADS if it is a number in [1, kMaxThreads]; otherwise min(CPUs of the affinity mask,
// cgroup quota rounded up, physical cores). Found once.
int default_thread_count();

// A session's door to the pool: at most `threads` of them, the caller included. 0: the default. 1:
// everything inline, the pool is not touched. More than the default is allowed.
// Regions must not outlive the view; make and destroy it outside regions.
class PoolView final : public Parallel {
 public:
  explicit PoolView(int threads = 0);
  ~PoolView() override;
  PoolView(const PoolView&) = delete;
  PoolView& operator=(const PoolView&) = delete;

  int thread_count() const override { return threads_; }
  void run(int64_t count, int64_t grain, Task task) override;

 private:
  int threads_;
};

// Workers alive now (without callers). For reports and tests.
int pool_worker_count();

}  // namespace folio
