// Entries: Model.
#include "c_api/entries.h"
#include "c_api/env_config.h"
#include "c_api/handles.h"
#include "c_api/reports.h"
#include "core/base/utf8.h"
#include "core/os/mapped_file.h"
#include "core/os/thread_pool.h"

namespace folio {
namespace {

ModelState::Texts texts_of(const ModelInfo& info) {
  ModelState::Texts texts;
  texts.producer_name = utf8_repaired(info.producer_name);
  texts.producer_version = utf8_repaired(info.producer_version);
  texts.domain = utf8_repaired(info.domain);
  texts.description = utf8_repaired(info.doc_string);
  texts.graph_name = utf8_repaired(info.graph_name);
  for (const auto& [key, value] : info.metadata) {
    texts.metadata.emplace_back(utf8_repaired(key), utf8_repaired(value));
  }
  for (UnsupportedNode node : info.unsupported_nodes) {
    node.domain = utf8_repaired(node.domain);
    node.op_type = utf8_repaired(node.op_type);
    node.name = utf8_repaired(node.name);
    texts.unsupported.push_back(std::move(node));
  }
  for (const OpsetImport& opset : info.opsets) {
    texts.opsets.push_back({utf8_repaired(opset.domain), opset.version});
  }
  for (const auto& [name, count] : info.operators) {
    texts.operators.emplace_back(utf8_repaired(name), count);
  }
  return texts;
}

// The options for one open, with the progress of this call.
ModelOptions with_progress(const FolioModelOptions* options) {
  if (!options) return model_defaults();
  ModelOptions result = options->options;
  result.progress = progress_for(options->progress, options->progress_user, options->cancel, 0, 1);
  return result;
}

Status read_level(const char* text, Optimize* out) {
  const std::string_view level = text ? text : "all";
  if (level == "none") {
    *out = Optimize::kOff;
  } else if (level == "basic") {
    *out = Optimize::kBasic;
  } else if (level == "extended" || level == "all") {
    *out = Optimize::kExtended;
  } else {
    return invalid_argument("optimize is '", level, "', expected none, basic, extended or all");
  }
  return Status::ok();
}

Result<ModelSaving> saving_of(const char* path, const FolioSaveOptions& asked) {
  ModelSaving saving;
  saving.path = path;
  if (asked.format) saving.format = asked.format;
  if (!saving.format.empty() && saving.format != "ONNX" && saving.format != "ORT") {
    return invalid_argument("format is '", saving.format, "', expected ONNX or ORT");
  }
  if (asked.external_file) saving.external_file = asked.external_file;
  if (asked.external_min_bytes != 0) saving.external_min_bytes = asked.external_min_bytes;
  return saving;
}

FolioStatus* get_count(const FolioModel* model, size_t* out,
                       std::vector<FolioValueInfo> Ports::*infos) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = (model->state->ports().*infos).size();
    return Status::ok();
  });
}

FolioStatus* get_info(const FolioModel* model, size_t index, const FolioValueInfo** out,
                      std::vector<FolioValueInfo> Ports::*infos, const char* what) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    const auto& all = model->state->ports().*infos;
    FOLIO_RETURN_IF_ERROR(check_index(index, all.size(), what));
    *out = &all[index];
    return Status::ok();
  });
}

}  // namespace

ModelState::ModelState(Ref<EnvState> env, Ref<ModelFile> file, std::string path)
    : env_(std::move(env)),
      file_(std::move(file)),
      path_(std::move(path)),
      ports_(ports_of(file_->info())),
      texts_(texts_of(file_->info())) {}

Result<Ref<ModelState>> open_model(const FolioEnv* env, const char* path,
                                   const ModelOptions& options) {
  auto file = ModelFile::open(std::string(path), options);
  if (!file.is_ok()) return as_load_error(std::move(file).take_status());
  return make_ref<ModelState>(env_of(env), std::move(file).take(), path);
}

Result<Ref<ModelState>> open_model(const FolioEnv* env, Ref<ByteSource> source,
                                   const ModelOptions& options) {
  auto file = ModelFile::open(std::move(source), options);
  if (!file.is_ok()) return as_load_error(std::move(file).take_status());
  return make_ref<ModelState>(env_of(env), std::move(file).take(), "");
}

namespace entry {

FolioStatus* OpenModel(const FolioEnv* env, const char* path, const FolioModelOptions* options,
                       FolioModel** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(path);
    FOLIO_NOT_NULL(out);
    auto model = std::make_unique<FolioModel>();
    FOLIO_TRY(model->state, open_model(env, path, with_progress(options)));
    *out = model.release();
    return Status::ok();
  });
}

FolioStatus* OpenModelFromMemory(const FolioEnv* env, const void* data, size_t bytes,
                                 FolioReleaseFunction release, void* user,
                                 const FolioModelOptions* options, FolioModel** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(data);
    FOLIO_NOT_NULL(out);
    auto model = std::make_unique<FolioModel>();
    Ref<Lent> lent;
    const ModelOptions asked = with_progress(options);
    FOLIO_TRY(Ref<ByteSource> source, lend_bytes(data, bytes, release, user, "<bytes>", &lent,
                                                 may_borrow(asked, data, bytes)));
    FOLIO_TRY(model->state, open_model(env, std::move(source), asked));
    if (lent) lent->keep();
    *out = model.release();
    return Status::ok();
  });
}

FolioStatus* ModelReload(const FolioModel* model, FolioModel** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    const ModelState& old = *model->state;
    auto file = old.file()->reopen(nullptr);
    if (!file.is_ok()) return as_load_error(std::move(file).take_status());
    *out = new FolioModel{make_ref<ModelState>(old.env(), std::move(file).take(), old.path())};
    return Status::ok();
  });
}

FolioStatus* ModelGetInfo(const FolioModel* model, FolioModelInfo* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    const ModelInfo& found = model->state->info();
    const ModelState::Texts& texts = model->state->texts();
    FolioModelInfo info = {};
    info.format = found.format.c_str();
    info.path = model->state->path().c_str();
    info.producer_name = texts.producer_name.c_str();
    info.producer_version = texts.producer_version.c_str();
    info.domain = texts.domain.c_str();
    info.description = texts.description.c_str();
    info.graph_name = texts.graph_name.c_str();
    info.model_version = found.model_version;
    info.ir_version = found.ir_version;
    info.node_count = static_cast<uint64_t>(found.node_count);
    info.initializer_count = static_cast<uint64_t>(found.initializer_count);
    info.initializer_bytes = found.initializer_bytes;
    info.file_bytes = found.file_bytes;
    return write_struct(out, info, "FolioModelInfo");
  });
}

FolioStatus* ModelGetInputCount(const FolioModel* model, size_t* out) {
  return get_count(model, out, &Ports::inputs);
}

FolioStatus* ModelGetInput(const FolioModel* model, size_t index, const FolioValueInfo** out) {
  return get_info(model, index, out, &Ports::inputs, "inputs");
}

FolioStatus* ModelGetOutputCount(const FolioModel* model, size_t* out) {
  return get_count(model, out, &Ports::outputs);
}

FolioStatus* ModelGetOutput(const FolioModel* model, size_t index, const FolioValueInfo** out) {
  return get_info(model, index, out, &Ports::outputs, "outputs");
}

FolioStatus* ModelGetOverridableInitializerCount(const FolioModel* model, size_t* out) {
  return get_count(model, out, &Ports::overridable);
}

FolioStatus* ModelGetOverridableInitializer(const FolioModel* model, size_t index,
                                            const FolioValueInfo** out) {
  return get_info(model, index, out, &Ports::overridable, "overridable initializers");
}

FolioStatus* ModelGetMetadataCount(const FolioModel* model, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = model->state->texts().metadata.size();
    return Status::ok();
  });
}

FolioStatus* ModelGetMetadataEntry(const FolioModel* model, size_t index, const char** out_key,
                                   const char** out_value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out_key);
    FOLIO_NOT_NULL(out_value);
    const auto& metadata = model->state->texts().metadata;
    FOLIO_RETURN_IF_ERROR(check_index(index, metadata.size(), "metadata entries"));
    *out_key = metadata[index].first.c_str();
    *out_value = metadata[index].second.c_str();
    return Status::ok();
  });
}

FolioStatus* ModelLookupMetadata(const FolioModel* model, const char* key, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(key);
    FOLIO_NOT_NULL(out);
    const char* value = nullptr;
    for (const auto& [name, text] : model->state->texts().metadata) {
      if (!value && name == key) value = text.c_str();
    }
    *out = value;
    return Status::ok();
  });
}

FolioStatus* ModelGetUnsupportedOperatorCount(const FolioModel* model, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = model->state->texts().unsupported.size();
    return Status::ok();
  });
}

FolioStatus* ModelGetUnsupportedOperator(const FolioModel* model, size_t index,
                                         FolioUnsupportedOperator* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    const auto& nodes = model->state->texts().unsupported;
    FOLIO_RETURN_IF_ERROR(check_index(index, nodes.size(), "unsupported operators"));
    const UnsupportedNode& node = nodes[index];
    FolioUnsupportedOperator found = {};
    found.domain = node.domain.c_str();
    found.op_type = node.op_type.c_str();
    found.opset_version = node.version;
    found.node_name = node.name.c_str();
    found.reason = node.reason.c_str();
    return write_struct(out, found, "FolioUnsupportedOperator");
  });
}

FolioStatus* ModelGetOpsetCount(const FolioModel* model, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = model->state->texts().opsets.size();
    return Status::ok();
  });
}

FolioStatus* ModelGetOpset(const FolioModel* model, size_t index, const char** out_domain,
                           int64_t* out_version) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out_domain);
    FOLIO_NOT_NULL(out_version);
    const auto& opsets = model->state->texts().opsets;
    FOLIO_RETURN_IF_ERROR(check_index(index, opsets.size(), "opsets"));
    *out_domain = opsets[index].domain.c_str();
    *out_version = opsets[index].version;
    return Status::ok();
  });
}

FolioStatus* ModelGetOperatorCount(const FolioModel* model, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = model->state->texts().operators.size();
    return Status::ok();
  });
}

FolioStatus* ModelGetOperator(const FolioModel* model, size_t index, const char** out_name,
                              uint64_t* out_node_count) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out_name);
    FOLIO_NOT_NULL(out_node_count);
    const auto& operators = model->state->texts().operators;
    FOLIO_RETURN_IF_ERROR(check_index(index, operators.size(), "operators"));
    *out_name = operators[index].first.c_str();
    *out_node_count = static_cast<uint64_t>(operators[index].second);
    return Status::ok();
  });
}

FolioStatus* ModelGetMemoryReport(const FolioModel* model, FolioMemoryReport** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    *out = report_model(*model->state).release();
    return Status::ok();
  });
}

FolioStatus* ModelSave(const FolioModel* model, const char* path, const FolioSaveOptions* options,
                       FolioSaveInfo* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(path);
    FolioSaveOptions asked = {};
    if (options) FOLIO_RETURN_IF_ERROR(read_struct(options, &asked, "FolioSaveOptions"));
    if (out && out->size < sizeof(FolioSaveInfo)) return write_struct(out, {}, "FolioSaveInfo");
    Optimize level = Optimize::kExtended;
    FOLIO_RETURN_IF_ERROR(read_level(asked.optimize, &level));
    FOLIO_TRY(const ModelSaving saving, saving_of(path, asked));
    Ref<CancelState> cancel = asked.cancel ? asked.cancel->state : Ref<CancelState>();
    const Progress progress =
        progress_for(asked.progress, asked.progress_user, std::move(cancel), 0, 1);
    PoolView threads(model->state->env()->threads());
    auto saved = model->state->file()->save(saving, level, {}, {}, threads, progress);
    if (!saved.is_ok()) return std::move(saved).take_status();
    if (!out) return Status::ok();
    const SaveResult& result = saved.value();
    FolioSaveInfo info = {};
    info.file_bytes = result.file_bytes;
    info.data_bytes = result.data_bytes;
    info.node_count = result.nodes;
    info.initializer_count = result.initializers;
    info.initializer_bytes = result.initializer_bytes;
    return write_struct(out, info, "FolioSaveInfo");
  });
}

void ReleaseModel(FolioModel* model) { delete model; }

}  // namespace entry
}  // namespace folio
