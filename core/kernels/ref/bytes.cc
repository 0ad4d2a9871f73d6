// Products of bytes in int32, and bytes to and from floats, one element after the other.
#include <math.h>
#include <string.h>

#include "core/kernels/ref/ref.h"

static const int64_t kColumns = 16;

static int64_t panel_bytes(int64_t k) { return (k + 3) / 4 * FOLIO_S8P16K4_GROUP; }

static void pack_s8p16k4__ref(const FolioPackS8* args, void* dst) {
  const auto* source = static_cast<const uint8_t*>(args->bytes);
  const int64_t k = args->k;
  const int64_t panels = (args->n + kColumns - 1) / kColumns;
  uint8_t* const base = static_cast<uint8_t*>(dst);
  fill_zeros(base, panels * panel_bytes(k));
  uint8_t* const sums = base + panels * panel_bytes(k);
  for (int64_t j = 0; j < panels * kColumns; ++j) {
    uint32_t sum = 0;
    if (j < args->n) {
      uint8_t* to = base + j / kColumns * panel_bytes(k) + j % kColumns * 4;
      int64_t p = 0;
      for (int64_t outer = 0; p < k; ++outer) {
        const uint8_t* from = source + j * args->col_stride + outer * args->outer_stride;
        for (int64_t i = 0; i < args->inner && p < k; ++i, ++p) {
          const uint8_t byte = from[i * args->row_stride] ^ args->flip;
          to[p / 4 * FOLIO_S8P16K4_GROUP + p % 4] = byte;
          sum += (uint32_t)(int32_t)(int8_t)byte;
        }
      }
    }
    memcpy(sums + 4 * j, &sum, 4);
  }
}

static void unpack_s8p16k4__ref(const FolioPackS8* args, const void* src, void* bytes) {
  const auto* const base = static_cast<const uint8_t*>(src);
  const int64_t k = args->k;
  for (int64_t j = 0; j < args->n; ++j) {
    const uint8_t* from = base + j / kColumns * panel_bytes(k) + j % kColumns * 4;
    int64_t p = 0;
    for (int64_t outer = 0; p < k; ++outer) {
      uint8_t* to =
          static_cast<uint8_t*>(bytes) + j * args->col_stride + outer * args->outer_stride;
      for (int64_t i = 0; i < args->inner && p < k; ++i, ++p) {
        to[i * args->row_stride] = from[p / 4 * FOLIO_S8P16K4_GROUP + p % 4] ^ args->flip;
      }
    }
  }
}

static int32_t quantize(float ratio, int32_t zero, int32_t lo, int32_t hi) {
  if (ratio != ratio) ratio = 0.0f;
  const float low = (float)(lo - zero);
  const float high = (float)(hi - zero);
  ratio = ratio < low ? low : ratio;
  ratio = ratio > high ? high : ratio;
  return (int32_t)rintf(ratio) + zero;
}

static int32_t code_of(uint8_t code, const FolioByteScale* from) {
  return from->is_signed ? (int8_t)code : code;
}

/* What FolioByteAdd comes to. */
typedef struct AddRatios {
  const FolioByteAdd* add;
  float p, q, r;
} AddRatios;

static AddRatios add_ratios(const FolioByteAdd* add) {
  AddRatios ratios = {add, add->a.scale / add->to.scale, add->b.scale / add->to.scale, 0.0f};
  const float at_zero_a = ratios.p * (float)add->a.zero;
  const float at_zero_b = ratios.q * (float)add->b.zero;
  ratios.r = -(at_zero_a + at_zero_b);
  return ratios;
}

static uint8_t add_codes(const AddRatios* ratios, uint8_t a, uint8_t b) {
  const FolioByteAdd* add = ratios->add;
  const int32_t lo = add->to.is_signed ? -128 : 0;
  const float second = fmaf((float)code_of(b, &add->b), ratios->q, ratios->r);
  const float ratio = fmaf((float)code_of(a, &add->a), ratios->p, second);
  return (uint8_t)quantize(ratio, add->to.zero, lo, lo + 255);
}

void store_sum__ref(const FolioSums* s, uint32_t products, int64_t i, int64_t j, void* c) {
  if (s->offset) products += (uint32_t)s->offset[j];
  if (s->column_sum) products -= (uint32_t)s->a_zero * (uint32_t)s->column_sum[j];
  if (s->row_sum) products -= (uint32_t)s->row_sum[i] * (uint32_t)s->b_zero[j];
  const int32_t sum = (int32_t)products;
  if (s->to == kFolioToInt32) {
    static_cast<int32_t*>(c)[j] = sum;
  } else if (s->to == kFolioToFloat) {
    const float value = (float)sum * s->scale[j];
    static_cast<float*>(c)[j] = s->bias ? value + s->bias[j] : value;
  } else {
    const int32_t code = quantize((float)sum * s->scale[j], s->zero, s->lo, s->hi);
    uint8_t byte = (uint8_t)code;
    if (s->add) {
      const AddRatios ratios = add_ratios(s->add);
      const uint8_t addend = s->addend[i * s->addend_row_stride + j];
      byte =
          s->add->addend_is_a ? add_codes(&ratios, addend, byte) : add_codes(&ratios, byte, addend);
    }
    static_cast<uint8_t*>(c)[j] = byte;
  }
}

static uint8_t a_at(const FolioGemmU8* args, int64_t i, int64_t p) {
  if (!args->a_rows) return args->a[i * args->a_row_stride + p];
  return args->a_rows[p / args->a_run * args->m + i][p % args->a_run];
}

static void gemm_u8__ref(const FolioGemmU8* args) {
  const auto* b = static_cast<const int8_t*>(args->b);
  for (int64_t i = 0; i < args->m; ++i) {
    void* c = row_of(&args->sums, args->c, i * args->c_row_stride);
    for (int64_t j = 0; j < args->n; ++j) {
      const int64_t first = j / kColumns * panel_bytes(args->k) + j % kColumns * 4;
      uint32_t sum = 0;
      for (int64_t p = 0; p < args->k; ++p) {
        sum += (uint32_t)(a_at(args, i, p) * b[first + p / 4 * FOLIO_S8P16K4_GROUP + p % 4]);
      }
      store_sum__ref(&args->sums, sum, i, j, c);
    }
  }
}

static void depthwise_u8__ref(const FolioDepthwiseU8* args) {
  const auto* b = static_cast<const int8_t*>(args->b);
  const int64_t window = args->rows * args->columns;
  const int64_t taps = args->sets * window;
  for (int64_t i = 0; i < args->lines * args->pixels; ++i) {
    void* y = row_of(&args->sums, args->y, i * args->y_row_stride);
    const int64_t at = i / args->pixels * args->x_line_stride + i % args->pixels * args->step;
    for (int64_t j = 0; j < args->channels; ++j) {
      const int64_t first = j / kColumns * panel_bytes(taps) + j % kColumns * 4;
      uint32_t sum = 0;
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t row = t % window / args->columns;
        const int64_t tap = row * args->x_row_stride + t % args->columns * args->dilation;
        const uint8_t* x = args->x[at + tap];
        sum += (uint32_t)(x[j] * b[first + t / 4 * FOLIO_S8P16K4_GROUP + t % 4]);
      }
      store_sum__ref(&args->sums, sum, i, j, y);
    }
  }
}

static int32_t sum_u8__ref(int64_t n, const uint8_t* x) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return (int32_t)sum;
}

static uint8_t quantize_to(float x, const FolioByteScale* to) {
  const int32_t lo = to->is_signed ? -128 : 0;
  return (uint8_t)quantize(x / to->scale, to->zero, lo, lo + 255);
}

static float dequantize(uint8_t code, const FolioByteScale* from) {
  return (float)(code_of(code, from) - from->zero) * from->scale;
}

static void quantize_f32__ref(int64_t n, const float* x, const FolioByteScale* to, uint8_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = quantize_to(x[i], to);
}

static void dequantize_b8__ref(int64_t n, const uint8_t* x, const FolioByteScale* from, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = dequantize(x[i], from);
}

static void add_b8__ref(int64_t n, const uint8_t* a, const FolioByteScale* a_from, const uint8_t* b,
                        const FolioByteScale* b_from, const FolioByteScale* to, uint8_t* y) {
  const FolioByteAdd add = {*a_from, *b_from, *to, 0};
  const AddRatios ratios = add_ratios(&add);
  for (int64_t i = 0; i < n; ++i) y[i] = add_codes(&ratios, a[i], b[i]);
}

static void mul_b8__ref(int64_t n, const uint8_t* a, const FolioByteScale* a_from, const uint8_t* b,
                        const FolioByteScale* b_from, const FolioByteScale* to, uint8_t* y) {
  for (int64_t i = 0; i < n; ++i) {
    float left;
    float right;
    dequantize_b8__ref(1, a + i, a_from, &left);
    dequantize_b8__ref(1, b + i, b_from, &right);
    const float product = left * right;
    quantize_f32__ref(1, &product, to, y + i);
  }
}

static void map_b8__ref(const uint8_t* table, int64_t n, const uint8_t* x, uint8_t* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

static void max_b8__ref(int64_t n, int64_t count, const uint8_t* const* rows, int32_t is_signed,
                        uint8_t* y) {
  const uint8_t flip = is_signed ? 0x80 : 0;  // the order of signed bytes
  for (int64_t i = 0; i < n; ++i) {
    uint8_t best = rows[0][i];
    for (int64_t r = 1; r < count; ++r) {
      const uint8_t value = rows[r][i];
      if ((value ^ flip) > (best ^ flip)) best = value;
    }
    y[i] = best;
  }
}

void fill_bytes__ref(FolioKernels* table) {
  table->pack_s8p16k4 = pack_s8p16k4__ref;
  table->unpack_s8p16k4 = unpack_s8p16k4__ref;
  table->gemm_u8 = gemm_u8__ref;
  table->depthwise_u8 = depthwise_u8__ref;
  table->sum_u8 = sum_u8__ref;
  table->quantize_f32 = quantize_f32__ref;
  table->dequantize_b8 = dequantize_b8__ref;
  table->add_b8 = add_b8__ref;
  table->mul_b8 = mul_b8__ref;
  table->map_b8 = map_b8__ref;
  table->max_b8 = max_b8__ref;
}
