// Slots: inputs and outputs that are bound beforehand.
#include <cstring>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

// Memory of the program's allocator that goes back unless it is given away.
class Given {
 public:
  Given(OrtAllocator* allocator, size_t bytes)
      : allocator_(allocator), memory_(allocator->Alloc(allocator, bytes)) {
    if (!memory_) throw std::bad_alloc();
  }
  ~Given() {
    if (memory_) allocator_->Free(allocator_, memory_);
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

  void* get() const { return memory_; }
  void* release() { return std::exchange(memory_, nullptr); }

 private:
  OrtAllocator* allocator_;
  void* memory_;
};

OrtStatus* bound_names(const FolioIoBinding* binding, std::vector<std::string>* out) {
  size_t count = 0;
  ORT_CALL(folio().GetBoundOutputCount(binding, &count));
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    ORT_CALL(folio().GetBoundOutputName(binding, i, &name));
    out->emplace_back(name);
  }
  return nullptr;
}

}  // namespace

namespace slot {

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(out);
    auto binding = std::make_unique<OrtIoBinding>();
    binding->scalars = session->scalars;
    FolioIoBinding* raw = nullptr;
    ORT_CALL(folio().CreateIoBinding(session->session.get(), &raw));
    binding->binding.reset(raw);
    *out = binding.release();
    return nullptr;
  });
}

void ReleaseIoBinding(OrtIoBinding* binding) noexcept { delete binding; }

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* options,
                          const OrtIoBinding* binding) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(binding);
    ORT_CALL(folio().RunWithBinding(session->session.get(),
                                    options ? options->options.get() : nullptr,
                                    binding->binding.get()));
    return nullptr;
  });
}

OrtStatus* BindInput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(binding);
    ORT_NOT_NULL(value);
    ORT_TRY(take_strings_back(*value));
    ORT_NOT_NULL(name);
    Value scalar;
    ORT_TRY(as_scalar(binding->scalars, name, value->get(), &scalar));
    ORT_CALL(folio().BindInput(binding->binding.get(), name, scalar ? scalar.get() : value->get()));
    return nullptr;
  });
}

OrtStatus* BindOutput(OrtIoBinding* binding, const char* name, const OrtValue* value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(binding);
    ORT_NOT_NULL(value);
    ORT_CALL(folio().BindOutput(binding->binding.get(), name, value->get()));
    return nullptr;
  });
}

OrtStatus* BindOutputToDevice(OrtIoBinding* binding, const char* name,
                              const OrtMemoryInfo* info) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(binding);
    ORT_NOT_NULL(info);
    if (info->device_type != 0) {
      return make_status(kInvalidArgument, "memory of '" + info->name + "' is not the CPU's");
    }
    ORT_CALL(folio().BindOutput(binding->binding.get(), name, nullptr));
    return nullptr;
  });
}

// All names one after another, without ends, and the length of each.
OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding, OrtAllocator* allocator, char** out,
                               size_t** out_lengths, size_t* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(binding);
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_lengths);
    ORT_NOT_NULL(out_count);
    std::vector<std::string> names;
    ORT_TRY(bound_names(binding->binding.get(), &names));
    if (names.empty()) {
      *out = nullptr;
      *out_lengths = nullptr;
      *out_count = 0;
      return nullptr;
    }
    std::string all;
    for (const std::string& name : names) all += name;
    Given text(allocator, all.size() + 1);
    Given lengths(allocator, names.size() * sizeof(size_t));
    std::memcpy(text.get(), all.c_str(), all.size() + 1);
    for (size_t i = 0; i < names.size(); ++i) {
      static_cast<size_t*>(lengths.get())[i] = names[i].size();
    }
    *out = static_cast<char*>(text.release());
    *out_lengths = static_cast<size_t*>(lengths.release());
    *out_count = names.size();
    return nullptr;
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding, OrtAllocator* allocator,
                                OrtValue*** out, size_t* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(binding);
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_count);
    size_t count = 0;
    ORT_CALL(folio().GetBoundOutputCount(binding->binding.get(), &count));
    std::vector<std::unique_ptr<OrtValue>> values;
    for (size_t i = 0; i < count; ++i) {
      FolioValue* raw = nullptr;
      ORT_CALL(folio().GetBoundOutputValue(binding->binding.get(), i, &raw));
      values.push_back(OrtValue::own(raw));
    }
    if (count == 0) {
      *out = nullptr;
      *out_count = 0;
      return nullptr;
    }
    Given array(allocator, count * sizeof(OrtValue*));
    for (size_t i = 0; i < count; ++i) {
      static_cast<OrtValue**>(array.get())[i] = values[i].release();
    }
    *out = static_cast<OrtValue**>(array.release());
    *out_count = count;
    return nullptr;
  });
}

void ClearBoundInputs(OrtIoBinding* binding) noexcept {
  if (binding) folio().ReleaseStatus(folio().ClearBoundInputs(binding->binding.get()));
}

void ClearBoundOutputs(OrtIoBinding* binding) noexcept {
  if (binding) folio().ReleaseStatus(folio().ClearBoundOutputs(binding->binding.get()));
}

// Everything is in memory of the CPU when a call returns.
OrtStatus* SynchronizeBoundInputs(OrtIoBinding*) noexcept { return nullptr; }
OrtStatus* SynchronizeBoundOutputs(OrtIoBinding*) noexcept { return nullptr; }

}  // namespace slot
}  // namespace folio::ort
