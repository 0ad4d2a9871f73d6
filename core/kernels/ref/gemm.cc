// C = activation(scales * (A * B [+ C]) + biases + D), one element after the other.
#include <string.h>

#include "core/kernels/ref/ref.h"

static float a_at(const FolioGemmF32* args, int64_t i, int64_t p) {
  if (args->a_rows) return args->a_rows[p / args->a_run * args->m + i][p % args->a_run];
  if (args->a_lines)
    return args->a_lines[p / args->a_run][i * args->a_row_stride + p % args->a_run];
  return args->a[i * args->a_row_stride + p * args->a_col_stride];
}

static float finish(const FolioGemmF32* args, int64_t i, int64_t j, float sum) {
  float v = (args->col_scale ? args->alpha * args->col_scale[j] : args->alpha) * sum;
  if (args->col_bias) v += args->col_bias[j];
  if (args->row_bias) v += args->row_bias[i];
  if (args->addend) v += args->addend[i * args->addend_row_stride + j];
  return activate(args->activation, args->clip_lo, args->clip_hi, v);
}

void gemm_f32__ref(const FolioGemmF32* args) {
  const int64_t columns = FOLIO_F32P16_COLUMNS;
  for (int64_t i = 0; i < args->m; ++i) {
    float* c = args->c + i * args->c_row_stride;
    for (int64_t j = 0; j < args->n; ++j) {
      const int64_t b_first = j / columns * columns * args->k + j % columns;
      float sum = args->accumulate ? c[j] : 0.0f;
      for (int64_t p = 0; p < args->k; ++p) {  // for k = 0, a and b may be null: no address of them
        sum += a_at(args, i, p) * args->b[b_first + p * columns];
      }
      c[j] = finish(args, i, j, sum);
    }
  }
}

void dots_f32__ref(const FolioGemmF32* args) {
  for (int64_t i = 0; i < args->m; ++i) {
    for (int64_t j = 0; j < args->n; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < args->k; ++p) {
        float element;
        memcpy(&element, (const char*)args->b + 4 * (j * args->k + p), 4);
        sum += a_at(args, i, p) * element;
      }
      args->c[i * args->n + j] = finish(args, i, j, sum);
    }
  }
}

void gemm_plain_f32__ref(const FolioGemmF32* args, const void* b, int64_t b_row_stride) {
  for (int64_t i = 0; i < args->m; ++i) {
    float* c = args->c + i * args->c_row_stride;
    for (int64_t j = 0; j < args->n; ++j) {
      float sum = args->accumulate ? c[j] : 0.0f;
      for (int64_t p = 0; p < args->k; ++p) {
        float element;
        memcpy(&element, (const char*)b + 4 * (p * b_row_stride + j), 4);
        sum += args->a[i * args->a_row_stride + p * args->a_col_stride] * element;
      }
      c[j] = finish(args, i, j, sum);
    }
  }
}

void gemv_b16__ref(const FolioGemmF32* args, const void* b, int32_t is_bfloat16) {
  const int64_t columns = FOLIO_F32P16_COLUMNS;
  const auto widen = is_bfloat16 ? bf16_to_f32__ref : f16_to_f32__ref;
  const int64_t panel = columns * (is_bfloat16 ? folio_bf16p16_rows(args->k) : args->k);
  for (int64_t i = 0; i < args->m; ++i) {
    float* c = args->c + i * args->c_row_stride;
    for (int64_t j = 0; j < args->n; ++j) {
      const int64_t first = j / columns * panel;
      float sum = args->accumulate ? c[j] : 0.0f;
      for (int64_t p = 0; p < args->k; ++p) {
        const int64_t at =
            is_bfloat16 ? folio_bf16p16_at(p, j % columns) : p * columns + j % columns;
        float element;
        widen(1, (const char*)b + 2 * (first + at), &element);
        sum += args->a[i * args->a_row_stride + p * args->a_col_stride] * element;
      }
      c[j] = finish(args, i, j, sum);
    }
  }
}

void gemm_f64__ref(const FolioGemmF64* args) {
  for (int64_t i = 0; i < args->m; ++i) {
    for (int64_t j = 0; j < args->n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < args->k; ++p) {
        sum += args->a[i * args->a_row_stride + p * args->a_col_stride] *
               args->b[p * args->b_row_stride + j * args->b_col_stride];
      }
      args->c[i * args->c_row_stride + j] = args->alpha * sum;
    }
  }
}
