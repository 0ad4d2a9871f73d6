#include "core/ops/op_subgraph.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace folio {
namespace {

// Copies `count` blocks of `block` elements, `from_step` and `to_step` elements apart.
void copy_blocks(const Tensor& from, int64_t from_at, int64_t from_step, Tensor* to, int64_t to_at,
                 int64_t to_step, int64_t block, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t a = from_at + i * from_step;
    const int64_t b = to_at + i * to_step;
    if (from.is_string()) {
      std::copy_n(from.data<std::string>() + a, block, to->data_mut<std::string>() + b);
    } else {
      const int64_t size = dtype_bits(from.dtype()) / 8;
      std::memcpy(to->raw_mut() + b * size, from.raw() + a * size,
                  static_cast<size_t>(block * size));
    }
  }
}

}  // namespace

Result<int> find_subgraph(const Node& node, std::string_view name) {
  for (size_t i = 0; i < node.subgraph_names.size(); ++i) {
    if (node.subgraph_names[i] == name) return static_cast<int>(i);
  }
  return invalid_graph("graph attribute '", name, "' is required but missing");
}

TypeInfo common_type(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != b.kind || a.dtype != b.dtype || a.kind == TypeInfo::Kind::kUnknown) {
    return TypeInfo();
  }
  TypeInfo out = a;
  if (!a.dims || !b.dims || a.dims->size() != b.dims->size()) {
    out.dims.reset();
  } else {
    for (size_t i = 0; i < out.dims->size(); ++i) {
      if (!((*a.dims)[i] == (*b.dims)[i])) (*out.dims)[i] = Dim::unknown();
    }
  }
  if (a.element && b.element) {
    out.element = std::make_shared<const TypeInfo>(common_type(*a.element, *b.element));
  } else {
    out.element.reset();
  }
  return out;
}

TypeInfo without_dims(const TypeInfo& type) {
  TypeInfo out = type;
  out.dims.reset();
  // The elements of a sequence may change as well.
  if (type.element) out.element = std::make_shared<const TypeInfo>(without_dims(*type.element));
  return out;
}

TypeInfo stacked_type(const TypeInfo& element) {
  if (!element.is_tensor()) return TypeInfo();
  TypeInfo out = element;
  if (out.dims) out.dims->insert(out.dims->begin(), Dim::unknown());
  return out;
}

Status ScanOutput::add(const Value& value) {
  if (!value.is_tensor()) return invalid_argument("a scan output must be a tensor");
  const Tensor& tensor = value.tensor();
  if (dtype_is_subbyte(tensor.dtype())) {
    return not_implemented("scan output of ", dtype_name(tensor.dtype()));
  }
  if (count_ > 0 && (stack_.dtype() != tensor.dtype() || !(shape_ == tensor.shape()))) {
    return invalid_argument("a scan output changes from ", dtype_name(stack_.dtype()), " ",
                            shape_.to_string(), " to ", dtype_name(tensor.dtype()), " ",
                            tensor.shape().to_string());
  }
  if (count_ == 0 || count_ == stack_.dim(0)) FOLIO_RETURN_IF_ERROR(make_room(tensor));
  const int64_t size = shape_.count();
  copy_blocks(tensor, 0, 0, &stack_, count_ * size, 0, size, 1);
  ++count_;
  return Status::ok();
}

Status ScanOutput::make_room(const Tensor& element) {
  if (count_ == 0) shape_ = element.shape();
  if (shape_.rank() >= kMaxRank) return not_implemented("a scan output of rank ", kMaxRank + 1);
  Shape shape = shape_;
  shape.insert(0, count_ == 0 ? first_ : std::min(2 * count_, most_));
  FOLIO_TRY(Tensor larger, allocate_tensor(element.dtype(), shape));
  const int64_t size = shape_.count();
  if (count_ > 0) copy_blocks(stack_, 0, 0, &larger, 0, 0, count_ * size, 1);
  stack_ = std::move(larger);
  return Status::ok();
}

bool may_carry(const TypeInfo& given, const TypeInfo& result) {
  constexpr auto kUnknown = TypeInfo::Kind::kUnknown;
  if (given.kind == kUnknown || result.kind == kUnknown) return true;
  // ONNX's own cases begin with an optional and go on with what is in it.
  constexpr auto kOptional = TypeInfo::Kind::kOptional;
  if (given.kind == kOptional || result.kind == kOptional) return true;
  if (given.kind != result.kind) return false;
  const bool typed =
      given.is_tensor() && given.dtype != DType::kUndefined && result.dtype != DType::kUndefined;
  return !typed || given.dtype == result.dtype;
}

TypeInfo carried_type(const TypeInfo& given, const TypeInfo& result) {
  return given.kind == result.kind ? without_dims(result) : TypeInfo();
}

TypeInfo type_without_iteration(const GraphValue& output) {
  if (!output.type.is_tensor()) return output.declared;
  TypeInfo type = output.type;
  if (!type.dims) type.dims = output.declared.dims;
  return type;
}

Result<Tensor> ScanOutput::stack(int64_t axis, bool reverse, const TypeInfo& empty_type) const {
  Shape shape = shape_;
  DType dtype = stack_.dtype();
  if (count_ == 0) {
    dtype = empty_type.dtype;
    if (empty_type.dims && empty_type.dims->size() < static_cast<size_t>(kMaxRank)) {
      for (const Dim dim : *empty_type.dims) shape.push_back(dim.is_value() ? dim.value : 0);
    }
  }
  if (dtype == DType::kUndefined) return invalid_argument("an empty scan output has no known type");
  FOLIO_TRY(const int at, normalize_axis(axis, shape.rank() + 1));
  if (at == 0 && !reverse && count_ > 0 && count_ == stack_.dim(0)) return stack_;
  const int64_t outer = shape.product(0, at);
  const int64_t inner = shape.product(at, shape.rank());
  shape.insert(at, count_);
  FOLIO_TRY(Tensor out, allocate_tensor(dtype, shape));
  for (int64_t i = 0; i < count_; ++i) {
    const int64_t place = reverse ? count_ - 1 - i : i;
    copy_blocks(stack_, i * outer * inner, inner, &out, place * inner, count_ * inner, inner,
                outer);
  }
  return out;
}

Result<Tensor> slice_axis(const Tensor& tensor, int axis, int64_t index) {
  Shape shape = tensor.shape();
  const int64_t outer = shape.product(0, axis);
  const int64_t length = shape[axis];
  const int64_t inner = shape.product(axis + 1, shape.rank());
  shape.erase(axis);
  if (dtype_is_subbyte(tensor.dtype())) {
    return not_implemented("scanning over ", dtype_name(tensor.dtype()));
  }
  if (outer == 1) {
    const int64_t size = dtype_bits(tensor.dtype()) / 8;
    uint8_t* data = const_cast<uint8_t*>(tensor.raw()) + index * inner * size;
    return Tensor(tensor.dtype(), shape, data, tensor.buffer());
  }
  FOLIO_TRY(Tensor out, allocate_tensor(tensor.dtype(), shape));
  copy_blocks(tensor, index * inner, length * inner, &out, 0, inner, inner, outer);
  return out;
}

}  // namespace folio
