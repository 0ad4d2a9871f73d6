/* turn_columns of vector/block_panels.inl, which the including file includes before. */

VFN void turn_columns(const void* first, int64_t step, int64_t count, int64_t at, int64_t length,
                      VI* to) {
  const VM m = v_first(length <= at ? 0 : length - at < 16 ? length - at : 16);
#pragma GCC unroll 16
  for (int64_t j = 0; j < 16; ++j) {
    const char* column = (const char*)first + (j < count ? j : count - 1) * step;
    to[j] = _mm512_maskz_loadu_epi32(m, column + 4 * at);
  }
  /* Each step turns the address (row, dword) left by one bit. */
  const VI low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const VI high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  VI other[16];
#pragma GCC unroll 4
  for (int turn = 0; turn < 4; ++turn) {
    VI* from = turn % 2 == 0 ? to : other;
    VI* out = turn % 2 == 0 ? other : to;
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      out[2 * i] = _mm512_permutex2var_epi32(from[i], low, from[i + 8]);
      out[2 * i + 1] = _mm512_permutex2var_epi32(from[i], high, from[i + 8]);
    }
  }
}
