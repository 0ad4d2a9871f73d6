// Reshape: the same elements under other dims.
//
// Source: ONNX operator spec, Reshape, opsets 1 (shape is an attribute), 5 (an input), 13,
//         14 (allowzero), 19 to 25.
// Shapes: 0 copies x's dim at that place (allowzero = 0), one -1 takes what is left. A view.
// Types:  all types; the new shape int64.
// Errors: kInvalidArgument when the counts differ, two -1, or -1 beside a zero that is meant.
#include <algorithm>

#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<Shape> reshaped_dims(const Shape& x, std::vector<int64_t> dims, bool allowzero) {
  // Dims copied to the same place cancel, so that an empty batch leaves -1 a meaning.
  int64_t wildcard = -1;
  int64_t copied_mask = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1) {
      if (wildcard >= 0) return invalid_argument("the new shape has -1 twice");
      wildcard = static_cast<int64_t>(i);
      dims[i] = 1;
    } else if (dims[i] == 0 && !allowzero) {
      if (i >= static_cast<size_t>(x.rank())) {
        return invalid_argument("the new shape has 0 at ", i, ", where ", x.to_string(),
                                " has no dim to copy");
      }
      copied_mask |= int64_t{1} << i;
      dims[i] = x[static_cast<int>(i)];
    }
  }
  FOLIO_TRY(Shape out, shape_from(dims));
  if (wildcard >= 0) {
    int64_t whole = 1;
    int64_t rest = 1;
    for (int i = 0; i < std::max(x.rank(), out.rank()); ++i) {
      if ((copied_mask >> i & 1) != 0) continue;
      if (i < x.rank()) whole *= x[i];
      if (i < out.rank()) rest *= out[i];
    }
    if (rest == 0 || whole % rest != 0) {
      return invalid_argument("cannot reshape ", x.to_string(), ": ", whole,
                              " elements do not divide by ", rest);
    }
    out[static_cast<int>(wildcard)] = whole / rest;
  }
  if (out.count() != x.count()) {
    return invalid_argument("cannot reshape ", x.to_string(), " to ", out.to_string());
  }
  return out;
}

class Reshape final : public OpKernel {
 public:
  Reshape(bool from_attribute, std::vector<int64_t> dims, bool allowzero)
      : from_attribute_(from_attribute), dims_(std::move(dims)), allowzero_(allowzero) {}

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    std::vector<int64_t> dims = dims_;
    if (!from_attribute_) {
      FOLIO_TRY(const Tensor* given, run.tensor(1, DType::kInt64));
      if (given->rank() > 1) {
        return invalid_argument("the new shape is a tensor of rank ", given->rank(),
                                ", expected 1");
      }
      dims.assign(given->data<int64_t>(), given->data<int64_t>() + given->count());
    }
    FOLIO_TRY(const Shape shape, reshaped_dims(x->shape(), std::move(dims), allowzero_));
    run.set_output(0, x->reshaped(shape));
    return Status::ok();
  }

 private:
  bool from_attribute_;
  std::vector<int64_t> dims_;
  bool allowzero_;
};

struct Request {
  bool from_attribute = false;
  bool allowzero = false;
  std::vector<int64_t> dims;
};

Result<Request> parse(const Attributes& attrs, int version) {
  Request request;
  request.from_attribute = version < 5;
  if (request.from_attribute) {
    FOLIO_TRY(request.dims, attrs.get_ints("shape"));
  }
  if (version >= 14) {
    FOLIO_TRY(const int64_t allowzero, attrs.get_int("allowzero", 0));
    request.allowzero = allowzero != 0;
  }
  return request;
}

// The dim that -1 stands for: what the others leave of x. Those that stay in their place, known or
// not, cancel.
template <typename Stays>
void fill_wildcard(DimTable& table, const Dims& x, size_t wildcard, const Stays& stays, Dims* out) {
  Dim whole = Dim::of(1);
  Dim rest = Dim::of(1);
  const auto cancels = [&](size_t i) { return i != wildcard && i < out->size() && stays(i); };
  for (size_t i = 0; i < x.size(); ++i) {
    if (!cancels(i)) whole = table.mul(whole, x[i]);
  }
  for (size_t i = 0; i < out->size(); ++i) {
    if (i != wildcard && !cancels(i)) rest = table.mul(rest, (*out)[i]);
  }
  (*out)[wildcard] = table.floor_div(whole, rest);
}

// The new dims when every entry of the shape is a number, -1 included.
Dims dims_from_numbers(OpInfer& infer, const std::vector<int64_t>& numbers, bool allowzero) {
  const Dims* x = infer.dims_of(0);
  Dims out;
  int wildcard = -1;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] == 0 && !allowzero) {
      out.push_back(x && i < x->size() ? (*x)[i] : Dim::unknown());
    } else if (numbers[i] < 0) {
      wildcard = static_cast<int>(i);
      out.push_back(Dim::unknown());
    } else {
      out.push_back(Dim::of(numbers[i]));
    }
  }
  if (wildcard < 0 || !x) return out;
  fill_wildcard(
      infer.table(), *x, static_cast<size_t>(wildcard),
      [&](size_t i) { return numbers[i] == 0 && !allowzero; }, &out);
  return out;
}

// The new dims when some entries are symbols or unknown (an unknown one may be -1).
Dims dims_from_data(OpInfer& infer, const std::vector<Dim>& data, bool allowzero) {
  const Dims* x = infer.dims_of(0);
  Dims out;
  int unknown = -1;
  int unknown_count = 0;
  for (size_t i = 0; i < data.size(); ++i) {
    Dim dim = data[i];
    if (dim.is_value() && dim.value == 0 && !allowzero) {
      dim = x && i < x->size() ? (*x)[i] : Dim::unknown();
    }
    if (dim.is_unknown()) {
      unknown = static_cast<int>(i);
      ++unknown_count;
    }
    out.push_back(dim);
  }
  if (unknown_count != 1 || !x) return out;
  // What is unknown may be a number: of no elements it is not what is left.
  if (std::find(x->begin(), x->end(), Dim::of(0)) != x->end()) return out;
  fill_wildcard(
      infer.table(), *x, static_cast<size_t>(unknown),
      [&](size_t i) { return i < x->size() && out[i] == (*x)[i]; }, &out);
  return out;
}

Status infer_reshape(OpInfer& infer) {
  FOLIO_TRY(const Request request, parse(infer.attrs(), infer.version()));
  std::optional<Dims> dims;
  if (request.from_attribute) {
    dims = dims_from_numbers(infer, request.dims, false);
  } else if (const auto numbers = infer.ints(1)) {
    dims = dims_from_numbers(infer, *numbers, request.allowzero);
  } else if (const auto data = infer.data(1)) {
    dims = dims_from_data(infer, *data, request.allowzero);
  } else if (const Dims* shape = infer.dims_of(1); shape && shape->size() == 1) {
    const Dim rank = (*shape)[0];
    if (rank.is_value() && rank.value <= kMaxRank) {
      dims = Dims(static_cast<size_t>(rank.value));
    }
  }
  if (dims && dims->size() > static_cast<size_t>(kMaxRank)) {
    return invalid_graph("the new shape has ", dims->size(), " dims, at most ", kMaxRank,
                         " are supported");
  }
  // A scalar made a list of one, or the reverse, keeps its contents.
  auto data = infer.data(0);
  if (data && dims && dims->size() <= 1) infer.set_data(0, std::move(*data));
  infer.set_tensor(0, infer.dtype(0), std::move(dims));
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_reshape(OpBuild& build) {
  FOLIO_TRY(Request request, parse(build.attrs(), build.version()));
  return std::unique_ptr<OpKernel>(std::make_unique<Reshape>(
      request.from_attribute, std::move(request.dims), request.allowzero));
}

}  // namespace

[[gnu::cold]] void register_reshape(OpRegistry& registry) {
  OpDef def;
  def.type = "Reshape";
  def.keeps_half = true;
  def.is_exact = true;
  def.until = 4;
  def.infer = infer_reshape;
  def.make = make_reshape;
  def.view_of = 0;
  registry.add(def);
  def.since = 5;
  def.until = kLatest;
  def.min_inputs = 2;
  def.max_inputs = 2;
  registry.add(def);
}

}  // namespace folio
