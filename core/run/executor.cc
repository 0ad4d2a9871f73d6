#include "core/run/executor.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/ops/op_evaluate.h"
#include "core/os/arena.h"
#include "core/os/run_blocks.h"
#include "core/run/float_control.h"

namespace folio {
namespace {

constexpr std::chrono::steady_clock::time_point kNever;

// One program's values while it runs: the root's, or a subgraph's.
class Frame final : public OpHost {
 public:
  Frame(const Program& program, const RunRequest& request, RunBlocks* blocks)
      : program_(program),
        request_(request),
        blocks_(*blocks),
        values_(static_cast<size_t>(program.slot_count)),
        run_(*this, *request.kernels, *request.parallel) {}

  void set(int32_t slot, Value value) { values_[static_cast<size_t>(slot)] = std::move(value); }
  const Value* find(Operand operand) const {
    if (operand.is_none()) return nullptr;
    return operand.is_slot() ? &values_[operand.index()] : &program_.constants[operand.index()];
  }

  // Root frames only: planned values live at plan offsets of `arena`.
  void use_plan(const ShapePlan* plan, Ref<Buffer> arena) {
    plan_ = plan;
    arena_ = std::move(arena);
  }
  void use_memory(int32_t slot, const OutputMemory& memory) { bound_.emplace_back(slot, &memory); }
  // Ready to be run again. (Where one fails, all of the run does.)
  void clear() { std::fill(values_.begin(), values_.end(), Value()); }

  Status run(const std::vector<uint8_t>* needed);

  Result<Tensor> allocate_output(int i, DType dtype, const Shape& shape) override;
  Result<Ref<Buffer>> allocate_scratch(size_t bytes) override { return blocks_.scratch(bytes); }
  Status run_subgraph(int k, Span<const Value> inputs, std::vector<Value>* outputs) override;
  Status check_cancelled() override { return request_.control.check(); }

 private:
  Status run_step(const Step& step);
  Frame& inner(const Program& program);
  void note_time(size_t index, std::chrono::steady_clock::time_point begin);
  Status keep_outputs(const Step& step);
  bool in_arena(const Tensor& tensor) const {
    return arena_ && tensor.buffer().get() == arena_.get();
  }

  const Program& program_;
  const RunRequest& request_;
  RunBlocks& blocks_;
  std::vector<Value> values_;
  OpRun run_;
  const Step* step_ = nullptr;
  const ShapePlan* plan_ = nullptr;
  Ref<Buffer> arena_;
  std::vector<std::pair<int32_t, const OutputMemory*>> bound_;
  std::vector<const Value*> inputs_;
  std::vector<const PackedBlob*> packed_;
  std::unique_ptr<Frame> inner_;  // of the subgraph that ran last: a loop's body runs in one
};

Status Frame::run(const std::vector<uint8_t>* needed) {
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    if (!needed || (*needed)[s]) {
      FOLIO_RETURN_IF_ERROR(request_.control.check());
      const auto begin = request_.times ? std::chrono::steady_clock::now() : kNever;
      auto status = catching_bad_alloc([&] { return run_step(step); });
      if (request_.times) note_time(s, begin);
      if (!status.is_ok()) {
        if (status.code() == Code::kCancelled) return status;
        return std::move(status).with_context(node_label(step.name, step.op_type));
      }
    }
    for (const int32_t slot : step.frees) values_[static_cast<size_t>(slot)] = Value();
  }
  return Status::ok();
}

Status Frame::run_step(const Step& step) {
  step_ = &step;
  inputs_.clear();
  for (const Operand input : step.inputs) inputs_.push_back(find(input));
  packed_.clear();
  for (WeightSlot* slot : step.packed) packed_.push_back(slot ? slot->get() : nullptr);
  run_.begin(inputs_, step.wanted, packed_);
  FOLIO_RETURN_IF_ERROR(step.kernel->run(run_));
  return keep_outputs(step);
}

// The values are still there: they are freed after that.
void Frame::note_time(size_t index, std::chrono::steady_clock::time_point begin) {
  const Step& step = program_.steps[index];
  StepTime time{&step, index, begin, std::chrono::steady_clock::now(), {}, {}};
  const auto seen = [](const Value* value) {
    if (!value || !value->is_tensor()) return SeenTensor();
    return SeenTensor{value->tensor().dtype(), value->tensor().shape()};
  };
  for (const Operand input : step.inputs) time.inputs.push_back(seen(find(input)));
  for (const int32_t slot : step.outputs) {
    time.outputs.push_back(seen(slot == kNone ? nullptr : &values_[static_cast<size_t>(slot)]));
  }
  request_.times->push_back(std::move(time));
}

Status Frame::keep_outputs(const Step& step) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    if (step.outputs[i] == kNone) continue;
    const auto slot = static_cast<size_t>(step.outputs[i]);
    Value& value = run_.outputs()[i];
    if (value.is_tensor() && in_arena(value.tensor())) {
      // A view into the arena is safe only where the plan knows of it: at the value's own place,
      // or through OpDef::view_of, which merged the lifetimes (then it has no place of its own).
      const bool own_place = plan_->offsets[slot] != kNoOffset &&
                             value.tensor().raw() == arena_->data() + plan_->offsets[slot];
      if (!own_place && !step.is_view) {
        FOLIO_TRY(Tensor copy, blocks_.copy(value.tensor()));
        value = Value(std::move(copy));
      }
    }
    values_[slot] = std::move(value);
  }
  return Status::ok();
}

Result<Tensor> Frame::allocate_output(int i, DType dtype, const Shape& shape) {
  const int32_t slot = step_->outputs[static_cast<size_t>(i)];
  if (slot == kNone || dtype == DType::kString) return blocks_.tensor(dtype, shape);
  for (const auto& [bound_slot, memory] : bound_) {
    if (bound_slot != slot) continue;
    auto place = memory->place(dtype, shape);
    if (place && is_aligned_for(*place)) return *std::move(place);
  }
  if (plan_ && plan_->offsets[static_cast<size_t>(slot)] != kNoOffset) {
    uint64_t count = 0;
    uint64_t bytes = 0;
    const bool sized = checked_count(shape.dims(), &count) && dtype_bytes(dtype, count, &bytes);
    if (sized && bytes <= plan_->bytes[static_cast<size_t>(slot)]) {
      uint8_t* data = arena_->data() + plan_->offsets[static_cast<size_t>(slot)];
      return Tensor(dtype, shape, data, arena_);
    }
  }
  return blocks_.tensor(dtype, shape);
}

Status make_copy(RunBlocks* blocks, Value* value) {
  FOLIO_TRY(Tensor copy, blocks->copy(value->tensor()));
  *value = Value(std::move(copy));
  return Status::ok();
}

// Gives a value that leaves its frame bytes that outlive it.
Status make_owned(RunBlocks* blocks, Value* value) {
  if (!value->is_tensor() || value->tensor().escapes()) return Status::ok();
  return make_copy(blocks, value);
}

bool is_constant(const Value& value) {
  const Buffer* buffer = value.is_tensor() ? value.tensor().buffer().get() : nullptr;
  return buffer && buffer->kind() == Buffer::Kind::kConstant;
}

Frame& Frame::inner(const Program& program) {
  if (!inner_ || &inner_->program_ != &program) {
    inner_ = std::make_unique<Frame>(program, request_, &blocks_);
  }
  return *inner_;
}

Status Frame::run_subgraph(int k, Span<const Value> inputs, std::vector<Value>* outputs) {
  const Subprogram& sub = step_->subprograms[static_cast<size_t>(k)];
  const Program& program = *sub.program;
  if (inputs.size() != program.inputs.size()) {
    return invalid_graph("subgraph has ", program.inputs.size(), " inputs, got ", inputs.size());
  }
  Frame& frame = inner(program);
  for (size_t i = 0; i < inputs.size(); ++i) frame.set(program.inputs[i].slot, inputs[i]);
  for (const Subprogram::Capture& capture : sub.captures) {
    frame.set(capture.inner_slot, *find(capture.outer));
  }
  FOLIO_RETURN_IF_ERROR(frame.run(nullptr));
  outputs->clear();
  for (const PortInfo& port : program.outputs) {
    const Value* value = frame.find(port.source);
    outputs->push_back(value ? *value : Value());
    if (is_constant(outputs->back())) continue;  // it is always there, and nothing writes to it
    FOLIO_RETURN_IF_ERROR(make_owned(&blocks_, &outputs->back()));
  }
  frame.clear();
  return Status::ok();
}

// Which steps the wanted outputs need, walking backwards; null when all are wanted.
std::vector<uint8_t> needed_steps(const Program& program, const std::vector<uint8_t>& wanted) {
  std::vector<uint8_t> slots(static_cast<size_t>(program.slot_count), 0);
  std::vector<uint8_t> steps(program.steps.size(), 0);
  const auto need = [&](Operand operand) {
    if (operand.is_slot()) slots[operand.index()] = 1;
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) need(program.outputs[i].source);
  }
  for (size_t s = program.steps.size(); s-- > 0;) {
    const Step& step = program.steps[s];
    for (const int32_t output : step.outputs) {
      if (output != kNone && slots[static_cast<size_t>(output)]) steps[s] = 1;
    }
    if (!steps[s]) continue;
    for (const Operand input : step.inputs) need(input);
    for (const Subprogram& sub : step.subprograms) {
      for (const auto& capture : sub.captures) need(capture.outer);
    }
  }
  return steps;
}

// The dims of this run's inputs that shape plans depend on, in the planner's order.
std::vector<int64_t> signature_of(const Program& program, const Frame& frame) {
  std::vector<int64_t> signature = program.shapes.unknown_signature();
  for (const PortInfo& input : program.inputs) {
    const Value* value = frame.find(Operand::slot(input.slot));
    if (!input.type.has_rank() || !value->is_tensor()) continue;
    const Dims& dims = *input.type.dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int32_t place = program.shapes.place_of(dims[d]);
      if (place < 0) continue;
      int64_t& known = signature[static_cast<size_t>(place)];
      if (known < 0) known = value->tensor().dim(static_cast<int>(d));
    }
  }
  return signature;
}

// The caller's memory takes the result: nothing to do when the last step wrote it there.
Status deliver(const std::string& name, const OutputMemory& memory, Value* value) {
  if (!value->is_tensor() || (memory.room && value->tensor().is_string())) {
    return invalid_argument("output '", name,
                            "' is no tensor of numbers: it cannot be written to memory");
  }
  const Tensor& result = value->tensor();
  std::optional<Tensor> target = memory.place(result.dtype(), result.shape());
  if (!target && memory.room) {
    return invalid_argument("output '", name, "' ", result.shape().to_string(), " takes ",
                            result.bytes(), " bytes, the memory bound has ", memory.bytes());
  }
  if (!target) {
    return invalid_argument("output '", name, "' is ", dtype_name(result.dtype()), " ",
                            result.shape().to_string(), ", the memory given is ",
                            dtype_name(memory.tensor.dtype()), " ",
                            memory.tensor.shape().to_string());
  }
  if (result.raw() != target->raw()) {
    if (result.is_string()) {
      std::copy_n(result.data<std::string>(), result.count(), target->data_mut<std::string>());
    } else if (result.bytes() > 0) {
      // The memory may be that of the input which the result is a view of.
      std::memmove(target->raw_mut(), result.raw(), result.bytes());
    }
  }
  *value = Value(*std::move(target));
  return Status::ok();
}

// True when an earlier output has the same bytes: one value may be several outputs, or a view.
bool shares_bytes(const std::vector<Value>& outputs, size_t i) {
  if (!outputs[i].is_tensor() || !outputs[i].tensor().buffer()) return false;
  return std::any_of(
      outputs.begin(), outputs.begin() + static_cast<ptrdiff_t>(i), [&](const Value& earlier) {
        return earlier.is_tensor() && earlier.tensor().buffer() == outputs[i].tensor().buffer();
      });
}

Status take_outputs(const Program& program, const RunRequest& request, const Frame& frame,
                    RunBlocks* blocks, std::vector<Value>* outputs) {
  std::vector<Value> out(program.outputs.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!request.wanted[i]) continue;
    const PortInfo& port = program.outputs[i];
    out[i] = *frame.find(port.source);
    const OutputMemory& memory = request.memory[i];
    if (memory.is_given()) {
      FOLIO_RETURN_IF_ERROR(deliver(port.name, memory, &out[i]));
      continue;
    }
    auto status = shares_bytes(out, i) ? make_copy(blocks, &out[i]) : make_owned(blocks, &out[i]);
    if (!status.is_ok()) return std::move(status).with_context(cat("output '", port.name, "'"));
  }
  *outputs = std::move(out);
  return Status::ok();
}

// Whether output `i` must not be written before all steps have run: its memory is that of an input
// which steps still read, and it is not made in place.
bool must_wait(const Program& program, const RunRequest& request, size_t i) {
  const OutputMemory& memory = request.memory[i];
  for (size_t j = 0; j < request.inputs.size(); ++j) {
    if (!request.inputs[j].is_tensor()) continue;
    const Tensor& input = request.inputs[j].tensor();
    const bool is_in_place =
        program.outputs[i].in_place_of == static_cast<int32_t>(j) && memory.is_at(input);
    if (!is_in_place && memory.overlaps(input.raw(), input.bytes())) return true;
  }
  return false;
}

// An input as the frame has it: of kind kBorrowed, so that no output shares bytes with it. The
// caller may fill it anew for the next run while results of this one are still in use.
Value borrowed(const Value& input) {
  if (!input.is_tensor() || !input.tensor().escapes()) return input;
  const Tensor& tensor = input.tensor();
  Ref<Buffer> view =
      view_buffer(Buffer::Kind::kBorrowed, tensor.raw(), tensor.bytes(), tensor.buffer());
  return Value(
      Tensor(tensor.dtype(), tensor.shape(), const_cast<uint8_t*>(tensor.raw()), std::move(view)));
}

}  // namespace

bool OutputMemory::overlaps(const uint8_t* other, size_t other_bytes) const {
  return other_bytes > 0 && bytes() > 0 && std::less<>()(other, data() + bytes()) &&
         std::less<>()(data(), other + other_bytes);
}

std::optional<Tensor> OutputMemory::place(DType dtype, const Shape& shape) const {
  if (!room) {
    if (tensor.dtype() == dtype && tensor.shape() == shape) return tensor;
    return std::nullopt;
  }
  uint64_t count = 0;
  uint64_t bytes = 0;
  const bool fits = dtype != DType::kString && checked_count(shape.dims(), &count) &&
                    dtype_bytes(dtype, count, &bytes) && bytes <= room->bytes();
  if (!fits) return std::nullopt;
  return Tensor(dtype, shape, room->data(), room);
}

Status RunControl::check() const {
  if (cancel && cancel->load(std::memory_order_relaxed)) {
    return error(Code::kCancelled, "the run was cancelled");
  }
  if (closing && closing->load(std::memory_order_relaxed)) {
    return error(Code::kCancelled, "the session is closing");
  }
  if (deadline && std::chrono::steady_clock::now() >= *deadline) {
    return error(Code::kCancelled, "the run timed out");
  }
  return Status::ok();
}

Status run_program(Program& program, const RunRequest& request, std::vector<Value>* outputs) {
  const FloatControl float_control(request.flush_denormals);
  if (!program.weights->is_done()) program.weights->keep_going();
  ArenaLease lease;  // outlives the frame, whose values stand in it
  RunBlocks blocks(BlockPool::process());
  Frame frame(program, request, &blocks);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const PortInfo& port = program.inputs[i];
    const bool given = !request.inputs[i].is_none();
    frame.set(port.slot,
              given || !port.has_default ? borrowed(request.inputs[i]) : port.default_value);
  }
  const auto plan = program.shapes.plan_for(signature_of(program, frame));
  if (plan->arena_bytes > 0) {
    FOLIO_TRY(lease, ArenaPool::process().acquire(plan->arena_bytes));
    frame.use_plan(plan.get(), lease.arena());
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Operand source = program.outputs[i].source;
    const OutputMemory& memory = request.memory[i];
    if (memory.is_given() && source.is_slot() && !must_wait(program, request, i)) {
      frame.use_memory(static_cast<int32_t>(source.index()), memory);
    }
  }
  const bool all =
      std::all_of(request.wanted.begin(), request.wanted.end(), [](uint8_t w) { return w != 0; });
  const std::vector<uint8_t> needed =
      all ? std::vector<uint8_t>() : needed_steps(program, request.wanted);
  FOLIO_RETURN_IF_ERROR(frame.run(all ? nullptr : &needed));
  return take_outputs(program, request, frame, &blocks, outputs);
}

}  // namespace folio
