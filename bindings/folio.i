// The facade (c_api/include/folio/folio.hpp) as SWIG sees it: the part that Java and C# use. Only declarations: what
// SWIG cannot carry over as it is stands in %extend and calls bridge.h. The classes that come out of this are internal
// to the language's hand-written layer, which decides when they die; see README.md.
%module FolioNative

%{
#include "bindings/bridge.h"
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
%rename(NativeModelOptions) folio::ModelOptions;
%rename(NativeModel) folio::Model;
%rename(NativeSessionOptions) folio::SessionOptions;
%rename(NativeRunOptions) folio::RunOptions;
%rename(NativeSession) folio::Session;
%rename(NativeValue) folio::Value;

%newobject folio::bridge::ValueInfos::element;
%newobject folio::Model::open;
%newobject folio::Model::open_memory;
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
  bool is_writable() {
    bool result = false;
    folio::bridge::data_of(*$self, &result);
    return result;
  }
  Value* part(int64_t index) { return new folio::Value($self->part(static_cast<size_t>(index))); }
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
}

class Model {
 public:
  ~Model();
};

%extend Model {
  static Model* open(const char* path, int64_t path_bytes, const ModelOptions& options) {
    return new folio::Model(folio::Model::open(folio::bridge::text_of(path, path_bytes), options));
  }
  static Model* open_memory(const char* text, int64_t text_bytes, const ModelOptions& options) {
    return new folio::Model(folio::Model::open_memory(text, static_cast<size_t>(text_bytes), options));
  }
  Model* reload() const { return new folio::Model($self->reload()); }
  void save(const char* path, int64_t path_bytes, const char* value, int64_t value_bytes) const {
    folio::SaveOptions options;
    options.optimize = folio::bridge::text_of(value, value_bytes);
    $self->save(folio::bridge::text_of(path, path_bytes), options);
  }
  folio::bridge::ValueInfos* inputs() const { return new folio::bridge::ValueInfos($self->inputs()); }
  folio::bridge::ValueInfos* outputs() const { return new folio::bridge::ValueInfos($self->outputs()); }
  std::string metadata() const { return folio::bridge::metadata(*$self); }
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
  void set_cancel(const folio::Cancel& cancel) { $self->cancel(cancel); }
}

class RunOptions {
 public:
  RunOptions();
  ~RunOptions();
};

%extend RunOptions {
  void set_timeout(int64_t milliseconds) { $self->timeout(std::chrono::milliseconds(milliseconds)); }
  void set_cancel(const folio::Cancel& cancel) { $self->cancel(cancel); }
}

class Session {
 public:
  Session(const folio::Model& model, const folio::SessionOptions& options);
  ~Session();
};

%extend Session {
  folio::bridge::ValueInfos* inputs() const { return new folio::bridge::ValueInfos($self->inputs()); }
  folio::bridge::ValueInfos* outputs() const { return new folio::bridge::ValueInfos($self->outputs()); }
  // Names end with NUL each. An empty value among the outputs receives the result.
  void run(const char* input_names, int64_t input_names_bytes, folio::Value* const* inputs, int64_t input_count,
           const char* output_names, int64_t output_names_bytes, folio::Value* const* outputs, int64_t output_count,
           const folio::RunOptions& options) {
    folio::bridge::run(*$self, folio::bridge::split(input_names, input_names_bytes), inputs, input_count,
                       folio::bridge::split(output_names, output_names_bytes), outputs, output_count, options);
  }
  bool wait_packed(int64_t milliseconds) { return $self->wait_packed(std::chrono::milliseconds(milliseconds)); }
  void close(int mode) { $self->close(static_cast<folio::CloseMode>(mode)); }
}

}  // namespace folio
