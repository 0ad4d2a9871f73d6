// Weights of small integers in blocks, in tiles.
#include "core/kernels/x86_amx/tiles.h"

#include "core/kernels/x86_amx/blocks.inl"
