// Slots: tensors of strings.
#include <cstring>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

// Calls visit(index, text) for each string; the first status ends it.
template <typename Visit>
OrtStatus* each_string(const OrtValue* value, Visit&& visit) {
  size_t count = 0;
  ORT_CALL(folio().GetTensorElementCount(value->get(), &count));
  for (size_t i = 0; i < count; ++i) {
    const char* text = nullptr;
    size_t bytes = 0;
    ORT_CALL(folio().GetStringTensorElement(value->get(), i, &text, &bytes));
    ORT_TRY(visit(i, std::string_view(text, bytes)));
  }
  return nullptr;
}

// A tensor of strings, with what the program wrote to them.
OrtStatus* check_strings(const OrtValue* value) {
  ORT_TRY(take_strings_back(*value));
  FolioElementType type = FOLIO_UNDEFINED;
  ORT_CALL(folio().GetElementType(value->get(), &type));
  if (type == FOLIO_STRING) return nullptr;
  return make_status(kInvalidArgument, "the tensor is not of strings");
}

OrtStatus* set_string(OrtValue* value, size_t index, const char* text) {
  ORT_NOT_NULL(text);
  const size_t bytes = std::strlen(text);
  char* place = nullptr;
  ORT_TRY(take_strings_back(*value));
  value->shown.clear();
  ORT_CALL(folio().ResizeStringTensorElement(value->get(), index, bytes, &place));
  std::memcpy(place, text, bytes);
  return nullptr;
}

OrtStatus* total_bytes(const OrtValue* value, size_t* out) {
  *out = 0;
  return each_string(value, [&](size_t, std::string_view text) -> OrtStatus* {
    *out += text.size();
    return nullptr;
  });
}

}  // namespace

OrtStatus* show_strings(const OrtValue& value) {
  std::vector<std::string> texts;
  ORT_TRY(each_string(&value, [&](size_t, std::string_view text) -> OrtStatus* {
    texts.emplace_back(text);
    return nullptr;
  }));
  if (texts.empty()) texts.emplace_back();  // no strings have a place too
  value.shown = std::move(texts);
  return nullptr;
}

OrtStatus* take_strings_back(const OrtValue& value) {
  if (value.shown.empty()) return nullptr;
  return each_string(&value, [&](size_t i, std::string_view text) -> OrtStatus* {
    const std::string& written = value.shown[i];
    if (written == text) return nullptr;
    char* place = nullptr;
    ORT_CALL(folio().ResizeStringTensorElement(value.get(), i, written.size(), &place));
    std::memcpy(place, written.data(), written.size());
    return nullptr;
  });
}

namespace slot {

OrtStatus* FillStringTensor(OrtValue* value, const char* const* strings, size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    if (count > 0) ORT_NOT_NULL(strings);
    ORT_TRY(check_strings(value));
    size_t expected = 0;
    ORT_CALL(folio().GetTensorElementCount(value->get(), &expected));
    if (count != expected) {
      return make_status(kInvalidArgument, "the tensor has " + std::to_string(expected) +
                                               " strings, given are " + std::to_string(count));
    }
    for (size_t i = 0; i < count; ++i) ORT_TRY(set_string(value, i, strings[i]));
    return nullptr;
  });
}

OrtStatus* FillStringTensorElement(OrtValue* value, const char* text, size_t index) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    return set_string(value, index, text);
  });
}

OrtStatus* GetResizedStringTensorElementBuffer(OrtValue* value, size_t index, size_t bytes,
                                               char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    ORT_TRY(take_strings_back(*value));
    value->shown.clear();
    ORT_CALL(folio().ResizeStringTensorElement(value->get(), index, bytes, out));
    return nullptr;
  });
}

OrtStatus* GetStringTensorDataLength(const OrtValue* value, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    ORT_TRY(check_strings(value));
    return total_bytes(value, out);
  });
}

OrtStatus* GetStringTensorContent(const OrtValue* value, void* out, size_t bytes, size_t* offsets,
                                  size_t offset_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_TRY(check_strings(value));
    size_t needed = 0;
    size_t count = 0;
    ORT_TRY(total_bytes(value, &needed));
    ORT_CALL(folio().GetTensorElementCount(value->get(), &count));
    if (needed > bytes) return make_status(kFail, "space is not enough for the strings");
    if (count != offset_count) return make_status(kFail, "there is one offset for each string");
    if (needed > 0) ORT_NOT_NULL(out);
    if (count > 0) ORT_NOT_NULL(offsets);
    size_t at = 0;
    return each_string(value, [&](size_t i, std::string_view text) -> OrtStatus* {
      offsets[i] = at;
      if (!text.empty()) std::memcpy(static_cast<char*>(out) + at, text.data(), text.size());
      at += text.size();
      return nullptr;
    });
  });
}

OrtStatus* GetStringTensorElementLength(const OrtValue* value, size_t index, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_NOT_NULL(out);
    ORT_TRY(take_strings_back(*value));
    const char* text = nullptr;
    ORT_CALL(folio().GetStringTensorElement(value->get(), index, &text, out));
    return nullptr;
  });
}

OrtStatus* GetStringTensorElement(const OrtValue* value, size_t bytes, size_t index,
                                  void* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(value);
    ORT_TRY(take_strings_back(*value));
    const char* text = nullptr;
    size_t found = 0;
    ORT_CALL(folio().GetStringTensorElement(value->get(), index, &text, &found));
    if (found > bytes) return make_status(kFail, "space is not enough for the string");
    if (found > 0) ORT_NOT_NULL(out);
    if (found > 0) std::memcpy(out, text, found);
    return nullptr;
  });
}

}  // namespace slot
}  // namespace folio::ort
