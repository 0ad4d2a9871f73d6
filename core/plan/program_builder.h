// build_program: picks kernels, asks prepack/ for blobs, assigns slots and lifetimes.
//
// Flow:    after run_passes; the Model is only read (recipes that a step reads are computed).
// Errors:  what an operator's `make` says (attributes), kOutOfMemory.
// Threads: one thread while loading; the PackedCache may be shared with others.
#pragma once

#include "core/ops/op_evaluate.h"
#include "core/plan/program.h"
#include "core/prepack/packed_cache.h"

namespace folio {

struct ProgramOptions {
  bool prepack = true;
  PackedCache* cache = nullptr;  // where blobs are found and kept; required when prepack is on
};

Result<Ref<Program>> build_program(Model* model, const Evaluator& evaluator,
                                   const ProgramOptions& options);

}  // namespace folio
