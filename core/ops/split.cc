// Split: a tensor cut into parts along an axis.
//
// Source: ONNX operator spec, Split, opsets 1 and 2 (split attribute), 11, 13 (split input), 18
//         (num_outputs).
// Shapes: x [outer, n, inner] -> parts [outer, n_i, inner], sum of n_i = n.
#include <algorithm>

#include "core/ops/op_elements.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// Lengths of the parts: as given, or n / outputs each (a smaller last one where allowed).
Result<std::vector<int64_t>> lengths_of(const std::vector<int64_t>& given, int64_t n,
                                        int64_t outputs, bool may_be_uneven) {
  if (!given.empty()) {
    int64_t sum = 0;
    for (const int64_t length : given) {
      if (length < 0 || length > n) return invalid_argument("a part of ", length, " of ", n);
      sum += length;
    }
    if (static_cast<int64_t>(given.size()) != outputs || sum != n) {
      return invalid_argument("split has ", given.size(), " parts of ", sum, " elements in all, ",
                              "expected ", outputs, " parts of ", n);
    }
    return given;
  }
  if (!may_be_uneven && n % outputs != 0) {
    return invalid_argument("dim ", n, " does not split into ", outputs, " equal parts");
  }
  const int64_t each = (n + outputs - 1) / outputs;
  std::vector<int64_t> out;
  for (int64_t i = 0; i < outputs; ++i) out.push_back(std::clamp<int64_t>(n - i * each, 0, each));
  return out;
}

class Split final : public OpKernel {
 public:
  int64_t axis = 0;
  std::vector<int64_t> split;
  bool may_be_uneven = false;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(*x));
    FOLIO_TRY(const int at, normalize_axis(axis, x->rank()));
    std::vector<int64_t> given = split;
    if (run.has_input(1)) {
      FOLIO_TRY(given, run.ints(1));
    }
    const int64_t n = x->dim(at);
    FOLIO_TRY(const std::vector<int64_t> lengths, lengths_of(given, n, run.output_count(), may_be_uneven));
    const int64_t outer = x->shape().product(0, at);
    const int64_t inner = x->shape().product(at + 1, x->rank());
    int64_t start = 0;
    for (int i = 0; i < run.output_count(); ++i) {
      const int64_t length = lengths[static_cast<size_t>(i)];
      if (run.has_output(i)) {
        Shape shape = x->shape();
        shape[at] = length;
        FOLIO_TRY(Tensor* y, run.output(i, x->dtype(), shape));
        for (int64_t o = 0; length * inner > 0 && o < outer; ++o) {
          move_elements(*x, (o * n + start) * inner, y, o * length * inner, length * inner);
        }
      }
      start += length;
    }
    return Status::ok();
  }
};

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int64_t axis, infer.attrs().get_int("axis", 0));
  FOLIO_TRY(std::vector<int64_t> given, infer.attrs().get_ints("split"));
  const Dims* x = infer.dims_of(0);
  for (int i = 0; i < infer.output_count(); ++i) infer.set_tensor(i, infer.dtype(0));
  if (!x) return Status::ok();
  FOLIO_TRY(const int at, normalize_axis(axis, static_cast<int>(x->size())));
  bool known = !infer.has_input(1);
  if (const auto numbers = infer.ints(1); infer.has_input(1) && numbers) {
    given = *numbers;
    known = true;
  }
  Dims dims = *x;
  const Dim n = dims[static_cast<size_t>(at)];
  std::vector<int64_t> lengths;
  if (known && n.is_value()) {
    FOLIO_TRY(lengths, lengths_of(given, n.value, infer.output_count(), infer.version() >= 18));
  } else if (known) {
    lengths = given;
  }
  for (int i = 0; i < infer.output_count(); ++i) {
    const auto k = static_cast<size_t>(i);
    dims[static_cast<size_t>(at)] = k < lengths.size() && lengths[k] >= 0 ? Dim::of(lengths[k]) : Dim::unknown();
    infer.set_tensor(i, infer.dtype(0), dims);
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Split>();
  FOLIO_TRY(kernel->axis, build.attrs().get_int("axis", 0));
  FOLIO_TRY(kernel->split, build.attrs().get_ints("split"));
  kernel->may_be_uneven = build.version() >= 18;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_split(OpRegistry& registry) {
  OpDef def;
  def.type = "Split";
  def.max_inputs = 2;
  def.max_outputs = kVariadic;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
