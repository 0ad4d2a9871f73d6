/* Transforms of Winograd's F(4x4, 3x3) of bytes; see winograd.h. (Products: word_products.inl.)
 *
 * A vector of channels of one tile at a time, as those of floats. What becomes of sums is up to the
 * level, of 64 channels of a pixel at a time.
 *
 * The including file defines before: kLanes and VI, as many int32; vi_set1_words;
 * bytes_as_words(from, left) and put_words(to, left, words) of 2 * kLanes channels or the `left`
 * that there are, a multiple of 16; kUnrolled: how many columns and rows of a tile are written out;
 * and
 *   Ending e; begin_ending(&sums, column, count, &e); end_pixel(&e, sums, addend, to)
 * of up to 64 channels from `column` on: sums are VI[64 / kLanes], `to` and `addend` theirs. */

typedef int16_t VWords __attribute__((vector_size(4 * kLanes)));
typedef uint32_t VSums __attribute__((vector_size(4 * kLanes)));
typedef int32_t VSigned __attribute__((vector_size(4 * kLanes)));

/* o = B d. */
VFN void word_input_line(const VWords* d, VWords* o) {
  const VWords even = d[4] - (d[2] << 2);
  const VWords odd = d[3] - (d[1] << 2);
  const VWords near = d[4] - d[2];
  const VWords step = d[3] - d[1];
  const VWords twice = step + step;
  o[0] = near + ((d[0] - d[2]) << 2);
  o[1] = even + odd;
  o[2] = even - odd;
  o[3] = near + twice;
  o[4] = near - twice;
  o[5] = (d[5] - d[3]) - (twice + twice);
}

/* y = A m. */
VFN void word_output_line(const VSums* m, VSums* y) {
  const VSums sum_1 = m[1] + m[2];
  const VSums odd_1 = m[1] - m[2];
  const VSums sum_2 = m[3] + m[4];
  const VSums odd_2 = m[3] - m[4];
  y[0] = m[0] + (sum_1 + sum_2);
  y[1] = odd_1 + (odd_2 + odd_2);
  y[2] = sum_1 + (sum_2 << 2);
  y[3] = odd_1 + (odd_2 << 3) + (m[5] << 2);
}

VFN void word_input(const uint8_t* const* x, int64_t c, int64_t left, int16_t* v, int64_t stride) {
  VWords half[6][6]; /* [row][column] */
#pragma GCC unroll kUnrolled
  for (int j = 0; j < 6; ++j) {
    VWords d[6];
    VWords o[6];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) d[i] = (VWords)bytes_as_words(x[6 * i + j] + c, left);
    word_input_line(d, o);
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll kUnrolled
  for (int i = 0; i < 6; ++i) {
    VWords o[6];
    word_input_line(half[i], o);
    /* 128 less of each pixel is 36 * 128 less of V(1, 1), and of no other. */
    o[1] -= (VWords)vi_set1_words(i == 1 ? 36 * 128 : 0);
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) put_words(v + (6 * i + j) * stride + c, left, (VI)o[j]);
  }
}

static void FOLIO_LEVEL(winograd_input_u8)(const FolioWinogradInputU8* args) {
  for (int64_t t = 0; t < args->tiles; ++t) {
    const uint8_t* const* x = args->x + t * FOLIO_WINOGRAD_PLANES;
    int16_t* v = args->v + t * args->row_stride;
    for (int64_t c = 0; c < args->channels; c += 2 * kLanes) {
      word_input(x, c, args->channels - c, v, args->plane_stride);
    }
  }
}

/* The 16 sums of a vector of channels: y[k * step]. */
VFN void word_output(const int32_t* m, int64_t stride, VI* y, int64_t step) {
  constexpr uint32_t kInverseOf9 = 0x38e38e39;
  VSums half[4][6]; /* [row][column] */
#pragma GCC unroll kUnrolled
  for (int j = 0; j < 6; ++j) {
    VSums d[6];
    VSums o[4];
#pragma GCC unroll 6
    for (int i = 0; i < 6; ++i) __builtin_memcpy(&d[i], m + (6 * i + j) * stride, sizeof(VSums));
    word_output_line(d, o);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) half[i][j] = o[i];
  }
#pragma GCC unroll kUnrolled
  for (int i = 0; i < 4; ++i) {
    VSums sum[4];
    word_output_line(half[i], sum);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) y[(4 * i + j) * step] = (VI)((VSigned)(sum[j] * kInverseOf9) >> 6);
  }
}

static void FOLIO_LEVEL(winograd_output_u8)(const FolioWinogradOutputU8* args) {
  constexpr int64_t kTogether = 64;
  constexpr int kVectors = kTogether / kLanes;
  const FolioSums* s = &args->sums;
  const int64_t size = s->to == kFolioToByte ? 1 : 4;
  VI y[FOLIO_WINOGRAD_OUTPUTS][kVectors] = {};
  for (int64_t c = 0; c < args->channels; c += kTogether) {
    const int64_t left = args->channels - c;
    const int64_t count = left < kTogether ? left : kTogether;
    Ending ending;
    begin_ending(s, c, count, &ending);
    for (int64_t t = 0; t < args->tiles; ++t) {
      const int32_t* m = args->m + t * args->row_stride + c;
      for (int64_t v = 0; v * kLanes < count; ++v) {
        word_output(m + v * kLanes, args->plane_stride, &y[0][v], kVectors);
      }
      const int64_t* pixels = args->pixels + t * FOLIO_WINOGRAD_OUTPUTS;
      for (int k = 0; k < FOLIO_WINOGRAD_OUTPUTS; ++k) {
        const int64_t at = pixels[k];
        if (at < 0) continue;
        end_pixel(&ending, y[k], s->add ? s->addend + at * s->addend_row_stride + c : nullptr,
                  (char*)args->y + (at * args->y_step + c) * size);
      }
    }
  }
}

static void fill_winograd_bytes(FolioKernels* table) {
  table->winograd_input_u8 = FOLIO_LEVEL(winograd_input_u8);
  table->winograd_output_u8 = FOLIO_LEVEL(winograd_output_u8);
}
