// Entries: Value.
#include <algorithm>
#include <cstring>
#include <limits>

#include "c_api/entries.h"
#include "c_api/handles.h"
#include "core/base/checked_math.h"

namespace folio {
namespace {

Status check_tensor(const FolioValue* value) {
  FOLIO_NOT_NULL(value);
  if (value->value.is_tensor()) return Status::ok();
  return invalid_argument("the value is no tensor");
}

// A tensor of numbers, of which there are bytes to show.
Status check_plain(const FolioValue* value) {
  FOLIO_RETURN_IF_ERROR(check_tensor(value));
  if (!value->value.tensor().is_string()) return Status::ok();
  return invalid_argument("the tensor is of strings: use GetStringTensorElement");
}

Status check_string(const FolioValue* value) {
  FOLIO_RETURN_IF_ERROR(check_tensor(value));
  if (value->value.tensor().is_string()) return Status::ok();
  return invalid_argument("the tensor is of ", dtype_name(value->value.tensor().dtype()),
                          ", not of strings");
}

// Where elements would be if there were any: tensors of none have a place too.
alignas(64) uint8_t g_nothing[64];

uint8_t* place_of(const Tensor& tensor) {
  auto* data = const_cast<uint8_t*>(tensor.raw());  // callers see to constness
  return data ? data : g_nothing;
}

// Runs copy inputs and outputs that are not aligned to their elements; what stands inside of other
// values they take as it is.
Result<Tensor> aligned_part(const Tensor& tensor) {
  const auto align = static_cast<uintptr_t>(std::clamp(dtype_bits(tensor.dtype()) / 8, 1, 8));
  if (tensor.is_string() || reinterpret_cast<uintptr_t>(tensor.raw()) % align == 0) return tensor;
  return copy_tensor(tensor);
}

// A tensor over the user's memory.
FolioStatus* wrap(const void* data, size_t bytes, const int64_t* dims, size_t dim_count,
                  FolioElementType type, FolioReleaseFunction release, void* user,
                  Buffer::Kind kind, FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const DType dtype, dtype_of(type));
    FOLIO_TRY(const Shape shape, shape_of(dims, dim_count));
    if (dtype == DType::kString) {
      return invalid_argument("strings cannot be used in place: use CreateStringTensor");
    }
    uint64_t expected = 0;
    if (!dtype_bytes(dtype, static_cast<uint64_t>(shape.count()), &expected)) {
      return invalid_argument("a ", dtype_name(dtype), " tensor of shape ", shape.to_string(),
                              " has no valid size");
    }
    if (bytes != expected) {
      return invalid_argument("a ", dtype_name(dtype), " tensor of shape ", shape.to_string(),
                              " has ", expected, " bytes, the memory given has ", bytes);
    }
    if (bytes > 0) FOLIO_NOT_NULL(data);
    FOLIO_RETURN_IF_ERROR(check_memory(data, bytes));
    const auto lent = make_ref<Lent>(release, user);
    Ref<Buffer> buffer = view_buffer(kind, data ? data : g_nothing, bytes, lent);
    uint8_t* place = buffer->data();
    FolioValue* value = new_value(Value(Tensor(dtype, shape, place, std::move(buffer))));
    lent->keep();
    *out = value;
    return Status::ok();
  });
}

}  // namespace

FolioValue* new_value(Value value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (tensor.buffer() && tensor.buffer()->kind() == Buffer::Kind::kHeap) {
      Ref<Buffer> view = view_buffer(Buffer::Kind::kBorrowed, tensor.raw(), tensor.bytes(),
                                     Ref<RefCounted>(tensor.buffer()));
      uint8_t* data = view->data();
      value = Value(Tensor(tensor.dtype(), tensor.shape(), data, std::move(view)));
    }
  }
  return new FolioValue{std::move(value)};
}

namespace entry {

FolioStatus* CreateTensor(FolioElementType type, const int64_t* dims, size_t dim_count,
                          FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const DType dtype, dtype_of(type));
    FOLIO_TRY(const Shape shape, shape_of(dims, dim_count));
    FOLIO_TRY(Tensor tensor, allocate_tensor(dtype, shape));
    if (!tensor.is_string()) std::memset(tensor.raw_mut(), 0, tensor.bytes());
    *out = new_value(Value(std::move(tensor)));
    return Status::ok();
  });
}

FolioStatus* CreateTensorWithData(void* data, size_t bytes, const int64_t* dims, size_t dim_count,
                                  FolioElementType type, FolioReleaseFunction release, void* user,
                                  FolioValue** out) {
  return wrap(data, bytes, dims, dim_count, type, release, user, Buffer::Kind::kBorrowed, out);
}

FolioStatus* CreateTensorWithConstData(const void* data, size_t bytes, const int64_t* dims,
                                       size_t dim_count, FolioElementType type,
                                       FolioReleaseFunction release, void* user, FolioValue** out) {
  return wrap(data, bytes, dims, dim_count, type, release, user, Buffer::Kind::kConstant, out);
}

FolioStatus* CreateStringTensor(const char* const* strings, const size_t* string_bytes,
                                const int64_t* dims, size_t dim_count, FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const Shape shape, shape_of(dims, dim_count));
    if (shape.count() > 0) FOLIO_NOT_NULL(strings);
    FOLIO_TRY(Tensor tensor, allocate_tensor(DType::kString, shape));
    auto* texts = tensor.data_mut<std::string>();
    for (int64_t i = 0; i < shape.count(); ++i) {
      if (!strings[i]) return invalid_argument("strings[", i, "] is NULL");
      texts[i].assign(strings[i], string_bytes ? string_bytes[i] : std::strlen(strings[i]));
    }
    *out = new_value(Value(std::move(tensor)));
    return Status::ok();
  });
}

FolioStatus* CreateSequence(FolioElementType type, FolioValue* const* elements, size_t count,
                            FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const DType dtype, dtype_of(type));
    if (count > 0) FOLIO_NOT_NULL(elements);
    const auto sequence = make_ref<SequenceData>();
    sequence->dtype = dtype;
    for (size_t i = 0; i < count; ++i) {
      if (!elements[i]) return invalid_argument("elements[", i, "] is NULL");
      const Value& element = elements[i]->value;
      if (!element.is_tensor() || element.tensor().dtype() != dtype) {
        return invalid_argument("elements[", i, "] is no tensor of ", dtype_name(dtype));
      }
      FOLIO_TRY(Tensor part, aligned_part(element.tensor()));
      sequence->elements.emplace_back(std::move(part));
    }
    *out = new_value(Value(Ref<const SequenceData>(sequence)));
    return Status::ok();
  });
}

FolioStatus* CreateMap(FolioValue* keys, FolioValue* values, FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(keys);
    FOLIO_NOT_NULL(values);
    FOLIO_NOT_NULL(out);
    if (!keys->value.is_tensor() || !values->value.is_tensor()) {
      return invalid_argument("keys and values of a map must be tensors");
    }
    const Tensor& key = keys->value.tensor();
    const Tensor& value = values->value.tensor();
    if (key.dtype() != DType::kInt64 && key.dtype() != DType::kString) {
      return invalid_argument("keys are ", dtype_name(key.dtype()), ", expected int64 or string");
    }
    if (key.rank() != 1 || !(key.shape() == value.shape())) {
      return invalid_argument("keys are ", key.shape().to_string(), " and values ",
                              value.shape().to_string(), ", expected one dim and equal length");
    }
    const auto map = make_ref<MapData>();
    FOLIO_TRY(map->keys, aligned_part(key));
    FOLIO_TRY(map->values, aligned_part(value));
    *out = new_value(Value(Ref<const MapData>(map)));
    return Status::ok();
  });
}

FolioStatus* GetValueKind(const FolioValue* value, FolioValueKind* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(value);
    FOLIO_NOT_NULL(out);
    switch (value->value.kind()) {
      case Value::Kind::kTensor:
        *out = FOLIO_KIND_TENSOR;
        break;
      case Value::Kind::kSequence:
        *out = FOLIO_KIND_SEQUENCE;
        break;
      case Value::Kind::kMap:
        *out = FOLIO_KIND_MAP;
        break;
      case Value::Kind::kAbsent:
        *out = FOLIO_KIND_OPTIONAL;
        break;
    }
    return Status::ok();
  });
}

FolioStatus* GetElementType(const FolioValue* value, FolioElementType* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(value);
    FOLIO_NOT_NULL(out);
    switch (value->value.kind()) {
      case Value::Kind::kTensor:
        *out = type_of(value->value.tensor().dtype());
        break;
      case Value::Kind::kSequence:
        *out = type_of(value->value.sequence().dtype);
        break;
      case Value::Kind::kMap:
        *out = type_of(value->value.map().keys.dtype());
        break;
      case Value::Kind::kAbsent:
        return invalid_argument("the value is an empty optional");
    }
    return Status::ok();
  });
}

FolioStatus* GetTensorDims(const FolioValue* value, const int64_t** out_dims, size_t* out_count) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_tensor(value));
    FOLIO_NOT_NULL(out_dims);
    FOLIO_NOT_NULL(out_count);
    const Shape& shape = value->value.tensor().shape();
    *out_dims = shape.begin();
    *out_count = static_cast<size_t>(shape.rank());
    return Status::ok();
  });
}

FolioStatus* GetTensorElementCount(const FolioValue* value, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_tensor(value));
    FOLIO_NOT_NULL(out);
    *out = static_cast<size_t>(value->value.tensor().count());
    return Status::ok();
  });
}

FolioStatus* GetTensorBytes(const FolioValue* value, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_tensor(value));
    FOLIO_NOT_NULL(out);
    const Tensor& tensor = value->value.tensor();
    *out = tensor.is_string() ? 0 : tensor.bytes();
    return Status::ok();
  });
}

FolioStatus* GetTensorData(const FolioValue* value, const void** out) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_plain(value));
    FOLIO_NOT_NULL(out);
    *out = place_of(value->value.tensor());
    return Status::ok();
  });
}

FolioStatus* GetTensorMutableData(FolioValue* value, void** out) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_plain(value));
    FOLIO_NOT_NULL(out);
    const Tensor& tensor = value->value.tensor();
    if (tensor.buffer() && tensor.buffer()->kind() == Buffer::Kind::kConstant) {
      return invalid_argument("the tensor is over const memory");
    }
    *out = place_of(tensor);
    return Status::ok();
  });
}

FolioStatus* GetStringTensorElement(const FolioValue* value, size_t index, const char** out,
                                    size_t* out_bytes) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_string(value));
    FOLIO_NOT_NULL(out);
    FOLIO_NOT_NULL(out_bytes);
    const Tensor& tensor = value->value.tensor();
    FOLIO_RETURN_IF_ERROR(check_index(index, static_cast<size_t>(tensor.count()), "strings"));
    const std::string& text = tensor.data<std::string>()[index];
    *out = text.c_str();
    *out_bytes = text.size();
    return Status::ok();
  });
}

FolioStatus* ResizeStringTensorElement(FolioValue* value, size_t index, size_t bytes, char** out) {
  return guarded([&]() -> Status {
    FOLIO_RETURN_IF_ERROR(check_string(value));
    FOLIO_NOT_NULL(out);
    const Tensor& tensor = value->value.tensor();
    FOLIO_RETURN_IF_ERROR(check_index(index, static_cast<size_t>(tensor.count()), "strings"));
    if (tensor.buffer() && tensor.buffer()->kind() == Buffer::Kind::kConstant) {
      return invalid_argument("the tensor is a constant of a model");
    }
    std::string& text = const_cast<std::string*>(tensor.data<std::string>())[index];
    text.resize(bytes);
    *out = text.data();
    return Status::ok();
  });
}

FolioStatus* GetValueCount(const FolioValue* value, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(value);
    FOLIO_NOT_NULL(out);
    switch (value->value.kind()) {
      case Value::Kind::kSequence:
        *out = value->value.sequence().elements.size();
        break;
      case Value::Kind::kMap:
        *out = 2;
        break;
      default:
        *out = 0;
    }
    return Status::ok();
  });
}

FolioStatus* GetValue(const FolioValue* value, size_t index, FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(value);
    FOLIO_NOT_NULL(out);
    if (value->value.kind() == Value::Kind::kSequence) {
      const auto& elements = value->value.sequence().elements;
      FOLIO_RETURN_IF_ERROR(check_index(index, elements.size(), "elements"));
      *out = new_value(elements[index]);
      return Status::ok();
    }
    if (value->value.kind() == Value::Kind::kMap) {
      FOLIO_RETURN_IF_ERROR(check_index(index, 2, "parts of a map"));
      const MapData& map = value->value.map();
      *out = new_value(Value(index == 0 ? map.keys : map.values));
      return Status::ok();
    }
    return check_index(index, 0, "parts of the value");
  });
}

void ReleaseValue(FolioValue* value) { delete value; }

}  // namespace entry
}  // namespace folio
