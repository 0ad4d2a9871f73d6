/* What of block_rows.inl and block_panels.inl depends on a vector's 8 lanes: a row four blocks at a
 * time, and columns turned.
 *
 * The including file includes before: block_rows.inl, turn.inl; and defines before: add_dots<kBits>(dots,
 * codes, x), which adds to *dots sums over the quads of 32 bytes of codes times a row's, as
 * prepare_x<kBits>(low, high, x) made them of 32 bytes of its planes. Sums of a block stay in their
 * lane of 128 bits. */

/* ---- one row: four blocks of four columns at a time, of two a block in each lane of 128 bits */

/* `count` bytes, a multiple of 8 up to 32, and zeros. */
VFN VI load_bytes(const uint8_t* p, int64_t count) {
  if (count >= 32) return vi_load(p);
  const VI which = _mm256_setr_epi64x(0, 8, 16, 24);
  return _mm256_maskload_epi64((const long long*)p,
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), which));
}

/* 8 bytes to each lane of 128 bits. */
VFN VI spread_eights(VI bytes) {
  return _mm256_and_si256(_mm256_permute4x64_epi64(bytes, 0x50), _mm256_setr_epi64x(-1, 0, -1, 0));
}

/* dots[j] += column j's bytes [at, end); those of an eight fewer than 32. kTail: bytes from s.bytes
 * on are not there. */
template <int kBits, int kEights, int kTail>
VFN void dot_bytes(const Columns& c, const Shape& s, const int8_t* x, int64_t at, int64_t end,
                   VI* dots) {
  for (; at < end; at += 32) {
    const int64_t left = end < s.bytes ? end - at : s.bytes - at;
    VI low = vi_load(x + at);
    VI high = kBits == 4 ? vi_load(x + s.plane + at) : low;
    if (kEights) low = spread_eights(low);
    if (kEights) high = spread_eights(high);
    VI of_x[2];
    prepare_x<kBits>(low, high, of_x);
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      const uint8_t* p = c.codes + j * c.bytes + at;
      VI bytes;
      if constexpr (kTail) {
        bytes = load_bytes(p, left);
      } else if constexpr (kEights) {
        bytes = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p));
      } else {
        bytes = vi_load(p);
      }
      if (kEights) bytes = spread_eights(bytes);
      add_dots<kBits>(&dots[j], bytes, of_x);
    }
  }
}

/* dots[j]: of column j sums over quads of the blocks b and b + 1. */
template <int kBits, int kBlob, int kTail>
VFN void dot_pairs(const Columns& c, const Shape& s, const int8_t* x, int64_t b, VI* dots) {
  const int64_t at = b * s.blob;
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) dots[j] = _mm256_setzero_si256();
  if constexpr (kBlob <= 16) {
    dot_bytes<kBits, kBlob == 8, kTail>(c, s, x, at, at + 2 * kBlob, dots);
  } else {
    VI second[kAcross];
    for (int j = 0; j < kAcross; ++j) second[j] = _mm256_setzero_si256();
    dot_bytes<kBits, 0, 0>(c, s, x, at, at + s.blob, dots);
    if (!kTail || b + 1 < s.blocks) {
      dot_bytes<kBits, 0, 0>(c, s, x, at + s.blob, at + 2 * s.blob, second);
    }
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      dots[j] = vi_add(_mm256_permute2x128_si256(dots[j], second[j], 0x20),
                       _mm256_permute2x128_si256(dots[j], second[j], 0x31));
    }
  }
}

/* [lane][j] = the sum of that lane of dots[j]. Of 4 bits, sums of eight and of sixteen products fit
 * into 16 bits: 16 * 15 * 127 < 2^15. */
template <int kBits, int kBlob>
VFN VI sum_quads(const VI* dots) {
  if constexpr (kBits == 4 && kBlob <= 16) {
    const VI ones = _mm256_set1_epi16(1);
    const VI ab = _mm256_madd_epi16(_mm256_packs_epi32(dots[0], dots[1]), ones);
    const VI cd = _mm256_madd_epi16(_mm256_packs_epi32(dots[2], dots[3]), ones);
    return _mm256_madd_epi16(_mm256_packs_epi32(ab, cd), ones);
  } else {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(dots[0], dots[1]),
                             _mm256_hadd_epi32(dots[2], dots[3]));
  }
}

/* `count` floats, 4 unless kTail, and zeros. */
template <int kTail>
VFN __m128 load_four(const char* p, int64_t count) {
  const float* from = (const float*)(const void*)p;
  if constexpr (!kTail) return _mm_loadu_ps(from);
  const __m128i all = _mm_set1_epi32((int)count);
  return _mm_maskload_ps(from, _mm_cmpgt_epi32(all, _mm_setr_epi32(0, 1, 2, 3)));
}

/* The same of f16. */
template <int kTail>
VFN __m128 widen_four(const char* p, int64_t count) {
  uint64_t halves = 0;
  if constexpr (kTail) {
    for (int64_t i = 0; i < count && i < 4; ++i) {
      uint16_t half;
      __builtin_memcpy(&half, p + 2 * i, 2);
      halves |= (uint64_t)half << 16 * i;
    }
  } else {
    __builtin_memcpy(&halves, p, 8);
  }
  return _mm_cvtph_ps(_mm_cvtsi64_si128((int64_t)halves));
}

/* to[i] = [block b + 2 i and the next][column] of the four[column] of blocks b to b + 3. */
VFN void turn_fours(const __m128* four, V* to) {
  const V even = _mm256_set_m128(four[2], four[0]);
  const V odd = _mm256_set_m128(four[3], four[1]);
  const __m256d low = _mm256_castps_pd(_mm256_unpacklo_ps(even, odd));
  const __m256d high = _mm256_castps_pd(_mm256_unpackhi_ps(even, odd));
  to[0] = _mm256_castpd_ps(_mm256_permute4x64_pd(low, 0xD8));
  to[1] = _mm256_castpd_ps(_mm256_permute4x64_pd(high, 0xD8));
}

/* Of numbers of 4 or 2 bytes, of which each column has one a block, from block b on; `left`: blocks
 * that there are. */
template <int kTail>
VFN void load_fours(const char* p, int64_t size, int64_t blocks, int64_t left, V* to) {
  __m128 four[kAcross];
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) {
    const char* from = p + j * size * blocks;
    four[j] = size == 2 ? widen_four<kTail>(from, left) : load_four<kTail>(from, left);
  }
  turn_fours(four, to);
}

/* sum[i] + the blocks b + 2 i and the next of four columns. */
template <int kBits, int kBlob, int kTail>
VFN void add_fours(const Columns& c, const Shape& s, const Row& a, int64_t b, V* sum) {
  const int64_t left = s.blocks - b;
  const V a_scales = _mm256_broadcast_ps((const __m128*)(const void*)(a.scales + b));
  const V four = _mm256_broadcast_ps((const __m128*)(const void*)(a.middles + b));
  V scales[2];
  V zeros[2] = {};
  load_fours<kTail>(c.scales + c.scale_bytes * b, c.scale_bytes, c.blocks, left, scales);
  if (c.zeros) load_fours<kTail>((const char*)(c.zeros + b), 4, c.blocks, left, zeros);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    if (kTail && left <= 2 * i) break;
    const VI each = i == 0 ? _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1)
                           : _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
    VI dots[kAcross];
    dot_pairs<kBits, kBlob, kTail>(c, s, a.codes, b + 2 * i, dots);
    const VI exact_dots = sum_quads<kBits, kBlob>(dots);
    const VI middles = vi_from_bits(_mm256_permutevar8x32_ps(four, each));
    V exact;
    if (c.zeros) {
      exact = v_fma(v_mul(zeros[i], v_set1(1.0f / (1 << (kBits - 1)))), v_from_int(middles),
                    v_from_int(exact_dots));
    } else {
      exact = v_from_int(vi_add(exact_dots, middles));
    }
    const V a_scale = _mm256_permutevar8x32_ps(a_scales, each);
    sum[i] = v_fma(exact, v_mul(scales[i], a_scale), sum[i]);
  }
}

template <int kBits, int kBlob>
VFN __m128 dot_columns(const Columns& c, const Shape& s, const Row& a) {
  V sum[2] = {v_zero(), v_zero()};
  int64_t b = 0;
  for (; b + 4 <= s.blocks; b += 4) {
    fetch_next(c, s, b);
    add_fours<kBits, kBlob, 0>(c, s, a, b, sum);
  }
  if (b < s.blocks) add_fours<kBits, kBlob, 1>(c, s, a, b, sum);
  const V two = v_add(sum[0], sum[1]);
  return _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
}

/* ---- many rows */

VFN void turn_columns(const void* first, int64_t step, int64_t count, int64_t at, int64_t length,
                      VI* to) {
  const VM m = v_first(length <= at ? 0 : length - at < 8 ? length - at : 8);
  __m256 rows[8];
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) {
    const char* column = (const char*)first + (j < count ? j : count - 1) * step;
    rows[j] = _mm256_maskload_ps((const float*)(const void*)(column + 4 * at), m);
  }
  turn8x8(rows);
#pragma GCC unroll 8
  for (int64_t j = 0; j < 8; ++j) to[j] = _mm256_castps_si256(rows[j]);
}
