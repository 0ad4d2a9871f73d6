// Comparisons as bytes of 0 and 1, sixteen at a time.
//
// Why: compilers narrow the masks of a comparison to bytes by shuffles and ands of every element,
//      and have no vectors of 64-bit integers to compare. SSE2, which every x86-64 has, packs masks
//      with saturation, and compares the halves of 64 bits.
//
// Owns:    plain values.
// Errors:  none; without SSE2 the blocks are empty, and callers' loops do all.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace folio {

// Elements whose flags are stored at a time.
constexpr int64_t kFlagBlock = 16;

// The relations. Of others the sides change places: a > b is b < a, and so with NaN.
struct EqualRelation {
  bool operator()(auto a, auto b) const { return a == b; }
};
struct LessRelation {
  bool operator()(auto a, auto b) const { return a < b; }
};
struct LessOrEqualRelation {
  bool operator()(auto a, auto b) const { return a <= b; }
};

#if defined(__SSE2__)
namespace flags_detail {

using Ints = __m128i;

inline Ints load_ints(const void* from) { return _mm_loadu_si128(static_cast<const Ints*>(from)); }

// Four elements: one vector, or two of 64 bits an element.
template <typename T>
struct Four {
  static constexpr int kVectors = sizeof(T) / 4;
  Ints part[kVectors];

  static Four load(const T* from) {
    Four four;
    for (int i = 0; i < kVectors; ++i) four.part[i] = load_ints(from + i * 4 / kVectors);
    return four;
  }
  static Four repeat(T value) {
    alignas(16) T values[4] = {value, value, value, value};
    return load(values);
  }
};

// The low or the high halves of four of 64 bits.
inline Ints low_halves(Ints a, Ints b) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88));
}
inline Ints high_halves(Ints a, Ints b) {
  return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0xDD));
}
inline __m128 floats(Ints a) { return _mm_castsi128_ps(a); }
inline __m128d doubles(Ints a) { return _mm_castsi128_pd(a); }
inline Ints invert(Ints mask) { return _mm_xor_si128(mask, _mm_set1_epi32(-1)); }

// Masks of four elements, of which the sign bits count.
template <typename T>
Ints related(EqualRelation, const Four<T>& a, const Four<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm_castps_si128(_mm_cmpeq_ps(floats(a.part[0]), floats(b.part[0])));
  } else if constexpr (std::is_same_v<T, double>) {
    const __m128d low = _mm_cmpeq_pd(doubles(a.part[0]), doubles(b.part[0]));
    const __m128d high = _mm_cmpeq_pd(doubles(a.part[1]), doubles(b.part[1]));
    return low_halves(_mm_castpd_si128(low), _mm_castpd_si128(high));
  } else if constexpr (sizeof(T) == 4) {
    return _mm_cmpeq_epi32(a.part[0], b.part[0]);
  } else {
    const Ints low = _mm_cmpeq_epi32(a.part[0], b.part[0]);
    const Ints high = _mm_cmpeq_epi32(a.part[1], b.part[1]);
    return _mm_and_si128(low_halves(low, high), high_halves(low, high));
  }
}

template <typename T>
Ints related(LessRelation, const Four<T>& a, const Four<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm_castps_si128(_mm_cmplt_ps(floats(a.part[0]), floats(b.part[0])));
  } else if constexpr (std::is_same_v<T, double>) {
    const __m128d low = _mm_cmplt_pd(doubles(a.part[0]), doubles(b.part[0]));
    const __m128d high = _mm_cmplt_pd(doubles(a.part[1]), doubles(b.part[1]));
    return low_halves(_mm_castpd_si128(low), _mm_castpd_si128(high));
  } else if constexpr (sizeof(T) == 4) {
    return _mm_cmplt_epi32(a.part[0], b.part[0]);
  } else {
    // By the high halves; where these are equal, a difference has the sign of a borrow.
    const Ints difference = high_halves(_mm_sub_epi64(a.part[0], b.part[0]),  //
                                        _mm_sub_epi64(a.part[1], b.part[1]));
    const Ints a_high = high_halves(a.part[0], a.part[1]);
    const Ints b_high = high_halves(b.part[0], b.part[1]);
    return _mm_or_si128(_mm_cmplt_epi32(a_high, b_high),
                        _mm_and_si128(_mm_cmpeq_epi32(a_high, b_high), difference));
  }
}

template <typename T>
Ints related(LessOrEqualRelation, const Four<T>& a, const Four<T>& b) {
  if constexpr (std::is_same_v<T, float>) {
    return _mm_castps_si128(_mm_cmple_ps(floats(a.part[0]), floats(b.part[0])));
  } else if constexpr (std::is_same_v<T, double>) {
    const __m128d low = _mm_cmple_pd(doubles(a.part[0]), doubles(b.part[0]));
    const __m128d high = _mm_cmple_pd(doubles(a.part[1]), doubles(b.part[1]));
    return low_halves(_mm_castpd_si128(low), _mm_castpd_si128(high));
  } else {
    return invert(related(LessRelation(), b, a));  // integers have no NaN
  }
}

// Sixteen flags, of the signs of four masks.
inline void store_flags(Ints a, Ints b, Ints c, Ints d, uint8_t* to) {
  const Ints masks = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
  const Ints is_set = _mm_cmpgt_epi8(_mm_setzero_si128(), masks);
  _mm_storeu_si128(reinterpret_cast<Ints*>(to), _mm_and_si128(is_set, _mm_set1_epi8(1)));
}

}  // namespace flags_detail

// Whether op_flags.h has blocks of T.
template <typename T>
inline constexpr bool kHasFlags = std::is_same_v<T, float> || std::is_same_v<T, double> ||
                                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
#else
template <typename T>
inline constexpr bool kHasFlags = false;
#endif

// y[i] = relation(a[i], b[i]) of n elements; where a step is 0, that side is one element. y must
// not overlap a or b: the last block may be computed where part of it has been.
template <int kAStep, int kBStep, typename T, typename Relation>
void flag_row(int64_t n, const T* a, const T* b, uint8_t* y) {
#if defined(__SSE2__)
  if constexpr (kHasFlags<T>) {
    using Four = flags_detail::Four<T>;
    if (n >= kFlagBlock) {
      const Four first = Four::repeat(*a);
      const Four second = Four::repeat(*b);
      const auto four = [&](int64_t i) {
        return flags_detail::related(Relation(), kAStep == 0 ? first : Four::load(a + i),
                                     kBStep == 0 ? second : Four::load(b + i));
      };
      const auto block = [&](int64_t i) {
        flags_detail::store_flags(four(i), four(i + 4), four(i + 8), four(i + 12), y + i);
      };
      int64_t i = 0;
      for (; i + kFlagBlock <= n; i += kFlagBlock) block(i);
      if (i < n) block(n - kFlagBlock);
      return;
    }
  }
#endif
  for (int64_t i = 0; i < n; ++i) y[i] = Relation()(a[i * kAStep], b[i * kBStep]);
}

// y[i] = whether any of the 64 bits of element i is set, for the first elements. How many; x may be
// unaligned.
inline int64_t flag_nonzero(int64_t n, const uint8_t* x, uint8_t* y) {
#if defined(__SSE2__)
  using flags_detail::Ints;
  const auto four = [x](int64_t i) {
    const Ints zero = _mm_setzero_si128();
    const Ints low = _mm_cmpeq_epi32(flags_detail::load_ints(x + 8 * i), zero);
    const Ints high = _mm_cmpeq_epi32(flags_detail::load_ints(x + 8 * i + 16), zero);
    return flags_detail::invert(
        _mm_and_si128(flags_detail::low_halves(low, high), flags_detail::high_halves(low, high)));
  };
  int64_t i = 0;
  for (; i + kFlagBlock <= n; i += kFlagBlock) {
    flags_detail::store_flags(four(i), four(i + 4), four(i + 8), four(i + 12), y + i);
  }
  return i;
#else
  static_cast<void>(n), static_cast<void>(x), static_cast<void>(y);
  return 0;
#endif
}

}  // namespace folio
