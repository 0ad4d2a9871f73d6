// Pad: adds (or with negative pads removes) elements at both ends of each axis.
//
// Source: ONNX operator spec, Pad, opsets 1 and 2 (attributes), 11, 13, 18 (axes), 19 (wrap), 21+.
// Inputs: x, pads int64 [2 * axes] (begins, then ends), constant_value, axes.
// Rules:  constant, edge (nearest), reflect (mirrored, edge not repeated), wrap (periodic). Reflect
//         and wrap may pad by more than the dim: they go on mirroring and repeating.
#include <vector>

#include "core/ops/op_elements.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };

Result<PadMode> mode_of(const std::string& name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "edge") return PadMode::kEdge;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "wrap") return PadMode::kWrap;
  return invalid_graph("attribute 'mode' is '", name, "', expected constant, edge, reflect or wrap");
}

int64_t positive_mod(int64_t a, int64_t n) {
  const int64_t rest = a % n;
  return rest < 0 ? rest + n : rest;
}

// Where output position `at` (relative to the input's start) reads from; -1: the constant.
int64_t source_of(PadMode mode, int64_t at, int64_t n) {
  if (at >= 0 && at < n) return at;
  switch (mode) {
    case PadMode::kConstant:
      return -1;
    case PadMode::kEdge:
      return at < 0 ? 0 : n - 1;
    case PadMode::kWrap:
      return positive_mod(at, n);
    case PadMode::kReflect:
      break;
  }
  if (n == 1) return 0;
  const int64_t period = positive_mod(at, 2 * (n - 1));
  return period < n ? period : 2 * (n - 1) - period;
}

// begins and ends of every axis, from the pads of some.
struct Pads {
  std::vector<int64_t> begin;
  std::vector<int64_t> end;
};

Result<Pads> pads_of(const std::vector<int64_t>& pads, const std::vector<int64_t>* axes,
                     int rank) {
  const size_t count = axes ? axes->size() : static_cast<size_t>(rank);
  if (pads.size() != 2 * count) {
    return invalid_argument("pads has ", pads.size(), " entries, expected ", 2 * count);
  }
  Pads out{std::vector<int64_t>(static_cast<size_t>(rank)), std::vector<int64_t>(static_cast<size_t>(rank))};
  for (size_t i = 0; i < count; ++i) {
    int axis = static_cast<int>(i);
    if (axes) {
      FOLIO_TRY(axis, normalize_axis((*axes)[i], rank));
    }
    constexpr int64_t kMaxPad = int64_t{1} << 40;
    if (pads[i] < -kMaxPad || pads[i] > kMaxPad || pads[i + count] < -kMaxPad || pads[i + count] > kMaxPad) {
      return invalid_argument("pads of ", pads[i], " and ", pads[i + count], " are out of range");
    }
    out.begin[static_cast<size_t>(axis)] = pads[i];
    out.end[static_cast<size_t>(axis)] = pads[i + count];
  }
  return out;
}

class Pad final : public OpKernel {
 public:
  PadMode mode = PadMode::kConstant;
  bool by_attributes = false;
  std::vector<int64_t> pads;
  float value = 0.0F;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(*x));
    FOLIO_TRY(const Pads given, read_pads(run, x->rank()));
    FOLIO_TRY(const Tensor constant, read_constant(run, *x));
    Shape shape;
    for (int i = 0; i < x->rank(); ++i) {
      const auto axis = static_cast<size_t>(i);
      const int64_t dim = x->dim(i) + given.begin[axis] + given.end[axis];
      if (dim < 0) return invalid_argument("pads leave axis ", i, " with ", dim, " elements");
      if (x->dim(i) == 0 && dim > 0 && mode != PadMode::kConstant) {
        return invalid_argument("axis ", i, " is empty: only constants can pad it");
      }
      shape.push_back(dim);
    }
    uint64_t count = 0;
    if (!checked_count(shape.dims(), &count)) {
      return invalid_argument("padded shape ", shape.to_string(), " overflows");
    }
    FOLIO_TRY(Tensor* y, run.output(0, x->dtype(), shape));
    if (count == 0) return Status::ok();
    fill(*x, constant, given, y);
    return Status::ok();
  }

 private:
  Result<Pads> read_pads(OpRun& run, int rank) const {
    if (by_attributes) return pads_of(pads, nullptr, rank);
    FOLIO_TRY(const std::vector<int64_t> values, run.ints(1));
    if (!run.has_input(3)) return pads_of(values, nullptr, rank);
    FOLIO_TRY(const std::vector<int64_t> axes, run.ints(3));
    return pads_of(values, &axes, rank);
  }

  // One element of x's type: the input, the attribute (old opsets), or zero.
  Result<Tensor> read_constant(OpRun& run, const Tensor& x) const {
    if (!by_attributes && run.has_input(2)) {
      FOLIO_TRY(const Tensor* given, run.tensor(2, x.dtype()));
      if (given->count() != 1) {
        return invalid_argument("constant_value has ", given->count(), " elements, expected 1");
      }
      return *given;
    }
    FOLIO_TRY(Tensor one, allocate_tensor(x.dtype(), Shape{1}));
    if (!one.is_string()) std::memset(one.raw_mut(), 0, one.bytes());
    if (by_attributes && value != 0.0F) {
      if (x.dtype() == DType::kFloat) {
        *one.data_mut<float>() = value;
      } else if (x.dtype() == DType::kDouble) {
        *one.data_mut<double>() = static_cast<double>(value);
      } else {
        return not_implemented("Pad of ", dtype_name(x.dtype()), " with a value attribute");
      }
    }
    return one;
  }

  void fill(const Tensor& x, const Tensor& constant, const Pads& given, Tensor* y) const {
    const int rank = x.rank();
    if (rank == 0) return move_elements(x, 0, y, 0, 1);
    const int last = rank - 1;
    const int64_t n = x.dim(last);
    const int64_t width = y->dim(last);
    const int64_t begin = given.begin[static_cast<size_t>(last)];
    const int64_t from = std::clamp<int64_t>(begin, 0, width);  // the part copied as it stands
    const int64_t to = std::clamp<int64_t>(begin + n, from, width);
    std::vector<int64_t> index(static_cast<size_t>(rank), 0);
    const int64_t rows = y->count() / width;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t source = source_row(x, given, index);
      const int64_t at = row * width;
      if (source < 0) {
        fill_elements(constant, y, at, width);
      } else {
        for (int64_t j = 0; j < width; ++j) {
          if (j == from && to > from) {
            move_elements(x, source * n + from - begin, y, at + from, to - from);
            j = to - 1;
            continue;
          }
          const int64_t column = source_of(mode, j - begin, n);
          if (column < 0) {
            move_elements(constant, 0, y, at + j, 1);
          } else {
            move_elements(x, source * n + column, y, at + j, 1);
          }
        }
      }
      for (int d = last - 1; d >= 0; --d) {
        if (++index[static_cast<size_t>(d)] < y->dim(d)) break;
        index[static_cast<size_t>(d)] = 0;
      }
    }
  }

  // Which row of x (all dims but the last) an output row reads; -1: the constant.
  int64_t source_row(const Tensor& x, const Pads& given, const std::vector<int64_t>& index) const {
    int64_t row = 0;
    for (int d = 0; d + 1 < x.rank(); ++d) {
      const auto axis = static_cast<size_t>(d);
      const int64_t at = source_of(mode, index[axis] - given.begin[axis], x.dim(d));
      if (at < 0) return -1;
      row = row * x.dim(d) + at;
    }
    return row;
  }
};

Result<std::vector<int64_t>> attribute_pads(const Attributes& attrs) {
  return attrs.get_ints(attrs.has("paddings") ? "paddings" : "pads");
}

Status infer(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, infer.dtype(0));
  if (!x) return Status::ok();
  const auto rank = static_cast<int>(x->size());
  std::optional<std::vector<int64_t>> values;
  std::optional<std::vector<int64_t>> axes;
  if (infer.version() < 11) {
    FOLIO_TRY(values, attribute_pads(infer.attrs()));
  } else {
    values = infer.ints(1);
    if (infer.has_input(3)) axes = infer.ints(3);
  }
  Dims dims(x->size(), Dim::unknown());
  if (values && (axes || infer.version() < 11 || !infer.has_input(3))) {
    FOLIO_TRY(const Pads pads, pads_of(*values, axes ? &*axes : nullptr, rank));
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t sum = pads.begin[i] + pads.end[i];
      dims[i] = sum >= 0 ? infer.table().add((*x)[i], Dim::of(sum)) : infer.table().sub((*x)[i], Dim::of(-sum));
    }
  }
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Pad>();
  FOLIO_TRY(const std::string mode, build.attrs().get_string("mode", "constant"));
  FOLIO_TRY(kernel->mode, mode_of(mode));
  kernel->by_attributes = build.version() < 11;
  if (kernel->by_attributes) {
    FOLIO_TRY(kernel->pads, attribute_pads(build.attrs()));
    FOLIO_TRY(kernel->value, build.attrs().get_float("value", 0.0F));
  } else if (!build.has_input(1)) {
    return invalid_graph("input 1 (pads) is required but missing");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

void register_pad(OpRegistry& registry) {
  OpDef def;
  def.type = "Pad";
  def.max_inputs = 4;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
