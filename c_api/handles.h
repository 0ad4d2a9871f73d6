// What the handles of the C API are: thin structs that hold references to states; states hold each
// other child to parent, so that any order of release is legal.
//
// Flow:    entries make a state, give out handles to it, and look into it through the handle.
// Owns:    SessionState -> ModelState -> EnvState; a binding -> its session; options -> what was
// put
//          into them. A release function of the user's is called by Lent, when the last one goes.
// Threads: EnvState, ModelState, SessionState and CancelState may be used by any thread; the rest
// by
//          one at a time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "c_api/boundary.h"
#include "core/base/value.h"
#include "core/session/session.h"

namespace folio {

// Memory of the user's. Until `keep` was called, the call that wants it may fail, and then the
// memory stays the user's: nothing is released.
class Lent final : public RefCounted {
 public:
  Lent(FolioReleaseFunction give_back, void* user) : give_back_(give_back), user_(user) {}
  ~Lent() override {
    if (kept_ && give_back_) give_back_(user_);
  }
  void keep() { kept_ = true; }

 private:
  FolioReleaseFunction give_back_;
  void* user_;
  bool kept_ = false;
};

// Bytes of the user's as a source. Without `release` they are copied, or taken `directly` when the
// caller promised to keep them, and `lent` stays null.
Result<Ref<ByteSource>> lend_bytes(const void* data, size_t bytes, FolioReleaseFunction release,
                                   void* user, std::string name, Ref<Lent>* lent,
                                   bool directly = false);
// session.use_ort_model_bytes_directly is for .ort models, as in ONNX Runtime.
bool may_borrow(const ModelOptions& options, const void* data, size_t bytes);

struct CancelState final : RefCounted {
  std::atomic<bool> requested{false};
};

// A user's log function; see env_state.h for how the process's log finds it.
struct LogSink final : RefCounted {
  FolioLogFunction log = nullptr;
  void* user = nullptr;
  FolioReleaseFunction give_back = nullptr;
  FolioLogLevel level = FOLIO_LOG_VERBOSE;
  bool kept = false;  // as in Lent
  ~LogSink() override {
    if (kept && give_back) give_back(user);
  }
};

class SessionState;

// An environment: defaults of its sessions, its log, and the sums of their metrics.
class EnvState final : public RefCounted {
 public:
  explicit EnvState(int threads, Ref<LogSink> sink) : threads_(threads), sink_(std::move(sink)) {}
  ~EnvState() override;

  // That of the process, which is never destroyed.
  static const Ref<EnvState>& process();

  int threads() const { return threads_; }
  void add(const SessionState* session);
  void remove(const SessionState* session);  // keeps what it counted
  FolioMetrics metrics() const;

 private:
  int threads_;
  Ref<LogSink> sink_;
  std::set<const SessionState*> sessions_;  // the lock is the process's: env_state.cc
  FolioMetrics gone_ = {};                  // sums over sessions that are no more
};

// Every session of the process, under the lock that keeps it alive. `visit` must not make or
// release any.
void each_session(const std::function<void(const SessionState&)>& visit);

// Makes `sink` the log of the process, until take_log_away.
void give_log(const Ref<LogSink>& sink);

}  // namespace folio

struct FolioValueInfo {
  std::string name;
  FolioValueKind kind = FOLIO_KIND_UNKNOWN;
  FolioElementType type = FOLIO_UNDEFINED;
  bool has_shape = false;
  std::vector<int64_t> dims;
  std::vector<std::string> symbols;  // as many as dims
  std::unique_ptr<FolioValueInfo> element;
};

namespace folio {

// Inputs and outputs as users see them.
struct Ports {
  std::vector<FolioValueInfo> inputs;
  std::vector<FolioValueInfo> outputs;
  std::vector<FolioValueInfo> overridable;

  const FolioValueInfo* find_input(std::string_view name) const;  // overridable ones too
  const FolioValueInfo* find_output(std::string_view name) const;
};

Ports ports_of(const ModelInfo& info);
// The model's, with what a session knows beyond: overrides, and what inference found.
Ports ports_of(const ModelInfo& info, const Program& program, const FreeDims& free_dims);

class ModelState final : public RefCounted {
 public:
  // `path` is "" for memory.
  ModelState(Ref<EnvState> env, Ref<ModelFile> file, std::string path);

  const Ref<EnvState>& env() const { return env_; }
  const Ref<ModelFile>& file() const { return file_; }
  const ByteSource& source() const { return file_->source()->origin(); }
  const std::string& path() const { return path_; }
  const Ports& ports() const { return ports_; }
  const ModelInfo& info() const { return file_->info(); }
  // Texts of the file that are only shown, repaired where they are not UTF-8.
  struct Texts {
    std::string producer_name, producer_version, domain, description, graph_name;
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<UnsupportedNode> unsupported;
    std::vector<OpsetImport> opsets;
    std::vector<std::pair<std::string, int64_t>> operators;
  };
  const Texts& texts() const { return texts_; }

 private:
  Ref<EnvState> env_;
  Ref<ModelFile> file_;
  std::string path_;
  Ports ports_;
  Texts texts_;
};

class SessionState final : public RefCounted {
 public:
  SessionState(Ref<ModelState> model, Ref<Session> session);
  ~SessionState() override;

  const Ref<ModelState>& model() const { return model_; }
  Session& session() const { return *session_; }
  const Ports& ports() const { return ports_; }
  FolioMetrics metrics() const;
  Status run(const FolioRunOptions* options, const std::vector<NamedValue>& inputs,
             const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs);

 private:
  Ref<ModelState> model_;
  Ref<Session> session_;
  Ports ports_;
  std::atomic<uint64_t> in_flight_{0};
};

// The progress that a load reports to the user, in the part [from, to] of its call; null when
// nobody wants to know. `function` and `cancel` may be null.
Progress progress_for(FolioProgressFunction function, void* user, Ref<CancelState> cancel,
                      float from, float to);

// A handle for a value. Memory that is ours alone becomes memory that a run must copy before it
// leaves the run again: two handles never share bytes because a model passed them through.
FolioValue* new_value(Value value);

// Opens and compiles, for the entries that do both.
Result<Ref<ModelState>> open_model(const FolioEnv* env, const char* path,
                                   const ModelOptions& options);
Result<Ref<ModelState>> open_model(const FolioEnv* env, Ref<ByteSource> source,
                                   const ModelOptions& options);
Ref<EnvState> env_of(const FolioEnv* env);

}  // namespace folio

struct FolioEnv {
  folio::Ref<folio::EnvState> state;
};

struct FolioCancel {
  folio::Ref<folio::CancelState> state;
};

struct FolioModelOptions {
  folio::ModelOptions options;
  FolioProgressFunction progress = nullptr;
  void* progress_user = nullptr;
  folio::Ref<folio::CancelState> cancel;
};

struct FolioModel {
  folio::Ref<folio::ModelState> state;
};

struct FolioPackCache {
  std::shared_ptr<folio::PackedCache> cache;
};

struct FolioSessionOptions {
  folio::SessionOptions options;
  folio::ModelOptions model;  // for creates that open the model too
  FolioProgressFunction progress = nullptr;
  void* progress_user = nullptr;
  folio::Ref<folio::CancelState> cancel;
};

struct FolioSession {
  folio::Ref<folio::SessionState> state;
};

struct FolioRunOptions {
  folio::RunOptions options;
  folio::Ref<folio::CancelState> cancel;
};

struct FolioValue {
  folio::Value value;
};

struct FolioIoBinding {
  struct Output {
    std::string name;
    folio::OutputMemory memory;  // where it is written; none: a new value each time
    folio::Value result;
  };
  folio::Ref<folio::SessionState> session;
  std::vector<folio::NamedValue> inputs;
  std::vector<Output> outputs;
  bool has_results = false;
  std::atomic<bool> is_running{false};
};

struct FolioMemoryReport {
  struct Entry {
    std::string name;
    const char* kind;
    uint64_t bytes;
    uint64_t resident_bytes;
    bool is_private;
    uint64_t pss_bytes;
  };
  std::vector<Entry> entries;
  FolioMemorySummary summary = {};
  std::string json;
  std::string text;
};
