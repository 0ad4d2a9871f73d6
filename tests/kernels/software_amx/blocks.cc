// Weights of small integers in blocks, in tiles in memory.
#include "tests/kernels/software_amx/tiles.h"

#include "core/kernels/x86_amx/blocks.inl"
