// Scan: a subgraph run once for each element along an axis.
//
// Source: ONNX operator spec, Scan, opset 8 (batched, sequence_lens) and 9, 11, 16 and later.
// Inputs: (8: sequence_lens or "",) N state values, then M = num_scan_inputs tensors.
// Body:   (states..., one slice of each scan input) -> (states..., scan outputs...)
// Outputs: final states, then scan outputs stacked along their axis. Opset 8: all have a leading
//          batch dim, scanned along dim 1, sequences shorter than the longest padded with zeros.
// Types:  what is scanned and stacked, and all of opset 8: all types but those of 2 and 4 bits;
//         other state: values of any kind.
#include <algorithm>
#include <cstring>

#include "core/ops/op_registry.h"
#include "core/ops/op_subgraph.h"

namespace folio {
namespace {

class Scan final : public OpKernel {
 public:
  int body = 0;
  bool batched = false;  // opset 8
  size_t states = 0;
  size_t scan_inputs = 0;
  std::vector<int64_t> input_axes, input_reverse, output_axes, output_reverse;
  std::vector<TypeInfo> scan_types;

  Status run(OpRun& run) const override {
    if (batched) return run_batches(run);
    std::vector<Value> state;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < states; ++i) state.push_back(run.value(static_cast<int>(i)));
    for (size_t i = 0; i < scan_inputs; ++i) {
      FOLIO_TRY(const Tensor* tensor, run.tensor(static_cast<int>(states + i)));
      inputs.push_back(*tensor);
    }
    std::vector<Tensor> outputs;
    FOLIO_RETURN_IF_ERROR(scan(run, input_axes, INT64_MAX, inputs, &state, &outputs));
    for (size_t i = 0; i < states; ++i) {
      if (run.has_output(static_cast<int>(i)))
        run.set_output(static_cast<int>(i), std::move(state[i]));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto at = static_cast<int>(states + i);
      if (run.has_output(at)) run.set_output(at, std::move(outputs[i]));
    }
    return Status::ok();
  }

 private:
  static bool flag(const std::vector<int64_t>& flags, size_t i) {
    return i < flags.size() && flags[i] != 0;
  }

  // Runs the body over all elements; `length_max` limits how many.
  Status scan(OpRun& run, const std::vector<int64_t>& axes, int64_t length_max,
              const std::vector<Tensor>& inputs, std::vector<Value>* state,
              std::vector<Tensor>* outputs) const {
    std::vector<int> at;
    int64_t length = -1;
    for (size_t i = 0; i < inputs.size(); ++i) {
      FOLIO_TRY(const int axis, normalize_axis(i < axes.size() ? axes[i] : 0, inputs[i].rank()));
      at.push_back(axis);
      if (length >= 0 && inputs[i].dim(axis) != length) {
        return invalid_argument("scan inputs have ", length, " and ", inputs[i].dim(axis),
                                " elements");
      }
      length = inputs[i].dim(axis);
    }
    length = std::min(length, length_max);
    std::vector<ScanOutput> collected(scan_types.size(), ScanOutput(length, length));
    std::vector<Value> args;
    std::vector<Value> results;
    for (int64_t t = 0; t < length; ++t) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      for (Value& value : *state) args.push_back(std::move(value));
      for (size_t i = 0; i < inputs.size(); ++i) {
        const int64_t index = flag(input_reverse, i) ? length - 1 - t : t;
        FOLIO_TRY(Tensor slice, slice_axis(inputs[i], at[i], index));
        args.emplace_back(std::move(slice));
      }
      FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(body, args, &results));
      args.clear();
      for (size_t i = 0; i < states; ++i) (*state)[i] = std::move(results[i]);
      for (size_t i = 0; i < collected.size(); ++i) {
        FOLIO_RETURN_IF_ERROR(collected[i].add(results[states + i]));
      }
      results.clear();
    }
    for (size_t i = 0; i < collected.size(); ++i) {
      const int64_t axis = i < output_axes.size() ? output_axes[i] : 0;
      FOLIO_TRY(Tensor stacked, collected[i].stack(axis, flag(output_reverse, i), scan_types[i]));
      outputs->push_back(std::move(stacked));
    }
    return Status::ok();
  }

  // Opset 8: the scan of each batch item, results stacked along dim 0.
  Status run_batches(OpRun& run) const {
    int64_t batch = -1;
    std::vector<Tensor> all;
    for (size_t i = 0; i < states + scan_inputs; ++i) {
      FOLIO_TRY(const Tensor* tensor, run.tensor(static_cast<int>(i) + 1));
      if (tensor->rank() < (i < states ? 1 : 2) || (batch >= 0 && tensor->dim(0) != batch)) {
        return invalid_argument("input ", i + 1, " ", tensor->shape().to_string(),
                                " does not have the batch dim of the others");
      }
      batch = tensor->dim(0);
      all.push_back(*tensor);
    }
    if (batch < 1) return invalid_argument("Scan-8 of an empty batch");
    const int64_t longest = all[states].dim(1);
    std::vector<int64_t> lengths(static_cast<size_t>(batch), longest);
    if (run.has_input(0)) {
      FOLIO_TRY(lengths, run.ints(0));
      const auto bad = [&](int64_t n) { return n < 0 || n > longest; };
      if (static_cast<int64_t>(lengths.size()) != batch ||
          std::any_of(lengths.begin(), lengths.end(), bad)) {
        return invalid_argument("sequence_lens must be ", batch, " numbers from 0 to ", longest);
      }
    }
    std::vector<ScanOutput> results(states + scan_types.size(), ScanOutput(batch, batch));
    for (int64_t b = 0; b < batch; ++b) {
      FOLIO_RETURN_IF_ERROR(
          run_item(run, b, lengths[static_cast<size_t>(b)], longest, all, &results));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!run.has_output(static_cast<int>(i))) continue;
      FOLIO_TRY(Tensor stacked, results[i].stack(0, false, TypeInfo()));
      run.set_output(static_cast<int>(i), std::move(stacked));
    }
    return Status::ok();
  }

  Status run_item(OpRun& run, int64_t b, int64_t length, int64_t longest,
                  const std::vector<Tensor>& all, std::vector<ScanOutput>* results) const {
    std::vector<Value> state;
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < all.size(); ++i) {
      FOLIO_TRY(Tensor slice, slice_axis(all[i], 0, b));
      if (i < states) {
        state.emplace_back(std::move(slice));
      } else {
        inputs.push_back(std::move(slice));
      }
    }
    std::vector<Tensor> outputs;
    FOLIO_RETURN_IF_ERROR(scan(run, {}, length, inputs, &state, &outputs));
    for (size_t i = 0; i < states; ++i) FOLIO_RETURN_IF_ERROR((*results)[i].add(state[i]));
    for (size_t i = 0; i < outputs.size(); ++i) {
      FOLIO_TRY(Tensor padded, pad_rows(outputs[i], longest));
      FOLIO_RETURN_IF_ERROR((*results)[states + i].add(Value(std::move(padded))));
    }
    return Status::ok();
  }

  static Result<Tensor> pad_rows(const Tensor& tensor, int64_t rows) {
    if (tensor.dim(0) == rows) return tensor;
    if (tensor.is_string()) return not_implemented("ragged Scan-8 of strings");
    Shape shape = tensor.shape();
    shape[0] = rows;
    FOLIO_TRY(Tensor out, allocate_tensor(tensor.dtype(), shape));
    std::memset(out.raw_mut(), 0, out.bytes());
    if (tensor.bytes() > 0) std::memcpy(out.raw_mut(), tensor.raw(), tensor.bytes());
    return out;
  }
};

Result<TypeInfo> state_type(size_t i, const TypeInfo& given, const TypeInfo& result) {
  if (may_carry(given, result)) return carried_type(given, result);
  return invalid_graph("state ", i, " is ", type_to_string(given), ", the body makes ",
                       type_to_string(result), " of it");
}

// Opset 8 adds a batch dim to everything: only element types are inferred.
Status infer_batched(OpInfer& infer, int body) {
  std::vector<TypeInfo> inputs;
  for (int i = 1; i < infer.input_count(); ++i) inputs.push_back(without_dims(infer.input(i)));
  FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(body, inputs));
  FOLIO_TRY(const int64_t scan_inputs, infer.attrs().get_int("num_scan_inputs"));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TypeInfo type = without_dims(outputs[i]);
    if (scan_inputs >= 0 &&
        scan_inputs < static_cast<int64_t>(inputs.size() - std::min(inputs.size(), i))) {
      FOLIO_TRY(type, state_type(i, inputs[i], outputs[i]));
    }
    infer.set_output(static_cast<int>(i), std::move(type));
  }
  return Status::ok();
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const int body, find_subgraph(infer.node(), "body"));
  if (infer.version() < 9) return infer_batched(infer, body);
  FOLIO_TRY(const int64_t scan_inputs, infer.attrs().get_int("num_scan_inputs"));
  FOLIO_TRY(const std::vector<int64_t> axes, infer.attrs().get_ints("scan_input_axes"));
  const int states = infer.input_count() -
                     static_cast<int>(std::clamp<int64_t>(scan_inputs, 0, infer.input_count()));
  std::vector<TypeInfo> inputs;
  for (int i = 0; i < infer.input_count(); ++i) {
    TypeInfo type = infer.input(i);
    if (i < states) {
      type = without_dims(type);
    } else if (type.has_rank()) {
      const auto k = static_cast<size_t>(i - states);
      FOLIO_TRY(const int axis, normalize_axis(k < axes.size() ? axes[k] : 0, type.rank()));
      type.dims->erase(type.dims->begin() + axis);
    }
    inputs.push_back(std::move(type));
  }
  FOLIO_TRY(const std::vector<TypeInfo> outputs, infer.infer_subgraph(body, inputs));
  for (size_t i = 0; i < outputs.size(); ++i) {
    // Which axis of a scan output is the new one depends on attributes: its rank is enough here.
    const bool is_state = static_cast<int>(i) < states;
    TypeInfo type = stacked_type(outputs[i]);
    if (is_state) {
      FOLIO_TRY(type, state_type(i, inputs[i], outputs[i]));
    }
    if (!is_state && type.dims) std::fill(type.dims->begin(), type.dims->end(), Dim::unknown());
    infer.set_output(static_cast<int>(i), std::move(type));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Scan>();
  const Attributes& attrs = build.attrs();
  kernel->batched = build.version() < 9;
  FOLIO_TRY(kernel->body, find_subgraph(build.node(), "body"));
  FOLIO_TRY(const int64_t scan_inputs, attrs.get_int("num_scan_inputs"));
  const int64_t total = build.input_count() - (kernel->batched ? 1 : 0);
  const Graph& body = *build.node().subgraphs[static_cast<size_t>(kernel->body)];
  if (scan_inputs < 1 || scan_inputs > total) {
    return invalid_graph("attribute 'num_scan_inputs' is ", scan_inputs, ", there are ", total,
                         " inputs");
  }
  kernel->scan_inputs = static_cast<size_t>(scan_inputs);
  kernel->states = static_cast<size_t>(total - scan_inputs);
  if (body.inputs.size() != static_cast<size_t>(total) || body.outputs.size() < kernel->states ||
      static_cast<size_t>(build.output_count()) > body.outputs.size()) {
    return invalid_graph("the body has ", body.inputs.size(), " inputs and ", body.outputs.size(),
                         " outputs; the node ", total, " and ", build.output_count());
  }
  FOLIO_TRY(kernel->input_axes, attrs.get_ints("scan_input_axes"));
  FOLIO_TRY(kernel->output_axes, attrs.get_ints("scan_output_axes"));
  FOLIO_TRY(kernel->output_reverse, attrs.get_ints("scan_output_directions"));
  FOLIO_TRY(kernel->input_reverse,
            attrs.get_ints(kernel->batched ? "directions" : "scan_input_directions"));
  for (size_t i = kernel->states; i < body.outputs.size(); ++i) {
    const GraphValue& output = body.value(body.outputs[i]);
    kernel->scan_types.push_back(type_without_iteration(output));
  }
  for (int i = kernel->batched ? 1 : 0; i < build.input_count(); ++i) {
    if (!build.has_input(i)) return invalid_graph("input ", i, " is missing");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_scan(OpRegistry& registry) {
  OpDef def;
  def.type = "Scan";
  def.since = 8;
  def.optional_inputs = 1;  // sequence_lens of opset 8
  def.max_inputs = kVariadic;
  def.max_outputs = kVariadic;
  def.places_outputs = false;
  def.infer = infer;
  def.make = make;
  registry.add(def);
}

}  // namespace folio
