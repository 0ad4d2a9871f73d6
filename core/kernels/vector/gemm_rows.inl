/* Rows of A, wherever FolioGemmF32 says that they are, as contiguous numbers. */

/* The `depth` numbers of row i from p on: where they stand, or gathered in `copy`, which has room
 * for a vector more. */
static const float* row_at(const FolioGemmF32* args, int64_t i, int64_t p, int64_t depth,
                           float* copy) {
  if (!args->a_rows && !args->a_lines) {
    const float* from = args->a + i * args->a_row_stride + p * args->a_col_stride;
    if (args->a_col_stride == 1) return from;
    for (int64_t q = 0; q < depth; ++q) copy[q] = from[q * args->a_col_stride];
    return copy;
  }
  int64_t piece = p / args->a_run;
  int64_t skipped = p - piece * args->a_run;
  for (int64_t done = 0; done < depth; ++piece, skipped = 0) {
    const float* from = (args->a_rows ? args->a_rows[piece * args->m + i]
                                      : args->a_lines[piece] + i * args->a_row_stride) +
                        skipped;
    const int64_t run = args->a_run - skipped;
    if (done == 0 && run >= depth) return from;
    const int64_t count = run < depth - done ? run : depth - done;
    for (int64_t q = 0; q < count; q += kLanes) {
      const VM m = v_first(count - q < kLanes ? count - q : kLanes);
      v_store(copy + done + q, v_load_masked(from + q, m)); /* what is too much comes next */
    }
    done += count;
  }
  return copy;
}

/* Bytes of a row of a panel of B, of either type. */
VFN int64_t panel_row_bytes(const FolioGemmF32* args) {
  return FOLIO_F32P16_COLUMNS * (args->b_is_bfloat16 ? 2 : 4);
}

/* Rows of a panel, with the one that fills up a pair. */
VFN int64_t panel_rows(const FolioGemmF32* args) {
  return args->b_is_bfloat16 ? folio_bf16p16_rows(args->k) : args->k;
}

/* Row p of the panel that begins at `column`; of bfloat16, an even one. */
VFN const char* panel_row(const FolioGemmF32* args, int64_t column, int64_t p) {
  return (const char*)args->b +
         (column / FOLIO_F32P16_COLUMNS * panel_rows(args) + p) * panel_row_bytes(args);
}
