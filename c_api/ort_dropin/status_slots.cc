// Slots: status; and what all slots share.
#include <algorithm>
#include <cstring>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

OrtStatus* memory_status() {
  // Made while the library is loaded, and never freed.
  static auto* const status = new OrtStatus{kRuntimeException, "out of memory"};
  return status;
}
[[maybe_unused]] const OrtStatus* const g_made_at_load = memory_status();

// ONNX Runtime's code for what Folio has codes of its own for.
int to_ort_code(FolioErrorCode code) {
  switch (code) {
    case FOLIO_NO_MODEL:
      return kInvalidProtobuf;  // bytes that are no model are a parser's failure there
    case FOLIO_OUT_OF_MEMORY:
      return kRuntimeException;  // what a std::bad_alloc becomes there
    case FOLIO_UNSUPPORTED_OPERATOR:
      return kNotImplemented;
    default:
      return code >= 100 ? kFail : static_cast<int>(code);
  }
}

}  // namespace

OrtStatus* make_status(int code, std::string_view message) noexcept {
  try {
    return new OrtStatus{code, std::string(message)};
  } catch (...) {
    return out_of_memory();
  }
}

OrtStatus* out_of_memory() noexcept { return memory_status(); }

OrtStatus* to_ort(FolioStatus* status) noexcept {
  if (!status) return nullptr;
  const FolioErrorCode code = folio().GetErrorCode(status);
  OrtStatus* result = code == FOLIO_OUT_OF_MEMORY
                          ? out_of_memory()
                          : make_status(to_ort_code(code), folio().GetErrorMessage(status));
  folio().ReleaseStatus(status);
  return result;
}

OrtStatus* not_implemented(const char* function, const char* why) noexcept {
  return guarded([&] {
    return make_status(kNotImplemented, std::string(function) + " is not implemented: " + why);
  });
}

namespace {
// ONNX Runtime's order after FLOAT4E2M1 (23): UINT2, INT2, FLOAT8E8M0.
constexpr int kOrtUint2 = 24;
constexpr int kOrtInt2 = 25;
constexpr int kOrtFloat8e8m0 = 26;
}  // namespace

FolioElementType to_folio_type(int type) {
  switch (type) {
    case kOrtUint2:
      return FOLIO_UINT2;
    case kOrtInt2:
      return FOLIO_INT2;
    case kOrtFloat8e8m0:
      return FOLIO_FLOAT8E8M0;
    default:
      return static_cast<FolioElementType>(type);
  }
}

int to_ort_type(FolioElementType type) {
  switch (type) {
    case FOLIO_UINT2:
      return kOrtUint2;
    case FOLIO_INT2:
      return kOrtInt2;
    case FOLIO_FLOAT8E8M0:
      return kOrtFloat8e8m0;
    default:
      return static_cast<int>(type);
  }
}

const std::string* find_pair(const Pairs& pairs, std::string_view key) {
  const auto it =
      std::find_if(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == key; });
  return it == pairs.end() ? nullptr : &it->second;
}

void set_pair(Pairs* pairs, std::string_view key, std::string_view value) {
  for (auto& [known, text] : *pairs) {
    if (known != key) continue;
    text = value;
    return;
  }
  pairs->emplace_back(key, value);
}

OrtStatus* give_text(OrtAllocator* allocator, std::string_view text, char** out) {
  ORT_NOT_NULL(allocator);
  ORT_NOT_NULL(out);
  auto* copy = static_cast<char*>(allocator->Alloc(allocator, text.size() + 1));
  if (!copy) return out_of_memory();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  *out = copy;
  return nullptr;
}

namespace slot {

OrtStatus* CreateStatus(int code, const char* message) noexcept {
  // ONNX Runtime has no status for success but NULL.
  return code == kOk ? nullptr : make_status(code, message ? message : "");
}

int GetErrorCode(const OrtStatus* status) noexcept { return status ? status->code : kOk; }

const char* GetErrorMessage(const OrtStatus* status) noexcept {
  return status ? status->message.c_str() : "";
}

void ReleaseStatus(OrtStatus* status) noexcept {
  if (status != out_of_memory()) delete status;
}

}  // namespace slot
}  // namespace folio::ort
