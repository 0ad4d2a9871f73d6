/* Matrix product of bytes in tiles: 16 rows of A times 16 columns of B, 64 deep, an instruction.
 * The including file gives the words for tiles before.
 *
 * A piece of an S8P16K4 panel, 16 groups of four rows, is a tile of B as it stands. A's tiles are
 * read where its rows stand when those are a step apart and the piece is 64 deep; else the piece is
 * copied, filled up with zeros. Sums of 32 x 32 (or 16 x 64) stay in four tiles over a depth.
 *
 * What it should take, in cycles of a Xeon: an instruction of products 16, the load of a tile 8. A
 * step of 64 of the depth is 4 products and 4 loads (5 for 16 x 64), so loads hide behind products
 * while their lines arrive: 4 KiB in 64 cycles, half from A's 32 rows, which stay in the first
 * cache (kDepth), half from B, which stays in the second (kGroupBytes). The sums go to memory and
 * become what FolioSums says between the products of the stripe after theirs: 64 columns of a row
 * are some 30 vector instructions, two rows of them a step of the depth at 512. What remains:
 * storing four tiles of sums (some 64 cycles for each 32 x 32, whose products take k) and, for
 * depths beyond kDepth, loading them again. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

namespace {

constexpr int64_t kTile = FOLIO_TILE_ROWS;  /* rows of A, columns of B, groups of the depth */
constexpr int64_t kStep = FOLIO_TILE_BYTES; /* of the depth */
constexpr int64_t kTileBytes = kTile * kStep;
constexpr int64_t kRows = 2 * kTile; /* of a block */
constexpr int64_t kDepth = 1024;     /* of a block: 32 KiB of A */
constexpr int64_t kSteps = kDepth / kStep;
constexpr int64_t kStripePanels = 4; /* or fewer */
constexpr int64_t kStripes = 4;      /* of a group, at most */
constexpr int64_t kGroupBytes = int64_t{1} << 20;
constexpr int64_t kStripeColumns = kStripePanels * kColumns;
constexpr int64_t kStripeSums = kRows * kStripeColumns;
/* Fewer are left to the level below: rows that would not fill tiles, or steps of mostly zeros. */
constexpr int64_t kFewRows = 4;
constexpr int64_t kFewDeep = 32;

/* A tile to load. */
struct Source {
  const void* at;
  int64_t stride;
};

/* Four panels or fewer, and what FolioSums says of their columns. */
struct Stripe {
  const FolioGemmU8* args;
  int64_t column, panels;
  __m512i offset[kStripePanels], b_zero[kStripePanels];
  Codes codes;                    /* to bytes */
  CodeAdd add;                    /* to sums of bytes */
  int is_plain;                   /* to plain bytes of whole panels */
  PanelSums words[kStripePanels]; /* to the others */
};

/* Sums of a stripe in memory, of which rows from `next` on wait to be finished. */
struct Pending {
  const Stripe* stripe;
  const int32_t* sums; /* [rows][kStripeColumns] */
  void (*finish)(const Stripe*, const int32_t*, int64_t row, int64_t count);
  int64_t row; /* of C */
  int64_t next, rows;
};

/* Up to kStripes stripes times a block of rows. */
struct Group {
  const FolioGemmU8* args;
  int64_t panel_bytes;
  int64_t panels; /* of this group */
  Stripe stripes[kStripes];
  const char* first[kStripes]; /* their first panel */
  int64_t from, to;            /* depth */
  int64_t row, rows;
  bool prefetches; /* the stripe after each */
  Source a[2][kSteps];
  Pending pending;
  int64_t pace; /* rows of it to finish in a step */
  alignas(64) uint8_t pieces[2][kSteps][kTileBytes];
  alignas(64) char ends[kStripes][kStripePanels][kTileBytes]; /* the last steps of B */
  alignas(64) int32_t waiting[kStripes][kStripeSums];
  alignas(64) int32_t sums[2][kStripeSums];
};
static_assert(sizeof(Group) <= 110 * 1024, "on the stack; kernels.h promises 112 KiB in all");

/* ---- what becomes of the sums */

void begin_stripe(Stripe* stripe) {
  const FolioSums* s = &stripe->args->sums;
  const int64_t left = stripe->args->n - stripe->column;
  stripe->panels = left < kStripeColumns ? (left + kColumns - 1) / kColumns : kStripePanels;
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t v = 0; v < stripe->panels; ++v) {
    const int64_t j = stripe->column + v * kColumns;
    const __mmask16 mask = first_lanes(left - v * kColumns);
    stripe->offset[v] = load_offset(s, j, left - v * kColumns);
    stripe->b_zero[v] = s->row_sum ? _mm512_maskz_loadu_epi32(mask, s->b_zero + j) : zero;
    if (s->to != kFolioToByte) stripe->words[v] = load_panel(s, j, left - v * kColumns);
  }
  if (s->to != kFolioToByte) return;
  stripe->codes = make_codes(s, stripe->column, left);
  stripe->is_plain = stripe->codes.is_plain && left >= stripe->panels * kColumns;
  if (s->add) stripe->add = make_code_add(s, stripe->is_plain);
}

/* Rows of sums, kStripeColumns apart, to C from its row `row` on. */
template <int kPanels>
void finish_rows(const Stripe* stripe, const int32_t* sums, int64_t row, int64_t count) {
  const FolioGemmU8* args = stripe->args;
  const FolioSums* s = &args->sums;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  char* c = (char*)args->c + (row * args->c_row_stride + stripe->column) * size;
  for (int64_t i = 0; i < count; ++i, sums += kStripeColumns, c += args->c_row_stride * size) {
    const __m512i row_sum = _mm512_set1_epi32(s->row_sum ? s->row_sum[row + i] : 0);
    __m512i sum[kPanels];
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      sum[v] = _mm512_add_epi32(stripe->offset[v], _mm512_load_si512(sums + v * kColumns));
      if (!s->row_sum) continue;
      sum[v] = _mm512_sub_epi32(sum[v], _mm512_mullo_epi32(row_sum, stripe->b_zero[v]));
    }
    if (s->add) {
      const uint8_t* addend = s->addend + (row + i) * s->addend_row_stride + stripe->column;
      store_sums_of_codes<kPanels>(&stripe->codes, &stripe->add, sum, {1, 0, 0, addend, c});
    } else if (s->to == kFolioToByte && stripe->is_plain) {
      store_codes<kPanels, 1, 1>(&stripe->codes, sum, c);
    } else if (s->to == kFolioToByte) {
      store_codes<kPanels, 0, 0>(&stripe->codes, sum, c);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) store_words(s, &stripe->words[v], sum[v], c + v * 64);
    }
  }
}

VFN void finish_some(Pending* p, int64_t count) {
  if (p->next == p->rows) return;
  if (count > p->rows - p->next) count = p->rows - p->next;
  p->finish(p->stripe, p->sums + p->next * kStripeColumns, p->row + p->next, count);
  p->next += count;
}

void start_pending(Group* g, int64_t stripe, const int32_t* sums) {
  Pending* p = &g->pending;
  const int64_t panels = g->stripes[stripe].panels;
  p->stripe = &g->stripes[stripe];
  p->sums = sums;
  p->finish = panels == 4   ? finish_rows<4>
              : panels == 3 ? finish_rows<3>
              : panels == 2 ? finish_rows<2>
                            : finish_rows<1>;
  p->row = g->row;
  p->next = 0;
  p->rows = g->rows;
}

/* ---- tiles of A */

/* The pieces of A at depth p: the first of `count` pointers or null, and how deep into them. */
struct Piece {
  const uint8_t* const* rows;
  int64_t first, left;
};

VFN Piece piece_at(const FolioGemmU8* args, int64_t row, int64_t p) {
  const int64_t piece = p / args->a_run;
  const int64_t first = p - piece * args->a_run;
  return {args->a_rows + piece * args->m + row, first, args->a_run - first};
}

/* Whether `count` <= 16 pointers are a step apart. */
VFN bool is_regular(const uint8_t* const* rows, int64_t count) {
  if (count < 3) return true;
  const __m512i step = _mm512_set1_epi64(rows[1] - rows[0]);
  const __m512i first = _mm512_set1_epi64((long long)(intptr_t)rows[0]);
  const __m512i index = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  __mmask8 other = 0;
  for (int64_t i = 0; i < count; i += 8) {
    const __mmask8 m = (__mmask8)(count - i >= 8 ? 0xff : (1 << (count - i)) - 1);
    const __m512i at = _mm512_add_epi64(index, _mm512_set1_epi64(i));
    const __m512i want = _mm512_add_epi64(first, _mm512_mullo_epi64(at, step));
    other |= _mm512_mask_cmpneq_epi64_mask(m, _mm512_maskz_loadu_epi64(m, rows + i), want);
  }
  return other == 0;
}

/* to[i][0, deep) = the bytes from `p` on of `count` rows, zeros behind them. */
void copy_rows(const FolioGemmU8* args, int64_t row, int64_t count, int64_t p, int64_t deep,
               uint8_t* to) {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* from = args->a + (row + i) * args->a_row_stride + p;
    const __mmask64 m = deep >= kStep ? ~UINT64_C(0) : (UINT64_C(1) << deep) - 1;
    _mm512_store_si512(to + i * kStep, _mm512_maskz_loadu_epi8(m, from));
  }
}

/* The same of pieces, whose lengths are whole groups of four bytes. */
void copy_pieces(const FolioGemmU8* args, int64_t row, int64_t count, int64_t p, int64_t deep,
                 uint8_t* to) {
  int64_t done = 0;
  while (done < deep) {
    const Piece piece = piece_at(args, row, p + done);
    const int64_t length = piece.left < deep - done ? piece.left : deep - done;
    const __mmask16 m = first_lanes(length / 4);
    const __mmask16 all = first_lanes((kStep - done) / 4); /* and zeros */
    for (int64_t i = 0; i < count; ++i) {
      const __m512i x = _mm512_maskz_loadu_epi32(m, piece.rows[i] + piece.first);
      _mm512_mask_storeu_epi32(to + i * kStep + done, all, x);
    }
    done += length;
  }
}

/* Whether rows of a block's depth crowd in few sets of the first cache, too many for its ways; then
 * they are copied if they serve several stripes. */
bool is_crowded(const Group* g) {
  return g->args->a_row_stride % 2048 == 0 && g->rows > kTile && g->panels > kStripePanels;
}

/* A's tiles of the block, of which half h are 16 rows or what is left of them. */
void find_sources(Group* g) {
  const FolioGemmU8* args = g->args;
  const bool copies = is_crowded(g);
  for (int64_t h = 0; h * kTile < g->rows; ++h) {
    const int64_t row = g->row + h * kTile;
    const int64_t left = g->rows - h * kTile;
    const int64_t count = left < kTile ? left : kTile;
    const uint8_t* const* known = nullptr; /* the pieces that were looked at last */
    bool regular = false;
    for (int64_t p = g->from, s = 0; p < g->to; p += kStep, ++s) {
      const int64_t deep = g->to - p < kStep ? g->to - p : kStep;
      uint8_t* copy = g->pieces[h][s];
      g->a[h][s] = {copy, kStep};
      if (!args->a_rows) {
        if (deep == kStep && !copies) {
          g->a[h][s] = {args->a + row * args->a_row_stride + p, args->a_row_stride};
        } else {
          copy_rows(args, row, count, p, deep, copy);
        }
        continue;
      }
      const Piece piece = piece_at(args, row, p);
      if (piece.left >= kStep && piece.rows != known) {
        known = piece.rows;
        regular = is_regular(known, count);
      }
      if (piece.left >= kStep && regular) {
        g->a[h][s] = {piece.rows[0] + piece.first, count > 1 ? piece.rows[1] - piece.rows[0] : 0};
      } else {
        copy_pieces(args, row, count, p, deep, copy);
      }
    }
  }
}

/* ---- products */

/* Four tiles of sums: of kHalves times kPanels, C[h][v] is tile h * kPanels + v when there are two
 * halves, else v. Tiles 4 and 5 are A's, or 4 A's only; those after them B's. */
template <int kHalves, int kPanels>
struct Tiles {
  static_assert(kHalves * kPanels <= 4, "as many tiles of sums");
  static constexpr int kFirstB = 4 + kHalves;
  static constexpr int kCountB = 4 - kHalves;

  static constexpr int c(int h, int v) { return kHalves == 2 ? 2 * h + v : v; }
  static constexpr int a(int h) { return 4 + h; }
  static constexpr int b(int v) { return kFirstB + v % kCountB; }
};

TileShapes shapes_of(int64_t rows) {
  TileShapes shapes = {};
  shapes.palette = 1;
  const int64_t upper = rows < kTile ? rows : kTile;
  const int64_t lower = rows > kTile ? rows - kTile : upper;
  const int64_t fifth = rows > kTile ? lower : kTile; /* of A or of B */
  const int64_t counts[FOLIO_TILE_COUNT] = {upper, upper, lower, lower, upper, fifth, kTile, kTile};
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    shapes.rows[i] = (uint8_t)counts[i];
    shapes.row_bytes[i] = FOLIO_TILE_BYTES;
  }
  return shapes;
}

/* sums[h * 16 + i][v * 16 + j], row by row of a stripe, are all tiles of sums from v on. */
template <int kHalves, int kPanels, int kV = 0>
VFN void load_sums(const int32_t* sums) {
  using T = Tiles<kHalves, kPanels>;
  if constexpr (kV < kPanels) {
    if (sums) {
      tile_load<T::c(0, kV)>(sums + kV * kTile, 4 * kStripeColumns);
    } else {
      tile_zero<T::c(0, kV)>();
    }
    if constexpr (kHalves == 2) {
      if (sums) {
        tile_load<T::c(1, kV)>(sums + kTile * kStripeColumns + kV * kTile, 4 * kStripeColumns);
      } else {
        tile_zero<T::c(1, kV)>();
      }
    }
    load_sums<kHalves, kPanels, kV + 1>(sums);
  }
}

template <int kHalves, int kPanels, int kV = 0>
VFN void store_sums(int32_t* sums) {
  using T = Tiles<kHalves, kPanels>;
  if constexpr (kV < kPanels) {
    tile_store<T::c(0, kV)>(sums + kV * kTile, 4 * kStripeColumns);
    if constexpr (kHalves == 2) {
      tile_store<T::c(1, kV)>(sums + kTile * kStripeColumns + kV * kTile, 4 * kStripeColumns);
    }
    store_sums<kHalves, kPanels, kV + 1>(sums);
  }
}

template <int kHalves, int kPanels, int kV = 0>
VFN void add_panels(const char* b, int64_t panel_bytes) {
  using T = Tiles<kHalves, kPanels>;
  if constexpr (kV < kPanels) {
    tile_load<T::b(kV)>(b, kStep);
    tile_dot_us<T::c(0, kV), T::a(0), T::b(kV)>();
    if constexpr (kHalves == 2) tile_dot_us<T::c(1, kV), T::a(1), T::b(kV)>();
    add_panels<kHalves, kPanels, kV + 1>(b + panel_bytes, panel_bytes);
  }
}

template <int kHalves, int kPanels>
VFN void add_step(const Group* g, int64_t step, const char* b, int64_t panel_bytes) {
  tile_load<4>(g->a[0][step].at, g->a[0][step].stride);
  if constexpr (kHalves == 2) tile_load<5>(g->a[1][step].at, g->a[1][step].stride);
  add_panels<kHalves, kPanels>(b, panel_bytes);
}

/* The sums over the block's depth of kPanels panels from `panel` of a stripe on, more than `before`
 * (null: zeros), to `after`. `ahead`: the panels to come after the stripe's, or null. */
template <int kHalves, int kPanels>
void add_products(Group* g, int64_t stripe, int64_t panel, const int32_t* before, int32_t* after,
                  const char* ahead) {
  const char* b = g->first[stripe] + panel * g->panel_bytes + g->from * kColumns;
  const int64_t whole = (g->to - g->from) / kStep;
  load_sums<kHalves, kPanels>(before ? before + panel * kTile : nullptr);
  for (int64_t s = 0; s < whole; ++s) {
    add_step<kHalves, kPanels>(g, s, b + s * kTileBytes, g->panel_bytes);
    if (ahead) {
      const char* next = ahead + panel * g->panel_bytes + s * kTileBytes;
      for (int v = 0; v < kPanels; ++v, next += g->panel_bytes) {
        for (int64_t line = 0; line < kTileBytes; line += 64) {
          _mm_prefetch(next + line, _MM_HINT_T1);
        }
      }
    }
    finish_some(&g->pending, g->pace);
  }
  if (g->from + whole * kStep < g->to) {
    add_step<kHalves, kPanels>(g, whole, g->ends[stripe][panel], kTileBytes);
  }
  store_sums<kHalves, kPanels>(after + panel * kTile);
}

typedef void (*ProductsFn)(Group*, int64_t stripe, int64_t panel, const int32_t*, int32_t*,
                           const char*);
/* By panels, of one half and of two. */
const ProductsFn kProducts[2][kStripePanels + 1] = {
    {nullptr, add_products<1, 1>, add_products<1, 2>, add_products<1, 3>, add_products<1, 4>},
    {nullptr, add_products<2, 1>, add_products<2, 2>}};

/* ---- the loops around them */

/* A stripe of the block over a part of its depth. */
void run_stripe(Group* g, int64_t stripe, const char* ahead, int32_t** free_sums) {
  const int64_t panels = g->stripes[stripe].panels;
  const int64_t halves = g->rows > kTile ? 2 : 1;
  const int64_t most = kStripePanels / halves;
  const bool is_last = g->to == g->args->k;
  const int32_t* before = g->from > 0 ? g->waiting[stripe] : nullptr;
  int32_t* after = is_last ? *free_sums : g->waiting[stripe];
  const int64_t steps = (g->to - g->from) / kStep * ((panels + most - 1) / most);
  const int64_t rows = g->pending.rows - g->pending.next;
  g->pace = steps > 0 ? (rows + steps - 1) / steps : rows;
  for (int64_t v = 0; v < panels; v += most) {
    const int64_t count = panels - v < most ? panels - v : most;
    kProducts[halves - 1][count](g, stripe, v, before, after, ahead);
  }
  if (!is_last) return;
  finish_some(&g->pending, kRows);
  *free_sums = after == g->sums[0] ? g->sums[1] : g->sums[0];
  start_pending(g, stripe, after);
}

/* Stripes `first` on, `count` of them; the last steps of their panels, filled up with zeros. */
void begin_group(Group* g, int64_t first, int64_t count, int64_t panels) {
  const FolioGemmU8* args = g->args;
  const int64_t rest = args->k % kStep;
  const int64_t left = panels - first * kStripePanels;
  g->panels = left < count * kStripePanels ? left : count * kStripePanels;
  for (int64_t i = 0; i < count; ++i) {
    g->stripes[i].args = args;
    g->stripes[i].column = (first + i) * kStripeColumns;
    begin_stripe(&g->stripes[i]);
    g->first[i] = (const char*)args->b + (first + i) * kStripePanels * g->panel_bytes;
    for (int64_t v = 0; rest && v < kStripePanels && i * kStripePanels + v < g->panels; ++v) {
      const char* from = g->first[i] + v * g->panel_bytes + (args->k - rest) * kColumns;
      for (int64_t q = 0; q < kTile; ++q) {
        const __m512i x =
            4 * q < rest ? _mm512_load_si512(from + q * kStep) : _mm512_setzero_si512();
        _mm512_store_si512(g->ends[i][v] + q * kStep, x);
      }
    }
  }
}

/* The rows of a block times the stripes of a group. `next`: the group after it, or null. */
void run_block(Group* g, int64_t count, int64_t depth, const char* next, int32_t** free_sums) {
  const int64_t k = g->args->k;
  for (g->from = 0; g->from < k; g->from = g->to) {
    g->to = k - g->from <= depth ? k : g->from + depth;
    find_sources(g);
    for (int64_t i = 0; i < count; ++i) {
      const char* ahead = nullptr;
      if (g->prefetches) {
        ahead = i + 1 < count ? g->first[i + 1] + g->from * kColumns
                : g->to < k   ? g->first[0] + g->to * kColumns
                              : next;
      }
      run_stripe(g, i, ahead, free_sums);
    }
  }
}

void multiply_tiles(const FolioGemmU8* args) {
  Group g;
  g.args = args;
  g.panel_bytes = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  g.pending.next = g.pending.rows = 0;
  const int64_t panels = (args->n + kColumns - 1) / kColumns;
  const int64_t stripes = (panels + kStripePanels - 1) / kStripePanels;
  const int64_t depths = (args->k + kDepth - 1) / kDepth;
  const int64_t depth = ((args->k + depths - 1) / depths + kStep - 1) / kStep * kStep;
  const int64_t fitting = kGroupBytes / (kStripePanels * g.panel_bytes);
  const int64_t most = fitting < 1 ? 1 : fitting > kStripes ? kStripes : fitting;
  int32_t* free_sums = g.sums[0];
  int64_t shaped = 0;
  for (int64_t first = 0; first < stripes; first += most) {
    const int64_t count = stripes - first < most ? stripes - first : most;
    /* Sums that wait use what begin_group overwrites. */
    finish_some(&g.pending, kRows);
    begin_group(&g, first, count, panels);
    const char* next =
        first + count < stripes ? g.first[count - 1] + kStripePanels * g.panel_bytes : nullptr;
    for (g.row = 0; g.row < args->m; g.row += g.rows) {
      g.rows = args->m - g.row < kRows ? args->m - g.row : kRows;
      g.prefetches = g.row == 0;
      if (g.rows != shaped) {
        const TileShapes shapes = shapes_of(g.rows);
        tiles_configure(&shapes);
        shaped = g.rows;
      }
      run_block(&g, count, depth, next, &free_sums);
    }
  }
  finish_some(&g.pending, kRows);
  tiles_release();
}

}  // namespace

static void FOLIO_TILE_LEVEL(gemm_u8)(const FolioGemmU8* args) {
  if (args->m <= kFewRows || args->k < kFewDeep) {
    gemm_u8__x86_avx512vnni(args);
  } else {
    multiply_tiles(args);
  }
}

void FOLIO_TILE_LEVEL(folio_fill_gemm)(FolioKernels* table) {
  table->gemm_u8 = FOLIO_TILE_LEVEL(gemm_u8);
}
