# Products of pairs of bfloat16 at the rate of multiply-adds of floats: twice as many.
set(ISA_RANK 28)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuFma | kCpuF16c | kCpuAvx512Bf16 | kCpuFastBf16")
