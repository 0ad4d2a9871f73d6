#include "core/session/model_file.h"

#include <algorithm>
#include <filesystem>

#include "core/kernels/select.h"
#include "core/ops/op_unpack.h"
#include "core/os/cpu_features.h"
#include "core/os/mapped_file.h"
#include "core/os/sigbus_guard.h"
#include "core/os/tile_threads.h"
#include "core/passes/passes.h"
#include "core/prepack/pack_binding.h"
#include "core/run/float_control.h"
#include "core/session/load_progress.h"
#include "core/session/open_models.h"

namespace folio {
namespace {

PortInfo port_of(const Graph& graph, ValueId id) {
  const GraphValue& value = graph.value(id);
  PortInfo port;
  port.name = value.name;
  port.type = value.declared.kind != TypeInfo::Kind::kUnknown ? value.declared : value.type;
  port.has_default = value.is_input && value.initializer;
  return port;
}

uint64_t bytes_of(const Initializer& constant) {
  return constant.tensor ? constant.tensor->bytes() : plain_bytes(constant);
}

// Counts nodes and constants of a graph and its subgraphs.
struct Counter {
  ModelInfo* info;
  std::map<std::string, int64_t> operators;
  std::vector<const Initializer*> constants;  // once for each value

  void count(const Graph& graph) {
    for (const GraphValue& value : graph.values) {
      if (value.initializer) constants.push_back(value.initializer.get());
    }
    for (const Node& node : graph.nodes) {
      ++info->node_count;
      ++operators[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
      for (const auto& subgraph : node.subgraphs) count(*subgraph);
    }
  }
  void finish() {
    std::sort(constants.begin(), constants.end());
    constants.erase(std::unique(constants.begin(), constants.end()), constants.end());
    info->initializer_count = static_cast<int64_t>(constants.size());
    for (const Initializer* constant : constants) info->initializer_bytes += bytes_of(*constant);
    info->operators.assign(operators.begin(), operators.end());
  }
};

ModelInfo describe(const Model& model, const ByteSource& source) {
  ModelInfo info;
  static_cast<ModelHeader&>(info) = model;
  info.path = source.name();
  info.graph_name = model.graph.name;
  for (const ValueId id : model.graph.inputs) info.inputs.push_back(port_of(model.graph, id));
  for (const ValueId id : model.graph.outputs) info.outputs.push_back(port_of(model.graph, id));
  for (const ValueId id : model.graph.overridable) {
    info.overridable.push_back(port_of(model.graph, id));
  }
  info.dims = model.dims;
  info.unsupported = unsupported_operators(model);
  info.unsupported_nodes = unsupported_nodes(model);
  info.file_bytes = source.bytes().size();
  Counter counter{&info, {}, {}};
  counter.count(model.graph);
  counter.finish();
  return info;
}

// A model's bytes as formats/ see them: external data that the caller gave stand before the files
// beside the model, and what is opened is watched.
class WatchedSource final : public ByteSource {
 public:
  WatchedSource(Ref<ByteSource> model, std::map<std::string, Ref<ByteSource>> files,
                Ref<FileWatch> watch)
      : model_(std::move(model)), files_(std::move(files)), watch_(std::move(watch)) {
    watch_->add(model_);
  }

  uint64_t serial() const override { return model_->serial(); }
  Bytes bytes() const override { return model_->bytes(); }
  const FileIdentity* identity() const override { return model_->identity(); }
  void drop_pages(uint64_t offset, uint64_t count) const override {
    model_->drop_pages(offset, count);
  }
  void expect_sparse_reads(bool begins) const override { model_->expect_sparse_reads(begins); }
  Status check_unchanged() const override { return model_->check_unchanged(); }
  bool is_damaged() const override { return model_->is_damaged(); }
  const ByteSource& origin() const override { return model_->origin(); }
  const std::string& name() const override { return model_->name(); }
  // The file at this location, if the model's weights stand there; else null.
  Ref<ByteSource> opened(const std::string& location) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = files_.find(location);
    return known == files_.end() ? nullptr : known->second;
  }
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override {
    const bool dotted = location.starts_with("./");
    const std::string file = dotted ? location.substr(2) : location;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = files_.find(file);
    if (known != files_.end()) return Result(known->second);
    FOLIO_TRY(Ref<ByteSource> opened, model_->open_sibling(location));
    watch_->add(opened);
    files_[file] = opened;
    return opened;
  }

 private:
  Ref<ByteSource> model_;
  mutable std::mutex mutex_;
  // Given, or opened once: a model goes on with the files that it began with.
  mutable std::map<std::string, Ref<ByteSource>> files_;
  Ref<FileWatch> watch_;
};

const std::string* metadata_entry(const Model& model, std::string_view key) {
  for (const auto& [known, value] : model.metadata) {
    if (known == key) return &value;
  }
  return nullptr;
}

// Whether the pack file is the one that the model was written with, and nobody could have written
// to it who could not write to the model. Null: no weight stands in it (any more).
Result<Ref<ByteSource>> checked_pack_file(const Model& model, const WatchedSource& source) {
  const std::string* entry = metadata_entry(model, PackBinding::kKey);
  if (!entry) return Ref<ByteSource>();
  FOLIO_TRY(const PackBinding binding, PackBinding::parse(*entry));
  const Ref<ByteSource> file = source.opened(binding.file.name);
  if (!file) return Ref<ByteSource>();
  FOLIO_RETURN_IF_ERROR(binding.check(*file));
  if (const MappedFile* mapped = as_mapped_file(*file)) {
    FOLIO_RETURN_IF_ERROR(check_trusted_beside(*mapped, as_mapped_file(source)));
  }
  return file;
}

// Packed weights that stand in that file are what its index says. Where a tool has moved them
// elsewhere, only their bytes tell.
Status check_packed_weights(const Graph& graph, const ByteSource* pack_file) {
  for (const GraphValue& value : graph.values) {
    const Initializer* blob = value.initializer ? packed_blob_of(*value.initializer) : nullptr;
    if (!blob || (pack_file && blob->source.get() == pack_file)) continue;
    FOLIO_TRY(const PackedWeight weight,
              parse_packed_weight(value.initializer->recipe->attributes));
    const uint64_t found = checksum_bytes({blob->tensor->raw(), blob->tensor->bytes()});
    if (found == weight.checksum) continue;
    const std::string where = blob->source ? blob->source->name() : "<model>";
    return invalid_graph("node '", value.initializer->recipe->node_name, "' (Unpack): the packed ",
                         "weight '", blob->name, "' in '", where, "' has the checksum ", found,
                         ", expected ", weight.checksum);
  }
  for (const Node& node : graph.nodes) {
    for (const auto& subgraph : node.subgraphs) {
      FOLIO_RETURN_IF_ERROR(check_packed_weights(*subgraph, pack_file));
    }
  }
  return Status::ok();
}

Result<std::unique_ptr<Model>> parse(const Ref<WatchedSource>& source, const ModelOptions& options,
                                     const FreeDims& free_dims, const Progress& progress,
                                     std::atomic<bool>* took_initializers) {
  LoadOptions load;
  load.given = [&](const std::string& name) -> const Tensor* {
    for (const auto& [given, tensor] : options.initializers) {
      if (given != name) continue;
      took_initializers->store(true);
      return &tensor;
    }
    return nullptr;
  };
  if (progress) {
    load.on_progress = [&](uint64_t done, uint64_t total) {
      return progress(total ? static_cast<float>(done) / static_cast<float>(total) : 0.0F, "parse");
    };
  }
  if (options.format == "ONNX") load.format = ModelFormat::kOnnx;
  if (options.format == "ORT") load.format = ModelFormat::kOrt;
  FOLIO_TRY(ModelDef def, load_model_def(source, load));
  const auto goes_on = [&] { return !progress || progress(1.0F, "inline"); };
  FOLIO_TRY(std::unique_ptr<Model> model, build_model(std::move(def), free_dims, goes_on));
  FOLIO_RETURN_IF_ERROR(take_packed_weights(model.get()));
  FOLIO_RETURN_IF_ERROR(take_nchwc(model.get(), options.nchwc_block_size));
  FOLIO_TRY(const Ref<ByteSource> pack_file, checked_pack_file(*model, *source));
  FOLIO_RETURN_IF_ERROR(check_packed_weights(model->graph, pack_file.get()));
  return model;
}

Status report(const Progress& progress, float done, const char* what) {
  if (!progress || progress(done, what)) return Status::ok();
  return error(Code::kModelLoadCancelled, "loading was cancelled");
}

}  // namespace

Status replace_initializers(Model* model,
                            const std::vector<std::pair<std::string, Tensor>>& given) {
  for (const auto& [name, tensor] : given) {
    const auto by_name = [&, &wanted = name](const GraphValue& value) {
      return value.initializer && value.name == wanted;
    };
    auto& values = model->graph.values;
    const auto it = std::find_if(values.begin(), values.end(), by_name);
    if (it == values.end()) return invalid_argument("the model has no initializer '", name, "'");
    Initializer& initializer = *it->initializer;
    if (initializer.dtype != tensor.dtype() || !(initializer.shape == tensor.shape())) {
      return invalid_argument("initializer '", name, "' is ", dtype_name(initializer.dtype), " ",
                              initializer.shape.to_string(), " in the model, the value given is ",
                              dtype_name(tensor.dtype()), " ", tensor.shape().to_string());
    }
    initializer.tensor = tensor;
    initializer.recipe = nullptr;
    initializer.source = nullptr;
  }
  return Status::ok();
}

Result<Ref<ByteSource>> open_model_file(const std::string& path, const ModelOptions& options) {
  if (options.read_into_memory) return open_mapped_file(path, FileLoading::kRead);
  FOLIO_TRY(Ref<ByteSource> source, open_mapped_file(path, FileLoading::kMap));
  const bool is_ort = options.format == "ORT" || sniff_format(source->bytes()) == ModelFormat::kOrt;
  if (!options.owns_ort_bytes() || !is_ort) return source;
  source = nullptr;  // before the copy is made
  return open_mapped_file(path, FileLoading::kRead);
}

Result<Ref<ModelFile>> ModelFile::open(const std::string& path, const ModelOptions& options) {
  return open(path, options, nullptr);
}

Result<Ref<ModelFile>> ModelFile::open(const std::string& path, const ModelOptions& options,
                                       const Ref<WeightPlaces>& older) {
  FOLIO_TRY(Ref<ByteSource> source, open_model_file(path, options));
  const OpenModelKey key{path, source->serial(), options.format, options.nchwc_block_size};
  const bool is_shared = source->serial() != 0 && !options.read_into_memory &&
                         !options.owns_ort_bytes() && options.files.empty();
  if (is_shared) {
    if (Ref<ModelFile> file = find_open_model(key)) {
      if (options.sigbus_guard) enable_sigbus_guard();
      FOLIO_RETURN_IF_ERROR(report(options.progress, 1.0F, "ready"));
      return file;
    }
  }
  FOLIO_TRY(Ref<ModelFile> file, open(std::move(source), options));
  file->path_ = path;
  file->older_weights_ = older;
  if (is_shared && !file->took_initializers_) {
    file->key_ = key;
    add_open_model(key, file.get());
  }
  return file;
}

Result<Ref<ModelFile>> ModelFile::open(Ref<ByteSource> source, const ModelOptions& options) {
  auto file = make_ref<ModelFile>();
  if (options.sigbus_guard) enable_sigbus_guard();
  file->watch_ = make_ref<FileWatch>();
  file->source_ = make_ref<WatchedSource>(std::move(source), options.files, file->watch_);
  file->options_ = options;
  file->options_.progress = nullptr;  // the caller's, for this call only
  FOLIO_RETURN_IF_ERROR(file->load(options.progress).with_context(file->source_->name()));
  return file;
}

Status ModelFile::load(const Progress& progress) {
  FOLIO_RETURN_IF_ERROR(report(progress, 0.0F, "open"));
  FOLIO_TRY(first_, parse_unchanged({}, progress));
  if (!took_initializers_) options_.initializers.clear();  // nothing keeps the caller's memory
  take_declared(&first_->metadata);
  FOLIO_RETURN_IF_ERROR(take_binding(&first_->metadata));
  info_ = describe(*first_, *source_);
  weights_ = make_ref<WeightPlaces>();
  weights_->add(first_->graph);
  return report(progress, 1.0F, "ready");
}

// The entry is the file's own business: it leaves the metadata that users see.
void ModelFile::take_declared(std::vector<std::pair<std::string, std::string>>* metadata) {
  const auto entry = std::find_if(metadata->begin(), metadata->end(), [](const auto& one) {
    return one.first == DeclaredDigests::kKey;
  });
  if (entry == metadata->end()) return;
  if (auto digests = DeclaredDigests::parse(entry->second)) {
    declared_ = std::make_shared<const DeclaredDigests>(std::move(*digests));
  }
  metadata->erase(entry);
}

// As above. It was checked when the model was parsed.
Status ModelFile::take_binding(std::vector<std::pair<std::string, std::string>>* metadata) {
  const auto entry = std::find_if(metadata->begin(), metadata->end(),
                                  [](const auto& one) { return one.first == PackBinding::kKey; });
  if (entry == metadata->end()) return Status::ok();
  FOLIO_TRY(const PackBinding binding, PackBinding::parse(entry->second));
  metadata->erase(entry);
  const auto& source = static_cast<const WatchedSource&>(*source_);
  if (source.opened(binding.file.name)) pack_file_ = binding.file.name;
  return Status::ok();
}

// What was read while the file changed is half of one state and half of another: whatever the
// parser made of it, the change is the news.
Result<std::unique_ptr<Model>> ModelFile::parse_unchanged(const FreeDims& free_dims,
                                                          const Progress& progress) {
  auto model = parse(Ref<WatchedSource>(static_cast<WatchedSource*>(source_.get())), options_,
                     free_dims, progress, &took_initializers_);
  FOLIO_RETURN_IF_ERROR(watch_->check_now());
  return model;
}

Result<Ref<ModelFile>> ModelFile::reopen(const Progress& progress) const {
  if (path_.empty()) {
    return invalid_argument("the model was opened from memory: there is no file to open again");
  }
  ModelOptions options = options_;
  options.progress = progress;
  return open(path_, options, weights_);
}

ModelFile::~ModelFile() {
  if (key_) remove_open_model(*key_, this);
  if (weights_) weights_->close();
}

Result<Ref<Program>> ModelFile::program(const std::string& key,
                                        const std::function<Result<Ref<Program>>()>& make) {
  std::unique_lock<std::mutex> lock(mutex_);
  // A progress callback may make a session of the model that its thread is loading, or that one of
  // ours is loading for it.
  const auto self = in_callers_thread([] { return std::this_thread::get_id(); });
  const auto making = being_made_.find(key);
  if (making != being_made_.end() && making->second == self) {
    lock.unlock();
    return make();
  }
  made_.wait(lock, [&] { return being_made_.count(key) == 0; });
  if (const auto it = programs_.find(key); it != programs_.end()) return it->second;
  being_made_[key] = self;
  // Whatever way `make` ends, those who wait go on: the next of them tries itself.
  struct Unmark {
    ModelFile* file;
    const std::string& key;
    std::unique_lock<std::mutex>& lock;
    ~Unmark() {
      if (!lock.owns_lock()) lock.lock();
      file->being_made_.erase(key);
      file->made_.notify_all();
    }
  } const unmark{this, key, lock};
  lock.unlock();
  auto made = make();
  lock.lock();
  if (made.is_ok()) programs_[key] = made.value();
  return made;
}

Result<std::unique_ptr<Model>> ModelFile::take_model(const FreeDims& free_dims) {
  if (free_dims.empty()) {
    const std::lock_guard<std::mutex> lock(model_mutex_);
    if (first_) return std::move(first_);
  }
  auto model = parse_unchanged(free_dims, nullptr);
  if (!model.is_ok()) return std::move(model).take_status().with_context(source_->name());
  return model;
}

// The saved model's external data must not take the name of the model that it is made of.
Status ModelFile::check_external(const ModelSaving& saving) const {
  if (saving.external_file.empty()) return Status::ok();
  const std::filesystem::path data =
      std::filesystem::path(saving.path).parent_path() / saving.external_file;
  std::error_code code;
  if (!std::filesystem::equivalent(data, source_->name(), code)) return Status::ok();
  return invalid_argument("'", data.string(),
                          "' is the model that is saved, and cannot take its initializers");
}

Result<SaveResult> ModelFile::save(const ModelSaving& saving, Optimize level,
                                   const FreeDims& free_dims, const Replaced& initializers,
                                   Parallel& threads, const Progress& progress) {
  if (level > Optimize::kExtended) {
    return invalid_argument("what is optimized for this process alone is not saved");
  }
  FOLIO_RETURN_IF_ERROR(check_external(saving));
  return with_tiles(
      cpu_bits(), [&] { return write(saving, level, free_dims, initializers, threads, progress); });
}

Result<SaveResult> ModelFile::write(const ModelSaving& saving, Optimize level,
                                    const FreeDims& free_dims, const Replaced& initializers,
                                    Parallel& threads, const Progress& progress) {
  LoadProgress report(progress, "save", "saving was cancelled");
  const Evaluator evaluator{kernels_for(cpu_bits()), threads, [&] { return report.again(); }};
  const FloatControl float_control(/*flush_denormals=*/false);
  FOLIO_TRY(const std::unique_ptr<Model> model, take_model(free_dims));
  FOLIO_RETURN_IF_ERROR(replace_initializers(model.get(), initializers));
  SaveOptions options;
  if (saving.format == "ONNX") options.format = SaveFormat::kOnnx;
  if (saving.format == "ORT") options.format = SaveFormat::kOrt;
  const bool is_ort = save_format(options.format, saving.path) == SaveFormat::kOrt;
  FOLIO_RETURN_IF_ERROR(
      run_passes(model.get(), evaluator, level, is_ort ? Halves::kWiden : Halves::kByLevel));
  options.external_file = saving.external_file;
  options.external_min_bytes = saving.external_min_bytes;
  options.progress = [&](uint64_t done, uint64_t total) {
    const float part = total ? static_cast<float>(done) / static_cast<float>(total) : 1.0F;
    return report.at(part, "save").is_ok();
  };
  return save_model(*model, evaluator, saving.path, options);
}

void ModelFile::release_program(const std::string& key, Ref<Program> program) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = programs_.find(key);
  if (it == programs_.end() || !(it->second == program)) return;
  program = nullptr;
  if (it->second->is_unique()) programs_.erase(it);
}

}  // namespace folio
