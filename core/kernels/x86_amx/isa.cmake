# Tiles of 16 rows of 64 bytes and their products. The text speaks in own assembly: the flags only show that the assembler knows it.
set(ISA_RANK 30)
set(ISA_FLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16 -mfma -mf16c -mamx-tile -mamx-int8 -mamx-bf16)
set(ISA_NEEDS "kCpuAvx512F | kCpuAvx512Bw | kCpuAvx512Dq | kCpuAvx512Vl | kCpuAvx512Vnni | kCpuAvx512Bf16 | kCpuFma | kCpuF16c | kCpuAmxTile | kCpuAmxInt8 | kCpuAmxBf16")
set(ISA_HAS_CHECK ON)
if(FOLIO_SOFTWARE_AMX) # see CMakeLists.txt
  string(REGEX REPLACE " \\| kCpuAmx[A-Za-z0-9]+" "" ISA_NEEDS "${ISA_NEEDS}")
  set(ISA_SOURCE_DIR ${PROJECT_SOURCE_DIR}/tests/kernels/software_amx)
  if(FOLIO_IDLE_TILES) # what tiles would have stored stays unset
    list(APPEND ISA_FLAGS -DFOLIO_IDLE_TILES -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
endif()
