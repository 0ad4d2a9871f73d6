/* Floats as sums of bfloat16 numbers, in lines of tiles. The words of vec.h come before. */

#include "core/kernels/x86_avx512bf16/words.inl"

namespace {

constexpr int64_t kTile = FOLIO_TILE_ROWS; /* rows, columns, pairs of the depth */
constexpr int64_t kTileBytes = kTile * FOLIO_TILE_BYTES;

/* Magnitudes of what parts can hold, as bfloat16: from one on, below the other. */
constexpr int16_t kLeastExact = (127 - 102) << 7;
constexpr int16_t kBeyondExact = (127 + 56) << 7;

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
  const VI most = vi_set1_words(kBeyondExact);
  const VI least = vi_set1_words(kLeastExact - 1);
  return _mm512_cmplt_epu16_mask(range.most, most) & _mm512_cmpge_epu16_mask(range.least, least);
}
VFN bool is_exact(const Range& range) { return exact_words(range) == ~UINT32_C(0); }

/* Of two vectors of floats whose lower halves are zeros, as lines of a tile have them, which hold
 * pairs of the depth: an element of both is a pair. */
struct JoinRows {
  static VI join(VI x0, VI x1) { return vi_or(vi_shift_right(x0, 16), x1); }
};

/* Nearest bfloat16 numbers, ties to even, those of x0 first. A finite number that would become
 * infinite becomes the largest one. */
VFN VI round_words(V x0, V x1) {
  const VI words = v_to_words(x0, x1);
  const VI size = vi_and(words, vi_set1(0x7fff7fff));
  if (__builtin_expect(_mm512_cmpge_epu16_mask(size, vi_set1_words(0x7f80)) == 0, 1)) return words;
  return v_to_words(v_bounded(x0), v_bounded(x1));
}

/* 32 numbers as parts, a vector of each. */
template <int kParts, typename Join>
VFN void split(V x0, V x1, Range* range, VI (&parts)[kParts]) {
  const VI upper = vi_set1(-0x10000);
  const VI half = vi_set1(0x8000);
  const VI h0 = vi_and(vi_add(vi_from_bits(x0), half), upper);
  const VI h1 = vi_and(vi_add(vi_from_bits(x1), half), upper);
  parts[0] = Join::join(h0, h1);
  note_range(range, parts[0]);
  if constexpr (kParts == 1) return;
  const V rest0 = v_sub(x0, v_from_bits(h0));
  const V rest1 = v_sub(x1, v_from_bits(h1));
  if constexpr (kParts == 2) {
    const VI m0 = vi_and(vi_add(vi_from_bits(rest0), half), upper);
    const VI m1 = vi_and(vi_add(vi_from_bits(rest1), half), upper);
    parts[1] = Join::join(m0, m1);
  } else if constexpr (kParts == 3) {
    const VI m0 = vi_and(vi_from_bits(rest0), upper);
    const VI m1 = vi_and(vi_from_bits(rest1), upper);
    parts[1] = Join::join(m0, m1);
    const VI l0 = vi_from_bits(v_sub(rest0, v_from_bits(m0)));
    const VI l1 = vi_from_bits(v_sub(rest1, v_from_bits(m1)));
    parts[2] = Join::join(l0, l1);
  }
}

/* The line of each part's tile, part by part. */
template <int kParts, typename Join>
VFN void split_line(V x0, V x1, Range* range, char* to) {
  VI parts[kParts];
  split<kParts, Join>(x0, x1, range, parts);
#pragma GCC unroll 3
  for (int i = 0; i < kParts; ++i) _mm512_store_si512(to + i * kTileBytes, parts[i]);
}

}  // namespace
