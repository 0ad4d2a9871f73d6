// Weights of small integers in blocks times rows of 8-bit integers: 64 bytes of a column a step,
// 16 quads of 4 bytes, each with the scale and zero of its block.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/x86_avx512/vec.h"

#if !defined(__AVX512VNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

constexpr int64_t kStep = 64;

typedef struct Columns {
  const FolioBlockDotsS8* args;
  int64_t blob;   /* bytes of a block */
  int64_t blocks; /* of a column */
  int64_t bytes;  /* of a column */
  int64_t plane;
  int64_t row;         /* bytes of a row of A */
  int64_t step_blocks; /* in a step, at least 1 */
  int shift;           /* a byte's block: byte >> shift */
  VI quad_block;       /* of each quad of a step, from 0 on */
} Columns;

VFN Columns columns_of(const FolioBlockDotsS8* args) {
  const FolioBlockWeights* w = &args->w;
  Columns c;
  c.args = args;
  c.blob = w->block * w->bits / 8;
  c.blocks = (w->k + w->block - 1) / w->block;
  c.bytes = c.blob * c.blocks;
  c.plane = folio_block_plane_bytes(c.bytes);
  c.row = folio_block_row_bytes(c.bytes, w->bits);
  c.shift = __builtin_ctzll((unsigned long long)c.blob);
  c.step_blocks = c.blob < kStep ? kStep / c.blob : 1;
  const VI quads = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  c.quad_block = c.blob < kStep ? _mm512_srl_epi32(quads, _mm_cvtsi32_si128(c.shift - 2))
                                : _mm512_setzero_si512();
  return c;
}

/* kAcross columns from n on, times kRows rows. */
template <int kBits, int kRows, int kAcross>
static void s8_tile(const Columns* c, const int8_t* a, int64_t n, float* y) {
  const FolioBlockWeights* w = &c->args->w;
  const uint8_t* codes = (const uint8_t*)w->codes + n * c->bytes;
  const V middle = v_set1((float)(1 << (kBits - 1)));
  const VI low_bits = _mm512_set1_epi8(15);
  V sum[kAcross][kRows];
  for (int j = 0; j < kAcross; ++j) {
    for (int i = 0; i < kRows; ++i) sum[j][i] = v_zero();
  }
  for (int64_t at = 0; at < c->bytes; at += kStep) {
    const int64_t block = at >> c->shift;
    const int64_t left = c->blocks - block;
    const VM of_blocks = v_first(left < c->step_blocks ? left : c->step_blocks);
    const uint64_t of_bytes = c->bytes - at < kStep ? (1ull << (c->bytes - at)) - 1 : ~0ull;
    VI low[kAcross], high[kAcross];
    V scale[kAcross], zero[kAcross];
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      const VI bytes = _mm512_maskz_loadu_epi8(of_bytes, codes + j * c->bytes + at);
      low[j] = kBits == 4 ? vi_and(bytes, low_bits) : bytes;
      high[j] = kBits == 4 ? vi_and(_mm512_srli_epi16(bytes, 4), low_bits) : bytes;
      const int64_t of = (n + j) * c->blocks + block;
      const float* scales = (const float*)((const char*)w->scales + 4 * of);
      scale[j] = _mm512_permutexvar_ps(c->quad_block, v_load_masked(scales, of_blocks));
      zero[j] = middle;
      if (w->zeros) {
        zero[j] = _mm512_permutexvar_ps(c->quad_block, v_load_masked(w->zeros + of, of_blocks));
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const int8_t* x = a + i * c->row + at;
      const float* scales = (const float*)(a + i * c->row + 8 / kBits * c->plane) + at / 4;
      const V x_scale = v_load(scales);
      const V x_sum = v_load(scales + c->plane / 4);
#pragma GCC unroll 4
      for (int j = 0; j < kAcross; ++j) {
        VI dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low[j], vi_load(x));
        if (kBits == 4) dots = _mm512_dpbusd_epi32(dots, high[j], vi_load(x + c->plane));
        const V exact = v_fnma(zero[j], x_sum, v_from_int(dots));
        sum[j][i] = v_fma(exact, v_mul(scale[j], x_scale), sum[j][i]);
      }
    }
  }
  for (int j = 0; j < kAcross; ++j) {
    const float* bias = c->args->bias;
    for (int i = 0; i < kRows; ++i) {
      const float v = v_sum(sum[j][i]);
      y[i * c->args->y_row_stride + n + j] = bias ? v + bias[n + j] : v;
    }
  }
}

template <int kBits, int kRows>
static void s8_columns(const Columns* c, int64_t first_row) {
  constexpr int kAcross = kRows == 1 ? 4 : 2;
  const int8_t* a = (const int8_t*)c->args->a + first_row * c->row;
  float* y = c->args->y + first_row * c->args->y_row_stride;
  int64_t n = 0;
  for (; n + kAcross <= c->args->w.n; n += kAcross) s8_tile<kBits, kRows, kAcross>(c, a, n, y);
  for (; n < c->args->w.n; ++n) s8_tile<kBits, kRows, 1>(c, a, n, y);
}

template <int kBits>
static void s8_rows(const FolioBlockDotsS8* args) {
  const Columns c = columns_of(args);
  int64_t i = 0;
  for (; i + 4 <= args->m; i += 4) s8_columns<kBits, 4>(&c, i);
  if (args->m - i == 3) s8_columns<kBits, 3>(&c, i);
  if (args->m - i == 2) s8_columns<kBits, 2>(&c, i);
  if (args->m - i == 1) s8_columns<kBits, 1>(&c, i);
}

static void block_dots_s8__x86_avx512vnni(const FolioBlockDotsS8* args) {
  if (args->w.bits == 4) {
    s8_rows<4>(args);
  } else {
    s8_rows<8>(args);
  }
}

void folio_fill_blocks__x86_avx512vnni(FolioKernels* table) {
  table->block_dots_s8 = block_dots_s8__x86_avx512vnni;
}
