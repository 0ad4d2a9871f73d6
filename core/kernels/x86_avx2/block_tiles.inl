/* Many rows of 8-bit integers times weights in blocks (block_weights.h).
 *
 * Four rows are put in the order in which a tile of 8 columns multiplies them, some blocks at a
 * time, once for up to 64 columns: each address is then a constant from one that moves. Rows where
 * they stand take as many instructions for addresses as for products. */

constexpr int64_t kTileRows = 4;
constexpr int64_t kGroupTiles = 4; /* tiles of rows that a part of a panel is read for */

/* Bytes of a block's codes that stand together: of 4 bits a row's four numbers for the low codes of
 * four bytes, of each row, then those for the high codes; of 8 bits every second number as words,
 * then the others. */
constexpr int64_t kPiece = 16;

/* After a block's quads. */
typedef struct RowNumbers {
  float scales[kTileRows];
  float middles[kTileRows];
  int32_t starts[kTileRows]; /* of the sums */
} RowNumbers;

/* Bytes of a column that are multiplied at once, or four blocks: that much of a panel and of a
 * group's rows stay in the first cache. */
constexpr int64_t kColumnBytes = 256;
constexpr int64_t kMostBlob = 256;

/* Some blocks of four rows in order. */
typedef struct OrderedRows {
  alignas(64) char bytes[4 * (kMostBlob * 2 * kTileRows + sizeof(RowNumbers))];
} OrderedRows;

/* Blocks [from, end) and the bytes of one. */
typedef struct Part {
  int64_t from, end, step;
} Part;

VFN int64_t ordered_block_bytes(const Shape& s) {
  return s.blob * 2 * kTileRows + (int64_t)sizeof(RowNumbers);
}

/* [place][row] turned: to[0] holds x[0][0], x[1][0], ... */
VFN void turn_four(__m128 (&x)[4]) { _MM_TRANSPOSE4_PS(x[0], x[1], x[2], x[3]); }

/* A row's kBytes from `at` on of each of four rows, quad by quad. Of 8 bits: every second number of
 * them, from kHalf on, as words. */
template <int kBits, int kHalf, int kBytes>
VFN void order_quads(const char* const* rows, int64_t at, int64_t step, char* to) {
  __m128 x[kTileRows];
#pragma GCC unroll 4
  for (int64_t i = 0; i < kTileRows; ++i) {
    const __m128i* from = (const __m128i*)(const void*)(rows[i] + at);
    __m128i codes = kBytes == 16 ? _mm_load_si128(from) : _mm_loadl_epi64(from);
    if (kBits == 8 && kHalf == 0) codes = _mm_slli_epi16(codes, 8);
    if (kBits == 8) codes = _mm_srai_epi16(codes, 8);
    x[i] = _mm_castsi128_ps(codes);
  }
  turn_four(x);
#pragma GCC unroll 4
  for (int64_t q = 0; q < kBytes / 4; ++q) _mm_store_ps((float*)(void*)(to + q * step), x[q]);
}

/* What stands after the quads of blocks b to b + 3, `count` of which are there. */
template <int kBits, int kZeros>
VFN void order_numbers(const Shape& s, const char* const* rows, int64_t b, int64_t count,
                       int64_t step, char* to) {
  __m128 scales[4], middles[4];
#pragma GCC unroll 4
  for (int64_t i = 0; i < 4; ++i) {
    const Row row(s, kBits, rows[i]);
    scales[i] = _mm_load_ps(row.scales + b);
    middles[i] = _mm_load_ps((const float*)(const void*)(row.middles + b));
  }
  turn_four(scales);
  turn_four(middles);
#pragma GCC unroll 4
  for (int64_t j = 0; j < 4; ++j, to += step) {
    if (j >= count) return;
    RowNumbers* numbers = (RowNumbers*)(void*)to;
    const __m128i middle = _mm_castps_si128(middles[j]);
    _mm_store_ps(numbers->scales, scales[j]);
    _mm_store_ps(numbers->middles, _mm_cvtepi32_ps(middle));
    if (!kZeros) _mm_store_si128((__m128i*)(void*)numbers->starts, middle);
  }
}

/* So many rows from `a` on; where they are fewer than four, the last one again. */
template <int kBits, int kZeros>
static void order_rows(const Shape& s, const char* a, int64_t count, const Part& part,
                       OrderedRows* to) {
  constexpr int64_t kQuadStep = 2 * 4 * kTileRows;
  const char* rows[kTileRows];
  for (int64_t i = 0; i < kTileRows; ++i) rows[i] = a + (i < count ? i : count - 1) * s.row;
  const int64_t high = kBits == 4 ? s.plane : 0; /* from the low half of a block to the other */
  char* block = to->bytes;
  for (int64_t b = part.from; b < part.end; ++b, block += part.step) {
    if ((b - part.from) % 4 == 0) {
      order_numbers<kBits, kZeros>(s, rows, b, part.end - b, part.step,
                                   block + s.blob * 2 * kTileRows);
    }
    const int64_t from = b * s.blob;
    if (s.blob == 8) {
      order_quads<kBits, 0, 8>(rows, from, kQuadStep, block);
      order_quads<kBits, 1, 8>(rows, from + high, kQuadStep, block + 4 * kTileRows);
      continue;
    }
    for (int64_t at = 0; at < s.blob; at += 16) {
      char* quads = block + at * 2 * kTileRows;
      order_quads<kBits, 0, 16>(rows, from + at, kQuadStep, quads);
      order_quads<kBits, 1, 16>(rows, from + at + high, kQuadStep, quads + 4 * kTileRows);
    }
  }
}

/* Add in the order in which calls stand: g++ would add up products of several rows first, run out
 * of registers and keep sums in memory. */
VFN void add_pairs(VI* sum, VI codes, VI x) {
  __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(_mm256_maddubs_epi16(codes, x)));
}
VFN void add_words(VI* sum, VI codes, VI x) {
  __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(_mm256_madd_epi16(codes, x)));
}

/* Up to 16 bytes of a block. Of 4 bits 32 products fit into sums of 16 bits. */
template <int kBits, int kRows, int kBytes>
VFN void dot_piece(const char* a, const uint8_t* codes, VI (&sum)[kRows]) {
  const VI ones = _mm256_set1_epi16(1);
  if constexpr (kBits == 4) {
    VI part[kRows];
#pragma GCC unroll 8
    for (int quad = 0; quad < kBytes / 2; ++quad) {
      const VI w = vi_load(codes + 32 * quad);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const VI x = vi_broadcast(a + 4 * (quad * kTileRows + i));
        if (quad == 0) {
          part[i] = _mm256_maddubs_epi16(w, x);
        } else {
          add_pairs(&part[i], w, x);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      sum[i] = vi_add(sum[i], _mm256_madd_epi16(part[i], ones));
    }
  } else {
#pragma GCC unroll 8
    for (int half = 0; half < kBytes / 2; ++half) {
      const VI both = vi_load(codes + 32 * (half / 2));
      const VI w = half % 2 == 0 ? even_bytes(both) : odd_bytes(both);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const VI x = vi_broadcast(a + 4 * (half * kTileRows + i));
        add_words(&sum[i], w, x);
      }
    }
  }
}

/* chain[i] += a block's D times both scales. kBlob: its bytes; 0 any multiple of 16. */
template <int kBits, int kRows, int kZeros, int kBlob>
VFN void add_block(const Shape& s, const char* a, const uint8_t* codes, const float* scales,
                   const float* zeros, V (&chain)[kRows]) {
  const int64_t blob = kBlob ? kBlob : s.blob;
  const char* end = a + blob * 2 * kTileRows;
  const RowNumbers* numbers = (const RowNumbers*)(const void*)end;
  VI sum[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    sum[i] = vi_set1(kZeros ? 0 : numbers->starts[i]);
  }
  if constexpr (kBlob != 0) {
    dot_piece<kBits, kRows, kBlob>(a, codes, sum);
  } else {
    for (; a != end; a += kPiece * 2 * kTileRows, codes += kPiece * (8 / kBits) * kLanes) {
      dot_piece<kBits, kRows, kPiece>(a, codes, sum);
    }
  }
  const V scale = v_load(scales);
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    V exact = v_from_int(sum[i]);
    if (kZeros) {
      exact = v_fma(v_load(zeros), v_set1(numbers->middles[i]), exact);
    }
    chain[i] = v_fma(exact, v_mul(scale, v_set1(numbers->scales[i])), chain[i]);
  }
}

/* Four of each row. */
typedef struct Chains {
  V of[kTileRows][4];
} Chains;

template <int kBits, int kRows, int kZeros, int kBlob>
VFN void tile_blocks(const Shape& s, const Part& part, const OrderedRows& rows, const Panels& panel,
                     Chains* chains) {
  const int64_t codes_step = s.blob * (8 / kBits) * kLanes;
  for (int turn = 0; turn < 4; ++turn) {
    V chain[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) chain[i] = part.from == 0 ? v_zero() : chains->of[i][turn];
    const int64_t first = part.from + turn;
    const char* a = rows.bytes + turn * part.step;
    const uint8_t* codes = panel.codes + first * codes_step;
    const float* scales = panel.scales + first * kLanes;
    const float* zeros = panel.zeros + first * kLanes;
    for (int64_t b = first; b < part.end; b += 4) {
      add_block<kBits, kRows, kZeros, kBlob>(s, a, codes, scales, zeros, chain);
      a += 4 * part.step;
      codes += 4 * codes_step;
      scales += 4 * kLanes;
      zeros += 4 * kLanes;
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) chains->of[i][turn] = chain[i];
  }
}

template <int kBits, int kRows, int kZeros>
static void tile(const Shape& s, const Part& part, const OrderedRows& rows, const Panels& panel,
                 Chains* chains) {
  if (s.blob == 16) {
    tile_blocks<kBits, kRows, kZeros, 16>(s, part, rows, panel, chains);
  } else if (s.blob == 8) {
    tile_blocks<kBits, kRows, kZeros, 8>(s, part, rows, panel, chains);
  } else {
    tile_blocks<kBits, kRows, kZeros, 0>(s, part, rows, panel, chains);
  }
}

/* `rows` rows from `row` on, kGroupTiles tiles at most, times the panels. */
template <int kBits, int kZeros>
static void multiply_group(const FolioBlockDotsS8* args, const Shape& s, const Panels* panels,
                           int64_t count, int64_t row, int64_t rows, int64_t n) {
  using TileFn = void (*)(const Shape&, const Part&, const OrderedRows&, const Panels&, Chains*);
  constexpr TileFn kTiles[] = {nullptr, tile<kBits, 1, kZeros>, tile<kBits, 2, kZeros>,
                               tile<kBits, 3, kZeros>, tile<kBits, 4, kZeros>};
  OrderedRows ordered[kGroupTiles];
  Chains chains[FOLIO_BLOCK_COLUMNS / kLanes][kGroupTiles];
  const int64_t at_once = s.blob * 4 < kColumnBytes ? kColumnBytes / s.blob : 4;
  const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
  const auto rows_of = [&](int64_t t) { return t + 1 < tiles ? kTileRows : rows - t * kTileRows; };
  Part part = {0, 0, ordered_block_bytes(s)};
  do {
    part.from = part.end;
    part.end = s.blocks - part.from < at_once ? s.blocks : part.from + at_once;
    for (int64_t t = 0; t < tiles; ++t) {
      const char* a = (const char*)args->a + (row + t * kTileRows) * s.row;
      order_rows<kBits, kZeros>(s, a, rows_of(t), part, &ordered[t]);
    }
    for (int64_t c = 0; c < count; ++c) {
      for (int64_t t = 0; t < tiles; ++t) {
        kTiles[rows_of(t)](s, part, ordered[t], panels[c], &chains[c][t]);
      }
    }
  } while (part.end < s.blocks);
  for (int64_t c = 0; c < count; ++c) {
    for (int64_t t = 0; t < tiles; ++t) {
      for (int64_t i = 0; i < rows_of(t); ++i) {
        store_chains(args, chains[c][t].of[i], row + t * kTileRows + i, n + c * kLanes);
      }
    }
  }
}

template <int kBits, int kZeros>
VFN void all_rows(const FolioBlockDotsS8* args, const Shape& s, const Panels* panels, int64_t count,
                  int64_t n) {
  constexpr int64_t kRows = kGroupTiles * kTileRows;
  for (int64_t i = 0; i < args->m; i += kRows) {
    const int64_t rows = args->m - i < kRows ? args->m - i : kRows;
    multiply_group<kBits, kZeros>(args, s, panels, count, i, rows, n);
  }
}

template <int kBits>
static void dot_rows(const FolioBlockDotsS8* args, const Shape& s) {
  for (int64_t n = 0; n < args->w.n; n += FOLIO_BLOCK_COLUMNS) {
    Panels panels[FOLIO_BLOCK_COLUMNS / kLanes];
    const int64_t count = unpack_panels<kBits>(args, s, n, panels);
    if (args->w.zeros) {
      all_rows<kBits, 1>(args, s, panels, count, n);
    } else {
      all_rows<kBits, 0>(args, s, panels, count, n);
    }
  }
}
