#include "core/ops/op_pool.h"

#include <algorithm>

namespace folio {

Result<PoolAttrs> parse_pool(const Attributes& attrs, PoolKind kind, bool global) {
  PoolAttrs out;
  out.kind = kind;
  out.global = global;
  if (!global) {
    FOLIO_TRY(out.window, parse_window(attrs));
    if (out.window.kernel.empty()) {
      return invalid_graph("attribute 'kernel_shape' is required but missing");
    }
  }
  FOLIO_TRY(const int64_t count_pad, attrs.get_int("count_include_pad", 0));
  FOLIO_TRY(const int64_t storage_order, attrs.get_int("storage_order", 0));
  out.count_pad = count_pad != 0;
  out.column_major = storage_order != 0;
  if (kind != PoolKind::kLp) return out;
  // Version 1 had a float p.
  const AttributeDef* p = attrs.find("p");
  if (p && p->type == AttributeDef::Type::kFloat) {
    out.p = static_cast<int64_t>(std::clamp(p->floats.empty() ? 2.0F : p->floats[0], 1.0F, 1e6F));
  } else {
    FOLIO_TRY(out.p, attrs.get_int("p", 2));
  }
  if (out.p < 1) return invalid_graph("attribute 'p' is ", out.p);
  return out;
}

Result<Window> pool_window(const PoolAttrs& attrs, const Shape& x) {
  if (x.rank() < 2) return invalid_argument("input ", x.to_string(), " has too few dims");
  if (!attrs.global) return make_window(attrs.window, x, attrs.window.kernel);
  // A global pool sees any number of spatial dims as one row.
  Window w;
  w.rank = x.rank() - 2;
  if (w.rank > kSpatial) return not_implemented("global pooling of ", x.to_string());
  w.in[2] = w.kernel[2] = x.product(2, x.rank());
  if (w.in[2] == 0) return invalid_argument("input ", x.to_string(), " has an empty spatial dim");
  return w;
}

int64_t pool_divisor(const PoolAttrs& attrs, const Window& w, int axis, const WindowTaps& taps) {
  if (!attrs.count_pad) return taps.to - taps.from;
  if (attrs.count_beyond) return w.kernel[axis];
  const int64_t room = w.in[axis] + w.pad_end[axis] - taps.first;
  return std::min(w.kernel[axis], (room + w.dilation[axis] - 1) / w.dilation[axis]);
}

int64_t pool_divisor(const PoolAttrs& attrs, const Window& w, const WindowTaps taps[]) {
  int64_t count = 1;
  for (int d = 0; d < kSpatial; ++d) count *= pool_divisor(attrs, w, d, taps[d]);
  return std::max<int64_t>(count, 1);
}

Result<Dims> pool_out_dims(const Attributes& from, DimTable& table, const Dims& x, bool global) {
  FOLIO_TRY(const WindowAttrs attrs, parse_window(from));
  const size_t rank = x.size() - 2;
  if (!global && attrs.kernel.size() != rank) {
    return invalid_graph("kernel_shape has ", attrs.kernel.size(), " entries, the input ",
                         dims_to_string(x), " ", rank, " spatial dims");
  }
  Dims out{x[0], x[1]};
  for (size_t axis = 0; axis < rank; ++axis) {
    out.push_back(global
                      ? Dim::of(1)
                      : window_out_dim(attrs, table, x[axis + 2], attrs.kernel[axis], axis, rank));
  }
  return out;
}

Status infer_pool(OpInfer& infer, bool global, bool channels_last) {
  const Dims* given = infer.dims_of(0);
  std::optional<Dims> x;
  if (given) x = *given;
  if (x && x->size() >= 2 && channels_last) {
    std::rotate(x->begin() + 1, x->end() - 1, x->end());
  }
  std::optional<Dims> out;
  if (x && x->size() >= 2) {
    FOLIO_TRY(out, pool_out_dims(infer.attrs(), infer.table(), *x, global));
  }
  if (out && channels_last) std::rotate(out->begin() + 1, out->begin() + 2, out->end());
  infer.set_tensor(0, infer.dtype(0), out);
  infer.set_tensor(1, DType::kInt64, std::move(out));
  return Status::ok();
}

}  // namespace folio
