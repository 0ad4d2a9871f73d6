// Transpose: the dims in another order.
//
// Source: ONNX operator spec, Transpose, opsets 1, 13, 21 (4-bit), 23 to 25.
// Shapes: y's dim i is x's dim perm[i]; perm is by default the reverse order.
// Types:  all types.
// Errors: kInvalidArgument when perm is no permutation of x's axes.
#include <numeric>

#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

Result<std::vector<int>> permutation(const std::vector<int64_t>& perm, bool given, int rank) {
  std::vector<int> order(static_cast<size_t>(rank));
  if (!given) {
    std::iota(order.rbegin(), order.rend(), 0);
    return order;
  }
  if (perm.size() != static_cast<size_t>(rank)) {
    return invalid_argument("perm has ", perm.size(), " entries, expected ", rank);
  }
  return normalize_axes(perm, rank);
}

class Transpose final : public OpKernel {
 public:
  Transpose(std::vector<int64_t> perm, bool given) : perm_(std::move(perm)), given_(given) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const std::vector<int> order, permutation(perm_, given_, x->rank()));
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    StridedView view;
    Shape shape;
    for (const int axis : order) {
      view.add(x->dim(axis), strides[axis]);
      shape.push_back(x->dim(axis));
    }
    FOLIO_TRY(Tensor * out, run.output(0, x->dtype(), shape));
    return copy_strided(run, view, *x, out);
  }

 private:
  std::vector<int64_t> perm_;
  bool given_;
};

Status infer_transpose(OpInfer& infer) {
  FOLIO_TRY(const std::vector<int64_t> perm, infer.attrs().get_ints("perm"));
  const bool given = infer.attrs().has("perm");
  std::optional<Dims> out;
  if (const Dims* x = infer.dims_of(0)) {
    FOLIO_TRY(const std::vector<int> order, permutation(perm, given, static_cast<int>(x->size())));
    out.emplace();
    for (const int axis : order) out->push_back((*x)[static_cast<size_t>(axis)]);
  } else if (given && perm.size() <= static_cast<size_t>(kMaxRank)) {
    out.emplace(perm.size());
  }
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_transpose(OpBuild& build) {
  FOLIO_TRY(std::vector<int64_t> perm, build.attrs().get_ints("perm"));
  return std::unique_ptr<OpKernel>(
      std::make_unique<Transpose>(std::move(perm), build.attrs().has("perm")));
}

}  // namespace

[[gnu::cold]] void register_transpose(OpRegistry& registry) {
  OpDef def;
  def.type = "Transpose";
  def.keeps_half = true;
  def.is_exact = true;
  def.infer = infer_transpose;
  def.make = make_transpose;
  def.unaligned_inputs = 1;
  registry.add(def);
}

}  // namespace folio
