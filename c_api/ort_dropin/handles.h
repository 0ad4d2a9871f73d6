// What the drop-in's handles are, and how a slot crosses from ONNX Runtime's interface to Folio's.
//
// Flow:    a slot wraps its body in `guarded`, checks its arguments, calls Folio's table and turns
//          what came back into the program's handles.
// Owns:    each handle its Folio handle; values are shared with the options that hold them.
// Threads: as Folio's: sessions and what is passed as const by any number, the rest by one at a
// time.
// Errors:  every exception and every Folio status becomes an OrtStatus with ONNX Runtime's code.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "c_api/ort_dropin/ort_api.h"
#include "folio/folio_c_api.h"

namespace folio::ort {

inline const FolioApi& folio() {
  static const FolioApi* const table = FolioGetApiBase()->GetApi(FOLIO_API_VERSION);
  return *table;
}

// ---- status ----

// The out-of-memory status where there is no memory for another.
OrtStatus* make_status(int code, std::string_view message) noexcept;
OrtStatus* out_of_memory() noexcept;
// Takes the status over; NULL for NULL.
OrtStatus* to_ort(FolioStatus* status) noexcept;
OrtStatus* not_implemented(const char* function, const char* why) noexcept;

template <typename Body>
OrtStatus* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    return make_status(kFail, exception.what());
  } catch (...) {
    return make_status(kFail, "an exception of no known type");
  }
}

// From the body of `guarded`:
#define ORT_NOT_NULL(argument)                                     \
  if ((argument) == nullptr)                                       \
  return ::folio::ort::make_status(::folio::ort::kInvalidArgument, \
                                   "argument '" #argument "' is NULL")
#define ORT_CALL(call) \
  if (FolioStatus* const folio_status = (call)) return ::folio::ort::to_ort(folio_status)
#define ORT_TRY(call) \
  if (OrtStatus* const ort_status = (call)) return ort_status

// ---- Folio's handles, owned ----

template <typename T, void (*FolioApi::*kRelease)(T*)>
struct Releaser {
  void operator()(T* handle) const { (folio().*kRelease)(handle); }
};
template <typename T, void (*FolioApi::*kRelease)(T*)>
using Owned = std::unique_ptr<T, Releaser<T, kRelease>>;

using Env = Owned<FolioEnv, &FolioApi::ReleaseEnv>;
using Cancel = Owned<FolioCancel, &FolioApi::ReleaseCancel>;
using Model = Owned<FolioModel, &FolioApi::ReleaseModel>;
using PackCache = Owned<FolioPackCache, &FolioApi::ReleasePackCache>;
using Options = Owned<FolioSessionOptions, &FolioApi::ReleaseSessionOptions>;
using Session = Owned<FolioSession, &FolioApi::ReleaseSession>;
using RunOptions = Owned<FolioRunOptions, &FolioApi::ReleaseRunOptions>;
using Binding = Owned<FolioIoBinding, &FolioApi::ReleaseIoBinding>;
using Value = Owned<FolioValue, &FolioApi::ReleaseValue>;

// ---- small things ----

// ONNX Runtime numbers the types after FLOAT4E2M1 in another order than ONNX does.
FolioElementType to_folio_type(int type);
int to_ort_type(FolioElementType type);

using Pairs = std::vector<std::pair<std::string, std::string>>;
const std::string* find_pair(const Pairs& pairs, std::string_view key);
void set_pair(Pairs* pairs, std::string_view key, std::string_view value);

// The strings of a value as an array, and back: of `shown`.
OrtStatus* show_strings(const OrtValue& value);
OrtStatus* take_strings_back(const OrtValue& value);

// The value as a scalar over the same memory, where `name` is one of `scalars` and `value` has one
// element and some dims; else *out stays null.
OrtStatus* as_scalar(const std::vector<std::string>& scalars, const char* name,
                     const FolioValue* value, Value* out);

// Text in memory of the program's allocator.
OrtStatus* give_text(OrtAllocator* allocator, std::string_view text, char** out);

// Where the log of an environment, or of a session with a log of its own, goes. Folio holds it.
struct LogTarget {
  OrtLoggingFunction log = nullptr;  // null: standard error
  void* user = nullptr;
  std::string id;
  std::atomic<int> level{FOLIO_LOG_WARNING};
};
OrtStatus* make_env(std::unique_ptr<LogTarget> target, int threads, Env* out, LogTarget** out_log);

OrtAllocator* default_allocator();
const OrtMemoryInfo& cpu_memory();
const OrtEpDevice* cpu_device();

constexpr const char kProviderName[] = "CPUExecutionProvider";

}  // namespace folio::ort

struct OrtStatus {
  int code;
  std::string message;
};

struct OrtThreadingOptions {
  int intra_op_threads = 0;
  bool denormal_as_zero = false;
};

struct OrtEnv {
  folio::ort::Env env;
  bool denormal_as_zero = false;
  folio::ort::LogTarget* log = nullptr;  // Folio's, as long as `env`
};

struct OrtMemoryInfo {
  std::string name;
  int id = 0;
  int memory_type = 0;     // OrtMemType: 0 default, -1 CPU output, -2 CPU input
  int allocator_type = 1;  // OrtAllocatorType: 0 device, 1 arena
  int device_type = 0;     // OrtMemoryInfoDeviceType: 0 CPU
  int device_memory = 0;   // OrtDeviceMemoryType: 0 default, 5 host accessible
  uint32_t vendor_id = 0;
};

struct OrtArenaCfg {};

struct OrtKeyValuePairs {
  folio::ort::Pairs pairs;
  // What GetKeyValuePairs shows; made anew when the pairs change.
  std::vector<const char*> keys;
  std::vector<const char*> values;
  void refresh();
};

struct OrtValue {
  std::shared_ptr<folio::ort::Value> value;  // shared with the options that hold it
  std::unique_ptr<OrtMemoryInfo> memory;     // null: memory of the CPU
  // A tensor of strings that a program asked the data of: ONNX Runtime shows an array of
  // std::string. What the program writes there is taken over before the value is used again.
  mutable std::vector<std::string> shown;

  FolioValue* get() const { return value->get(); }

  // With no handle yet: to be set when nothing may fail any more.
  static std::unique_ptr<OrtValue> empty() {
    auto made = std::make_unique<OrtValue>();
    made->value = std::make_shared<folio::ort::Value>();
    return made;
  }
  // Takes the handle over, also where it throws.
  static std::unique_ptr<OrtValue> own(FolioValue* handle) {
    folio::ort::Value owner(handle);
    auto made = empty();
    *made->value = std::move(owner);
    return made;
  }
};

struct OrtTensorTypeAndShapeInfo {
  int type = 0;
  bool has_shape = true;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;  // as many as dims
};

struct OrtMapTypeInfo {
  int key_type = 0;
  std::shared_ptr<const OrtTypeInfo> value;
};
struct OrtSequenceTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};
struct OrtOptionalTypeInfo {
  std::shared_ptr<const OrtTypeInfo> element;
};

struct OrtTypeInfo {
  int kind = 0;  // ONNXType
  OrtTensorTypeAndShapeInfo tensor;
  OrtMapTypeInfo map;
  OrtSequenceTypeInfo sequence;
  OrtOptionalTypeInfo optional;
};

struct OrtPrepackedWeightsContainer {
  folio::ort::PackCache cache;
};

struct OrtSessionOptions {
  struct File {
    std::string name;
    const void* data;  // the program's, until the session is made
    size_t bytes;
  };
  folio::ort::Pairs config;
  folio::ort::Pairs free_dims;  // name, number
  std::vector<std::pair<std::string, std::shared_ptr<folio::ort::Value>>> initializers;
  std::vector<File> files;
  std::string saved_path;
  std::string profile_prefix;
  std::string log_id;
  int intra_op_threads = 0;
  int optimization_level = 99;
  int execution_mode = 0;
  bool per_session_threads = true;
  bool memory_pattern = true;
  OrtLoggingFunction log = nullptr;
  void* log_user = nullptr;
  int log_level = -1;  // -1: the environment's
  std::shared_ptr<FolioCancel> cancel;
};

struct OrtSession {
  folio::ort::Session session;
  folio::ort::Model model;
  // Inputs that the model declares to have no dims. ONNX Runtime does not look at the shape of what
  // is given for them, and programs give one element of one dim.
  std::vector<std::string> scalars;
};

struct OrtModelMetadata {
  folio::ort::Model model;
};

struct OrtRunOptions {
  mutable std::mutex mutex;  // `terminate` is set from other threads than the one that runs
  folio::ort::RunOptions options;
  folio::ort::Cancel cancel;
  std::vector<folio::ort::Cancel> set_before;  // taken back; runs may still look at them
  folio::ort::Pairs config;
  std::string tag;
  int log_level = -1;
  int log_verbosity = 0;
};

struct OrtIoBinding {
  std::vector<std::string> scalars;  // the session's, which may be released before
  folio::ort::Binding binding;
};

struct OrtExternalInitializerInfo {
  std::string path;
  int64_t offset;
  size_t bytes;
};
