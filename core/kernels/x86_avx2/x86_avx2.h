/* The files of this folder to each other. */
#pragma once

#include "core/kernels/kernels.h"

void folio_fill_rows__x86_avx2(FolioKernels* table);
void folio_fill_gemm__x86_avx2(FolioKernels* table);
void folio_fill_products__x86_avx2(FolioKernels* table);
void folio_fill_window__x86_avx2(FolioKernels* table);
void folio_fill_winograd__x86_avx2(FolioKernels* table);
void folio_fill_blocks__x86_avx2(FolioKernels* table);

/* For levels above that leave some to this one. */
void gemm_f32__x86_avx2(const FolioGemmF32* args);

/* Weights whose products vpmaddubsw adds in pairs without leaving 16 bits: of two neighbours w and
 * v, -128 <= w + v <= 128, as 255 * 128 < 2^15. With any bytes beside them: those of equal signs
 * reach 255 * (w + v), those of different signs less than 255 * 128.
 *
 * Makes such weights of the `groups` groups of S8P16K4 at b: of a group that is none by itself two,
 * of every other weight each, the others 0. Returns how many groups they are, of which at[i] is the
 * first row of B, from b's on. When they are the groups at b themselves nothing is written to
 * `split`. Room for 2 * groups. */
int64_t split_groups__x86_avx2(const char* b, int64_t groups, int32_t* at, char* split);
