/* Conversions between formats, transposes and packing. */

#include "core/kernels/vector/interleave.inl"

/* Calls one kLanes-wide step over n elements; the last n % kLanes go through a buffer. */
#define FOLIO_CONVERT(n, in_bytes, x, out_bytes, y, step)  \
  do {                                                     \
    const char* from = (const char*)(x);                   \
    char* to = (char*)(y);                                 \
    int64_t left = (n);                                    \
    _Pragma("GCC unroll 4")                                \
    for (; left >= kLanes; left -= kLanes) {               \
      step(from, to);                                      \
      from += kLanes * (in_bytes);                         \
      to += kLanes * (out_bytes);                          \
    }                                                      \
    if (left > 0) {                                        \
      char in[kLanes * 4] = {0};                           \
      char out[kLanes * 4];                                \
      __builtin_memcpy(in, from, (size_t)left*(in_bytes)); \
      step(in, out);                                       \
      __builtin_memcpy(to, out, (size_t)left*(out_bytes)); \
    }                                                      \
  } while (0)

VFN void widen_half(const char* from, char* to) { v_store((float*)(void*)to, v_from_half(from)); }
VFN void narrow_half(const char* from, char* to) {
  v_to_half(to, v_load((const float*)(const void*)from));
}

VFN VM vi_nan(VI bits) { return v_is_nan(v_from_bits(bits)); }
VFN VI vi_select(VM m, VI yes, VI no) {
  return vi_from_bits(v_select(m, v_from_bits(yes), v_from_bits(no)));
}

VFN void widen_bf16(const char* from, char* to) {
  const VI bits = vi_shift_left(vi_load_u16(from), 16);
  vi_store(to, vi_select(vi_nan(bits), vi_or(bits, vi_set1(0x00400000)), bits));
}

VFN void narrow_bf16(const char* from, char* to) {
  const VI bits = vi_load(from);
  const VI odd = vi_and(vi_shift_right(bits, 16), vi_set1(1));
  const VI rounded = vi_shift_right(vi_add(bits, vi_add(odd, vi_set1(0x7fff))), 16);
  const VI quiet = vi_or(vi_shift_right(bits, 16), vi_set1(0x40));
  vi_store_u16(to, vi_select(vi_nan(bits), quiet, rounded));
}

static void FOLIO_LEVEL(f16_to_f32)(int64_t n, const void* x, float* y) {
  FOLIO_CONVERT(n, 2, x, 4, y, widen_half);
}
static void FOLIO_LEVEL(f32_to_f16)(int64_t n, const float* x, void* y) {
  FOLIO_CONVERT(n, 4, x, 2, y, narrow_half);
}
static void FOLIO_LEVEL(bf16_to_f32)(int64_t n, const void* x, float* y) {
  FOLIO_CONVERT(n, 2, x, 4, y, widen_bf16);
}
static void FOLIO_LEVEL(f32_to_bf16)(int64_t n, const float* x, void* y) {
  FOLIO_CONVERT(n, 4, x, 2, y, narrow_bf16);
}
#undef FOLIO_CONVERT

static void FOLIO_LEVEL(bf16p16_to_f32)(int64_t rows, const void* x, float* y) {
  constexpr int64_t kColumns = FOLIO_F32P16_COLUMNS;
  const char* from = (const char*)x;
  for (int64_t p = 0; p < rows; p += 2, y += 2 * kColumns) {
#pragma GCC unroll 2
    for (int64_t c = 0; c < kColumns; c += kLanes, from += 4 * kLanes) {
      const VI pairs = vi_load(from);
      vi_store(y + c, vi_shift_left(pairs, 16));
      if (p + 1 < rows) vi_store(y + kColumns + c, vi_and(pairs, vi_set1(-0x10000)));
    }
  }
}

VFN __m256 load8(const char* p) { return _mm256_loadu_ps((const float*)(const void*)p); }
VFN void store8(char* p, __m256 a) { _mm256_storeu_ps((float*)(void*)p, a); }

/* Three times neighbours of the two halves take turns: rows become columns. */
VFN void transpose8x8_b16(const char* x, int64_t x_stride, char* y, int64_t y_stride) {
  __m128i r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm_loadu_si128((const __m128i*)(const void*)(x + i * x_stride));
  }
#pragma GCC unroll 3
  for (int step = 0; step < 3; ++step) {
    __m128i next[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      next[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
      next[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) r[i] = next[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm_storeu_si128((__m128i*)(void*)(y + i * y_stride), r[i]);
}

/* y[j][i] = x[i][j] of 8 x 8 elements; row strides in bytes. */
template <int kSize>
VFN void transpose8x8(const char* x, int64_t x_stride, char* y, int64_t y_stride) {
  if constexpr (kSize == 2) return transpose8x8_b16(x, x_stride, y, y_stride);
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = load8(x + i * x_stride);
  turn8x8(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) store8(y + i * y_stride, r[i]);
}

/* y[3 * j + i] = x[i][j], i < 3, j < 8: the planes of an image side by side. A plane goes where any
 * of the three vectors wants it, then each takes its own. */
VFN void interleave3(const char* x, int64_t x_stride, char* y) {
  const __m256 a = _mm256_permutevar8x32_ps(load8(x), _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
  const __m256 b =
      _mm256_permutevar8x32_ps(load8(x + x_stride), _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
  const __m256 c =
      _mm256_permutevar8x32_ps(load8(x + 2 * x_stride), _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
  store8(y, _mm256_blend_ps(_mm256_blend_ps(a, b, 0x92), c, 0x24));
  store8(y + 32, _mm256_blend_ps(_mm256_blend_ps(a, b, 0x24), c, 0x49));
  store8(y + 64, _mm256_blend_ps(_mm256_blend_ps(a, b, 0x49), c, 0x92));
}

/* y[i][j] = x[3 * j + i], i < 3, j < 8: the way back. */
VFN void part3(const char* x, char* y, int64_t y_stride) {
  const __m256 a = load8(x);
  const __m256 b = load8(x + 32);
  const __m256 c = load8(x + 64);
  store8(y, _mm256_permutevar8x32_ps(_mm256_blend_ps(_mm256_blend_ps(a, b, 0x92), c, 0x24),
                                     _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5)));
  store8(y + y_stride,
         _mm256_permutevar8x32_ps(_mm256_blend_ps(_mm256_blend_ps(a, b, 0x24), c, 0x49),
                                  _mm256_setr_epi32(1, 4, 7, 2, 5, 0, 3, 6)));
  store8(y + 2 * y_stride,
         _mm256_permutevar8x32_ps(_mm256_blend_ps(_mm256_blend_ps(a, b, 0x49), c, 0x92),
                                  _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7)));
}

/* The same of four planes. */
VFN void interleave4(const char* x, int64_t x_stride, char* y) {
  __m256 r[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = load8(x + i * x_stride);
  turn_lanes(r); /* pixels i and i + 4 */
  store8(y, _mm256_permute2f128_ps(r[0], r[1], 0x20));
  store8(y + 32, _mm256_permute2f128_ps(r[2], r[3], 0x20));
  store8(y + 64, _mm256_permute2f128_ps(r[0], r[1], 0x31));
  store8(y + 96, _mm256_permute2f128_ps(r[2], r[3], 0x31));
}
VFN void part4(const char* x, char* y, int64_t y_stride) {
  const __m256 a = load8(x);
  const __m256 b = load8(x + 32);
  const __m256 c = load8(x + 64);
  const __m256 d = load8(x + 96);
  __m256 r[4] = {_mm256_permute2f128_ps(a, c, 0x20), _mm256_permute2f128_ps(a, c, 0x31),
                 _mm256_permute2f128_ps(b, d, 0x20), _mm256_permute2f128_ps(b, d, 0x31)};
  turn_lanes(r);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) store8(y + i * y_stride, r[i]);
}

/* 8 rows of fewer than 8 elements, and as many rows of 8. */
VFN void transpose8xn(int64_t n, const char* x, int64_t x_stride, char* y, int64_t y_stride) {
  const __m256i used = first8(n);
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm256_maskload_ps((const float*)(const void*)(x + i * x_stride), used);
  }
  turn8x8(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i < n) store8(y + i * y_stride, r[i]);
  }
}
VFN void transposenx8(int64_t n, const char* x, int64_t x_stride, char* y, int64_t y_stride) {
  const __m256i used = first8(n);
  __m256 r[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = i < n ? load8(x + i * x_stride) : _mm256_setzero_ps();
  turn8x8(r);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    _mm256_maskstore_ps((float*)(void*)(y + i * y_stride), used, r[i]);
  }
}

/* Of 32 bits, as far as vectors of 8 of the longer side go. */
VFN TransposeDone transpose_eights(int64_t rows, int64_t cols, const char* x, int64_t x_stride,
                                   char* y, int64_t y_stride) {
  int64_t n = 0;
  if (rows == 3 && y_stride == 12) {
    for (; n + 8 <= cols; n += 8) interleave3(x + 4 * n, x_stride, y + 12 * n);
    return {0, n};
  }
  if (cols == 3 && x_stride == 12) {
    for (; n + 8 <= rows; n += 8) part3(x + 12 * n, y + 4 * n, y_stride);
    return {n, 0};
  }
  if (rows == 4 && y_stride == 16) {
    for (; n + 8 <= cols; n += 8) interleave4(x + 4 * n, x_stride, y + 16 * n);
    return {0, n};
  }
  if (cols == 4 && x_stride == 16) {
    for (; n + 8 <= rows; n += 8) part4(x + 16 * n, y + 4 * n, y_stride);
    return {n, 0};
  }
  if (rows == 2 && y_stride == 8) return {0, interleave_planes<2, 4>(cols, x, x_stride, y)};
  if (cols == 2 && x_stride == 8) return {part_pixels<2, 4>(rows, x, y, y_stride), 0};
  if (rows < 8) {
    for (; rows > 1 && n + 8 <= cols; n += 8) {
      transposenx8(rows, x + 4 * n, x_stride, y + n * y_stride, y_stride);
    }
    return {0, n};
  }
  for (; cols > 1 && n + 8 <= rows; n += 8) {
    transpose8xn(cols, x + n * x_stride, x_stride, y + 4 * n, y_stride);
  }
  return {n, 0};
}

/* One side is shorter than 8. */
template <int kSize>
VFN void transpose_narrow(int64_t rows, int64_t cols, const char* x, int64_t x_stride, char* y,
                          int64_t y_stride) {
  const TransposeDone done = kSize == 4
                                 ? transpose_eights(rows, cols, x, x_stride, y, y_stride)
                                 : transpose_pixels<kSize>(rows, cols, x, x_stride, y, y_stride);
  transpose_rest<kSize>(done, rows, cols, x, x_stride, y, y_stride);
}

/* The last block of a row of blocks overlaps the one before. */
VFN int64_t block_start(int64_t i, int64_t n) { return i + 8 <= n ? i : n - 8; }

/* Any size; strides in bytes. The side with the wider stride is walked outside: its lines then stay
 * in the cache until they are whole. */
template <int kSize>
static void transpose_bytes(int64_t rows, int64_t cols, const char* x, int64_t x_stride, char* y,
                            int64_t y_stride) {
  if (rows < 8 || cols < 8) return transpose_narrow<kSize>(rows, cols, x, x_stride, y, y_stride);
  const int by_column = y_stride > x_stride;
  const int64_t outer = by_column ? cols : rows;
  const int64_t inner = by_column ? rows : cols;
  for (int64_t o = 0; o < outer; o += 8) {
    const int64_t at = block_start(o, outer);
    for (int64_t n = 0; n < inner; n += 8) {
      const int64_t i = by_column ? block_start(n, inner) : at;
      const int64_t j = by_column ? at : block_start(n, inner);
      transpose8x8<kSize>(x + i * x_stride + kSize * j, x_stride, y + j * y_stride + kSize * i,
                          y_stride);
    }
  }
}

static void FOLIO_LEVEL(transpose_b32)(int64_t rows, int64_t cols, const void* x,
                                       int64_t x_row_stride, void* y, int64_t y_row_stride) {
  transpose_bytes<4>(rows, cols, (const char*)x, 4 * x_row_stride, (char*)y, 4 * y_row_stride);
}

static void FOLIO_LEVEL(transpose_b16)(int64_t rows, int64_t cols, const void* x,
                                       int64_t x_row_stride, void* y, int64_t y_row_stride) {
  transpose_bytes<2>(rows, cols, (const char*)x, 2 * x_row_stride, (char*)y, 2 * y_row_stride);
}

constexpr int64_t kPanelColumns = FOLIO_F32P16_COLUMNS;
constexpr int64_t kPanelBytes = 4 * kPanelColumns;

/* Rows [0, count) of one panel of `columns` columns, `row` and `col` strides in bytes. */
VFN void pack_panel(int64_t count, int64_t columns, const char* b, int64_t row, int64_t col,
                    char* dst) {
  if (columns == kPanelColumns && col == 4) {
    for (int64_t p = 0; p < count; ++p) { /* two panels ahead: 64 rows are many streams */
      const uintptr_t ahead = (uintptr_t)b + (uintptr_t)(p * row + 2 * kPanelBytes);
      __builtin_prefetch((const void*)ahead, 0, 3);
      store8(dst + p * kPanelBytes, load8(b + p * row));
      store8(dst + p * kPanelBytes + 32, load8(b + p * row + 32));
    }
    return;
  }
  if (columns < kPanelColumns) {
    __builtin_memset(dst, 0, (size_t)(count * kPanelBytes));
  }
  if (row == 4) {
    transpose_bytes<4>(columns, count, b, col, dst, kPanelBytes);
    return;
  }
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t c = 0; c < columns; ++c) {
      __builtin_memcpy(dst + p * kPanelBytes + 4 * c, b + p * row + c * col, 4);
    }
  }
}

/* Blocks of 64 rows, and in a block panel after panel: source rows are then read as 64 streams that
 * the prefetcher follows, and each panel is written 4 KiB at a time. */
static void FOLIO_LEVEL(pack_f32p16)(int64_t k, int64_t n, const void* b, int64_t b_row_stride,
                                     int64_t b_col_stride, float* dst) {
  const int64_t block = 64;
  for (int64_t p = 0; p < k; p += block) {
    const int64_t count = k - p < block ? k - p : block;
    for (int64_t j = 0; j < n; j += kPanelColumns) {
      const int64_t columns = n - j < kPanelColumns ? n - j : kPanelColumns;
      pack_panel(count, columns, (const char*)b + 4 * (p * b_row_stride + j * b_col_stride),
                 4 * b_row_stride, 4 * b_col_stride, (char*)(dst + j * k + p * kPanelColumns));
    }
  }
}

static void fill_move(FolioKernels* table) {
  table->pack_f32p16 = FOLIO_LEVEL(pack_f32p16);
  table->transpose_b32 = FOLIO_LEVEL(transpose_b32);
  table->transpose_b16 = FOLIO_LEVEL(transpose_b16);
  table->f16_to_f32 = FOLIO_LEVEL(f16_to_f32);
  table->f32_to_f16 = FOLIO_LEVEL(f32_to_f16);
  table->bf16_to_f32 = FOLIO_LEVEL(bf16_to_f32);
  table->bf16p16_to_f32 = FOLIO_LEVEL(bf16p16_to_f32);
  table->f32_to_bf16 = FOLIO_LEVEL(f32_to_bf16);
}
