// Cast and CastLike: elements as another type.
//
// Source: ONNX operator spec, Cast, opsets 1 (`to` is a name), 6, 9 (strings), 13 (bfloat16),
//         19 (float8, saturate), 21 (4-bit), 23 to 25 (round_mode); CastLike, opsets 15 to 25.
// Shapes: y has x's shape.
// Math:   float to integer truncates; out of range, 8- and 16-bit results keep the low bits of the
//         32-bit one, wider ones saturate, NaN is 0 (the spec leaves these open). To bool: not 0.
//         Narrow types go through float. Numbers print shortest such that they read back.
//         Strings have no bits to keep: what an integer cannot hold is an error. (ONNX Runtime
//         wraps within 64 bits and refuses beyond.)
// Own:    keeps_finite = 1 (passes/round_weights.cc): a finite number that bfloat16 would make
//         infinite becomes the largest one.
// Types:  all types but complex ones.
// Errors: kInvalidArgument for strings that are no number, or none that the integer type holds;
//         kNotImplemented for complex types.
#include <charconv>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_convert.h"
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_narrow.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  bool saturate = true;
  bool keeps_finite = false;
  ScaleRounding rounding = ScaleRounding::kUp;
};

// ---------------------------------------------------------------- narrow types

bool is_narrow_integer(DType dtype) { return dtype_is_subbyte(dtype) && !is_narrow_float(dtype); }

// Elements of a narrow type as floats, exactly.
void widen_narrow(const Tensor& from, const uint8_t* codes, float* to) {
  const int bits = dtype_bits(from.dtype());
  const bool is_signed = from.dtype() == DType::kInt4 || from.dtype() == DType::kInt2;
  const bool is_float = is_narrow_float(from.dtype());
  for (int64_t i = 0, end = from.count(); i < end; ++i) {
    if (is_float) {
      to[i] = narrow_to_float(from.dtype(), codes[i]);
    } else {
      const int code = codes[i];
      const bool negative = is_signed && code >= 1 << (bits - 1);
      to[i] = static_cast<float>(negative ? code - (1 << bits) : code);
    }
  }
}

Status from_narrow(OpRun& run, const Tensor& x, Tensor* y) {
  const auto n = static_cast<size_t>(x.count());
  FOLIO_TRY(uint8_t * floats, run.scratch(n * sizeof(float)));
  const uint8_t* codes = x.raw();
  if (dtype_is_subbyte(x.dtype())) {
    FOLIO_TRY(uint8_t * unpacked, run.scratch(n));
    unpack_bits(x, unpacked);
    codes = unpacked;
  }
  widen_narrow(x, codes, reinterpret_cast<float*>(floats));
  convert_numbers(run, DType::kFloat, floats, y->dtype(), y->raw_mut(), x.count());
  return Status::ok();
}

Status to_narrow(OpRun& run, const Tensor& x, const Options& options, Tensor* y) {
  const int64_t n = x.count();
  uint8_t* codes = y->raw_mut();
  if (dtype_is_subbyte(y->dtype())) {
    FOLIO_TRY(codes, run.scratch(static_cast<size_t>(n)));
  }
  if (is_narrow_integer(y->dtype())) {
    // The low bits of the integer.
    convert_numbers(run, x.dtype(), x.raw(), DType::kInt8, codes, n);
    const auto mask = static_cast<uint8_t>((1 << dtype_bits(y->dtype())) - 1);
    for (int64_t i = 0; i < n; ++i) codes[i] &= mask;
  } else {
    FOLIO_TRY(uint8_t * floats, run.scratch(static_cast<size_t>(n) * sizeof(float)));
    convert_numbers(run, x.dtype(), x.raw(), DType::kFloat, floats, n);
    const auto* values = reinterpret_cast<const float*>(floats);
    for (int64_t i = 0; i < n; ++i) {
      codes[i] = float_to_narrow(y->dtype(), values[i], options.saturate, options.rounding);
    }
  }
  if (dtype_is_subbyte(y->dtype())) pack_bits(codes, y);
  return Status::ok();
}

// ---------------------------------------------------------------- strings

template <typename T>
std::string print_number(T value) {
  char text[64];
  if constexpr (std::is_floating_point_v<T>) {
    if (value != value) return "NaN";
    if (value > std::numeric_limits<T>::max()) return "INF";
    if (value < std::numeric_limits<T>::lowest()) return "-INF";
    // Plain notation where NumPy uses it, else 1e+20.
    const T magnitude = value < 0 ? -value : value;
    const bool plain = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
    const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    const auto end = std::to_chars(text, text + sizeof(text), value, format);
    return std::string(text, end.ptr);
  } else {
    const auto end = std::to_chars(text, text + sizeof(text), value);
    return std::string(text, end.ptr);
  }
}

// The whole text as a number, spaces around it aside.
template <typename T>
bool read_number(std::string_view text, T* out) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return false;
  text = text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto found = std::from_chars(text.data(), end, *out);
  if (found.ec == std::errc() && found.ptr == end) return true;
  if constexpr (std::is_floating_point_v<T>) {
    // Too large or too small for T: what the wider type rounds to.
    long double wide = 0;
    const auto again = std::from_chars(text.data(), end, wide);
    if (found.ec != std::errc::result_out_of_range || again.ptr != end) return false;
    if (again.ec != std::errc()) return false;
    *out = static_cast<T>(wide);
    return true;
  } else {
    return false;
  }
}

// What an integer type holds: numbers from `lowest` to below `end`.
struct Bounds {
  double lowest;
  double end;
};

Bounds bounds_of(DType dtype) {
  const int bits = dtype_bits(dtype);
  const bool is_signed = dtype == DType::kInt2 || dtype == DType::kInt4 || dtype == DType::kInt8 ||
                         dtype == DType::kInt16 || dtype == DType::kInt32 || dtype == DType::kInt64;
  if (!is_signed) return {0, std::ldexp(1, bits)};
  return {-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1)};
}

Status to_strings(OpRun& run, const Tensor& x, Tensor* y) {
  const int64_t n = x.count();
  std::string* out = y->data_mut<std::string>();
  const bool whole = !dtype_is_float(x.dtype());
  const DType via = x.dtype() == DType::kFloat || x.dtype() == DType::kDouble ? x.dtype()
                    : x.dtype() == DType::kUint64                             ? DType::kUint64
                    : whole                                                   ? DType::kInt64
                                                                              : DType::kFloat;
  FOLIO_TRY(uint8_t * wide, run.scratch(static_cast<size_t>(n) * 8));
  convert_numbers(run, x.dtype(), x.raw(), via, wide, n);
  for (int64_t i = 0; i < n; ++i) {
    if (via == DType::kFloat) out[i] = print_number(reinterpret_cast<const float*>(wide)[i]);
    if (via == DType::kDouble) out[i] = print_number(reinterpret_cast<const double*>(wide)[i]);
    if (via == DType::kInt64) out[i] = print_number(reinterpret_cast<const int64_t*>(wide)[i]);
    if (via == DType::kUint64) out[i] = print_number(reinterpret_cast<const uint64_t*>(wide)[i]);
  }
  return Status::ok();
}

std::string_view shown(const std::string& text) { return std::string_view(text).substr(0, 64); }

template <typename Via>
Status read_all(const Tensor& x, Via* out) {
  for (int64_t i = 0, end = x.count(); i < end; ++i) {
    const std::string& text = x.data<std::string>()[i];
    if (!read_number(text, out + i)) {
      return invalid_argument("'", shown(text), "' is not a number");
    }
  }
  return Status::ok();
}

// Other numbers than whole ones are truncated. Via: int64_t or uint64_t.
template <typename Via>
Status read_integers(const Tensor& x, DType to, Via* out) {
  const Bounds bounds = bounds_of(to);
  for (int64_t i = 0, end = x.count(); i < end; ++i) {
    const std::string& text = x.data<std::string>()[i];
    double number = 0;
    const bool is_whole = read_number(text, out + i);
    if (is_whole) {
      number = static_cast<double>(out[i]);
    } else if (!read_number(text, &number)) {
      return invalid_argument("'", shown(text), "' is not a number");
    }
    // All of 64 bits are within, though as double the last of them is not.
    const bool is_all = is_whole && dtype_bits(to) == 64;
    const double truncated = std::trunc(number);
    if (!is_all && !(truncated >= bounds.lowest && truncated < bounds.end)) {
      return invalid_argument("'", shown(text), "' is out of the range of ", dtype_name(to));
    }
    if (!is_whole) out[i] = static_cast<Via>(truncated);
  }
  return Status::ok();
}

// What strings are read as on their way to `to`.
DType reading_type(DType to) {
  if (to == DType::kUint64 || to == DType::kDouble) return to;
  if (to == DType::kBool) return DType::kDouble;
  return dtype_is_integer(to) || is_narrow_integer(to) ? DType::kInt64 : DType::kFloat;
}

Result<Tensor> read_strings(OpRun& run, const Tensor& x, DType to) {
  const DType via = reading_type(to);
  FOLIO_TRY(uint8_t * wide, run.scratch(static_cast<size_t>(x.count()) * 8));
  if (via == DType::kFloat) {
    FOLIO_RETURN_IF_ERROR(read_all(x, reinterpret_cast<float*>(wide)));
  } else if (via == DType::kDouble) {
    FOLIO_RETURN_IF_ERROR(read_all(x, reinterpret_cast<double*>(wide)));
  } else if (via == DType::kInt64) {
    FOLIO_RETURN_IF_ERROR(read_integers(x, to, reinterpret_cast<int64_t*>(wide)));
  } else {
    FOLIO_RETURN_IF_ERROR(read_integers(x, to, reinterpret_cast<uint64_t*>(wide)));
  }
  return Tensor(via, x.shape(), wide, nullptr);
}

// ---------------------------------------------------------------- bfloat16 that stays finite

// Of y, floats of `x` (of any alignment) rounded: infinities that were finite.
void keep_finite(OpRun& run, const uint8_t* x, Tensor* y) {
  constexpr uint32_t kMagnitude = 0x7fffffff;
  constexpr uint32_t kInfinity = 0x7f800000;
  constexpr uint16_t kLargest = 0x7f7f;
  auto* rounded = reinterpret_cast<uint16_t*>(y->raw_mut());
  run.parallel().for_range(y->count(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, x + i * static_cast<int64_t>(sizeof(bits)), sizeof(bits));
      const bool became = (uint32_t{rounded[i]} << 16 & kMagnitude) == kInfinity;
      if (became && (bits & kMagnitude) < kInfinity) {
        rounded[i] = static_cast<uint16_t>((bits >> 16 & 0x8000U) | kLargest);
      }
    }
  });
}

// ---------------------------------------------------------------- the operators

bool is_castable(DType dtype) {
  return contains(NumberTypes{}, dtype) || is_narrow_float(dtype) || is_narrow_integer(dtype) ||
         dtype == DType::kString;
}

Status cast_tensor(OpRun& run, const Tensor& given, DType to, const Options& options) {
  if (!is_castable(given.dtype()) || !is_castable(to)) {
    return not_implemented("casting ", dtype_name(given.dtype()), " to ", dtype_name(to));
  }
  if (given.dtype() == to) return copy_to_output(run, 0, given);
  Tensor x = given;
  if (x.is_string()) {
    FOLIO_TRY(x, read_strings(run, given, to));
  }
  FOLIO_TRY(Tensor * y, run.output(0, to, x.shape()));
  const bool narrow_from = is_narrow_float(x.dtype()) || is_narrow_integer(x.dtype());
  const bool narrow_to = is_narrow_float(to) || is_narrow_integer(to);
  if (narrow_from && (narrow_to || to == DType::kString)) {
    FOLIO_TRY(uint8_t * floats, run.scratch(static_cast<size_t>(x.count()) * sizeof(float)));
    Tensor wide(DType::kFloat, x.shape(), floats, nullptr);
    FOLIO_RETURN_IF_ERROR(from_narrow(run, x, &wide));
    return narrow_to ? to_narrow(run, wide, options, y) : to_strings(run, wide, y);
  }
  if (narrow_from) return from_narrow(run, x, y);
  if (narrow_to) return to_narrow(run, x, options, y);
  if (to == DType::kString) return to_strings(run, x, y);
  convert_numbers(run, x.dtype(), x.raw(), to, y->raw_mut(), x.count());
  if (options.keeps_finite && x.dtype() == DType::kFloat && to == DType::kBfloat16) {
    keep_finite(run, x.raw(), y);
  }
  return Status::ok();
}

class Cast final : public OpKernel {
 public:
  // kUndefined: like input 1.
  Cast(DType to, Options options) : to_(to), options_(options) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    DType to = to_;
    if (to == DType::kUndefined) {
      FOLIO_TRY(const Tensor* like, run.tensor(1));
      to = like->dtype();
    }
    return cast_tensor(run, *x, to, options_);
  }

 private:
  DType to_;
  Options options_;
};

// Opset 1 spells types out: "FLOAT", "INT64".
Result<DType> type_named(const std::string& name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (lower == dtype_name(dtype)) return dtype;
  }
  return invalid_graph("'to' is '", name, "', which is no element type");
}

Result<DType> target_of(const Attributes& attrs, int version) {
  const AttributeDef* to = attrs.find("to");
  if (version < 6 && to && to->type == AttributeDef::Type::kString) {
    FOLIO_TRY(const std::string name, attrs.get_string("to"));
    return type_named(name);
  }
  FOLIO_TRY(const int64_t number, attrs.get_int("to"));
  if (!dtype_known(number)) return invalid_graph("'to' is ", number, ", which is no element type");
  return static_cast<DType>(number);
}

Result<Options> options_of(const Attributes& attrs) {
  Options options;
  FOLIO_TRY(const int64_t saturate, attrs.get_int("saturate", 1));
  options.saturate = saturate != 0;
  FOLIO_TRY(const int64_t keeps_finite, attrs.get_int("keeps_finite", 0));
  options.keeps_finite = keeps_finite != 0;
  FOLIO_TRY(const std::string rounding, attrs.get_string("round_mode", "up"));
  if (rounding == "down") {
    options.rounding = ScaleRounding::kDown;
  } else if (rounding == "nearest") {
    options.rounding = ScaleRounding::kNearest;
  } else if (rounding != "up") {
    return invalid_graph("round_mode is '", rounding, "', expected up, down or nearest");
  }
  return options;
}

Status infer_as(OpInfer& infer, DType to) {
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, to, x ? std::optional(*x) : std::nullopt);
  const bool is_int = to == DType::kInt64 || to == DType::kInt32;
  auto data = infer.data(0);
  if (!is_int || !data) return Status::ok();
  for (Dim& dim : *data) {
    // A dim that int32 cannot hold would change.
    if (to == DType::kInt32 && dim.is_value() && dim.value > INT32_MAX) dim = Dim::unknown();
  }
  infer.set_data(0, std::move(*data));
  return Status::ok();
}

Status infer_cast(OpInfer& infer) {
  FOLIO_TRY(const DType to, target_of(infer.attrs(), infer.version()));
  return infer_as(infer, to);
}

Status infer_cast_like(OpInfer& infer) { return infer_as(infer, infer.dtype(1)); }

Result<std::unique_ptr<OpKernel>> make_cast(OpBuild& build) {
  FOLIO_TRY(const DType to, target_of(build.attrs(), build.version()));
  if (!is_castable(to)) return not_implemented("casting to ", dtype_name(to));
  FOLIO_TRY(const Options options, options_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Cast>(to, options));
}

Result<std::unique_ptr<OpKernel>> make_cast_like(OpBuild& build) {
  FOLIO_TRY(const Options options, options_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<Cast>(DType::kUndefined, options));
}

}  // namespace

[[gnu::cold]] void register_cast(OpRegistry& registry) {
  OpDef def;
  def.type = "Cast";
  def.keeps_half = true;
  def.is_exact = true;
  def.elementwise = true;
  def.infer = infer_cast;
  def.make = make_cast;
  def.unaligned_inputs = 1;
  registry.add(def);

  def.type = "CastLike";
  def.elementwise = false;  // only the type of the second input counts
  def.since = 15;
  def.min_inputs = 2;
  def.max_inputs = 2;
  def.infer = infer_cast_like;
  def.make = make_cast_like;
  def.unaligned_inputs = 3;
  registry.add(def);
}

}  // namespace folio
