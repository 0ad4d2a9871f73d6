// Products of floats in tiles.
#include "core/kernels/x86_amx/tiles.h"

#include "core/kernels/x86_amx/float.inl"
