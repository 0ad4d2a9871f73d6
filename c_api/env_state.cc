// EnvState and the process's log.
//
// The core has one log. The first environment with a log function makes the core send its lines
// here, and from here they go to the newest such environment that is still alive.
#include <algorithm>
#include <cstdio>
#include <mutex>

#include "c_api/handles.h"
#include "core/base/log.h"
#include "core/os/fork.h"

namespace folio {
namespace {

// Neither is destroyed: environments may outlive static destruction.
std::mutex& log_mutex() {
  static std::mutex& mutex = new_mutex_held_across_fork(ForkOrder::kBase);
  return mutex;
}

std::vector<Ref<LogSink>>& log_sinks() {
  static auto* const sinks = new std::vector<Ref<LogSink>>;
  return *sinks;
}

std::mutex& metrics_mutex() {
  static std::mutex& mutex = new_mutex_held_across_fork(ForkOrder::kSession);
  return mutex;
}

// Of all environments; under metrics_mutex.
std::set<const SessionState*>& all_sessions() {
  static auto* const sessions = new std::set<const SessionState*>;
  return *sessions;
}

void send_line(void*, LogLevel level, const char* message) {
  Ref<LogSink> sink;
  {
    const std::lock_guard<std::mutex> lock(log_mutex());
    if (!log_sinks().empty()) sink = log_sinks().back();
  }
  const auto c_level = static_cast<FolioLogLevel>(
      std::min(static_cast<int>(level), static_cast<int>(FOLIO_LOG_ERROR)));
  if (!sink) {  // its environment went just now
    if (level >= LogLevel::kWarning) std::fprintf(stderr, "folio: %s\n", message);
  } else if (c_level >= sink->level) {
    sink->log(sink->user, c_level, message);
  }
}

// Under the lock.
void set_core_log() {
  if (log_sinks().empty()) {
    set_log(nullptr, nullptr, LogLevel::kWarning);
  } else {
    set_log(send_line, nullptr, static_cast<LogLevel>(log_sinks().back()->level));
  }
}

void take_log_away(const Ref<LogSink>& sink) {
  Ref<LogSink> gone;  // its release function runs without the lock
  const std::lock_guard<std::mutex> lock(log_mutex());
  auto& sinks = log_sinks();
  const auto it = std::find(sinks.begin(), sinks.end(), sink);
  if (it == sinks.end()) return;
  gone = std::move(*it);
  sinks.erase(it);
  set_core_log();
}

void add_to(FolioMetrics* sum, const FolioMetrics& more) {
  sum->run_count += more.run_count;
  sum->error_count += more.error_count;
  sum->cancelled_count += more.cancelled_count;
  sum->in_flight_count += more.in_flight_count;
  sum->session_count += more.session_count;
  sum->latency_sum_us += more.latency_sum_us;
  for (int i = 0; i < FOLIO_LATENCY_BUCKET_COUNT; ++i) {
    sum->latency_buckets[i] += more.latency_buckets[i];
  }
}

}  // namespace

void give_log(const Ref<LogSink>& sink) {
  const std::lock_guard<std::mutex> lock(log_mutex());
  log_sinks().push_back(sink);
  set_core_log();
}

EnvState::~EnvState() {
  if (sink_) take_log_away(sink_);
}

const Ref<EnvState>& EnvState::process() {
  static const auto* const env = new Ref<EnvState>(make_ref<EnvState>(0, nullptr));
  return *env;
}

void EnvState::add(const SessionState* session) {
  const std::lock_guard<std::mutex> lock(metrics_mutex());
  sessions_.insert(session);
  all_sessions().insert(session);
}

void EnvState::remove(const SessionState* session) {
  const std::lock_guard<std::mutex> lock(metrics_mutex());
  all_sessions().erase(session);
  if (sessions_.erase(session) == 0) return;
  FolioMetrics last = session->metrics();
  last.session_count = 0;
  add_to(&gone_, last);
}

FolioMetrics EnvState::metrics() const {
  const std::lock_guard<std::mutex> lock(metrics_mutex());
  FolioMetrics sum = gone_;
  for (const SessionState* session : sessions_) add_to(&sum, session->metrics());
  return sum;
}

void each_session(const std::function<void(const SessionState&)>& visit) {
  const std::lock_guard<std::mutex> lock(metrics_mutex());
  for (const SessionState* session : all_sessions()) visit(*session);
}

}  // namespace folio
