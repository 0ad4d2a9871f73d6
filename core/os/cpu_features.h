// What the CPU can do, and how much of the machine this process may use.
//
// Flow:    kernels/select reads cpu_bits() once and fills its table; the pool reads the counts;
//          reports print the brand.
// Owns:    nothing; cpu_bits() is found once and kept.
// Threads: any.
// Errors:  none: what cannot be read (no /sys, no /proc) counts as "no limit".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/cpu_bits.h"

namespace folio {

// Bits that both the CPU and the kernel offer, limited by FOLIO_CPU (see limit_cpu_bits; an unknown
// value is logged once and ignored). AMX bits imply that this process has been given its tile
// state: the permission is asked for once, and only when the level allows AMX. Not every thread may
// use it (tile_threads.h).
CpuBits cpu_bits();

// `level` is one of ref, avx2, avxvnni, avx512, amx: clears the bits above it. "avx2" is AVX2 + FMA
// + F16C and nothing else, so that a forced level means the same on every machine; "avxvnni" is
// that with AVX-VNNI, where the CPU has it; "avx512" has no AMX but has AVX-VNNI. False, and *bits
// untouched, when the level is none of these.
[[nodiscard]] bool limit_cpu_bits(std::string_view level, CpuBits* bits);

// "Intel(R) Xeon(R) Processor", or "" when the CPU does not say.
const std::string& cpu_brand();

// CPUs that this thread may run on (its affinity mask); at least 1.
int affinity_cpu_count();

// Distinct physical cores among those CPUs; the CPUs themselves when the topology is unknown.
int physical_core_count();

// CPUs worth of time that cgroups (v2 and v1, every level up to the root) grant, rounded up; 0 when
// there is no limit. `root` is put before every path that is read: "" outside tests.
[[gnu::cold]] int cgroup_cpu_limit(const std::string& root = "");

}  // namespace folio
