/* Weights of small integers in blocks times many rows of 8-bit integers, in tiles. The including
 * file gives the words for tiles before.
 *
 * An instruction makes the sums of one block for 16 rows and 16 columns: of its 16 cycles half are
 * lost on blocks of 32, but what follows costs more, a conversion, a product and an addition of
 * each sum in f32, some 24 cycles. They are done for four blocks while the tiles make the next
 * four. D of a block is a whole number that f32 holds, and the chains of sums are those of
 * block_weights.h: the same bits as at every level.
 *
 * Codes are unpacked less their default zero, so that D needs no further sum where that is the
 * zero. The integers of 16 rows are copied in the order of tiles, [block][row][at most 64 bytes],
 * once for 64 columns; so are their scales, and the sums of their blocks, as [block][row]. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/vector/block_panels.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

/* Less the default zero, signed. */
template <int kBits>
VFN VI panel_codes(VI codes) {
  return _mm512_sub_epi8(codes, _mm512_set1_epi8((char)(1 << (kBits - 1))));
}

namespace {

constexpr int64_t kRows = FOLIO_BLOCK_ROWS;
constexpr int kFlight = 4; /* blocks whose sums are made together */
/* Fewer rows fill too little of a tile: the level below is faster. */
constexpr int64_t kFewRows = 8;

static_assert(kRows == FOLIO_TILE_ROWS && kLanes == FOLIO_TILE_ROWS, "a tile of sums");

/* 16 rows of A. */
struct Rows {
  int8_t* codes;  /* [blocks][parts of a block][kRows][part] */
  float* scales;  /* [padded blocks][kRows] */
  float* middles; /* the same: what the default zero adds to D */
};

/* How a block is cut for tiles. */
struct Cut {
  int64_t block;
  int64_t part;  /* bytes of a row of A, at most 64 */
  int64_t parts; /* of a block */
  int shift;     /* part is 2^shift */
};

Cut cut_of(int64_t block) {
  const int64_t part = block < FOLIO_TILE_BYTES ? block : FOLIO_TILE_BYTES;
  return {block, part, block / part, __builtin_ctzll((unsigned long long)part)};
}

/* Where byte `at` of row i, counted in elements of A, goes. */
VFN int8_t* place_of(const Rows& rows, const Cut& cut, int64_t i, int64_t at) {
  const int64_t within = at & (cut.part - 1);
  return rows.codes + (at - within) * kRows + (i << cut.shift) + within;
}

/* 64 elements from `at` on in the order of a panel: a quad of the low plane, then one of the high.
 */
template <int kBits>
VFN void order_elements(const Shape& s, const int8_t* from, int64_t at, __m256i* to) {
  if constexpr (kBits == 8) {
    to[0] = _mm256_loadu_si256((const __m256i*)(from + at));
    to[1] = _mm256_loadu_si256((const __m256i*)(from + at + 32));
  } else {
    const __m256i low = _mm256_loadu_si256((const __m256i*)(from + at / 2));
    const __m256i high = _mm256_loadu_si256((const __m256i*)(from + s.plane + at / 2));
    const __m256i even = _mm256_unpacklo_epi32(low, high); /* in each half */
    const __m256i odd = _mm256_unpackhi_epi32(low, high);
    to[0] = _mm256_permute2x128_si256(even, odd, 0x20);
    to[1] = _mm256_permute2x128_si256(even, odd, 0x31);
  }
}

VFN void put_elements(const Cut& cut, __m256i x, int64_t at, int64_t i, const Rows& rows) {
  if (cut.part >= 32) {
    _mm256_storeu_si256((__m256i*)place_of(rows, cut, i, at), x);
  } else {
    _mm_storeu_si128((__m128i*)place_of(rows, cut, i, at), _mm256_castsi256_si128(x));
    _mm_storeu_si128((__m128i*)place_of(rows, cut, i, at + 16), _mm256_extracti128_si256(x, 1));
  }
}

/* Rows from the first on, as many as there are, the last one again for those that are not. */
template <int kBits>
void arrange_rows(const Shape& s, const Cut& cut, const Row& a, int64_t count, const Rows& to) {
  for (int64_t at = 0; at < s.blocks * cut.block; at += 64) { /* planes are padded */
    for (int64_t i = 0; i < kRows; ++i) {
      __m256i x[2];
      order_elements<kBits>(s, a.codes + (i < count ? i : count - 1) * s.row, at, x);
      put_elements(cut, x[0], at, i, to);
      put_elements(cut, x[1], at + 32, i, to);
    }
  }
  VI blocks[kLanes];
  for (int64_t b = 0; b < s.padded; b += kLanes) {
    turn_columns(a.scales, s.row, count, b, s.padded, blocks);
    for (int64_t i = 0; i < kLanes; ++i) vi_store(to.scales + (b + i) * kRows, blocks[i]);
    turn_columns(a.middles, s.row, count, b, s.padded, blocks);
    for (int64_t i = 0; i < kLanes; ++i) {
      v_store(to.middles + (b + i) * kRows, v_from_int(blocks[i]));
    }
  }
}

TileShapes shapes_of(const Cut& cut) {
  TileShapes shapes = {};
  shapes.palette = 1;
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    const bool is_b = i >= 6;
    const bool is_a = i >= 4 && !is_b;
    shapes.rows[i] = (uint8_t)(is_b ? cut.part / 4 : kRows);
    shapes.row_bytes[i] = (uint16_t)(is_a ? cut.part : FOLIO_TILE_BYTES);
  }
  return shapes;
}

/* The sums of block b, by tile kU; A in tiles 4 and 5, B in 6 and 7. */
template <int kU>
VFN void make_sums(const Cut& cut, const Rows& rows, const Panel& panel, int64_t b, int32_t* sums) {
  const int8_t* a = rows.codes + b * cut.block * kRows;
  const uint8_t* codes = panel.codes + b * cut.block * kLanes;
  tile_zero<kU>();
  for (int64_t part = 0; part < cut.parts; ++part) {
    tile_load<4 + kU % 2>(a + part * cut.part * kRows, cut.part);
    tile_load<6 + kU % 2>(codes + part * cut.part * kLanes, FOLIO_TILE_BYTES);
    tile_dot_ss<kU, 4 + kU % 2, 6 + kU % 2>();
  }
  tile_store<kU>(sums + kU * kRows * kLanes, FOLIO_TILE_BYTES);
}

/* Of up to kFlight blocks, every fourth from b on. */
VFN void make_flight(const Cut& cut, const Rows& rows, const Panel& panel, int64_t b,
                     int64_t blocks, int32_t* sums) {
  if (b < blocks) make_sums<0>(cut, rows, panel, b, sums);
  if (b + 4 < blocks) make_sums<1>(cut, rows, panel, b + 4, sums);
  if (b + 8 < blocks) make_sums<2>(cut, rows, panel, b + 8, sums);
  if (b + 12 < blocks) make_sums<3>(cut, rows, panel, b + 12, sums);
}

/* chain[i] continued by the sums of block b. */
template <int kZeros>
VFN void add_block(const Rows& rows, const Panel& panel, int64_t b, const int32_t* sums,
                   V (&chain)[kRows]) {
  const V scale = v_load(panel.scales + b * kLanes);
  const V zeros = kZeros ? v_sub(v_load(panel.zeros + b * kLanes), v_set1(1.0f)) : v_zero();
  const float* a_scale = rows.scales + b * kRows;
  const float* middle = rows.middles + b * kRows;
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    V exact = v_from_int(vi_load(sums + i * kLanes));
    if (kZeros) exact = v_fma(zeros, v_set1(middle[i]), exact);
    chain[i] = v_fma(exact, v_mul(scale, v_set1(a_scale[i])), chain[i]);
  }
}

/* `count` <= 16 rows from `row` on times a panel whose first column is n. */
template <int kZeros>
void tile(const FolioBlockDotsS8* args, const Shape& s, const Cut& cut, const Rows& rows,
          const Panel& panel, int64_t row, int64_t count, int64_t n) {
  alignas(64) int32_t sums[2][kFlight * kRows * kLanes];
  V half[2][kRows];
  for (int turn = 0; turn < 4; ++turn) {
    V chain[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) chain[i] = v_zero();
    int64_t b = turn / 2 + turn % 2 * 2; /* from 0, 2, 1, 3 on */
    int current = 0;
    make_flight(cut, rows, panel, b, s.blocks, sums[current]);
    while (b < s.blocks) {
      make_flight(cut, rows, panel, b + 4 * kFlight, s.blocks, sums[1 - current]);
      const int32_t* from = sums[current];
      for (int u = 0; u < kFlight && b < s.blocks; ++u, b += 4, from += kRows * kLanes) {
        add_block<kZeros>(rows, panel, b, from, chain);
      }
      current = 1 - current;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      V* to = &half[turn / 2][i];
      *to = turn % 2 == 0 ? chain[i] : v_add(*to, chain[i]);
    }
  }
  const int64_t left = args->w.n - n;
  const VM m = v_first(left < kLanes ? left : kLanes);
  const V bias = args->bias ? v_load_masked(args->bias + n, m) : v_zero();
  for (int64_t i = 0; i < count; ++i) {
    V y = v_add(half[0][i], half[1][i]);
    if (args->bias) y = v_add(y, bias);
    v_store_masked(args->y + (row + i) * args->y_row_stride + n, m, y);
  }
}

/* All rows times `count` unpacked panels from column n on. */
template <int kBits>
void multiply_panels(const FolioBlockDotsS8* args, const Shape& s, const Cut& cut, const Rows& rows,
                     const Panel* panels, int64_t count, int64_t n) {
  for (int64_t row = 0; row < args->m; row += kRows) {
    const int64_t left = args->m - row;
    const int64_t some = left < kRows ? left : kRows;
    arrange_rows<kBits>(s, cut, Row(s, kBits, (const char*)args->a + row * s.row), some, rows);
    for (int64_t c = 0; c < count; ++c) {
      if (args->w.zeros) {
        tile<1>(args, s, cut, rows, panels[c], row, some, n + c * kLanes);
      } else {
        tile<0>(args, s, cut, rows, panels[c], row, some, n + c * kLanes);
      }
    }
  }
}

template <int kBits>
void multiply_tiles(const FolioBlockDotsS8* args) {
  const Shape s(args->w);
  const Cut cut = cut_of(args->w.block);
  const int64_t bytes = folio_block_panels_bytes(s.blocks, args->w.block, kBits);
  Rows rows;
  rows.codes = (int8_t*)args->scratch + bytes;
  rows.scales = (float*)(rows.codes + 8 / kBits * s.plane * kRows);
  rows.middles = rows.scales + s.padded * kRows;
  const TileShapes shapes = shapes_of(cut);
  tiles_configure(&shapes);
  for (int64_t n = 0; n < args->w.n; n += FOLIO_BLOCK_COLUMNS) {
    Panel panels[FOLIO_BLOCK_COLUMNS / kLanes];
    int64_t count = 0;
    for (int64_t at = n; at < args->w.n && at < n + FOLIO_BLOCK_COLUMNS; at += kLanes, ++count) {
      const int64_t left = args->w.n - at;
      panels[count].place(s, kBits, (char*)args->scratch + bytes * (at - n) / FOLIO_BLOCK_COLUMNS);
      unpack<kBits>(columns_at(args->w, s, at, 1), s, left < kLanes ? left : kLanes, panels[count]);
    }
    multiply_panels<kBits>(args, s, cut, rows, panels, count, n);
  }
  tiles_release();
}

}  // namespace

static void FOLIO_TILE_LEVEL(block_dots_s8)(const FolioBlockDotsS8* args) {
  if (args->m <= kFewRows) {
    block_dots_s8__x86_avx512vnni(args);
  } else if (args->w.bits == 4) {
    multiply_tiles<4>(args);
  } else {
    multiply_tiles<8>(args);
  }
}

void FOLIO_TILE_LEVEL(folio_fill_blocks)(FolioKernels* table) {
  table->block_dots_s8 = FOLIO_TILE_LEVEL(block_dots_s8);
}
