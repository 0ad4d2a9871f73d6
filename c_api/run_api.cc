// Entries: Run, RunWithBinding and IoBinding.
#include <algorithm>
#include <cstring>

#include "c_api/entries.h"
#include "c_api/handles.h"

namespace folio {
namespace {

Status collect_inputs(const char* const* names, FolioValue* const* values, size_t count,
                      std::vector<NamedValue>* out) {
  if (count == 0) return Status::ok();
  if (!names) return invalid_argument("argument 'input_names' is NULL");
  if (!values) return invalid_argument("argument 'inputs' is NULL");
  out->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    FOLIO_RETURN_IF_ERROR(check_name(names[i], "input_names[i]"));
    if (!values[i]) return invalid_argument("the value of input '", names[i], "' is NULL");
    out->push_back({names[i], values[i]->value});
  }
  return Status::ok();
}

// A tensor that a run may write.
Status check_writable(const char* name, const FolioValue& value) {
  if (!value.value.is_tensor()) {
    return invalid_argument("the value given for output '", name, "' is no tensor");
  }
  const Ref<Buffer>& buffer = value.value.tensor().buffer();
  if (buffer && buffer->kind() == Buffer::Kind::kConstant) {
    return invalid_argument("the tensor given for output '", name, "' is over const memory");
  }
  return Status::ok();
}

Status collect_outputs(const char* const* names, FolioValue* const* values, size_t count,
                       std::vector<WantedOutput>* out) {
  if (count == 0) return invalid_argument("no output is asked for");
  if (!names) return invalid_argument("argument 'output_names' is NULL");
  if (!values) return invalid_argument("argument 'outputs' is NULL");
  out->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    FOLIO_RETURN_IF_ERROR(check_name(names[i], "output_names[i]"));
    Tensor memory;
    if (values[i]) {
      FOLIO_RETURN_IF_ERROR(check_writable(names[i], *values[i]));
      memory = values[i]->value.tensor();
    }
    out->push_back({names[i], std::move(memory)});
  }
  return Status::ok();
}

bool is_in_place(const Program& program, const WantedOutput& output, const NamedValue& input) {
  const Tensor& tensor = input.value.tensor();
  if (!output.memory.is_at(tensor)) return false;
  return std::any_of(program.outputs.begin(), program.outputs.end(), [&](const PortInfo& port) {
    return port.name == output.name && port.in_place_of != kNone &&
           program.inputs[static_cast<size_t>(port.in_place_of)].name == input.name;
  });
}

// What a run writes must be nothing that it reads or writes elsewhere; except the whole memory of
// an input that the output is made in, and room for a result, which then is filled at the end.
Status check_overlap(const Program& program, const std::vector<NamedValue>& inputs,
                     const std::vector<WantedOutput>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputMemory& memory = outputs[i].memory;
    if (!memory.is_given()) continue;
    for (const NamedValue& input : inputs) {
      if (memory.room || !input.value.is_tensor()) continue;
      const Tensor& tensor = input.value.tensor();
      if (!memory.overlaps(tensor.raw(), tensor.bytes())) continue;
      if (is_in_place(program, outputs[i], input)) continue;
      return invalid_argument("output '", outputs[i].name, "' and input '", input.name,
                              "' share memory");
    }
    for (size_t j = 0; j < i; ++j) {
      const OutputMemory& other = outputs[j].memory;
      if (!other.is_given() || !memory.overlaps(other.data(), other.bytes())) continue;
      return invalid_argument("outputs '", outputs[j].name, "' and '", outputs[i].name,
                              "' share memory");
    }
  }
  return Status::ok();
}

Status run_binding(FolioIoBinding* binding, const FolioRunOptions* options) {
  if (binding->outputs.empty()) return invalid_argument("no output is bound");
  std::vector<WantedOutput> wanted;
  wanted.reserve(binding->outputs.size());
  for (const auto& output : binding->outputs) wanted.push_back({output.name, output.memory});
  FOLIO_RETURN_IF_ERROR(
      check_overlap(binding->session->session().program(), binding->inputs, wanted));
  std::vector<Value> results;
  FOLIO_RETURN_IF_ERROR(binding->session->run(options, binding->inputs, wanted, &results));
  for (size_t i = 0; i < results.size(); ++i) binding->outputs[i].result = std::move(results[i]);
  binding->has_results = true;
  return Status::ok();
}

// The place for output `name`: what was bound to it before, or a new one at the end.
Status place_output(FolioIoBinding* binding, FolioIoBinding::Output output) {
  if (!binding->session->ports().find_output(output.name)) {
    return invalid_argument("the model has no output '", output.name, "'");
  }
  auto& outputs = binding->outputs;
  const auto known = std::find_if(outputs.begin(), outputs.end(),
                                  [&](const auto& bound) { return bound.name == output.name; });
  if (known != outputs.end()) {
    *known = std::move(output);
  } else {
    outputs.push_back(std::move(output));
  }
  binding->has_results = false;
  return Status::ok();
}

}  // namespace

namespace entry {

FolioStatus* Run(FolioSession* session, const FolioRunOptions* options,
                 const char* const* input_names, FolioValue* const* inputs, size_t input_count,
                 const char* const* output_names, size_t output_count, FolioValue** outputs) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    std::vector<NamedValue> given;
    std::vector<WantedOutput> wanted;
    FOLIO_RETURN_IF_ERROR(collect_inputs(input_names, inputs, input_count, &given));
    FOLIO_RETURN_IF_ERROR(collect_outputs(output_names, outputs, output_count, &wanted));
    FOLIO_RETURN_IF_ERROR(check_overlap(session->state->session().program(), given, wanted));
    std::vector<Value> results;
    FOLIO_RETURN_IF_ERROR(session->state->run(options, given, wanted, &results));
    std::vector<std::unique_ptr<FolioValue>> handles(output_count);
    for (size_t i = 0; i < output_count; ++i) {
      if (!outputs[i]) handles[i].reset(new_value(std::move(results[i])));
    }
    for (size_t i = 0; i < output_count; ++i) {
      if (!outputs[i]) outputs[i] = handles[i].release();
    }
    return Status::ok();
  });
}

FolioStatus* RunWithBinding(FolioSession* session, const FolioRunOptions* options,
                            FolioIoBinding* binding) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(binding);
    if (!(binding->session == session->state)) {
      return invalid_argument("the binding was made for another session");
    }
    if (binding->is_running.exchange(true, std::memory_order_acquire)) {
      return invalid_argument("the binding serves another run already");
    }
    struct Done {
      std::atomic<bool>& is_running;
      ~Done() { is_running.store(false, std::memory_order_release); }
    } const done{binding->is_running};
    return run_binding(binding, options);
  });
}

FolioStatus* CreateIoBinding(FolioSession* session, FolioIoBinding** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(session);
    FOLIO_NOT_NULL(out);
    auto binding = std::make_unique<FolioIoBinding>();
    binding->session = session->state;
    *out = binding.release();
    return Status::ok();
  });
}

FolioStatus* BindInput(FolioIoBinding* binding, const char* name, FolioValue* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    FOLIO_NOT_NULL(value);
    if (!binding->session->ports().find_input(name)) {
      return invalid_argument("the model has no input '", name, "'");
    }
    auto& inputs = binding->inputs;
    const auto known = std::find_if(inputs.begin(), inputs.end(),
                                    [&](const NamedValue& input) { return input.name == name; });
    if (known != inputs.end()) {
      known->value = value->value;
    } else {
      inputs.push_back({name, value->value});
    }
    return Status::ok();
  });
}

FolioStatus* BindOutput(FolioIoBinding* binding, const char* name, FolioValue* value) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    FolioIoBinding::Output output;
    output.name = name;
    if (value) {
      FOLIO_RETURN_IF_ERROR(check_writable(name, *value));
      output.memory.tensor = value->value.tensor();
    }
    return place_output(binding, std::move(output));
  });
}

FolioStatus* BindOutputWithCapacity(FolioIoBinding* binding, const char* name, void* data,
                                    size_t capacity_bytes, FolioReleaseFunction release,
                                    void* user) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_RETURN_IF_ERROR(check_name(name, "name"));
    FOLIO_NOT_NULL(data);
    FOLIO_RETURN_IF_ERROR(check_memory(data, capacity_bytes));
    const auto lent = make_ref<Lent>(release, user);
    FolioIoBinding::Output output;
    output.name = name;
    output.memory.room = view_buffer(Buffer::Kind::kBorrowed, data, capacity_bytes, lent);
    FOLIO_RETURN_IF_ERROR(place_output(binding, std::move(output)));
    lent->keep();
    return Status::ok();
  });
}

FolioStatus* ClearBoundInputs(FolioIoBinding* binding) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    binding->inputs.clear();
    return Status::ok();
  });
}

FolioStatus* ClearBoundOutputs(FolioIoBinding* binding) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    binding->outputs.clear();
    binding->has_results = false;
    return Status::ok();
  });
}

FolioStatus* GetBoundOutputCount(const FolioIoBinding* binding, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_NOT_NULL(out);
    *out = binding->outputs.size();
    return Status::ok();
  });
}

FolioStatus* GetBoundOutputName(const FolioIoBinding* binding, size_t index, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_NOT_NULL(out);
    FOLIO_RETURN_IF_ERROR(check_index(index, binding->outputs.size(), "bound outputs"));
    *out = binding->outputs[index].name.c_str();
    return Status::ok();
  });
}

FolioStatus* GetBoundOutputValue(const FolioIoBinding* binding, size_t index, FolioValue** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(binding);
    FOLIO_NOT_NULL(out);
    FOLIO_RETURN_IF_ERROR(check_index(index, binding->outputs.size(), "bound outputs"));
    if (!binding->has_results) return invalid_argument("the binding has not been run yet");
    *out = new_value(binding->outputs[index].result);
    return Status::ok();
  });
}

void ReleaseIoBinding(FolioIoBinding* binding) { delete binding; }

}  // namespace entry
}  // namespace folio
