// build_program: picks kernels, asks prepack/ for blobs, assigns slots and lifetimes.
//
// Flow:    after run_passes; the Model is only read (recipes that a step reads are computed).
// Errors:  what an operator's `make` says (attributes), kOutOfMemory; what computing a constant
//          gives. Pack files never fail it but the one that the caller asked to write.
// Threads: one thread while loading; the PackedCache may be shared with others.
#pragma once

#include <functional>

#include "core/ops/op_evaluate.h"
#include "core/plan/program.h"
#include "core/plan/weight_packer.h"
#include "core/plan/weight_places.h"

namespace folio {

struct ProgramOptions {
  bool prepack = true;
  PackedCache* cache = nullptr;  // where constants are found and kept; null: the process's own
  Ref<PackLibrary> library;      // pack files to look in and to write; null: none
  bool checks_blobs = false;     // those that the model has packed, against their checksums
  const WeightPlaces* older = nullptr;  // of the model that this one replaces; null: none
  std::string arithmetic;               // which kernels compute constants, for their names
  bool keeps_attributes = false;        // of the nodes in the steps, for profiles
  // kLater: weights of files are left to the program's WeightSlots, which the caller starts.
  WeightPacker::When when = WeightPacker::When::kNow;
  // Called between nodes with how many of the graph's are done; an error ends the build with it.
  std::function<Status(size_t done, size_t total)> progress;
};

Result<Ref<Program>> build_program(Model* model, const Evaluator& evaluator,
                                   const ProgramOptions& options);

}  // namespace folio
