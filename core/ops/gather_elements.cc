// GatherElements, ScatterElements and Scatter: one index for each element.
//
// Source: ONNX operator spec, GatherElements, opsets 11, 13; Scatter, opset 9 (the same as
//         ScatterElements, deprecated in 11); ScatterElements, opsets 11, 13, 16 (reduction), 18
//         (max, min).
// Shapes: indices and updates have x's rank and no dim above x's, except along the axis.
// Math:   GatherElements: y[i][j][k] = x[indices[i][j][k]][j][k] for axis 0; ScatterElements: y is
//         x, then y[indices[i][j][k]][j][k] meets updates[i][j][k], in order.
// Types:  GatherElements: all types but those of 2 and 4 bits; indices int32, int64.
//         ScatterElements, Scatter: all types but those of 2 and 4 bits, with a reduction all
//         numbers, float16 and bfloat16 in float; indices int32, int64.
// Errors: kInvalidArgument when an index is outside [-n, n), or dims do not fit.
#include "core/ops/op_registry.h"
#include "core/ops/op_scatter.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

// Rows of an index tensor and where they lie in the data.
struct Rows {
  int rank = 0;  // of what is outside a row
  int64_t count = 0;
  int64_t length = 0;  // indices in a row
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // of the data; 0 along the axis
  int64_t step = 0;                // of the data along the row; 0 when that is the axis
  int64_t axis_stride = 0;
  int64_t axis_dim = 0;
};

Result<Rows> plan_rows(const Tensor& x, const Tensor& indices, int axis) {
  bool fits = x.rank() == indices.rank() && x.rank() > 0;
  for (int i = 0; fits && i < x.rank(); ++i) {
    fits = i == axis || indices.dim(i) <= x.dim(i);
  }
  if (!fits) {
    return invalid_argument("indices are ", indices.shape().to_string(), ", which does not fit ",
                            x.shape().to_string(), " along axis ", axis);
  }
  int64_t strides[kMaxRank];
  row_strides(x.shape(), strides);
  Rows rows;
  rows.rank = x.rank() - 1;
  rows.length = indices.dim(rows.rank);
  rows.count = rows.length == 0 ? 0 : indices.count() / rows.length;
  for (int i = 0; i < rows.rank; ++i) {
    rows.dims[i] = indices.dim(i);
    rows.strides[i] = i == axis ? 0 : strides[i];
  }
  rows.step = axis == rows.rank ? 0 : 1;
  rows.axis_stride = strides[axis];
  rows.axis_dim = x.dim(axis);
  return rows;
}

// All indices as offsets from the first element along the axis.
Result<std::vector<int64_t>> offsets_of(OpRun& run, int i, const Rows& rows) {
  FOLIO_TRY(std::vector<int64_t> indices, run.ints(i));
  for (int64_t& index : indices) {
    const int64_t given = index;
    if (!wrap_index(&index, rows.axis_dim)) {
      return invalid_argument("index ", given, " is outside an axis of ", rows.axis_dim);
    }
    index *= rows.axis_stride;
  }
  return indices;
}

// Whether all are in [-n, n). Blocks of a length that a compiler knows, whose sums have a sign
// where one is not: it turns them into vectors.
template <typename I>
bool all_inside(int64_t count, const I* indices, int64_t n) {
  constexpr int64_t kBlock = 8;
  const auto dim = static_cast<uint64_t>(n);
  const auto outside = [&](I index) {
    const auto i = static_cast<uint64_t>(static_cast<int64_t>(index));
    return (i + dim) | (dim - 1 - i);
  };
  uint64_t signs[kBlock] = {};
  int64_t at = 0;
  for (; at + 2 * kBlock <= count; at += 2 * kBlock) {
    const I* block = indices + at;
    for (int64_t j = 0; j < kBlock; ++j) {
      signs[j] |= outside(block[j]) | outside(block[j + kBlock]);
    }
  }
  for (; at < count; ++at) signs[0] |= outside(indices[at]);
  uint64_t sign = 0;
  for (const uint64_t each : signs) sign |= each;
  return static_cast<int64_t>(sign) >= 0;
}

class GatherElements final : public OpKernel {
 public:
  explicit GatherElements(int64_t axis) : axis_(axis) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    FOLIO_TRY(const Rows rows, plan_rows(*x, *where, axis));
    if (where->dtype() == DType::kInt32) return gather_by<int32_t>(run, rows, *x, *where);
    if (where->dtype() == DType::kInt64) return gather_by<int64_t>(run, rows, *x, *where);
    return wrong_type(1, where->dtype());
  }

 private:
  template <typename I>
  static Status gather_by(OpRun& run, const Rows& rows, const Tensor& x, const Tensor& where) {
    const I* indices = where.data<I>();
    if (!all_inside(where.count(), indices, rows.axis_dim)) {
      return offsets_of(run, 1, rows).status();  // says which
    }
    FOLIO_TRY(Tensor * y, run.output(0, x.dtype(), where.shape()));
    if (y->count() == 0) return Status::ok();
    return dispatch_move(x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      gather(run, rows, indices, x.data<T>(), y->data_mut<T>());
      return Status::ok();
    });
  }

  // An index that changes after it was looked at (of a caller's tensor) reads some element.
  template <typename I, typename T>
  static void gather(OpRun& run, const Rows& rows, const I* indices, const T* x, T* y) {
    const int64_t n = rows.length;
    const auto dim = static_cast<uint64_t>(rows.axis_dim);
    const int64_t stride = rows.axis_stride;
    const int64_t step = rows.step;
    run.parallel().for_range(rows.count, rows_per_task(n), [&](int64_t begin, int64_t end) {
      Odometer<1> at(rows.rank, rows.dims, {rows.strides});
      at.seek(begin);
      for (int64_t row = begin; row < end; ++row, at.advance()) {
        const T* from = x + at.offset();
        const I* index = indices + row * n;
        T* to = y + row * n;
        for (int64_t j = 0; j < n; ++j) {
          uint64_t i = static_cast<uint64_t>(static_cast<int64_t>(index[j]));
          i += static_cast<int64_t>(i) < 0 ? dim : 0;
          i = i < dim ? i : 0;
          to[j] = from[static_cast<int64_t>(i) * stride + j * step];
        }
      }
    });
  }

  int64_t axis_;
};

class ScatterElements final : public OpKernel {
 public:
  ScatterElements(int64_t axis, ScatterReduction reduction) : axis_(axis), reduction_(reduction) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* where, run.tensor(1));
    FOLIO_TRY(const Tensor* updates, run.tensor(2, x->dtype()));
    FOLIO_TRY(const int axis, normalize_axis(axis_, x->rank()));
    if (!(updates->shape() == where->shape())) {
      return invalid_argument("updates are ", updates->shape().to_string(), ", indices ",
                              where->shape().to_string());
    }
    FOLIO_TRY(const Rows rows, plan_rows(*x, *where, axis));
    FOLIO_TRY(const std::vector<int64_t> offsets, offsets_of(run, 1, rows));
    FOLIO_RETURN_IF_ERROR(copy_to_output(run, 0, *x));
    Tensor* y = &run.outputs()[0].tensor();
    return dispatch_scatter(reduction_, x->dtype(), [&](auto update) {
      using T = typename decltype(update)::Element;
      const int64_t n = rows.length;
      Odometer<1> at(rows.rank, rows.dims, {rows.strides});
      at.seek(0);
      for (int64_t row = 0; row < rows.count; ++row, at.advance()) {
        T* to = y->template data_mut<T>() + at.offset();
        const T* from = updates->template data<T>() + row * n;
        const int64_t* offset = offsets.data() + row * n;
        for (int64_t j = 0; j < n; ++j) update(to + offset[j] + j * rows.step, from + j, 1);
      }
      return Status::ok();
    });
  }

 private:
  int64_t axis_;
  ScatterReduction reduction_;
};

Status check_axis(const OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  if (const Dims* x = infer.dims_of(0)) {
    return normalize_axis(axis, static_cast<int>(x->size())).status();
  }
  return Status::ok();
}

Status infer_gather(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(check_axis(infer));
  const Dims* where = infer.dims_of(1);
  infer.set_tensor(0, infer.dtype(0), where ? std::optional<Dims>(*where) : std::nullopt);
  return Status::ok();
}

Status infer_scatter(OpInfer& infer) {
  FOLIO_RETURN_IF_ERROR(check_axis(infer));
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_gather(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  return std::unique_ptr<OpKernel>(std::make_unique<GatherElements>(axis));
}

Result<std::unique_ptr<OpKernel>> make_scatter(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(const ScatterReduction reduction, scatter_reduction(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<ScatterElements>(axis, reduction));
}

}  // namespace

[[gnu::cold]] void register_gather_elements(OpRegistry& registry) {
  OpDef def;
  def.type = "GatherElements";
  def.keeps_half = true;
  def.since = 11;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_gather;
  def.make = make_gather;
  registry.add(def);
  def.type = "ScatterElements";
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer_scatter;
  def.make = make_scatter;
  registry.add(def);
  def.type = "Scatter";
  def.keeps_half = false;
  def.since = 9;
  registry.add(def);
}

}  // namespace folio
