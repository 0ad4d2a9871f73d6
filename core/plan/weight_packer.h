// WeightPacker: gives a program its constants: packed blobs, and tensors as operators read them.
//
//   the model itself  ->  in-process cache  ->  sidecar  ->  stores  ->  make it: now, or after the
//   load
//
// Flow:    program_builder asks; PackedCache holds what the process has, PackLibrary what files
//          have (prepack/wanted_blob.h). A constant that somebody has is neither computed nor read.
//          Weights that stand in files can be packed later (prepack/weight_slots.h); constants that
//          must be computed first are computed and packed now.
// Threads: one load.
// Errors:  what computing or packing gives (kOutOfMemory, a node's own complaint).
#pragma once

#include "core/ops/op_evaluate.h"
#include "core/plan/weight_ids.h"
#include "core/prepack/wanted_blob.h"
#include "core/prepack/weight_slots.h"

namespace folio {

class WeightPacker {
 public:
  enum class When : uint8_t { kNow, kLater };

  // `library` may be null; evaluator and cache outlive the packer, and the cache its slots too.
  WeightPacker(const Evaluator& evaluator, PackedCache& cache, const Ref<PackLibrary>& library,
               std::string arithmetic, When when)
      : evaluator_(evaluator),
        cache_(cache),
        library_(library.get()),
        when_(when),
        ids_(library.get(), std::move(arithmetic)),
        slots_(make_ref<WeightSlots>(cache, library)) {}

  // Call it once, with the whole graph, before anything else. `older`: of the model that this one
  // replaces; null: none. It outlives the packer.
  void begin(const Graph& graph, const WeightPlaces* older = nullptr) {
    ids_.set_older(older);
    ids_.name_recipes(graph);
  }

  // Where a step finds a constant in a kernel's layout: filled, or to be filled after the load.
  // `takes_unaligned`: the operator reads the constant as it stands in the file until then.
  Result<WeightSlot*> slot(const Ref<Initializer>& constant, const PackRequest& request,
                           bool takes_unaligned);
  const Ref<WeightSlots>& slots() const { return slots_; }

  // Blobs that the model itself has are compared with their checksums.
  void check_blobs() { checks_blobs_ = true; }

  // Gives `constant` its bytes, whatever place they come from. `aligned`: for its element type.
  Result<Tensor> tensor(Initializer* constant, bool aligned);
  // The blobs behind those tensors; who keeps the tensors keeps these too.
  std::vector<Ref<const PackedBlob>> take_raw_blobs() { return std::move(raw_blobs_); }

 private:
  using KeyOf = std::function<PackKey(const ContentId& id)>;
  // What it takes to find or make a constant in some layout.
  struct Asked {
    KeyOf key_of;
    WantedBlob blob;
  };

  // The model has the constant in just this layout (ops/op_unpack.h); else null.
  Result<Ref<const PackedBlob>> packed_in_model(const Initializer& constant,
                                                const PackRequest& request);
  bool can_wait(const Initializer& constant, bool takes_unaligned) const;
  Asked asked(Initializer* constant, KeyOf key_of);
  Asked asked(Initializer* constant, const PackRequest& request);
  // What is in the process or in a pack file, if that can be told without reading the constant,
  // which can wait; else null. `was_looked_for`: pack files have it not.
  Result<Ref<const PackedBlob>> there(const Initializer& constant, const PackRequest& request,
                                      const PackKey& place, bool* was_looked_for);
  static WantedBlob later(const Ref<Initializer>& constant, const PackRequest& request,
                          const PackKey& place);
  // What the process has under the name that the older model of a reload gives it, if the bytes are
  // equal; else null.
  Result<Ref<const PackedBlob>> of_twin(const Initializer& constant, const Asked& asked);
  Result<Ref<const PackedBlob>> now(const Initializer& constant, const Asked& asked);
  // For the record of the cache, if it has one.
  void note(const Initializer& constant, const Asked& asked, const Ref<const PackedBlob>& blob);
  Result<Ref<const PackedBlob>> raw(Initializer* constant);
  Status compute(Initializer* constant);

  const Evaluator& evaluator_;
  PackedCache& cache_;
  PackLibrary* library_;
  When when_;
  bool checks_blobs_ = false;
  WeightIds ids_;
  Ref<WeightSlots> slots_;
  std::vector<Ref<const PackedBlob>> raw_blobs_;
};

}  // namespace folio
