// Program: the immutable executable form of a graph.
//
// Flow:    build_program (program_builder.h) makes it once per model and options; run/ walks it.
// Owns:    kernels with their parsed attributes, constants by count (their bytes are mappings or
//          heap), packed weights, and the programs of subgraphs.
// Threads: immutable but for weights that are still being packed (prepack/weight_slots.h); the
//          shape plans have a lock of their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/graph.h"
#include "core/ops/op.h"
#include "core/plan/shape_plan.h"
#include "core/prepack/weight_slots.h"

namespace folio {

// Where a step finds a value: a slot of the frame, or a constant, or nothing.
class Operand {
 public:
  static Operand none() { return Operand(INT32_MIN); }
  static Operand slot(int32_t index) { return Operand(index); }
  static Operand constant(int32_t index) { return Operand(-1 - index); }

  bool is_none() const { return code_ == INT32_MIN; }
  bool is_slot() const { return code_ >= 0; }
  bool is_constant() const { return code_ < 0 && !is_none(); }
  size_t index() const { return static_cast<size_t>(is_slot() ? code_ : -1 - code_); }

 private:
  explicit Operand(int32_t code) : code_(code) {}
  int32_t code_;
};

class Program;

// The program of a subgraph, and what it reads of the enclosing frame.
struct Subprogram {
  Ref<Program> program;
  // Values of the enclosing frame that become slots of the inner one.
  struct Capture {
    Operand outer;
    int32_t inner_slot;
  };
  std::vector<Capture> captures;
};

struct Step {
  std::string name;  // the node's, and its type
  std::string op_type;
  std::unique_ptr<OpKernel> kernel;
  std::vector<Operand> inputs;
  std::vector<int32_t> outputs;  // slots; kNone = not wanted
  std::vector<uint8_t> wanted;
  bool is_view = false;             // OpDef::view_of: output 0 shares an input's bytes
  std::vector<int32_t> frees;       // slots that nothing reads after this step
  std::vector<WeightSlot*> packed;  // by input, null where none; empty: no input is packed
  uint32_t picked_inputs = 0;       // OpDef::picked_inputs
  std::vector<Subprogram> subprograms;
  std::unique_ptr<const Attributes> attributes;  // ProgramOptions::keeps_attributes; else null
};

// A model input or output as users see it.
struct PortInfo {
  std::string name;
  TypeInfo type;
  int32_t slot = kNone;
  Operand source = Operand::none();  // outputs: where the value is at the end
  int32_t in_place_of = kNone;       // outputs: the input in whose memory it may be written
  bool has_default = false;          // overridable initializer
  bool is_read = false;              // inputs: some step or output reads it
  Value default_value;
};

class Program : public RefCounted {
 public:
  ~Program() override {
    if (weights) weights->abandon();
  }

  std::vector<Step> steps;
  std::vector<Value> constants;
  int32_t slot_count = 0;
  std::vector<PortInfo> inputs;  // graph inputs, then overridable initializers
  std::vector<PortInfo> outputs;
  bool uses_winograd = false;  // some step does, of subprograms too
  Ref<WeightSlots> weights;    // of the steps, also of subprograms', which have none of their own
  std::vector<Ref<const PackedBlob>> blobs;  // in which constants lie
  std::vector<Ref<Initializer>> keepers;
  // What is packed now, of the steps and of constants; empty in subprograms.
  std::vector<Ref<const PackedBlob>> packed_now() const {
    std::vector<Ref<const PackedBlob>> all;
    if (weights) all = weights->blobs();
    all.insert(all.end(), blobs.begin(), blobs.end());
    return all;
  }
  ShapePlanner shapes;  // empty in subprograms: their values live on the heap

  // Names of symbolic dims by expression index, for reports.
  DimTable dims;
};

}  // namespace folio
