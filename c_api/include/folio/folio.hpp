// The C++ face of Folio: RAII classes over the C table, header only, C++17.
//
//   folio::Session session("model.onnx");
//   float pixels[6] = {1, 2, 3, 4, 5, 6};
//   auto x = folio::Value::wrap(pixels, {2, 3});
//   std::vector<folio::Value> y = session.run({{"x", x}});
//   std::printf("%g\n", y[0].as<float>()[5]);
//
// Flow:    each method calls one entry of the table, usually; what it does, its errors and its
//          rules stand in folio_c_api.h beside the entry of that name.
// Table:   by default that of the linked library. Programs that dlopen it define FOLIO_NO_LINK
//          before they include this, and call folio::use(table) once, with what folio_load gave.
// Owns:    a class owns its handle; it can be moved, not copied. What methods return are copies or
//          own their handle, except pointers, which borrow from the object. Using an object after
//          it was moved from is an INVALID_ARGUMENT error.
// Threads: as the C handles: const methods and Session's from any thread, others one at a time.
// Errors:  every failure throws folio::Error. Exceptions may leave a progress callback: they
//          cancel the load and come out of the call that made it. Log and release callbacks must
//          not throw.
#ifndef FOLIO_FOLIO_HPP_
#define FOLIO_FOLIO_HPP_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "folio/folio_base.hpp"
#include "folio/folio_value.hpp"

namespace folio {

// ---- Model ------------------------------------------------------------------------------------

// How a model is opened. Setters return *this.
class ModelOptions {
 public:
  ModelOptions() : handle_(internal::value_of<FolioModelOptions*>(api().CreateModelOptions)) {}

  ModelOptions& config(const std::string& key, const std::string& value) {
    internal::check(api().AddModelConfigEntry(get(), key.c_str(), value.c_str()));
    return *this;
  }
  // `progress(stage, fraction)` returns false to cancel; one open at a time may use the options.
  ModelOptions& progress(std::function<bool(const std::string&, double)> progress) {
    auto kept = std::make_unique<internal::Progress>();
    kept->function = std::move(progress);
    internal::check(api().ModelOptionsSetProgress(get(), &internal::Progress::call, kept.get()));
    progress_ = std::move(kept);
    return *this;
  }
  ModelOptions& cancel(const Cancel& cancel) {
    internal::check(api().ModelOptionsSetCancel(get(), cancel.get()));
    return *this;
  }
  // Without `release` the bytes are copied.
  ModelOptions& external_file(const std::string& name, const void* data, size_t bytes,
                              std::function<void()> release = nullptr) {
    internal::with_release(std::move(release), [&](FolioReleaseFunction function, void* user) {
      return api().AddExternalFileFromMemory(get(), name.c_str(), data, bytes, function, user);
    });
    return *this;
  }
  FolioModelOptions* get() const { return handle_.get(); }
  internal::Progress* progress_state() const { return progress_.get(); }

 private:
  internal::Handle<FolioModelOptions, &FolioApi::ReleaseModelOptions> handle_;
  std::unique_ptr<internal::Progress> progress_;
};

struct UnsupportedOperator {
  std::string domain;
  std::string op_type;
  std::int64_t opset_version = 0;
  std::string node_name;
  std::string reason;
};

// How Model::save writes; what is not set has the library's default.
struct SaveOptions {
  std::string optimize;       // "none", "basic", "extended", "all"
  std::string format;         // "ONNX", "ORT"
  std::string external_file;  // of ONNX: a file's name beside the model
  std::uint64_t external_min_bytes = 0;
  std::function<bool(const std::string&, double)> progress;  // returning false cancels
  const Cancel* cancel = nullptr;                            // lives through the save
};

// An opened, mapped and verified model.
class Model {
 public:
  explicit Model(FolioModel* handle) : handle_(handle) {}  // takes it over

  static Model open(const std::string& path) { return open(Env(), path, ModelOptions()); }
  static Model open(const std::string& path, const ModelOptions& options) {
    return open(Env(), path, options);
  }
  static Model open(const Env& env, const std::string& path, const ModelOptions& options) {
    FolioModel* model = nullptr;
    internal::Progress::check_load(api().OpenModel(env.get(), path.c_str(), options.get(), &model),
                                   options.progress_state());
    return Model(model);
  }
  // Without `release` the bytes are copied.
  static Model open_memory(const void* data, size_t bytes, const ModelOptions& options,
                           std::function<void()> release = nullptr, const Env& env = Env()) {
    FolioModel* model = nullptr;
    internal::with_release(
        std::move(release),
        [&](FolioReleaseFunction function, void* user) {
          return api().OpenModelFromMemory(env.get(), data, bytes, function, user, options.get(),
                                           &model);
        },
        options.progress_state());
    return Model(model);
  }

  // What stands at the path now, opened with this model's options. This one goes on as it is.
  Model reload() const { return Model(internal::value_of<FolioModel*>(api().ModelReload, get())); }

  // The strings borrow from the model.
  FolioModelInfo info() const {
    auto result = internal::sized<FolioModelInfo>();
    internal::check(api().ModelGetInfo(get(), &result));
    return result;
  }
  std::vector<ValueInfo> inputs() const {
    return internal::value_infos(api().ModelGetInputCount, api().ModelGetInput, get());
  }
  std::vector<ValueInfo> outputs() const {
    return internal::value_infos(api().ModelGetOutputCount, api().ModelGetOutput, get());
  }
  std::vector<ValueInfo> overridable_initializers() const {
    return internal::value_infos(api().ModelGetOverridableInitializerCount,
                                 api().ModelGetOverridableInitializer, get());
  }
  // The value of one key of the metadata, if the model has it.
  std::optional<std::string> find_metadata(const std::string& key) const {
    const auto* value =
        internal::value_of<const char*>(api().ModelLookupMetadata, get(), key.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  std::vector<std::pair<std::string, std::string>> metadata() const {
    std::vector<std::pair<std::string, std::string>> result;
    const auto count = internal::value_of<size_t>(api().ModelGetMetadataCount, get());
    for (size_t i = 0; i < count; ++i) {
      const char* key = nullptr;
      const char* value = nullptr;
      internal::check(api().ModelGetMetadataEntry(get(), i, &key, &value));
      result.emplace_back(key, value);
    }
    return result;
  }
  // Writes the model, optimized as far as other runtimes can follow. See docs/saving.md.
  FolioSaveInfo save(const std::string& path, const SaveOptions& options = {}) const {
    const auto text = [](const std::string& value) {
      return value.empty() ? nullptr : value.c_str();
    };
    auto native = internal::sized<FolioSaveOptions>();
    native.optimize = text(options.optimize);
    native.format = text(options.format);
    native.external_file = text(options.external_file);
    native.external_min_bytes = options.external_min_bytes;
    native.cancel = options.cancel == nullptr ? nullptr : options.cancel->get();
    internal::Progress progress{options.progress, nullptr};
    if (options.progress) {
      native.progress = &internal::Progress::call;
      native.progress_user = &progress;
    }
    auto info = internal::sized<FolioSaveInfo>();
    internal::Progress::check_load(api().ModelSave(get(), path.c_str(), &native, &info), &progress);
    return info;
  }
  std::vector<UnsupportedOperator> unsupported_operators() const {
    std::vector<UnsupportedOperator> result;
    const auto count = internal::value_of<size_t>(api().ModelGetUnsupportedOperatorCount, get());
    for (size_t i = 0; i < count; ++i) {
      auto op = internal::sized<FolioUnsupportedOperator>();
      internal::check(api().ModelGetUnsupportedOperator(get(), i, &op));
      result.push_back({op.domain, op.op_type, op.opset_version, op.node_name, op.reason});
    }
    return result;
  }
  // Domain and version.
  std::vector<std::pair<std::string, std::int64_t>> opsets() const {
    std::vector<std::pair<std::string, std::int64_t>> result;
    const auto count = internal::value_of<size_t>(api().ModelGetOpsetCount, get());
    for (size_t i = 0; i < count; ++i) {
      const char* domain = nullptr;
      std::int64_t version = 0;
      internal::check(api().ModelGetOpset(get(), i, &domain, &version));
      result.emplace_back(domain, version);
    }
    return result;
  }
  // Name and number of nodes.
  std::vector<std::pair<std::string, std::uint64_t>> operators() const {
    std::vector<std::pair<std::string, std::uint64_t>> result;
    const auto count = internal::value_of<size_t>(api().ModelGetOperatorCount, get());
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      std::uint64_t node_count = 0;
      internal::check(api().ModelGetOperator(get(), i, &name, &node_count));
      result.emplace_back(name, node_count);
    }
    return result;
  }
  MemoryReport memory_report() const {
    return MemoryReport(internal::value_of<FolioMemoryReport*>(api().ModelGetMemoryReport, get()));
  }
  FolioModel* get() const { return handle_.get(); }

 private:
  internal::Handle<FolioModel, &FolioApi::ReleaseModel> handle_;
};

// ---- Session ----------------------------------------------------------------------------------

// Packed weights of sessions that name it; with hold, kept until it goes.
class PackCache {
 public:
  explicit PackCache(bool hold = true) : PackCache(hold, false) {}
  // Holds, and knows what it holds: see write.
  static PackCache recording() { return PackCache(true, true); }

  // All that a recording cache has, as one pack file.
  PackResult write(const std::string& path) const {
    auto result = internal::sized<FolioPackResult>();
    internal::check(api().PackCacheWrite(get(), path.c_str(), &result));
    return result;
  }
  // Lets go of what no session uses.
  PackCacheCollected collect() {
    auto result = internal::sized<FolioPackCacheCollected>();
    internal::check(api().PackCacheCollect(get(), &result));
    return result;
  }
  PackCacheStats stats() const { return stats_of(get()); }
  static PackCacheStats shared_stats() { return stats_of(nullptr); }  // of the process's cache
  FolioPackCache* get() const { return handle_.get(); }

 private:
  using Owned = internal::Handle<FolioPackCache, &FolioApi::ReleasePackCache>;
  PackCache(bool hold, bool record) {
    auto options = internal::sized<FolioPackCacheOptions>();
    options.hold = hold ? 1 : 0;
    options.record = record ? 1 : 0;
    handle_ = Owned(internal::value_of<FolioPackCache*>(api().CreatePackCache, &options));
  }
  static PackCacheStats stats_of(const FolioPackCache* cache) {
    auto result = internal::sized<FolioPackCacheStats>();
    internal::check(api().PackCacheGetStats(cache, &result));
    return result;
  }
  Owned handle_;
};

// How a model is compiled. Setters return *this.
class SessionOptions {
 public:
  SessionOptions()
      : handle_(internal::value_of<FolioSessionOptions*>(api().CreateSessionOptions)) {}

  SessionOptions& config(const std::string& key, const std::string& value) {
    internal::check(api().AddSessionConfigEntry(get(), key.c_str(), value.c_str()));
    return *this;
  }
  SessionOptions& threads(std::uint32_t count) {
    return config("folio.threads", std::to_string(count));
  }
  SessionOptions& free_dimension(const std::string& name, std::int64_t value) {
    internal::check(api().AddFreeDimensionOverrideByName(get(), name.c_str(), value));
    return *this;
  }
  SessionOptions& initializer(const std::string& name, const Value& value) {
    internal::check(api().AddInitializer(get(), name.c_str(), value.get()));
    return *this;
  }
  SessionOptions& pack_cache(const PackCache& cache) {
    internal::check(api().SessionOptionsSetPackCache(get(), cache.get()));
    return *this;
  }
  // As ModelOptions::progress.
  SessionOptions& progress(std::function<bool(const std::string&, double)> progress) {
    auto kept = std::make_unique<internal::Progress>();
    kept->function = std::move(progress);
    internal::check(api().SessionOptionsSetProgress(get(), &internal::Progress::call, kept.get()));
    progress_ = std::move(kept);
    return *this;
  }
  SessionOptions& cancel(const Cancel& cancel) {
    internal::check(api().SessionOptionsSetCancel(get(), cancel.get()));
    return *this;
  }
  // As ModelOptions::external_file, for sessions that open the model too.
  SessionOptions& external_file(const std::string& name, const void* data, size_t bytes,
                                std::function<void()> release = nullptr) {
    internal::with_release(std::move(release), [&](FolioReleaseFunction function, void* user) {
      return api().SessionOptionsAddExternalFileFromMemory(get(), name.c_str(), data, bytes,
                                                           function, user);
    });
    return *this;
  }
  // Records the steps of all runs, for a file whose path begins so: see Session::end_profiling.
  SessionOptions& profile(const std::string& path) { return config("folio.profile", path); }
  FolioSessionOptions* get() const { return handle_.get(); }
  internal::Progress* progress_state() const { return progress_.get(); }

 private:
  internal::Handle<FolioSessionOptions, &FolioApi::ReleaseSessionOptions> handle_;
  std::unique_ptr<internal::Progress> progress_;
};

// What `pack` writes; see FolioPackOptions. Empty texts: the default.
struct PackOptions {
  std::string path;
  std::string store;
  std::string levels;
  bool check = false;
  bool replace = false;  // `path` is the model to write
};

// Makes (or checks) the pack file of a model for sessions with these options.
inline FolioPackResult pack(const Model& model, const SessionOptions& session = SessionOptions(),
                            const PackOptions& options = PackOptions()) {
  auto asked = internal::sized<FolioPackOptions>();
  if (!options.path.empty()) asked.path = options.path.c_str();
  if (!options.store.empty()) asked.store = options.store.c_str();
  if (!options.levels.empty()) asked.levels = options.levels.c_str();
  asked.check = options.check ? 1 : 0;
  asked.replace = options.replace ? 1 : 0;
  auto result = internal::sized<FolioPackResult>();
  internal::Progress::check_load(api().ModelPack(model.get(), session.get(), &asked, &result),
                                 session.progress_state());
  return result;
}

// What a pack file, or a store, holds: a JSON object; see PackFileGetJson and PackStoreGetJson.
inline std::string pack_file_json(const std::string& path, bool verify = false) {
  return internal::owned_text(
      [&](char** out) { return api().PackFileGetJson(path.c_str(), verify ? 1 : 0, out); });
}
inline std::string pack_store_json(const std::string& folder,
                                   FolioPackStoreAction action = FOLIO_PACK_STORE_LIST,
                                   std::uint64_t limit_bytes = 0) {
  return internal::owned_text(
      [&](char** out) { return api().PackStoreGetJson(folder.c_str(), action, limit_bytes, out); });
}

// How one run goes. Setters return *this.
class RunOptions {
 public:
  RunOptions() : handle_(internal::value_of<FolioRunOptions*>(api().CreateRunOptions)) {}

  RunOptions& config(const std::string& key, const std::string& value) {
    internal::check(api().AddRunConfigEntry(get(), key.c_str(), value.c_str()));
    return *this;
  }
  RunOptions& cancel(const Cancel& cancel) {
    internal::check(api().RunOptionsSetCancel(get(), cancel.get()));
    return *this;
  }
  RunOptions& timeout(std::chrono::milliseconds limit) {
    if (limit.count() < 0) throw Error(FOLIO_INVALID_ARGUMENT, "the timeout is negative");
    internal::check(api().RunOptionsSetTimeout(get(), static_cast<std::uint64_t>(limit.count())));
    return *this;
  }
  RunOptions& tag(const std::string& tag) {
    internal::check(api().RunOptionsSetRunTag(get(), tag.c_str()));
    return *this;
  }
  FolioRunOptions* get() const { return handle_.get(); }

 private:
  internal::Handle<FolioRunOptions, &FolioApi::ReleaseRunOptions> handle_;
};

// An input or output of a run: a name, and a value of the caller's that lives through the call.
struct Input {
  std::string name;
  const Value* value;
  Input(std::string input_name, const Value& input) : name(std::move(input_name)), value(&input) {}
};
struct Output {
  std::string name;
  Value* value;
  Output(std::string output_name, Value& output) : name(std::move(output_name)), value(&output) {}
};

class IoBinding;

// A compiled model. Any number of threads may run it at once.
class Session {
  using Owned = internal::Handle<FolioSession, &FolioApi::ReleaseSession>;

 public:
  explicit Session(const std::string& path) : Session(Env(), path, SessionOptions()) {}
  Session(const std::string& path, const SessionOptions& options) : Session(Env(), path, options) {}
  Session(const Env& env, const std::string& path, const SessionOptions& options) {
    FolioSession* session = nullptr;
    internal::Progress::check_load(
        api().CreateSession(env.get(), path.c_str(), options.get(), &session),
        options.progress_state());
    handle_ = Owned(session);
  }
  explicit Session(const Model& model) : Session(model, SessionOptions()) {}
  Session(const Model& model, const SessionOptions& options) {
    FolioSession* session = nullptr;
    internal::Progress::check_load(
        api().CreateSessionFromModel(model.get(), options.get(), &session),
        options.progress_state());
    handle_ = Owned(session);
  }

  // Opens the model from bytes, which are copied, and compiles it.
  static Session from_array(const void* data, size_t bytes,
                            const SessionOptions& options = SessionOptions(),
                            const Env& env = Env()) {
    FolioSession* session = nullptr;
    internal::Progress::check_load(
        api().CreateSessionFromArray(env.get(), data, bytes, options.get(), &session),
        options.progress_state());
    return Session(Owned(session));
  }

  Model model() const {
    return Model(internal::value_of<FolioModel*>(api().SessionGetModel, get()));
  }
  std::vector<ValueInfo> inputs() const {
    return internal::value_infos(api().SessionGetInputCount, api().SessionGetInput, get());
  }
  std::vector<ValueInfo> outputs() const {
    return internal::value_infos(api().SessionGetOutputCount, api().SessionGetOutput, get());
  }
  std::vector<ValueInfo> overridable_initializers() const {
    return internal::value_infos(api().SessionGetOverridableInitializerCount,
                                 api().SessionGetOverridableInitializer, get());
  }

  void prepare_shapes(const std::vector<std::pair<std::string, Dims>>& shapes) {
    std::vector<const char*> names;
    std::vector<const std::int64_t*> dims;
    std::vector<size_t> dim_counts;
    for (const auto& [name, shape] : shapes) {
      names.push_back(name.c_str());
      dims.push_back(shape.data());
      dim_counts.push_back(shape.size());
    }
    internal::check(api().SessionPrepareShapes(get(), names.data(), dims.data(), dim_counts.data(),
                                               names.size()));
  }

  // True when all weights are packed; packs in this thread what nobody has begun. < 0: no timeout.
  bool wait_packed(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1)) {
    const std::int64_t limit = timeout.count() < 0 ? -1 : timeout.count();
    return internal::value_of<std::int32_t>(api().SessionWaitPacked, get(), limit) != 0;
  }

  // All outputs, in the model's order, or those named; as new values.
  std::vector<Value> run(const std::vector<Input>& inputs,
                         const std::vector<std::string>& output_names = {},
                         const RunOptions* options = nullptr) {
    std::vector<std::string> names = output_names;
    if (names.empty()) {
      const auto count = internal::value_of<size_t>(api().SessionGetOutputCount, get());
      for (size_t i = 0; i < count; ++i) {
        const auto* info =
            internal::value_of<const FolioValueInfo*>(api().SessionGetOutput, get(), i);
        names.emplace_back(internal::value_of<const char*>(api().ValueInfoGetName, info));
      }
    }
    std::vector<Value> values(names.size());
    std::vector<Output> targets;
    targets.reserve(names.size());
    for (size_t i = 0; i < names.size(); ++i) targets.emplace_back(names[i], values[i]);
    run_into(inputs, targets, options);
    return values;
  }

  // Writes into the tensors given; an empty Value receives a new one.
  void run_into(const std::vector<Input>& inputs, const std::vector<Output>& outputs,
                const RunOptions* options = nullptr) {
    std::vector<const char*> input_names;
    std::vector<FolioValue*> input_values;
    std::vector<const char*> output_names;
    std::vector<FolioValue*> output_values;
    input_names.reserve(inputs.size());
    input_values.reserve(inputs.size());
    output_names.reserve(outputs.size());
    output_values.reserve(outputs.size());
    for (const Input& input : inputs) {
      input_names.push_back(input.name.c_str());
      input_values.push_back(input.value->get());
    }
    for (const Output& output : outputs) {
      output_names.push_back(output.name.c_str());
      output_values.push_back(output.value->get());
    }
    internal::check(api().Run(get(), options != nullptr ? options->get() : nullptr,
                              input_names.data(), input_values.data(), input_names.size(),
                              output_names.data(), output_names.size(), output_values.data()));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].value->empty()) *outputs[i].value = Value(output_values[i]);
    }
  }
  inline void run(IoBinding& binding, const RunOptions* options = nullptr);

  Metrics metrics() const {
    auto result = internal::sized<FolioMetrics>();
    internal::check(api().SessionGetMetrics(get(), &result));
    return result;
  }
  std::string metrics_text() const {
    return internal::owned_string(api().SessionGetMetricsText, get());
  }
  MemoryReport memory_report() const {
    return MemoryReport(
        internal::value_of<FolioMemoryReport*>(api().SessionGetMemoryReport, get()));
  }
  // Ends the profile that SessionOptions::profile began, and writes it: the file's path, or ""
  // where there is none or it was ended before. Runs go on, without being recorded. A session that
  // goes ends its profile itself, but then nobody hears of a write that failed.
  std::string end_profiling() { return internal::owned_string(api().SessionEndProfiling, get()); }
  // When the times of the profile begin, by the system's clock; 1970 where there is no profile.
  std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds> profiling_start()
      const {
    const auto since_1970 =
        internal::value_of<std::uint64_t>(api().SessionGetProfilingStartTime, get());
    return std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>(
        std::chrono::nanoseconds(since_1970));
  }
  void close(CloseMode mode = FOLIO_CLOSE_WAIT) {
    internal::check(api().SessionClose(get(), mode));
  }
  FolioSession* get() const { return handle_.get(); }

 private:
  explicit Session(Owned handle) : handle_(std::move(handle)) {}

  Owned handle_;
};

// Inputs and outputs fixed beforehand, for many runs; one at a time.
class IoBinding {
 public:
  explicit IoBinding(const Session& session)
      : handle_(internal::value_of<FolioIoBinding*>(api().CreateIoBinding, session.get())) {}

  void bind_input(const std::string& name, const Value& value) {
    internal::check(api().BindInput(get(), name.c_str(), value.get()));
  }
  // Each run makes a new value, or writes into the one given.
  void bind_output(const std::string& name) {
    internal::check(api().BindOutput(get(), name.c_str(), nullptr));
  }
  void bind_output(const std::string& name, const Value& value) {
    internal::check(api().BindOutput(get(), name.c_str(), value.get()));
  }
  void bind_output_with_capacity(const std::string& name, void* data, size_t capacity_bytes,
                                 std::function<void()> release = nullptr) {
    internal::with_release(std::move(release), [&](FolioReleaseFunction function, void* user) {
      return api().BindOutputWithCapacity(get(), name.c_str(), data, capacity_bytes, function,
                                          user);
    });
  }
  void clear_inputs() { internal::check(api().ClearBoundInputs(get())); }
  void clear_outputs() { internal::check(api().ClearBoundOutputs(get())); }
  size_t output_count() const {
    return internal::value_of<size_t>(api().GetBoundOutputCount, get());
  }
  std::string output_name(size_t index) const {
    return internal::value_of<const char*>(api().GetBoundOutputName, get(), index);
  }
  Value output(size_t index) const {
    return Value(internal::value_of<FolioValue*>(api().GetBoundOutputValue, get(), index));
  }
  FolioIoBinding* get() const { return handle_.get(); }

 private:
  internal::Handle<FolioIoBinding, &FolioApi::ReleaseIoBinding> handle_;
};

void Session::run(IoBinding& binding, const RunOptions* options) {
  internal::check(
      api().RunWithBinding(get(), options != nullptr ? options->get() : nullptr, binding.get()));
}

}  // namespace folio

#endif  // FOLIO_FOLIO_HPP_
