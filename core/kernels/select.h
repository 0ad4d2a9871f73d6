// Picks the kernels for a CPU: ref/ first, then each ISA folder whose needs are met, oldest to
// newest, each overwriting the slots it does better. A level that has a check of its own is left
// out where the machine fails it.
//
// Flow:    os/ tells the CPU's bits (and honours FOLIO_CPU) -> here -> a Program keeps the table.
// Owns:    one static table per distinct set of usable levels and precision, made at first use,
// never freed. Threads: any.
#pragma once

#include <cstddef>

#include "core/base/cpu_bits.h"
#include "core/kernels/kernels.h"

namespace folio {

// One folder under core/kernels/.
struct KernelLevel {
  const char* name;             // the folder: "ref", "x86_avx2", ...
  CpuBits needs;                // all of these bits
  void (*fill)(FolioKernels*);  // overwrites the slots that the level has
  int (*check)();  // or null: 0 when this machine's results are wrong; some microseconds
};

// All levels of this build, oldest first; "ref" is the first.
struct KernelLevels {
  const KernelLevel* first;
  size_t count;
  const KernelLevel* begin() const { return first; }
  const KernelLevel* end() const { return first + count; }
};
KernelLevels kernel_levels();

inline bool level_usable(const KernelLevel& level, CpuBits bits) {
  return (level.needs & ~bits) == 0;
}

// Bit i: `bits` allow the i-th of at most 32 levels, and it has no check or `passes` it.
unsigned levels_in_use(const KernelLevels& levels, CpuBits bits,
                       bool (*passes)(const KernelLevel& level));

// The newest level that `bits` would allow and whose check failed, or null. Levels are checked once
// a process, by the first call that needs to know, of this or of those below.
const char* failed_kernel_level(CpuBits bits);

// The table for a CPU with `bits`. The same usable levels and precision (not kFolioChain) give the
// same table, for ever.
const FolioKernels& kernels_for(CpuBits bits, FolioPrecision precision = kFolioHighest);

// The newest level in that table, for reports.
const char* kernel_level_name(CpuBits bits);

}  // namespace folio
