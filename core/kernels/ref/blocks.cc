// Weights of small integers in blocks, one element after the other.
#include <math.h>
#include <string.h>

#include "core/kernels/ref/ref.h"

static int64_t blocks_of(const FolioBlockWeights* w) { return (w->k + w->block - 1) / w->block; }

static int64_t row_bytes(int64_t k, int64_t block, int32_t bits) {
  return (k + block - 1) / block * block * bits / 8;
}

static int code_at(const FolioBlockWeights* w, int64_t n, int64_t p) {
  const int64_t bit = p * w->bits;
  const uint8_t* row = (const uint8_t*)w->codes + n * row_bytes(w->k, w->block, w->bits);
  return row[bit / 8] >> bit % 8 & ((1 << w->bits) - 1);
}

static float scale_at(const FolioBlockWeights* w, int64_t n, int64_t block) {
  float scale;
  memcpy(&scale, (const char*)w->scales + 4 * (n * blocks_of(w) + block), 4);
  return scale;
}

static float zero_at(const FolioBlockWeights* w, int64_t n, int64_t block) {
  return w->zeros ? w->zeros[n * blocks_of(w) + block] : (float)(1 << (w->bits - 1));
}

static float weight_at(const FolioBlockWeights* w, int64_t n, int64_t p) {
  const int64_t block = p / w->block;
  return ((float)code_at(w, n, p) - zero_at(w, n, block)) * scale_at(w, n, block);
}

static void block_dots_f32__ref(const FolioBlockDotsF32* args) {
  const FolioBlockWeights* w = &args->w;
  const int64_t places = 8 / w->bits;
  const int64_t plane = row_bytes(w->k, w->block, w->bits);
  for (int64_t n = 0; n < w->n; ++n) {
    for (int64_t i = 0; i < args->m; ++i) {
      float sum = 0.0f;
      for (int64_t p = 0; p < w->k; ++p) {
        const int64_t at = i * args->a_row_stride + p % places * plane + p / places;
        sum += args->a[at] * weight_at(w, n, p);
      }
      args->y[i * args->y_row_stride + n] = args->bias ? sum + args->bias[n] : sum;
    }
  }
}

static void block_round_f32__ref(int64_t k, int64_t block, int32_t bits, const float* a,
                                 void* row) {
  const int64_t bytes = row_bytes(k, block, bits);
  const int64_t plane = folio_block_plane_bytes(bytes);
  const int64_t places = 8 / bits;
  int8_t* codes = (int8_t*)row;
  float* scales = (float*)(codes + places * plane);
  float* sums = scales + plane / 4;
  memset(row, 0, (size_t)folio_block_row_bytes(bytes, bits));
  for (int64_t first = 0; first < k; first += block) {
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
      sums[p / places / 4] += (float)code;
    }
    const float scale = max / 127.0f + poison;
    for (int64_t p = first; p < first + block; ++p) scales[p / places / 4] = scale;
  }
}

static void block_dots_s8__ref(const FolioBlockDotsS8* args) {
  const FolioBlockWeights* w = &args->w;
  const int64_t places = 8 / w->bits;
  const int64_t bytes = row_bytes(w->k, w->block, w->bits);
  const int64_t plane = folio_block_plane_bytes(bytes);
  for (int64_t i = 0; i < args->m; ++i) {
    const int8_t* codes = (const int8_t*)args->a + i * folio_block_row_bytes(bytes, w->bits);
    const float* scales = (const float*)(codes + places * plane);
    for (int64_t n = 0; n < w->n; ++n) {
      float sum = 0.0f;
      for (int64_t block = 0; block < blocks_of(w); ++block) {
        const int64_t first = block * w->block;
        const int64_t end = w->k - first < w->block ? w->k : first + w->block;
        const float zero = zero_at(w, n, block);
        float dot = 0.0f;
        for (int64_t p = first; p < end; ++p) {
          const float code = (float)codes[p % places * plane + p / places];
          dot += code * ((float)code_at(w, n, p) - zero);
        }
        sum += dot * (scale_at(w, n, block) * scales[first / places / 4]);
      }
      args->y[i * args->y_row_stride + n] = args->bias ? sum + args->bias[n] : sum;
    }
  }
}

static void block_widen_f32p16__ref(const FolioBlockWeights* w, float* dst) {
  for (int64_t first = 0; first < w->n; first += FOLIO_F32P16_COLUMNS) {
    for (int64_t p = 0; p < w->k; ++p) {
      for (int64_t j = first; j < first + FOLIO_F32P16_COLUMNS; ++j) {
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
