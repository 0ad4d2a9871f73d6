// The facade (c_api/include/folio/folio.hpp) as SWIG sees it: the part that Java and C# use. Only declarations: what
// SWIG cannot carry over as it is stands in %extend and calls bridge.h. The classes that come out of this are internal
// to the language's hand-written layer, which decides when they die; see README.md.
%module FolioNative

%{
#include "bindings/bridge.h"
#include "bindings/reports.h"
%}

%include <stdint.i>
#if defined(SWIGJAVA)
%include "java.i"
#elif defined(SWIGCSHARP)
%include "csharp.i"
#endif

%nodefaultctor;

%rename(NativeValueInfos) folio::bridge::ValueInfos;
%rename(NativeCancel) folio::Cancel;
%rename(NativeEnv) folio::Env;
%rename(NativeMemoryReport) folio::MemoryReport;
%rename(NativePackCache) folio::PackCache;
%rename(NativeBinding) folio::IoBinding;
%rename(NativeModelOptions) folio::ModelOptions;
%rename(NativeModel) folio::Model;
%rename(NativeSaveOptions) folio::SaveOptions;
%rename(NativeSessionOptions) folio::SessionOptions;
%rename(NativeRunOptions) folio::RunOptions;
%rename(NativeSession) folio::Session;
%rename(NativeValue) folio::Value;

%newobject folio::bridge::ValueInfos::element;
%newobject folio::Model::open;
%newobject folio::Model::open_memory;
%newobject folio::Env::memory_report;
%newobject folio::Model::memory_report;
%newobject folio::Model::overridable_initializers;
%newobject folio::Session::memory_report;
%newobject folio::Session::model;
%newobject folio::Session::overridable_initializers;
%newobject folio::PackCache::create;
%newobject folio::IoBinding::output;
%newobject folio::Value::sequence;
%newobject folio::Value::map;
%newobject folio::Model::reload;
%newobject folio::Model::inputs;
%newobject folio::Model::outputs;
%newobject folio::Session::inputs;
%newobject folio::Session::outputs;
%newobject folio::Value::tensor;
%newobject folio::Value::strings;
%newobject folio::Value::part;

namespace folio {

namespace bridge {

class ValueInfos {
 public:
  ~ValueInfos();
  int64_t size() const;
  std::string name(int64_t index) const;
  int kind(int64_t index) const;
  int type(int64_t index) const;
  bool has_shape(int64_t index) const;
  folio::Dims dims(int64_t index) const;
  std::string symbolic_dims(int64_t index) const;
  ValueInfos* element(int64_t index) const;
};

}  // namespace bridge

std::string version_string();
std::string build_info();

class Cancel {
 public:
  Cancel();
  ~Cancel();
  void request() const;
  bool is_requested() const;
};

class MemoryReport {
 public:
  ~MemoryReport();
  std::string json() const;
  std::string text() const;
};

%extend MemoryReport {
  folio::Dims summary() const { return folio::bridge::summary(*$self); }
  std::string entry_texts() const { return folio::bridge::entry_texts(*$self); }
  folio::Dims entry_numbers() const { return folio::bridge::entry_numbers(*$self); }
}

// The one that is made without options is the process's own.
class Env {
 public:
  Env();
  ~Env();
  void trim() const;
  std::string metrics_text() const;
};

%extend Env {
  folio::Dims metrics() const { return folio::bridge::metrics($self->metrics()); }
  folio::MemoryReport* memory_report() const { return new folio::MemoryReport($self->memory_report()); }
}

class Value {
 public:
  Value();
  ~Value();
  int kind() const;
  int type() const;
  folio::Dims dims() const;
  int64_t element_count() const;
  int64_t bytes() const;
  std::string string_at(int64_t index) const;
  int64_t part_count() const;
};

%extend Value {
  static Value* tensor(int type, const long long* dims, int64_t dim_count) {
    return new folio::Value(
        folio::Value::tensor(static_cast<folio::ElementType>(type), folio::bridge::dims_of(dims, dim_count)));
  }
  static Value* strings(const char* text, int64_t text_bytes, const long long* lengths, int64_t length_count,
                        const long long* dims, int64_t dim_count) {
    return folio::bridge::strings(text, text_bytes, lengths, length_count, folio::bridge::dims_of(dims, dim_count));
  }
  static Value* sequence(int type, folio::Value* const* values, int64_t value_count) {
    return new folio::Value(folio::Value::sequence(static_cast<folio::ElementType>(type),
                                                   std::vector<const folio::Value*>(values, values + value_count)));
  }
  static Value* map(const folio::Value& keys, const folio::Value& elements) {
    return new folio::Value(folio::Value::map(keys, elements));
  }
  bool is_writable() {
    bool result = false;
    folio::bridge::data_of(*$self, &result);
    return result;
  }
  void set_string(int64_t index, const char* text, int64_t text_bytes) {
    $self->set_string(folio::bridge::index_of(index), std::string(text, static_cast<size_t>(text_bytes)));
  }
  Value* part(int64_t index) { return new folio::Value($self->part(folio::bridge::index_of(index))); }
}

class ModelOptions {
 public:
  ModelOptions();
  ~ModelOptions();
};

%extend ModelOptions {
  void config(const char* key, int64_t key_bytes, const char* value, int64_t value_bytes) {
    $self->config(folio::bridge::text_of(key, key_bytes), folio::bridge::text_of(value, value_bytes));
  }
  void set_cancel(const folio::Cancel& cancel) { $self->cancel(cancel); }
  void copy_external_file(const char* key, int64_t key_bytes, const char* text, int64_t text_bytes) {
    $self->external_file(folio::bridge::text_of(key, key_bytes), text, static_cast<size_t>(text_bytes));
  }
}

class SaveOptions {
 public:
  SaveOptions();
  ~SaveOptions();
};

%extend SaveOptions {
  // Empty texts and 0 ask for the default.
  void set(const char* text, int64_t text_bytes, const char* key, int64_t key_bytes, const char* value,
           int64_t value_bytes, int64_t external_min_bytes) {
    folio::bridge::set_save(*$self, folio::bridge::text_of(text, text_bytes), folio::bridge::text_of(key, key_bytes),
                            folio::bridge::text_of(value, value_bytes), external_min_bytes);
  }
  // The flag must outlive the options.
  void set_cancel(const folio::Cancel& cancel) { $self->cancel = &cancel; }
}

class Model {
 public:
  ~Model();
};

%extend Model {
  static Model* open(const Env& env, const char* path, int64_t path_bytes, const ModelOptions& options) {
    return new folio::Model(folio::Model::open(env, folio::bridge::text_of(path, path_bytes), options));
  }
  static Model* open_memory(const Env& env, const char* text, int64_t text_bytes, const ModelOptions& options) {
    return new folio::Model(folio::Model::open_memory(text, static_cast<size_t>(text_bytes), options, nullptr, env));
  }
  folio::bridge::ValueInfos* overridable_initializers() const {
    return new folio::bridge::ValueInfos($self->overridable_initializers());
  }
  std::string info_texts() const { return folio::bridge::info_texts(*$self); }
  folio::Dims info_numbers() const { return folio::bridge::info_numbers(*$self); }
  std::string unsupported_operators() const { return folio::bridge::unsupported_operators(*$self); }
  std::string opsets() const { return folio::bridge::numbered($self->opsets()); }
  std::string operators() const { return folio::bridge::numbered($self->operators()); }
  folio::MemoryReport* memory_report() const { return new folio::MemoryReport($self->memory_report()); }
  Model* reload() const { return new folio::Model($self->reload()); }
  folio::Dims save(const char* path, int64_t path_bytes, const folio::SaveOptions& options) const {
    return folio::bridge::save_info($self->save(folio::bridge::text_of(path, path_bytes), options));
  }
  folio::bridge::ValueInfos* inputs() const { return new folio::bridge::ValueInfos($self->inputs()); }
  folio::bridge::ValueInfos* outputs() const { return new folio::bridge::ValueInfos($self->outputs()); }
  std::string metadata() const { return folio::bridge::metadata(*$self); }
}

class PackCache {
 public:
  ~PackCache();
};

%extend PackCache {
  static PackCache* create(bool hold, bool record) {
    return new folio::PackCache(record ? folio::PackCache::recording() : folio::PackCache(hold));
  }
  folio::Dims write(const char* path, int64_t path_bytes) const {
    return folio::bridge::pack_result($self->write(folio::bridge::text_of(path, path_bytes)));
  }
  folio::Dims collect() {
    const folio::PackCacheCollected collected = $self->collect();
    return folio::bridge::counts(collected.blob_count, collected.blob_bytes);
  }
  folio::Dims stats() const { return folio::bridge::pack_cache_stats($self->stats()); }
  static folio::Dims shared_stats() {
    return folio::bridge::pack_cache_stats(folio::PackCache::shared_stats());
  }
}

class SessionOptions {
 public:
  SessionOptions();
  ~SessionOptions();
};

%extend SessionOptions {
  void config(const char* key, int64_t key_bytes, const char* value, int64_t value_bytes) {
    $self->config(folio::bridge::text_of(key, key_bytes), folio::bridge::text_of(value, value_bytes));
  }
  void free_dimension(const char* text, int64_t text_bytes, int64_t value) {
    $self->free_dimension(folio::bridge::text_of(text, text_bytes), value);
  }
  void initializer(const char* text, int64_t text_bytes, const folio::Value& tensor) {
    $self->initializer(folio::bridge::text_of(text, text_bytes), tensor);
  }
  void set_pack_cache(const folio::PackCache& cache) { $self->pack_cache(cache); }
  void set_cancel(const folio::Cancel& cancel) { $self->cancel(cancel); }
}

class RunOptions {
 public:
  RunOptions();
  ~RunOptions();
};

%extend RunOptions {
  void config(const char* key, int64_t key_bytes, const char* value, int64_t value_bytes) {
    $self->config(folio::bridge::text_of(key, key_bytes), folio::bridge::text_of(value, value_bytes));
  }
  void set_tag(const char* text, int64_t text_bytes) { $self->tag(folio::bridge::text_of(text, text_bytes)); }
  void set_timeout(int64_t milliseconds) { $self->timeout(std::chrono::milliseconds(milliseconds)); }
  void set_cancel(const folio::Cancel& cancel) { $self->cancel(cancel); }
}

class Session {
 public:
  Session(const folio::Model& model, const folio::SessionOptions& options);
  ~Session();
};

%extend Session {
  folio::Model* model() const { return new folio::Model($self->model()); }
  folio::bridge::ValueInfos* overridable_initializers() const {
    return new folio::bridge::ValueInfos($self->overridable_initializers());
  }
  folio::bridge::ValueInfos* inputs() const { return new folio::bridge::ValueInfos($self->inputs()); }
  folio::bridge::ValueInfos* outputs() const { return new folio::bridge::ValueInfos($self->outputs()); }
  // Names end with NUL each. An empty value among the outputs receives the result.
  void run(const char* input_names, int64_t input_names_bytes, folio::Value* const* inputs, int64_t input_count,
           const char* output_names, int64_t output_names_bytes, folio::Value* const* outputs, int64_t output_count,
           const folio::RunOptions& options) {
    folio::bridge::run(*$self, folio::bridge::split(input_names, input_names_bytes), inputs, input_count,
                       folio::bridge::split(output_names, output_names_bytes), outputs, output_count, options);
  }
  std::string end_profiling() { return $self->end_profiling(); }
  // Nanoseconds since 1970; 0: there is no profile.
  int64_t profiling_start() const { return $self->profiling_start().time_since_epoch().count(); }
  bool wait_packed(int64_t milliseconds) { return $self->wait_packed(std::chrono::milliseconds(milliseconds)); }
  void close(int mode) { $self->close(static_cast<folio::CloseMode>(mode)); }
  void prepare_shapes(const char* input_names, int64_t input_names_bytes, const long long* dims, int64_t dim_count,
                      const long long* dim_counts, int64_t shape_count) {
    folio::bridge::prepare_shapes(*$self, folio::bridge::split(input_names, input_names_bytes), dims, dim_count,
                                  dim_counts, shape_count);
  }
  folio::Dims metrics() const { return folio::bridge::metrics($self->metrics()); }
  std::string metrics_text() const { return $self->metrics_text(); }
  folio::MemoryReport* memory_report() const { return new folio::MemoryReport($self->memory_report()); }
  // Loops call these two: no argument that has to be converted.
  void run_bound(folio::IoBinding& binding) { $self->run(binding); }
  void run_bound_with(folio::IoBinding& binding, const folio::RunOptions& options) { $self->run(binding, &options); }
}

class IoBinding {
 public:
  explicit IoBinding(const folio::Session& session);
  ~IoBinding();
  void clear_inputs();
  void clear_outputs();
  int64_t output_count() const;
};

%extend IoBinding {
  void bind_input(const char* text, int64_t text_bytes, const folio::Value& input) {
    $self->bind_input(folio::bridge::text_of(text, text_bytes), input);
  }
  void bind_output(const char* text, int64_t text_bytes) {
    $self->bind_output(folio::bridge::text_of(text, text_bytes));
  }
  void bind_output_to(const char* text, int64_t text_bytes, const folio::Value& output) {
    $self->bind_output(folio::bridge::text_of(text, text_bytes), output);
  }
  std::string output_name(int64_t index) const { return $self->output_name(static_cast<size_t>(index)); }
  folio::Value* output(int64_t index) const { return new folio::Value($self->output(static_cast<size_t>(index))); }
}

namespace bridge {

// Makes or checks the pack file of a model; see pack_result for what comes back.
folio::Dims pack_model(const folio::Model& model, const folio::SessionOptions& session, const char* path,
                       int64_t path_bytes, const char* key, int64_t key_bytes, const char* value, int64_t value_bytes,
                       bool check, bool replace);
std::string pack_file(const char* path, int64_t path_bytes, bool verify);
std::string pack_store(const char* path, int64_t path_bytes, int action, int64_t limit_bytes);
std::string cpu_texts();

}  // namespace bridge

}  // namespace folio
