# 16 lanes, 32 registers, masks. VNNI is a folder of its own, as BF16 and AMX would be.
set(ISA_RANK 20)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuFma | kCpuF16c")
