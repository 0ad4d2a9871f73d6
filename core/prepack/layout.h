// Layouts: identified, versioned, ISA-neutral arrangements of a packed weight.
//
// Rule:    equal id and version mean equal bytes for equal sources, on every machine. A change of
//          the bytes is a new version. Byte by byte: docs/layouts.md comes with the on-disk form;
//          F32P16 and S8P16K4 are stated in core/kernels/kernels.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace folio {

enum class Layout : uint16_t {
  kRaw = 0,         // the tensor's own bytes, row by row, aligned: computed or unaligned constants
  kF32P16 = 1,      // [ceil(n / 16)][k][16] float, zero padded columns
  kS8P16K4 = 2,     // [ceil(n / 16)][ceil(k / 4)][16][4] int8, zero padded, then int32 column sums
  kF32Wino43 = 5,   // [36] of F32P16 of [C, M]: 3x3 pieces of filters (core/kernels/winograd.h)
  kF32Tapwise = 6,  // [taps][channels] float: depthwise filters
  kF16P16 = 7,      // as kF32P16, of float16
  kBF16P16 = 8,     // [ceil(n / 16)][ceil(k / 2)][16][2] bfloat16, zero padded: pairs of rows
  kF16Exact = 9,    // the numbers of a float tensor as float16, where that holds every one exactly
  kF32WinoLine = 10,  // [6 or 7] of F32P16 of [pieces * C, M]: transformed filters along a line
  kS16Wino43 = 11,    // [36] of [ceil(M / 16)][C / 2][16][2] int16, then int32 sums, magnitudes
};

inline constexpr uint16_t kRawVersion = 1;
inline constexpr uint16_t kF32P16Version = 1;
inline constexpr uint16_t kS8P16K4Version = 1;
inline constexpr uint16_t kF32Wino43Version = 1;
inline constexpr uint16_t kF32TapwiseVersion = 1;
inline constexpr uint16_t kF16P16Version = 1;
inline constexpr uint16_t kBF16P16Version = 2;
inline constexpr uint16_t kF16ExactVersion = 1;
inline constexpr uint16_t kF32WinoLineVersion = 1;
inline constexpr uint16_t kS16Wino43Version = 1;

// At which kernels read packed weights.
inline constexpr size_t kBlobAlignment = 64;

// The version that this build has.
uint16_t layout_version(Layout layout);
// "F32P16"; "unknown" for a number that this version does not know.
const char* layout_name(Layout layout);

// Bytes of B[k, n] as F32P16; false on overflow or negative dims.
[[nodiscard]] bool f32p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes);

// Bytes of B[k, n] as F16P16, as BF16P16.
[[nodiscard]] bool f16p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes);
[[nodiscard]] bool bf16p16_bytes(int64_t k, int64_t n, uint64_t* out_bytes);

// Bytes of B[k, n] as S8P16K4, the sums of its columns included.
[[nodiscard]] bool s8p16k4_bytes(int64_t k, int64_t n, uint64_t* out_bytes);

// Bytes of n filters of k channels as S16WINO43, their sums and magnitudes included; k is even.
[[nodiscard]] bool s16wino43_bytes(int64_t k, int64_t n, uint64_t* out_bytes);

}  // namespace folio
