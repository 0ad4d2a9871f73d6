// GatherND and ScatterND: an index of several axes for each slice.
//
// Source: ONNX operator spec, GatherND, opsets 11, 12 (batch_dims), 13; ScatterND, opsets 11, 13,
//         16 (reduction), 18 (max, min). GatherND of com.microsoft, version 1, is as opset 11.
// Shapes: indices [b.., q.., k], x [b.., (k axes), inner..] -> y [b.., q.., inner..]; ScatterND has
//         no batch dims, its updates are [q.., inner..] and its result is as x.
// Types:  GatherND: all types but those of 2 and 4 bits; indices int32, int64. ScatterND: all
//         types but those of 2 and 4 bits, with a reduction all numbers, float16 and bfloat16 in
//         float; indices int32, int64.
// Errors: kInvalidArgument when an index is outside [-n, n), or shapes do not fit.
#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scatter.h"

namespace folio {
namespace {

// Which slices of x the indices name.
struct Slices {
  int64_t count = 0;
  int64_t length = 0;     // elements of a slice
  int64_t per_batch = 1;  // slices
  int64_t batch_stride = 0;
  std::vector<int64_t> dims;  // of all slices stacked: [b.., q.., inner..]
  std::vector<int64_t> offsets;
};

// Each index tuple as the offset of its slice within its batch.
Status find_slices(std::vector<int64_t> indices, const Tensor& x, int batch, int depth,
                   Slices* out) {
  int64_t strides[kMaxRank];
  row_strides(x.shape(), strides);
  out->offsets.assign(static_cast<size_t>(out->count), 0);
  const int64_t* at = indices.data();
  for (int64_t& offset : out->offsets) {
    for (int i = batch; i < batch + depth; ++i) {
      int64_t index = *at++;
      const int64_t given = index;
      if (!wrap_index(&index, x.dim(i))) {
        return invalid_argument("index ", given, " is outside dim ", i, " of ",
                                x.shape().to_string());
      }
      offset += index * strides[i];
    }
  }
  return Status::ok();
}

Result<Slices> plan_slices(OpRun& run, const Tensor& x, int64_t batch_dims) {
  FOLIO_TRY(const Tensor* where, run.tensor(1));
  const int q = where->rank();
  if (q < 1 || x.rank() < 1 || batch_dims < 0 || batch_dims >= std::min<int64_t>(q, x.rank())) {
    return invalid_argument("indices of rank ", q, " with ", batch_dims,
                            " batch dims do not fit rank ", x.rank());
  }
  const auto batch = static_cast<int>(batch_dims);
  const int64_t depth = where->dim(q - 1);
  if (depth > x.rank() - batch) {
    return invalid_argument("the last dim of indices is ", depth, ", input 0 is ",
                            x.shape().to_string());
  }
  for (int i = 0; i < batch; ++i) {
    if (where->dim(i) != x.dim(i)) {
      return invalid_argument("indices are ", where->shape().to_string(), ", input 0 is ",
                              x.shape().to_string(), ": batch dim ", i, " differs");
    }
  }
  const int inner = batch + static_cast<int>(depth);
  Slices slices;
  slices.count = where->shape().product(0, q - 1);
  slices.length = x.shape().product(inner, x.rank());
  slices.batch_stride = x.shape().product(batch, x.rank());
  slices.per_batch = where->shape().product(batch, q - 1);
  slices.dims.assign(where->shape().begin(), where->shape().end() - 1);
  slices.dims.insert(slices.dims.end(), x.shape().begin() + inner, x.shape().end());
  // Indices of depth 0 take no memory, however many they are: the result must exist first.
  FOLIO_RETURN_IF_ERROR(shape_from(slices.dims).status());
  return slices;
}

class GatherND final : public OpKernel {
 public:
  explicit GatherND(int64_t batch_dims) : batch_dims_(batch_dims) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(Slices slices, plan_slices(run, *x, batch_dims_));
    FOLIO_TRY(const Shape shape, shape_from(slices.dims));
    FOLIO_TRY(std::vector<int64_t> indices, run.ints(1));
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    const Tensor& where = run.value(1).tensor();
    const auto depth = static_cast<int>(where.dim(where.rank() - 1));
    const auto batch = static_cast<int>(batch_dims_);
    FOLIO_RETURN_IF_ERROR(find_slices(std::move(indices), *x, batch, depth, &slices));
    return dispatch_move(x->dtype(), [&](auto tag) {
      gather<typename decltype(tag)::type>(run, slices, *x, y);
      return Status::ok();
    });
  }

 private:
  template <typename T>
  static void gather(OpRun& run, const Slices& slices, const Tensor& x, Tensor* y) {
    const int64_t n = slices.length;
    const T* from = x.data<T>();
    T* to = y->data_mut<T>();
    run.parallel().for_range(slices.count, rows_per_task(n), [&](int64_t begin, int64_t end) {
      int64_t batch = begin / slices.per_batch;
      int64_t left = slices.per_batch - begin % slices.per_batch;
      for (int64_t i = begin; i < end; ++i) {
        const T* slice =
            from + batch * slices.batch_stride + slices.offsets[static_cast<size_t>(i)];
        if (n == 1) {
          to[i] = *slice;
        } else {
          move_run(to + i * n, slice, n);
        }
        if (--left == 0) {
          ++batch;
          left = slices.per_batch;
        }
      }
    });
  }

  int64_t batch_dims_;
};

class ScatterND final : public OpKernel {
 public:
  explicit ScatterND(ScatterReduction reduction) : reduction_(reduction) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Tensor* updates, run.tensor(2, x->dtype()));
    FOLIO_TRY(Slices slices, plan_slices(run, *x, 0));
    FOLIO_TRY(const Shape shape, shape_from(slices.dims));
    if (!(updates->shape() == shape)) {
      return invalid_argument("updates are ", updates->shape().to_string(), ", expected ",
                              shape.to_string());
    }
    FOLIO_TRY(std::vector<int64_t> indices, run.ints(1));
    if (updates->count() == 0) return copy_to_output(run, 0, *x);
    const Tensor& where = run.value(1).tensor();
    const auto depth = static_cast<int>(where.dim(where.rank() - 1));
    FOLIO_RETURN_IF_ERROR(find_slices(std::move(indices), *x, 0, depth, &slices));
    // Only now, as y may stand where x does.
    FOLIO_RETURN_IF_ERROR(copy_to_output(run, 0, *x));
    Tensor* y = &run.outputs()[0].tensor();
    return dispatch_scatter(reduction_, x->dtype(), [&](auto update) {
      using T = typename decltype(update)::Element;
      const T* from = updates->template data<T>();
      T* to = y->template data_mut<T>();
      for (const int64_t offset : slices.offsets) {
        update(to + offset, from, slices.length);
        from += slices.length;
      }
      return Status::ok();
    });
  }

 private:
  ScatterReduction reduction_;
};

Result<int64_t> batch_dims_of(const Attributes& attrs, int version) {
  if (version < 12) return 0;
  return attrs.get_int("batch_dims", 0);
}

Status infer_gather(OpInfer& infer) {
  FOLIO_TRY(const int64_t batch, batch_dims_of(infer.attrs(), infer.version()));
  const Dims* x = infer.dims_of(0);
  const Dims* where = infer.dims_of(1);
  std::optional<Dims> out;
  if (x && where && !where->empty() && where->back().is_value()) {
    const auto rank = static_cast<int64_t>(x->size());
    const int64_t depth = where->back().value;
    if (batch < 0 || depth > rank || batch > rank - depth ||
        batch >= static_cast<int64_t>(where->size())) {
      return invalid_graph("indices with a last dim of ", depth, " and ", batch,
                           " batch dims do not fit rank ", rank);
    }
    out.emplace(where->begin(), where->end() - 1);
    out->insert(out->end(), x->begin() + batch + depth, x->end());
    if (out->size() > static_cast<size_t>(kMaxRank)) out.reset();
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Status infer_scatter(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_gather(OpBuild& build) {
  FOLIO_TRY(const int64_t batch, batch_dims_of(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<GatherND>(batch));
}

Result<std::unique_ptr<OpKernel>> make_scatter(OpBuild& build) {
  FOLIO_TRY(const ScatterReduction reduction, scatter_reduction(build.attrs(), build.version()));
  build.may_overwrite(0);
  return std::unique_ptr<OpKernel>(std::make_unique<ScatterND>(reduction));
}

}  // namespace

[[gnu::cold]] void register_gather_nd(OpRegistry& registry) {
  OpDef def;
  def.type = "GatherND";
  def.keeps_half = true;
  def.since = 11;
  def.min_inputs = def.max_inputs = 2;
  def.infer = infer_gather;
  def.make = make_gather;
  registry.add(def);
  OpDef contrib = def;
  contrib.domain = "com.microsoft";
  contrib.since = 1;
  registry.add(contrib);
  def.type = "ScatterND";
  def.min_inputs = def.max_inputs = 3;
  def.in_place = {0, -1, -1};
  def.infer = infer_scatter;
  def.make = make_scatter;
  registry.add(def);
}

}  // namespace folio
