#include "core/base/dtype.h"

#include <string>

#include "core/base/checked_math.h"

namespace folio {
namespace {

struct Row {
  int bits;
  std::string_view name;
};

// Indexed by the ONNX number.
constexpr Row kRows[kDTypeCount] = {
    {0, "undefined"},      {32, "float"},     {8, "uint8"},
    {8, "int8"},           {16, "uint16"},    {16, "int16"},
    {32, "int32"},         {64, "int64"},     {sizeof(std::string) * 8, "string"},
    {8, "bool"},           {16, "float16"},   {64, "double"},
    {32, "uint32"},        {64, "uint64"},    {64, "complex64"},
    {128, "complex128"},   {16, "bfloat16"},  {8, "float8e4m3fn"},
    {8, "float8e4m3fnuz"}, {8, "float8e5m2"}, {8, "float8e5m2fnuz"},
    {4, "uint4"},          {4, "int4"},       {4, "float4e2m1"},
    {8, "float8e8m0"},     {2, "uint2"},      {2, "int2"},
};

const Row& row(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  return kRows[index < kDTypeCount ? index : 0];
}

}  // namespace

int dtype_bits(DType dtype) { return row(dtype).bits; }

std::string_view dtype_name(DType dtype) { return row(dtype).name; }

bool dtype_known(int64_t number) { return number > 0 && number < kDTypeCount; }

bool dtype_is_float(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kFloat16 ||
         dtype == DType::kBfloat16;
}

bool dtype_is_integer(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kUint16:
    case DType::kInt16:
    case DType::kUint32:
    case DType::kInt32:
    case DType::kUint64:
    case DType::kInt64:
      return true;
    default:
      return false;
  }
}

bool dtype_is_subbyte(DType dtype) { return dtype_bits(dtype) > 0 && dtype_bits(dtype) < 8; }

bool dtype_bytes(DType dtype, uint64_t count, uint64_t* out_bytes) {
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  uint64_t total_bits = 0;
  if (bits == 0) return false;
  if (bits % 8 == 0) return checked_mul(count, bits / 8, out_bytes);
  if (!checked_mul(count, bits, &total_bits)) return false;
  *out_bytes = total_bits / 8 + (total_bits % 8 != 0);
  return true;
}

}  // namespace folio
