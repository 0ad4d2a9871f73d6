#include "core/ops/op.h"

#include <cstring>

namespace folio {
namespace {

const TypeInfo kUnknownType;

ValueId id_at(const std::vector<ValueId>& ids, int i) {
  return i >= 0 && static_cast<size_t>(i) < ids.size() ? ids[static_cast<size_t>(i)] : kNone;
}

const Initializer* constant_of(const Graph& graph, ValueId id) {
  // A captured value is as constant as what it captures.
  const Graph* at = &graph;
  while (id != kNone) {
    const GraphValue& value = at->value(id);
    if (value.is_constant()) return value.initializer.get();
    if (value.outer == kNone || !at->parent) return nullptr;
    id = value.outer;
    at = at->parent;
  }
  return nullptr;
}

const Tensor* bytes_of(const Initializer* initializer) {
  return initializer && initializer->tensor ? &*initializer->tensor : nullptr;
}

// Of any alignment: constants stand where the file has them.
template <typename T>
std::vector<int64_t> widen(const Tensor& tensor) {
  std::vector<int64_t> numbers(static_cast<size_t>(tensor.count()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T number;
    std::memcpy(&number, tensor.raw() + i * sizeof(T), sizeof(T));
    numbers[i] = number;
  }
  return numbers;
}

// Above this, a constant is data, not a shape or an index list.
constexpr int64_t kMaxKnownInts = 4096;

std::optional<std::vector<int64_t>> ints_of(const Tensor& tensor) {
  if (tensor.rank() > 1 || tensor.count() > kMaxKnownInts) return std::nullopt;
  if (tensor.dtype() == DType::kInt64) return widen<int64_t>(tensor);
  if (tensor.dtype() == DType::kInt32) return widen<int32_t>(tensor);
  return std::nullopt;
}

constexpr size_t kKeptScratch = size_t{1} << 18;  // bytes that stay from one call to the next

}  // namespace

bool OpInfer::has_input(int i) const { return id_at(node_.inputs, i) != kNone; }
bool OpInfer::has_output(int i) const { return id_at(node_.outputs, i) != kNone; }

const TypeInfo& OpInfer::input(int i) const {
  const ValueId id = id_at(node_.inputs, i);
  return id == kNone ? kUnknownType : graph_.value(id).type;
}

const Dims* OpInfer::dims_of(int i) const {
  const TypeInfo& type = input(i);
  return type.has_rank() ? &*type.dims : nullptr;
}

const Tensor* OpInfer::constant(int i) const {
  return bytes_of(constant_of(graph_, id_at(node_.inputs, i)));
}

std::optional<std::vector<int64_t>> OpInfer::ints(int i) const {
  if (const Tensor* tensor = constant(i)) return ints_of(*tensor);
  const auto dims = data(i);
  if (!dims) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim dim : *dims) {
    if (!dim.is_value()) return std::nullopt;
    out.push_back(dim.value);
  }
  return out;
}

std::optional<std::vector<Dim>> OpInfer::data(int i) const {
  const ValueId id = id_at(node_.inputs, i);
  if (id == kNone) return std::nullopt;
  if (graph_.value(id).data) return graph_.value(id).data;
  if (!constant(i)) return std::nullopt;
  const auto numbers = ints(i);
  if (!numbers) return std::nullopt;
  std::vector<Dim> out;
  for (const int64_t number : *numbers) {
    // A Dim holds no negative number: such an entry is not known as a dim.
    out.push_back(number >= 0 ? Dim::of(number) : Dim::unknown());
  }
  return out;
}

void OpInfer::set_tensor(int i, DType dtype, std::optional<Dims> dims) {
  set_output(i, TypeInfo::tensor(dtype, std::move(dims)));
}

void OpInfer::set_output(int i, TypeInfo type) {
  const ValueId id = id_at(node_.outputs, i);
  if (id != kNone) graph_.value(id).type = std::move(type);
}

void OpInfer::set_data(int i, std::vector<Dim> data) {
  const ValueId id = id_at(node_.outputs, i);
  if (id == kNone) return;
  GraphValue& value = graph_.value(id);
  // What leaves int32 wraps when it is computed.
  for (Dim& dim : data) {
    if (value.type.dtype == DType::kInt32 && dim.is_value() && dim.value > INT32_MAX) {
      dim = Dim::unknown();
    }
  }
  value.data = std::move(data);
}

Result<std::vector<TypeInfo>> OpInfer::infer_subgraph(int k, const std::vector<TypeInfo>& inputs) {
  return infer_subgraph_(state_, *node_.subgraphs[static_cast<size_t>(k)], inputs);
}

bool OpBuild::has_input(int i) const { return id_at(node_.inputs, i) != kNone; }
bool OpBuild::has_output(int i) const { return id_at(node_.outputs, i) != kNone; }

const TypeInfo& OpBuild::input(int i) const {
  const ValueId id = id_at(node_.inputs, i);
  return id == kNone ? kUnknownType : graph_.value(id).type;
}

const Initializer* OpBuild::initializer(int i) const {
  return constant_of(graph_, id_at(node_.inputs, i));
}

const Tensor* OpBuild::constant(int i) const { return bytes_of(initializer(i)); }

std::optional<std::vector<int64_t>> OpBuild::ints(int i) const {
  const Tensor* tensor = constant(i);
  return tensor ? ints_of(*tensor) : std::nullopt;
}

void OpBuild::request_pack(int i, PackRequest request) {
  if (prepack_ && initializer(i)) requests_.emplace_back(i, std::move(request));
}

Result<const Tensor*> OpRun::tensor(int i) const {
  if (!has_input(i)) return invalid_argument("input ", i, " is missing");
  if (!value(i).is_tensor()) return invalid_argument("input ", i, " is not a tensor");
  return &value(i).tensor();
}

Result<const Tensor*> OpRun::tensor(int i, DType dtype) const {
  FOLIO_TRY(const Tensor* found, tensor(i));
  if (found->dtype() != dtype) {
    return invalid_argument("input ", i, " is ", dtype_name(found->dtype()), ", expected ",
                            dtype_name(dtype));
  }
  return found;
}

Result<const Tensor*> OpRun::optional_tensor(int i, DType dtype) const {
  if (!has_input(i)) return static_cast<const Tensor*>(nullptr);
  return tensor(i, dtype);
}

Result<std::vector<int64_t>> OpRun::ints(int i) const {
  FOLIO_TRY(const Tensor* found, tensor(i));
  if (found->dtype() == DType::kInt64) return widen<int64_t>(*found);
  if (found->dtype() == DType::kInt32) return widen<int32_t>(*found);
  return invalid_argument("input ", i, " is ", dtype_name(found->dtype()),
                          ", expected int64 or int32");
}

Result<Tensor*> OpRun::output(int i, DType dtype, const Shape& shape) {
  FOLIO_TRY(Tensor tensor, host_.allocate_output(i, dtype, shape));
  outputs_[static_cast<size_t>(i)] = std::move(tensor);
  return &outputs_[static_cast<size_t>(i)].tensor();
}

Result<Tensor> OpRun::owned(const Tensor& tensor) const {
  if (tensor.escapes()) return tensor;
  return copy_tensor(tensor);
}

Result<uint8_t*> OpRun::scratch(size_t bytes) {
  // A block that an earlier call of the run has left, the smallest that fits.
  size_t best = scratch_.size();
  for (size_t i = scratch_used_; i < scratch_.size(); ++i) {
    const bool smaller = best == scratch_.size() || scratch_[i]->bytes() < scratch_[best]->bytes();
    if (scratch_[i]->bytes() >= bytes && smaller) best = i;
  }
  if (best == scratch_.size()) {
    FOLIO_TRY(Ref<Buffer> buffer, host_.allocate_scratch(bytes));
    scratch_.push_back(std::move(buffer));
  }
  std::swap(scratch_[best], scratch_[scratch_used_]);
  return scratch_[scratch_used_++]->data();
}

void OpRun::give_back(const uint8_t* memory) {
  if (scratch_used_ > 0 && scratch_[scratch_used_ - 1]->data() == memory) --scratch_used_;
}

// Small blocks stay for the next calls: most steps want some, and allocating takes longer than
// many of them. Large ones are given back, so that a run holds the scratch of one step.
void OpRun::leave_scratch() {
  scratch_used_ = 0;
  size_t kept = 0;
  std::erase_if(scratch_, [&](const Ref<Buffer>& buffer) {
    kept += buffer->bytes();
    return kept > kKeptScratch;
  });
}

void OpRun::begin(Span<const Value* const> inputs, Span<const uint8_t> wanted,
                  Span<const PackedBlob* const> packed) {
  inputs_ = inputs;
  wanted_ = wanted;
  packed_ = packed;
  outputs_.clear();  // those of the step before have been taken
  outputs_.resize(wanted.size());
  if (scratch_used_ > 0) leave_scratch();
}

}  // namespace folio
