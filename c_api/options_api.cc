// Entries: ModelOptions, PackCache, SessionOptions and RunOptions.
#include <algorithm>

#include "c_api/entries.h"
#include "c_api/env_config.h"
#include "c_api/handles.h"

namespace folio {
namespace {

Status check_config(const char* key, const char* value) {
  FOLIO_RETURN_IF_ERROR(check_name(key, "key"));
  return check_name(value, "value");
}

// Of models and of sessions.
template <typename Options>
FolioStatus* set_progress(Options* options, FolioProgressFunction progress, void* user) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    options->progress = progress;
    options->progress_user = user;
    return Status::ok();
  });
}

template <typename Options>
FolioStatus* set_cancel(Options* options, FolioCancel* cancel) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    options->cancel = cancel ? cancel->state : nullptr;
    return Status::ok();
  });
}

// Of models, and of sessions that open theirs.
FolioStatus* add_external_file(ModelOptions* options, const char* name, const void* data,
                               size_t bytes, FolioReleaseFunction release, void* user) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    if (bytes > 0) FOLIO_NOT_NULL(data);
    std::string location = name;
    if (location.starts_with("./")) location.erase(0, 2);
    Ref<Lent> lent;
    FOLIO_TRY(Ref<ByteSource> source, lend_bytes(data, bytes, release, user, location, &lent));
    options->files[location] = std::move(source);
    if (lent) lent->keep();
    return Status::ok();
  });
}

}  // namespace

namespace entry {

FolioStatus* CreateModelOptions(FolioModelOptions** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    auto options = std::make_unique<FolioModelOptions>();
    options->options = model_defaults();
    *out = options.release();
    return Status::ok();
  });
}

FolioStatus* AddModelConfigEntry(FolioModelOptions* options, const char* key, const char* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_config(key, value));
    return set_config(&options->options, nullptr, key, value);
  });
}

FolioStatus* ModelOptionsSetProgress(FolioModelOptions* options, FolioProgressFunction progress,
                                     void* user) {
  return set_progress(options, progress, user);
}

FolioStatus* ModelOptionsSetCancel(FolioModelOptions* options, FolioCancel* cancel) {
  return set_cancel(options, cancel);
}

FolioStatus* AddExternalFileFromMemory(FolioModelOptions* options, const char* name,
                                       const void* data, size_t bytes, FolioReleaseFunction release,
                                       void* user) {
  return add_external_file(options ? &options->options : nullptr, name, data, bytes, release, user);
}

void ReleaseModelOptions(FolioModelOptions* options) { delete options; }

FolioStatus* CreatePackCache(const FolioPackCacheOptions* options, FolioPackCache** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FolioPackCacheOptions asked = {};
    if (options) FOLIO_RETURN_IF_ERROR(read_struct(options, &asked, "FolioPackCacheOptions"));
    if (asked.hold != 0 && asked.hold != 1) {
      return invalid_argument("hold is ", asked.hold, ", expected 0 or 1");
    }
    if (asked.record != 0 && asked.record != 1) {
      return invalid_argument("record is ", asked.record, ", expected 0 or 1");
    }
    using Keep = PackedCache::Keep;
    auto cache = std::make_unique<FolioPackCache>();
    cache->cache = std::make_shared<PackedCache>(asked.record ? Keep::kRecord
                                                 : asked.hold ? Keep::kHold
                                                              : Keep::kWeak);
    *out = cache.release();
    return Status::ok();
  });
}

void ReleasePackCache(FolioPackCache* cache) { delete cache; }

FolioStatus* CreateSessionOptions(FolioSessionOptions** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    auto options = std::make_unique<FolioSessionOptions>();
    options->options = session_defaults();
    options->model = model_defaults();
    *out = options.release();
    return Status::ok();
  });
}

FolioStatus* AddSessionConfigEntry(FolioSessionOptions* options, const char* key,
                                   const char* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_config(key, value));
    return set_config(&options->model, &options->options, key, value);
  });
}

FolioStatus* AddFreeDimensionOverrideByName(FolioSessionOptions* options, const char* name,
                                            int64_t value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    if (*name == '\0') return invalid_argument("the name of a dim is empty");
    if (value < 0) return invalid_argument("dim '", name, "' is set to ", value, ", below 0");
    FreeDims& dims = options->options.free_dims;
    const auto known =
        std::find_if(dims.begin(), dims.end(), [&](const auto& dim) { return dim.first == name; });
    if (known != dims.end()) {
      known->second = value;
    } else {
      dims.emplace_back(name, value);
    }
    return Status::ok();
  });
}

FolioStatus* AddInitializer(FolioSessionOptions* options, const char* name, FolioValue* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    FOLIO_NOT_NULL(value);
    if (!value->value.is_tensor()) {
      return invalid_argument("the value for initializer '", name, "' is no tensor");
    }
    auto& given = options->options.initializers;
    const auto known = std::find_if(given.begin(), given.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (known != given.end()) {
      known->second = value->value.tensor();
    } else {
      given.emplace_back(name, value->value.tensor());
    }
    return Status::ok();
  });
}

FolioStatus* SessionOptionsAddExternalFileFromMemory(FolioSessionOptions* options, const char* name,
                                                     const void* data, size_t bytes,
                                                     FolioReleaseFunction release, void* user) {
  return add_external_file(options ? &options->model : nullptr, name, data, bytes, release, user);
}

FolioStatus* SessionOptionsSetPackCache(FolioSessionOptions* options, FolioPackCache* cache) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    options->options.cache = cache ? cache->cache : nullptr;
    return Status::ok();
  });
}

FolioStatus* SessionOptionsSetProgress(FolioSessionOptions* options, FolioProgressFunction progress,
                                       void* user) {
  return set_progress(options, progress, user);
}

FolioStatus* SessionOptionsSetCancel(FolioSessionOptions* options, FolioCancel* cancel) {
  return set_cancel(options, cancel);
}

void ReleaseSessionOptions(FolioSessionOptions* options) { delete options; }

FolioStatus* CreateRunOptions(FolioRunOptions** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    *out = new FolioRunOptions;
    return Status::ok();
  });
}

FolioStatus* AddRunConfigEntry(FolioRunOptions* options, const char* key, const char* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_config(key, value));
    return set_config(nullptr, nullptr, key, value);
  });
}

FolioStatus* RunOptionsSetCancel(FolioRunOptions* options, FolioCancel* cancel) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    options->cancel = cancel ? cancel->state : nullptr;
    options->options.cancel = cancel ? &options->cancel->requested : nullptr;
    return Status::ok();
  });
}

FolioStatus* RunOptionsSetTimeout(FolioRunOptions* options, uint64_t timeout_ms) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    constexpr uint64_t kCentury = uint64_t{100} * 366 * 24 * 3600 * 1000;  // fits every clock
    options->options.timeout =
        std::chrono::milliseconds(static_cast<int64_t>(std::min(timeout_ms, kCentury)));
    return Status::ok();
  });
}

FolioStatus* RunOptionsSetRunTag(FolioRunOptions* options, const char* tag) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(options);
    FOLIO_RETURN_IF_ERROR(check_name(tag, "tag"));
    options->options.tag = tag;
    return Status::ok();
  });
}

void ReleaseRunOptions(FolioRunOptions* options) { delete options; }

}  // namespace entry
}  // namespace folio
