// Slots: environments, their log and threads, and the list of providers.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "c_api/ort_dropin/handles.h"

namespace folio::ort {
namespace {

constexpr int kFatal = 4;  // ONNX Runtime's level above error

void write_line(void* user, FolioLogLevel level, const char* message) {
  const auto* target = static_cast<const LogTarget*>(user);
  const int wanted = target->level.load(std::memory_order_relaxed);
  if (static_cast<int>(level) < wanted || wanted >= kFatal) return;
  if (target->log) {
    target->log(target->user, static_cast<int>(level), "folio", target->id.c_str(), "", message);
    return;
  }
  char when[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  if (localtime_r(&now, &local)) std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  std::fprintf(stderr, "%s [%c:folio:%s] %s\n", when, "VIWE"[level], target -> id.c_str(), message);
}

void release_target(void* user) { delete static_cast<LogTarget*>(user); }

OrtStatus* create_env(OrtLoggingFunction log, void* user, int level, const char* log_id,
                      const OrtThreadingOptions* threading, OrtEnv** out) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    auto target = std::make_unique<LogTarget>();
    target->log = log;
    target->user = user;
    target->id = log_id ? log_id : "";
    target->level = level;
    auto env = std::make_unique<OrtEnv>();
    const int threads = threading ? threading->intra_op_threads : 0;
    env->denormal_as_zero = threading && threading->denormal_as_zero;
    ORT_TRY(make_env(std::move(target), threads, &env->env, &env->log));
    *out = env.release();
    return nullptr;
  });
}

// What only tunes how ONNX Runtime's own threads wait.
OrtStatus* accept() noexcept { return nullptr; }

}  // namespace

OrtStatus* make_env(std::unique_ptr<LogTarget> target, int threads, Env* out, LogTarget** out_log) {
  constexpr int kMostThreads = 256;  // Folio's limit
  FolioEnvOptions options = {};
  options.size = sizeof options;
  options.thread_count = static_cast<uint32_t>(std::min(std::max(threads, 0), kMostThreads));
  // The program may lower the level later, which Folio's environments cannot: write_line sees to
  // it.
  options.log_level = FOLIO_LOG_VERBOSE;
  options.log = write_line;
  options.log_user = target.get();
  options.log_release = release_target;
  FolioEnv* made = nullptr;
  ORT_CALL(folio().CreateEnv(&options, &made));
  out->reset(made);
  LogTarget* kept = target.release();
  if (out_log) *out_log = kept;
  return nullptr;
}

namespace slot {

OrtStatus* CreateEnv(int level, const char* log_id, OrtEnv** out) noexcept {
  return create_env(nullptr, nullptr, level, log_id, nullptr, out);
}

OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction log, void* user, int level,
                                     const char* log_id, OrtEnv** out) noexcept {
  return create_env(log, user, level, log_id, nullptr, out);
}

OrtStatus* CreateEnvWithGlobalThreadPools(int level, const char* log_id,
                                          const OrtThreadingOptions* threading,
                                          OrtEnv** out) noexcept {
  return create_env(nullptr, nullptr, level, log_id, threading, out);
}

OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction log, void* user,
                                                         int level, const char* log_id,
                                                         const OrtThreadingOptions* threading,
                                                         OrtEnv** out) noexcept {
  return create_env(log, user, level, log_id, threading, out);
}

OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    return create_env(options->log, options->log_user, options->level, options->log_id,
                      options->threading, out);
  });
}

void ReleaseEnv(OrtEnv* env) noexcept { delete env; }

// There is no telemetry.
OrtStatus* EnableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* DisableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* SetLanguageProjection(const OrtEnv*, int) noexcept { return nullptr; }

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* env, int level) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(env);
    env->log->level = level;
    return nullptr;
  });
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    *out = new OrtThreadingOptions;
    return nullptr;
  });
}

void ReleaseThreadingOptions(OrtThreadingOptions* options) noexcept { delete options; }

OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    options->intra_op_threads = count;
    return nullptr;
  });
}

// One pool computes; nothing spins; it takes the affinity of who starts it.
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions*, int) noexcept { return accept(); }
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions*, int) noexcept { return accept(); }
OrtStatus* SetGlobalIntraOpThreadAffinity(OrtThreadingOptions*, const char*) noexcept {
  return accept();
}
// A key of sessions in Folio: those without threads of their own get it.
OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions* options) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    options->denormal_as_zero = true;
    return nullptr;
  });
}

// Folio's arenas are the process's, whatever the program says of its own.
OrtStatus* CreateAndRegisterAllocator(OrtEnv*, const OrtMemoryInfo*, const OrtArenaCfg*) noexcept {
  return accept();
}
OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv*, const char* provider, const OrtMemoryInfo*,
                                        const OrtArenaCfg*, const char* const*, const char* const*,
                                        size_t) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(provider);
    if (std::strcmp(provider, kProviderName) == 0) return nullptr;
    return make_status(kInvalidArgument, std::string("there is no provider ") + provider);
  });
}

OrtStatus* GetAvailableProviders(char*** out, int* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_count);
    auto name = std::make_unique<char[]>(sizeof kProviderName);
    std::memcpy(name.get(), kProviderName, sizeof kProviderName);
    auto names = std::make_unique<char*[]>(1);
    names[0] = name.release();
    *out = names.release();
    *out_count = 1;
    return nullptr;
  });
}

OrtStatus* ReleaseAvailableProviders(char** names, int count) noexcept {
  if (!names) return nullptr;
  for (int i = 0; i < count; ++i) delete[] names[i];
  delete[] names;
  return nullptr;
}

}  // namespace slot
}  // namespace folio::ort
