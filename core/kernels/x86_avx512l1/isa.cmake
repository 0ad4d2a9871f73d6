# No instructions of its own: AVX-512 on CPUs whose first cache has 8 ways, fewer than a tile has rows (Zen 4, Skylake), or AMD's 12 (Zen 5).
set(ISA_RANK 22)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuFma | kCpuF16c | kCpuNarrowL1")
