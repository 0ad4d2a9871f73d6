/* The files of this folder to each other. */
#pragma once

#include "core/kernels/kernels.h"

void folio_fill_rows__x86_avx2(FolioKernels* table);
void folio_fill_gemm__x86_avx2(FolioKernels* table);
void folio_fill_products__x86_avx2(FolioKernels* table);
void folio_fill_window__x86_avx2(FolioKernels* table);
void folio_fill_winograd__x86_avx2(FolioKernels* table);
void folio_fill_winograd_bytes__x86_avx2(FolioKernels* table);
void folio_fill_blocks__x86_avx2(FolioKernels* table);

/* For levels above that leave some to this one. */
void gemm_f32__x86_avx2(const FolioGemmF32* args);

/* How groups of S8P16K4 are multiplied with unsigned bytes by vpmaddubsw, which adds two products
 * and saturates at 16 bits. Whatever the bytes, sums of products fit if the positive weights among
 * them are 128 at most together, and the negative ones -128 at least, as 255 * 128 < 2^15. */
enum FolioByteStepKind {
  kFolioJoined, /* two groups, 8 rows of B, whose sums of four products, two of each, fit */
  kFolioSingle, /* one whose sums of two products fit */
  kFolioWide,   /* any other, whose weights are made words */
  kFolioStepKinds
};

/* Where it begins. */
typedef struct FolioByteStep {
  int64_t rows;  /* of A: piece * m in a_rows */
  int64_t first; /* byte of them */
  int64_t b;     /* byte of the part of a panel */
} FolioByteStep;

/* Of a part of a panel, each kind in order. */
constexpr int64_t kMostByteGroups = 128;
typedef struct FolioByteSteps {
  int64_t count[kFolioStepKinds];
  FolioByteStep steps[kFolioStepKinds][kMostByteGroups];
  /* Of the wide ones: the even rows of 8 columns, their odd ones, those of the next 8. */
  alignas(64) char words[kMostByteGroups * 2 * FOLIO_S8P16K4_GROUP];
} FolioByteSteps;

/* Appends `groups` groups of the part that begins at b; `step`: the first of them. */
void list_byte_steps__x86_avx2(const char* b, FolioByteStep step, int64_t groups, int joins,
                               FolioByteSteps* list);
