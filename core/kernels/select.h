// Picks the kernels for a CPU: ref/ first, then each ISA folder whose needs are met, oldest to
// newest, each overwriting the slots it does better.
//
// Flow:    os/ tells the CPU's bits (and honours FOLIO_CPU) -> here -> a Program keeps the table.
// Owns:    one static table per distinct set of usable levels, made at first use, never freed.
// Threads: any.
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

// The table for a CPU with `bits`. The same usable levels give the same table, for ever.
const FolioKernels& kernels_for(CpuBits bits);

// The newest level in that table, for reports.
const char* kernel_level_name(CpuBits bits);

}  // namespace folio
