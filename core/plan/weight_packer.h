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

  // Call it once, with the whole graph, before anything else.
  void begin(const Graph& graph) { ids_.name_recipes(graph); }

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
  Result<Ref<const PackedBlob>> from_library(const PackKey& key, const PackWriter::Label& label,
                                             uint64_t bytes, const PackWriter::Fill& fill,
                                             const Maker& pack);
  Result<Ref<const PackedBlob>> raw(Initializer* constant);
  Status compute(Initializer* constant);

  const Evaluator& evaluator_;
  PackedCache& cache_;
  PackLibrary* library_;
  WeightIds ids_;
  std::vector<Ref<const PackedBlob>> raw_blobs_;
};

}  // namespace folio
