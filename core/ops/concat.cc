// Concat: tensors one after the other along an axis.
//
// Source: ONNX operator spec, Concat, opsets 1 (axis is 1 by default), 4 (required), 11, 13.
// Shapes: all inputs agree in rank and in every dim but the axis, whose dims are added. Those
//         known to be empty, among others, need not: PyTorch and ONNX Runtime join [0] and [2,3].
// Types:  all types but those of 2 and 4 bits.
// Errors: kInvalidArgument when types, ranks or dims differ, or the axis is outside.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<int64_t> axis_of(const Attributes& attrs, int version) {
  return version < 4 ? attrs.get_int("axis", 1) : attrs.get_int("axis");
}

bool is_empty(const Dims& dims) {
  return std::find(dims.begin(), dims.end(), Dim::of(0)) != dims.end();
}

// In every run.
bool do_not_fit(const Dims& a, const Dims& b, int axis) {
  if (a.size() != b.size()) return true;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool differ = a[i].is_value() && b[i].is_value() && a[i].value != b[i].value;
    if (differ && static_cast<int>(i) != axis) return true;
  }
  return false;
}

// [k]: input k, of dims_of(k) or null, is empty, fits nothing else, and is left out.
template <typename DimsOf>
std::vector<bool> inputs_left_out(int count, int64_t axis, const DimsOf& dims_of) {
  std::vector<bool> left_out(static_cast<size_t>(count));
  const Dims* lead = nullptr;
  for (int k = 0; k < count && !lead; ++k) {
    const Dims* dims = dims_of(k);
    if (dims && !is_empty(*dims)) lead = dims;
  }
  if (!lead) return left_out;
  const Result<int> at = normalize_axis(axis, static_cast<int>(lead->size()));
  for (int k = 0; k < count && at.is_ok(); ++k) {
    const Dims* dims = dims_of(k);
    left_out[static_cast<size_t>(k)] =
        dims && is_empty(*dims) && do_not_fit(*dims, *lead, at.value());
  }
  return left_out;
}

constexpr int64_t kHeldBytes = 64 * 1024;

class Concat final : public OpKernel {
 public:
  Concat(int64_t axis, const std::vector<bool>& left_out) : axis_(axis) {
    for (size_t k = 0; k < left_out.size(); ++k) {
      if (!left_out[k]) joined_.push_back(static_cast<int>(k));
    }
  }

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* first, run.tensor(0));
    for (int k = 1; k < run.input_count(); ++k) {
      FOLIO_RETURN_IF_ERROR(run.tensor(k, first->dtype()).status());
    }
    FOLIO_TRY(const Tensor* lead, run.tensor(joined_[0]));
    FOLIO_TRY(const int axis, normalize_axis(axis_, lead->rank()));
    Shape shape = lead->shape();
    shape[axis] = 0;
    for (const int k : joined_) {
      FOLIO_TRY(const Tensor* x, run.tensor(k));
      Shape same = x->shape();
      if (same.rank() == shape.rank()) same[axis] = lead->dim(axis);
      if (!(same == lead->shape())) {
        return invalid_argument("input ", k, " is ", x->shape().to_string(),
                                ", which does not fit ", lead->shape().to_string(), " along axis ",
                                axis);
      }
      if (!checked_add(shape[axis], x->dim(axis), &shape[axis])) {
        return invalid_argument("the joined dim overflows");
      }
    }
    FOLIO_TRY(Tensor * out, run.output(0, lead->dtype(), shape));
    if (out->count() == 0) return Status::ok();
    return dispatch_move(out->dtype(), [&](auto tag) {
      join<typename decltype(tag)::type>(run, axis, out);
      return Status::ok();
    });
  }

 private:
  // Some rows of the output at a time, which stay in the cache until all inputs are in them; so
  // many that what the first input touches is there before the last one comes.
  template <typename T>
  void join(OpRun& run, int axis, Tensor* out) const {
    const Shape& shape = out->shape();
    const int64_t outer = shape.product(0, axis);
    const int64_t inner = shape.product(axis + 1, shape.rank());
    const int64_t row = shape[axis] * inner;
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const int64_t held = std::max<int64_t>(1, kHeldBytes / kSize / row);
    const int64_t parts = (outer + held - 1) / held;
    const int64_t grain = std::max<int64_t>(1, rows_per_task(row) / held);
    run.parallel().for_range(parts, grain, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        const int64_t first = part * held;
        const int64_t count = std::min(held, outer - first);
        T* to = out->data_mut<T>() + first * row;
        for (const int k : joined_) {
          const Tensor& x = run.value(k).tensor();
          const int64_t block = x.dim(axis) * inner;
          move_runs(to, row, element_at<T>(x.raw(), first * block), block, block, count);
          to += block;
        }
      }
    });
  }

  int64_t axis_;
  std::vector<int> joined_;  // numbers of inputs, of one at least
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
  const std::vector<bool> left_out =
      inputs_left_out(infer.input_count(), given, [&](int k) { return infer.dims_of(k); });
  std::optional<Dims> out;
  bool all_known = true;
  for (int k = 0; k < infer.input_count(); ++k) {
    if (left_out[static_cast<size_t>(k)]) continue;
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
  const auto dims_of = [&](int k) {
    const std::optional<Dims>& dims = build.input(k).dims;
    return dims ? &*dims : nullptr;
  };
  return std::unique_ptr<OpKernel>(
      std::make_unique<Concat>(axis, inputs_left_out(build.input_count(), axis, dims_of)));
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
