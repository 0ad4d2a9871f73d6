// Slots: sessions, what they say of themselves, and their models' metadata.
#include <cstring>

#include "c_api/ort_dropin/session_options.h"
#include "c_api/ort_dropin/types.h"

namespace folio::ort {
namespace {

// A model's file, or its bytes.
struct Source {
  const char* path = nullptr;
  const void* data = nullptr;
  size_t bytes = 0;
};

// A session with a log of its own has a Folio environment of its own.
OrtStatus* own_env(const OrtSessionOptions& options, const OrtEnv* env, Env* out) {
  if (!options.log) return nullptr;
  auto target = std::make_unique<LogTarget>();
  target->log = options.log;
  target->user = options.log_user;
  target->id = options.log_id;
  target->level = options.log_level >= 0 ? options.log_level
                  : env                  ? env->log->level.load()
                                         : static_cast<int>(FOLIO_LOG_WARNING);
  return make_env(std::move(target), 0, out, nullptr);
}

OrtStatus* find_scalars(OrtSession* session) {
  size_t count = 0;
  ORT_CALL(folio().SessionGetInputCount(session->session.get(), &count));
  for (size_t i = 0; i < count; ++i) {
    const FolioValueInfo* port = nullptr;
    ORT_CALL(folio().SessionGetInput(session->session.get(), i, &port));
    FolioValueKind kind = FOLIO_KIND_UNKNOWN;
    const int64_t* dims = nullptr;
    size_t rank = 0;
    int32_t has_shape = 0;
    const char* name = nullptr;
    ORT_CALL(folio().ValueInfoGetKind(port, &kind));
    ORT_CALL(folio().ValueInfoHasShape(port, &has_shape));
    ORT_CALL(folio().ValueInfoGetDims(port, &dims, &rank));
    ORT_CALL(folio().ValueInfoGetName(port, &name));
    if (kind == FOLIO_KIND_TENSOR && has_shape && rank == 0) session->scalars.emplace_back(name);
  }
  return nullptr;
}

OrtStatus* create(const OrtEnv* env, const Source& source, const OrtSessionOptions* options,
                  const OrtPrepackedWeightsContainer* container, OrtSession** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(env);
    ORT_NOT_NULL(out);
    const OrtSessionOptions defaults;
    const OrtSessionOptions& asked = options ? *options : defaults;
    Env own;
    ORT_TRY(own_env(asked, env, &own));  // first: it hears what there is to say of the options
    Options folios;
    ORT_TRY(folio_options(asked, env, container ? container->cache.get() : nullptr, &folios));
    const FolioEnv* const used = own ? own.get() : env->env.get();
    FolioSession* raw = nullptr;
    if (source.path) {
      ORT_CALL(folio().CreateSession(used, source.path, folios.get(), &raw));
    } else {
      ORT_CALL(folio().CreateSessionFromArray(used, source.data, source.bytes, folios.get(), &raw));
    }
    auto session = std::make_unique<OrtSession>();
    session->session.reset(raw);
    FolioModel* model = nullptr;
    ORT_CALL(folio().SessionGetModel(raw, &model));
    session->model.reset(model);
    ORT_TRY(find_scalars(session.get()));
    *out = session.release();
    return nullptr;
  });
}

OrtStatus* create_from_path(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                            const OrtPrepackedWeightsContainer* container, OrtSession** out) {
  if (!path) return make_status(kInvalidArgument, "argument 'model_path' is NULL");
  return create(env, {path, nullptr, 0}, options, container, out);
}

OrtStatus* create_from_bytes(const OrtEnv* env, const void* data, size_t bytes,
                             const OrtSessionOptions* options,
                             const OrtPrepackedWeightsContainer* container, OrtSession** out) {
  if (!data) return make_status(kInvalidArgument, "argument 'model_data' is NULL");
  return create(env, {nullptr, data, bytes}, options, container, out);
}

using GetCount = FolioStatus* (*FolioApi::*)(const FolioSession*, size_t*);
using GetPort = FolioStatus* (*FolioApi::*)(const FolioSession*, size_t, const FolioValueInfo**);

OrtStatus* port_count(const OrtSession* session, GetCount get, size_t* out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(out);
    ORT_CALL((folio().*get)(session->session.get(), out));
    return nullptr;
  });
}

OrtStatus* port_type(const OrtSession* session, size_t index, GetPort get, OrtTypeInfo** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(out);
    const FolioValueInfo* port = nullptr;
    ORT_CALL((folio().*get)(session->session.get(), index, &port));
    auto info = std::make_unique<OrtTypeInfo>();
    ORT_TRY(type_of_info(port, info.get()));
    *out = info.release();
    return nullptr;
  });
}

OrtStatus* port_name(const OrtSession* session, size_t index, OrtAllocator* allocator, GetPort get,
                     char** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    const FolioValueInfo* port = nullptr;
    const char* name = nullptr;
    ORT_CALL((folio().*get)(session->session.get(), index, &port));
    ORT_CALL(folio().ValueInfoGetName(port, &name));
    return give_text(allocator, name, out);
  });
}

OrtStatus* info_of(const OrtModelMetadata* metadata, FolioModelInfo* out) {
  ORT_NOT_NULL(metadata);
  *out = {};
  out->size = sizeof *out;
  ORT_CALL(folio().ModelGetInfo(metadata->model.get(), out));
  return nullptr;
}

OrtStatus* metadata_text(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                         const char* FolioModelInfo::*member, char** out) {
  return guarded([&]() -> OrtStatus* {
    FolioModelInfo info;
    ORT_TRY(info_of(metadata, &info));
    return give_text(allocator, info.*member, out);
  });
}

}  // namespace

namespace slot {

OrtStatus* CreateSession(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                         OrtSession** out) noexcept {
  return create_from_path(env, path, options, nullptr, out);
}

OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* data, size_t bytes,
                                  const OrtSessionOptions* options, OrtSession** out) noexcept {
  return create_from_bytes(env, data, bytes, options, nullptr, out);
}

OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env, const char* path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer* container,
                                                      OrtSession** out) noexcept {
  return create_from_path(env, path, options, container, out);
}

OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv* env, const void* data, size_t bytes, const OrtSessionOptions* options,
    OrtPrepackedWeightsContainer* container, OrtSession** out) noexcept {
  return create_from_bytes(env, data, bytes, options, container, out);
}

// Its weights stay until it is released, as in ONNX Runtime.
OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    FolioPackCacheOptions options = {};
    options.size = sizeof options;
    options.hold = 1;
    FolioPackCache* cache = nullptr;
    ORT_CALL(folio().CreatePackCache(&options, &cache));
    PackCache owner(cache);
    *out = new OrtPrepackedWeightsContainer{std::move(owner)};
    return nullptr;
  });
}

void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* container) noexcept {
  delete container;
}

void ReleaseSession(OrtSession* session) noexcept { delete session; }

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) noexcept {
  return port_count(session, &FolioApi::SessionGetInputCount, out);
}
OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) noexcept {
  return port_count(session, &FolioApi::SessionGetOutputCount, out);
}
OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) noexcept {
  return port_count(session, &FolioApi::SessionGetOverridableInitializerCount, out);
}

OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index,
                                   OrtTypeInfo** out) noexcept {
  return port_type(session, index, &FolioApi::SessionGetInput, out);
}
OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index,
                                    OrtTypeInfo** out) noexcept {
  return port_type(session, index, &FolioApi::SessionGetOutput, out);
}
OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** out) noexcept {
  return port_type(session, index, &FolioApi::SessionGetOverridableInitializer, out);
}

OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                               char** out) noexcept {
  return port_name(session, index, allocator, &FolioApi::SessionGetInput, out);
}
OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                char** out) noexcept {
  return port_name(session, index, allocator, &FolioApi::SessionGetOutput, out);
}
OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index,
                                                OrtAllocator* allocator, char** out) noexcept {
  return port_name(session, index, allocator, &FolioApi::SessionGetOverridableInitializer, out);
}

// The path of the profile; "" for a session without one, as in ONNX Runtime.
OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    char* raw = nullptr;
    ORT_CALL(folio().SessionEndProfiling(session->session.get(), &raw));
    const std::unique_ptr<char, void (*)(char*)> path(raw, folio().ReleaseString);
    return give_text(allocator, path.get(), out);
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(out);
    ORT_CALL(folio().SessionGetProfilingStartTime(session->session.get(), out));
    return nullptr;
  });
}

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(out);
    FolioModel* raw = nullptr;
    ORT_CALL(folio().SessionGetModel(session->session.get(), &raw));
    Model model(raw);
    *out = new OrtModelMetadata{std::move(model)};
    return nullptr;
  });
}

void ReleaseModelMetadata(OrtModelMetadata* metadata) noexcept { delete metadata; }

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                        char** out) noexcept {
  return metadata_text(metadata, allocator, &FolioModelInfo::producer_name, out);
}
OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                     char** out) noexcept {
  return metadata_text(metadata, allocator, &FolioModelInfo::graph_name, out);
}
OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                  char** out) noexcept {
  return metadata_text(metadata, allocator, &FolioModelInfo::domain, out);
}
OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* metadata, OrtAllocator* allocator,
                                       char** out) noexcept {
  return metadata_text(metadata, allocator, &FolioModelInfo::description, out);
}
// Folio keeps the model's description, not the graph's.
OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* metadata,
                                            OrtAllocator* allocator, char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(metadata);
    return give_text(allocator, "", out);
  });
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* metadata, int64_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    FolioModelInfo info;
    ORT_TRY(info_of(metadata, &info));
    *out = info.model_version;
    return nullptr;
  });
}

OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* metadata,
                                                OrtAllocator* allocator, const char* key,
                                                char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(metadata);
    ORT_NOT_NULL(key);
    ORT_NOT_NULL(out);
    const char* value = nullptr;
    ORT_CALL(folio().ModelLookupMetadata(metadata->model.get(), key, &value));
    if (value) return give_text(allocator, value, out);
    *out = nullptr;
    return nullptr;
  });
}

OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* metadata,
                                                 OrtAllocator* allocator, char*** out,
                                                 int64_t* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(metadata);
    ORT_NOT_NULL(allocator);
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_count);
    size_t count = 0;
    ORT_CALL(folio().ModelGetMetadataCount(metadata->model.get(), &count));
    char** keys = nullptr;
    if (count > 0) {
      keys = static_cast<char**>(allocator->Alloc(allocator, count * sizeof(char*)));
      if (!keys) return out_of_memory();
    }
    OrtStatus* status = nullptr;
    size_t made = 0;
    for (; made < count; ++made) {
      const char* key = nullptr;
      const char* value = nullptr;
      status = to_ort(folio().ModelGetMetadataEntry(metadata->model.get(), made, &key, &value));
      if (!status) status = give_text(allocator, key, &keys[made]);
      if (status) break;
    }
    if (status) {
      for (size_t i = 0; i < made; ++i) allocator->Free(allocator, keys[i]);
      allocator->Free(allocator, keys);
      return status;
    }
    *out = keys;
    *out_count = static_cast<int64_t>(count);
    return nullptr;
  });
}

}  // namespace slot
}  // namespace folio::ort
