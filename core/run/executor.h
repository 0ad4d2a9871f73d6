// run_program: one run of a Program.
//
// Flow:    session/ checks and orders the caller's inputs, then calls this; control flow operators
//          come back through OpHost::run_subgraph.
// Owns:    a frame of values for the length of the run, and an arena leased from the process.
// Threads: any number of runs of one Program at once; each has its own frame.
// Errors:  what a kernel reports, prefixed by the node's label; kCancelled. On error `outputs` is
//          untouched.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <vector>

#include "core/plan/program.h"

namespace folio {

// Ends a run from another thread or at a point in time.
struct RunControl {
  const std::atomic<bool>* cancel = nullptr;   // the caller's token
  const std::atomic<bool>* closing = nullptr;  // the session's
  std::optional<std::chrono::steady_clock::time_point> deadline;

  Status check() const;
};

// Where the caller wants an output: a tensor of its type and shape, or room for any shape; neither:
// the run allocates.
struct OutputMemory {
  Tensor tensor;
  Ref<Buffer> room;

  OutputMemory() = default;
  OutputMemory(Tensor of_result) : tensor(std::move(of_result)) {}  // NOLINT: is one

  bool is_given() const { return room || tensor.dtype() != DType::kUndefined; }
  const uint8_t* data() const { return room ? room->data() : tensor.raw(); }
  size_t bytes() const { return room ? room->bytes() : tensor.bytes(); }
  bool overlaps(const uint8_t* other, size_t other_bytes) const;
  // The very bytes of `input`, as a cache in place has them.
  bool is_at(const Tensor& input) const {
    return data() == input.raw() && bytes() == input.bytes();
  }
  // For a result of this type and shape; none: it does not fit.
  std::optional<Tensor> place(DType dtype, const Shape& shape) const;
};

// Of a value that a step had; kUndefined: there was none, or it is no tensor.
struct SeenTensor {
  DType dtype = DType::kUndefined;
  Shape shape;
};

// When a step ran, and on what, for profiles.
struct StepTime {
  const Step* step;
  size_t index;  // among its program's
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  std::vector<SeenTensor> inputs;
  std::vector<SeenTensor> outputs;
};

struct RunRequest {
  std::vector<Value> inputs;    // by Program::inputs; none = the default value, or left out
  std::vector<uint8_t> wanted;  // by Program::outputs; what no wanted output needs is not run
  // By Program::outputs. May be the memory of the input that the output is in_place_of.
  std::vector<OutputMemory> memory;
  RunControl control;
  Parallel* parallel = nullptr;
  const FolioKernels* kernels = nullptr;
  bool flush_denormals = false;
  std::vector<StepTime>* times = nullptr;  // receives each step that ran; null: nobody asks
};

// `outputs` gets one value per program output (none where not wanted). Tensors own their bytes, or
// are the caller's memory where that was given.
Status run_program(Program& program, const RunRequest& request, std::vector<Value>* outputs);

}  // namespace folio
