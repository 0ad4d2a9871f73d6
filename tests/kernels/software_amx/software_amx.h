/* The kernels of core/kernels/x86_amx over tiles in memory (tiles.h): for tests, on any machine
 * with AVX-512 VNNI and BF16. Compiled with that folder's flags by cmake/tests.cmake. */
#pragma once

#include "core/kernels/kernels.h"

/* Overwrites the slots that folio_fill_x86_amx would. */
void fill_software_amx(FolioKernels* table);

/* The check of the level on tiles whose every product of bytes is off by `fault`, every sum of
 * products of bfloat16 by `float_fault`. */
int software_tiles_work(int32_t fault, float float_fault);
