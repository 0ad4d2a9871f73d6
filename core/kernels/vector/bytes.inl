/* Bytes to and from floats, their sum, and their transpose. */

#include "core/kernels/vector/interleave.inl"

/* What FolioByteScale comes to in vectors. */
typedef struct ByteScale {
  V scale, inverse, low, high;
  V least, most; /* numbers beyond all codes, whose ratios are words yet */
  VI zero, zero_words;
  int is_fast; /* the inverse is a normal number */
  int is_signed;
} ByteScale;

VFN ByteScale make_byte_scale(const FolioByteScale* from) {
  ByteScale s;
  const float inverse = 1.0f / from->scale;
  const float size = __builtin_fabsf(inverse);
  const int32_t low = from->is_signed ? -128 : 0;
  s.scale = v_set1(from->scale);
  s.inverse = v_set1(inverse);
  const float most = 0x1p14f * __builtin_fabsf(from->scale);
  s.most = v_set1(most);
  s.least = v_set1(-most);
  s.low = v_set1((float)(low - from->zero));
  s.high = v_set1((float)(low + 255 - from->zero));
  s.zero = vi_set1(from->zero);
  s.zero_words = vi_set1_words(from->zero);
  s.is_fast = size > 0x1p-100f && size < 0x1p100f;
  s.is_signed = from->is_signed;
  return s;
}

VFN V clamp_ratio(const ByteScale* to, V ratio) {
  ratio = v_select(v_is_nan(ratio), v_zero(), ratio);
  return v_min(v_max(ratio, to->low), to->high);
}

/* x / scale, where the inverse is a normal number; NaN is 0, and what is beyond all codes is cut
 * off there. Division takes longer than all the rest: the product with the rounded inverse is off
 * by less than two units in the last place, its first correction by less than one, and of that the
 * second is the quotient (Markstein, "Computation of Elementary Functions on the IBM RISC
 * System/6000 Processor", 1990, theorem 8.6); kDivides: the same bits by division. Asking whether
 * the product is near enough to the middle between codes to need that guessed wrong too often where
 * many are. */
template <int kDivides = 0>
VFN V byte_ratio(const ByteScale* to, V x) {
  const VM is_nan = v_is_nan(x);
  x = v_max(v_min(x, to->most), to->least);
  V ratio;
  if (kDivides) {
    ratio = v_div(x, to->scale);
  } else {
    ratio = v_mul(x, to->inverse);
    ratio = v_fma(v_fnma(ratio, to->scale, x), to->inverse, ratio);
    ratio = v_fma(v_fnma(ratio, to->scale, x), to->inverse, ratio);
  }
  return v_select(is_nan, v_zero(), ratio);
}

VFN VI quantize(const ByteScale* to, V x) {
  const V ratio = clamp_ratio(to, to->is_fast ? byte_ratio(to, x) : v_div(x, to->scale));
  return vi_add(vi_truncate(v_round(ratio)), to->zero);
}

VFN V dequantize(const ByteScale* from, const uint8_t* x) {
  const VI code = from->is_signed ? vi_load_s8(x) : vi_load_u8(x);
  return v_mul(v_from_int(vi_sub(code, from->zero)), from->scale);
}

/* Bytes of four vectors; of a scale that is_fast. Two of them are divided: that unit would have
 * nothing to do beside those of multiply-adds. */
VFN void quantize_block(const ByteScale* to, const V (&x)[4], uint8_t* y) {
  const VI code[4] = {vi_nearest(byte_ratio<1>(to, x[0])), vi_nearest(byte_ratio<1>(to, x[1])),
                      vi_nearest(byte_ratio(to, x[2])), vi_nearest(byte_ratio(to, x[3]))};
  vi_store4_b8(y, code, to->zero_words, to->is_signed);
}

static void FOLIO_LEVEL(quantize_f32)(int64_t n, const float* x, const FolioByteScale* to,
                                      uint8_t* y) {
  const ByteScale scale = make_byte_scale(to);
  int64_t i = 0;
  if (scale.is_fast) {
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      const float* four = x + i;
      const V values[4] = {v_load(four), v_load(four + kLanes), v_load(four + 2 * kLanes),
                           v_load(four + 3 * kLanes)};
      quantize_block(&scale, values, y + i);
    }
  }
  for (; i + kLanes <= n; i += kLanes) vi_store_b8(y + i, quantize(&scale, v_load(x + i)));
  if (i < n) {
    uint8_t last[kLanes];
    vi_store_b8(last, quantize(&scale, v_load_masked(x + i, v_first(n - i))));
    __builtin_memcpy(y + i, last, (size_t)(n - i));
  }
}

static void FOLIO_LEVEL(dequantize_b8)(int64_t n, const uint8_t* x, const FolioByteScale* from,
                                       float* y) {
  const ByteScale scale = make_byte_scale(from);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) v_store(y + i, dequantize(&scale, x + i));
  if (i < n) {
    uint8_t last[kLanes] = {0};
    __builtin_memcpy(last, x + i, (size_t)(n - i));
    v_store_masked(y + i, v_first(n - i), dequantize(&scale, last));
  }
}

static void FOLIO_LEVEL(mul_b8)(int64_t n, const uint8_t* a, const FolioByteScale* a_from,
                                const uint8_t* b, const FolioByteScale* b_from,
                                const FolioByteScale* to, uint8_t* y) {
  const ByteScale of_a = make_byte_scale(a_from);
  const ByteScale of_b = make_byte_scale(b_from);
  const ByteScale of_y = make_byte_scale(to);
  int64_t i = 0;
  for (; of_y.is_fast && i + 4 * kLanes <= n; i += 4 * kLanes) {
    V product[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const int64_t at = i + q * kLanes;
      product[q] = v_mul(dequantize(&of_a, a + at), dequantize(&of_b, b + at));
    }
    quantize_block(&of_y, product, y + i);
  }
  for (; i < n; i += kLanes) {
    uint8_t codes[3][kLanes] = {};
    const size_t count = (size_t)(n - i < kLanes ? n - i : kLanes);
    __builtin_memcpy(codes[0], a + i, count);
    __builtin_memcpy(codes[1], b + i, count);
    const V product = v_mul(dequantize(&of_a, codes[0]), dequantize(&of_b, codes[1]));
    vi_store_b8(codes[2], quantize(&of_y, product));
    __builtin_memcpy(y + i, codes[2], count);
  }
}

/* Whole blocks of four vectors; how many elements they are. */
template <int kSigned>
VFN int64_t add_blocks(int64_t n, const uint8_t* a, const uint8_t* b, const ByteSum* sum,
                       uint8_t* y) {
  const ByteSum s = *sum;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    VI code[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      const uint8_t* from_a = a + i + q * kLanes;
      const uint8_t* from_b = b + i + q * kLanes;
      code[q] = vi_nearest(add_codes(&s, kSigned ? vi_load_s8(from_a) : vi_load_u8(from_a),
                                     kSigned ? vi_load_s8(from_b) : vi_load_u8(from_b)));
    }
    vi_store4_b8(y + i, code, s.zero_words, s.y_signed);
  }
  return i;
}

static void FOLIO_LEVEL(add_b8)(int64_t n, const uint8_t* a, const FolioByteScale* a_from,
                                const uint8_t* b, const FolioByteScale* b_from,
                                const FolioByteScale* to, uint8_t* y) {
  const ByteSum s = make_byte_sum(a_from, b_from, to);
  int64_t i = 0;
  if (s.is_small && s.a_signed == s.b_signed) {
    i = s.a_signed ? add_blocks<1>(n, a, b, &s, y) : add_blocks<0>(n, a, b, &s, y);
  }
  for (; i + kLanes <= n; i += kLanes) add_vector(&s, a + i, b + i, y + i);
  if (i < n) {
    uint8_t last_a[kLanes] = {0};
    uint8_t last_b[kLanes] = {0};
    __builtin_memcpy(last_a, a + i, (size_t)(n - i));
    __builtin_memcpy(last_b, b + i, (size_t)(n - i));
    add_vector(&s, last_a, last_b, last_a);
    __builtin_memcpy(y + i, last_a, (size_t)(n - i));
  }
}

static int32_t FOLIO_LEVEL(sum_u8)(int64_t n, const uint8_t* x) {
  __m256i sums = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(x + i));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
  }
  uint64_t lanes[4];
  _mm256_storeu_si256((__m256i*)lanes, sums);
  uint64_t sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
  for (; i < n; ++i) sum += x[i];
  return (int32_t)(uint32_t)sum;
}

/* Those of 32 codes that stand in `rows` 16s of the table from the first on: 16s are looked up in
 * by four bits, then each further bit, 7 in `bits`, chooses between two. */
template <int kRows>
VFN __m256i look_up(const uint8_t* table, __m256i low, const __m256i* bits) {
  if constexpr (kRows == 1) {
    const __m128i row = _mm_loadu_si128((const __m128i*)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), low);
  } else {
    return _mm256_blendv_epi8(look_up<kRows / 2>(table, low, bits + 1),
                              look_up<kRows / 2>(table + 8 * kRows, low, bits + 1), bits[0]);
  }
}

static void FOLIO_LEVEL(map_b8)(const uint8_t* table, int64_t n, const uint8_t* x, uint8_t* y) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const __m256i codes = _mm256_loadu_si256((const __m256i*)(x + i));
    const __m256i bits[4] = {codes, _mm256_slli_epi16(codes, 1), _mm256_slli_epi16(codes, 2),
                             _mm256_slli_epi16(codes, 3)};
    const __m256i low = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    _mm256_storeu_si256((__m256i*)(y + i), look_up<16>(table, low, bits));
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}

/* Of kVectors times 32 bytes from byte i on. */
template <int kSigned, int kVectors>
VFN void max_of_rows(int64_t i, int64_t count, const uint8_t* const* rows, uint8_t* y) {
  __m256i best[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    best[v] = _mm256_loadu_si256((const __m256i*)(rows[0] + i + 32 * v));
  }
  for (int64_t r = 1; r < count; ++r) {
    const uint8_t* row = rows[r] + i;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i x = _mm256_loadu_si256((const __m256i*)(row + 32 * v));
      best[v] = kSigned ? _mm256_max_epi8(best[v], x) : _mm256_max_epu8(best[v], x);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) _mm256_storeu_si256((__m256i*)(y + i + 32 * v), best[v]);
}

/* Whole vectors; returns where the others begin. */
template <int kSigned>
static int64_t max_of_vectors(int64_t n, int64_t count, const uint8_t* const* rows, uint8_t* y) {
  int64_t i = 0;
  for (; i + 128 <= n; i += 128) max_of_rows<kSigned, 4>(i, count, rows, y);
  for (; i + 32 <= n; i += 32) max_of_rows<kSigned, 1>(i, count, rows, y);
  return i;
}

static void FOLIO_LEVEL(max_b8)(int64_t n, int64_t count, const uint8_t* const* rows,
                                int32_t is_signed, uint8_t* y) {
  int64_t i =
      is_signed ? max_of_vectors<1>(n, count, rows, y) : max_of_vectors<0>(n, count, rows, y);
  const uint8_t flip = is_signed ? 0x80 : 0;
  for (; i < n; ++i) {
    uint8_t best = rows[0][i];
    for (int64_t r = 1; r < count; ++r) {
      const uint8_t value = rows[r][i];
      if ((value ^ flip) > (best ^ flip)) best = value;
    }
    y[i] = best;
  }
}

VFN void interleave_halves(const __m256i from[16], __m256i to[16]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    to[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + 8]);
    to[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + 8]);
  }
}

/* y[j][i] = x[i][j] of 16 rows and 32 columns, in two blocks beside each other: four times,
 * neighbours of one half with those of the other. With kColumns 16 the upper block is nothing. */
template <int kColumns>
VFN void transpose_block(const uint8_t* x, int64_t x_stride, uint8_t* y, int64_t y_stride) {
  __m256i r[16], s[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const uint8_t* from = x + i * x_stride;
    r[i] = kColumns == 32 ? _mm256_loadu_si256((const __m256i*)from)
                          : _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)from));
  }
  interleave_halves(r, s);
  interleave_halves(s, r);
  interleave_halves(r, s);
  interleave_halves(s, r);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    _mm_storeu_si128((__m128i*)(y + i * y_stride), _mm256_castsi256_si128(r[i]));
    if (kColumns == 32) {
      _mm_storeu_si128((__m128i*)(y + (i + 16) * y_stride), _mm256_extracti128_si256(r[i], 1));
    }
  }
}

/* Blocks at the edges overlap their neighbours. */
static void FOLIO_LEVEL(transpose_b8)(int64_t rows, int64_t cols, const void* x,
                                      int64_t x_row_stride, void* y, int64_t y_row_stride) {
  const uint8_t* from = (const uint8_t*)x;
  uint8_t* to = (uint8_t*)y;
  if (rows < 16 || cols < 16) {
    const char* const bytes = (const char*)x;
    const TransposeDone done =
        transpose_pixels<1>(rows, cols, bytes, x_row_stride, (char*)y, y_row_stride);
    transpose_rest<1>(done, rows, cols, bytes, x_row_stride, (char*)y, y_row_stride);
    return;
  }
  int64_t j = 0;
  for (; j + 64 <= cols; j += 64) { /* a cache line of each row */
    for (int64_t i = 0; i < rows; i += 16) {
      const int64_t r = i + 16 <= rows ? i : rows - 16;
      for (int64_t c = j; c < j + 64; c += 32) {
        transpose_block<32>(from + r * x_row_stride + c, x_row_stride, to + c * y_row_stride + r,
                            y_row_stride);
      }
    }
  }
  for (; j + 32 <= cols; j += 32) {
    for (int64_t i = 0; i < rows; i += 16) {
      const int64_t r = i + 16 <= rows ? i : rows - 16;
      transpose_block<32>(from + r * x_row_stride + j, x_row_stride, to + j * y_row_stride + r,
                          y_row_stride);
    }
  }
  for (; j < cols; j += 16) {
    const int64_t c = j + 16 <= cols ? j : cols - 16;
    for (int64_t i = 0; i < rows; i += 16) {
      const int64_t r = i + 16 <= rows ? i : rows - 16;
      transpose_block<16>(from + r * x_row_stride + c, x_row_stride, to + c * y_row_stride + r,
                          y_row_stride);
    }
  }
}

static void fill_bytes(FolioKernels* table) {
  table->quantize_f32 = FOLIO_LEVEL(quantize_f32);
  table->dequantize_b8 = FOLIO_LEVEL(dequantize_b8);
  table->add_b8 = FOLIO_LEVEL(add_b8);
  table->mul_b8 = FOLIO_LEVEL(mul_b8);
  table->map_b8 = FOLIO_LEVEL(map_b8);
  table->max_b8 = FOLIO_LEVEL(max_b8);
  table->sum_u8 = FOLIO_LEVEL(sum_u8);
  table->transpose_b8 = FOLIO_LEVEL(transpose_b8);
}
