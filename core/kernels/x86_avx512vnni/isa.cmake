# Products of bytes with four-way dot products; machines with AVX-512 without them exist.
set(ISA_RANK 25)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuAvx512Vnni | kCpuFma | kCpuF16c")
