/* gemm_s16: tiles of kWordRows rows, or up to two fewer, by kWordPanels panels, and by the panels
 * that are left over; A is read in place, two words of a row broadcast.
 *
 * The including file defines before: kLanes and VI, as many int32; vi_broadcast; dot2(sum, a, b),
 * which adds to the sums two products of words each; kWordRows and kWordPanels. */

/* Panels from `b` on times rows of A. */
template <int kRows, int kPanels>
static void word_tile(const FolioGemmS16* args, int64_t row, int64_t column, const char* ahead) {
  constexpr int kOfPanel = 16 / kLanes; /* vectors */
  constexpr int kVectors = kPanels * kOfPanel;
  const int64_t panel = args->k * 32; /* bytes */
  const char* b = (const char*)args->b + column / 16 * panel;
  const char* last = b + (kPanels - 1) * panel;
  const int16_t* a[kRows];
  VI sum[kRows][kVectors];
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i) {
    a[i] = args->a + (row + i) * args->a_row_stride;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[i][v] = VI{};
  }
  for (int64_t p = 0; p < args->k; p += 4) {
    /* Keeps g++ from making one pointer of several: it would run out of registers. */
    __asm__("" : "+r"(b), "+r"(last), "+r"(p));
#pragma GCC unroll 12
    for (int i = 0; kRows <= 6 && i < kRows; ++i) __asm__("" : "+r"(a[i]));
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      VI w[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const int of = v / kOfPanel;
        const char* from = of == kPanels - 1 ? last : b + of * panel;
        __builtin_memcpy(&w[v], from + 64 * g + v % kOfPanel * 32, sizeof(VI));
      }
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) {
        const VI x = vi_broadcast(a[i] + p + 2 * g);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) dot2(&sum[i][v], x, w[v]);
      }
    }
    _mm_prefetch(ahead, _MM_HINT_T1);
    _mm_prefetch(ahead + 64, _MM_HINT_T1);
    ahead += 128;
    b += 128;
    last += 128;
  }
  int32_t* c = args->c + row * args->c_row_stride + column;
#pragma GCC unroll 12
  for (int i = 0; i < kRows; ++i, c += args->c_row_stride) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) __builtin_memcpy(c + v * kLanes, &sum[i][v], sizeof(VI));
  }
}

/* The last of all tiles begins where it ends with A's last row: some sums are made twice. Two lines
 * of the panels that come next are fetched with two groups. */
template <int kRows, int kPanels>
static void word_tiles(const FolioGemmS16* args, int64_t column) {
  if constexpr (kRows > 1) {
    if (args->m < kRows) return word_tiles<1, kPanels>(args, column);
  }
  const int64_t bytes = kPanels * args->k * 32;
  const char* next = (const char*)args->next + column * args->k * 2;
  const char* end = args->next ? next + bytes : next;
  for (int64_t row = 0; row < args->m; row += kRows) {
    const int64_t last = args->m - kRows;
    word_tile<kRows, kPanels>(args, row < last ? row : last, column,
                              next < end ? next : (const char*)args->b);
    next += args->k * 32;
  }
}

/* As few tiles as there can be, of rows as even as can be. */
static void word_wide(const FolioGemmS16* args, int64_t column) {
  const int64_t tiles = (args->m + kWordRows - 1) / kWordRows;
  const int64_t rows = tiles > 0 ? (args->m + tiles - 1) / tiles : 0;
  if (rows > kWordRows - 1) return word_tiles<kWordRows, kWordPanels>(args, column);
  if (rows == kWordRows - 1) return word_tiles<kWordRows - 1, kWordPanels>(args, column);
  word_tiles<kWordRows - 2, kWordPanels>(args, column);
}

/* Fewer panels than are wide: of one alone, tiles of twice the rows. */
template <int kPanels>
static void word_narrow(const FolioGemmS16* args, int64_t column, int64_t panels) {
  if constexpr (kPanels > 1) {
    if (panels < kPanels) return word_narrow<kPanels - 1>(args, column, panels);
  }
  word_tiles<kPanels == 1 ? 2 * kWordRows : kWordRows, kPanels>(args, column);
}

/* Panels by panels: what is read of B stays in the first cache. */
static void FOLIO_LEVEL(gemm_s16)(const FolioGemmS16* args) {
  const int64_t panels = (args->n + 15) / 16;
  const int64_t wide = panels / kWordPanels * kWordPanels;
  for (int64_t p = 0; p < wide; p += kWordPanels) word_wide(args, 16 * p);
  if constexpr (kWordPanels > 1) {
    if (wide < panels) word_narrow<kWordPanels - 1>(args, 16 * wide, panels - wide);
  }
}

static void fill_word_products(FolioKernels* table) {
  table->gemm_s16 = FOLIO_LEVEL(gemm_s16);
  table->winograd_bytes = 1;
}
