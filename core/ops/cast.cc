// Cast and CastLike: every element type to every other.
//
// Source: ONNX operator spec, Cast opsets 1, 6, 9 (strings), 13, 19 (float 8, saturate), 21, 23, 24;
//         CastLike 15 and later.
// Shapes: y has x's shape.
// Rules:  float to integer truncates towards zero and saturates where C leaves it undefined (NaN
//         gives 0); integers wrap; to bool is != 0; narrowing floats round to nearest even; strings
//         hold decimal numbers, NaN, INF, -INF.
// Types:  bool, (u)int8 to 64, float, double, float16, bfloat16, string, (u)int4, (u)int2.
//         Float 8 and float 4: kNotImplemented.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using PlainTypes = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t,
                            uint8_t, uint16_t, uint32_t, uint64_t, bool>;

template <typename To, typename From>
To convert(From from) {
  const auto value = static_cast<Compute<From>>(from);
  using V = decltype(value);
  if constexpr (std::is_same_v<To, bool>) {
    return value != V(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<Compute<From>>) {
    return saturating_cast<To>(static_cast<Compute<From>>(value));
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

template <typename T>
std::string to_text(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    const auto number = static_cast<Compute<T>>(value);
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-INF" : "INF";
    char text[64];
    // %.8g and %.17g: what ONNX Runtime writes.
    const bool is_double = std::is_same_v<T, double>;
    std::snprintf(text, sizeof(text), is_double ? "%.17g" : "%.8g", static_cast<double>(number));
    return text;
  }
}

template <typename T>
bool from_text(const std::string& text, T* out) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const char* begin = text.c_str() + (text.starts_with('+') ? 1 : 0);
    const char* end = text.c_str() + text.size();
    const auto parsed = std::from_chars(begin, end, *out);
    return parsed.ec == std::errc() && parsed.ptr == end;
  } else {
    // strtod knows decimal and exponent forms, inf and nan in any case.
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) return false;
    *out = convert<T>(number);
    return true;
  }
}

int64_t packed_at(const uint8_t* data, int64_t i, int bits, bool is_signed) {
  const int64_t per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  const int raw = data[i / per_byte] >> (i % per_byte * bits) & mask;
  return is_signed && raw >> (bits - 1) != 0 ? raw - (1 << bits) : raw;
}

void pack_at(uint8_t* data, int64_t i, int bits, int64_t value) {
  const int64_t per_byte = 8 / bits;
  const auto shift = static_cast<int>(i % per_byte) * bits;
  const int mask = (1 << bits) - 1;
  const int kept = data[i / per_byte] & ~(mask << shift);
  data[i / per_byte] = static_cast<uint8_t>(kept | (static_cast<int>(value & mask) << shift));
}

bool is_packed_int(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUint4 || dtype == DType::kInt2 ||
         dtype == DType::kUint2;
}

bool is_signed_packed(DType dtype) { return dtype == DType::kInt4 || dtype == DType::kInt2; }

// Sub-byte integers go through int8: both directions are exact but for the wanted truncation.
Result<Tensor> unpack(const Tensor& x) {
  FOLIO_TRY(Tensor wide, allocate_tensor(DType::kInt8, x.shape()));
  const int bits = dtype_bits(x.dtype());
  for (int64_t i = 0; i < x.count(); ++i) {
    wide.data_mut<int8_t>()[i] =
        static_cast<int8_t>(packed_at(x.raw(), i, bits, is_signed_packed(x.dtype())));
  }
  return wide;
}

Status cast_to_strings(const Tensor& x, Tensor* y) {
  std::string* to = y->data_mut<std::string>();
  const bool known = dispatch(PlainTypes{}, x.dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.count(); ++i) to[i] = to_text(x.data<From>()[i]);
  });
  return known ? Status::ok() : wrong_type(0, x.dtype());
}

Status cast_from_strings(const Tensor& x, Tensor* y) {
  const std::string* from = x.data<std::string>();
  Status status;
  const bool known = dispatch(PlainTypes{}, y->dtype(), [&](auto tag) {
    using To = typename decltype(tag)::type;
    for (int64_t i = 0; i < x.count(); ++i) {
      if (from_text(from[i], y->data_mut<To>() + i)) continue;
      status = invalid_argument("element ", i, " '", from[i].substr(0, 40), "' is no ",
                                dtype_name(y->dtype()));
      return;
    }
  });
  return known ? status : wrong_type(0, y->dtype());
}

Status cast_plain(OpRun& run, const Tensor& x, Tensor* y) {
  bool known = false;
  dispatch(PlainTypes{}, x.dtype(), [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    known = dispatch(PlainTypes{}, y->dtype(), [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      const From* from = x.data<From>();
      To* to = y->data_mut<To>();
      run.parallel().for_range(x.count(), 32768, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = convert<To>(from[i]);
      });
    });
  });
  if (known) return Status::ok();
  return not_implemented("a cast from ", dtype_name(x.dtype()), " to ", dtype_name(y->dtype()));
}

Status cast_to_packed(OpRun& run, const Tensor& x, Tensor* y) {
  FOLIO_TRY(Tensor wide, allocate_tensor(DType::kInt8, x.shape()));
  if (x.is_string()) {
    FOLIO_RETURN_IF_ERROR(cast_from_strings(x, &wide));
  } else {
    FOLIO_RETURN_IF_ERROR(cast_plain(run, x, &wide));
  }
  if (y->bytes() > 0) std::memset(y->raw_mut(), 0, y->bytes());
  const int bits = dtype_bits(y->dtype());
  for (int64_t i = 0; i < x.count(); ++i) pack_at(y->raw_mut(), i, bits, wide.data<int8_t>()[i]);
  return Status::ok();
}

class Cast final : public OpKernel {
 public:
  DType to = DType::kUndefined;  // undefined: as input 1 (CastLike)

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* given, run.tensor(0));
    DType target = to;
    if (target == DType::kUndefined) {
      FOLIO_TRY(const Tensor* like, run.tensor(1));
      target = like->dtype();
    }
    FOLIO_TRY(Tensor* y, run.output(0, target, given->shape()));
    if (target == given->dtype()) return copy(*given, y);
    Tensor x = *given;
    if (is_packed_int(x.dtype())) {
      FOLIO_TRY(x, unpack(x));
    }
    if (is_packed_int(target)) return cast_to_packed(run, x, y);
    if (target == DType::kString) return cast_to_strings(x, y);
    if (x.is_string()) return cast_from_strings(x, y);
    return cast_plain(run, x, y);
  }

 private:
  static Status copy(const Tensor& x, Tensor* y) {
    if (x.is_string()) {
      std::copy_n(x.data<std::string>(), x.count(), y->data_mut<std::string>());
    } else if (x.bytes() > 0) {
      std::memcpy(y->raw_mut(), x.raw(), x.bytes());
    }
    return Status::ok();
  }
};

Result<DType> target_of(const Attributes& attrs) {
  FOLIO_TRY(const int64_t to, attrs.get_int("to"));
  if (!dtype_known(to)) return invalid_graph("attribute 'to' is ", to, ", which is no element type");
  return static_cast<DType>(to);
}

Status infer(OpInfer& infer) {
  DType to = infer.dtype(1);
  if (infer.node().op_type == "Cast") {
    FOLIO_TRY(to, target_of(infer.attrs()));
  }
  TypeInfo type = infer.input(0);
  if (!type.is_tensor()) return Status::ok();
  type.dtype = to;
  infer.set_output(0, std::move(type));
  // Dims pass through casts between integers.
  const auto data = infer.data(0);
  if (data && (to == DType::kInt64 || to == DType::kInt32)) infer.set_data(0, *data);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Cast>();
  if (build.node().op_type == "CastLike") return std::unique_ptr<OpKernel>(std::move(kernel));
  // Version 1 spelled the type as a string.
  const AttributeDef* to = build.attrs().find("to");
  if (to && to->type == AttributeDef::Type::kString) return not_implemented("Cast of opset 1");
  FOLIO_TRY(kernel->to, target_of(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_cast(OpRegistry& registry) {
  OpDef def;
  def.infer = infer;
  def.make = make;
  def.type = "Cast";
  def.since = 6;
  registry.add(def);
  def.type = "CastLike";
  def.since = 15;
  def.min_inputs = def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
