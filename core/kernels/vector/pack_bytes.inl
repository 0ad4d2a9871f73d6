/* pack_s8p16k4: columns of bytes side by side, four rows in a lane. Needs pack_panel (move.inl).
 *
 * A panel is made a part of its rows at a time: either 16 columns are gathered as rows of bytes in
 * L1 and turned as lanes of four, or, where a row's 16 bytes are neighbours, four rows are woven.
 * Then the flip, and the sums of the columns. */

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

/* The same where a row's columns are neighbours: inner rows only. */
static void weave_rows(const FolioPackS8* args, int64_t column, int64_t columns, int64_t first,
                       int64_t count, uint8_t* to) {
  const uint8_t* source = (const uint8_t*)args->bytes + column;
  for (int64_t p = 0; p < count; p += 4) {
    uint8_t rows[4][kPackLanes] = {};
    for (int64_t r = 0; r < 4 && p + r < count; ++r) {
      const uint8_t* from = source + (first + p + r) * args->row_stride;
      __builtin_memcpy(rows[r], from, (size_t)columns);
    }
    for (int64_t v = 0; v < kPackLanes; v += kLanes, to += 4 * kLanes) {
      VI lanes = vi_or(vi_load_u8(rows[0] + v), vi_shift_left(vi_load_u8(rows[1] + v), 8));
      lanes = vi_or(lanes, vi_shift_left(vi_load_u8(rows[2] + v), 16));
      vi_store(to, vi_or(lanes, vi_shift_left(vi_load_u8(rows[3] + v), 24)));
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
  for (int64_t q = 0; q < panels; ++q, panel += panel_bytes) {
    const int64_t column = q * kPackLanes;
    const int64_t left = args->n - column;
    const int64_t columns = left < kPackLanes ? left : kPackLanes;
    int32_t sums[kPackLanes] = {};
    for (int64_t p = 0; p < k; p += kPackRows) {
      const int64_t count = k - p < kPackRows ? k - p : kPackRows;
      uint8_t* to = panel + p / 4 * FOLIO_S8P16K4_GROUP;
      (weaves ? weave_rows : pack_columns)(args, column, columns, p, count, to);
      flip_and_sum(args, columns, count, to, sums);
    }
    __builtin_memcpy(all_sums + q * sizeof(sums), sums, sizeof(sums));
  }
}

static void fill_pack_bytes(FolioKernels* table) {
  table->pack_s8p16k4 = FOLIO_LEVEL(pack_s8p16k4);
}
