// Weights of small integers in blocks, one element after the other.
#include <math.h>
#include <string.h>

#include "core/kernels/ref/ref.h"

static int64_t blocks_of(const FolioBlockWeights* w) { return (w->k + w->block - 1) / w->block; }

static int64_t row_bytes(int64_t k, int64_t block, int32_t bits) {
  return (k + block - 1) / block * block * bits / 8;
}

static int code_of_row(const uint8_t* row, int64_t i, int32_t bits) {
  const int64_t bit = i * bits;
  return row[bit / 8] >> bit % 8 & ((1 << bits) - 1);
}

// Where the code of element p is counted.
static int64_t place_of(const FolioBlockWeights* w, int64_t p) { return w->levels ? p ^ 1 : p; }

static int code_at(const FolioBlockWeights* w, int64_t n, int64_t p) {
  const uint8_t* row = (const uint8_t*)w->codes + n * row_bytes(w->k, w->block, w->bits);
  return code_of_row(row, place_of(w, p), w->bits);
}

static float scale_at(const FolioBlockWeights* w, int64_t n, int64_t block) {
  const int64_t at = n * blocks_of(w) + block;
  float scale;
  if (w->half_scales) {
    f16_to_f32__ref(1, (const char*)w->scales + 2 * at, &scale);
  } else {
    memcpy(&scale, (const char*)w->scales + 4 * at, 4);
  }
  return scale;
}

static float zero_at(const FolioBlockWeights* w, int64_t n, int64_t block) {
  if (w->zero_codes) {
    const uint8_t* row = w->zero_codes + n * folio_block_zero_bytes(blocks_of(w), w->bits);
    return (float)code_of_row(row, block, w->bits);
  }
  return w->zeros ? w->zeros[n * blocks_of(w) + block] : (float)(1 << (w->bits - 1));
}

static float weight_at(const FolioBlockWeights* w, int64_t n, int64_t p) {
  const int64_t block = p / w->block;
  const int code = code_at(w, n, p);
  const float level = w->levels ? w->levels[code] : (float)code - zero_at(w, n, block);
  return level * scale_at(w, n, block);
}

static void block_dots_f32__ref(const FolioBlockDotsF32* args) {
  const FolioBlockWeights* w = &args->w;
  const int64_t places = 8 / w->bits;
  const int64_t plane = row_bytes(w->k, w->block, w->bits);
  for (int64_t n = 0; n < w->n; ++n) {
    for (int64_t i = 0; i < args->m; ++i) {
      float sum = 0.0f;
      for (int64_t p = 0; p < w->k; ++p) {
        const int64_t place = place_of(w, p);
        const int64_t at = i * args->a_row_stride + place % places * plane + place / places;
        sum += args->a[at] * weight_at(w, n, p);
      }
      args->y[i * args->y_row_stride + n] = args->bias ? sum + args->bias[n] : sum;
    }
  }
}

static void block_round_f32__ref(int64_t k, int64_t block, int32_t bits, const float* a,
                                 void* row) {
  const int64_t blocks = (k + block - 1) / block;
  const int64_t plane = folio_block_plane_bytes(row_bytes(k, block, bits));
  const int64_t places = 8 / bits;
  int8_t* codes = (int8_t*)row;
  float* scales = (float*)(codes + places * plane);
  int32_t* middles = (int32_t*)(scales + folio_block_padded(blocks));
  fill_zeros(row, folio_block_row_bytes(blocks, block, bits));
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t first = b * block;
    const int64_t end = k - first < block ? k : first + block;
    float max = 0.0f;
    float poison = 0.0f;  // NaN when the block holds inf or NaN
    for (int64_t p = first; p < end; ++p) {
      max = fabsf(a[p]) > max ? fabsf(a[p]) : max;
      poison += a[p] * 0.0f;
    }
    const float inverse = max > 1e-36f ? 127.0f / max : 0.0f;
    for (int64_t p = first; p < end; ++p) {
      const float rounded = nearbyintf(a[p] * inverse);
      const int code = rounded >= -127.0f && rounded <= 127.0f ? (int)rounded : 0;
      codes[p % places * plane + p / places] = (int8_t)code;
      middles[b] -= code << (bits - 1);
    }
    scales[b] = max / 127.0f + poison;
  }
}

static float rounded_product(const FolioBlockWeights* w, const int8_t* row, int64_t n) {
  const int64_t places = 8 / w->bits;
  const int64_t plane = folio_block_plane_bytes(row_bytes(w->k, w->block, w->bits));
  const float* scales = (const float*)(row + places * plane);
  float sum[4] = {};
  for (int64_t block = 0; block < blocks_of(w); ++block) {
    const int64_t first = block * w->block;
    const int64_t end = w->k - first < w->block ? w->k : first + w->block;
    const int zero = (int)zero_at(w, n, block);
    int dot = 0;
    for (int64_t p = first; p < end; ++p) {
      dot += row[p % places * plane + p / places] * (code_at(w, n, p) - zero);
    }
    float* to = &sum[block % 4];
    *to = fmaf((float)dot, scale_at(w, n, block) * scales[block], *to);
  }
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static void block_dots_s8__ref(const FolioBlockDotsS8* args) {
  const FolioBlockWeights* w = &args->w;
  const int64_t row = folio_block_row_bytes(blocks_of(w), w->block, w->bits);
  for (int64_t i = 0; i < args->m; ++i) {
    for (int64_t n = 0; n < w->n; ++n) {
      const float sum = rounded_product(w, (const int8_t*)args->a + i * row, n);
      args->y[i * args->y_row_stride + n] = args->bias ? sum + args->bias[n] : sum;
    }
  }
}

static void block_widen_f32p16__ref(const FolioBlockWeights* w, int64_t first, int64_t depth,
                                    float* dst) {
  for (int64_t panel = 0; panel < w->n; panel += FOLIO_F32P16_COLUMNS) {
    for (int64_t p = first; p < first + depth; ++p) {
      for (int64_t j = panel; j < panel + FOLIO_F32P16_COLUMNS; ++j) {
        *dst++ = j < w->n ? weight_at(w, j, p) : 0.0f;
      }
    }
  }
}

void fill_blocks__ref(FolioKernels* table) {
  table->block_dots_f32 = block_dots_f32__ref;
  table->block_dots_s8 = block_dots_s8__ref;
  table->block_round_f32 = block_round_f32__ref;
  table->block_widen_f32p16 = block_widen_f32p16__ref;
}
