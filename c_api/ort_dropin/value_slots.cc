// Slots: tensors of numbers, sequences and maps.
#include <algorithm>
#include <climits>
#include <cstring>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

// Bytes of a tensor; false for dims below 0 and too many.
bool tensor_bytes(const int64_t* dims, size_t dim_count, FolioElementType type, size_t* out) {
  size_t count = 1;
  for (size_t i = 0; i < dim_count; ++i) {
    if (dims[i] < 0) return false;
    if (__builtin_mul_overflow(count, static_cast<size_t>(dims[i]), &count)) return false;
  }
  size_t bits = 0;
  if (__builtin_mul_overflow(count, folio().GetElementTypeBits(type), &bits)) return false;
  *out = bits / CHAR_BIT + (bits % CHAR_BIT != 0);
  return true;
}

// Memory that goes back to the program's allocator.
struct Lent {
  OrtAllocator* allocator;
  void* memory;
  static void give_back(void* user) {
    const std::unique_ptr<Lent> lent(static_cast<Lent*>(user));
    lent->allocator->Free(lent->allocator, lent->memory);
  }
};

OrtStatus* wrap(void* data, size_t bytes, const int64_t* dims, size_t dim_count, int type,
                FolioReleaseFunction release, void* user, std::unique_ptr<OrtValue>* out) {
  const FolioElementType element_type = to_folio_type(type);
  if (dim_count > 0) ORT_NOT_NULL(dims);
  size_t needed = 0;
  if (!tensor_bytes(dims, dim_count, element_type, &needed)) {
    return make_status(kInvalidArgument, "the dims are no shape of a tensor in memory");
  }
  if (needed > bytes) {
    return make_status(kInvalidArgument,
                       "not enough space: the tensor takes " + std::to_string(needed) +
                           " bytes, the memory given has " + std::to_string(bytes));
  }
  FolioValue* raw = nullptr;
  ORT_CALL(folio().CreateTensorWithData(data, needed, dims, dim_count, element_type, release, user,
                                        &raw));
  *out = OrtValue::own(raw);
  return nullptr;
}

// A tensor in memory of an allocator that is not ours.
OrtStatus* allocate(OrtAllocator* allocator, const int64_t* dims, size_t dim_count, int type,
                    std::unique_ptr<OrtValue>* out) {
  size_t bytes = 0;
  if (!tensor_bytes(dims, dim_count, to_folio_type(type), &bytes)) {
    return make_status(kInvalidArgument, "the dims are no shape of a tensor in memory");
  }
  auto lent = std::make_unique<Lent>();
  lent->allocator = allocator;
  lent->memory = allocator->Alloc(allocator, bytes);
  if (!lent->memory && bytes > 0) return out_of_memory();
  OrtStatus* const status =
      wrap(lent->memory, bytes, dims, dim_count, type, Lent::give_back, lent.get(), out);
  if (status) {
    allocator->Free(allocator, lent->memory);
  } else {
    lent.release();  // the value's
  }
  return status;
}

OrtStatus* is_kind(const OrtValue* value, FolioValueKind wanted, int* out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    FolioValueKind kind = FOLIO_KIND_UNKNOWN;
    ORT_CALL(folio().GetValueKind(value->get(), &kind));
    *out = kind == wanted ? 1 : 0;
    return nullptr;
  });
}

// Programs read through the mutable entry too, also of constants.
OrtStatus* data_of(const OrtValue* value, void** out) {
  FolioElementType type = FOLIO_UNDEFINED;
  ORT_CALL(folio().GetElementType(value->get(), &type));
  if (type == FOLIO_STRING) {
    ORT_TRY(take_strings_back(*value));
    if (value->shown.empty()) ORT_TRY(show_strings(*value));
    *out = value->shown.data();
    return nullptr;
  }
  void* data = nullptr;
  FolioStatus* const no_writing = folio().GetTensorMutableData(value->get(), &data);
  if (no_writing) {
    folio().ReleaseStatus(no_writing);
    const void* constant = nullptr;
    ORT_CALL(folio().GetTensorData(value->get(), &constant));
    data = const_cast<void*>(constant);
  }
  *out = data;
  return nullptr;
}

OrtStatus* create_sequence(const OrtValue* const* parts, size_t count, FolioValue** out) {
  if (count == 0) return make_status(kInvalidArgument, "a sequence needs at least one value");
  std::vector<FolioValue*> elements;
  for (size_t i = 0; i < count; ++i) {
    ORT_NOT_NULL(parts[i]);
    ORT_TRY(take_strings_back(*parts[i]));
    elements.push_back(parts[i]->get());
  }
  FolioElementType type = FOLIO_UNDEFINED;
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ORT_CALL(folio().GetValueKind(elements[0], &kind));
  if (kind != FOLIO_KIND_TENSOR) {
    return make_status(kNotImplemented, "CreateValue makes sequences of tensors only");
  }
  ORT_CALL(folio().GetElementType(elements[0], &type));
  ORT_CALL(folio().CreateSequence(type, elements.data(), count, out));
  return nullptr;
}

OrtStatus* create_map(const OrtValue* const* parts, size_t count, FolioValue** out) {
  if (count != 2) {
    return make_status(kInvalidArgument, "a map is made of two values: keys and values");
  }
  ORT_NOT_NULL(parts[0]);
  ORT_NOT_NULL(parts[1]);
  ORT_CALL(folio().CreateMap(parts[0]->get(), parts[1]->get(), out));
  return nullptr;
}

}  // namespace

OrtStatus* as_scalar(const std::vector<std::string>& scalars, const char* name,
                     const FolioValue* value, Value* out) {
  if (std::find(scalars.begin(), scalars.end(), name) == scalars.end()) return nullptr;
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  ORT_CALL(folio().GetValueKind(value, &kind));
  if (kind != FOLIO_KIND_TENSOR) return nullptr;
  const int64_t* dims = nullptr;
  size_t rank = 0;
  size_t count = 0;
  size_t bytes = 0;
  FolioElementType type = FOLIO_UNDEFINED;
  ORT_CALL(folio().GetTensorDims(value, &dims, &rank));
  ORT_CALL(folio().GetTensorElementCount(value, &count));
  ORT_CALL(folio().GetElementType(value, &type));
  if (rank == 0 || count != 1 || type == FOLIO_STRING) return nullptr;
  const void* data = nullptr;
  FolioValue* raw = nullptr;
  ORT_CALL(folio().GetTensorData(value, &data));
  ORT_CALL(folio().GetTensorBytes(value, &bytes));
  ORT_CALL(
      folio().CreateTensorWithConstData(data, bytes, nullptr, 0, type, nullptr, nullptr, &raw));
  out->reset(raw);
  return nullptr;
}

namespace slot {

OrtStatus* CreateTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dims, size_t dim_count,
                                  int type, OrtValue** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    if (dim_count > 0) ORT_NOT_NULL(dims);
    const FolioElementType element_type = to_folio_type(type);
    if (allocator != default_allocator() && element_type != FOLIO_STRING) {
      std::unique_ptr<OrtValue> value;
      ORT_TRY(allocate(allocator, dims, dim_count, type, &value));
      *out = value.release();
      return nullptr;
    }
    FolioValue* raw = nullptr;
    ORT_CALL(folio().CreateTensor(element_type, dims, dim_count, &raw));
    *out = OrtValue::own(raw).release();
    return nullptr;
  });
}

OrtStatus* CreateTensorWithDataAsOrtValue(const OrtMemoryInfo* info, void* data, size_t bytes,
                                          const int64_t* dims, size_t dim_count, int type,
                                          OrtValue** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(info);
    ORT_NOT_NULL(out);
    if (info->device_type != 0) {
      return make_status(kInvalidArgument, "memory of '" + info->name + "' is not the CPU's");
    }
    std::unique_ptr<OrtValue> value;
    ORT_TRY(wrap(data, bytes, dims, dim_count, type, nullptr, nullptr, &value));
    if (info->name != cpu_memory().name) value->memory = std::make_unique<OrtMemoryInfo>(*info);
    *out = value.release();
    return nullptr;
  });
}

OrtStatus* CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator* deleter, void* data, size_t bytes,
                                                    const int64_t* dims, size_t dim_count, int type,
                                                    OrtValue** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(deleter);
    ORT_NOT_NULL(out);
    auto lent = std::make_unique<Lent>(Lent{deleter, data});
    std::unique_ptr<OrtValue> value;
    ORT_TRY(wrap(data, bytes, dims, dim_count, type, Lent::give_back, lent.get(), &value));
    lent.release();  // the value's
    *out = value.release();
    return nullptr;
  });
}

OrtStatus* IsTensor(const OrtValue* value, int* out) noexcept {
  return is_kind(value, FOLIO_KIND_TENSOR, out);
}

OrtStatus* IsSparseTensor(const OrtValue* value, int* out) noexcept {
  return is_kind(value, FOLIO_KIND_SPARSE_TENSOR, out);
}

OrtStatus* HasValue(const OrtValue* value, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    int is_absent = 0;
    ORT_TRY(is_kind(value, FOLIO_KIND_OPTIONAL, &is_absent));
    ORT_NOT_NULL(out);
    *out = is_absent ? 0 : 1;
    return nullptr;
  });
}

OrtStatus* GetTensorMutableData(OrtValue* value, void** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    return data_of(value, out);
  });
}

OrtStatus* GetTensorData(const OrtValue* value, const void** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    void* data = nullptr;
    ORT_TRY(data_of(value, &data));
    *out = data;
    return nullptr;
  });
}

OrtStatus* TensorAt(OrtValue* value, const int64_t* place, size_t place_count,
                    void** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    if (place_count > 0) ORT_NOT_NULL(place);
    const int64_t* dims = nullptr;
    size_t dim_count = 0;
    FolioElementType type = FOLIO_UNDEFINED;
    ORT_CALL(folio().GetTensorDims(value->get(), &dims, &dim_count));
    ORT_CALL(folio().GetElementType(value->get(), &type));
    if (place_count != dim_count) {
      return make_status(kInvalidArgument, "the tensor has another number of dims");
    }
    const uint32_t bits = folio().GetElementTypeBits(type);
    if (bits == 0 || bits % CHAR_BIT != 0) {
      return make_status(kInvalidArgument, "elements of this type have no address");
    }
    size_t index = 0;
    for (size_t i = 0; i < dim_count; ++i) {
      if (place[i] < 0 || place[i] >= dims[i]) {
        return make_status(kInvalidArgument, "the location is outside of the tensor");
      }
      index = index * static_cast<size_t>(dims[i]) + static_cast<size_t>(place[i]);
    }
    void* data = nullptr;
    ORT_TRY(data_of(value, &data));
    *out = static_cast<char*>(data) + index * (bits / CHAR_BIT);
    return nullptr;
  });
}

OrtStatus* GetTensorSizeInBytes(const OrtValue* value, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    FolioElementType type = FOLIO_UNDEFINED;
    ORT_CALL(folio().GetElementType(value->get(), &type));
    if (type == FOLIO_STRING) {
      return make_status(kInvalidArgument, "strings have no size in bytes of their tensor");
    }
    ORT_CALL(folio().GetTensorBytes(value->get(), out));
    return nullptr;
  });
}

OrtStatus* GetTensorMemoryInfo(const OrtValue* value, const OrtMemoryInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    *out = value->memory ? value->memory.get() : &cpu_memory();
    return nullptr;
  });
}

OrtStatus* GetTensorElementTypeAndShapeDataReference(const OrtValue* value, int* out_type,
                                                     const int64_t** out_dims,
                                                     size_t* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out_type);
    ORT_NOT_NULL(out_dims);
    ORT_NOT_NULL(out_count);
    FolioElementType type = FOLIO_UNDEFINED;
    ORT_CALL(folio().GetElementType(value->get(), &type));
    ORT_CALL(folio().GetTensorDims(value->get(), out_dims, out_count));
    *out_type = to_ort_type(type);
    return nullptr;
  });
}

OrtStatus* GetValueCount(const OrtValue* value, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    FolioValueKind kind = FOLIO_KIND_UNKNOWN;
    ORT_CALL(folio().GetValueKind(value->get(), &kind));
    if (kind != FOLIO_KIND_SEQUENCE && kind != FOLIO_KIND_MAP) {
      return make_status(kFail, "the value is neither a sequence nor a map");
    }
    ORT_CALL(folio().GetValueCount(value->get(), out));
    return nullptr;
  });
}

OrtStatus* GetValue(const OrtValue* value, int index, OrtAllocator*, OrtValue** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    FolioValue* raw = nullptr;
    const auto place = static_cast<size_t>(index);  // below 0: out of range
    ORT_CALL(folio().GetValue(value->get(), place, &raw));
    *out = OrtValue::own(raw).release();
    return nullptr;
  });
}

OrtStatus* CreateValue(const OrtValue* const* parts, size_t count, int kind,
                       OrtValue** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(parts);
    ORT_NOT_NULL(out);
    FolioValue* raw = nullptr;
    if (kind == FOLIO_KIND_SEQUENCE) {
      ORT_TRY(create_sequence(parts, count, &raw));
    } else if (kind == FOLIO_KIND_MAP) {
      ORT_TRY(create_map(parts, count, &raw));
    } else {
      return make_status(kInvalidArgument, "CreateValue makes sequences and maps only");
    }
    *out = OrtValue::own(raw).release();
    return nullptr;
  });
}

void ReleaseValue(OrtValue* value) noexcept { delete value; }

OrtStatus* CopyTensors(const OrtEnv*, const OrtValue* const* sources, OrtValue* const* targets,
                       OrtSyncStream*, size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    if (count > 0) {
      ORT_NOT_NULL(sources);
      ORT_NOT_NULL(targets);
    }
    for (size_t i = 0; i < count; ++i) {
      const void* from = nullptr;
      void* to = nullptr;
      size_t bytes = 0;
      size_t room = 0;
      ORT_NOT_NULL(sources[i]);
      ORT_NOT_NULL(targets[i]);
      ORT_CALL(folio().GetTensorData(sources[i]->get(), &from));
      ORT_CALL(folio().GetTensorMutableData(targets[i]->get(), &to));
      ORT_CALL(folio().GetTensorBytes(sources[i]->get(), &bytes));
      ORT_CALL(folio().GetTensorBytes(targets[i]->get(), &room));
      if (bytes != room) return make_status(kInvalidArgument, "the tensors differ in size");
      std::memmove(to, from, bytes);
    }
    return nullptr;
  });
}

}  // namespace slot
}  // namespace folio::ort
