# No instructions of its own: what is better for AMD's CPUs with AVX-VNNI (Zen 5 and later) than for others with VNNI.
set(ISA_RANK 26)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuAvx512Vnni | kCpuFma | kCpuF16c | kCpuAvxVnni | kCpuFastBf16")
