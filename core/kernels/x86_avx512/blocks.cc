// Weights of small integers in blocks. Codes of up to 4 bits are looked up in a register.
#include "core/kernels/x86_avx512/x86_avx512.h"

#include "core/kernels/x86_avx512/vec.h"

constexpr int kDotColumns[4] = {4, 4, 4, 4};

namespace {

template <int kBits>
struct Decoder {
  V table; /* of every code the weight */

  [[gnu::always_inline]] void set(float zero, float scale) {
    const V codes = kBits == 4
                        ? _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                        : _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    table = v_mul(v_sub(codes, v_set1(zero)), v_set1(scale));
  }
  /* The look-up takes the low 4 bits of an index. */
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    if constexpr (kPlace > 0) bytes = vi_shift_right(bytes, kPlace * kBits);
    return _mm512_permutexvar_ps(bytes, table);
  }
};

template <>
struct Decoder<8> {
  V zero, scale;

  [[gnu::always_inline]] void set(float zero_, float scale_) {
    zero = v_set1(zero_);
    scale = v_set1(scale_);
  }
  template <int kPlace>
  [[gnu::always_inline]] V decode(VI bytes) const {
    return v_mul(v_sub(v_from_int(bytes), zero), scale);
  }
};

}  // namespace

#include "core/kernels/vector/blocks.inl"

void folio_fill_blocks__x86_avx512(FolioKernels* table) { fill_blocks(table); }
