// ModelFile: a model's bytes (a shared mapping, or memory) and what can be said without a session.
//
// Flow:    the first step of the spine; sessions are made from it.
// Owns:    the ByteSource, the watch over its files; programs that its sessions share (one per set
// of options). Threads: any method from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/passes/passes.h"
#include "core/plan/program.h"
#include "core/plan/weight_places.h"
#include "core/save/save_model.h"
#include "core/session/file_watch.h"
#include "core/session/open_models.h"
#include "core/session/options.h"

namespace folio {

// Replaces initializers of the model by the user's, by name.
Status replace_initializers(Model* model, const std::vector<std::pair<std::string, Tensor>>& given);

// A model's file as `options` want its bytes: mapped, or read.
Result<Ref<ByteSource>> open_model_file(const std::string& path, const ModelOptions& options);

struct ModelInfo : ModelHeader {
  std::string path;
  std::string graph_name;
  std::vector<PortInfo> inputs;
  std::vector<PortInfo> outputs;
  std::vector<PortInfo> overridable;
  DimTable dims;
  std::vector<std::string> unsupported;  // one line per operator
  std::vector<UnsupportedNode> unsupported_nodes;
  uint64_t file_bytes = 0;
  uint64_t initializer_bytes = 0;
  int64_t initializer_count = 0;
  int64_t node_count = 0;
  std::vector<std::pair<std::string, int64_t>> operators;  // name, count; subgraphs included
};

class ModelFile : public RefCounted {
 public:
  ~ModelFile() override;
  // One that is open already is shared, if all its files are as they were.
  static Result<Ref<ModelFile>> open(const std::string& path, const ModelOptions& options);
  // `source` is copied or borrowed bytes (core/os/memory_source.h).
  static Result<Ref<ModelFile>> open(Ref<ByteSource> source, const ModelOptions& options);

  // What stands at the path now, opened with this one's options: itself if nothing changed. Weights
  // that did not change are found by their bytes as long as this one is open. kInvalidArgument for
  // a model from memory.
  Result<Ref<ModelFile>> reopen(const Progress& progress) const;

  const ModelInfo& info() const { return info_; }
  const Ref<ByteSource>& source() const { return source_; }
  FileWatch& watch() const { return *watch_; }
  // What the file says of its weights' contents; null: nothing.
  const std::shared_ptr<const DeclaredDigests>& declared() const { return declared_; }
  // Name of the file that holds this model's weights in kernels' layouts and nothing else does
  // (prepack/pack_binding.h); empty: they stand in the model, as they are.
  const std::string& pack_file() const { return pack_file_; }
  // Those of the model that this one replaces; null: it replaces none.
  const WeightPlaces* older_weights() const { return older_weights_.get(); }

  // A fresh, verified Model. The one that `open` made is handed out first.
  Result<std::unique_ptr<Model>> take_model(const FreeDims& free_dims);

  // Writes the model as `level` leaves it (kOff, kBasic or kExtended: what other runtimes know
  // too). `initializers` replace the model's own. kInvalidArgument for other levels.
  using Replaced = std::vector<std::pair<std::string, Tensor>>;
  Result<SaveResult> save(const ModelSaving& saving, Optimize level, const FreeDims& free_dims,
                          const Replaced& initializers, Parallel& threads,
                          const Progress& progress);

  // The program made under `key`, or what `make` gives; made once however many ask. `make` runs
  // without a lock held: it reports progress to the user.
  Result<Ref<Program>> program(const std::string& key,
                               const std::function<Result<Ref<Program>>()>& make);
  // Called by a session that ends: drops a program that nobody else uses.
  void release_program(const std::string& key, Ref<Program> program);

 private:
  // `older`: of the model that this one replaces, if it is another.
  static Result<Ref<ModelFile>> open(const std::string& path, const ModelOptions& options,
                                     const Ref<WeightPlaces>& older);
  Status load(const Progress& progress);
  void take_declared(std::vector<std::pair<std::string, std::string>>* metadata);
  Status take_binding(std::vector<std::pair<std::string, std::string>>* metadata);
  Status check_external(const ModelSaving& saving) const;
  Result<SaveResult> write(const ModelSaving& saving, Optimize level, const FreeDims& free_dims,
                           const Replaced& initializers, Parallel& threads,
                           const Progress& progress);
  Result<std::unique_ptr<Model>> parse_unchanged(const FreeDims& free_dims,
                                                 const Progress& progress);

  Ref<ByteSource> source_;
  Ref<FileWatch> watch_;
  std::optional<OpenModelKey> key_;  // under which others find it
  // External initializers are the caller's values: no model for others.
  std::atomic<bool> took_initializers_{false};
  std::string path_;  // as given; empty: the bytes came from the caller
  ModelOptions options_;
  ModelInfo info_;
  std::shared_ptr<const DeclaredDigests> declared_;
  std::string pack_file_;
  Ref<WeightPlaces> weights_;
  Ref<WeightPlaces> older_weights_;
  std::mutex mutex_;
  std::mutex model_mutex_;
  std::unique_ptr<Model> first_;
  std::map<std::string, Ref<Program>> programs_;
  std::map<std::string, std::thread::id> being_made_;  // and by whom
  std::condition_variable made_;
};

}  // namespace folio
