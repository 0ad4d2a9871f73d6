#include "core/ops/op_reduce.h"

namespace folio {

Result<bool> keeps_dims(const Attributes& attributes) {
  FOLIO_TRY(const int64_t keep, attributes.get_int("keepdims", 1));
  return keep == 1;
}

void ReduceLoop::push_outer(int64_t dim, int64_t stride) {
  for (int i = rank; i > 0; --i) {
    dims[i] = dims[i - 1];
    strides[i] = strides[i - 1];
  }
  dims[0] = dim;
  strides[0] = stride;
  ++rank;
  count *= dim;
}

int64_t ReduceLoop::offset(int64_t index) const {
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; --d) {
    offset += index % dims[d] * strides[d];
    index /= dims[d];
  }
  return offset;
}

ReducePlan plan_reduce(const Shape& shape, const bool* reduce, bool keep_dims) {
  ReducePlan plan;
  for (int i = 0; i < shape.rank(); ++i) {
    if (reduce[i]) plan.reduced_count *= shape[i];
    if (!reduce[i]) {
      plan.out.push_back(shape[i]);
    } else if (keep_dims) {
      plan.out.push_back(1);
    }
  }
  // Groups from the inside out; the first stays as `inner`.
  int64_t stride = 1;
  int64_t group = 1;
  int64_t group_stride = 1;
  bool group_reduced = false;
  bool is_first = true;
  const auto close = [&] {
    if (is_first) {
      plan.inner = group;
      plan.inner_reduced = group_reduced;
      is_first = false;
    } else {
      (group_reduced ? plan.reduced : plan.kept).push_outer(group, group_stride);
    }
  };
  bool is_open = false;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (is_open && reduce[i] == group_reduced) {
      group *= shape[i];
    } else {
      if (is_open) close();
      group = shape[i];
      group_stride = stride;
      group_reduced = reduce[i];
      is_open = true;
    }
    stride *= shape[i];
  }
  if (is_open) close();
  return plan;
}

}  // namespace folio
