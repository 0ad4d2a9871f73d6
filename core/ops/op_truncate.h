// Floats to integers and bools as Cast gives them (op_convert.h has the rule), many at a time.
//
// Why: compilers make several selects of a clamp and shuffle their way to bytes. SSE2, which every
//      x86-64 has, converts what does not fit to the least integer, which is a clamp but for large
//      numbers and NaN, and packs with saturation.
#pragma once

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "core/ops/op_dispatch.h"

namespace folio {

// One element.
template <typename To, typename From>
To truncate(From value) {
  static_assert(std::is_integral_v<To> && std::is_floating_point_v<From>);
  if constexpr (std::is_same_v<To, bool>) {
    return !(value == 0);
  } else if constexpr (sizeof(To) < 4) {
    return static_cast<To>(saturating_cast<int32_t>(value));
  } else if constexpr (std::is_unsigned_v<To>) {
    // Negative numbers wrap, as in the narrower types.
    if (value < 0) return static_cast<To>(saturating_cast<int64_t>(value));
    return saturating_cast<To>(value);
  } else {
    return saturating_cast<To>(value);
  }
}

// Elements that truncate_blocks() takes at a time.
constexpr int64_t kTruncateBlock = 16;

// Elements of which one that is large makes all take the longer way.
constexpr int64_t kTruncateChunk = 256;

#if defined(__SSE2__)
namespace truncate_detail {

using Ints = __m128i;

template <typename From>
From load(const uint8_t* from) {
  From value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline __m128 load4(const uint8_t* from) {
  return _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const Ints*>(from)));
}
inline __m128d load2(const uint8_t* from) {
  return _mm_castsi128_pd(_mm_loadu_si128(reinterpret_cast<const Ints*>(from)));
}
inline void store(uint8_t* to, Ints value) { _mm_storeu_si128(reinterpret_cast<Ints*>(to), value); }

// Four, the least integer for what does not fit and NaN.
template <typename From>
Ints plain4(const uint8_t* from) {
  if constexpr (std::is_same_v<From, float>) {
    return _mm_cvttps_epi32(load4(from));
  } else {
    return _mm_unpacklo_epi64(_mm_cvttpd_epi32(load2(from)), _mm_cvttpd_epi32(load2(from + 16)));
  }
}

inline Ints saturate2(const uint8_t* from) {
  const __m128d value = load2(from);
  const __m128d number = _mm_and_pd(value, _mm_cmpord_pd(value, value));
  return _mm_cvttpd_epi32(_mm_min_pd(number, _mm_set1_pd(2147483647.0)));
}

// Four as saturating_cast<int32_t>.
template <typename From>
Ints saturate4(const uint8_t* from) {
  if constexpr (std::is_same_v<From, float>) {
    const __m128 value = load4(from);
    const Ints is_over = _mm_castps_si128(_mm_cmpge_ps(value, _mm_set1_ps(2147483648.0F)));
    const Ints is_number = _mm_castps_si128(_mm_cmpord_ps(value, value));
    // The least integer's complement is the largest.
    return _mm_and_si128(_mm_xor_si128(_mm_cvttps_epi32(value), is_over), is_number);
  } else {
    return _mm_unpacklo_epi64(saturate2(from), saturate2(from + 16));
  }
}

// Four, all bits set for what is not 0.
template <typename From>
Ints nonzero4(const uint8_t* from) {
  if constexpr (std::is_same_v<From, float>) {
    return _mm_castps_si128(_mm_cmpneq_ps(load4(from), _mm_setzero_ps()));
  } else {
    const __m128d low = _mm_cmpneq_pd(load2(from), _mm_setzero_pd());
    const __m128d high = _mm_cmpneq_pd(load2(from + 16), _mm_setzero_pd());
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castpd_ps(low), _mm_castpd_ps(high), 0x88));
  }
}

// The low halves of the elements of two.
inline Ints low_words(Ints a, Ints b) {
  a = _mm_srai_epi32(_mm_slli_epi32(a, 16), 16);
  b = _mm_srai_epi32(_mm_slli_epi32(b, 16), 16);
  return _mm_packs_epi32(a, b);
}

inline Ints low_bytes(Ints a, Ints b, Ints c, Ints d) {
  const Ints mask = _mm_set1_epi32(255);
  const Ints ab = _mm_packs_epi32(_mm_and_si128(a, mask), _mm_and_si128(b, mask));
  const Ints cd = _mm_packs_epi32(_mm_and_si128(c, mask), _mm_and_si128(d, mask));
  return _mm_packus_epi16(ab, cd);
}

// One that may be large.
template <typename From, typename To>
To truncate_large(From value) {
  int64_t number;
  if constexpr (std::is_same_v<From, float>) {
    number = _mm_cvttss_si64(_mm_set_ss(value));
  } else {
    number = _mm_cvttsd_si64(_mm_set_sd(value));
  }
  // The least integer is for what does not fit.
  const bool fits = number != std::numeric_limits<int64_t>::min() &&
                    (sizeof(To) == 8 || number <= std::numeric_limits<uint32_t>::max());
  return fits ? static_cast<To>(number) : truncate<To, From>(value);
}

// Vectors of 32-bit integers stored as To.
template <typename To, int kVectors>
void store_all(const Ints (&four)[kVectors], uint8_t* to) {
  if constexpr (sizeof(To) == 1) {
    store(to, low_bytes(four[0], four[1], four[2], four[3]));
  } else if constexpr (sizeof(To) == 2) {
    store(to, low_words(four[0], four[1]));
    store(to + 16, low_words(four[2], four[3]));
  } else {
    for (int i = 0; i < kVectors; ++i) {
      if constexpr (sizeof(To) == 4) {
        store(to + i * 16, four[i]);
      } else {
        const Ints sign = _mm_srai_epi32(four[i], 31);
        store(to + i * 32, _mm_unpacklo_epi32(four[i], sign));
        store(to + i * 32 + 16, _mm_unpackhi_epi32(four[i], sign));
      }
    }
  }
}

// Blocks of what fits in 32-bit integers, which most numbers do. Whether all did.
template <typename From, typename To>
bool plain_blocks(const uint8_t* __restrict from, uint8_t* __restrict to, int64_t n) {
  // Bytes need four vectors. Else a short loop is faster, but one vector's depends on its address.
  constexpr int kVectors = sizeof(To) < 4 ? 4 : 2;
  constexpr int64_t kStep = 4 * kVectors;
  const Ints least = _mm_set1_epi32(std::numeric_limits<int32_t>::min());
  Ints is_out = _mm_setzero_si128();
  for (int64_t at = 0; at < n; at += kStep) {
    Ints four[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      four[i] = plain4<From>(from + (at + i * 4) * int64_t{sizeof(From)});
      is_out = _mm_or_si128(is_out, _mm_cmpeq_epi32(four[i], least));
    }
    store_all<To>(four, to + at * int64_t{sizeof(To)});
  }
  return _mm_movemask_epi8(is_out) == 0;
}

// A block of any numbers.
template <typename From, typename To>
void exact_block(const uint8_t* from, uint8_t* to) {
  constexpr int64_t kFrom = sizeof(From);
  constexpr int64_t kTo = sizeof(To);
  if constexpr (kTo < 4 || std::is_same_v<To, int32_t>) {
    Ints four[4];
    for (int i = 0; i < 4; ++i) four[i] = saturate4<From>(from + i * 4 * kFrom);
    store_all<To>(four, to);
  } else {
    for (int64_t i = 0; i < kTruncateBlock; ++i) {
      const To out = truncate_large<From, To>(load<From>(from + i * kFrom));
      std::memcpy(to + i * kTo, &out, sizeof(out));
    }
  }
}

template <typename From>
void bool_block(const uint8_t* from, uint8_t* to) {
  const auto flags = [from](int i) { return nonzero4<From>(from + i * 4 * int64_t{sizeof(From)}); };
  const Ints low = _mm_packs_epi32(flags(0), flags(1));
  const Ints high = _mm_packs_epi32(flags(2), flags(3));
  store(to, _mm_and_si128(_mm_packs_epi16(low, high), _mm_set1_epi8(1)));
}

// Whole blocks, few enough to stay in L1: those that hold large numbers or NaN are converted again.
template <typename From, typename To>
void some_blocks(const uint8_t* __restrict from, uint8_t* __restrict to, int64_t n) {
  constexpr int64_t kFrom = sizeof(From);
  constexpr int64_t kTo = sizeof(To);
  if constexpr (std::is_same_v<To, bool>) {
    for (int64_t i = 0; i < n; i += kTruncateBlock) bool_block<From>(from + i * kFrom, to + i);
  } else {
    if (plain_blocks<From, To>(from, to, n)) return;
    for (int64_t i = 0; i < n; i += kTruncateBlock) {
      exact_block<From, To>(from + i * kFrom, to + i * kTo);
    }
  }
}

}  // namespace truncate_detail
#endif

// The first elements, as truncate() each; both may be unaligned, and do not overlap. How many.
template <typename From, typename To>
int64_t truncate_blocks(const uint8_t* from, uint8_t* to, int64_t n) {
#if defined(__SSE2__)
  const int64_t whole = n - n % kTruncateBlock;
  for (int64_t i = 0; i < whole; i += kTruncateChunk) {
    truncate_detail::some_blocks<From, To>(from + i * int64_t{sizeof(From)},
                                           to + i * int64_t{sizeof(To)},
                                           std::min(kTruncateChunk, whole - i));
  }
  return whole;
#else
  static_cast<void>(from), static_cast<void>(to), static_cast<void>(n);
  return 0;
#endif
}

}  // namespace folio
