// Runs one operator on constants: constant folding and recipes.
//
// Flow:    passes/ fold small values with it while loading; plan/ computes recipes that a step
// reads. Owns:    results are heap tensors, or views of their inputs' bytes; nothing is cached but
// in the
//          Initializer itself, whose recipe is dropped once its bytes are there.
// Threads: one thread (loading). The real kernels compute, never a second implementation.
#pragma once

#include <functional>
#include <limits>

#include "core/ops/op.h"

namespace folio {

// Everything that computing constants needs.
struct Evaluator {
  const FolioKernels& kernels;
  Parallel& parallel;
  // Asked before each operator, and by those that take long as in a run: a short file can ask for a
  // lot of computing. An error ends it. May be empty.
  std::function<Status()> check_cancelled = nullptr;
};

// The bytes of a constant, computing its recipe (and those it needs) when there are none yet.
Status evaluate(const Evaluator& evaluator, Initializer* initializer);

// Runs the operator of `recipe` on constants whose bytes are there; gives all its outputs. kFail
// when they would have more than `most_bytes` together.
Result<std::vector<Value>> evaluate_outputs(
    const Evaluator& evaluator, const Recipe& recipe,
    uint64_t most_bytes = std::numeric_limits<uint64_t>::max());

// Of a tensor's elements, with the objects of strings but not their text; the largest number where
// there is none.
uint64_t element_bytes(DType dtype, const Shape& shape);

// A small constant copied to private aligned memory; large or already aligned ones unchanged.
bool is_aligned_for(const Tensor& tensor);

}  // namespace folio
