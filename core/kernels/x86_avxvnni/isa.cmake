# Products of bytes four at a time for CPUs without AVX-512.
set(ISA_RANK 15)
set(ISA_FLAGS -mavx2 -mfma -mf16c -mavxvnni)
set(ISA_NEEDS "kCpuAvx2 | kCpuFma | kCpuF16c | kCpuAvxVnni")
