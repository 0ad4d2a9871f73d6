// Products of floats in tiles in memory.
#include "tests/kernels/software_amx/tiles.h"

#include "core/kernels/x86_amx/float.inl"
