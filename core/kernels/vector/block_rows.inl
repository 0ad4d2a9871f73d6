/* Weights of small integers in blocks times rows of 8-bit integers that are read where they stand.
 * One row: block_row.inl. More rows: kLanes columns are unpacked into a panel, so that a vector holds
 * a sum of each.
 *
 * The including file defines before: kTileRows (4 to 8) and kTilePanels (1 or 2), the size of a
 * tile; what block_row.inl asks for; after: the functions that are only declared here. */

#include "core/kernels/vector/block_row.inl"

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
    const VI middle = vi_set1(kZeros ? 0 : of_row(a.middles + b, i, s.row));
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

template <int kBits, int kRows, int kPanels, int kZeros>
static void tile(const FolioBlockDotsS8* args, const Shape& s, const Panel* panels, int64_t row,
                 int64_t n) {
  const Row a(s, kBits, (const char*)args->a + row * s.row);
  /* One chain at a time stays in registers: stores of all four would stand in the way of loads
   * whose addresses end as theirs do. */
  V sum[4][kRows][kPanels];
  for (int turn = 0; turn < 4; ++turn) {
    V chain[kRows][kPanels];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int c = 0; c < kPanels; ++c) chain[i][c] = v_zero();
    }
    for (int64_t b = turn; b < s.blocks; b += 4) {
      tile_block<kBits, kRows, kPanels, kZeros>(s, a, panels, b, chain);
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int c = 0; c < kPanels; ++c) sum[turn][i][c] = chain[i][c];
    }
  }
  for (int c = 0; c < kPanels; ++c) {
    for (int i = 0; i < kRows; ++i) {
      const V chains[4] = {sum[0][i][c], sum[1][i][c], sum[2][i][c], sum[3][i][c]};
      store_chains(args, chains, row + i, n + c * kLanes);
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
  for (int64_t n = 0; n < args->w.n; n += FOLIO_BLOCK_COLUMNS) {
    Panel panels[FOLIO_BLOCK_COLUMNS / kLanes];
    const int64_t count = unpack_panels<kBits>(args, s, n, panels);
    if (args->w.zeros) {
      all_tiles<kBits, 1>(args, s, panels, count, n);
    } else {
      all_tiles<kBits, 0>(args, s, panels, count, n);
    }
  }
}
