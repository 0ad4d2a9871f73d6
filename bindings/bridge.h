// What SWIG's wrappers need beside the facade: texts and lists in shapes that cross to Java and C#.
//
// Flow:    folio.i declares the facade's classes to SWIG; where a signature cannot cross as it is,
//          its %extend calls a function of this file. java.i and csharp.i say how types cross.
// Owns:    nothing; what is returned as a pointer is new and belongs to the caller (%newobject).
// Threads: as the facade.
// Errors:  throws folio::Error; the wrappers turn it into the language's FolioException.
#ifndef FOLIO_BINDINGS_BRIDGE_H_
#define FOLIO_BINDINGS_BRIDGE_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "folio/folio.hpp"

namespace folio::bridge {

// A name, key or path. A NUL inside would be the end of it to C.
inline std::string text_of(const char* text, std::int64_t bytes) {
  std::string result(text, static_cast<size_t>(bytes));
  if (result.find('\0') != std::string::npos) {
    throw Error(FOLIO_INVALID_ARGUMENT, "a name, key or path contains a NUL: '" +
                                            result.substr(0, result.find('\0')) + "'");
  }
  return result;
}

// Both languages count with signed numbers, C without: -1 would be told as 18446744073709551615.
inline size_t index_of(std::int64_t index) {
  if (index >= 0) return static_cast<size_t>(index);
  throw Error(FOLIO_INVALID_ARGUMENT, "index " + std::to_string(index) + " is out of range");
}

// Many texts cross as one: each ends with a NUL.
inline std::vector<std::string> split(const char* texts, std::int64_t bytes) {
  std::vector<std::string> result;
  const char* const end = texts + bytes;
  while (texts != end) {
    const void* nul = std::memchr(texts, '\0', static_cast<size_t>(end - texts));
    const char* text_end = nul == nullptr ? end : static_cast<const char*>(nul);
    result.emplace_back(texts, text_end);
    texts = nul == nullptr ? end : text_end + 1;
  }
  return result;
}

inline std::string join(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result.append(text.c_str(), text.size() + 1);
  return result;
}

// SWIG's int64_t is `long long`, which is another type than this platform's of the same size.
inline Dims dims_of(const long long* dims, std::int64_t count) { return Dims(dims, dims + count); }

// Inputs or outputs as their model or session declares them: a copy.
class ValueInfos {
 public:
  explicit ValueInfos(std::vector<ValueInfo> infos) : infos_(std::move(infos)) {}

  std::int64_t size() const { return static_cast<std::int64_t>(infos_.size()); }
  std::string name(std::int64_t index) const { return at(index).name; }
  int kind(std::int64_t index) const { return at(index).kind; }
  int type(std::int64_t index) const { return at(index).type; }
  bool has_shape(std::int64_t index) const { return at(index).has_shape; }
  Dims dims(std::int64_t index) const { return at(index).dims; }
  std::string symbolic_dims(std::int64_t index) const { return join(at(index).symbolic_dims); }
  ValueInfos* element(std::int64_t index) const { return new ValueInfos(at(index).element); }

 private:
  const ValueInfo& at(std::int64_t index) const { return infos_.at(static_cast<size_t>(index)); }

  std::vector<ValueInfo> infos_;
};

inline std::string metadata(const Model& model) {
  std::vector<std::string> texts;
  for (auto& [key, value] : model.metadata()) {
    texts.push_back(key);
    texts.push_back(value);
  }
  return join(texts);
}

// `lengths` cuts `text` into strings, which may contain NULs.
inline Value* strings(const char* text, std::int64_t text_bytes, const long long* lengths,
                      std::int64_t length_count, const Dims& dims) {
  std::vector<std::string> parts;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < length_count; ++i) {
    if (lengths[i] < 0 || lengths[i] > text_bytes - at) {
      throw Error(FOLIO_INVALID_ARGUMENT, "the lengths of the strings exceed their text");
    }
    parts.emplace_back(text + at, static_cast<size_t>(lengths[i]));
    at += lengths[i];
  }
  return new Value(Value::strings(parts, dims));
}

// A tensor over memory of the caller's. `release` is called if and only if this succeeds.
inline Value* wrap(void* data, std::int64_t bytes, const Dims& dims, int type, bool is_writable,
                   FolioReleaseFunction release, void* user) {
  auto result = std::make_unique<Value>();  // before the library takes the memory over
  const auto entry_bytes = static_cast<size_t>(bytes);
  const auto entry_type = static_cast<ElementType>(type);
  if (entry_type == FOLIO_STRING) {  // the library's own words name an entry of C's
    throw Error(FOLIO_INVALID_ARGUMENT, "strings cannot be used in place, only copied");
  }
  FolioValue* value = nullptr;
  if (is_writable) {
    internal::check(api().CreateTensorWithData(data, entry_bytes, dims.data(), dims.size(),
                                               entry_type, release, user, &value));
  } else {
    internal::check(api().CreateTensorWithConstData(data, entry_bytes, dims.data(), dims.size(),
                                                    entry_type, release, user, &value));
  }
  *result = Value(value);
  return result.release();
}

// Where the elements are; `is_writable` says whether they may be written. Of strings there is no
// such place, and the library's own words name an entry of C's.
inline void* data_of(Value& value, bool* is_writable) {
  void* data = nullptr;
  FolioStatus* refused = api().GetTensorMutableData(value.get(), &data);
  *is_writable = refused == nullptr;
  api().ReleaseStatus(refused);
  if (refused != nullptr && value.type() == FOLIO_STRING) {
    throw Error(FOLIO_INVALID_ARGUMENT, "the tensor is of strings, which can only be copied");
  }
  return refused == nullptr ? data : const_cast<void*>(value.data());
}

inline void run(Session& session, const std::vector<std::string>& input_names, Value* const* inputs,
                std::int64_t input_count, const std::vector<std::string>& output_names,
                Value* const* outputs, std::int64_t output_count, const RunOptions& options) {
  if (static_cast<std::int64_t>(input_names.size()) != input_count ||
      static_cast<std::int64_t>(output_names.size()) != output_count) {
    throw Error(FOLIO_INVALID_ARGUMENT, "as many names as values are needed");
  }
  std::vector<Input> given;
  std::vector<Output> wanted;
  given.reserve(input_names.size());
  wanted.reserve(output_names.size());
  for (size_t i = 0; i < input_names.size(); ++i) given.emplace_back(input_names[i], *inputs[i]);
  for (size_t i = 0; i < output_names.size(); ++i) {
    wanted.emplace_back(output_names[i], *outputs[i]);
  }
  session.run_into(given, wanted, &options);
}

// An environment; an empty `log` leaves the log as it is.
inline Env* create_env(std::int64_t thread_count, std::int64_t max_arenas, int log_level,
                       std::function<void(LogLevel, const std::string&)> log) {
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  if (thread_count < 0 || thread_count > limit || max_arenas < 0 || max_arenas > limit) {
    throw Error(FOLIO_INVALID_ARGUMENT, "the number of threads or arenas is negative or too large");
  }
  EnvOptions options;
  options.thread_count = static_cast<std::uint32_t>(thread_count);
  options.max_arenas = static_cast<std::uint32_t>(max_arenas);
  options.log_level = static_cast<LogLevel>(log_level);
  options.log = std::move(log);
  return new Env(options);
}

// `release` is called if and only if this succeeds.
inline void bind_capacity(IoBinding& binding, const std::string& name, void* data,
                          std::int64_t bytes, FolioReleaseFunction release, void* user) {
  internal::check(api().BindOutputWithCapacity(binding.get(), name.c_str(), data,
                                               static_cast<size_t>(bytes), release, user));
}

// Memory of the caller's as external data of a model. `release` is called if and only if this
// succeeds.
inline void external_file(ModelOptions& options, const std::string& name, const void* data,
                          std::int64_t bytes, FolioReleaseFunction release, void* user) {
  internal::check(api().AddExternalFileFromMemory(options.get(), name.c_str(), data,
                                                  static_cast<size_t>(bytes), release, user));
}

// A model over memory of the caller's. `release` is called if and only if this succeeds.
inline Model* open_wrapped(const Env& env, const void* data, std::int64_t bytes,
                           const ModelOptions& options, FolioReleaseFunction release, void* user) {
  auto result = std::make_unique<Model>(nullptr);  // before the library takes the memory over
  FolioModel* model = nullptr;
  internal::Progress::check_load(
      api().OpenModelFromMemory(env.get(), data, static_cast<size_t>(bytes), release, user,
                                options.get(), &model),
      options.progress_state());
  *result = Model(model);
  return result.release();
}

// Calls on_error(code, message) for what was thrown; from inside of a catch block only.
template <typename OnError>
void report_exception(OnError on_error) {
  try {
    throw;
  } catch (const Error& error) {
    on_error(static_cast<int>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    on_error(static_cast<int>(FOLIO_OUT_OF_MEMORY), "out of memory");
  } catch (const std::exception& error) {
    on_error(static_cast<int>(FOLIO_FAIL), error.what());
  }
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_BRIDGE_H_
