// Shape plans: sizes and arena offsets of a program's values for one signature of input shapes.
//
// Flow:    build_program records each slot's symbolic dims and lifetime; for each new signature a
//          run evaluates all expressions in one pass and packs lifetimes into an arena.
// Owns:    a small LRU of plans, shared by all runs. A plan holds numbers only.
// Threads: ShapePlanner::plan_for from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "core/model/dim_table.h"

namespace folio {

inline constexpr size_t kNoOffset = SIZE_MAX;

struct ShapePlan {
  std::vector<int64_t> signature;  // values of the base symbols, in input order
  std::vector<size_t> offsets;     // by slot; kNoOffset: the step allocates from the heap
  std::vector<size_t> bytes;       // by slot: room at that offset
  size_t arena_bytes = 0;
};

// One slot that may live in the arena.
struct PlannedSlot {
  int32_t slot = -1;
  DType dtype = DType::kUndefined;
  Dims dims;
  int32_t first_step = 0;   // written
  int32_t last_step = 0;    // last read, through all its views
  int32_t overwrites = -1;  // the slot, planned before this one, in whose last step it is written,
                            // and whose place it may take
};

// Packs intervals [first, last] of `bytes` each so that none that overlap in time overlap in
// space, but for slots that overwrite one of equal size; gives offsets and the total. A pure
// function.
size_t pack_lifetimes(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes,
                      std::vector<size_t>* offsets);

// What lives at once at most, as pack_lifetimes rounds sizes: no arena can be smaller.
size_t live_bytes_max(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes);

struct ArenaSizes {
  size_t arena_bytes = 0;
  size_t live_bytes_max = 0;
};

class ShapePlanner {
 public:
  // `symbols`: which expressions the dims of inputs are, in the order of a signature.
  void reset(const DimTable* dims, std::vector<PlannedSlot> slots, std::vector<int32_t> symbols,
             int32_t slot_count);

  // A signature of no known dim, and where in it the dim of an input stands; -1: nowhere.
  std::vector<int64_t> unknown_signature() const {
    return std::vector<int64_t>(symbols_.size(), -1);
  }
  int32_t place_of(Dim dim) const {
    const auto at = static_cast<size_t>(dim.symbol);
    return dim.is_symbol() && at < places_.size() ? places_[at] : -1;
  }
  std::shared_ptr<const ShapePlan> plan_for(const std::vector<int64_t>& signature);
  // Of the plan that was asked for last; zeros before the first.
  ArenaSizes arena_sizes() const;

 private:
  std::shared_ptr<const ShapePlan> make(const std::vector<int64_t>& signature) const;

  const DimTable* dims_ = nullptr;
  std::vector<PlannedSlot> slots_;
  std::vector<int32_t> symbols_;
  std::vector<int32_t> places_;  // in symbols_, by symbol
  int32_t slot_count_ = 0;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const ShapePlan>> recent_;  // most recent first
};

}  // namespace folio
