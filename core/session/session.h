// Session: model + program + options: what users hold and run.
//
// Flow:    Session::create is the spine of the whole library: map, load, verify, passes, plan.
// Owns:    shares the model and the program; counts its runs in flight.
// Threads: run, close and the reports from any thread. close refuses new runs, cancels or waits
//          for those in flight, and may be called again. A caller whose thread must not use tiles
//          waits for one of ours that loads or runs in its place (os/tile_threads.h).
// Errors:  kClosed after close; kModelChanged when a file of the model changed; otherwise what the
//          steps report, naming file, node, expected and found. On error outputs are untouched.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/run/executor.h"
#include "core/session/load_progress.h"
#include "core/session/metrics.h"
#include "core/session/model_file.h"
#include "core/session/profile.h"

namespace folio {

struct WinogradChoice;  // core/passes/passes.h

struct NamedValue {
  std::string name;
  Value value;
};

// An output asked for by name, and where to put it.
struct WantedOutput {
  std::string name;
  OutputMemory memory;
};

class Session : public RefCounted {
 public:
  static Result<Ref<Session>> create(Ref<ModelFile> model, const SessionOptions& options);
  Session(Ref<ModelFile> model, SessionOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}
  ~Session() override;

  // `outputs` gets one value per entry of `wanted`, in its order.
  Status run(const RunOptions& options, const std::vector<NamedValue>& inputs,
             const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs);

  // Plans runs with these input shapes beforehand. What a run would refuse is kInvalidArgument.
  Status prepare(const std::vector<std::pair<std::string, Shape>>& shapes);

  // Waits until all weights are packed, and packs in this thread what others have not begun. False
  // at the timeout (< 0: none) or when the session is closed meanwhile.
  bool wait_packed(std::chrono::milliseconds timeout);

  enum class Close { kWait, kCancel };
  void close(Close how);
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

  const ModelFile& model() const { return *model_; }
  const Ref<ModelFile>& model_ref() const { return model_; }
  const Program& program() const { return *program_; }
  const SessionOptions& options() const { return options_; }
  int thread_count() const { return threads_->thread_count(); }  // of a run, the caller's included
  const Metrics& metrics() const { return metrics_; }
  Profile* profile() const { return profile_.get(); }  // null: there is none
  // What reads pages ahead, until it is done; null when nothing does. For tests and measurements.
  Residency* residency() const { return residency_.get(); }
  // What fills page tables beside the first run. For tests.
  Residency* populating() const { return populating_.get(); }

 private:
  Status compile();
  Status wait_packed_at_load();
  Status save_optimized();
  Status pack_saved() const;
  Result<Ref<Program>> make_program();
  Result<Ref<PackLibrary>> open_library() const;
  WinogradChoice winograd() const;
  bool rounds_weights() const;
  std::string program_key() const;
  Status bind_inputs(const std::vector<NamedValue>& inputs, RunRequest* request) const;
  Status bind_outputs(const std::vector<WantedOutput>& wanted, RunRequest* request,
                      std::vector<size_t>* order) const;
  Status begin_run();
  void end_run();
  Status execute(const RunOptions& options, const std::vector<NamedValue>& inputs,
                 const std::vector<WantedOutput>& wanted, std::vector<Value>* outputs);

  Ref<ModelFile> model_;
  SessionOptions options_;
  LoadProgress progress_{options_.progress, "parse", "loading was cancelled"};
  Ref<Program> program_;
  std::string key_;
  std::unique_ptr<Parallel> threads_;
  const FolioKernels* kernels_ = nullptr;  // of runs
  bool made_program_ = false;              // not found among those of other sessions
  std::unique_ptr<Residency> residency_;
  std::vector<ResidencyTask> at_first_run_;  // with mutex_ once the session is made
  std::unique_ptr<Residency> populating_;
  Metrics metrics_;
  std::unique_ptr<Profile> profile_;

  std::atomic<bool> closed_{false};
  std::atomic<bool> cancel_runs_{false};
  std::mutex mutex_;
  std::condition_variable idle_;
  int running_ = 0;
};

}  // namespace folio
