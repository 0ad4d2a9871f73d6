/* Weights of small integers in blocks: their shape, rows rounded to bytes, and kLanes columns
 * unpacked into a panel, so that a vector holds a number of each; kTilePanels panels stand side by
 * side.
 *
 * The including file defines before: kTilePanels; after: the functions that are only declared here.
 */

namespace {

struct Shape {
  explicit Shape(const FolioBlockWeights& w)
      : blob(w.block * w.bits / 8),
        blocks((w.k + w.block - 1) / w.block),
        bytes(blob * blocks),
        plane(folio_block_plane_bytes(bytes)),
        zero_bytes(folio_block_zero_bytes(blocks, w.bits)),
        padded(folio_block_padded(blocks)),
        row(folio_block_row_bytes(blocks, w.block, w.bits)) {}

  int64_t blob;   /* bytes of a block */
  int64_t blocks; /* of a column */
  int64_t bytes;  /* of a column */
  int64_t plane;
  int64_t zero_bytes; /* of a column's zeros as codes */
  int64_t padded;     /* blocks of a row of A */
  int64_t row;        /* bytes of a row of A */
};

/* A row of A. */
struct Row {
  Row(const Shape& s, int bits, const void* a)
      : codes((const int8_t*)a),
        scales((const float*)(codes + 8 / bits * s.plane)),
        middles((const int32_t*)(scales + s.padded)) {}

  const int8_t* codes;
  const float* scales;
  const int32_t* middles;
};

}  // namespace

template <int kBits>
VFN VI low_codes(VI bytes) {
  return kBits == 4 ? vi_and(bytes, vi_set1(0x0F0F0F0F)) : bytes;
}

VFN VI high_codes(VI bytes) { return vi_and(vi_shift_right(bytes, 4), vi_set1(0x0F0F0F0F)); }

typedef struct Columns {
  const uint8_t* codes;
  const char* scales;
  const float* zeros;
  const uint8_t* zero_codes;
  int64_t bytes, blocks; /* from one to the next */
  int64_t scale_bytes;   /* 4, or 2: f16 */
} Columns;

VFN Columns columns_at(const FolioBlockWeights& w, const Shape& s, int64_t n) {
  const int64_t scale_bytes = w.half_scales ? 2 : 4;
  return {(const uint8_t*)w.codes + n * s.bytes,
          (const char*)w.scales + scale_bytes * n * s.blocks,
          w.zeros ? w.zeros + n * s.blocks : nullptr,
          w.zero_codes ? w.zero_codes + n * s.zero_bytes : nullptr,
          s.bytes,
          s.blocks,
          scale_bytes};
}

namespace {

/* kColumns columns unpacked: for each quad, four bytes of a column, [place in its bytes: low,
 * high][kColumns][4] codes; then [block][kColumns] scales; then zeros as parts of the default one.
 */
struct Panels {
  static constexpr int64_t kColumns = kTilePanels * kLanes;

  void place(const Shape& s, int bits, void* memory) {
    codes = (uint8_t*)memory;
    scales = (float*)(codes + 8 / bits * s.plane * kColumns);
    zeros = scales + s.padded * kColumns;
  }

  uint8_t* codes;
  float* scales;
  float* zeros;
};

}  // namespace

/* to[i] = dword at + i, 0 from `length` on, of kLanes columns, `step` bytes apart; those from
 * `count` on are as the last one. */
VFN void turn_columns(const void* first, int64_t step, int64_t count, int64_t at, int64_t length,
                      VI* to);

/* `to`: where the first quad of the columns goes. */
template <int kBits>
static void unpack_codes(const Columns& c, const Shape& s, int64_t count, uint8_t* to) {
  constexpr int64_t kStep = 4 * Panels::kColumns;
  VI quads[kLanes];
  for (int64_t at = 0; at < s.plane; at += 4 * kLanes) {
    const char* next = (const char*)c.codes + kLanes * (s.bytes + at);
    for (int64_t line = 0; line < 4 * kLanes * kLanes; line += 64) {
      _mm_prefetch(next + line, _MM_HINT_T1);
    }
    turn_columns(c.codes, c.bytes, count, at / 4, s.bytes / 4, quads);
#pragma GCC unroll 16
    for (int64_t q = 0; q < kLanes; ++q, to += kStep * (8 / kBits)) {
      vi_store(to, low_codes<kBits>(quads[q]));
      if (kBits == 4) vi_store(to + kStep, high_codes(quads[q]));
    }
  }
}

/* One of the panels. Zeros become what they are of the default one, whose part of D a row of A
 * holds. */
template <int kBits>
static void unpack(const Columns& c, const Shape& s, int64_t count, const Panels& panels,
                   int64_t which) {
  constexpr int64_t kStep = Panels::kColumns;
  const int64_t first = which * kLanes;
  unpack_codes<kBits>(c, s, count, panels.codes + 4 * first);
  const V part = v_set1(1.0f / (1 << (kBits - 1)));
  VI blocks[kLanes];
  for (int64_t b = 0; b < s.padded; b += kLanes) {
    turn_columns(c.scales, 4 * c.blocks, count, b, s.blocks, blocks);
    for (int64_t i = 0; i < kLanes; ++i)
      vi_store(panels.scales + (b + i) * kStep + first, blocks[i]);
    if (!c.zeros) continue;
    turn_columns(c.zeros, 4 * c.blocks, count, b, s.blocks, blocks);
    for (int64_t i = 0; i < kLanes; ++i) {
      v_store(panels.zeros + (b + i) * kStep + first, v_mul(v_from_bits(blocks[i]), part));
    }
  }
}

/* The columns from n on, up to 64, in args->scratch; returns how many `panels` they are. A panel
 * without columns is as the one before it. */
template <int kBits>
static int64_t unpack_panels(const FolioBlockDotsS8* args, const Shape& s, int64_t n,
                             Panels* panels) {
  constexpr int64_t kWidth = Panels::kColumns;
  const FolioBlockWeights& w = args->w;
  const int64_t bytes = folio_block_panels_bytes(s.blocks, w.block, kBits);
  int64_t count = 0;
  for (int64_t at = n; at < w.n && at < n + FOLIO_BLOCK_COLUMNS; at += kWidth, ++count) {
    panels[count].place(s, kBits, (char*)args->scratch + bytes * (at - n) / FOLIO_BLOCK_COLUMNS);
    for (int64_t which = 0; which < kTilePanels; ++which) {
      const int64_t column = at + which * kLanes;
      const int64_t first = column < w.n ? column : column - kLanes;
      const int64_t left = w.n - first;
      unpack<kBits>(columns_at(w, s, first), s, left < kLanes ? left : kLanes, panels[count],
                    which);
    }
  }
  return count;
}

/* The y of a row and the columns of a panel from n on. */
VFN void store_chains(const FolioBlockDotsS8* args, const V (&chains)[4], int64_t row, int64_t n) {
  const int64_t left = args->w.n - n;
  if (left <= 0) return;
  const VM m = v_first(left < kLanes ? left : kLanes);
  V y = v_add(v_add(chains[0], chains[2]), v_add(chains[1], chains[3]));
  if (args->bias) y = v_add(y, v_load_masked(args->bias + n, m));
  v_store_masked(args->y + row * args->y_row_stride + n, m, y);
}
