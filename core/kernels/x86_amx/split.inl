/* Floats as sums of bfloat16 numbers, in lines of tiles. The words of vec.h come before. */

namespace {

constexpr int64_t kTile = FOLIO_TILE_ROWS; /* rows, columns, pairs of the depth */
constexpr int64_t kTileBytes = kTile * FOLIO_TILE_BYTES;

/* Magnitudes of some bfloat16 numbers as bits: the largest, and the smallest but zeros less 1. */
struct Range {
  VI most, least;
};

VFN Range no_range() { return {vi_set1(0), vi_set1(-1)}; }

VFN void note_range(Range* range, VI parts) {
  const VI size = vi_and(parts, vi_set1(0x7fff7fff));
  range->most = _mm512_max_epu16(range->most, size);
  range->least = _mm512_min_epu16(range->least, _mm512_sub_epi16(size, vi_set1(0x00010001)));
}

/* Words whose numbers parts can hold: a bit each. */
VFN uint32_t exact_words(const Range& range) {
  constexpr uint16_t kBeyond = (127 + 56) << 7;
  constexpr uint16_t kLeast = (127 - 102) << 7;
  const VI most = vi_set1_words(kBeyond);
  const VI least = vi_set1_words(kLeast - 1);
  return _mm512_cmplt_epu16_mask(range.most, most) & _mm512_cmpge_epu16_mask(range.least, least);
}
VFN bool is_exact(const Range& range) { return exact_words(range) == ~UINT32_C(0); }

/* Of two vectors of floats whose lower halves are zeros, as lines of a tile have them, which hold
 * pairs of the depth: an element of both is a pair. */
struct JoinRows {
  static VI join(VI x0, VI x1) { return vi_or(vi_shift_right(x0, 16), x1); }
};

/* Finite numbers of at most the largest bfloat16. */
VFN V bounded(V x) {
  const VI bits = vi_from_bits(x);
  const VI size = vi_and(bits, vi_set1(0x7fffffff));
  const __mmask16 is_finite = _mm512_cmplt_epu32_mask(size, vi_set1(0x7f800000));
  const VI least = _mm512_mask_min_epu32(size, is_finite, size, vi_set1(0x7f7f0000));
  return v_from_bits(vi_or(_mm512_andnot_si512(vi_set1(0x7fffffff), bits), least));
}

/* Nearest bfloat16 numbers, ties to even, those of x0 first. A finite number that would become
 * infinite becomes the largest one. */
VFN VI round_words(V x0, V x1) {
  const VI words = (VI)_mm512_cvtne2ps_pbh(x1, x0);
  const VI size = vi_and(words, vi_set1(0x7fff7fff));
  if (__builtin_expect(_mm512_cmpge_epu16_mask(size, vi_set1_words(0x7f80)) == 0, 1)) return words;
  return (VI)_mm512_cvtne2ps_pbh(bounded(x1), bounded(x0));
}

/* 16 bfloat16 numbers and the 16 of the next row, as they stand side by side, in pairs. */
VFN VI join_words(VI words) {
  alignas(64) static const uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kPairs), words);
}

/* The line of each part's tile, part by part. */
template <int kParts, typename Join>
VFN void split_line(V x0, V x1, Range* range, char* to) {
  const VI upper = vi_set1(-0x10000);
  const VI half = vi_set1(0x8000);
  const VI h0 = vi_and(vi_add(vi_from_bits(x0), half), upper);
  const VI h1 = vi_and(vi_add(vi_from_bits(x1), half), upper);
  const VI line = Join::join(h0, h1);
  note_range(range, line);
  _mm512_store_si512(to, line);
  if constexpr (kParts == 1) return;
  const V rest0 = v_sub(x0, v_from_bits(h0));
  const V rest1 = v_sub(x1, v_from_bits(h1));
  if constexpr (kParts == 2) {
    const VI m0 = vi_and(vi_add(vi_from_bits(rest0), half), upper);
    const VI m1 = vi_and(vi_add(vi_from_bits(rest1), half), upper);
    _mm512_store_si512(to + kTileBytes, Join::join(m0, m1));
  } else if constexpr (kParts == 3) {
    const VI m0 = vi_and(vi_from_bits(rest0), upper);
    const VI m1 = vi_and(vi_from_bits(rest1), upper);
    _mm512_store_si512(to + kTileBytes, Join::join(m0, m1));
    const VI l0 = vi_from_bits(v_sub(rest0, v_from_bits(m0)));
    const VI l1 = vi_from_bits(v_sub(rest1, v_from_bits(m1)));
    _mm512_store_si512(to + 2 * kTileBytes, Join::join(l0, l1));
  }
}

}  // namespace
