// The ground of folio.hpp: errors, the table in use, owned handles, Env, Cancel, MemoryReport.
//
// Include folio.hpp, whose first comment holds for this file too.
#ifndef FOLIO_FOLIO_BASE_HPP_
#define FOLIO_FOLIO_BASE_HPP_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "folio/folio_c_api.h"

namespace folio {

using ErrorCode = FolioErrorCode;
using ElementType = FolioElementType;
using ValueKind = FolioValueKind;
using LogLevel = FolioLogLevel;
using CloseMode = FolioCloseMode;
using Metrics = FolioMetrics;
using PackCacheStats = FolioPackCacheStats;
using PackCacheCollected = FolioPackCacheCollected;
using PackResult = FolioPackResult;
using MemorySummary = FolioMemorySummary;
using Dims = std::vector<std::int64_t>;

// What every failure throws. what() is the message of the C status.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

namespace internal {

inline std::atomic<const FolioApi*> table{nullptr};

}  // namespace internal

// Makes all objects of the process use this table; before the first of them.
inline void use(const FolioApi* table) { internal::table.store(table, std::memory_order_release); }

// The table in use. Throws FAIL if there is none.
inline const FolioApi& api() {
  const FolioApi* table = internal::table.load(std::memory_order_acquire);
  if (table == nullptr) {
#ifndef FOLIO_NO_LINK
    table = FolioGetApiBase()->GetApi(FOLIO_API_VERSION);
    if (table == nullptr) {
      throw Error(FOLIO_FAIL, std::string("libfolio is too old for this program: ") +
                                  FolioGetApiBase()->GetVersionString());
    }
    use(table);
#else
    throw Error(FOLIO_FAIL, "folio::use(table) was not called");
#endif
  }
  return *table;
}

namespace internal {

// Throws what the status says, and releases it.
inline void check(FolioStatus* status) {
  if (status == nullptr) return;
  struct Releaser {
    FolioStatus* status;
    ~Releaser() { api().ReleaseStatus(status); }
  } releaser{status};
  throw Error(api().GetErrorCode(status), api().GetErrorMessage(status));
}

// Owns one handle of the C API.
template <typename T, void (*FolioApi::*Release)(T*)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T* handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (handle_ != nullptr) (api().*Release)(handle_);
  }
  T* get() const { return handle_; }

 private:
  T* handle_ = nullptr;
};

// A struct of the C API with its size filled in.
template <typename T>
T sized() {
  T result{};
  result.size = sizeof result;
  return result;
}

// Calls `entry` for its result: value_of<size_t>(api().GetValueCount, value).
template <typename Result, typename Entry, typename... Args>
Result value_of(Entry entry, Args... args) {
  Result result{};
  check(entry(args..., &result));
  return result;
}

// Calls `call` for a text that it gives away: call(char** out).
template <typename Call>
std::string owned_text(Call call) {
  struct Releaser {
    char* text = nullptr;
    ~Releaser() { api().ReleaseString(text); }
  } releaser;
  check(call(&releaser.text));
  return releaser.text;
}

template <typename Entry, typename Argument>
std::string owned_string(Entry entry, Argument argument) {
  return owned_text([&](char** out) { return entry(argument, out); });
}

// Keeps a progress callback and what it threw.
struct Progress {
  std::function<bool(const std::string&, double)> function;
  std::exception_ptr thrown;

  static int call(void* user, const char* stage, double fraction) {
    auto* self = static_cast<Progress*>(user);
    try {
      return self->function(stage, fraction) ? 0 : 1;
    } catch (...) {
      self->thrown = std::current_exception();
      return 1;
    }
  }

  // Like check, but what the callback threw comes first. `progress` may be null.
  static void check_load(FolioStatus* status, Progress* progress) {
    if (status != nullptr && progress != nullptr && progress->thrown) {
      api().ReleaseStatus(status);
      std::rethrow_exception(std::exchange(progress->thrown, nullptr));
    }
    check(status);
  }
};

// A std::function as a FolioReleaseFunction and its user.
inline void call_and_delete(void* user) {
  const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(user));
  (*function)();
}

// Runs take_over(release, user), and frees the function itself if the library did not take it.
// `progress` may be null: see Progress::check_load.
template <typename TakeOver>
void with_release(std::function<void()> function, TakeOver take_over,
                  Progress* progress = nullptr) {
  if (!function) return Progress::check_load(take_over(nullptr, nullptr), progress);
  auto owned = std::make_unique<std::function<void()>>(std::move(function));
  Progress::check_load(take_over(&call_and_delete, owned.get()), progress);
  static_cast<void>(owned.release());
}

}  // namespace internal

// ---- Base -------------------------------------------------------------------------------------

inline std::string version_string() { return api().GetVersionString(); }
inline std::string build_info() { return api().GetBuildInfo(); }
inline std::string error_name(ErrorCode code) { return api().GetErrorName(code); }
inline std::string type_name(ElementType type) { return api().GetElementTypeName(type); }
inline std::uint32_t type_bits(ElementType type) { return api().GetElementTypeBits(type); }

inline FolioCpuInfo cpu_info() {
  auto info = internal::sized<FolioCpuInfo>();
  internal::check(api().GetCpuInfo(&info));
  return info;
}

// Where the bytes are, at the moment it was made.
class MemoryReport {
 public:
  struct Entry {
    std::string name;
    std::string kind;
    std::uint64_t bytes = 0;
    std::uint64_t resident_bytes = 0;
    bool is_private = false;
    std::uint64_t pss_bytes = 0;
  };

  explicit MemoryReport(FolioMemoryReport* handle) : handle_(handle) {}

  std::vector<Entry> entries() const {
    std::vector<Entry> result;
    const auto count = internal::value_of<size_t>(api().MemoryReportGetEntryCount, handle_.get());
    for (size_t i = 0; i < count; ++i) {
      auto entry = internal::sized<FolioMemoryEntry>();
      internal::check(api().MemoryReportGetEntry(handle_.get(), i, &entry));
      result.push_back({entry.name, entry.kind, entry.bytes, entry.resident_bytes,
                        entry.is_private != 0, entry.pss_bytes});
    }
    return result;
  }
  MemorySummary summary() const {
    auto sum = internal::sized<MemorySummary>();
    internal::check(api().MemoryReportGetSummary(handle_.get(), &sum));
    return sum;
  }
  std::string json() const {
    return internal::value_of<const char*>(api().MemoryReportGetJson, handle_.get());
  }
  std::string text() const {
    return internal::value_of<const char*>(api().MemoryReportGetText, handle_.get());
  }

 private:
  internal::Handle<FolioMemoryReport, &FolioApi::ReleaseMemoryReport> handle_;
};

struct EnvOptions {
  std::uint32_t thread_count = 0;
  std::uint32_t max_arenas = 0;
  LogLevel log_level = FOLIO_LOG_WARNING;
  std::function<void(LogLevel, const std::string&)> log;  // empty: leaves the log as it is
};

// Threads of a group of sessions, and the log. A default-constructed one is the default Env.
class Env {
 public:
  Env() = default;
  explicit Env(const EnvOptions& options) {
    auto raw = internal::sized<FolioEnvOptions>();
    raw.thread_count = options.thread_count;
    raw.max_arenas = options.max_arenas;
    std::unique_ptr<LogFunction> log;
    if (options.log) {
      log = std::make_unique<LogFunction>(options.log);
      raw.log_level = options.log_level;
      raw.log = [](void* user, FolioLogLevel level, const char* message) {
        (*static_cast<LogFunction*>(user))(level, message);
      };
      raw.log_user = log.get();
      raw.log_release = [](void* user) { delete static_cast<LogFunction*>(user); };
    }
    handle_ = Owned(internal::value_of<FolioEnv*>(api().CreateEnv, &raw));
    static_cast<void>(log.release());  // log_release has it now
  }

  void trim() const { internal::check(api().EnvTrim(get())); }
  Metrics metrics() const {
    auto result = internal::sized<FolioMetrics>();
    internal::check(api().EnvGetMetrics(get(), &result));
    return result;
  }
  std::string metrics_text() const {
    return internal::owned_string(api().EnvGetMetricsText, get());
  }
  MemoryReport memory_report() const {
    return MemoryReport(internal::value_of<FolioMemoryReport*>(api().EnvGetMemoryReport, get()));
  }
  FolioEnv* get() const { return handle_.get(); }

 private:
  using LogFunction = std::function<void(LogLevel, const std::string&)>;
  using Owned = internal::Handle<FolioEnv, &FolioApi::ReleaseEnv>;
  Owned handle_;
};

// A flag that stops loads and runs; request() may come from any thread.
class Cancel {
 public:
  Cancel() : handle_(internal::value_of<FolioCancel*>(api().CreateCancel)) {}
  void request() const { internal::check(api().CancelRequest(handle_.get())); }
  bool is_requested() const {
    return internal::value_of<std::int32_t>(api().CancelIsRequested, handle_.get()) != 0;
  }
  FolioCancel* get() const { return handle_.get(); }

 private:
  internal::Handle<FolioCancel, &FolioApi::ReleaseCancel> handle_;
};

}  // namespace folio

#endif  // FOLIO_FOLIO_BASE_HPP_
