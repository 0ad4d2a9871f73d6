/* What of block_row.inl and block_panels.inl depends on a vector's 8 lanes: a row some blocks at a
 * time, and columns turned.
 *
 * The including file includes before: block_row.inl, turn.inl; and defines before: add_dots<kBits>(dots,
 * codes, low, high), which adds to *dots sums over the quads of 32 bytes of codes times those of a
 * row's planes, each in its place. */

/* ---- one row: eight blocks of up to 16 bytes, or four larger ones, at a time */

/* `count` bytes, a multiple of 8 up to 32, and zeros. */
VFN VI load_bytes(const uint8_t* p, int64_t count) {
  if (count >= 32) return vi_load(p);
  const VI which = _mm256_setr_epi64x(0, 8, 16, 24);
  return _mm256_maskload_epi64((const long long*)p,
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), which));
}

/* *dots += sums over the quads of 32 bytes. kTail: bytes from s.bytes on are not there. */
template <int kBits, int kTail>
VFN void dot_bytes(const Columns& c, const Shape& s, const int8_t* x, int64_t at, VI* dots) {
  if (kTail && at >= s.bytes) return;
  const VI low = vi_load(x + at);
  const VI high = kBits == 4 ? vi_load(x + s.plane + at) : low;
  VI bytes = kTail ? load_bytes(c.codes + at, s.bytes - at) : vi_load(c.codes + at);
  __asm__("" : "+x"(bytes)); /* loaded once: it is used twice */
  add_dots<kBits>(dots, bytes, low, high);
}

/* [lane][j] = the sum of that lane of dots[j]. kShort: each is of one vector of codes. Of 4 bits,
 * sums of eight and of sixteen products fit into 16 bits: 16 * 15 * 127 < 2^15. */
template <int kBits, int kShort>
VFN VI sum_lanes(const VI* dots) {
  if constexpr (kBits == 4 && kShort) {
    const VI ones = _mm256_set1_epi16(1);
    const VI ab = _mm256_madd_epi16(_mm256_packs_epi32(dots[0], dots[1]), ones);
    const VI cd = _mm256_madd_epi16(_mm256_packs_epi32(dots[2], dots[3]), ones);
    return _mm256_madd_epi16(_mm256_packs_epi32(ab, cd), ones);
  } else {
    return _mm256_hadd_epi32(_mm256_hadd_epi32(dots[0], dots[1]),
                             _mm256_hadd_epi32(dots[2], dots[3]));
  }
}

/* The sums of eight blocks of 8 or 16 bytes from b on. */
template <int kBits, int kBlob, int kTail>
VFN VI dot_short_blocks(const Columns& c, const Shape& s, const int8_t* x, int64_t b) {
  VI dots[kBlob / 4];
#pragma GCC unroll 4
  for (int v = 0; v < kBlob / 4; ++v) {
    dots[v] = _mm256_setzero_si256();
    dot_bytes<kBits, kTail>(c, s, x, b * kBlob + 32 * v, &dots[v]);
  }
  if constexpr (kBlob == 16) { /* [lane][j] = block 2 j + lane */
    return _mm256_permutevar8x32_epi32(sum_lanes<kBits, 1>(dots),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  } else { /* [lane] = blocks 2 lane and one on, then those 4 later */
    return _mm256_permute4x64_epi64(_mm256_hadd_epi32(dots[0], dots[1]), 0xD8);
  }
}

/* The sums of four blocks of 32 bytes or more from b on, with kTail 0 where there are none. */
template <int kBits, int kBlob, int kTail>
VFN __m128i dot_long_blocks(const Columns& c, const Shape& s, const int8_t* x, int64_t b) {
  VI dots[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    dots[i] = _mm256_setzero_si256();
    if (kTail && b + i >= s.blocks) continue;
    const int64_t blob = kBlob == 32 ? 32 : s.blob;
    const int64_t end = (b + i + 1) * blob;
    for (int64_t at = end - blob; at < end; at += 32) {
      if (kBlob > 32) _mm_prefetch((const char*)c.codes + at + kAhead, kFetchHint);
      dot_bytes<kBits, 0>(c, s, x, at, &dots[i]);
    }
  }
  const VI lanes = sum_lanes<kBits, kBlob == 32>(dots);
  return _mm_add_epi32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
}

/* The sums of eight blocks from b on. */
template <int kBits, int kBlob, int kTail>
VFN VI dot_eight(const Columns& c, const Shape& s, const int8_t* x, int64_t b) {
  if constexpr (kBlob < 32) {
    return dot_short_blocks<kBits, kBlob, kTail>(c, s, x, b);
  } else {
    const __m128i low = dot_long_blocks<kBits, kBlob, kTail>(c, s, x, b);
    return _mm256_set_m128i(dot_long_blocks<kBits, kBlob, kTail>(c, s, x, b + 4), low);
  }
}

/* Fetches what stands so far behind eight blocks from b on. */
template <int kBlob>
VFN void fetch_ahead(const Columns& c, const Shape& s, int64_t b) {
  const int64_t blob = kBlob <= 32 ? kBlob : s.blob;
  const char* codes = (const char*)c.codes + b * blob + kAhead;
#pragma GCC unroll 4
  for (int line = 0; line < 8 * kBlob && kBlob <= 32; line += 64) {
    _mm_prefetch(codes + line, kFetchHint);
  }
  _mm_prefetch(c.scales + c.scale_bytes * (b + kAhead / blob), kFetchHint);
}

/* The last blocks, up to eight. */
template <int kBits, int kBlob>
VFN __m128 add_last(const Columns& c, const Shape& s, const Row& a, int64_t b, __m128 chains) {
  const VI dots = dot_eight<kBits, kBlob, 1>(c, s, a.codes, b);
  chains = add_four<kBits>(c, s, a, b, _mm256_castsi256_si128(dots), chains);
  if (s.blocks - b <= 4) return chains;
  return add_four<kBits>(c, s, a, b + 4, _mm256_extracti128_si256(dots, 1), chains);
}

/* How zeros are given. */
enum { kNoZeros, kFloatZeros, kCodeZeros };

/* Eight blocks that are all there. */
template <int kBits, int kBlob, int kZeros>
VFN __m128 add_eight(const Columns& c, const Shape& s, const Row& a, int64_t b, __m128 chains) {
  VI dots = dot_eight<kBits, kBlob, 0>(c, s, a.codes, b);
  fetch_ahead<kBlob>(c, s, b);
  const VI middles = vi_load(a.middles + b);
  if (kIsCentred<kBits>) dots = vi_sub(dots, middles);
  V exact;
  if (kZeros == kNoZeros) {
    exact = v_from_int(vi_add(dots, middles));
  } else {
    const V zeros = kZeros == kFloatZeros
                        ? v_load(c.zeros + b)
                        : v_from_int(vi_widen_u8(zero_codes_at<kBits, 8, 1>(c, s, b)));
    exact = v_fma(v_mul(zeros, v_set1(1.0f / (1 << (kBits - 1)))), v_from_int(middles),
                  v_from_int(dots));
  }
  const char* from = c.scales + c.scale_bytes * b;
  const V own = c.scale_bytes == 2
                    ? _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(const void*)from))
                    : v_load((const float*)(const void*)from);
  const V scales = v_mul(own, v_load(a.scales + b));
  chains = _mm_fmadd_ps(_mm256_castps256_ps128(exact), _mm256_castps256_ps128(scales), chains);
  return _mm_fmadd_ps(_mm256_extractf128_ps(exact, 1), _mm256_extractf128_ps(scales, 1), chains);
}

template <int kBits, int kBlob, int kZeros>
VFN __m128 dot_eights(const Columns& c, const Shape& s, const Row& a) {
  __m128 chains = _mm_setzero_ps();
  int64_t b = 0;
  for (; b + 8 <= s.blocks; b += 8) chains = add_eight<kBits, kBlob, kZeros>(c, s, a, b, chains);
  return b < s.blocks ? add_last<kBits, kBlob>(c, s, a, b, chains) : chains;
}

/* How zeros are given is asked once: a loop that asks for each block is bound by its instructions. */
template <int kBits, int kBlob>
VFN __m128 dot_column(const Columns& c, const Shape& s, const Row& a) {
  if (c.zeros) return dot_eights<kBits, kBlob, kFloatZeros>(c, s, a);
  if (c.zero_codes) return dot_eights<kBits, kBlob, kCodeZeros>(c, s, a);
  return dot_eights<kBits, kBlob, kNoZeros>(c, s, a);
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
