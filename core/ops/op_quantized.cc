#include "core/ops/op_quantized.h"

#include <cstring>

#include "core/ops/op_gemm.h"

namespace folio {
namespace {

Result<ScalePlan> plan_blocks(const Shape& data, const Shape& scale, int axis, int64_t block_size) {
  if (scale.rank() != data.rank()) {
    return invalid_argument("the scale has ", scale.rank(), " dims, but blocks need the ",
                            data.rank(), " of the data");
  }
  ScalePlan plan;
  plan.mode = ScalePlan::Mode::kBlocks;
  plan.axis_dim = data[axis];
  plan.block = std::min(block_size, std::max<int64_t>(1, plan.axis_dim));
  plan.blocks = plan.axis_dim == 0 ? 0 : (plan.axis_dim - 1) / plan.block + 1;
  plan.inner = data.product(axis + 1, data.rank());
  for (int i = 0; i < data.rank(); ++i) {
    const int64_t expected = i == axis ? plan.blocks : data[i];
    if (scale[i] != expected) {
      return invalid_argument("scale shape ", scale.to_string(), " does not fit data ",
                              data.to_string(), " in blocks of ", block_size, " along axis ", axis);
    }
  }
  const int64_t outer = data.product(0, axis);
  plan.rows = outer * (plan.inner == 1 ? plan.blocks : plan.axis_dim);
  plan.row = plan.inner == 1 ? plan.block : plan.inner;
  plan.step = plan.inner == 1 ? 0 : 1;
  return plan;
}

}  // namespace

Result<const float*> as_floats(OpRun& run, int input, const Tensor& tensor) {
  if (tensor.dtype() == DType::kFloat) return tensor.data<float>();
  if (tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBfloat16) {
    FOLIO_TRY(const float* wide, widen_half(run, tensor));
    return wide;
  }
  if (tensor.dtype() != DType::kInt32) return wrong_type(input, tensor.dtype());
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(tensor.count()) * sizeof(float)));
  auto* wide = reinterpret_cast<float*>(memory);
  for (int64_t i = 0, end = tensor.count(); i < end; ++i) {
    wide[i] = static_cast<float>(tensor.data<int32_t>()[i]);
  }
  return static_cast<const float*>(wide);
}

Result<QuantScalar> quant_scalar(const OpRun& run, int scale, int zero, DType dtype) {
  QuantScalar out;
  FOLIO_TRY(const Tensor* scale_tensor, run.tensor(scale, DType::kFloat));
  if (scale_tensor->count() != 1) {
    return invalid_argument("the scale, input ", scale, ", has shape ",
                            scale_tensor->shape().to_string(), ", expected one element");
  }
  out.scale = *scale_tensor->data<float>();
  if (!run.has_input(zero)) return out;
  FOLIO_TRY(const Tensor* zero_tensor, run.tensor(zero, dtype));
  if (zero_tensor->count() != 1) {
    return invalid_argument("the zero point, input ", zero, ", has shape ",
                            zero_tensor->shape().to_string(), ", expected one element");
  }
  out.zero = byte_at(*zero_tensor, 0);
  return out;
}

QuantScalar dynamic_quant(OpRun& run, int64_t count, const float* x) {
  using Byte = QuantizedType<DType::kUint8, 8, false>;
  constexpr int64_t kMostParts = 64;
  constexpr int64_t kPart = 8 * 1024;  // read twice, the second time from the first cache
  const int64_t parts = std::clamp<int64_t>((count + kPart - 1) / kPart, 1, kMostParts);
  float low[kMostParts];
  float high[kMostParts];
  run.parallel().for_range(parts, 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = count * p / parts;
      const int64_t size = count * (p + 1) / parts - first;
      // An empty tensor's extremes are +inf and -inf.
      low[p] = run.kernels().min_f32(size, x + first);
      high[p] = run.kernels().max_f32(size, x + first);
    }
  });
  // NaN anywhere, and both extremes are NaN: 0 then.
  const float least = run.kernels().min_f32(parts, low);
  const float most = run.kernels().max_f32(parts, high);
  const float lo = std::min(0.0f, least);
  const float hi = std::max(0.0f, most);
  QuantScalar out;
  out.scale = hi == lo ? 1.0f : (hi - lo) / 255.0f;
  out.zero = quantize_one<Byte>(-lo, out.scale, 0);
  return out;
}

void quantize_bytes(OpRun& run, int64_t count, const float* x, QuantScalar to, DType dtype,
                    uint8_t* y) {
  const FolioByteScale scale = byte_scale(to, dtype);
  run.parallel().for_range(count, kElementGrain, [&](int64_t begin, int64_t end) {
    run.kernels().quantize_f32(end - begin, x + begin, &scale, y + begin);
  });
}

Result<const Tensor*> byte_tensor(const OpRun& run, int i) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  if (!is_byte(tensor->dtype())) return wrong_type(i, tensor->dtype());
  return tensor;
}

Result<ScalePlan> plan_scales(const Shape& data, const Shape& scale, int64_t axis,
                              int64_t block_size) {
  ScalePlan plan;
  if (block_size < 0) return invalid_argument("block_size is ", block_size, ", expected 0 or more");
  if (block_size == 0 && scale.count() == 1 && scale.rank() <= 1) {
    plan.row = data.count();
    return plan;
  }
  FOLIO_TRY(const int at, normalize_axis(axis, data.rank()));
  if (block_size > 0) return plan_blocks(data, scale, at, block_size);
  if (scale.rank() != 1 || scale[0] != data[at]) {
    return invalid_argument("scale shape ", scale.to_string(), " is neither a scalar nor [",
                            data[at], "], the data's dim ", at);
  }
  plan.mode = ScalePlan::Mode::kAxis;
  plan.axis_dim = data[at];
  plan.inner = data.product(at + 1, data.rank());
  const int64_t outer = data.product(0, at);
  plan.rows = plan.inner == 1 ? outer : outer * plan.axis_dim;
  plan.row = plan.inner == 1 ? plan.axis_dim : plan.inner;
  plan.step = plan.inner == 1 ? 1 : 0;
  return plan;
}

}  // namespace folio
