#include "core/plan/program_builder.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "core/ops/op_registry.h"
#include "core/plan/weight_packer.h"

namespace folio {
namespace {

// A tensor of kind kConstant, whatever holds its bytes: outputs and elements of sequences must not
// share a weight with a caller who may write to them.
Tensor as_constant(const Tensor& tensor) {
  if (!tensor.escapes() || !tensor.raw()) return tensor;
  Ref<Buffer> view =
      view_buffer(Buffer::Kind::kConstant, tensor.raw(), tensor.bytes(), tensor.buffer());
  return Tensor(tensor.dtype(), tensor.shape(), const_cast<uint8_t*>(tensor.raw()),
                std::move(view));
}

// How often each constant is read: by nodes, as outputs, and by recipes of other constants.
class ConstantReads {
 public:
  void count(const Graph& graph) {
    const auto read = [&](ValueId id) {
      const GraphValue* constant = id == kNone ? nullptr : graph.constant_value(id);
      if (constant) count(constant->initializer.get());
    };
    for (const Node& node : graph.nodes) {
      for (const ValueId input : node.inputs) read(input);
      for (const auto& subgraph : node.subgraphs) count(*subgraph);
    }
    for (const ValueId output : graph.outputs) read(output);
  }
  bool is_single(const Initializer* initializer) const {
    const auto found = reads_.find(initializer);
    return found != reads_.end() && found->second == 1;
  }

 private:
  void count(const Initializer* initializer) {
    if (!initializer->recipe) {
      ++reads_[initializer];
      return;
    }
    std::vector<const Initializer*> stack{initializer};
    while (!stack.empty()) {
      const Initializer* top = stack.back();
      stack.pop_back();
      if (++reads_[top] > 1 || !top->recipe) continue;
      for (const Ref<Initializer>& input : top->recipe->inputs) {
        if (input) stack.push_back(input.get());
      }
    }
  }

  std::unordered_map<const Initializer*, int> reads_;
};

class ProgramBuilder {
 public:
  ProgramBuilder(Graph* graph, const Evaluator& evaluator, const ProgramOptions& options,
                 const ConstantReads& reads, WeightPacker& packer, Program* program)
      : graph_(*graph),
        evaluator_(evaluator),
        options_(options),
        reads_(reads),
        packer_(packer),
        program_(*program) {}

  Status build() {
    slots_.assign(graph_.values.size(), kNone);
    program_.steps.reserve(graph_.nodes.size());
    for (const ValueId input : graph_.inputs) FOLIO_RETURN_IF_ERROR(add_input(input));
    for (const ValueId input : graph_.overridable) FOLIO_RETURN_IF_ERROR(add_input(input));
    for (Node& node : graph_.nodes) {
      if (options_.progress && !graph_.parent) {
        const auto done = static_cast<size_t>(&node - graph_.nodes.data());
        FOLIO_RETURN_IF_ERROR(options_.progress(done, graph_.nodes.size()));
      }
      auto status = catching_bad_alloc([&] { return add_step(&node); });
      if (!status.is_ok()) return std::move(status).with_context(node.label());
    }
    FOLIO_RETURN_IF_ERROR(add_outputs());
    find_frees();
    find_in_place();
    program_.slot_count = next_slot_;
    return Status::ok();
  }

  // Slots of values captured from the enclosing graph: outer value -> inner slot.
  std::vector<std::pair<ValueId, int32_t>> captures() const {
    std::vector<std::pair<ValueId, int32_t>> out;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      if (graph_.values[i].outer != kNone && slots_[i] != kNone) {
        out.emplace_back(graph_.values[i].outer, slots_[i]);
      }
    }
    return out;
  }

  std::vector<PlannedSlot> planned_slots() const;

 private:
  int32_t slot_of(ValueId id) {
    int32_t& slot = slots_[static_cast<size_t>(id)];
    if (slot == kNone) slot = next_slot_++;
    return slot;
  }

  Status add_input(ValueId id) {
    const GraphValue& value = graph_.value(id);
    PortInfo port;
    port.name = value.name;
    port.type = value.type;
    port.slot = slot_of(id);
    if (value.initializer) {
      port.has_default = true;
      FOLIO_TRY(const Operand constant,
                constant_operand(value.initializer, /*any_alignment=*/false));
      port.default_value = program_.constants[constant.index()];
    }
    program_.inputs.push_back(std::move(port));
    return Status::ok();
  }

  Status add_outputs() {
    for (const ValueId id : graph_.outputs) {
      const GraphValue& value = graph_.value(id);
      PortInfo port;
      port.name = value.name;
      port.type = value.type;
      FOLIO_TRY(port.source, operand(id, /*any_alignment=*/true));
      program_.outputs.push_back(std::move(port));
    }
    return Status::ok();
  }

  Result<Operand> operand(ValueId id, bool any_alignment) {
    if (id == kNone) return Operand::none();
    const GraphValue* constant = graph_.constant_value(id);
    if (!constant) return Operand::slot(slot_of(id));
    return constant_operand(constant->initializer, any_alignment);
  }

  Result<Operand> constant_operand(const Ref<Initializer>& initializer, bool any_alignment) {
    auto& known = any_alignment ? as_is_ : aligned_;
    if (const auto it = known.find(initializer.get()); it != known.end()) {
      return Operand::constant(it->second);
    }
    FOLIO_TRY(const Tensor tensor, packer_.tensor(initializer.get(), !any_alignment));
    const Operand operand = add_constant(initializer, tensor);
    known[initializer.get()] = static_cast<int32_t>(operand.index());
    return operand;
  }

  Operand add_constant(const Ref<Initializer>& initializer, const Tensor& tensor) {
    const auto index = static_cast<int32_t>(program_.constants.size());
    program_.constants.emplace_back(as_constant(tensor));
    program_.keepers.push_back(initializer);
    return Operand::constant(index);
  }

  // What a step reads of a constant that it has as a blob: its type and shape, perhaps its bytes.
  Result<Operand> packed_operand(ValueId id, bool replaced) {
    const Ref<Initializer>& initializer = graph_.constant_value(id)->initializer;
    if (!replaced || initializer->tensor) return operand(id, /*any_alignment=*/true);
    return add_constant(initializer, Tensor(initializer->dtype, initializer->shape, nullptr, {}));
  }

  // As passes say. Nobody asks for the attribute here: who does takes it for one of the operator's.
  static bool is_winograd(const Node& node) {
    const auto& all = node.attributes.all();
    return std::any_of(all.begin(), all.end(),
                       [](const AttributeDef& each) { return each.name == "winograd"; });
  }

  Status add_step(Node* node) {
    const OpDef* def = op_registry().find(node->domain, node->op_type, node->version);
    OpBuild build(graph_, *node, evaluator_.kernels, options_.prepack);
    FOLIO_TRY(std::unique_ptr<OpKernel> kernel, def->make(build));
    program_.uses_winograd |= is_winograd(*node);
    Step step;
    step.name = node->name;
    step.op_type = node->op_type;
    if (options_.keeps_attributes) {
      step.attributes = std::make_unique<const Attributes>(node->attributes);
    }
    step.kernel = std::move(kernel);
    uint32_t replaced = 0;  // inputs, of the first 32, of which only the blob is read
    FOLIO_RETURN_IF_ERROR(pack_step(build, *node, def->unaligned_inputs, &step, &replaced));
    step.inputs.reserve(node->inputs.size());
    step.outputs.reserve(node->outputs.size());
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const bool packed = i < step.packed.size() && step.packed[i] != nullptr;
      auto found = packed ? packed_operand(node->inputs[i], has_bit(replaced, i))
                          : operand(node->inputs[i], has_bit(def->unaligned_inputs, i));
      if (!found.is_ok()) return std::move(found).take_status();
      step.inputs.push_back(found.value());
    }
    for (const ValueId output : node->outputs) {
      step.wanted.push_back(output != kNone);
      step.outputs.push_back(output == kNone ? kNone : slot_of(output));
    }
    for (auto& subgraph : node->subgraphs) {
      FOLIO_RETURN_IF_ERROR(add_subprogram(subgraph.get(), &step));
    }
    const int view_of = build.written() >= 0 ? build.written() : def->view_of;
    step.is_view = view_of >= 0;
    step.picked_inputs = def->picked_inputs;
    view_of_.push_back(view_of);
    places_outputs_.push_back(def->places_outputs ? 1 : 0);
    in_place_.push_back(def->in_place);
    overwritten_.push_back(build.overwritten());
    program_.steps.push_back(std::move(step));
    return Status::ok();
  }

  Status pack_step(const OpBuild& build, const Node& node, uint32_t unaligned_inputs, Step* step,
                   uint32_t* replaced) {
    for (const auto& [input, request] : build.pack_requests()) {
      const auto index = static_cast<size_t>(input);
      const Ref<Initializer>& weight = graph_.constant_value(node.inputs[index])->initializer;
      FOLIO_TRY(WeightSlot * slot, packer_.slot(weight, request, has_bit(unaligned_inputs, index)));
      step->packed.resize(node.inputs.size(), nullptr);
      step->packed[index] = slot;
      if (!request.replaces_source || index >= 32 || !slot->peek()) continue;
      *replaced |= 1U << index;
      const bool is_ours = weight->tensor && !weight->source && weight->tensor->escapes();
      if (is_ours && reads_.is_single(weight.get())) {
        weight->tensor = Tensor(weight->dtype, weight->shape, nullptr, {});  // bytes freed
      }
    }
    return Status::ok();
  }

  Status add_subprogram(Graph* subgraph, Step* step) {
    Subprogram sub;
    sub.program = make_ref<Program>();
    ProgramBuilder inner(subgraph, evaluator_, options_, reads_, packer_, sub.program.get());
    FOLIO_RETURN_IF_ERROR(inner.build());
    for (const auto& [outer, slot] : inner.captures()) {
      FOLIO_TRY(const Operand found, operand(outer, /*any_alignment=*/false));
      sub.captures.push_back({found, slot});
    }
    if (sub.program->uses_winograd) program_.uses_winograd = true;
    step->subprograms.push_back(std::move(sub));
    return Status::ok();
  }

  // Outputs that a step may write into the memory of an input: no other step reads that input.
  void find_in_place() {
    std::vector<int> reads(static_cast<size_t>(next_slot_), 0);
    const auto read = [&](Operand operand) {
      if (operand.is_slot()) ++reads[operand.index()];
    };
    for (const Step& step : program_.steps) {
      for (const Operand input : step.inputs) read(input);
      for (const Subprogram& sub : step.subprograms) {
        for (const auto& capture : sub.captures) read(capture.outer);
      }
    }
    for (const PortInfo& output : program_.outputs) read(output.source);
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      for (size_t i = 0; i < std::min(step.outputs.size(), in_place_[s].size()); ++i) {
        const int from = in_place_[s][i];
        if (from < 0 || step.outputs[i] == kNone) continue;
        if (static_cast<size_t>(from) >= step.inputs.size()) continue;
        const Operand source = step.inputs[static_cast<size_t>(from)];
        if (!source.is_slot() || reads[source.index()] != 1) continue;
        mark_in_place(static_cast<int32_t>(source.index()), step.outputs[i]);
      }
    }
  }

  void mark_in_place(int32_t from, int32_t to) {
    const auto input = std::find_if(program_.inputs.begin(), program_.inputs.end(),
                                    [&](const PortInfo& port) { return port.slot == from; });
    if (input == program_.inputs.end()) return;
    for (PortInfo& output : program_.outputs) {
      if (!output.source.is_slot() || static_cast<int32_t>(output.source.index()) != to) continue;
      output.in_place_of = static_cast<int32_t>(input - program_.inputs.begin());
      return;  // one output of several with this value: the others are copies
    }
  }

  void find_frees() {
    // The step after which nothing reads a slot; graph outputs are never freed.
    last_read_.assign(static_cast<size_t>(next_slot_), -1);
    first_write_.assign(static_cast<size_t>(next_slot_), -1);
    const auto read = [&](Operand operand, int32_t at) {
      if (operand.is_slot()) last_read_[operand.index()] = at;
    };
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      const Step& step = program_.steps[s];
      const auto at = static_cast<int32_t>(s);
      for (const Operand input : step.inputs) read(input, at);
      for (const Subprogram& sub : step.subprograms) {
        for (const auto& capture : sub.captures) read(capture.outer, at);
      }
      for (const int32_t output : step.outputs) {
        if (output == kNone) continue;
        first_write_[static_cast<size_t>(output)] = at;
        last_read_[static_cast<size_t>(output)] = at;
      }
    }
    for (const PortInfo& output : program_.outputs) {
      read(output.source, static_cast<int32_t>(program_.steps.size()));
    }
    for (PortInfo& input : program_.inputs) {
      input.is_read = last_read_[static_cast<size_t>(input.slot)] >= 0;
    }
    for (size_t slot = 0; slot < last_read_.size(); ++slot) {
      const int32_t at = last_read_[slot];
      if (at >= 0 && at < static_cast<int32_t>(program_.steps.size())) {
        program_.steps[static_cast<size_t>(at)].frees.push_back(static_cast<int32_t>(slot));
      }
    }
  }

  int32_t overwritten_slot(size_t step, const std::vector<int32_t>& root) const;
  void find_overwritten(const std::vector<int32_t>& root, std::vector<PlannedSlot>* planned) const;

  Graph& graph_;
  const Evaluator& evaluator_;
  const ProgramOptions& options_;
  const ConstantReads& reads_;
  WeightPacker& packer_;
  Program& program_;
  int32_t next_slot_ = 0;
  std::vector<int32_t> slots_;                   // by value id
  std::vector<int> view_of_;                     // by step
  std::vector<uint8_t> places_outputs_;          // by step: OpDef::places_outputs
  std::vector<std::array<int8_t, 3>> in_place_;  // by step: OpDef::in_place
  std::vector<int> overwritten_;                 // by step: OpBuild::overwritten()
  std::vector<int32_t> last_read_;
  std::vector<int32_t> first_write_;
  std::unordered_map<const Initializer*, int32_t> as_is_;
  std::unordered_map<const Initializer*, int32_t> aligned_;
};

// The slot whose bytes a step may write its first output over; kNone: none, or it reads them
// through another input too. `root`: of whose bytes a slot is a view.
int32_t ProgramBuilder::overwritten_slot(size_t at, const std::vector<int32_t>& root) const {
  const Step& step = program_.steps[at];
  const int input = overwritten_[at];
  if (input < 0 || static_cast<size_t>(input) >= step.inputs.size()) return kNone;
  const auto root_of = [&](Operand operand) {
    return operand.is_slot() ? root[operand.index()] : kNone;
  };
  const int32_t slot = root_of(step.inputs[static_cast<size_t>(input)]);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (i != static_cast<size_t>(input) && root_of(step.inputs[i]) == slot) return kNone;
  }
  return step.subprograms.empty() ? slot : kNone;
}

// Sorts the slots by time: who overwrites comes after whom it overwrites.
void ProgramBuilder::find_overwritten(const std::vector<int32_t>& root,
                                      std::vector<PlannedSlot>* planned) const {
  std::stable_sort(
      planned->begin(), planned->end(),
      [](const PlannedSlot& a, const PlannedSlot& b) { return a.first_step < b.first_step; });
  std::vector<int32_t> index(static_cast<size_t>(next_slot_), kNone);  // in `planned`, by slot
  for (size_t i = 0; i < planned->size(); ++i) {
    PlannedSlot& slot = (*planned)[i];
    index[static_cast<size_t>(slot.slot)] = static_cast<int32_t>(i);
    const auto at = static_cast<size_t>(slot.first_step);
    if (slot.slot != program_.steps[at].outputs[0]) continue;
    const int32_t from = overwritten_slot(at, root);
    const int32_t found = from == kNone ? kNone : index[static_cast<size_t>(from)];
    if (found == kNone || (*planned)[static_cast<size_t>(found)].last_step != slot.first_step) {
      continue;
    }
    slot.overwrites = found;
  }
}

std::vector<PlannedSlot> ProgramBuilder::planned_slots() const {
  // Views live in their source's bytes: lifetimes merge at the root of each chain of views.
  std::vector<int32_t> root(static_cast<size_t>(next_slot_));
  for (int32_t i = 0; i < next_slot_; ++i) root[static_cast<size_t>(i)] = i;
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (view_of_[s] < 0 || step.outputs[0] == kNone) continue;
    const Operand source = step.inputs[static_cast<size_t>(view_of_[s])];
    if (source.is_slot()) {
      root[static_cast<size_t>(step.outputs[0])] = root[source.index()];
    } else {
      root[static_cast<size_t>(step.outputs[0])] = kNone;  // a view of a constant
    }
  }
  std::vector<int32_t> last = last_read_;
  for (size_t i = 0; i < root.size(); ++i) {
    if (root[i] == kNone) continue;
    int32_t& group = last[static_cast<size_t>(root[i])];
    group = std::max(group, last[i]);
  }
  const auto end = static_cast<int32_t>(program_.steps.size());
  std::vector<PlannedSlot> out;
  for (size_t v = 0; v < graph_.values.size(); ++v) {
    const int32_t slot = slots_[v];
    const GraphValue& value = graph_.values[v];
    if (slot == kNone || root[static_cast<size_t>(slot)] != slot) continue;
    const int32_t first = first_write_[static_cast<size_t>(slot)];
    // Inputs have no writer; what reaches an output gets memory that outlives the run.
    if (first < 0 || last[static_cast<size_t>(slot)] >= end) continue;
    if (places_outputs_[static_cast<size_t>(first)] == 0) continue;
    if (!value.type.has_rank() || value.type.dtype == DType::kString) continue;
    const Dims& dims = *value.type.dims;
    if (std::any_of(dims.begin(), dims.end(), [](Dim d) { return d.is_unknown(); })) continue;
    out.push_back({slot, value.type.dtype, dims, first, last[static_cast<size_t>(slot)]});
  }
  find_overwritten(root, &out);
  return out;
}

// Lets go of constants that no node reads: those that are only steps of a recipe then end, and
// their bytes with them, as soon as the recipe was computed.
void forget_unread_constants(Graph* graph) {
  const std::vector<int> uses = graph->use_counts();
  for (size_t i = 0; i < graph->values.size(); ++i) {
    GraphValue& value = graph->values[i];
    if (uses[i] == 0 && value.is_constant()) value.initializer = nullptr;
  }
  for (Node& node : graph->nodes) {
    for (const auto& subgraph : node.subgraphs) forget_unread_constants(subgraph.get());
  }
}

// The expressions that the dims of inputs are, each once, in input order.
std::vector<int32_t> input_symbols(const Program& program) {
  std::vector<int32_t> out;
  std::set<int32_t> seen;
  for (const PortInfo& input : program.inputs) {
    if (!input.type.has_rank()) continue;
    for (const Dim dim : *input.type.dims) {
      if (dim.is_symbol() && seen.insert(dim.symbol).second) out.push_back(dim.symbol);
    }
  }
  return out;
}

}  // namespace

Result<Ref<Program>> build_program(Model* model, const Evaluator& evaluator,
                                   const ProgramOptions& options) {
  auto program = make_ref<Program>();
  ConstantReads reads;
  reads.count(model->graph);
  PackedCache& cache = options.cache ? *options.cache : PackedCache::process();
  WeightPacker packer(evaluator, cache, options.library, options.arithmetic, options.when);
  if (options.checks_blobs) packer.check_blobs();
  packer.begin(model->graph, options.older);
  forget_unread_constants(&model->graph);
  program->weights = packer.slots();
  ProgramBuilder builder(&model->graph, evaluator, options, reads, packer, program.get());
  FOLIO_RETURN_IF_ERROR(builder.build());
  for (Ref<const PackedBlob>& blob : packer.take_raw_blobs()) {
    program->blobs.push_back(std::move(blob));
  }
  program->dims = model->dims;
  program->shapes.reset(&program->dims, builder.planned_slots(), input_symbols(*program),
                        program->slot_count);
  return program;
}

}  // namespace folio
