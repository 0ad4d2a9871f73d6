#include "core/ops/op_control.h"

#include "core/ops/op_strided.h"

namespace folio {

TypeInfo merge_types(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return {};
  TypeInfo out = a;
  if (a.element && b.element) {
    out.element = std::make_shared<const TypeInfo>(merge_types(*a.element, *b.element));
  }
  if (!a.dims || !b.dims || a.dims->size() != b.dims->size()) {
    out.dims.reset();
    return out;
  }
  for (size_t i = 0; i < out.dims->size(); ++i) {
    if ((*out.dims)[i] != (*b.dims)[i]) (*out.dims)[i] = Dim::unknown();
  }
  return out;
}

Result<int> subgraph_index(const Node& node, std::string_view attribute) {
  for (size_t i = 0; i < node.subgraph_names.size(); ++i) {
    if (node.subgraph_names[i] == attribute) return static_cast<int>(i);
  }
  return invalid_graph("subgraph '", attribute, "' is missing");
}

namespace {

bool same_type(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.dims != b.dims) return false;
  if (!a.element || !b.element) return !a.element && !b.element;
  return same_type(*a.element, *b.element);
}

// Shapes forgotten, kinds and element types kept.
TypeInfo without_dims(TypeInfo type) {
  type.dims.reset();
  if (type.element) type.element = std::make_shared<const TypeInfo>(without_dims(*type.element));
  return type;
}

// Each level of nesting multiplies the work by the number of attempts: only shallow bodies get
// more than one.
constexpr int kMaxAttempts = 4;
constexpr int kShallow = 3;

bool deeper_than(const Graph& graph, int depth) {
  for (const Node& node : graph.nodes) {
    for (const auto& subgraph : node.subgraphs) {
      if (depth == 0 || deeper_than(*subgraph, depth - 1)) return true;
    }
  }
  return false;
}

}  // namespace

Result<LoopTypes> infer_loop_body(OpInfer& infer, int k, std::vector<TypeInfo> inputs,
                                  size_t first_input, size_t first_output, size_t carried) {
  const Graph& body = *infer.node().subgraphs[static_cast<size_t>(k)];
  int attempts = deeper_than(body, kShallow) ? 0 : kMaxAttempts;
  while (true) {
    if (attempts == 0) {
      for (size_t i = 0; i < carried; ++i) {
        inputs[first_input + i] = without_dims(inputs[first_input + i]);
      }
    }
    FOLIO_TRY(std::vector<TypeInfo> outputs, infer.infer_subgraph(k, inputs));
    if (outputs.size() < first_output + carried) {
      return invalid_graph("the body has ", outputs.size(), " outputs, expected at least ",
                           first_output + carried);
    }
    bool stable = true;
    for (size_t i = 0; i < carried; ++i) {
      TypeInfo& at = inputs[first_input + i];
      TypeInfo merged = merge_types(at, outputs[first_output + i]);
      stable &= same_type(merged, at);
      at = std::move(merged);
    }
    if (stable) return LoopTypes{std::move(inputs), std::move(outputs)};
    // With shapes forgotten only kinds are left to change, at most once each.
    attempts = attempts > 0 ? attempts - 1 : 0;
  }
}

Result<bool> as_condition(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::kBool ||
      value.tensor().count() != 1) {
    return invalid_argument("a condition is ",
                            value.is_tensor() ? dtype_name(value.tensor().dtype()) : "no tensor",
                            value.is_tensor() ? value.tensor().shape().to_string() : "",
                            ", expected one bool");
  }
  return value.tensor().raw()[0] != 0;
}

Status Stack::push(const Value& value) {
  if (!value.is_tensor()) return invalid_argument("a value to stack is no tensor");
  const Tensor& tensor = value.tensor();
  if (!items_.empty()) {
    const Tensor& first = items_.front();
    if (tensor.dtype() != first.dtype() || !(tensor.shape() == first.shape())) {
      return invalid_argument("iteration ", items_.size(), " gives ", dtype_name(tensor.dtype()),
                              tensor.shape().to_string(), ", iteration 0 gave ",
                              dtype_name(first.dtype()), first.shape().to_string());
    }
  } else if (dtype_is_subbyte(tensor.dtype())) {
    return not_implemented("stacking elements of type ", dtype_name(tensor.dtype()));
  }
  items_.push_back(tensor);
  return Status::ok();
}

Result<Tensor> Stack::join(OpRun& run, int64_t axis, bool reverse, int64_t length,
                           const TypeInfo& like) const {
  Shape element;
  DType dtype = like.dtype;
  if (!items_.empty()) {
    element = items_.front().shape();
    dtype = items_.front().dtype();
  } else {
    if (!like.is_tensor() || dtype == DType::kUndefined) {
      return invalid_argument("no iteration ran, and the result's element type is not known");
    }
    const int rank = like.has_rank() ? like.rank() : 1;
    FOLIO_TRY(const int gone, normalize_axis(axis, rank));
    for (int i = 0; like.has_rank() && i < rank; ++i) {
      const Dim dim = (*like.dims)[static_cast<size_t>(i)];
      if (i != gone) element.push_back(dim.is_value() ? dim.value : 0);
    }
  }
  FOLIO_TRY(const int at, normalize_axis(axis, element.rank() + 1));
  std::vector<int64_t> dims{length};
  dims.insert(dims.end(), element.begin(), element.end());
  FOLIO_TRY(const Shape stacked, shape_from(dims));
  FOLIO_TRY(Tensor rows, allocate_tensor(dtype, stacked));
  const int64_t n = element.count();
  FOLIO_RETURN_IF_ERROR(dispatch_move(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < length; ++i) {
      T* to = rows.data_mut<T>() + i * n;
      if (i >= count()) {
        std::fill_n(to, n, T{});
      } else {
        const int64_t from = reverse ? count() - 1 - i : i;
        move_run(to, items_[static_cast<size_t>(from)].template data<T>(), n);
      }
    }
    return Status::ok();
  }));
  if (at == 0) return rows;

  // The new axis goes behind `at` others.
  int64_t strides[kMaxRank];
  row_strides(stacked, strides);
  StridedView view;
  Shape shape;
  for (int i = 0; i < stacked.rank(); ++i) {
    const int from = i < at ? i + 1 : i == at ? 0 : i;
    view.add(stacked[from], strides[from]);
    shape.push_back(stacked[from]);
  }
  FOLIO_TRY(Tensor moved, allocate_tensor(dtype, shape));
  FOLIO_RETURN_IF_ERROR(copy_strided(run, view, rows, &moved));
  return moved;
}

Result<Tensor> entry_of(OpRun& run, const Tensor& x, int axis, int64_t at) {
  Shape shape = x.shape();
  shape.erase(axis);
  const int bits = dtype_bits(x.dtype());
  if (axis == 0 && bits >= 8) {
    const int64_t offset = at * shape.count() * (bits / 8);
    auto* data = const_cast<uint8_t*>(x.raw()) + offset;
    return Tensor(x.dtype(), shape, data, x.buffer());
  }
  int64_t strides[kMaxRank];
  row_strides(x.shape(), strides);
  StridedView view;
  view.offset = at * strides[axis];
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) view.add(x.dim(i), strides[i]);
  }
  FOLIO_TRY(Tensor out, allocate_tensor(x.dtype(), shape));
  FOLIO_RETURN_IF_ERROR(copy_strided(run, view, x, &out));
  return out;
}

}  // namespace folio
