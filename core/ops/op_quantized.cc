#include "core/ops/op_quantized.h"

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
