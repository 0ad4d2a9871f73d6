/* Matrix product of bytes in tiles: 16 rows of A times 16 columns of B, 64 deep, an instruction.
 * The including file gives the words for tiles before.
 *
 * A piece of an S8P16K4 panel, 16 groups of four rows, is a tile of B as it stands. A's tiles are
 * read where its rows stand when those are a step apart and the piece is 64 deep, or ends within
 * other rows; else the piece is copied, filled up with zeros. A cell is 32 x 32 sums (or 16 x 64),
 * which stay in four tiles over a depth. They are stored between the first products of the next
 * cell, and become what FolioSums says line by line between its others.
 *
 * What it takes, in cycles of a Xeon with AMX (2 MB of L2, November 2026), a product of tiles being
 * 16: loads of tiles from the first cache and a vector instruction or two a cycle hide behind
 * products entirely, so 32 x 32 x 512 could take 512. Beyond these, B's 16 KiB from the second
 * cache take some 70; what becomes of the sums some 70, and its way to lines of C that are not in
 * the first cache some 70 more. Stores of tiles took 90 at the end of a cell and take next to
 * nothing between the products of the next. That is 22.5 cycles a product at a depth of 512, or
 * 71 %, and 64 at a depth of 64, where vector instructions decide (some 350 a cell).
 *
 * The clock falls from 3.3 GHz to 2.45 when tiles of random bytes and vectors of 64 bytes are busy
 * together: of 6744 GOP/s that products alone reach, 4950 are left then. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

/* Of members and lambdas. */
#define FOLIO_TILE_INLINE __attribute__((always_inline))

namespace {

constexpr int64_t kTile = FOLIO_TILE_ROWS;  /* rows of A, columns of B, groups of the depth */
constexpr int64_t kStep = FOLIO_TILE_BYTES; /* of the depth */
constexpr int64_t kTileBytes = kTile * kStep;
constexpr int64_t kTileSums = kTile * kTile;
constexpr int64_t kRows = 2 * kTile; /* of a block */
/* Of a block, where the whole depth is no more. More is cut into parts for which A and B of a cell
 * fit the first cache: 49 x 512 x 4608 then takes 43 cycles a product instead of 49, 49 x 512 x
 * 2048 33 instead of 40; a depth of 1024 takes 25.7 in one piece and 26.8 in two. */
constexpr int64_t kDepth = 1152;
constexpr int64_t kPart = 640;
constexpr int64_t kSteps = kDepth / kStep;
constexpr int64_t kCellTiles = 4;
/* Of a group, or fewer: A passes once for each. 64 instead of 16 make 24.1 cycles a product 22.7 at
 * 512^3, 28.8 27.2 at 1024^3 and 39.4 35.9 at 49 x 2048 x 512. Depths that are cut, or end within a
 * step, need memory for each panel. */
constexpr int64_t kMostPanels = 64;
constexpr int64_t kMostCutPanels = 16;
constexpr int64_t kCells = kMostPanels / 2;
constexpr int64_t kGroupBytes = int64_t{1} << 20; /* of B; half of it if the next are fetched */
/* For more than a block and up to so many rows, the panels of the next group are fetched into the
 * second cache meanwhile: those of a model come from far. 48 x 3072 x 768 with B out of the caches
 * then takes 66 cycles a product instead of 87, 128 x 3072 x 768 45 instead of 49; of a B that is
 * in a cache already they lose up to 8 %. More rows hide the way anyhow, one block has nothing to
 * hide it behind, and of great depths a group is few columns (49 x 512 x 4608 would lose 20 %). */
constexpr int64_t kMostFetching = 128;
constexpr int64_t kMostFetchingDepth = 2304;
/* Steps of a depth from which on every other cell goes through it backwards: A and B of a cell then
 * exceed the first cache, and the last of A is still there. 1024 deep: 25.5 cycles a product become
 * 22; 512 deep it loses 2 %. */
constexpr int64_t kTurningSteps = 11;
/* Steps of a depth from which on B's tiles go past the first cache, where A's of the block, which
 * all cells take, are else pushed out: 1024^3 860 -> 630 us, 196 x 256 x 1024 40.5 -> 30.4, 512^3
 * 85.7 -> 76.2; 384 x 64 x 256 would lose 6 %. */
constexpr int64_t kPassingSteps = 8;
/* Depth up to which sums are finished a cell later: their lines stand between the products of the
 * first step then. 64 deep 79 cycles a product become 67. */
constexpr int64_t kLagDepth = 128;
/* Fewer are left to the level below: rows that would not fill tiles, or steps of mostly zeros. */
constexpr int64_t kFewRows = 4;
constexpr int64_t kFewDeep = 32;

/* A tile to load. */
struct Source {
  const void* at;
  int64_t stride;
};

/* What becomes of sums: any way, or a short one for whole tiles. */
enum Form {
  kAnyForm = 0,
  kPlainCodes,
  kLeastCodes, /* plain ones whose zero point is the least, as behind a Relu */
  kAddedCodes,
  kFloats = kAddedCodes + 4,
  kFloatsAndBias
};
constexpr int kForms = kFloatsAndBias + 1;

/* Panels whose sums with a block of rows are four tiles or fewer, and what FolioSums says of their
 * columns. */
struct Cell {
  int64_t panel; /* of the group */
  int64_t panels;
  int64_t column;
  int form;
  __m512i offset[kCellTiles], b_zero[kCellTiles];
  union {
    Codes codes;                 /* to bytes */
    PanelSums words[kCellTiles]; /* to the others */
  };
};

/* Sums of a cell with a block of rows, whose lines from `next` on wait to be finished. A line is
 * the same row of all tiles. */
struct Sums {
  const Cell* cell;
  int64_t row, rows; /* of C */
  int64_t next, lines;
  int form; /* of whole tiles */
};

/* Up to kCells cells times a block of rows. */
struct Group {
  const FolioGemmU8* args;
  const char* b; /* its first panel */
  int64_t panel_bytes;
  int64_t column, panels;
  int64_t from, to; /* depth */
  int64_t row, rows;
  int64_t halves; /* of the rows, for which the panels were cut into cells */
  int64_t count;  /* of cells */
  Cell cells[kCells];
  CodeAdd add, add_any;        /* to sums of bytes */
  const char *next, *next_end; /* bytes of B to fetch for the group after this */
  int64_t next_bytes;          /* in a step */
  Source a[2][kSteps];
  /* Of the cell before: */
  void (*leave)(int32_t*); /* stores tiles of its shape; null: there are none */
  int32_t* left;           /* where they go if their depth does not end yet, or null */
  Sums in_tiles;           /* what they are if it does */
  /* Those before it, in memory. */
  Sums pending[2];
  int64_t last; /* that was stored */
  int64_t lag;  /* 1: finished while the cell after the next is multiplied, 0: while the next is */
  alignas(64) uint8_t pieces[2][kSteps][kTileBytes];
  alignas(64) char ends[kMostCutPanels][kTileBytes]; /* the last steps of B */
  alignas(
      64) int32_t waiting[kMostCutPanels / 2][kCellTiles][kTileSums]; /* for more of the depth */
  alignas(64) int32_t sums[2][kCellTiles][kTileSums];                 /* pending */
};
static_assert(sizeof(Group) <= 142 * 1024, "on the stack; kernels.h promises 144 KiB in all");

/* ---- what becomes of the sums */

int form_of(const Group* g, const Cell* cell, bool is_whole) {
  const FolioSums* s = &g->args->sums;
  if (s->row_sum || !is_whole || s->to == kFolioToInt32) return kAnyForm;
  if (s->to == kFolioToFloat) return s->bias ? kFloatsAndBias : kFloats;
  if (!cell->codes.is_plain) return kAnyForm;
  if (!s->add) return s->zero == s->lo ? kLeastCodes : kPlainCodes;
  return g->add.form == kAnyAdd ? kAnyForm : kAddedCodes + g->add.form - kFastAdd;
}

void begin_cell(const Group* g, Cell* cell) {
  const FolioSums* s = &g->args->sums;
  const int64_t left = g->args->n - cell->column;
  const int64_t columns = cell->panels * kColumns;
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t v = 0; v < cell->panels; ++v) {
    const int64_t j = cell->column + v * kColumns;
    const __mmask16 mask = first_lanes(left - v * kColumns);
    cell->offset[v] = load_offset(s, j, left - v * kColumns);
    cell->b_zero[v] = s->row_sum ? _mm512_maskz_loadu_epi32(mask, s->b_zero + j) : zero;
    if (s->to != kFolioToByte) cell->words[v] = load_panel(s, j, left - v * kColumns);
  }
  if (s->to == kFolioToByte) {
    cell->codes = make_codes(s, cell->column, left < columns ? left : columns);
  }
  cell->form = form_of(g, cell, left >= columns);
}

/* Rows of one half of a cell any way: from row `i` of its tiles on. */
template <int kPanels>
void finish_rows(const Group* g, int64_t slot, int64_t half, int64_t i, int64_t count) {
  const FolioGemmU8* args = g->args;
  const FolioSums* s = &args->sums;
  const Sums* p = &g->pending[slot];
  const Cell* cell = p->cell;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  const int64_t row = p->row + half * kTile + i;
  const int32_t* sums = g->sums[slot][half * kPanels] + i * kTile;
  char* c = (char*)args->c + (row * args->c_row_stride + cell->column) * size;
  const CodeAdd* add = cell->form == kAnyForm ? &g->add_any : &g->add;
  for (int64_t r = row; r < row + count; ++r, sums += kTile, c += args->c_row_stride * size) {
    const __m512i row_sum = _mm512_set1_epi32(s->row_sum ? s->row_sum[r] : 0);
    __m512i sum[kPanels];
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      sum[v] = _mm512_add_epi32(cell->offset[v], _mm512_load_si512(sums + v * kTileSums));
      if (!s->row_sum) continue;
      sum[v] = _mm512_sub_epi32(sum[v], _mm512_mullo_epi32(row_sum, cell->b_zero[v]));
    }
    if (s->add) {
      const uint8_t* addend = s->addend + r * s->addend_row_stride + cell->column;
      store_sums_of_codes<kPanels>(&cell->codes, add, sum, {1, 0, 0, addend, c});
    } else if (cell->form == kPlainCodes || cell->form == kLeastCodes) {
      store_codes<kPanels, 1, 1>(&cell->codes, sum, c);
    } else if (s->to == kFolioToByte) {
      store_codes<kPanels, 0, 0>(&cell->codes, sum, c);
    } else {
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) store_words(s, &cell->words[v], sum[v], c + v * 64);
    }
  }
}

typedef void (*FinishFn)(const Group*, int64_t slot, int64_t half, int64_t i, int64_t count);
const FinishFn kFinish[kCellTiles + 1] = {nullptr, finish_rows<1>, finish_rows<2>, finish_rows<3>,
                                          finish_rows<4>};

/* Up to `count` more lines, any way. */
__attribute__((noinline)) void finish_some(Group* g, int64_t slot, int64_t count) {
  Sums* p = &g->pending[slot];
  const int64_t to = p->next + count < p->lines ? p->next + count : p->lines;
  for (int64_t half = 0; half * kTile < p->rows; ++half) {
    const int64_t rows = p->rows - half * kTile < to ? p->rows - half * kTile : to;
    if (rows > p->next) kFinish[p->cell->panels](g, slot, half, p->next, rows - p->next);
  }
  p->next = to;
}

/* Lines of four whole tiles in one of the short ways, inline between products. */
template <int kHalves, int kForm>
struct Lines {
  static constexpr int kPanels = kCellTiles / kHalves;
  static constexpr bool kToBytes = kForm != kAnyForm && kForm < kFloats;
  static constexpr bool kIsAdded = kToBytes && kForm >= kAddedCodes;

  FOLIO_TILE_INLINE Lines(Group* g, int64_t slot) : add(&g->add) {
    const FolioGemmU8* args = g->args;
    const FolioSums* s = &args->sums;
    const Sums* p = &g->pending[slot];
    const Cell* cell = p->cell;
    codes = &cell->codes;
    sums = g->sums[slot][0];
    stride = args->c_row_stride * (kToBytes ? 1 : 4);
    c = (char*)args->c + p->row * stride + cell->column * (kToBytes ? 1 : 4);
    addend_stride = s->addend_row_stride;
    if (kIsAdded) addend = s->addend + p->row * addend_stride + cell->column;
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      offset[v] = cell->offset[v];
      scale[v] = kToBytes ? cell->codes.scale[v] : cell->words[v].scale;
      if (kForm == kFloatsAndBias) bias[v] = cell->words[v].bias;
    }
  }

  FOLIO_TILE_INLINE void store_words(int64_t i, const __m512i* sum) const {
#pragma GCC unroll 4
    for (int t = 0; t < kCellTiles; ++t) {
      const int v = t % kPanels;
      __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sum[t]), scale[v]);
      if (kForm == kFloatsAndBias) value = _mm512_add_ps(value, bias[v]);
      _mm512_storeu_ps(c + (t / kPanels * kTile + i) * stride + v * 64, value);
    }
  }

  FOLIO_TILE_INLINE void finish(int64_t i) const {
    __m512i sum[kCellTiles], code[kCellTiles];
#pragma GCC unroll 4
    for (int t = 0; t < kCellTiles; ++t) {
      sum[t] = _mm512_add_epi32(offset[t % kPanels],
                                _mm512_load_si512(sums + t * kTileSums + i * kTile));
    }
    if constexpr (!kToBytes) {
      store_words(i, sum);
      return;
    }
#pragma GCC unroll 4
    for (int t = 0; t < kCellTiles; ++t) {
      if constexpr (!kIsAdded) {
        code[t] = round_code<1>(codes, sum[t], scale[t % kPanels]);
      } else {
        const uint8_t* from =
            addend + (t / kPanels * kTile + i) * addend_stride + t % kPanels * kColumns;
        code[t] = add_code<kForm - kAddedCodes>(add, sum[t], scale[t % kPanels],
                                                _mm_loadu_si128((const __m128i*)(const void*)from));
      }
    }
    __m512i bytes;
    if constexpr (kForm == kLeastCodes) {
      bytes = _mm512_packus_epi16(_mm512_packs_epi32(code[0], code[1]),
                                  _mm512_packs_epi32(code[2], code[3]));
      bytes = in_order(_mm512_xor_si512(bytes, codes->flip));
    } else if constexpr (kForm == kPlainCodes) {
      bytes = in_order(pack_codes<1>(codes, code));
    } else {
      bytes = in_order(pack_added<kForm - kAddedCodes>(add, code));
    }
    if constexpr (kHalves == 1) {
      _mm512_storeu_si512(c + i * stride, bytes);
    } else {
      _mm256_storeu_si256((__m256i*)(void*)(c + i * stride), _mm512_castsi512_si256(bytes));
      _mm256_storeu_si256((__m256i*)(void*)(c + (kTile + i) * stride),
                          _mm512_extracti64x4_epi64(bytes, 1));
    }
  }

  const Codes* codes;
  const CodeAdd* add;
  const int32_t* sums;
  char* c;
  int64_t stride;
  const uint8_t* addend = nullptr;
  int64_t addend_stride;
  __m512i offset[kPanels];
  __m512 scale[kPanels], bias[kPanels];
};

/* Nothing stands inline. */
template <int kHalves>
struct Lines<kHalves, kAnyForm> {
  FOLIO_TILE_INLINE Lines(Group*, int64_t) {}
};

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
 * they are copied if they serve several cells. */
bool is_crowded(const Group* g) {
  return g->args->a_row_stride % 2048 == 0 && g->rows > kTile && g->panels > 4;
}

/* Whether a tile of rows before `end`, which are a step apart, may be loaded from p on where they
 * stand, though the depth may end within it: it ends within the rows behind them, and those are
 * multiplied by zeros. 384 x 96 x 32 5.5 -> 5.0 us, 156 x 64 x 148 3.0 -> 2.8. */
bool ends_in_rows(const FolioGemmU8* args, int64_t end, int64_t p) {
  return (args->m - end) * args->a_row_stride >= p + kStep - args->k;
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
        if (!copies && ends_in_rows(args, row + count, p)) {
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

/* Tile h * kPanels + v of a cell's sums in memory is C[h][v]. */
template <int kHalves, int kPanels, int kI = 0>
void leave_tiles(int32_t* to) {
  if constexpr (kI < kHalves * kPanels) {
    tile_store<Tiles<kHalves, kPanels>::c(kI / kPanels, kI % kPanels)>(to + kI * kTileSums, kStep);
    leave_tiles<kHalves, kPanels, kI + 1>(to);
  }
}

/* Where sums of the cell before go that are still in tiles, and where those of this one come from;
 * null: nowhere, and zeros. */
struct Turn {
  int32_t* left;
  const int32_t* before;
};

template <int kC, int kI>
VFN void turn_tile(const Turn& turn) {
  if (turn.left) tile_store<kC>(turn.left + kI * kTileSums, kStep);
  if (turn.before) {
    tile_load<kC>(turn.before + kI * kTileSums, kStep);
  } else {
    tile_zero<kC>();
  }
}

/* A step of the depth; the first one of a cell turns its tiles. After each product comes what
 * `between` does. */
template <int kHalves, int kPanels, bool kTurns, int kV = 0, typename F>
VFN void add_step(const Source* const (&a)[2], const char* b, int64_t panel_bytes, bool passes,
                  const Turn& turn, const F& between) {
  using T = Tiles<kHalves, kPanels>;
  if constexpr (kV < kPanels) {
    if (passes) {
      tile_load<T::b(kV), true>(b, kStep);
    } else {
      tile_load<T::b(kV)>(b, kStep);
    }
    if constexpr (kV == 0) tile_load<T::a(0)>(a[0]->at, a[0]->stride);
    if constexpr (kTurns) turn_tile<T::c(0, kV), kV>(turn);
    tile_dot_us<T::c(0, kV), T::a(0), T::b(kV)>();
    between(kHalves * kV);
    if constexpr (kHalves == 2) {
      if constexpr (kV == 0) tile_load<T::a(1)>(a[1]->at, a[1]->stride);
      if constexpr (kTurns) turn_tile<T::c(1, kV), kPanels + kV>(turn);
      tile_dot_us<T::c(1, kV), T::a(1), T::b(kV)>();
      between(kHalves * kV + 1);
    }
    add_step<kHalves, kPanels, kTurns, kV + 1>(a, b + panel_bytes, panel_bytes, passes, turn,
                                               between);
  }
}

/* Not inline, where it would take registers from cells that fetch nothing. */
__attribute__((noinline)) void fetch_some(Group* g) {
  const char* const end = g->next + g->next_bytes;
  for (; g->next < end; g->next += 64) _mm_prefetch(g->next, _MM_HINT_T1);
}

/* A cell over the block's depth, whose sums stay in tiles. Sums in `slot`, which are of kForm, are
 * finished in between. */
template <int kHalves, int kPanels, int kForm>
void multiply_cell(Group* g, int64_t index, int64_t slot, const Turn& turn) {
  const Cell* cell = &g->cells[index];
  const int64_t whole = (g->to - g->from) / kStep;
  const int64_t steps = (g->to - g->from + kStep - 1) / kStep;
  const char* b = g->b + cell->panel * g->panel_bytes + g->from * kColumns;
  const Lines<kHalves, kForm> pending(g, slot);
  Sums* p = &g->pending[slot];
  const int64_t lines = p->lines;
  int64_t line = p->next;
  const int64_t pauses = g->lag ? steps : steps - 1; /* to finish lines in */
  const int64_t pace = pauses > 1 ? (lines - line + pauses - 1) / pauses : lines;
  const auto finish_to = [&](int64_t to) FOLIO_TILE_INLINE {
    if constexpr (kForm == kAnyForm) {
      if (line < lines && line < to) finish_some(g, slot, to - line);
      line = to;
    } else {
      for (to = to < lines ? to : lines; line < to; ++line) pending.finish(line);
    }
  };
  const bool passes = steps >= kPassingSteps;
  const int64_t way = steps >= kTurningSteps && index % 2 != 0 ? -1 : 1;
  int64_t step = way < 0 ? whole - 1 : 0;
  const char* at = b + step * kTileBytes;
  int64_t stride = g->panel_bytes;
  for (int64_t s = 0; s < steps; ++s, step += way, at += way * kTileBytes) {
    if (s == whole) { /* what is no whole step comes last, wherever it stands */
      step = whole;
      at = g->ends[cell->panel];
      stride = kTileBytes;
    }
    if (g->next < g->next_end) fetch_some(g);
    const Source* const a[2] = {&g->a[0][step], &g->a[1][step]};
    if (s > 0) {
      add_step<kHalves, kPanels, false>(a, at, stride, passes, turn, [](int) FOLIO_TILE_INLINE {});
      finish_to(line + pace);
    } else if (g->lag) {
      add_step<kHalves, kPanels, true>(a, at, stride, passes, turn, [&](int i) FOLIO_TILE_INLINE {
        finish_to(pace * (i + 1) / (kHalves * kPanels));
      });
    } else {
      add_step<kHalves, kPanels, true>(a, at, stride, passes, turn, [](int) FOLIO_TILE_INLINE {});
    }
  }
  finish_to(lines);
  p->next = p->lines = 0;
  g->leave = leave_tiles<kHalves, kPanels>;
}

typedef void (*CellFn)(Group*, int64_t index, int64_t slot, const Turn&);

#define FOLIO_CELLS(halves, panels)                                         \
  {                                                                         \
    multiply_cell<halves, panels, 0>, multiply_cell<halves, panels, 1>,     \
        multiply_cell<halves, panels, 2>, multiply_cell<halves, panels, 3>, \
        multiply_cell<halves, panels, 4>, multiply_cell<halves, panels, 5>, \
        multiply_cell<halves, panels, 6>, multiply_cell<halves, panels, 7>, \
        multiply_cell<halves, panels, 8>                                    \
  }
const CellFn kWholeCells[2][kForms] = {FOLIO_CELLS(1, 4), FOLIO_CELLS(2, 2)};
#undef FOLIO_CELLS
const CellFn kNarrowCells[2][kCellTiles] = {
    {nullptr, multiply_cell<1, 1, 0>, multiply_cell<1, 2, 0>, multiply_cell<1, 3, 0>},
    {nullptr, multiply_cell<2, 1, 0>}};

/* ---- the loops around them */

/* Where the sums in tiles go; they are pending then if they are whole. */
int32_t* leave_to(Group* g) {
  if (!g->leave) return nullptr;
  if (g->left) return g->left;
  g->last ^= g->lag;
  g->pending[g->last] = g->in_tiles;
  return g->sums[g->last][0];
}

/* Nothing is in tiles then, and nothing pending. */
void finish_all(Group* g) {
  finish_some(g, 0, kTile);
  finish_some(g, 1, kTile);
  if (g->leave) g->leave(leave_to(g));
  g->leave = nullptr;
  finish_some(g, g->last, kTile);
}

/* A cell of the block over a part of its depth. */
void run_cell(Group* g, int64_t index) {
  const Cell* cell = &g->cells[index];
  const bool is_whole = cell->panels * g->halves == kCellTiles;
  const bool is_last = g->to == g->args->k;
  if (g->leave && cell->panels != g->in_tiles.cell->panels) finish_all(g);
  const Turn turn = {leave_to(g), g->from > 0 ? g->waiting[index][0] : nullptr};
  const int64_t slot = g->last ^ g->lag;
  const Sums* p = &g->pending[slot];
  const int form = p->next < p->lines ? p->form : kAnyForm;
  (is_whole ? kWholeCells[g->halves - 1][form] : kNarrowCells[g->halves - 1][cell->panels])(
      g, index, slot, turn);
  g->left = is_last ? nullptr : g->waiting[index][0];
  const bool is_short = is_whole && (g->halves == 1 || g->rows == kRows);
  g->in_tiles = {cell,
                 g->row,
                 g->rows,
                 0,
                 g->rows < kTile ? g->rows : kTile,
                 is_short ? cell->form : kAnyForm};
}

/* The group's panels, as cells for so many halves of rows. */
void cut_cells(Group* g, int64_t halves) {
  const int64_t most = kCellTiles / halves;
  g->halves = halves;
  g->count = 0;
  for (int64_t panel = 0; panel < g->panels; panel += most) {
    Cell* cell = &g->cells[g->count++];
    cell->panel = panel;
    cell->panels = g->panels - panel < most ? g->panels - panel : most;
    cell->column = g->column + panel * kColumns;
    begin_cell(g, cell);
  }
}

/* `panels` panels from `first` on; their last steps, filled up with zeros. */
void begin_group(Group* g, int64_t first, int64_t panels) {
  const FolioGemmU8* args = g->args;
  const int64_t rest = args->k % kStep;
  g->panels = panels;
  g->column = first * kColumns;
  g->b = (const char*)args->b + first * g->panel_bytes;
  g->halves = 0;
  for (int64_t v = 0; rest && v < panels; ++v) {
    const char* from = g->b + v * g->panel_bytes + (args->k - rest) * kColumns;
    for (int64_t q = 0; q < kTile; ++q) {
      const __m512i x = 4 * q < rest ? _mm512_load_si512(from + q * kStep) : _mm512_setzero_si512();
      _mm512_store_si512(g->ends[v] + q * kStep, x);
    }
  }
}

/* What to fetch while this group is multiplied: `panels` panels behind its own, evenly. */
void plan_fetches(Group* g, int64_t panels) {
  const int64_t blocks = (g->args->m + kRows - 1) / kRows;
  const int64_t cells = (g->panels + 1) / 2;
  const int64_t steps = (g->args->k + kStep - 1) / kStep * cells * blocks;
  const int64_t bytes = panels * g->panel_bytes;
  g->next = g->b + g->panels * g->panel_bytes;
  g->next_end = g->next + bytes;
  g->next_bytes = (bytes / 64 + steps - 1) / steps * 64;
}

/* The rows of a block times the cells of a group. */
void run_block(Group* g, int64_t depth) {
  const int64_t k = g->args->k;
  for (g->from = 0; g->from < k; g->from = g->to) {
    g->to = k - g->from <= depth ? k : g->from + depth;
    find_sources(g);
    for (int64_t i = 0; i < g->count; ++i) run_cell(g, i);
  }
}

void multiply_tiles(const FolioGemmU8* args) {
  Group g;
  g.args = args;
  g.panel_bytes = (args->k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  g.pending[0] = g.pending[1] = Sums();
  g.leave = nullptr;
  g.last = 0;
  if (args->sums.add) {
    g.add = make_code_add(&args->sums, 1);
    g.add_any = make_code_add(&args->sums, 0);
  }
  const int64_t panels = (args->n + kColumns - 1) / kColumns;
  const int64_t depths = args->k <= kDepth ? 1 : (args->k + kPart - 1) / kPart;
  const int64_t depth = ((args->k + depths - 1) / depths + kStep - 1) / kStep * kStep;
  const bool fetches = args->m > kRows && args->m <= kMostFetching && args->k <= kMostFetchingDepth;
  const int64_t group_bytes = fetches ? kGroupBytes / 2 : kGroupBytes;
  const int64_t fitting = group_bytes / g.panel_bytes / kCellTiles * kCellTiles;
  const int64_t room = depths > 1 || args->k % kStep != 0 ? kMostCutPanels : kMostPanels;
  const int64_t most = fitting < kCellTiles ? kCellTiles : fitting > room ? room : fitting;
  g.lag = depth <= kLagDepth ? 1 : 0;
  int64_t shaped = 0;
  for (int64_t first = 0; first < panels; first += most) {
    finish_all(&g);
    begin_group(&g, first, panels - first < most ? panels - first : most);
    const int64_t rest = panels - first - g.panels;
    plan_fetches(&g, !fetches ? 0 : rest < most ? rest : most);
    for (g.row = 0; g.row < args->m; g.row += g.rows) {
      g.rows = args->m - g.row < kRows ? args->m - g.row : kRows;
      const int64_t halves = g.rows > kTile ? 2 : 1;
      if (g.rows != shaped) {
        const TileShapes shapes = shapes_of(g.rows);
        finish_all(&g);
        tiles_configure(&shapes);
        shaped = g.rows;
      }
      if (g.halves != halves) cut_cells(&g, halves);
      run_block(&g, depth);
    }
  }
  finish_all(&g);
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
  table->winograd_bytes = 0;
}
