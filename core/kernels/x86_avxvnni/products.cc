// Products of bytes and of words.
#include "core/kernels/x86_avxvnni/x86_avxvnni.h"

constexpr int kTileRows = 6;
constexpr int64_t kBlockDepth = 1024; /* 16 KiB of a panel */
constexpr int kLists = 0;             /* dot4 takes any weights */
/* Sums are ready some cycles later: more of them. */
constexpr int kFlatPanels[2] = {2, 1};
typedef struct Steps {
} Steps;
typedef struct StepsRoom {
} StepsRoom;

static Steps list_steps(const FolioGemmU8*, const char*, int64_t, int64_t, int64_t, StepsRoom*) {
  return {};
}

template <typename Sums, typename At>
VFN void add_steps(Sums&, const Steps*, At) {}

#include "core/kernels/vector/gemm_bytes.inl"

static int takes_weights(const VI*, int64_t) { return 1; }

#include "core/kernels/vector/depthwise_bytes.inl"

constexpr int kWordRows = kTileRows;
constexpr int kWordPanels = 1;

#include "core/kernels/vector/word_products.inl"

void folio_fill_products__x86_avxvnni(FolioKernels* table) {
  table->gemm_u8 = FOLIO_LEVEL(gemm_u8);
  table->depthwise_u8 = FOLIO_LEVEL(depthwise_u8);
  fill_word_products(table);
}
