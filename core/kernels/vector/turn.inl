/* The mask of the first `count` of 8 lanes. */
VFN __m256i first8(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* r[j][i] = r[i][j] of 4 x 4 elements of 32 bits in each lane of 128 bits, moved as bits. All loops
 * are unrolled, or g++ at -O2 would turn them in memory. */
VFN void turn_lanes(__m256 r[4]) {
  const __m256 ab_low = _mm256_unpacklo_ps(r[0], r[1]);
  const __m256 ab_high = _mm256_unpackhi_ps(r[0], r[1]);
  const __m256 cd_low = _mm256_unpacklo_ps(r[2], r[3]);
  const __m256 cd_high = _mm256_unpackhi_ps(r[2], r[3]);
  r[0] = _mm256_shuffle_ps(ab_low, cd_low, 0x44);
  r[1] = _mm256_shuffle_ps(ab_low, cd_low, 0xee);
  r[2] = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
  r[3] = _mm256_shuffle_ps(ab_high, cd_high, 0xee);
}

/* The same of 8 x 8. */
VFN void turn8x8(__m256 r[8]) {
  turn_lanes(r);
  turn_lanes(r + 4);
  __m256 s[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    s[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    s[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = s[i];
}

/* The same of 4 x 4 elements of 64 bits. */
VFN void turn4x4_b64(__m256 r[4]) {
  const __m256d a = _mm256_castps_pd(r[0]);
  const __m256d b = _mm256_castps_pd(r[1]);
  const __m256d c = _mm256_castps_pd(r[2]);
  const __m256d d = _mm256_castps_pd(r[3]);
  const __m256 ab_even = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
  const __m256 ab_odd = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
  const __m256 cd_even = _mm256_castpd_ps(_mm256_unpacklo_pd(c, d));
  const __m256 cd_odd = _mm256_castpd_ps(_mm256_unpackhi_pd(c, d));
  r[0] = _mm256_permute2f128_ps(ab_even, cd_even, 0x20);
  r[1] = _mm256_permute2f128_ps(ab_odd, cd_odd, 0x20);
  r[2] = _mm256_permute2f128_ps(ab_even, cd_even, 0x31);
  r[3] = _mm256_permute2f128_ps(ab_odd, cd_odd, 0x31);
}
