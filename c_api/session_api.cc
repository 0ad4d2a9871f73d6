// Entries: Session, but for its runs (run_api.cc).
#include "c_api/entries.h"
#include "c_api/env_config.h"
#include "c_api/handles.h"
#include "c_api/reports.h"

namespace folio {
namespace {

// How much of a create that opens the file too belongs to the opening.
constexpr float kOpenShare = 0.2F;

Result<Ref<SessionState>> compile(const Ref<ModelState>& model, const FolioSessionOptions* options,
                                  float from) {
  SessionOptions asked = options ? options->options : session_defaults();
  if (asked.threads == 0) asked.threads = model->env()->threads();
  if (options) {
    asked.progress =
        progress_for(options->progress, options->progress_user, options->cancel, from, 1);
  }
  // A program that another session has made already reports nothing.
  if (asked.progress && !asked.progress(0.0F, "compile")) {
    return error(Code::kModelLoadCancelled, "loading was cancelled");
  }
  auto session = Session::create(model->file(), asked);
  if (!session.is_ok()) return as_load_error(std::move(session).take_status());
  auto state = make_ref<SessionState>(model, std::move(session).take());
  return state;
}

ModelOptions opening(const FolioSessionOptions* options) {
  if (!options) return model_defaults();
  ModelOptions result = options->model;
  result.initializers = options->options.initializers;
  result.progress =
      progress_for(options->progress, options->progress_user, options->cancel, 0, kOpenShare);
  return result;
}

FolioStatus* get_count(const FolioSession* session, size_t* out,
                       std::vector<FolioValueInfo> Ports::*infos) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    *out = (session->state->ports().*infos).size();
    return Status::ok();
  });
}

FolioStatus* get_info(const FolioSession* session, size_t index, const FolioValueInfo** out,
                      std::vector<FolioValueInfo> Ports::*infos, const char* what) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    const auto& all = session->state->ports().*infos;
    FOLIO_RETURN_IF_ERROR(check_index(index, all.size(), what));
    *out = &all[index];
    return Status::ok();
  });
}

}  // namespace

SessionState::SessionState(Ref<ModelState> model, Ref<Session> session)
    : model_(std::move(model)),
      session_(std::move(session)),
      ports_(ports_of(model_->info(), session_->program(), session_->options().free_dims)) {
  model_->env()->add(this);
}

SessionState::~SessionState() { model_->env()->remove(this); }

FolioMetrics SessionState::metrics() const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const Metrics& counted = session_->metrics();
  static_assert(std::tuple_size_v<decltype(counted.buckets)> == FOLIO_LATENCY_BUCKET_COUNT);
  FolioMetrics out = {};
  out.run_count = counted.runs.load(kRelaxed);
  out.error_count = counted.failed.load(kRelaxed);
  out.cancelled_count = counted.cancelled.load(kRelaxed);
  out.in_flight_count = in_flight_.load(kRelaxed);
  out.session_count = 1;
  out.latency_sum_us = counted.total_us.load(kRelaxed);
  for (size_t i = 0; i < counted.buckets.size(); ++i) {
    out.latency_buckets[i] = counted.buckets[i].load(kRelaxed);
  }
  return out;
}

Status SessionState::run(const FolioRunOptions* options, const std::vector<NamedValue>& inputs,
                         const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs) {
  struct InFlight {
    std::atomic<uint64_t>& count;
    explicit InFlight(std::atomic<uint64_t>& counter) : count(counter) { ++count; }
    ~InFlight() { --count; }
  } const in_flight(in_flight_);
  return session_->run(options ? options->options : RunOptions(), inputs, wanted, outputs);
}

namespace entry {

FolioStatus* CreateSession(const FolioEnv* env, const char* path,
                           const FolioSessionOptions* options, FolioSession** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(path);
    FOLIO_NOT_NULL(out);
    auto session = std::make_unique<FolioSession>();
    FOLIO_TRY(const Ref<ModelState> model, open_model(env, path, opening(options)));
    FOLIO_TRY(session->state, compile(model, options, kOpenShare));
    *out = session.release();
    return Status::ok();
  });
}

FolioStatus* CreateSessionFromArray(const FolioEnv* env, const void* data, size_t bytes,
                                    const FolioSessionOptions* options, FolioSession** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(data);
    FOLIO_NOT_NULL(out);
    auto session = std::make_unique<FolioSession>();
    Ref<Lent> lent;  // stays null: nobody is told when the bytes are no longer read
    const ModelOptions asked = opening(options);
    FOLIO_TRY(Ref<ByteSource> source, lend_bytes(data, bytes, nullptr, nullptr, "<bytes>", &lent,
                                                 may_borrow(asked, data, bytes)));
    FOLIO_TRY(const Ref<ModelState> model, open_model(env, std::move(source), asked));
    FOLIO_TRY(session->state, compile(model, options, kOpenShare));
    *out = session.release();
    return Status::ok();
  });
}

FolioStatus* CreateSessionFromModel(const FolioModel* model, const FolioSessionOptions* options,
                                    FolioSession** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_NOT_NULL(out);
    auto session = std::make_unique<FolioSession>();
    FOLIO_TRY(session->state, compile(model->state, options, 0.0F));
    *out = session.release();
    return Status::ok();
  });
}

FolioStatus* SessionGetModel(const FolioSession* session, FolioModel** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    *out = new FolioModel{session->state->model()};
    return Status::ok();
  });
}

FolioStatus* SessionGetInputCount(const FolioSession* session, size_t* out) {
  return get_count(session, out, &Ports::inputs);
}

FolioStatus* SessionGetInput(const FolioSession* session, size_t index,
                             const FolioValueInfo** out) {
  return get_info(session, index, out, &Ports::inputs, "inputs");
}

FolioStatus* SessionGetOutputCount(const FolioSession* session, size_t* out) {
  return get_count(session, out, &Ports::outputs);
}

FolioStatus* SessionGetOutput(const FolioSession* session, size_t index,
                              const FolioValueInfo** out) {
  return get_info(session, index, out, &Ports::outputs, "outputs");
}

FolioStatus* SessionGetOverridableInitializerCount(const FolioSession* session, size_t* out) {
  return get_count(session, out, &Ports::overridable);
}

FolioStatus* SessionGetOverridableInitializer(const FolioSession* session, size_t index,
                                              const FolioValueInfo** out) {
  return get_info(session, index, out, &Ports::overridable, "overridable initializers");
}

FolioStatus* SessionWaitPacked(FolioSession* session, int64_t timeout_ms, int32_t* out_is_packed) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out_is_packed);
    if (timeout_ms < -1) {
      return invalid_argument("timeout_ms is ", timeout_ms, ", expected -1 or more");
    }
    Session& waited = session->state->session();
    *out_is_packed = waited.wait_packed(std::chrono::milliseconds(timeout_ms)) ? 1 : 0;
    return Status::ok();
  });
}

FolioStatus* SessionPrepareShapes(FolioSession* session, const char* const* input_names,
                                  const int64_t* const* dims, const size_t* dim_counts,
                                  size_t input_count) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    if (input_count > 0) {
      FOLIO_NOT_NULL(input_names);
      FOLIO_NOT_NULL(dims);
      FOLIO_NOT_NULL(dim_counts);
    }
    std::vector<std::pair<std::string, Shape>> shapes;
    for (size_t i = 0; i < input_count; ++i) {
      FOLIO_RETURN_IF_ERROR(check_name(input_names[i], "input_names[i]"));
      auto shape = shape_of(dims[i], dim_counts[i]);
      if (!shape.is_ok()) {
        return std::move(shape).take_status().with_context(cat("input '", input_names[i], "'"));
      }
      shapes.emplace_back(input_names[i], shape.value());
    }
    return session->state->session().prepare(shapes);
  });
}

FolioStatus* SessionGetMetrics(const FolioSession* session, FolioMetrics* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    return write_struct(out, session->state->metrics(), "FolioMetrics");
  });
}

FolioStatus* SessionGetMetricsText(const FolioSession* session, char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    *out = copy_for_caller(metrics_text(session->state->metrics()));
    return Status::ok();
  });
}

FolioStatus* SessionGetMemoryReport(const FolioSession* session, FolioMemoryReport** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    *out = report_session(*session->state).release();
    return Status::ok();
  });
}

FolioStatus* SessionEndProfiling(FolioSession* session, char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    std::string path;
    if (Profile* const profile = session->state->session().profile()) {
      FOLIO_TRY(path, profile->end());
    }
    *out = copy_for_caller(path);
    return Status::ok();
  });
}

FolioStatus* SessionGetProfilingStartTime(const FolioSession* session, uint64_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    const Profile* const profile = session->state->session().profile();
    *out = profile ? profile->start_ns() : 0;
    return Status::ok();
  });
}

FolioStatus* SessionClose(FolioSession* session, FolioCloseMode mode) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    if (mode != FOLIO_CLOSE_WAIT && mode != FOLIO_CLOSE_CANCEL) {
      return invalid_argument("mode is ", static_cast<int>(mode),
                              ", expected one of FolioCloseMode");
    }
    session->state->session().close(mode == FOLIO_CLOSE_CANCEL ? Session::Close::kCancel
                                                               : Session::Close::kWait);
    return Status::ok();
  });
}

void ReleaseSession(FolioSession* session) { delete session; }

}  // namespace entry
}  // namespace folio
