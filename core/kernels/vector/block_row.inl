/* One row of 8-bit integers times weights of small integers in blocks: a column after the other, read
 * in place; what a column has stands side by side, and columns do; memory gives most when it is read
 * in that order.
 *
 * The including file defines before: kAhead and kFetchHint, how many bytes ahead, and to which cache,
 * weights are fetched; kIsCentred<bits>, whether sums are of codes less 2^(bits - 1); after: the
 * functions that are only declared here and in block_panels.inl. */

#include "core/kernels/vector/block_panels.inl"

/* Those of four floats, or f16, that are there, and zeros. */
VFN __m128 load_four(const char* p, int64_t size, int64_t left) {
  if (size == 2) {
    uint64_t halves = 0;
    if (left >= 4) {
      __builtin_memcpy(&halves, p, 8);
    } else {
      for (int64_t i = 0; i < left; ++i) {
        uint16_t half;
        __builtin_memcpy(&half, p + 2 * i, 2);
        halves |= (uint64_t)half << 16 * i;
      }
    }
    return _mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)halves));
  }
  if (left >= 4) return _mm_loadu_ps((const float*)(const void*)p);
  const __m128i all = _mm_set1_epi32((int)left);
  return _mm_maskload_ps((const float*)(const void*)p,
                         _mm_cmpgt_epi32(all, _mm_setr_epi32(0, 1, 2, 3)));
}

/* `count` bytes, up to kMost, and zeros. */
template <int kMost>
VFN __m128i load_few_bytes(const uint8_t* p, int64_t count) {
  uint64_t low = 0, high = 0;
  if (count >= kMost) {
    if constexpr (kMost == 16) return _mm_loadu_si128((const __m128i*)p);
    __builtin_memcpy(&low, p, kMost < 8 ? kMost : 8);
    return _mm_cvtsi64_si128((int64_t)low);
  }
  for (int64_t i = 0; i < count; ++i) (i < 8 ? low : high) |= (uint64_t)p[i] << i % 8 * 8;
  return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

/* A column's zeros as codes from block b on: a byte each of as many as are there, up to kMost,
 * which divides b. kWhole: so many are there. */
template <int kBits, int kMost, int kWhole = 0>
VFN __m128i zero_codes_at(const Columns& c, const Shape& s, int64_t b) {
  constexpr int kBytes = kMost * kBits / 8;
  const int64_t begin = b * kBits / 8;
  const __m128i codes =
      load_few_bytes<kBytes>(c.zero_codes + begin, kWhole ? kBytes : s.zero_bytes - begin);
  if constexpr (kBits == 8) return codes;
  const __m128i nibble = _mm_set1_epi8(15);
  return _mm_unpacklo_epi8(_mm_and_si128(codes, nibble),
                           _mm_and_si128(_mm_srli_epi16(codes, 4), nibble));
}

/* The chains + four blocks from block b on, whose sums are `dots`. */
template <int kBits>
VFN __m128 add_four(const Columns& c, const Shape& s, const Row& a, int64_t b, __m128i dots,
                    __m128 chains) {
  const int64_t left = s.blocks - b;
  const __m128i middles = _mm_load_si128((const __m128i*)(a.middles + b));
  if (kIsCentred<kBits>) dots = _mm_sub_epi32(dots, middles);
  __m128 exact;
  if (c.zeros || c.zero_codes) {
    const __m128 zeros =
        c.zeros ? load_four((const char*)(c.zeros + b), 4, left)
                : _mm_cvtepi32_ps(_mm_cvtepu8_epi32(zero_codes_at<kBits, 4>(c, s, b)));
    exact = _mm_fmadd_ps(_mm_mul_ps(zeros, _mm_set1_ps(1.0f / (1 << (kBits - 1)))),
                         _mm_cvtepi32_ps(middles), _mm_cvtepi32_ps(dots));
  } else {
    exact = _mm_cvtepi32_ps(_mm_add_epi32(dots, middles));
  }
  const __m128 scales = load_four(c.scales + c.scale_bytes * b, c.scale_bytes, left);
  return _mm_fmadd_ps(exact, _mm_mul_ps(scales, _mm_load_ps(a.scales + b)), chains);
}

/* The four chains of a column times a row. kBlob: bytes of a block, 64 for that and more. */
template <int kBits, int kBlob>
VFN __m128 dot_column(const Columns& c, const Shape& s, const Row& a);

template <int kBits, int kBlob>
static void dot_row(const FolioBlockDotsS8* args, const Shape& s) {
  const FolioBlockWeights& w = args->w;
  const Row a(s, kBits, args->a);
  for (int64_t n = 0; n < w.n; ++n) {
    const __m128 four = dot_column<kBits, kBlob>(columns_at(w, s, n), s, a);
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    const float y = _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    args->y[n] = args->bias ? y + args->bias[n] : y;
  }
}

template <int kBits>
static void dot_one_row(const FolioBlockDotsS8* args, const Shape& s) {
  if (s.blob >= 64) {
    dot_row<kBits, 64>(args, s);
  } else if (s.blob == 32) {
    dot_row<kBits, 32>(args, s);
  } else if (s.blob == 16) {
    dot_row<kBits, 16>(args, s);
  } else {
    dot_row<kBits, 8>(args, s);
  }
}

/* More than one row. */
template <int kBits>
static void dot_rows(const FolioBlockDotsS8* args, const Shape& s);

[[maybe_unused]] static void block_dots_s8(const FolioBlockDotsS8* args) {
  const Shape s(args->w);
  if (args->m == 1) {
    args->w.bits == 4 ? dot_one_row<4>(args, s) : dot_one_row<8>(args, s);
  } else {
    args->w.bits == 4 ? dot_rows<4>(args, s) : dot_rows<8>(args, s);
  }
}
