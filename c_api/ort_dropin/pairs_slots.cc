// Slots: lists of keys and values, and descriptions of initializers in files.
#include <algorithm>

#include "c_api/ort_dropin/handles.h"

void OrtKeyValuePairs::refresh() {
  keys.clear();
  values.clear();
  for (const auto& [key, value] : pairs) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
}

namespace folio::ort {
namespace {

// These slots cannot fail: without memory they do nothing.
template <typename Body>
void try_to(Body&& body) noexcept {
  try {
    body();
  } catch (...) {
  }
}

}  // namespace

namespace slot {

void CreateKeyValuePairs(OrtKeyValuePairs** out) noexcept {
  try_to([&] {
    if (out) *out = new OrtKeyValuePairs;
  });
}

void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) noexcept {
  try_to([&] {
    if (!pairs || !key || *key == '\0' || !value) return;
    set_pair(&pairs->pairs, key, value);
    pairs->refresh();
  });
}

const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) noexcept {
  if (!pairs || !key) return nullptr;
  const std::string* value = find_pair(pairs->pairs, key);
  return value ? value->c_str() : nullptr;
}

void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys,
                      const char* const** values, size_t* out_count) noexcept {
  if (!keys || !values || !out_count) return;
  *keys = pairs ? pairs->keys.data() : nullptr;
  *values = pairs ? pairs->values.data() : nullptr;
  *out_count = pairs ? pairs->keys.size() : 0;
}

void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) noexcept {
  try_to([&] {
    if (!pairs || !key) return;
    auto& all = pairs->pairs;
    all.erase(
        std::remove_if(all.begin(), all.end(), [&](const auto& pair) { return pair.first == key; }),
        all.end());
    pairs->refresh();
  });
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) noexcept { delete pairs; }

OrtStatus* CreateExternalInitializerInfo(const char* path, int64_t offset, size_t bytes,
                                         OrtExternalInitializerInfo** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(path);
    ORT_NOT_NULL(out);
    *out = new OrtExternalInitializerInfo{path, offset, bytes};
    return nullptr;
  });
}

void ReleaseExternalInitializerInfo(OrtExternalInitializerInfo* info) noexcept { delete info; }

const char* ExternalInitializerInfo_GetFilePath(const OrtExternalInitializerInfo* info) noexcept {
  return info ? info->path.c_str() : nullptr;
}

int64_t ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo* info) noexcept {
  return info ? info->offset : 0;
}

size_t ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo* info) noexcept {
  return info ? info->bytes : 0;
}

}  // namespace slot
}  // namespace folio::ort
