// OneHot: an axis of `depth` where one element is on.
//
// Source: ONNX operator spec, OneHot, opsets 9, 11 (negative indices count from the end).
// Shapes: indices [a.., b..], depth a number, values [off, on] -> y [a.., depth, b..].
// Math:   what is no index of the axis turns nothing on; fractions are cut off.
// Types:  indices and depth: all numbers; values: all types but those of 2 and 4 bits.
#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<std::vector<int64_t>> whole_numbers(OpRun& run, int i) {
  FOLIO_TRY(const Tensor* tensor, run.tensor(i));
  std::vector<int64_t> out;
  const bool known = dispatch(NumericTypes{}, tensor->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out.reserve(static_cast<size_t>(tensor->count()));
    for (const T value : tensor->span<T>()) {
      if constexpr (std::is_integral_v<T>) {
        out.push_back(static_cast<int64_t>(value));
      } else {
        out.push_back(saturating_cast<int64_t>(static_cast<Compute<T>>(value)));
      }
    }
  });
  if (!known) return wrong_type(i, tensor->dtype());
  return out;
}

class OneHot final : public OpKernel {
 public:
  OneHot(int64_t axis, bool from_end) : axis_(axis), from_end_(from_end) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(std::vector<int64_t> indices, whole_numbers(run, 0));
    FOLIO_TRY(const std::vector<int64_t> depths, whole_numbers(run, 1));
    FOLIO_TRY(const Tensor* values, run.tensor(2));
    const Shape& in = run.value(0).tensor().shape();
    if (depths.size() != 1 || values->count() != 2) {
      return invalid_argument("depth has ", depths.size(), " elements and values ", values->count(),
                              ", expected 1 and 2");
    }
    if (in.rank() == kMaxRank) return not_implemented("a result of rank ", kMaxRank + 1);
    FOLIO_TRY(const int axis, normalize_axis(axis_, in.rank() + 1));
    const int64_t depth = depths[0];
    std::vector<int64_t> dims(in.begin(), in.end());
    dims.insert(dims.begin() + axis, depth);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, values->dtype(), shape));
    if (y->count() == 0) return Status::ok();
    const int64_t inner = shape.product(axis + 1, shape.rank());
    return dispatch_move(values->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* off_on = values->data<T>();
      T* to = y->data_mut<T>();
      std::fill_n(to, y->count(), off_on[0]);
      int64_t i = 0;
      for (int64_t outer = 0; i < static_cast<int64_t>(indices.size()); ++outer) {
        for (int64_t j = 0; j < inner; ++j, ++i) {
          int64_t index = indices[static_cast<size_t>(i)];
          if (index < 0 && !from_end_) continue;
          if (wrap_index(&index, depth)) to[(outer * depth + index) * inner + j] = off_on[1];
        }
      }
      return Status::ok();
    });
  }

 private:
  int64_t axis_;
  bool from_end_;  // negative indices mean something
};

Status infer_one_hot(OpInfer& infer) {
  FOLIO_TRY(const int64_t given, infer.attrs().get_int("axis", -1));
  const Dims* indices = infer.dims_of(0);
  std::optional<Dims> out;
  if (indices && indices->size() < static_cast<size_t>(kMaxRank)) {
    FOLIO_TRY(const int axis, normalize_axis(given, static_cast<int>(indices->size()) + 1));
    const auto depth = infer.data(1);
    out = *indices;
    out->insert(out->begin() + axis, depth && depth->size() == 1 ? (*depth)[0] : Dim::unknown());
  }
  infer.set_tensor(0, infer.dtype(2), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_one_hot(OpBuild& build) {
  FOLIO_TRY(const int64_t axis, build.attrs().get_int("axis", -1));
  return std::unique_ptr<OpKernel>(std::make_unique<OneHot>(axis, build.version() >= 11));
}

}  // namespace

[[gnu::cold]] void register_one_hot(OpRegistry& registry) {
  OpDef def;
  def.type = "OneHot";
  def.since = 9;
  def.min_inputs = def.max_inputs = 3;
  def.infer = infer_one_hot;
  def.make = make_one_hot;
  registry.add(def);
}

}  // namespace folio
