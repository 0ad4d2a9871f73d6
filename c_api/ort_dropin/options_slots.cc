// Slots: session options. They are kept as the program gives them, and become Folio's when a
// session is made (session_options.cc).
#include <algorithm>
#include <cstring>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

constexpr size_t kKeyBytesMax = 1024;
constexpr size_t kValueBytesMax = 8192;

// Sets a member of the options.
template <typename Set>
OrtStatus* set(OrtSessionOptions* options, Set&& body) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    body(*options);
    return nullptr;
  });
}

// A key of Folio's own must be right at once; those of ONNX Runtime are looked at when a session is
// made, as it does.
OrtStatus* check_folio_key(const char* key, const char* value) {
  if (std::strncmp(key, "folio.", 6) != 0) return nullptr;
  FolioSessionOptions* scratch = nullptr;
  ORT_CALL(folio().CreateSessionOptions(&scratch));
  const Options owner(scratch);
  ORT_CALL(folio().AddSessionConfigEntry(scratch, key, value));
  return nullptr;
}

OrtStatus* add_initializer(OrtSessionOptions* options, const char* name, const OrtValue* value) {
  ORT_NOT_NULL(name);
  ORT_NOT_NULL(value);
  if (*name == '\0') return make_status(kInvalidArgument, "the name of an initializer is empty");
  for (const auto& [known, given] : options->initializers) {
    if (known == name) {
      return make_status(kInvalidArgument,
                         std::string("initializer '") + name + "' was given before");
    }
  }
  options->initializers.emplace_back(name, value->value);
  return nullptr;
}

std::shared_ptr<FolioCancel> make_cancel() {
  FolioCancel* cancel = nullptr;
  if (FolioStatus* const status = folio().CreateCancel(&cancel)) {
    folio().ReleaseStatus(status);
    throw std::bad_alloc();  // the only way in which it fails
  }
  return std::shared_ptr<FolioCancel>(cancel, Cancel::deleter_type());
}

}  // namespace

namespace slot {

OrtStatus* CreateSessionOptions(OrtSessionOptions** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    auto options = std::make_unique<OrtSessionOptions>();
    options->cancel = make_cancel();
    *out = options.release();
    return nullptr;
  });
}

OrtStatus* CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    auto clone = std::make_unique<OrtSessionOptions>(*options);
    clone->cancel = make_cancel();
    *out = clone.release();
    return nullptr;
  });
}

void ReleaseSessionOptions(OrtSessionOptions* options) noexcept { delete options; }

OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options, const char* path) noexcept {
  return set(options, [&](OrtSessionOptions& o) { o.saved_path = path ? path : ""; });
}

OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options, int mode) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    if (mode != 0 && mode != 1) return make_status(kInvalidArgument, "execution mode is not valid");
    options->execution_mode = mode;
    return nullptr;
  });
}

OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    *out = options->execution_mode;
    return nullptr;
  });
}

OrtStatus* EnableProfiling(OrtSessionOptions* options, const char* prefix) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(prefix);
    options->profile_prefix = prefix;
    return nullptr;
  });
}

OrtStatus* DisableProfiling(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions& o) { o.profile_prefix.clear(); });
}

// Folio plans the memory of every run, in arenas of the process.
OrtStatus* EnableMemPattern(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions& o) { o.memory_pattern = true; });
}
OrtStatus* DisableMemPattern(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions& o) { o.memory_pattern = false; });
}
OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    *out = options->memory_pattern ? 1 : 0;
    return nullptr;
  });
}
OrtStatus* EnableCpuMemArena(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions&) {});
}
OrtStatus* DisableCpuMemArena(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions&) {});
}

OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* log_id) noexcept {
  return set(options, [&](OrtSessionOptions& o) { o.log_id = log_id ? log_id : ""; });
}
OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions* options, int) noexcept {
  return set(options, [](OrtSessionOptions&) {});
}
OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options, int level) noexcept {
  return set(options, [&](OrtSessionOptions& o) { o.log_level = level; });
}
OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction log,
                                  void* user) noexcept {
  return set(options, [&](OrtSessionOptions& o) {
    o.log = log;
    o.log_user = user;
  });
}

OrtStatus* SetSessionGraphOptimizationLevel(OrtSessionOptions* options, int level) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    if ((level < 0 || level > 3) && level != 99) {
      return make_status(kInvalidArgument, "graph optimization level is not valid");
    }
    options->optimization_level = level;
    return nullptr;
  });
}

OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int count) noexcept {
  return set(options, [&](OrtSessionOptions& o) { o.intra_op_threads = count; });
}
// Nodes run one after another, each with all threads.
OrtStatus* SetInterOpNumThreads(OrtSessionOptions* options, int) noexcept {
  return set(options, [](OrtSessionOptions&) {});
}
OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) noexcept {
  return set(options, [](OrtSessionOptions& o) { o.per_session_threads = false; });
}
// Results do not depend on the number of threads: they are deterministic anyway.
OrtStatus* SetDeterministicCompute(OrtSessionOptions* options, bool) noexcept {
  return set(options, [](OrtSessionOptions&) {});
}

OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name,
                                          int64_t value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(name);
    set_pair(&options->free_dims, name, std::to_string(value));
    return nullptr;
  });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* key,
                                 const char* value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(key);
    ORT_NOT_NULL(value);
    if (*key == '\0' || std::strlen(key) > kKeyBytesMax) {
      return make_status(kInvalidArgument, "a config key is empty or too long");
    }
    if (std::strlen(value) > kValueBytesMax) {
      return make_status(kInvalidArgument, "a config value is too long");
    }
    ORT_TRY(check_folio_key(key, value));
    set_pair(&options->config, key, value);
    return nullptr;
  });
}

OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* key,
                                 int* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(key);
    ORT_NOT_NULL(out);
    *out = find_pair(options->config, key) ? 1 : 0;
    return nullptr;
  });
}

OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* out,
                                 size_t* bytes) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(key);
    ORT_NOT_NULL(bytes);
    const std::string* value = find_pair(options->config, key);
    if (!value) {
      return make_status(kFail, std::string("config entry '") + key + "' is not set");
    }
    const size_t room = *bytes;
    *bytes = value->size() + 1;
    if (!out) return nullptr;  // only asks how much it is
    if (room < *bytes) return make_status(kInvalidArgument, "space is not enough for the value");
    std::memcpy(out, value->c_str(), *bytes);
    return nullptr;
  });
}

OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options,
                                          OrtKeyValuePairs** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->pairs = options->config;
    pairs->refresh();
    *out = pairs.release();
    return nullptr;
  });
}

OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name,
                          const OrtValue* value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    return add_initializer(options, name, value);
  });
}

OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* names,
                                   const OrtValue* const* values, size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    if (count > 0) ORT_NOT_NULL(names);
    if (count > 0) ORT_NOT_NULL(values);
    for (size_t i = 0; i < count; ++i) ORT_TRY(add_initializer(options, names[i], values[i]));
    return nullptr;
  });
}

OrtStatus* AddExternalInitializersFromFilesInMemory(OrtSessionOptions* options,
                                                    const char* const* names, char* const* contents,
                                                    const size_t* bytes, size_t count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    if (count > 0) ORT_NOT_NULL(names);
    if (count > 0) ORT_NOT_NULL(contents);
    if (count > 0) ORT_NOT_NULL(bytes);
    for (size_t i = 0; i < count; ++i) {
      ORT_NOT_NULL(names[i]);
      options->files.push_back({names[i], contents[i], bytes[i]});
    }
    return nullptr;
  });
}

OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    // From another thread while a session is made; Folio's flag cannot be taken back.
    if (cancel) {
      ORT_CALL(folio().CancelRequest(options->cancel.get()));
    } else {
      int32_t is_set = 0;
      ORT_CALL(folio().CancelIsRequested(options->cancel.get(), &is_set));
      if (is_set) options->cancel = make_cancel();
    }
    return nullptr;
  });
}

}  // namespace slot
}  // namespace folio::ort
