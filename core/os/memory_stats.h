// What the kernel says about a process's memory.
//
// Flow:    reports and benches read; nothing else depends on it. PSS and the private figures are
// the
//          honest ones: RSS counts shared pages fully in every process.
// Owns:    nothing.
// Threads: any.
// Errors:  kIo with the /proc file and errno's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

// All in KiB. What a kernel does not report is 0.
struct MemoryStats {
  uint64_t rss = 0;
  uint64_t pss = 0;
  uint64_t pss_anon = 0;
  uint64_t pss_file = 0;
  uint64_t pss_shmem = 0;
  uint64_t shared_clean = 0;
  uint64_t shared_dirty = 0;
  uint64_t private_clean = 0;
  uint64_t private_dirty = 0;
  uint64_t anonymous = 0;
  uint64_t swap = 0;
  uint64_t vm_hwm = 0;   // the highest RSS so far
  uint64_t vm_pte = 0;   // page tables
  uint64_t threads = 0;  // a count, not KiB
};

// pid 0: this process. Others need the same rights as ptrace.
Result<MemoryStats> read_memory_stats(int pid = 0);

struct AddressRange {
  const void* begin = nullptr;
  size_t bytes = 0;
};

// In KiB, over all ranges. The kernel reports whole mappings: one that a range covers in part
// counts by the share of its bytes inside, and then `exact` is false.
struct RangeStats {
  uint64_t size = 0;
  uint64_t rss = 0;
  uint64_t pss = 0;
  uint64_t private_clean = 0;
  uint64_t private_dirty = 0;
  uint64_t shared_clean = 0;
  uint64_t shared_dirty = 0;
  uint64_t anonymous = 0;
  bool exact = true;
};

// Of this process; ranges must not overlap one another.
Result<RangeStats> read_range_stats(Span<const AddressRange> ranges);

// The same of several groups of ranges at one moment. Groups may overlap, ranges of a group not.
Result<std::vector<RangeStats>> read_group_stats(Span<const std::vector<AddressRange>> groups);

}  // namespace folio
