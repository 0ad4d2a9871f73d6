// WeightPacker: gives a program its constants: packed blobs, and tensors as operators read them.
//
//   in-process cache  ->  sidecar  ->  stores  ->  make it now
//
// Flow:    program_builder asks; PackedCache holds what the process has, PackLibrary what files
//          have. A constant that somebody has is neither computed nor read.
// Threads: one load.
// Errors:  what computing or packing gives (kOutOfMemory, a node's own complaint).
#pragma once

#include "core/ops/op_evaluate.h"
#include "core/plan/weight_ids.h"
#include "core/prepack/packed_cache.h"

namespace folio {

class WeightPacker {
 public:
  // `library` may be null; all outlive the packer.
  WeightPacker(const Evaluator& evaluator, PackedCache& cache, PackLibrary* library,
               std::string arithmetic)
      : evaluator_(evaluator),
        cache_(cache),
        library_(library),
        ids_(library, std::move(arithmetic)) {}

  // Call it once, with the whole graph, before anything else. `older`: of the model that this one
  // replaces; null: none. It outlives the packer.
  void begin(const Graph& graph, const WeightPlaces* older = nullptr) {
    ids_.set_older(older);
    ids_.name_recipes(graph);
  }

  // A constant in a kernel's layout. Pages of a mapped source leave this process afterwards.
  Result<Ref<const PackedBlob>> packed(Initializer* constant, const PackRequest& request);

  // Gives `constant` its bytes, whatever place they come from. `aligned`: for its element type.
  Result<Tensor> tensor(Initializer* constant, bool aligned);
  // The blobs behind those tensors; who keeps the tensors keeps these too.
  std::vector<Ref<const PackedBlob>> take_raw_blobs() { return std::move(raw_blobs_); }

 private:
  using Maker = PackedCache::Maker;

  // What the library has under `key` of the constant's content, else what it can be made to write,
  // else what `pack` makes in memory.
  Result<Ref<const PackedBlob>> from_library(const Initializer& constant, const PackKey& key,
                                             const PackWriter::Label& label, uint64_t bytes,
                                             const PackWriter::Fill& fill, const Maker& pack);
  // What the process has under the name that the older model of a reload gives it, if the bytes are
  // equal; else null.
  using KeyOf = std::function<PackKey(const ContentId& id)>;
  Result<Ref<const PackedBlob>> of_twin(const Initializer& constant, const KeyOf& key_of);
  // For the record of the cache, if it has one.
  void note(const Initializer& constant, const PackKey& place, PackWriter::Label label,
            const KeyOf& key_of, const Ref<const PackedBlob>& blob);
  Result<Ref<const PackedBlob>> raw(Initializer* constant);
  Status compute(Initializer* constant);

  const Evaluator& evaluator_;
  PackedCache& cache_;
  PackLibrary* library_;
  WeightIds ids_;
  std::vector<Ref<const PackedBlob>> raw_blobs_;
};

}  // namespace folio
