/* pack_s8p16k4: columns of bytes side by side, four rows in a lane. Needs pack_panel (move.inl).
 *
 * Where a row's bytes are neighbours, four rows are woven, of some panels at once. Else a panel is
 * made a part of its rows at a time: 16 columns are gathered as rows of bytes in L1 and turned as
 * lanes of four; then the flip, and the sums of the columns. */

constexpr int64_t kPackRows = 1024; /* a multiple of 4 */
constexpr int64_t kPackLanes = FOLIO_S8P16K4_GROUP / 4;

/* rows[p] = B[first + p, column], p < count. */
VFN void gather_column(const FolioPackS8* args, int64_t column, int64_t first, int64_t count,
                       uint8_t* rows) {
  const uint8_t* source = (const uint8_t*)args->bytes + column * args->col_stride;
  int64_t outer = first / args->inner;
  int64_t inner = first % args->inner;
  while (count > 0) {
    const int64_t left = args->inner - inner;
    const int64_t run = left < count ? left : count;
    const uint8_t* from = source + outer * args->outer_stride + inner * args->row_stride;
    if (args->row_stride == 1) {
      __builtin_memcpy(rows, from, (size_t)run);
    } else {
      for (int64_t i = 0; i < run; ++i) rows[i] = from[i * args->row_stride];
    }
    rows += run;
    count -= run;
    inner = 0;
    ++outer;
  }
}

/* Lanes of `columns` columns of which `count` rows are wanted from `first` on. */
static void pack_columns(const FolioPackS8* args, int64_t column, int64_t columns, int64_t first,
                         int64_t count, uint8_t* to) {
  uint8_t rows[kPackLanes * kPackRows];
  const int64_t groups = (count + 3) / 4;
  for (int64_t j = 0; j < columns; ++j) {
    uint8_t* row = rows + j * kPackRows;
    gather_column(args, column + j, first, count, row);
    for (int64_t p = count; p < 4 * groups; ++p) row[p] = 0;
  }
  pack_panel(groups, columns, (const char*)rows, 4, kPackRows, (char*)to);
}

/* Four rows of 16 columns, `flip` of each byte, as a group of a panel; adds it to the sums. */
VFN void weave_group(const uint8_t* const (&row)[4], uint8_t flip, uint8_t* to, int32_t* sums) {
  const __m128i flips = _mm_set1_epi8((char)flip), ones = _mm_set1_epi8(1);
  __m128i x[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    x[r] = _mm_xor_si128(_mm_loadu_si128((const __m128i*)(const void*)row[r]), flips);
  }
  const __m128i low[2] = {_mm_unpacklo_epi8(x[0], x[1]), _mm_unpacklo_epi8(x[2], x[3])};
  const __m128i high[2] = {_mm_unpackhi_epi8(x[0], x[1]), _mm_unpackhi_epi8(x[2], x[3])};
  const __m128i lanes[4] = {
      _mm_unpacklo_epi16(low[0], low[1]), _mm_unpackhi_epi16(low[0], low[1]),
      _mm_unpacklo_epi16(high[0], high[1]), _mm_unpackhi_epi16(high[0], high[1])};
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm_store_si128((__m128i*)(void*)(to + 16 * i), lanes[i]);
    const __m128i pairs = _mm_maddubs_epi16(ones, lanes[i]); /* of two: they fit */
    __m128i* const sum = (__m128i*)(void*)(sums + 4 * i);
    _mm_store_si128(sum, _mm_add_epi32(_mm_load_si128(sum),
                                       _mm_madd_epi16(pairs, _mm_set1_epi16(1))));
  }
}

/* Panels side by side, up to kPackPanels, where a row's columns are neighbours: a line of memory is
 * read once for all of them. */
constexpr int64_t kPackPanels = 4;
constexpr int64_t kPackAhead = 32; /* rows, of which a processor does not see that they come */

static void weave_panels(const FolioPackS8* args, int64_t column, uint8_t* panel,
                         int64_t panel_bytes, int32_t* sums) {
  const uint8_t* source = (const uint8_t*)args->bytes + column;
  const int64_t all = args->n - column;
  const int64_t columns = all < kPackPanels * kPackLanes ? all : kPackPanels * kPackLanes;
  for (int64_t p = 0; p < args->k; p += 4, source += 4 * args->row_stride) {
    const int64_t count = args->k - p < 4 ? args->k - p : 4;
    const uintptr_t ahead = (uintptr_t)source + (uintptr_t)(kPackAhead * args->row_stride);
    for (int64_t r = 0; r < 4; ++r) { /* of two lines */
      const uintptr_t at = ahead + (uintptr_t)(r * args->row_stride);
      __builtin_prefetch((const void*)at, 0, 3);
      __builtin_prefetch((const void*)(at + kPackPanels * kPackLanes - 1), 0, 3);
    }
    for (int64_t j = 0; j < columns; j += kPackLanes) {
      uint8_t* const to = panel + j / kPackLanes * panel_bytes + p / 4 * FOLIO_S8P16K4_GROUP;
      const int64_t left = columns - j;
      const uint8_t* from = source + j;
      const int64_t step = args->row_stride;
      if (count == 4 && left >= kPackLanes) {
        weave_group({from, from + step, from + 2 * step, from + 3 * step}, args->flip, to,
                    sums + j);
        continue;
      }
      alignas(16) uint8_t rows[4][kPackLanes] = {};
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t c = 0; c < kPackLanes && c < left; ++c) {
          rows[r][c] = from[r * step + c] ^ args->flip;
        }
      }
      weave_group({rows[0], rows[1], rows[2], rows[3]}, 0, to, sums + j);
    }
  }
}

VFN VI signed_byte_sums(VI lanes) {
  const VI low = vi_add(vi_shift_right_signed(vi_shift_left(lanes, 24), 24),
                        vi_shift_right_signed(vi_shift_left(lanes, 16), 24));
  const VI high = vi_add(vi_shift_right_signed(vi_shift_left(lanes, 8), 24),
                         vi_shift_right_signed(lanes, 24));
  return vi_add(low, high);
}

/* Flips what is there, and adds the panel's bytes to `sums`; rows and columns beyond stay zero. */
static void flip_and_sum(const FolioPackS8* args, int64_t columns, int64_t count, uint8_t* panel,
                         int32_t* sums) {
  const uint32_t every = args->flip * 0x01010101U;
  for (int64_t v = 0; v < kPackLanes; v += kLanes) {
    int32_t flips[kLanes];
    int32_t last[kLanes];
    const uint32_t left = count % 4 == 0 ? ~0U : (1U << 8 * (count % 4)) - 1;
    for (int64_t i = 0; i < kLanes; ++i) {
      flips[i] = v + i < columns ? (int32_t)every : 0;
      last[i] = (int32_t)((uint32_t)flips[i] & left);
    }
    VI sum = vi_load(sums + v);
    for (int64_t p = 0; p < count; p += 4) {
      uint8_t* at = panel + p / 4 * FOLIO_S8P16K4_GROUP + 4 * v;
      const VI lanes = vi_xor(vi_load(at), vi_load(p + 4 < count ? flips : last));
      vi_store(at, lanes);
      sum = vi_add(sum, signed_byte_sums(lanes));
    }
    vi_store(sums + v, sum);
  }
}

static void FOLIO_LEVEL(pack_s8p16k4)(const FolioPackS8* args, void* dst) {
  const int64_t k = args->k;
  const int64_t panels = (args->n + kPackLanes - 1) / kPackLanes;
  const int64_t panel_bytes = (k + 3) / 4 * FOLIO_S8P16K4_GROUP;
  uint8_t* panel = (uint8_t*)dst;
  uint8_t* const all_sums = panel + panels * panel_bytes;
  const int weaves = args->col_stride == 1 && args->inner >= k;
  const int64_t together = weaves ? kPackPanels : 1;
  for (int64_t q = 0; q < panels; q += together, panel += together * panel_bytes) {
    const int64_t column = q * kPackLanes;
    const int64_t left = args->n - column;
    const int64_t columns = left < kPackLanes ? left : kPackLanes;
    alignas(64) int32_t sums[kPackPanels * kPackLanes] = {};
    if (weaves) weave_panels(args, column, panel, panel_bytes, sums);
    for (int64_t p = 0; !weaves && p < k; p += kPackRows) {
      const int64_t count = k - p < kPackRows ? k - p : kPackRows;
      uint8_t* to = panel + p / 4 * FOLIO_S8P16K4_GROUP;
      pack_columns(args, column, columns, p, count, to);
      flip_and_sum(args, columns, count, to, sums);
    }
    const int64_t made = panels - q < together ? panels - q : together;
    __builtin_memcpy(all_sums + column * sizeof(int32_t), sums,
                     (size_t)(made * kPackLanes) * sizeof(int32_t));
  }
}

static void fill_pack_bytes(FolioKernels* table) {
  table->pack_s8p16k4 = FOLIO_LEVEL(pack_s8p16k4);
}
