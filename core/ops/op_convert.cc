#include "core/ops/op_convert.h"

#include "core/ops/op_move.h"

namespace folio {
namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return !(static_cast<Compute<From>>(value) == 0);
  } else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const auto number = static_cast<Compute<From>>(value);
    if constexpr (sizeof(To) < 4) {
      return static_cast<To>(saturating_cast<int32_t>(number));
    } else if constexpr (std::is_unsigned_v<To>) {
      // Negative numbers wrap, as in the narrower types.
      if (number < 0) return static_cast<To>(saturating_cast<int64_t>(number));
      return saturating_cast<To>(number);
    } else {
      return saturating_cast<To>(number);
    }
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(static_cast<Compute<From>>(value)));
  } else {
    return static_cast<To>(static_cast<Compute<From>>(value));
  }
}

// Elements [begin, end); the source may be unaligned.
template <typename From, typename To>
void convert_run(const void* from, To* to, int64_t begin, int64_t end) {
  // A bool of hostile bytes must not be read as bool.
  using Stored = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  const auto one = [](Stored value) {
    if constexpr (std::is_same_v<From, bool>) {
      return convert<To, int32_t>(value != 0 ? 1 : 0);
    } else {
      return convert<To, From>(value);
    }
  };
  if constexpr (std::is_integral_v<From> && sizeof(From) <= 4 && std::is_same_v<To, float>) {
    // Blocks of a length that a compiler knows: one vector instruction converts some elements.
    constexpr int64_t kBlock = 16;
    for (; begin + kBlock <= end; begin += kBlock) {
      Stored in[kBlock];
      float out[kBlock];
      move_run(in, element_at<Stored>(from, begin), kBlock);
      for (int64_t j = 0; j < kBlock; ++j) out[j] = one(in[j]);
      move_run(to + begin, out, kBlock);
    }
  }
  for (; begin < end; ++begin) {
    Stored value;
    move_one(&value, element_at<Stored>(from, begin));
    to[begin] = one(value);
  }
}

// The four conversions between float and the 16-bit formats have kernels.
bool convert_by_kernel(const FolioKernels& kernels, DType from, DType to, int64_t n,
                       const uint8_t* x, uint8_t* y) {
  if (to == DType::kFloat && from == DType::kFloat16) {
    kernels.f16_to_f32(n, x, reinterpret_cast<float*>(y));
  } else if (to == DType::kFloat && from == DType::kBfloat16) {
    kernels.bf16_to_f32(n, x, reinterpret_cast<float*>(y));
  } else {
    return false;
  }
  return true;
}

}  // namespace

void convert_numbers(OpRun& run, DType from, const uint8_t* x, DType to, uint8_t* y, int64_t n) {
  const int64_t from_bytes = dtype_bits(from) / 8;
  const int64_t to_bytes = dtype_bits(to) / 8;
  run.parallel().for_range(n, kMoveGrain, [&](int64_t begin, int64_t end) {
    if (convert_by_kernel(run.kernels(), from, to, end - begin, x + begin * from_bytes,
                          y + begin * to_bytes)) {
      return;
    }
    dispatch(NumberTypes{}, from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      dispatch(NumberTypes{}, to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        convert_run<From, To>(x, reinterpret_cast<To*>(y), begin, end);
      });
    });
  });
}

}  // namespace folio
