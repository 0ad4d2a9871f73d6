#include "tests/properties/ort_compare.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/ops/op_half.h"

namespace folio::properties {
namespace {

// How far elements may be apart: sums in another order, or in half precision.
double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
      return 2e-5;
    case DType::kDouble:
      return 1e-6;  // some of ONNX Runtime's kernels for double have constants of float
    case DType::kFloat16:
      return 4e-3;
    case DType::kBfloat16:
      return 3e-2;
    default:
      return 0;
  }
}

double number_at(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype()) {
    case DType::kFloat:
      return tensor.data<float>()[i];
    case DType::kDouble:
      return tensor.data<double>()[i];
    case DType::kFloat16:
      return half_to_float(tensor.data<uint16_t>()[i]);
    default:
      return bfloat16_to_float(tensor.data<uint16_t>()[i]);
  }
}

std::string integer_text(const Tensor& tensor, int64_t i) {
  const auto bytes = static_cast<size_t>(dtype_bits(tensor.dtype())) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.raw() + static_cast<size_t>(i) * bytes, std::min<size_t>(bytes, 8));
  return cat(static_cast<int64_t>(bits));
}

// "": the same.
std::string difference(const Tensor& folio, const Tensor& ort) {
  if (folio.dtype() != ort.dtype()) {
    return cat("type ", dtype_name(folio.dtype()), ", ORT ", dtype_name(ort.dtype()));
  }
  if (!(folio.shape() == ort.shape())) {
    return cat("shape ", folio.shape().to_string(), ", ORT ", ort.shape().to_string());
  }
  if (folio.is_string()) {
    for (int64_t i = 0; i < folio.count(); ++i) {
      const std::string& a = folio.data<std::string>()[i];
      const std::string& b = ort.data<std::string>()[i];
      if (a != b) return cat("element ", i, " '", a, "', ORT '", b, "'");
    }
    return "";
  }
  if (folio.dtype() == DType::kUint8 || folio.dtype() == DType::kInt8) {
    int most = 0;
    for (int64_t i = 0; i < folio.count(); ++i) {
      const bool is_signed = folio.dtype() == DType::kInt8;
      const auto code = [&](const Tensor& tensor) {
        return is_signed ? int{tensor.data<int8_t>()[i]} : int{tensor.data<uint8_t>()[i]};
      };
      most = std::max(most, std::abs(code(folio) - code(ort)));
    }
    return most == 0 ? "" : cat("bytes differ by ", most);
  }
  const double tolerance = tolerance_of(folio.dtype());
  if (tolerance == 0) {
    const bool same = folio.bytes() == 0 || dtype_is_subbyte(folio.dtype()) ||
                      std::memcmp(folio.raw(), ort.raw(), folio.bytes()) == 0;
    const int bits = dtype_bits(folio.dtype());
    for (int64_t i = 0; !same && bits >= 8 && i < folio.count(); ++i) {
      const std::string a = integer_text(folio, i);
      const std::string b = integer_text(ort, i);
      if (a != b) return cat("element ", i, " bits ", a, ", ORT ", b);
    }
    return same ? "" : "bits";
  }
  for (int64_t i = 0; i < folio.count(); ++i) {
    const double a = number_at(folio, i);
    const double b = number_at(ort, i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= tolerance * (1 + std::abs(b))) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + ", ORT " +
           std::to_string(b);
  }
  return "";
}

std::string difference(const Value& folio, const Value& ort) {
  if (folio.kind() != ort.kind()) return "another kind of value";
  if (folio.is_tensor()) return difference(folio.tensor(), ort.tensor());
  if (folio.kind() == Value::Kind::kMap) {
    const std::string keys = difference(folio.map().keys, ort.map().keys);
    return keys.empty() ? difference(folio.map().values, ort.map().values) : keys;
  }
  if (folio.kind() != Value::Kind::kSequence) return "";
  const auto& a = folio.sequence().elements;
  const auto& b = ort.sequence().elements;
  if (a.size() != b.size()) return cat(a.size(), " elements, ORT ", b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const std::string found = difference(a[i], b[i]);
    if (!found.empty()) return cat("in sequence: ", found);
  }
  return "";
}

}  // namespace

std::string first_difference(const OrtOutcome& folio, const OrtOutcome& ort) {
  for (size_t i = 0; i < folio.outputs.size(); ++i) {
    const std::string found = difference(folio.outputs[i], ort.outputs[i]);
    if (!found.empty()) return cat("output ", i, ": ", found);
  }
  return "";
}

std::string elements_text(const Tensor& tensor, int64_t most) {
  std::string out;
  for (int64_t i = 0; i < std::min(most, tensor.count()); ++i) {
    if (i > 0) out += ' ';
    if (tensor.is_string()) {
      out += cat("'", tensor.data<std::string>()[i], "'");
    } else if (tolerance_of(tensor.dtype()) > 0) {
      out += cat(number_at(tensor, i));
    } else if (dtype_bits(tensor.dtype()) >= 8) {
      out += integer_text(tensor, i);
    }
  }
  return out;
}

}  // namespace folio::properties
