// Products of bytes in tiles.
#include "core/kernels/x86_amx/tiles.h"

#include "core/kernels/x86_amx/gemm.inl"
