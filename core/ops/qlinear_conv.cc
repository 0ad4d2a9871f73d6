// Convolutions of 8-bit tensors: QLinearConv and ConvInteger; and what passes make of them:
// QLinearConvAdd (fuse_byte_adds.cc) and ConvIntegerToFloat (fuse_integer_conv.cc).
//
// Source: ONNX operator spec, opset 10; com.microsoft QLinearConv, version 1; QLinearConvAdd
//         and ConvIntegerToFloat: Folio's own, domain folio, version 1.
// Shapes: as Conv, or x and y [N, spatial..., C] with channels_last; w_scale and w_zero: one
//         element or one per output channel; b int32 [M].
// Math:   sums of (x - x_zero) * (w - w_zero) + b are exact in int32 (wrapping). QLinearConv: y =
//         saturate(round(sum * (x_scale * w_scale / y_scale)) + y_zero). QLinearConvAdd: QLinearAdd
//         of that and z, which is A if `addend_is_a`, else B. ConvIntegerToFloat: y = float(sum) *
//         scale + B, scale and B of one element for each output channel, or scale of one for all.
// Types:  QLinearConv, QLinearConvAdd: int8 and uint8; b int32, scales float. ConvInteger: int8
//         and uint8; y int32. ConvIntegerToFloat: int8 and uint8; scale, B and y float.
#include <algorithm>

#include "core/ops/op_conv_bytes.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_winograd_bytes.h"

namespace folio {
namespace {

// ---------------------------------------------------------------- ConvInteger

// Inputs x, w, x_zero, w_zero; ConvIntegerToFloat: also scale, B.
class ConvInteger final : public OpKernel {
 public:
  ConvAttrs attrs;
  bool last = false;  // channels
  bool is_winograd = false;
  bool to_float = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* w, byte_tensor(run, 1));
    const Shape image = last ? channels_first(x->shape()) : x->shape();
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, image, w->shape(), nullptr));
    int32_t x_zero = 0;
    if (run.has_input(2)) {
      FOLIO_TRY(const Tensor* zero, run.tensor(2, x->dtype()));
      if (zero->count() != 1) {
        return invalid_argument("x_zero_point ", zero->shape().to_string(),
                                " must have one element");
      }
      x_zero = byte_at(*zero, 0);
    }
    FOLIO_TRY(Tensor * y, run.output(0, to_float ? DType::kFloat : DType::kInt32,
                                     last ? channels_last(s.out) : s.out));
    if (y->count() == 0) return Status::ok();
    if (s.c_in == 0) {
      if (to_float) return invalid_argument("X ", x->shape().to_string(), " has no channels");
      std::fill_n(y->data_mut<int32_t>(), y->count(), 0);
      return Status::ok();
    }
    ByteConv conv;
    conv.x = x;
    conv.x_zero = x_zero;
    conv.w = w;
    conv.w_input = 1;
    conv.is_winograd = is_winograd;
    FOLIO_TRY(conv.w_zero, byte_zero(run, 3, w->dtype(), 1, w->dim(0), ZeroAxis::kRows));
    conv.channels_last = last;
    conv.sums.to = kFolioToInt32;
    if (to_float) FOLIO_RETURN_IF_ERROR(read_scale(run, w->dim(0), &conv.sums));
    conv.y = y->raw_mut();
    return run_byte_conv(run, s, conv);
  }

 private:
  static Status read_scale(OpRun& run, int64_t channels, FolioSums* sums) {
    FOLIO_TRY(const Tensor* scale, run.tensor(4, DType::kFloat));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(5, DType::kFloat));
    if (scale->count() != 1 && scale->count() != channels) {
      return invalid_argument("scale ", scale->shape().to_string(), " does not fit ", channels,
                              " channels");
    }
    if (b && b->count() != channels) {
      return invalid_argument("B ", b->shape().to_string(), " does not fit ", channels,
                              " channels");
    }
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(channels) * sizeof(float)));
    auto* factors = reinterpret_cast<float*>(memory);
    const int64_t step = scale->count() == 1 ? 0 : 1;
    for (int64_t j = 0; j < channels; ++j) factors[j] = scale->data<float>()[j * step];
    sums->to = kFolioToFloat;
    sums->scale = factors;
    sums->bias = b ? b->data<float>() : nullptr;
    return Status::ok();
  }
};

// ---------------------------------------------------------------- QLinearConv

// Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, B; QLinearConvAdd: also z (of the
// result's shape and type), A_scale, A_zero, B_scale, B_zero, C_scale, C_zero.
class QLinearConv final : public OpKernel {
 public:
  ConvAttrs attrs;
  bool last = false;  // channels
  bool is_winograd = false;
  bool adds = false;
  bool addend_is_a = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, byte_tensor(run, 0));
    FOLIO_TRY(const Tensor* w, byte_tensor(run, 3));
    FOLIO_TRY(const Tensor* y_zero, byte_tensor(run, 7));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(8, DType::kInt32));
    const Shape image = last ? channels_first(x->shape()) : x->shape();
    FOLIO_TRY(const ConvSizes s, conv_sizes(attrs, image, w->shape(), b));
    FOLIO_TRY(const QuantScalar x_quant, quant_scalar(run, 1, 2, x->dtype()));
    FOLIO_TRY(const QuantScalar y_quant, quant_scalar(run, 6, 7, y_zero->dtype()));
    FOLIO_TRY(const Tensor* scales, run.tensor(4, DType::kFloat));
    FOLIO_TRY(const ByteZero scale_at, line_strides(*scales, 1, w->dim(0), ZeroAxis::kRows));
    FOLIO_TRY(Tensor * y, run.output(0, y_zero->dtype(), last ? channels_last(s.out) : s.out));
    if (y->count() == 0) return Status::ok();
    if (s.c_in == 0) return invalid_argument("X ", x->shape().to_string(), " has no channels");
    FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(w->dim(0)) * sizeof(float)));
    auto* factors = reinterpret_cast<float*>(memory);
    const auto* binary = run.kernels().binary_f32;
    const int64_t channels = w->dim(0);
    binary[kFolioMul](channels, &x_quant.scale, 0, scales->data<float>(), scale_at.row_stride,
                      factors);
    binary[kFolioDiv](channels, factors, 1, &y_quant.scale, 0, factors);
    ByteConv conv;
    conv.x = x;
    conv.x_zero = x_quant.zero;
    conv.w = w;
    conv.w_input = 3;
    conv.is_winograd = is_winograd;
    FOLIO_TRY(conv.w_zero, byte_zero(run, 5, w->dtype(), 1, w->dim(0), ZeroAxis::kRows));
    conv.bias = b ? b->data<int32_t>() : nullptr;
    conv.channels_last = last;
    conv.sums.to = kFolioToByte;
    conv.sums.scale = factors;
    conv.sums.zero = y_quant.zero;
    conv.sums.lo = y->dtype() == DType::kInt8 ? -128 : 0;
    conv.sums.hi = conv.sums.lo + 255;
    conv.y = y->raw_mut();
    FolioByteAdd add;
    if (adds) {
      FOLIO_TRY(add, read_add(run, y->dtype()));
      FOLIO_TRY(const Tensor* z, run.tensor(9, y->dtype()));
      if (!(z->shape() == y->shape())) {
        return invalid_argument("z ", z->shape().to_string(), " must have the result's shape ",
                                y->shape().to_string());
      }
      conv.sums.add = &add;
      conv.sums.addend = z->raw();
    }
    return run_byte_conv(run, s, conv);
  }

 private:
  Result<FolioByteAdd> read_add(const OpRun& run, DType dtype) const {
    FOLIO_TRY(const QuantScalar a, quant_scalar(run, 10, 11, dtype));
    FOLIO_TRY(const QuantScalar b, quant_scalar(run, 12, 13, dtype));
    FOLIO_TRY(const QuantScalar to, quant_scalar(run, 14, 15, dtype));
    return FolioByteAdd{byte_scale(a, dtype), byte_scale(b, dtype), byte_scale(to, dtype),
                        addend_is_a ? 1 : 0};
  }
};

// ---------------------------------------------------------------- registration

// Asks for the weights at `input`; true: by Winograd's algorithm.
Result<bool> request_weights(OpBuild& build, int input, const ConvAttrs& attrs, bool last) {
  FOLIO_TRY(const int64_t winograd, build.attrs().get_int("winograd", 0));
  if (winograd != 0 && last) {
    FOLIO_RETURN_IF_ERROR(request_winograd_bytes(build, input, attrs));
    return true;
  }
  request_byte_conv(build, input, attrs.group);
  return false;
}

Result<std::unique_ptr<OpKernel>> make_integer(OpBuild& build) {
  auto kernel = std::make_unique<ConvInteger>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  kernel->to_float = build.node().op_type == "ConvIntegerToFloat";
  if (kernel->to_float) {
    FOLIO_TRY(const int64_t last, build.attrs().get_int("channels_last", 0));
    kernel->last = last != 0;
  }
  FOLIO_TRY(kernel->is_winograd, request_weights(build, 1, kernel->attrs, kernel->last));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Result<std::unique_ptr<OpKernel>> make_qlinear(OpBuild& build) {
  auto kernel = std::make_unique<QLinearConv>();
  FOLIO_TRY(kernel->attrs, parse_conv(build.attrs()));
  FOLIO_TRY(const int64_t last, build.attrs().get_int("channels_last", 0));
  kernel->last = last != 0;
  kernel->adds = build.node().op_type == "QLinearConvAdd";
  FOLIO_TRY(const int64_t addend_is_a, build.attrs().get_int("addend_is_a", 0));
  kernel->addend_is_a = addend_is_a != 0;
  FOLIO_TRY(kernel->is_winograd, request_weights(build, 3, kernel->attrs, kernel->last));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

// With the attribute channels_last.
Status infer_either(OpInfer& infer, DType dtype, int w_input) {
  FOLIO_TRY(const int64_t last, infer.attrs().get_int("channels_last", 0));
  if (last == 0) return infer_conv(infer, dtype, 0, w_input);
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(w_input);
  infer.set_tensor(0, dtype);
  if (!x || !w || x->size() < 3) return Status::ok();
  if (w->size() != x->size()) {
    return invalid_graph("X ", type_to_string(infer.input(0)), " and W ",
                         type_to_string(infer.input(w_input)), " must have the same rank");
  }
  Dims first = *x;
  std::rotate(first.begin() + 1, first.end() - 1, first.end());
  FOLIO_TRY(Dims out, conv_out_dims(infer.attrs(), infer.table(), first, *w));
  std::rotate(out.begin() + 1, out.begin() + 2, out.end());
  infer.set_tensor(0, dtype, std::move(out));
  return Status::ok();
}

Status infer_qlinear(OpInfer& infer) { return infer_either(infer, infer.dtype(7), 3); }

}  // namespace

[[gnu::cold]] void register_qlinear_conv(OpRegistry& registry) {
  registry.add({.domain = "",
                .type = "ConvInteger",
                .since = 10,
                .min_inputs = 2,
                .max_inputs = 4,
                .infer = [](OpInfer& i) { return infer_conv(i, DType::kInt32, 0, 1); },
                .make = make_integer});
  registry.add({.domain = "folio",
                .type = "ConvIntegerToFloat",
                .min_inputs = 5,
                .max_inputs = 6,
                .infer = [](OpInfer& i) { return infer_either(i, DType::kFloat, 1); },
                .make = make_integer,
                .optional_inputs = 1U << 2 | 1U << 3});  // the zero points
  constexpr uint32_t kZeros = 1U << 2 | 1U << 5;         // that are 0 need not be there
  for (const std::string_view domain : {"", "com.microsoft"}) {
    registry.add({.domain = domain,
                  .type = "QLinearConv",
                  .since = domain.empty() ? 10 : 1,
                  .min_inputs = 8,
                  .max_inputs = 9,
                  .infer = infer_qlinear,
                  .make = make_qlinear,
                  .optional_inputs = kZeros,
                  .float_inputs = 0b1010010});
  }
  registry.add({.domain = "folio",
                .type = "QLinearConvAdd",
                .min_inputs = 15,
                .max_inputs = 16,
                .infer = infer_qlinear,
                .make = make_qlinear,
                .optional_inputs = kZeros | 1U << 8});  // B
}

}  // namespace folio
