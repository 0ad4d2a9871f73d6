// Slots: runs, at once or in a thread of their own, and their options.
#include <thread>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

// The handles of a run's values: as an array of Folio's. Most runs have few.
class Handles {
 public:
  OrtStatus* take(const OrtValue* const* values, size_t count, const char* what, bool may_be_null) {
    if (count > 0 && !values) return make_status(kInvalidArgument, std::string(what) + " is NULL");
    if (count > kFew) many_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      if (!values[i] && !may_be_null) {
        return make_status(kInvalidArgument, std::string("a value of ") + what + " is NULL");
      }
      if (values[i]) ORT_TRY(take_strings_back(*values[i]));
      data()[i] = values[i] ? values[i]->get() : nullptr;
    }
    return nullptr;
  }
  FolioValue** data() { return many_.empty() ? few_ : many_.data(); }

 private:
  static constexpr size_t kFew = 16;
  FolioValue* few_[kFew] = {};
  std::vector<FolioValue*> many_;
};

const FolioRunOptions* options_of(const OrtRunOptions* options) {
  return options ? options->options.get() : nullptr;
}

// "memory.enable_memory_arena_shrinkage" names the devices whose arenas are to be given back.
OrtStatus* after_run(const OrtRunOptions* options) {
  if (!options || options->config.empty()) return nullptr;
  const std::string* shrink = find_pair(options->config, "memory.enable_memory_arena_shrinkage");
  if (!shrink || shrink->find("cpu") == std::string::npos) return nullptr;
  ORT_CALL(folio().EnvTrim(nullptr));
  return nullptr;
}

// Replaces what is given for scalars; `owners` keeps it.
OrtStatus* make_scalars(const OrtSession& session, const char* const* names, size_t count,
                        FolioValue** values, std::vector<Value>* owners) {
  for (size_t i = 0; names && i < count; ++i) {
    Value scalar;
    if (names[i]) ORT_TRY(as_scalar(session.scalars, names[i], values[i], &scalar));
    if (!scalar) continue;
    values[i] = scalar.get();
    owners->push_back(std::move(scalar));
  }
  return nullptr;
}

OrtStatus* run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
               const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
               size_t output_count, OrtValue** outputs) {
  ORT_NOT_NULL(session);
  Handles given;
  Handles wanted;
  ORT_TRY(given.take(inputs, input_count, "inputs", false));
  std::vector<Value> scalars;
  if (!session->scalars.empty()) {
    ORT_TRY(make_scalars(*session, input_names, input_count, given.data(), &scalars));
  }
  ORT_TRY(wanted.take(outputs, output_count, "outputs", true));
  // Made before the run, so that nothing can fail after it.
  std::vector<std::unique_ptr<OrtValue>> made(output_count);
  for (size_t i = 0; i < output_count; ++i) {
    if (!outputs[i]) made[i] = OrtValue::empty();
  }
  ORT_CALL(folio().Run(session->session.get(), options_of(options), input_names, given.data(),
                       input_count, output_names, output_count, wanted.data()));
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) {
      outputs[i]->shown.clear();
      continue;
    }
    made[i]->value->reset(wanted.data()[i]);
    outputs[i] = made[i].release();
  }
  return after_run(options);
}

// A run that goes on after the call. ONNX Runtime asks the program to keep the arguments until the
// callback; the arrays are copied all the same.
struct AsyncRun {
  OrtSession* session;
  const OrtRunOptions* options;
  std::vector<const char*> input_names;
  std::vector<const OrtValue*> inputs;
  std::vector<const char*> output_names;
  OrtValue** outputs;
  RunAsyncCallbackFn callback;
  void* user;

  void operator()() const noexcept {
    OrtStatus* const status = guarded([&] {
      return run(session, options, input_names.data(), inputs.data(), inputs.size(),
                 output_names.data(), output_names.size(), outputs);
    });
    callback(user, status ? nullptr : outputs, status ? 0 : output_names.size(), status);
  }
};

// A new flag for these options; the old one, once set, stays set.
OrtStatus* renew_cancel(OrtRunOptions* options) {
  FolioCancel* cancel = nullptr;
  options->set_before.reserve(options->set_before.size() + 1);
  ORT_CALL(folio().CreateCancel(&cancel));
  Cancel made(cancel);
  ORT_CALL(folio().RunOptionsSetCancel(options->options.get(), cancel));
  if (options->cancel) options->set_before.push_back(std::move(options->cancel));
  options->cancel = std::move(made);
  return nullptr;
}

template <typename T>
OrtStatus* read(const OrtRunOptions* options, const T OrtRunOptions::*member, T* out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    *out = options->*member;
    return nullptr;
  });
}

}  // namespace

namespace slot {

OrtStatus* Run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
               const OrtValue* const* inputs, size_t input_count, const char* const* output_names,
               size_t output_count, OrtValue** outputs) noexcept {
  return guarded([&] {
    return run(session, options, input_names, inputs, input_count, output_names, output_count,
               outputs);
  });
}

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* options,
                    const char* const* input_names, const OrtValue* const* inputs,
                    size_t input_count, const char* const* output_names, size_t output_count,
                    OrtValue** outputs, RunAsyncCallbackFn callback, void* user) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    ORT_NOT_NULL(callback);
    if (input_count > 0) ORT_NOT_NULL(input_names);
    if (input_count > 0) ORT_NOT_NULL(inputs);
    if (output_count > 0) ORT_NOT_NULL(output_names);
    if (output_count > 0) ORT_NOT_NULL(outputs);
    std::thread(AsyncRun{session,
                         options,
                         {input_names, input_names + input_count},
                         {inputs, inputs + input_count},
                         {output_names, output_names + output_count},
                         outputs,
                         callback,
                         user})
        .detach();
    return nullptr;
  });
}

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    auto options = std::make_unique<OrtRunOptions>();
    FolioRunOptions* raw = nullptr;
    ORT_CALL(folio().CreateRunOptions(&raw));
    options->options.reset(raw);
    ORT_TRY(renew_cancel(options.get()));
    *out = options.release();
    return nullptr;
  });
}

void ReleaseRunOptions(OrtRunOptions* options) noexcept { delete options; }

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int level) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    options->log_verbosity = level;
    return nullptr;
  });
}

OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    options->log_level = level;
    return nullptr;
  });
}

OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    const std::string text = tag ? tag : "";
    ORT_CALL(folio().RunOptionsSetRunTag(options->options.get(), text.c_str()));
    options->tag = text;
    return nullptr;
  });
}

OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) noexcept {
  return read(options, &OrtRunOptions::log_verbosity, out);
}

OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) noexcept {
  return read(options, &OrtRunOptions::log_level, out);
}

OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(out);
    *out = options->tag.c_str();
    return nullptr;
  });
}

OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    const std::lock_guard<std::mutex> lock(options->mutex);
    ORT_CALL(folio().CancelRequest(options->cancel.get()));
    return nullptr;
  });
}

OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    const std::lock_guard<std::mutex> lock(options->mutex);
    int32_t is_set = 0;
    ORT_CALL(folio().CancelIsRequested(options->cancel.get(), &is_set));
    return is_set ? renew_cancel(options) : nullptr;
  });
}

// Keys of runs tune memory and devices; the one that means something here is read after each run.
OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(key);
    ORT_NOT_NULL(value);
    if (*key == '\0') return make_status(kInvalidArgument, "a config key is empty");
    set_pair(&options->config, key, value);
    return nullptr;
  });
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) noexcept {
  if (!options || !key) return nullptr;
  const std::string* value = find_pair(options->config, key);
  return value ? value->c_str() : nullptr;
}

}  // namespace slot
}  // namespace folio::ort
