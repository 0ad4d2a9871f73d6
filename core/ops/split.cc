// Split: a tensor cut along an axis.
//
// Source: ONNX operator spec, Split, opsets 1 (split is an attribute or input 1), 2 (attribute),
//         11, 13 (input 1), 18 (num_outputs).
// Shapes: with `split` piece i has split[i] of the axis; else equal pieces, from opset 18 of
//         ceil(dim / pieces) with a smaller last one.
// Types:  all types.
// Errors: kInvalidArgument when the sizes do not add up to the dim or do not divide it.
#include <numeric>

#include "core/base/checked_math.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_strided.h"

namespace folio {
namespace {

struct Options {
  int64_t axis = 0;
  bool has_split = false;
  std::vector<int64_t> split;
  int64_t pieces = 0;
};

Result<Options> parse(const Attributes& attrs, int version, int outputs) {
  Options options;
  FOLIO_TRY(options.axis, attrs.get_int("axis", 0));
  if (version < 13) {
    options.has_split = attrs.has("split");
    FOLIO_TRY(options.split, attrs.get_ints("split"));
  }
  options.pieces = outputs;
  if (version >= 18) {
    FOLIO_TRY(options.pieces, attrs.get_int("num_outputs", outputs));
    if (options.pieces < 1 || options.pieces > outputs) {
      return invalid_graph("num_outputs is ", options.pieces, " but the node has ", outputs,
                           " outputs");
    }
  }
  return options;
}

// Sizes of the pieces of an axis of `dim`.
Result<std::vector<int64_t>> equal_pieces(int64_t dim, int64_t pieces, bool uneven) {
  if (dim % pieces != 0 && !uneven) {
    return invalid_argument("dim ", dim, " does not divide into ", pieces, " pieces");
  }
  const int64_t size = dim / pieces + (dim % pieces != 0);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < pieces; ++i) {
    out.push_back(std::clamp<int64_t>(dim - i * size, 0, size));
  }
  return out;
}

Status check_sizes(const std::vector<int64_t>& sizes, int64_t dim, int outputs) {
  if (sizes.size() != static_cast<size_t>(outputs)) {
    return invalid_argument("split has ", sizes.size(), " sizes for ", outputs, " outputs");
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || !checked_add(sum, size, &sum)) {
      return invalid_argument("split has a size of ", size);
    }
  }
  if (sum != dim) {
    return invalid_argument("split's sizes add up to ", sum, ", expected the dim ", dim);
  }
  return Status::ok();
}

class Split final : public OpKernel {
 public:
  Split(Options options, int version) : options_(std::move(options)), version_(version) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const int axis, normalize_axis(options_.axis, x->rank()));
    std::vector<int64_t> sizes = options_.split;
    if (!options_.has_split && run.has_input(1)) {
      FOLIO_TRY(sizes, run.ints(1));
    } else if (!options_.has_split) {
      FOLIO_TRY(sizes, equal_pieces(x->dim(axis), options_.pieces, version_ >= 18));
    }
    FOLIO_RETURN_IF_ERROR(check_sizes(sizes, x->dim(axis), run.output_count()));
    int64_t strides[kMaxRank];
    row_strides(x->shape(), strides);
    int64_t at = 0;
    for (int k = 0; k < run.output_count(); ++k) {
      Shape shape = x->shape();
      shape[axis] = sizes[static_cast<size_t>(k)];
      if (run.has_output(k)) {
        FOLIO_TRY(Tensor * out, run.output(k, x->dtype(), shape));
        StridedView view;
        view.offset = at * strides[axis];
        for (int i = 0; i < shape.rank(); ++i) view.add(shape[i], strides[i]);
        FOLIO_RETURN_IF_ERROR(copy_strided(run, view, *x, out));
      }
      at += shape[axis];
    }
    return Status::ok();
  }

 private:
  Options options_;
  int version_;
};

Status infer_split(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.attrs(), infer.version(), infer.output_count()));
  const Dims* x = infer.dims_of(0);
  if (!x) {
    for (int k = 0; k < infer.output_count(); ++k) infer.set_tensor(k, infer.dtype(0));
    return Status::ok();
  }
  FOLIO_TRY(const int axis, normalize_axis(options.axis, static_cast<int>(x->size())));
  const Dim dim = (*x)[static_cast<size_t>(axis)];
  const bool by_input = !options.has_split && infer.has_input(1);
  std::optional<std::vector<Dim>> sizes;
  if (by_input) {
    sizes = infer.data(1);
  } else if (options.has_split) {
    sizes.emplace();
    for (const int64_t size : options.split) sizes->push_back(Dim::of(std::max<int64_t>(size, 0)));
  } else if (dim.is_value()) {
    FOLIO_TRY(const std::vector<int64_t> equal,
              equal_pieces(dim.value, options.pieces, infer.version() >= 18));
    sizes.emplace();
    for (const int64_t size : equal) sizes->push_back(Dim::of(size));
  } else if (infer.version() < 18) {
    const Dim piece = infer.table().floor_div(dim, Dim::of(options.pieces));
    sizes.emplace(static_cast<size_t>(options.pieces), piece);
  }
  for (int k = 0; k < infer.output_count(); ++k) {
    Dims out = *x;
    const auto at = static_cast<size_t>(k);
    out[static_cast<size_t>(axis)] = sizes && at < sizes->size() ? (*sizes)[at] : Dim::unknown();
    infer.set_tensor(k, infer.dtype(0), std::move(out));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_split(OpBuild& build) {
  FOLIO_TRY(Options options, parse(build.attrs(), build.version(), build.output_count()));
  return std::unique_ptr<OpKernel>(std::make_unique<Split>(std::move(options), build.version()));
}

}  // namespace

[[gnu::cold]] void register_split(OpRegistry& registry) {
  OpDef def;
  def.type = "Split";
  def.keeps_half = true;
  def.is_exact = true;
  def.max_outputs = kVariadic;
  def.infer = infer_split;
  def.make = make_split;
  def.unaligned_inputs = 1;
  def.since = 1;
  def.until = 1;
  def.max_inputs = 2;
  registry.add(def);
  def.since = 2;
  def.until = 12;
  def.max_inputs = 1;
  registry.add(def);
  def.since = 13;
  def.until = kLatest;
  def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
