// Products of bytes.
#include "core/kernels/x86_avxvnni/x86_avxvnni.h"

constexpr int kTileRows = 6;
constexpr int64_t kBlockDepth = 1024; /* 16 KiB of a panel */
constexpr int kLists = 0;             /* dot4 takes any weights */
typedef char StepsRoom;

#include "core/kernels/vector/gemm_bytes.inl"

static Steps list_steps(const char*, int64_t, StepsRoom*) { return {}; }

static int takes_weights(const VI*, int64_t) { return 1; }

#include "core/kernels/vector/depthwise_bytes.inl"

void folio_fill_products__x86_avxvnni(FolioKernels* table) {
  table->gemm_u8 = FOLIO_LEVEL(gemm_u8);
  table->depthwise_u8 = FOLIO_LEVEL(depthwise_u8);
}
