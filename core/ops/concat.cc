// Concat: tensors one after the other along an axis.
//
// Source: ONNX operator spec, Concat, opsets 1 (axis is 1 by default), 4 (required), 11, 13.
// Shapes: all inputs agree in rank and in every dim but the axis, whose dims are added.
// Types:  all types but those of 2 and 4 bits.
// Errors: kInvalidArgument when types, ranks or dims differ, or the axis is outside.
#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<int64_t> axis_of(const Attributes& attrs, int version) {
  return version < 4 ? attrs.get_int("axis", 1) : attrs.get_int("axis");
}

constexpr int64_t kHeldElements = 4096;

class Concat final : public OpKernel {
 public:
  explicit Concat(int64_t axis) : axis_(axis) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* first, run.tensor(0));
    FOLIO_TRY(const int axis, normalize_axis(axis_, first->rank()));
    Shape shape = first->shape();
    for (int k = 1; k < run.input_count(); ++k) {
      FOLIO_TRY(const Tensor* x, run.tensor(k, first->dtype()));
      Shape same = x->shape();
      if (same.rank() == shape.rank()) same[axis] = first->dim(axis);
      if (!(same == first->shape())) {
        return invalid_argument("input ", k, " is ", x->shape().to_string(),
                                ", which does not fit ", first->shape().to_string(), " along axis ",
                                axis);
      }
      if (!checked_add(shape[axis], x->dim(axis), &shape[axis])) {
        return invalid_argument("the joined dim overflows");
      }
    }
    FOLIO_TRY(Tensor * out, run.output(0, first->dtype(), shape));
    if (out->count() == 0) return Status::ok();
    return dispatch_move(out->dtype(), [&](auto tag) {
      join<typename decltype(tag)::type>(run, axis, out);
      return Status::ok();
    });
  }

 private:
  // Some rows of the output at a time, which stay in the cache until all inputs are in them.
  template <typename T>
  static void join(OpRun& run, int axis, Tensor* out) {
    const Shape& shape = out->shape();
    const int64_t outer = shape.product(0, axis);
    const int64_t inner = shape.product(axis + 1, shape.rank());
    const int64_t row = shape[axis] * inner;
    const int64_t held = std::max<int64_t>(1, kHeldElements / row);
    const int64_t parts = (outer + held - 1) / held;
    const int64_t grain = std::max<int64_t>(1, rows_per_task(row) / held);
    run.parallel().for_range(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * held;
        const int64_t count = std::min(held, outer - first);
        T* to = out->data_mut<T>() + first * row;
        for (int k = 0; k < run.input_count(); ++k) {
          const Tensor& x = run.value(k).tensor();
          const int64_t block = x.dim(axis) * inner;
          move_runs(to, row, element_at<T>(x.raw(), first * block), block, block, count);
          to += block;
        }
      }
    });
  }

  int64_t axis_;
};

// Joined contents, when all inputs are lists of known length.
void join_data(OpInfer& infer) {
  std::vector<Dim> joined;
  for (int k = 0; k < infer.input_count(); ++k) {
    const Dims* dims = infer.dims_of(k);
    if (!dims || dims->size() != 1) return;
    if (const auto data = infer.data(k)) {
      joined.insert(joined.end(), data->begin(), data->end());
    } else if ((*dims)[0].is_value() && (*dims)[0].value <= kMaxRank) {
      joined.insert(joined.end(), static_cast<size_t>((*dims)[0].value), Dim::unknown());
    } else {
      return;
    }
  }
  const DType dtype = infer.dtype(0);
  if (dtype == DType::kInt64 || dtype == DType::kInt32) infer.set_data(0, std::move(joined));
}

Status infer_concat(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, axis_of(infer.attrs(), infer.version()));
  std::optional<Dims> out;
  bool all_known = true;
  for (int k = 0; k < infer.input_count(); ++k) {
    const Dims* x = infer.dims_of(k);
    if (!x) {
      all_known = false;
      continue;
    }
    FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(x->size())));
    if (!out) {
      out = *x;
      continue;
    }
    if (out->size() != x->size()) {
      return invalid_graph("input ", k, " has rank ", x->size(), ", expected ", out->size());
    }
    for (size_t i = 0; i < x->size(); ++i) {
      Dim& dim = (*out)[i];
      if (static_cast<int>(i) == axis) {
        dim = infer.table().add(dim, (*x)[i]);
      } else if (dim.is_value() && (*x)[i].is_value() && dim.value != (*x)[i].value) {
        return invalid_graph("input ", k, " has dim ", (*x)[i].value, " at ", i, ", expected ",
                             dim.value);
      } else if ((*x)[i].is_value() || dim.is_unknown()) {
        dim = (*x)[i];  // they must be equal, and a number says most
      }
    }
  }
  if (out && !all_known) {
    FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(out->size())));
    (*out)[static_cast<size_t>(axis)] = Dim::unknown();
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  join_data(infer);
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_concat(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, axis_of(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<Concat>(axis));
}

}  // namespace

[[gnu::cold]] void register_concat(OpRegistry& registry) {
  OpDef def;
  def.type = "Concat";
  def.keeps_half = true;
  def.is_exact = true;
  def.max_inputs = kVariadic;
  def.infer = infer_concat;
  def.make = make_concat;
  def.unaligned_inputs = 0xffffffff;
  registry.add(def);
}

}  // namespace folio
