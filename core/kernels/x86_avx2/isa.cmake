# 8 lanes, 16 registers.
set(ISA_RANK 10)
set(ISA_FLAGS -mavx2 -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx2 | kCpuFma | kCpuF16c")
