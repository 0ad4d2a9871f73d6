#include "core/ops/op_convert.h"

#include <algorithm>
#include <cstring>

#include "core/ops/op_flags.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_move.h"
#include "core/ops/op_truncate.h"

namespace folio {
namespace {

// Floats between halves and other types, in L1.
constexpr int64_t kFloats = 1024;

using PlainTypes = TypeList<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                            uint32_t, uint64_t, bool>;

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return !(value == 0);
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    return truncate<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

// The first elements of int64 as doubles, chunk by chunk; both may be unaligned, and do not
// overlap. How many. SSE2 converts 32 bits alone: numbers of 51 bits and a sign are added to the
// bits of 1.5 * 2^52, which is then subtracted. Chunks that have a larger one are converted one by
// one.
int64_t double_blocks(const uint8_t* __restrict from, uint8_t* __restrict to, int64_t n) {
#if defined(__SSE2__)
  constexpr int64_t kStep = 4;
  constexpr int64_t kChunk = 256;
  const __m128d offset = _mm_set1_pd(6755399441055744.0);
  const __m128i bits = _mm_castpd_si128(offset);
  const int64_t whole = n - n % kStep;
  for (int64_t begin = 0; begin < whole; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, whole);
    __m128i changed = _mm_setzero_si128();
    const auto two = [&](int64_t i) {
      const auto* at = reinterpret_cast<const __m128i*>(from + 8 * i);
      const __m128i sum = _mm_add_epi64(_mm_loadu_si128(at), bits);
      changed = _mm_or_si128(changed, _mm_xor_si128(sum, bits));
      const __m128d number = _mm_sub_pd(_mm_castsi128_pd(sum), offset);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 8 * i), _mm_castpd_si128(number));
    };
    for (int64_t i = begin; i < end; i += kStep) two(i), two(i + 2);
    // The sign and the exponent stay those of the offset.
    const __m128i high = _mm_srli_epi64(changed, 52);
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(high, _mm_setzero_si128())) == 0xFFFF) continue;
    for (int64_t i = begin; i < end; ++i) {
      int64_t in;
      std::memcpy(&in, from + 8 * i, sizeof(in));
      const auto out = static_cast<double>(in);
      std::memcpy(to + 8 * i, &out, sizeof(out));
    }
  }
  return whole;
#else
  static_cast<void>(from), static_cast<void>(to), static_cast<void>(n);
  return 0;
#endif
}

template <typename T>
bool is_aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(T) == 0;
}

// Some elements; both may be unaligned, and do not overlap.
template <typename From, typename To>
void convert_run(const uint8_t* __restrict from, uint8_t* __restrict to, int64_t n) {
  // A bool of hostile bytes must not be read as bool.
  using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  using Kept = std::conditional_t<std::is_same_v<To, bool>, uint8_t, To>;
  const auto one = [](Stored value) -> Kept {
    if constexpr (std::is_same_v<From, bool>) {
      return static_cast<Kept>(value != 0);
    } else {
      return convert<To, From>(value);
    }
  };
  constexpr auto kFrom = static_cast<int64_t>(sizeof(Stored));
  constexpr auto kTo = static_cast<int64_t>(sizeof(Kept));
  int64_t first = 0;
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    first = truncate_blocks<From, To>(from, to, n);
  } else if constexpr (std::is_same_v<From, int64_t> && std::is_same_v<To, double>) {
    first = double_blocks(from, to, n);
  } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8 && std::is_same_v<To, bool>) {
    first = flag_nonzero(n, from, to);
  }
  for (int64_t i = first; i < n; ++i) {
    Stored in;
    std::memcpy(&in, from + i * kFrom, sizeof(in));
    const Kept out = one(in);
    std::memcpy(to + i * kTo, &out, sizeof(out));
  }
}

DType with_sign(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return DType::kInt8;
    case DType::kUint16:
      return DType::kInt16;
    case DType::kUint32:
      return DType::kInt32;
    case DType::kUint64:
      return DType::kInt64;
    default:
      return dtype;
  }
}

template <typename T>
constexpr bool kHasNoSign = std::is_unsigned_v<T> && !std::is_same_v<T, bool>;

// Between integers bits are kept, those of an integer that has more; whether one has a sign matters
// only where it is widened, or becomes a float. One loop for all that keep the same bits.
void convert_plain(DType from, const uint8_t* x, DType to, uint8_t* y, int64_t n) {
  const bool from_integer = dtype_is_integer(from) || from == DType::kBool;
  if (from_integer) to = with_sign(to);
  const bool is_wider = dtype_is_integer(to) && dtype_bits(to) > dtype_bits(from);
  if (!is_wider && (dtype_is_integer(to) || to == DType::kBool)) from = with_sign(from);
  dispatch(PlainTypes{}, from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    dispatch(PlainTypes{}, to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      constexpr bool kNarrows = std::is_same_v<To, bool> || sizeof(To) <= sizeof(From);
      constexpr bool kIsOther = std::is_integral_v<From> && std::is_integral_v<To> &&
                                (kHasNoSign<To> || (kHasNoSign<From> && kNarrows));
      if constexpr (!kIsOther) convert_run<From, To>(x, y, n);
    });
  });
}

// Halves become floats by kernels, and halves are made of floats.
void convert_part(const FolioKernels& kernels, DType from, const uint8_t* x, DType to, uint8_t* y,
                  int64_t n) {
  const auto widen = from == DType::kFloat16 ? kernels.f16_to_f32 : kernels.bf16_to_f32;
  const auto narrow = to == DType::kFloat16 ? kernels.f32_to_f16 : kernels.f32_to_bf16;
  if (is_half(from) && to == DType::kFloat) {
    widen(n, x, reinterpret_cast<float*>(y));
    return;
  }
  if (!is_half(from) && !is_half(to)) return convert_plain(from, x, to, y, n);
  if (from == DType::kFloat && is_aligned<float>(x)) {
    narrow(n, reinterpret_cast<const float*>(x), y);
    return;
  }
  const int64_t from_bytes = dtype_bits(from) / 8;
  const int64_t to_bytes = dtype_bits(to) / 8;
  alignas(64) float floats[kFloats];
  auto* const bytes = reinterpret_cast<uint8_t*>(floats);
  for (int64_t at = 0; at < n; at += kFloats) {
    const int64_t count = std::min(kFloats, n - at);
    if (is_half(from)) {
      widen(count, x + at * from_bytes, floats);
    } else {
      convert_plain(from, x + at * from_bytes, DType::kFloat, bytes, count);
    }
    if (is_half(to)) {
      narrow(count, floats, y + at * to_bytes);
    } else {
      convert_plain(DType::kFloat, bytes, to, y + at * to_bytes, count);
    }
  }
}

}  // namespace

void convert_numbers(OpRun& run, DType from, const uint8_t* x, DType to, uint8_t* y, int64_t n) {
  const int64_t from_bytes = dtype_bits(from) / 8;
  const int64_t to_bytes = dtype_bits(to) / 8;
  run.parallel().for_range(n, kMoveGrain, [&](int64_t begin, int64_t end) {
    convert_part(run.kernels(), from, x + begin * from_bytes, to, y + begin * to_bytes,
                 end - begin);
  });
}

}  // namespace folio
