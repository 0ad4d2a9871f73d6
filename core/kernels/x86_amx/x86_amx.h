/* The files of this folder to each other. FOLIO_TILE_LEVEL is defined before, with the words for
 * tiles. */
#pragma once

#include "core/kernels/kernels.h"

void FOLIO_TILE_LEVEL(folio_fill_gemm)(FolioKernels* table);
void FOLIO_TILE_LEVEL(folio_fill_float)(FolioKernels* table);
void FOLIO_TILE_LEVEL(folio_fill_blocks)(FolioKernels* table);
/* Whether tiles multiply as they should, seen in small products. */
int FOLIO_TILE_LEVEL(folio_tiles_work)(void);
