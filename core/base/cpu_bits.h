/* One bit per CPU feature that a kernel folder may need. Plain C: safe for ISA folders. */
#pragma once

#include <stdint.h>

enum {
  kCpuAvx2 = 1 << 0,
  kCpuFma = 1 << 1,
  kCpuF16c = 1 << 2,
  kCpuAvx512F = 1 << 3,
  kCpuAvx512Bw = 1 << 4,
  kCpuAvx512Dq = 1 << 5,
  kCpuAvx512Vl = 1 << 6,
  kCpuAvx512Vnni = 1 << 7,
  kCpuAvxVnni = 1 << 8,
  kCpuAvx512Bf16 = 1 << 9,
  kCpuAmxTile = 1 << 10,
  kCpuAmxInt8 = 1 << 11,
  kCpuAmxBf16 = 1 << 12,
  kCpuFastBf16 = 1 << 13, /* AVX512_BF16's products of pairs at the rate of multiply-adds */
  kCpuNarrowL1 = 1 << 14  /* no instructions: its first data cache has few ways: at most 8,
                              AMD's 12 */
};
typedef uint32_t CpuBits;
