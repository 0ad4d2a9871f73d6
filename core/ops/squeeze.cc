// Squeeze and Unsqueeze: dims of 1 taken away or put in.
//
// Source: ONNX operator spec, Squeeze and Unsqueeze, opsets 1 (axes is an attribute), 11 (negative
//         axes), 13 (axes is an input), 21 to 25.
// Shapes: Squeeze without axes takes away every dim of 1. Unsqueeze's axes are places in the
//         result. Both are views.
// Types:  all types.
// Errors: kInvalidArgument when an axis is out of range, given twice, or not 1 (Squeeze).
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

constexpr int kAxesInputSince = 13;

// Absent: no axes were given.
using Axes = std::optional<std::vector<int64_t>>;

Result<Axes> axes_attribute(const Attributes& attrs, int version) {
  if (version >= kAxesInputSince || !attrs.has("axes")) return Axes();
  FOLIO_TRY(std::vector<int64_t> axes, attrs.get_ints("axes"));
  return Axes(std::move(axes));
}

Result<Axes> axes_at_run(OpRun& run, const Axes& attribute) {
  if (attribute || !run.has_input(1)) return attribute;
  FOLIO_TRY(std::vector<int64_t> axes, run.ints(1));
  return Axes(std::move(axes));
}

// Which dims of a tensor of this rank go; `is_one` answers for each dim.
template <typename IsOne>
Result<std::vector<bool>> squeezed(int rank, const Axes& axes, IsOne&& is_one) {
  std::vector<bool> gone(static_cast<size_t>(rank), false);
  if (!axes) {
    for (int i = 0; i < rank; ++i) gone[static_cast<size_t>(i)] = is_one(i);
    return gone;
  }
  FOLIO_TRY(const std::vector<int> normal, normalize_axes(*axes, rank));
  for (const int axis : normal) {
    if (!is_one(axis)) return invalid_argument("dim ", axis, " is not 1 and cannot be squeezed");
    gone[static_cast<size_t>(axis)] = true;
  }
  return gone;
}

class Squeeze final : public OpKernel {
 public:
  explicit Squeeze(Axes axes) : axes_(std::move(axes)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Axes axes, axes_at_run(run, axes_));
    const auto is_one = [&](int i) { return x->dim(i) == 1; };
    FOLIO_TRY(const std::vector<bool> gone, squeezed(x->rank(), axes, is_one));
    Shape out;
    for (int i = 0; i < x->rank(); ++i) {
      if (!gone[static_cast<size_t>(i)]) out.push_back(x->dim(i));
    }
    run.set_output(0, x->reshaped(out));
    return Status::ok();
  }

 private:
  Axes axes_;
};

class Unsqueeze final : public OpKernel {
 public:
  explicit Unsqueeze(Axes axes) : axes_(std::move(axes)) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const Axes axes, axes_at_run(run, axes_));
    if (!axes) return invalid_argument("Unsqueeze has no axes");
    if (axes->size() > static_cast<size_t>(kMaxRank - x->rank())) {
      return not_implemented("the result would have more than ", kMaxRank, " dims");
    }
    const int rank = x->rank() + static_cast<int>(axes->size());
    FOLIO_TRY(const std::vector<int> normal, normalize_axes(*axes, rank));
    Shape out;
    int from = 0;
    for (int i = 0; i < rank; ++i) {
      const bool added = std::find(normal.begin(), normal.end(), i) != normal.end();
      out.push_back(added ? 1 : x->dim(from++));
    }
    run.set_output(0, x->reshaped(out));
    return Status::ok();
  }

 private:
  Axes axes_;
};

// False in `known` when axes come from an input whose contents are not known.
Result<Axes> axes_at_infer(OpInfer& infer, bool* known) {
  *known = true;
  if (infer.version() >= kAxesInputSince && infer.has_input(1)) {
    const auto numbers = infer.ints(1);
    *known = numbers.has_value();
    return numbers ? Axes(*numbers) : Axes();
  }
  return axes_attribute(infer.attrs(), infer.version());
}

// Contents live on while the rank stays at most 1.
void keep_data(OpInfer& infer, const std::optional<Dims>& dims) {
  auto data = infer.data(0);
  if (data && dims && dims->size() <= 1) infer.set_data(0, std::move(*data));
}

Status infer_squeeze(OpInfer& infer) {
  bool known = false;
  FOLIO_TRY(const Axes axes, axes_at_infer(infer, &known));
  std::optional<Dims> out;
  const Dims* x = infer.dims_of(0);
  if (x && known) {
    bool sure = true;
    const auto is_one = [&](int i) {
      const Dim dim = (*x)[static_cast<size_t>(i)];
      if (dim.is_value()) return dim.value == 1;
      if (!axes) sure = false;
      return true;
    };
    FOLIO_TRY(const std::vector<bool> gone, squeezed(static_cast<int>(x->size()), axes, is_one));
    if (sure) {
      out.emplace();
      for (size_t i = 0; i < x->size(); ++i) {
        if (!gone[i]) out->push_back((*x)[i]);
      }
    }
  }
  keep_data(infer, out);
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Status infer_unsqueeze(OpInfer& infer) {
  bool known = false;
  FOLIO_TRY(const Axes axes, axes_at_infer(infer, &known));
  std::optional<Dims> out;
  const Dims* x = infer.dims_of(0);
  if (known && !axes) return invalid_graph("Unsqueeze has no axes");
  if (x && known) {
    if (axes->size() + x->size() > static_cast<size_t>(kMaxRank)) {
      return invalid_graph("the result would have more than ", kMaxRank, " dims");
    }
    const auto rank = static_cast<int>(x->size() + axes->size());
    FOLIO_TRY(const std::vector<int> normal, normalize_axes(*axes, rank));
    out.emplace();
    size_t from = 0;
    for (int i = 0; i < rank; ++i) {
      const bool added = std::find(normal.begin(), normal.end(), i) != normal.end();
      out->push_back(added ? Dim::of(1) : (*x)[from++]);
    }
  }
  keep_data(infer, out);
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

template <typename Kernel>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  FOLIO_TRY(Axes axes, axes_attribute(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<Kernel>(std::move(axes)));
}

}  // namespace

[[gnu::cold]] void register_squeeze(OpRegistry& registry) {
  OpDef def;
  def.type = "Squeeze";
  def.keeps_half = true;
  def.is_exact = true;
  def.until = kAxesInputSince - 1;
  def.infer = infer_squeeze;
  def.make = make<Squeeze>;
  def.view_of = 0;
  registry.add(def);
  def.since = kAxesInputSince;
  def.until = kLatest;
  def.max_inputs = 2;
  registry.add(def);

  def = OpDef();
  def.type = "Unsqueeze";
  def.keeps_half = true;
  def.is_exact = true;
  def.until = kAxesInputSince - 1;
  def.infer = infer_unsqueeze;
  def.make = make<Unsqueeze>;
  def.view_of = 0;
  registry.add(def);
  def.since = kAxesInputSince;
  def.until = kLatest;
  def.min_inputs = 2;
  def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
