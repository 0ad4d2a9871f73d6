/* bfloat16 numbers as words, for levels with AVX512_BF16. The words of vec.h come before. */

/* Finite numbers of at most the largest bfloat16: rounded, they stay finite. */
VFN V v_bounded(V x) {
  const VI bits = vi_from_bits(x);
  const VI size = vi_and(bits, vi_set1(0x7fffffff));
  const __mmask16 is_finite = _mm512_cmplt_epu32_mask(size, vi_set1(0x7f800000));
  const VI least = _mm512_mask_min_epu32(size, is_finite, size, vi_set1(0x7f7f0000));
  return v_from_bits(vi_or(_mm512_andnot_si512(vi_set1(0x7fffffff), bits), least));
}

/* The nearest, ties to even: those of x0, then those of x1. */
VFN VI v_to_words(V x0, V x1) { return (VI)_mm512_cvtne2ps_pbh(x1, x0); }

/* 16 numbers and the 16 of the next row, as they stand side by side, in pairs. */
VFN VI join_words(VI words) {
  alignas(64) static const uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kPairs), words);
}
