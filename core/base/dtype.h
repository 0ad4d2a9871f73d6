// Element types: ONNX TensorProto.DataType numbers, sizes and names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace folio {

enum class DType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

inline constexpr int kDTypeCount = 27;

// Bits one element takes in a tensor's bytes. Strings: the in-memory std::string, never file bytes.
// 0 for kUndefined.
int dtype_bits(DType dtype);

// ONNX's lower-case name ("float", "int64", "bfloat16"); "undefined" for anything else.
std::string_view dtype_name(DType dtype);

// True when `number` is a TensorProto.DataType that this build knows.
bool dtype_known(int64_t number);

bool dtype_is_float(DType dtype);    // float, double, float16, bfloat16
bool dtype_is_integer(DType dtype);  // (u)int8 to (u)int64; not bool, not sub-byte
bool dtype_is_subbyte(DType dtype);

// Bytes of `count` elements: ceil(count * bits / 8); false on overflow or kUndefined.
[[nodiscard]] bool dtype_bytes(DType dtype, uint64_t count, uint64_t* out_bytes);

}  // namespace folio
