// OpDef, OpBuild, OpRun: the whole contract between an operator and the rest, on one page.
//
// Flow:    passes/ call `infer`; plan/ calls `make` once per node (attributes are parsed and packs
//          are asked for there); run/ calls OpKernel::run many times, from many threads.
// Owns:    an OpKernel owns its parsed attributes, nothing of a run. An OpRun owns its outputs
//          until the executor takes them.
// Threads: OpKernel is immutable; an OpRun belongs to one thread.
// Errors:  messages say what was found and expected; the caller prefixes the node's label.
//
// An operator (or family) is one file core/ops/<stem>.cc that defines
// `[[gnu::cold]] void register_<stem>(OpRegistry&)`; CMake finds it. It runs once, at the first
// load of a process: cold puts all of them on neighbouring pages. Shared helpers live in
// op_*.h/.cc.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "core/base/parallel.h"
#include "core/base/value.h"
#include "core/kernels/kernels.h"
#include "core/model/graph.h"
#include "core/prepack/pack_request.h"
#include "core/prepack/packed_blob.h"

namespace folio {

// ---------------------------------------------------------------- shape inference

// What an operator's `infer` sees. Inference is an aid to planning: a value whose shape is left
// unknown is allocated when the operator runs. It must never claim a wrong shape, and it must
// report what can only be an error (kInvalidGraph), because that error names the node at load.
class OpInfer {
 public:
  using SubgraphInfer = Result<std::vector<TypeInfo>> (*)(void* state, Graph& subgraph,
                                                          const std::vector<TypeInfo>& inputs);

  OpInfer(Graph& graph, Node& node, DimTable& dims, SubgraphInfer subgraph_infer, void* state)
      : graph_(graph), node_(node), dims_(dims), infer_subgraph_(subgraph_infer), state_(state) {}

  const Node& node() const { return node_; }
  int version() const { return node_.version; }
  const Attributes& attrs() const { return node_.attributes; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const;
  bool has_output(int i) const;
  const TypeInfo& input(int i) const;  // kUnknown type when absent
  DType dtype(int i) const { return input(i).dtype; }
  // The dims when input i is a tensor of known rank, else null.
  const Dims* dims_of(int i) const;

  // The bytes of a constant input when they are at hand (small ones always are), else null.
  const Tensor* constant(int i) const;
  // Integer contents of a rank 0 or 1 tensor as far as known (constants included).
  std::optional<std::vector<Dim>> data(int i) const;
  // The same when all of it is plain numbers (negative ones too, which only constants hold).
  std::optional<std::vector<int64_t>> ints(int i) const;

  void set_output(int i, TypeInfo type);
  void set_tensor(int i, DType dtype, std::optional<Dims> dims = std::nullopt);
  void set_data(int i, std::vector<Dim> data);

  DimTable& table() { return dims_; }

  // Control flow: infers the k-th subgraph with these input types and gives its output types.
  Result<std::vector<TypeInfo>> infer_subgraph(int k, const std::vector<TypeInfo>& inputs);

 private:
  Graph& graph_;
  Node& node_;
  DimTable& dims_;
  SubgraphInfer infer_subgraph_;
  void* state_;
};

using InferFn = Status (*)(OpInfer& infer);

// Whether constant input i, weights of this shape, may stay float16 or bfloat16 where the operator
// computes in float: it reads the attribute kHalfWeightsAttribute then (op_half_panels.h).
using TakesHalfFn = bool (*)(const Attributes& attributes, int i, const Shape& shape);

// ---------------------------------------------------------------- building a kernel

class OpBuild {
 public:
  OpBuild(const Graph& graph, const Node& node, const FolioKernels& kernels, bool prepack)
      : graph_(graph), node_(node), kernels_(kernels), prepack_(prepack) {}

  const Node& node() const { return node_; }
  int version() const { return node_.version; }
  const Attributes& attrs() const { return node_.attributes; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const;
  bool has_output(int i) const;
  const TypeInfo& input(int i) const;
  const FolioKernels& kernels() const { return kernels_; }

  // The constant behind input i (bytes or recipe), or null when it is no constant.
  const Initializer* initializer(int i) const;
  // Its bytes when they are at hand, else null.
  const Tensor* constant(int i) const;
  // Contents of a constant rank 0 or 1 tensor of int64 or int32 whose bytes are at hand.
  std::optional<std::vector<int64_t>> ints(int i) const;

  // Asks for input i, a constant, to be packed; OpRun::packed(i) gives the blob in every run, or
  // null when packing is off or the blob is not there: an operator must be able to compute from
  // the input itself. Ignored when prepacking is disabled.
  void request_pack(int i, PackRequest request);
  const std::vector<std::pair<int, PackRequest>>& pack_requests() const { return requests_; }

  // Output 0 may stand in the memory of input i, where that has as many bytes and is read by
  // nothing else any more: the operator reads no byte of it after one is written there.
  void may_overwrite(int i) { overwritten_ = i; }
  int overwritten() const { return overwritten_; }  // -1: none

  // Output 0 is the value of input i, of which the operator writes a part: nothing else reads that
  // before this step. (What OpDef::view_of is for all nodes of an operator, but for the writing.)
  void writes_into(int i) { written_ = i; }
  int written() const { return written_; }  // -1: none

 private:
  const Graph& graph_;
  const Node& node_;
  const FolioKernels& kernels_;
  bool prepack_;
  std::vector<std::pair<int, PackRequest>> requests_;
  int overwritten_ = -1;
  int written_ = -1;
};

// ---------------------------------------------------------------- running

class OpRun;

class OpKernel {
 public:
  virtual ~OpKernel() = default;
  virtual Status run(OpRun& run) const = 0;
};

// What a run offers an operator; implemented by run/ (arena, pool, subgraph programs) and by
// op_evaluate.cc (constants while loading).
class OpHost {
 public:
  virtual ~OpHost() = default;
  // Memory for output i of the running step; uninitialised (strings: empty).
  virtual Result<Tensor> allocate_output(int i, DType dtype, const Shape& shape) = 0;
  // 64-byte aligned, uninitialised.
  virtual Result<Ref<Buffer>> allocate_scratch(size_t bytes) { return allocate_buffer(bytes); }
  // Runs the k-th subgraph of the running node. `outputs` are owned by their values (they may
  // outlive the subgraph's run).
  virtual Status run_subgraph(int k, Span<const Value> inputs, std::vector<Value>* outputs) = 0;
  // kCancelled when the run was cancelled or timed out: loops ask between iterations.
  virtual Status check_cancelled() = 0;
};

class OpRun {
 public:
  OpRun(OpHost& host, const FolioKernels& kernels, Parallel& parallel)
      : host_(host), kernels_(kernels), parallel_(parallel) {}

  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const {
    return i < input_count() && inputs_[static_cast<size_t>(i)] != nullptr &&
           !inputs_[static_cast<size_t>(i)]->is_none();
  }
  bool has_output(int i) const { return i < output_count() && wanted_[static_cast<size_t>(i)]; }

  const Value& value(int i) const { return *inputs_[static_cast<size_t>(i)]; }
  // Input i as a tensor: an error when it is absent or no tensor.
  Result<const Tensor*> tensor(int i) const;
  // The same of a known element type.
  Result<const Tensor*> tensor(int i, DType dtype) const;
  // The same, or null when it is absent.
  Result<const Tensor*> optional_tensor(int i, DType dtype) const;
  // A whole int64 or int32 tensor as numbers (shapes, axes, indices of bounded size).
  Result<std::vector<int64_t>> ints(int i) const;

  // A fresh output of this type; its bytes are the operator's to fill.
  Result<Tensor*> output(int i, DType dtype, const Shape& shape);
  // A ready value, such as a view of an input (Reshape) or a sequence.
  void set_output(int i, Value value) { outputs_[static_cast<size_t>(i)] = std::move(value); }
  // A tensor that may be kept in a sequence or leave the run: itself, or a heap copy.
  Result<Tensor> owned(const Tensor& tensor) const;

  // Scratch for this call only, 64-byte aligned.
  Result<uint8_t*> scratch(size_t bytes);
  // Lets the newest scratch be given again, if `memory` is that; else nothing.
  void give_back(const uint8_t* memory);

  // Blob asked for with OpBuild::request_pack(i, ...), or null.
  const PackedBlob* packed(int i) const {
    return static_cast<size_t>(i) < packed_.size() ? packed_[static_cast<size_t>(i)] : nullptr;
  }

  const FolioKernels& kernels() const { return kernels_; }
  Parallel& parallel() const { return parallel_; }
  OpHost& host() const { return host_; }

  // For hosts: sets up the next call, and takes its results.
  void begin(Span<const Value* const> inputs, Span<const uint8_t> wanted,
             Span<const PackedBlob* const> packed);
  std::vector<Value>& outputs() { return outputs_; }

 private:
  OpHost& host_;
  const FolioKernels& kernels_;
  Parallel& parallel_;
  Span<const Value* const> inputs_;
  Span<const uint8_t> wanted_;
  Span<const PackedBlob* const> packed_;
  std::vector<Value> outputs_;
  void leave_scratch();

  std::vector<Ref<Buffer>> scratch_;  // the first scratch_used_ are of this call
  size_t scratch_used_ = 0;
};

using MakeFn = Result<std::unique_ptr<OpKernel>> (*)(OpBuild& build);

// ---------------------------------------------------------------- definition

inline constexpr int kLatest = 1 << 30;
inline constexpr int kVariadic = 1 << 30;

// Whether bit `input` of a mask of inputs is set. Those from 32 on have none.
constexpr bool has_bit(uint32_t inputs, size_t input) {
  return input < 32 && (inputs >> input & 1) != 0;
}

// One operator over a range of opset versions of its domain that mean the same to its code.
struct OpDef {
  std::string_view domain;  // "" = ai.onnx
  std::string_view type;
  int since = 1;
  int until = kLatest;  // inclusive
  int min_inputs = 1;
  int max_inputs = 1;
  int min_outputs = 1;
  int max_outputs = 1;
  InferFn infer = nullptr;  // null: outputs stay unknown
  MakeFn make = nullptr;

  // Bit i set: input i may be absent although later ones are required. (From min_inputs on all
  // may.)
  uint32_t optional_inputs = 0;
  // Bit i set: these inputs have one type (the specification's T, or its like), whatever it is.
  uint32_t one_type = 0;
  // Bit i set: input i is of float, and the specification has no other type for it: no 16 bits that
  // could be widened.
  uint32_t float_inputs = 0;
  // Bit i set: input i may be unaligned bytes of a mapping (design section 3).
  uint32_t unaligned_inputs = 0;
  // Bit i set: of input i only those rows are read that other inputs choose: a table that is not
  // worth reading ahead.
  uint32_t picked_inputs = 0;
  // Output 0 is a view of this input (Reshape, Identity ...): their bytes live equally long.
  int view_of = -1;
  // False: outputs are values that are there already, or that subgraphs make. Else an arena has
  // places for them.
  bool places_outputs = true;
  // Output i may be written into the memory of input in_place[i] (caches): the operator reads no
  // byte of it after one is written there.
  std::array<int8_t, 3> in_place = {-1, -1, -1};
  // False for what must run each time (random numbers).
  bool foldable = true;
  // Gives the same bits on every machine: it moves elements, or rounds each result once. Constants
  // that others make are stored with the arithmetic that made them.
  bool is_exact = false;
  // Each element of each output comes from those at its own place in the inputs (broadcast).
  bool elementwise = false;
  // Computes float16 as float16: it only moves elements, or ONNX Runtime's CPU has such a kernel
  // too. All others are widened to float32 (passes/widen_half.cc).
  bool keeps_half = false;
  TakesHalfFn takes_half = nullptr;  // null: no input does
};

}  // namespace folio
