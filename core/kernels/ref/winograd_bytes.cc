// Winograd's F(4x4, 3x3) of bytes, as products with the matrices of winograd.h.
#include "core/kernels/ref/ref.h"

static const int32_t kEdge = FOLIO_WINOGRAD_EDGE;
static const int32_t kSide = FOLIO_WINOGRAD_SIDE;

static const int32_t kInput[6][6] = {
    {4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
    {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1},
};
static const uint32_t kOutput[4][6] = {
    {1, 1, 1, 1, 1, 0},
    {0, 1, -1U, 2, -2U, 0},
    {0, 1, 1, 4, 4, 0},
    {0, 1, -1U, 8, -8U, 4},
};

static void winograd_input_u8__ref(const FolioWinogradInputU8* args) {
  for (int64_t t = 0; t < args->tiles; ++t) {
    const uint8_t* const* x = args->x + t * FOLIO_WINOGRAD_PLANES;
    for (int64_t c = 0; c < args->channels; ++c) {
      for (int e = 0; e < FOLIO_WINOGRAD_PLANES; ++e) {
        int32_t sum = 0;
        for (int i = 0; i < kEdge; ++i) {
          for (int j = 0; j < kEdge; ++j) {
            sum += kInput[e / kEdge][i] * kInput[e % kEdge][j] * (x[kEdge * i + j][c] - 128);
          }
        }
        args->v[e * args->plane_stride + t * args->row_stride + c] = (int16_t)sum;
      }
    }
  }
}

static void gemm_s16__ref(const FolioGemmS16* args) {
  const auto* b = static_cast<const int16_t*>(args->b);
  for (int64_t i = 0; i < args->m; ++i) {
    for (int64_t j = 0; j < (args->n + 15) / 16 * 16; ++j) {
      const int16_t* column = b + j / 16 * args->k * 16 + j % 16 * 2;
      uint32_t sum = 0;
      for (int64_t p = 0; p < args->k; ++p) {
        sum += (uint32_t)(args->a[i * args->a_row_stride + p] * column[p / 2 * 32 + p % 2]);
      }
      args->c[i * args->c_row_stride + j] = (int32_t)sum;
    }
  }
}

/* 2^6 y is the last 32 bits of what the matrices give, times the inverse of 9. */
static int32_t output(const FolioWinogradOutputU8* args, int64_t t, int64_t c, int k) {
  const uint32_t inverse_of_9 = 0x38e38e39;
  const int32_t* m = args->m + t * args->row_stride + c;
  uint32_t sum = 0;
  for (int e = 0; e < FOLIO_WINOGRAD_PLANES; ++e) {
    sum += kOutput[k / kSide][e / kEdge] * kOutput[k % kSide][e % kEdge] *
           (uint32_t)m[e * args->plane_stride];
  }
  return (int32_t)(sum * inverse_of_9) >> 6;
}

static void winograd_output_u8__ref(const FolioWinogradOutputU8* args) {
  for (int64_t t = 0; t < args->tiles; ++t) {
    for (int k = 0; k < FOLIO_WINOGRAD_OUTPUTS; ++k) {
      const int64_t at = args->pixels[t * FOLIO_WINOGRAD_OUTPUTS + k];
      if (at < 0) continue;
      void* y = row_of(&args->sums, args->y, at * args->y_step);
      for (int64_t c = 0; c < args->channels; ++c) {
        store_sum__ref(&args->sums, (uint32_t)output(args, t, c, k), at, c, y);
      }
    }
  }
}

void fill_winograd_bytes__ref(FolioKernels* table) {
  table->winograd_input_u8 = winograd_input_u8__ref;
  table->gemm_s16 = gemm_s16__ref;
  table->winograd_output_u8 = winograd_output_u8__ref;
}
