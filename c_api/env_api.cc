// Entries: Env and Cancel.
#include "c_api/entries.h"
#include "c_api/handles.h"
#include "c_api/reports.h"
#include "core/os/arena.h"
#include "core/os/run_blocks.h"
#include "core/os/thread_pool.h"

namespace folio {
namespace {

Status check_env_options(const FolioEnvOptions& options) {
  if (options.thread_count > static_cast<uint32_t>(kMaxThreads)) {
    return invalid_argument("thread_count is ", options.thread_count, ", expected at most ",
                            kMaxThreads);
  }
  if (options.log &&
      (options.log_level < FOLIO_LOG_VERBOSE || options.log_level > FOLIO_LOG_ERROR)) {
    return invalid_argument("log_level is ", static_cast<int>(options.log_level),
                            ", expected one of FolioLogLevel");
  }
  return Status::ok();
}

}  // namespace

Ref<EnvState> env_of(const FolioEnv* env) { return env ? env->state : EnvState::process(); }

namespace entry {

FolioStatus* CreateEnv(const FolioEnvOptions* options, FolioEnv** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    FolioEnvOptions asked = {};
    if (options) FOLIO_RETURN_IF_ERROR(read_struct(options, &asked, "FolioEnvOptions"));
    FOLIO_RETURN_IF_ERROR(check_env_options(asked));
    Ref<LogSink> sink;
    if (asked.log) {
      sink = make_ref<LogSink>();
      sink->log = asked.log;
      sink->user = asked.log_user;
      sink->give_back = asked.log_release;
      sink->level = asked.log_level;
    }
    auto env = std::make_unique<FolioEnv>();
    env->state = make_ref<EnvState>(static_cast<int>(asked.thread_count), sink);
    if (sink) {
      give_log(sink);
      sink->kept = true;
    }
    if (asked.max_arenas > 0) ArenaPool::process().set_max_arenas(asked.max_arenas);
    *out = env.release();
    return Status::ok();
  });
}

FolioStatus* EnvTrim(const FolioEnv*) {
  return guarded([&] {
    ArenaPool::process().trim();
    BlockPool::process().trim();
    return Status::ok();
  });
}

FolioStatus* EnvGetMetrics(const FolioEnv* env, FolioMetrics* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    return write_struct(out, env_of(env)->metrics(), "FolioMetrics");
  });
}

FolioStatus* EnvGetMetricsText(const FolioEnv* env, char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    *out = copy_for_caller(metrics_text(env_of(env)->metrics()));
    return Status::ok();
  });
}

FolioStatus* EnvGetMemoryReport(const FolioEnv*, FolioMemoryReport** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    *out = report_process().release();
    return Status::ok();
  });
}

void ReleaseEnv(FolioEnv* env) { delete env; }

FolioStatus* CreateCancel(FolioCancel** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    auto cancel = std::make_unique<FolioCancel>();
    cancel->state = make_ref<CancelState>();
    *out = cancel.release();
    return Status::ok();
  });
}

FolioStatus* CancelRequest(FolioCancel* cancel) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(cancel);
    cancel->state->requested.store(true, std::memory_order_relaxed);
    return Status::ok();
  });
}

FolioStatus* CancelIsRequested(const FolioCancel* cancel, int32_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(cancel);
    FOLIO_NOT_NULL(out);
    *out = cancel->state->requested.load(std::memory_order_relaxed) ? 1 : 0;
    return Status::ok();
  });
}

void ReleaseCancel(FolioCancel* cancel) { delete cancel; }

}  // namespace entry
}  // namespace folio
