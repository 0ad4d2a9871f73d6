/* Weights of small integers in blocks times rows of 8-bit integers. One row: block_row.inl. More
 * rows are put in order first: what a tile reads of one block stands together, so that each address
 * is a constant from one that moves; then columns are unpacked into panels, and multiplied with all
 * of them.
 *
 * The including file defines before: kTileRows (4 or more) and kTilePanels, the size of a tile;
 * dot4(sum, codes, x), which adds products of four bytes; what block_row.inl asks for; after: the
 * functions that are only declared here. */

#include "core/kernels/vector/block_row.inl"

/* Up to 16 bytes of a block's codes are a piece: of each row what is multiplied with the low codes,
 * then what is with the high ones. After a block's pieces stand all rows' scales, then their
 * middles. */
template <int kBits>
VFN int64_t ordered_bytes(const Shape& s) {
  return s.blob * (8 / kBits) + 2 * (int64_t)sizeof(float);
}

template <int kBits, int kPiece>
VFN void order_block(const Shape& s, const char* a, int64_t rows, int64_t b, char* to) {
  for (int64_t at = b * s.blob; at < (b + 1) * s.blob; at += kPiece) {
    for (int64_t i = 0; i < rows; ++i, to += kPiece * (8 / kBits)) {
      __builtin_memcpy(to, a + i * s.row + at, kPiece);
      if (kBits == 4) __builtin_memcpy(to + kPiece, a + i * s.row + s.plane + at, kPiece);
    }
  }
  float* scales = (float*)(void*)to;
  for (int64_t i = 0; i < rows; ++i) {
    const Row row(s, kBits, a + i * s.row);
    scales[i] = row.scales[b];
    __builtin_memcpy(scales + rows + i, row.middles + b, sizeof(float));
  }
}

/* Of `rows` rows from `a` on; returns the end. */
template <int kBits>
static char* order_rows(const Shape& s, const char* a, int64_t rows, char* to) {
  for (int64_t b = 0; b < s.blocks; ++b, to += rows * ordered_bytes<kBits>(s)) {
    if (s.blob == 8) {
      order_block<kBits, 8>(s, a, rows, b, to);
    } else {
      order_block<kBits, 16>(s, a, rows, b, to);
    }
  }
  return to;
}

template <int kBits, int kRows, int kPiece>
VFN void dot_piece(const char* a, const uint8_t* codes, VI (*sum)[kTilePanels]) {
  constexpr int kPlaces = 8 / kBits;
#pragma GCC unroll 4
  for (int quad = 0; quad < kPiece / 4; ++quad) {
#pragma GCC unroll 2
    for (int place = 0; place < kPlaces; ++place) {
      VI w[kTilePanels];
#pragma GCC unroll 2
      for (int c = 0; c < kTilePanels; ++c) {
        w[c] = vi_load(codes + 4 * kLanes * ((quad * kPlaces + place) * kTilePanels + c));
      }
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const VI x = vi_broadcast(a + (i * kPlaces + place) * kPiece + 4 * quad);
#pragma GCC unroll 2
        for (int c = 0; c < kTilePanels; ++c) dot4(&sum[i][c], w[c], x);
      }
    }
  }
}

/* chain[i][c] += the D of a block times both scales. */
template <int kBits, int kRows, int kZeros, int kPiece>
VFN void add_block(int64_t blob, const char* a, const uint8_t* codes, const float* scales,
                   const float* zeros, V (*chain)[kTilePanels]) {
  constexpr int64_t kPlaces = 8 / kBits;
  const char* end = a + blob * kPlaces * kRows;
  const float* row_scales = (const float*)(const void*)end;
  VI sum[kRows][kTilePanels];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const VI middle = kZeros ? vi_set1(0) : vi_broadcast(row_scales + kRows + i);
#pragma GCC unroll 2
    for (int c = 0; c < kTilePanels; ++c) sum[i][c] = middle;
  }
  do {
    dot_piece<kBits, kRows, kPiece>(a, codes, sum);
    a += kPiece * kPlaces * kRows;
    codes += kPiece * kPlaces * Panels::kColumns;
  } while (a != end);
#pragma GCC unroll 2
  for (int c = 0; c < kTilePanels; ++c) {
    const V scale = v_load(scales + c * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      V exact = v_from_int(sum[i][c]);
      if (kZeros) {
        const V middle = v_from_int(vi_broadcast(row_scales + kRows + i));
        exact = v_fma(v_load(zeros + c * kLanes), middle, exact);
      }
      chain[i][c] = v_fma(exact, v_mul(scale, v_set1(row_scales[i])), chain[i][c]);
    }
  }
}

/* Lines of memory that are fetched while tiles are multiplied: the weights of the columns behind
 * these. */
struct Ahead {
  /* What stands from one of `from` on, `bytes` of it; `calls` of take() follow, of `steps` each. */
  void set(const char* const (&first)[2], const int64_t (&bytes)[2], int64_t steps, int64_t calls) {
    int64_t lines = 0;
    for (int i = 0; i < 2; ++i) {
      from[i] = first[i];
      left[i] = (bytes[i] + 63) / 64;
      lines += left[i];
    }
    const int64_t each = (lines + steps * calls - 1) / (steps * calls);
    at_once = each < 4 ? each : 4;
  }

  /* Of the next `steps` steps of at_once lines; returns null when nothing is left. */
  const char* take(int64_t steps) {
    const int which = left[0] > 0 ? 0 : 1;
    if (left[which] <= 0) return nullptr;
    const char* at = from[which];
    from[which] += 64 * at_once * steps;
    left[which] -= at_once * steps;
    return at;
  }

  const char* from[2] = {};
  int64_t left[2] = {};
  int64_t at_once = 0;
};

/* kRows rows from row `row` of A on, in order at `rows`, times the panels of the columns from n on.
 * One chain at a time stays in registers: stores of all four would stand in the way of loads whose
 * addresses end as theirs do. */
template <int kBits, int kRows, int kZeros, int kPiece>
static void tile(const FolioBlockDotsS8* args, const Shape& s, const char* rows,
                 const Panels& panels, Ahead* ahead, int64_t row, int64_t n) {
  const int64_t row_step = kRows * ordered_bytes<kBits>(s);
  const int64_t codes_step = s.blob * (8 / kBits) * Panels::kColumns;
  const char* fetched = ahead->take(s.blocks);
  const int64_t at_once = fetched ? ahead->at_once : 0;
  V chains[4][kRows][kTilePanels];
  for (int64_t turn = 0; turn < 4; ++turn) {
    V chain[kRows][kTilePanels];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int c = 0; c < kTilePanels; ++c) chain[i][c] = v_zero();
    }
    const char* a = rows + turn * row_step;
    const uint8_t* codes = panels.codes + turn * codes_step;
    const float* scales = panels.scales + turn * Panels::kColumns;
    const float* zeros = panels.zeros + turn * Panels::kColumns;
    for (int64_t b = turn; b < s.blocks; b += 4) {
      for (int64_t i = 0; i < at_once; ++i, fetched += 64) _mm_prefetch(fetched, _MM_HINT_T1);
      add_block<kBits, kRows, kZeros, kPiece>(s.blob, a, codes, scales, zeros, chain);
      a += 4 * row_step;
      codes += 4 * codes_step;
      scales += 4 * Panels::kColumns;
      zeros += 4 * Panels::kColumns;
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int c = 0; c < kTilePanels; ++c) chains[turn][i][c] = chain[i][c];
    }
  }
  for (int c = 0; c < kTilePanels; ++c) {
    for (int i = 0; i < kRows; ++i) {
      const V four[4] = {chains[0][i][c], chains[1][i][c], chains[2][i][c], chains[3][i][c]};
      store_chains(args, four, row + i, n + c * kLanes);
    }
  }
}

using TileFn = void (*)(const FolioBlockDotsS8*, const Shape&, const char*, const Panels&, Ahead*,
                        int64_t row, int64_t n);

template <int kBits, int kZeros, int kPiece>
VFN TileFn tile_of(int64_t rows) {
  if (rows == 1) return tile<kBits, 1, kZeros, kPiece>;
  if (rows == 2) return tile<kBits, 2, kZeros, kPiece>;
  if (rows == 3) return tile<kBits, 3, kZeros, kPiece>;
  if (rows == 4) return tile<kBits, 4, kZeros, kPiece>;
  return tile<kBits, kTileRows, kZeros, kPiece>;
}

template <int kBits>
static TileFn tile_for(const FolioBlockDotsS8* args, const Shape& s, int64_t rows) {
  if (kBits == 4 && s.blob == 8) {
    return args->w.zeros ? tile_of<kBits, 1, 8>(rows) : tile_of<kBits, 0, 8>(rows);
  }
  return args->w.zeros ? tile_of<kBits, 1, 16>(rows) : tile_of<kBits, 0, 16>(rows);
}

/* Rows of the next tile of those that are left. */
VFN int64_t tile_rows(int64_t left) { return left >= kTileRows ? kTileRows : left < 4 ? left : 4; }

/* Fetches the weights of the columns behind those from n on in `tiles` tiles of rows. */
VFN Ahead fetch_behind(const FolioBlockDotsS8* args, const Shape& s, int64_t n, int64_t panels,
                       int64_t tiles) {
  Ahead ahead;
  const int64_t next = n + FOLIO_BLOCK_COLUMNS;
  if (next >= args->w.n) return ahead;
  const Columns c = columns_at(args->w, s, next);
  const int64_t left = args->w.n - next;
  const int64_t columns = left < FOLIO_BLOCK_COLUMNS ? left : FOLIO_BLOCK_COLUMNS;
  ahead.set({(const char*)c.codes, c.scales},
            {columns * c.bytes, columns * c.blocks * c.scale_bytes}, s.blocks, panels * tiles);
  return ahead;
}

/* Rows [first, end), FOLIO_BLOCK_ROWS at most. */
template <int kBits>
static void dot_batch(const FolioBlockDotsS8* args, const Shape& s, int64_t first, int64_t end) {
  char* ordered = (char*)args->scratch + folio_block_panels_bytes(s.blocks, args->w.block, kBits);
  char* to = ordered;
  for (int64_t row = first, rows = 0; row < end; row += rows) {
    rows = tile_rows(end - row);
    to = order_rows<kBits>(s, (const char*)args->a + row * s.row, rows, to);
  }
  for (int64_t n = 0; n < args->w.n; n += FOLIO_BLOCK_COLUMNS) {
    Panels panels[FOLIO_BLOCK_COLUMNS / Panels::kColumns];
    const int64_t count = unpack_panels<kBits>(args, s, n, panels);
    Ahead ahead = fetch_behind(args, s, n, count, (end - first + kTileRows - 1) / kTileRows);
    const char* a = ordered;
    for (int64_t row = first, rows = 0; row < end; row += rows) {
      rows = tile_rows(end - row);
      const TileFn fn = tile_for<kBits>(args, s, rows);
      for (int64_t c = 0; c < count; ++c) {
        fn(args, s, a, panels[c], &ahead, row, n + c * Panels::kColumns);
      }
      a += rows * s.blocks * ordered_bytes<kBits>(s);
    }
  }
}

template <int kBits>
static void dot_rows(const FolioBlockDotsS8* args, const Shape& s) {
  for (int64_t row = 0; row < args->m; row += FOLIO_BLOCK_ROWS) {
    const int64_t left = args->m - row;
    dot_batch<kBits>(args, s, row, row + (left < FOLIO_BLOCK_ROWS ? left : FOLIO_BLOCK_ROWS));
  }
}
