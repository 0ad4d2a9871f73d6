/* Weights of small integers in blocks times rows of 8-bit integers.
 *
 * One row: a column after the other, read in place. More rows: kLanes columns are unpacked into a
 * panel, so that a vector holds a sum of each.
 *
 * The including file defines before: kTileRows (4 to 8) and kTilePanels (1 or 2), the size of a
 * tile; kColumnAtOnce, how many bytes of a column stay in the first cache beside as much of the
 * rows, 0: all; kAhead and kFetchHint, how many bytes ahead, and to which cache, one row's weights are
 * fetched; kIsCentred<bits>, whether its sums are of codes less 2^(bits - 1); after: the functions
 * that are only declared here and in block_panels.inl. */

#include "core/kernels/vector/block_panels.inl"

/* Codes stay unsigned; what the zero takes away is added by the block. */
template <int kBits>
VFN VI panel_codes(VI codes) {
  return codes;
}

/* ---- one row: what a column has stands side by side, and columns do; memory gives most when it is
 * read in that order */

/* Those of four floats, or f16, that are there, and zeros. */
VFN __m128 load_four(const char* p, int64_t size, int64_t left) {
  if (size == 2) {
    uint64_t halves = 0;
    if (left >= 4) {
      __builtin_memcpy(&halves, p, 8);
    } else {
      for (int64_t i = 0; i < left; ++i) {
        uint16_t half;
        __builtin_memcpy(&half, p + 2 * i, 2);
        halves |= (uint64_t)half << 16 * i;
      }
    }
    return _mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)halves));
  }
  if (left >= 4) return _mm_loadu_ps((const float*)(const void*)p);
  const __m128i all = _mm_set1_epi32((int)left);
  return _mm_maskload_ps((const float*)(const void*)p,
                         _mm_cmpgt_epi32(all, _mm_setr_epi32(0, 1, 2, 3)));
}

/* `count` bytes, up to kMost, and zeros. */
template <int kMost>
VFN __m128i load_few_bytes(const uint8_t* p, int64_t count) {
  uint64_t low = 0, high = 0;
  if (count >= kMost) {
    if constexpr (kMost == 16) return _mm_loadu_si128((const __m128i*)p);
    __builtin_memcpy(&low, p, kMost < 8 ? kMost : 8);
    return _mm_cvtsi64_si128((int64_t)low);
  }
  for (int64_t i = 0; i < count; ++i) (i < 8 ? low : high) |= (uint64_t)p[i] << i % 8 * 8;
  return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

/* A column's zeros as codes from block b on: a byte each of as many as are there, up to kMost,
 * which divides b. kWhole: so many are there. */
template <int kBits, int kMost, int kWhole = 0>
VFN __m128i zero_codes_at(const Columns& c, const Shape& s, int64_t b) {
  constexpr int kBytes = kMost * kBits / 8;
  const int64_t begin = b * kBits / 8;
  const __m128i codes =
      load_few_bytes<kBytes>(c.zero_codes + begin, kWhole ? kBytes : s.zero_bytes - begin);
  if constexpr (kBits == 8) return codes;
  const __m128i nibble = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(codes, nibble),
                           _mm_and_si128(_mm_srli_epi16(codes, 4), nibble));
}

/* The chains + four blocks from block b on, whose sums are `dots`. */
template <int kBits>
VFN __m128 add_four(const Columns& c, const Shape& s, const Row& a, int64_t b, __m128i dots,
                    __m128 chains) {
  const int64_t left = s.blocks - b;
  const __m128i middles = _mm_load_si128((const __m128i*)(a.middles + b));
  if (kIsCentred<kBits>) dots = _mm_sub_epi32(dots, middles);
  __m128 exact;
  if (c.zeros || c.zero_codes) {
    const __m128 zeros =
        c.zeros ? load_four((const char*)(c.zeros + b), 4, left)
                : _mm_cvtepi32_ps(_mm_cvtepu8_epi32(zero_codes_at<kBits, 4>(c, s, b)));
    exact = _mm_fmadd_ps(_mm_mul_ps(zeros, _mm_set1_ps(1.0f / (1 << (kBits - 1)))),
                         _mm_cvtepi32_ps(middles), _mm_cvtepi32_ps(dots));
  } else {
    exact = _mm_cvtepi32_ps(_mm_add_epi32(dots, middles));
  }
  const __m128 scales = load_four(c.scales + c.scale_bytes * b, c.scale_bytes, left);
  return _mm_fmadd_ps(exact, _mm_mul_ps(scales, _mm_load_ps(a.scales + b)), chains);
}

/* The four chains of a column times a row. kBlob: bytes of a block, 64 for that and more. */
template <int kBits, int kBlob>
VFN __m128 dot_column(const Columns& c, const Shape& s, const Row& a);

template <int kBits, int kBlob>
static void dot_row(const FolioBlockDotsS8* args, const Shape& s) {
  const FolioBlockWeights& w = args->w;
  const Row a(s, kBits, args->a);
  for (int64_t n = 0; n < w.n; ++n) {
    const __m128 four = dot_column<kBits, kBlob>(columns_at(w, s, n), s, a);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    const float y = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    args->y[n] = args->bias ? y + args->bias[n] : y;
  }
}

template <int kBits>
static void dot_one_row(const FolioBlockDotsS8* args, const Shape& s) {
  if (s.blob >= 64) {
    dot_row<kBits, 64>(args, s);
  } else if (s.blob == 32) {
    dot_row<kBits, 32>(args, s);
  } else if (s.blob == 16) {
    dot_row<kBits, 16>(args, s);
  } else {
    dot_row<kBits, 8>(args, s);
  }
}

/* ---- many rows */

/* Every third of some rows: the two after it are found by one more register, taken once or twice.
 * Compilers left to themselves take a register for each row and run out of them. */
template <int kRows>
struct Thirds {
  static constexpr int kCount = (kRows + 2) / 3;

  [[gnu::always_inline]] void set(const int8_t* first, int64_t row) {
#pragma GCC unroll 3
    for (int i = 0; i < kCount; ++i) base[i] = first + 3 * i * row;
  }
  [[gnu::always_inline]] void add(int64_t bytes) {
#pragma GCC unroll 3
    for (int i = 0; i < kCount; ++i) {
      base[i] += bytes;
      __asm__("" : "+r"(base[i]));
    }
  }

  [[gnu::always_inline]] const int8_t* row_at(int i, int64_t row) const {
    return base[i / 3] + i % 3 * row;
  }

  const int8_t* base[kCount];
};

/* What four bytes of a row are multiplied with stands in all lanes. */
VFN VI quad_at(const int8_t* p) {
  int32_t quad;
  __builtin_memcpy(&quad, p, 4);
  return vi_set1(quad);
}

/* sum[i][c] += the products of a block of the panels at `codes` with rows of A, `row` bytes apart,
 * without the zeros. */
template <int kBits, int kRows, int kPanels>
VFN void dot_block(int64_t blob, int64_t row, const int8_t* const* planes,
                   const uint8_t* const* codes, VI (*sum)[kPanels]);

/* The number of row i of those that stand `row` bytes apart. */
template <class T>
VFN T of_row(const T* first, int64_t i, int64_t row) {
  T x;
  __builtin_memcpy(&x, (const char*)first + i * row, sizeof(T));
  return x;
}

template <int kBits, int kRows, int kPanels, int kZeros>
VFN void tile_block(const Shape& s, const Row& a, const Panel* panels, int64_t b,
                    V (*chain)[kPanels]) {
  const int8_t* planes[2] = {a.codes + b * s.blob, a.codes + s.plane + b * s.blob};
  const uint8_t* codes[kPanels];
  VI sum[kRows][kPanels];
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) {
    codes[c] = panels[c].codes + b * s.blob * (8 / kBits) * kLanes;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    constexpr int kTimes = (kZeros ? 0 : 1) - (kIsCentred<kBits> ? 1 : 0);
    const VI middle = vi_set1(kTimes == 0 ? 0 : kTimes * of_row(a.middles + b, i, s.row));
#pragma GCC unroll 2
    for (int c = 0; c < kPanels; ++c) sum[i][c] = middle;
  }
  dot_block<kBits, kRows, kPanels>(s.blob, s.row, planes, codes, sum);
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) {
    const V scale = v_load(panels[c].scales + b * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      V exact = v_from_int(sum[i][c]);
      if (kZeros) {
        const V middle = v_from_int(vi_set1(of_row(a.middles + b, i, s.row)));
        exact = v_fma(v_load(panels[c].zeros + b * kLanes), middle, exact);
      }
      const V a_scale = v_set1(of_row(a.scales + b, i, s.row));
      chain[i][c] = v_fma(exact, v_mul(scale, a_scale), chain[i][c]);
    }
  }
}

/* Blocks of which all four chains are computed before the next ones: a multiple of 4. */
VFN int64_t blocks_at_once(const Shape& s) {
  if (kColumnAtOnce == 0) return s.blocks;
  return kColumnAtOnce < 4 * s.blob ? 4 : kColumnAtOnce / s.blob / 4 * 4;
}

template <int kBits, int kRows, int kPanels, int kZeros>
static void tile(const FolioBlockDotsS8* args, const Shape& s, const Panel* panels, int64_t row,
                 int64_t n) {
  const Row a(s, kBits, (const char*)args->a + row * s.row);
  /* One chain at a time stays in registers: stores of all four would stand in the way of loads
   * whose addresses end as theirs do. */
  V sum[4][kRows][kPanels];
  const int64_t at_once = blocks_at_once(s);
  int64_t from = 0;
  do {
    const int64_t end = s.blocks - from < at_once ? s.blocks : from + at_once;
    for (int turn = 0; turn < 4; ++turn) {
      V chain[kRows][kPanels];
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int c = 0; c < kPanels; ++c) chain[i][c] = from == 0 ? v_zero() : sum[turn][i][c];
      }
      for (int64_t b = from + turn; b < end; b += 4) {
        tile_block<kBits, kRows, kPanels, kZeros>(s, a, panels, b, chain);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int c = 0; c < kPanels; ++c) sum[turn][i][c] = chain[i][c];
      }
    }
    from = end;
  } while (from < s.blocks);
  for (int c = 0; c < kPanels; ++c) {
    const int64_t first = n + c * kLanes;
    const int64_t left = args->w.n - first;
    const VM m = v_first(left < kLanes ? left : kLanes);
    for (int i = 0; i < kRows; ++i) {
      V y = v_add(v_add(sum[0][i][c], sum[2][i][c]), v_add(sum[1][i][c], sum[3][i][c]));
      if (args->bias) y = v_add(y, v_load_masked(args->bias + first, m));
      v_store_masked(args->y + (row + i) * args->y_row_stride + first, m, y);
    }
  }
}

/* kRows rows from `row` on, `count` panels. */
template <int kBits, int kRows, int kZeros>
VFN void tiles(const FolioBlockDotsS8* args, const Shape& s, const Panel* panels, int64_t count,
               int64_t row, int64_t n) {
  int64_t c = 0;
  for (; c + kTilePanels <= count; c += kTilePanels) {
    tile<kBits, kRows, kTilePanels, kZeros>(args, s, panels + c, row, n + c * kLanes);
  }
  if (c < count) tile<kBits, kRows, 1, kZeros>(args, s, panels + c, row, n + c * kLanes);
}

template <int kBits, int kZeros>
VFN void all_tiles(const FolioBlockDotsS8* args, const Shape& s, const Panel* panels, int64_t count,
                   int64_t n) {
  const int64_t m = args->m;
  int64_t i = 0;
  for (; i + kTileRows <= m; i += kTileRows) {
    tiles<kBits, kTileRows, kZeros>(args, s, panels, count, i, n);
  }
  for (; i + 4 <= m; i += 4) tiles<kBits, 4, kZeros>(args, s, panels, count, i, n);
  if (i + 3 == m) return tiles<kBits, 3, kZeros>(args, s, panels, count, i, n);
  if (i + 2 == m) return tiles<kBits, 2, kZeros>(args, s, panels, count, i, n);
  if (i + 1 == m) tiles<kBits, 1, kZeros>(args, s, panels, count, i, n);
}

template <int kBits>
static void dot_rows(const FolioBlockDotsS8* args, const Shape& s) {
  const int64_t bytes = folio_block_panels_bytes(s.blocks, args->w.block, kBits);
  for (int64_t n = 0; n < args->w.n; n += FOLIO_BLOCK_COLUMNS) {
    Panel panels[FOLIO_BLOCK_COLUMNS / kLanes];
    int64_t count = 0;
    for (int64_t at = n; at < args->w.n && at < n + FOLIO_BLOCK_COLUMNS; at += kLanes, ++count) {
      const int64_t left = args->w.n - at;
      panels[count].place(s, kBits, (char*)args->scratch + bytes * (at - n) / FOLIO_BLOCK_COLUMNS);
      unpack<kBits>(columns_at(args->w, s, at), s, left < kLanes ? left : kLanes, panels[count]);
    }
    if (args->w.zeros) {
      all_tiles<kBits, 1>(args, s, panels, count, n);
    } else {
      all_tiles<kBits, 0>(args, s, panels, count, n);
    }
  }
}

[[maybe_unused]] static void block_dots_s8(const FolioBlockDotsS8* args) {
  const Shape s(args->w);
  if (args->m == 1) {
    args->w.bits == 4 ? dot_one_row<4>(args, s) : dot_one_row<8>(args, s);
  } else {
    args->w.bits == 4 ? dot_rows<4>(args, s) : dot_rows<8>(args, s);
  }
}
