// Scan: a subgraph over the entries of tensors, with a state carried along.
//
// Source: ONNX operator spec, Scan, opsets 8 (batches, sequence lengths), 9 (axes), 11 (negative
//         axes), 16, 19 to 25.
// Shapes: from opset 9: N states, then M tensors scanned along scan_input_axes, all of length T;
//         body: N + M values in, N + K out; outputs: N last states, K stacks with T at
//         scan_output_axes. Direction 1 scans, or stacks, from the end.
//         Opset 8: sequence_lens [B] (optional) comes first; everything has a batch axis first,
//         T is axis 1; entries behind a sequence's length are 0.
// Errors: kInvalidArgument when lengths differ or axes are outside; kCancelled.
#include "core/ops/op_control.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct Options {
  bool batched = false;
  int first = 0;    // node input of the first state: 1 when batched
  int states = 0;   // N
  int scanned = 0;  // M
  int stacked = 0;  // K
  std::vector<int64_t> input_axes;
  std::vector<int64_t> output_axes;
  std::vector<int64_t> input_backwards;
  std::vector<int64_t> output_backwards;
};

Result<std::vector<int64_t>> list_of(const Attributes& attrs, std::string_view name, int count) {
  FOLIO_TRY(std::vector<int64_t> list, attrs.get_ints(name));
  if (!attrs.has(name)) list.assign(static_cast<size_t>(count), 0);
  if (list.size() != static_cast<size_t>(count)) {
    return invalid_graph("'", name, "' has ", list.size(), " entries, expected ", count);
  }
  return list;
}

Result<std::vector<int64_t>> directions_of(const Attributes& attrs, std::string_view name,
                                           int count) {
  FOLIO_TRY(std::vector<int64_t> list, list_of(attrs, name, count));
  for (const int64_t direction : list) {
    if (direction != 0 && direction != 1) {
      return invalid_graph("'", name, "' has ", direction, ", expected 0 or 1");
    }
  }
  return list;
}

Result<Options> parse(const Attributes& attrs, int version, int inputs, int outputs) {
  Options options;
  options.batched = version < 9;
  options.first = options.batched ? 1 : 0;
  FOLIO_TRY(const int64_t scanned, attrs.get_int("num_scan_inputs"));
  if (scanned < 1 || scanned > inputs - options.first) {
    return invalid_graph("num_scan_inputs is ", scanned, " but the node has ",
                         inputs - options.first, " values");
  }
  options.scanned = static_cast<int>(scanned);
  options.states = inputs - options.first - options.scanned;
  options.stacked = outputs - options.states;
  if (options.stacked < 0) {
    return invalid_graph("the node has ", outputs, " outputs for ", options.states, " states");
  }
  if (options.batched) {
    FOLIO_TRY(options.input_backwards, directions_of(attrs, "directions", options.scanned));
    options.input_axes.assign(static_cast<size_t>(options.scanned), 0);
    options.output_axes.assign(static_cast<size_t>(options.stacked), 0);
    options.output_backwards.assign(static_cast<size_t>(options.stacked), 0);
    return options;
  }
  FOLIO_TRY(options.input_axes, list_of(attrs, "scan_input_axes", options.scanned));
  FOLIO_TRY(options.output_axes, list_of(attrs, "scan_output_axes", options.stacked));
  FOLIO_TRY(options.input_backwards,
            directions_of(attrs, "scan_input_directions", options.scanned));
  FOLIO_TRY(options.output_backwards,
            directions_of(attrs, "scan_output_directions", options.stacked));
  return options;
}

class Scan final : public OpKernel {
 public:
  Scan(OpBuild& build, int body, Options options) : body_(body), options_(std::move(options)) {
    for (int i = 0; i < build.output_count(); ++i) output_types_.push_back(build.output(i));
  }

  Status run(OpRun& run) const override {
    return options_.batched ? run_batched(run) : run_plain(run);
  }

 private:
  // `length` steps over the scanned tensors, whose axes are checked.
  Status scan(OpRun& run, const std::vector<Tensor>& scanned, const std::vector<int>& axes,
              int64_t length, std::vector<Value>* states, std::vector<Stack>* stacks) const {
    const size_t n = states->size();
    for (int64_t t = 0; t < length; ++t) {
      FOLIO_RETURN_IF_ERROR(run.host().check_cancelled());
      std::vector<Value> inputs;
      for (Value& state : *states) inputs.push_back(std::move(state));
      for (size_t k = 0; k < scanned.size(); ++k) {
        const int64_t at = options_.input_backwards[k] ? length - 1 - t : t;
        FOLIO_TRY(Tensor entry, entry_of(run, scanned[k], axes[k], at));
        inputs.emplace_back(std::move(entry));
      }
      std::vector<Value> outputs;
      FOLIO_RETURN_IF_ERROR(run.host().run_subgraph(body_, inputs, &outputs));
      if (outputs.size() != n + stacks->size()) {
        return invalid_graph("the body gives ", outputs.size(), " values, expected ",
                             n + stacks->size());
      }
      for (size_t k = 0; k < n; ++k) (*states)[k] = std::move(outputs[k]);
      for (size_t k = 0; k < stacks->size(); ++k) {
        FOLIO_RETURN_IF_ERROR((*stacks)[k].push(outputs[n + k]));
      }
    }
    return Status::ok();
  }

  Status run_plain(OpRun& run) const {
    std::vector<Value> states;
    for (int k = 0; k < options_.states; ++k) {
      states.push_back(run.has_input(k) ? run.value(k) : Value());
    }
    std::vector<Tensor> scanned;
    std::vector<int> axes;
    int64_t length = 0;
    for (int k = 0; k < options_.scanned; ++k) {
      FOLIO_TRY(const Tensor* x, run.tensor(options_.states + k));
      FOLIO_TRY(const int axis,
                normalize_axis(options_.input_axes[static_cast<size_t>(k)], x->rank()));
      if (k == 0) length = x->dim(axis);
      if (x->dim(axis) != length) {
        return invalid_argument("input ", options_.states + k, " is scanned over ", x->dim(axis),
                                " entries, others over ", length);
      }
      scanned.push_back(*x);
      axes.push_back(axis);
    }
    std::vector<Stack> stacks(static_cast<size_t>(options_.stacked));
    FOLIO_RETURN_IF_ERROR(scan(run, scanned, axes, length, &states, &stacks));
    for (size_t k = 0; k < states.size(); ++k) {
      if (!run.has_output(static_cast<int>(k))) continue;
      if (states[k].is_tensor()) {
        FOLIO_TRY(Tensor owned, run.owned(states[k].tensor()));
        states[k] = std::move(owned);
      }
      run.set_output(static_cast<int>(k), std::move(states[k]));
    }
    for (size_t k = 0; k < stacks.size(); ++k) {
      const size_t output = states.size() + k;
      if (!run.has_output(static_cast<int>(output))) continue;
      FOLIO_TRY(Tensor joined,
                stacks[k].join(run, options_.output_axes[k], options_.output_backwards[k] != 0,
                               length, output_types_[output]));
      run.set_output(static_cast<int>(output), std::move(joined));
    }
    return Status::ok();
  }

  // Batch size and sequence length; everything batched agrees on the first.
  Status check_batched(OpRun& run, int64_t* batches, int64_t* length) const {
    for (int k = 0; k < options_.states + options_.scanned; ++k) {
      FOLIO_TRY(const Tensor* x, run.tensor(1 + k));
      const bool is_scanned = k >= options_.states;
      if (x->rank() < (is_scanned ? 2 : 1)) {
        return invalid_argument("input ", 1 + k, " has rank ", x->rank(), " and no ",
                                is_scanned ? "sequence" : "batch", " axis");
      }
      if (k == 0) *batches = x->dim(0);
      if (k == options_.states) *length = x->dim(1);
      if (x->dim(0) != *batches || (is_scanned && x->dim(1) != *length)) {
        return invalid_argument("input ", 1 + k, " is ", x->shape().to_string(), ", expected ",
                                *batches, " batches of ", *length);
      }
    }
    return Status::ok();
  }

  Result<std::vector<int64_t>> lengths_of(OpRun& run, int64_t batches, int64_t length) const {
    if (!run.has_input(0)) return std::vector<int64_t>(static_cast<size_t>(batches), length);
    FOLIO_TRY(std::vector<int64_t> lengths, run.ints(0));
    if (static_cast<int64_t>(lengths.size()) != batches) {
      return invalid_argument("sequence_lens has ", lengths.size(), " entries, expected ",
                              batches);
    }
    for (const int64_t own : lengths) {
      if (own < 0 || own > length) {
        return invalid_argument("a sequence length is ", own, ", expected 0 to ", length);
      }
    }
    return lengths;
  }

  Status run_batched(OpRun& run) const {
    int64_t batches = 0;
    int64_t length = 0;
    FOLIO_RETURN_IF_ERROR(check_batched(run, &batches, &length));
    FOLIO_TRY(const std::vector<int64_t> lengths, lengths_of(run, batches, length));
    const std::vector<int> axes(static_cast<size_t>(options_.scanned), 0);
    std::vector<Stack> results(output_types_.size());
    for (int64_t b = 0; b < batches; ++b) {
      std::vector<Value> states;
      std::vector<Tensor> scanned;
      for (int k = 0; k < options_.states + options_.scanned; ++k) {
        FOLIO_TRY(Tensor one, entry_of(run, run.value(1 + k).tensor(), 0, b));
        if (k < options_.states) {
          states.emplace_back(std::move(one));
        } else {
          scanned.push_back(std::move(one));
        }
      }
      std::vector<Stack> stacks(static_cast<size_t>(options_.stacked));
      FOLIO_RETURN_IF_ERROR(scan(run, scanned, axes, lengths[static_cast<size_t>(b)], &states,
                                 &stacks));
      for (size_t k = 0; k < states.size(); ++k) {
        FOLIO_RETURN_IF_ERROR(results[k].push(states[k]));
      }
      for (size_t k = 0; k < stacks.size(); ++k) {
        FOLIO_TRY(Tensor joined, stacks[k].join(run, 0, false, length,
                                                without_batch(output_types_[states.size() + k])));
        FOLIO_RETURN_IF_ERROR(results[states.size() + k].push(Value(std::move(joined))));
      }
    }
    for (size_t k = 0; k < results.size(); ++k) {
      if (!run.has_output(static_cast<int>(k))) continue;
      FOLIO_TRY(Tensor joined, results[k].join(run, 0, false, batches, output_types_[k]));
      run.set_output(static_cast<int>(k), std::move(joined));
    }
    return Status::ok();
  }

  static TypeInfo without_batch(TypeInfo type) {
    if (type.has_rank() && type.rank() > 0) type.dims->erase(type.dims->begin());
    return type;
  }

  int body_;
  Options options_;
  std::vector<TypeInfo> output_types_;
};

// ---------------------------------------------------------------- inference

// Takes dim `axis` away; says what it was.
Result<Dim> take_dim(TypeInfo* type, int64_t axis) {
  if (!type->has_rank()) return Dim::unknown();
  FOLIO_TRY(const int at, normalize_axis(axis, type->rank()));
  const Dim dim = (*type->dims)[static_cast<size_t>(at)];
  type->dims->erase(type->dims->begin() + at);
  return dim;
}

Status put_dim(TypeInfo* type, int64_t axis, Dim dim) {
  if (!type->has_rank()) return Status::ok();
  FOLIO_TRY(const int at, normalize_axis(axis, type->rank() + 1));
  type->dims->insert(type->dims->begin() + at, dim);
  return Status::ok();
}

// The better known of two dims that must be equal.
Dim known_dim(Dim a, Dim b) { return a.is_value() || b.is_unknown() ? a : b; }

Status infer_scan(OpInfer& infer) {
  FOLIO_TRY(const int body, subgraph_index(infer.node(), "body"));
  FOLIO_TRY(const Options options,
            parse(infer.attrs(), infer.version(), infer.input_count(), infer.output_count()));
  Dim batch = Dim::unknown();
  Dim length = Dim::unknown();
  std::vector<TypeInfo> inputs;
  for (int k = 0; k < options.states + options.scanned; ++k) {
    TypeInfo type = infer.input(options.first + k);
    if (options.batched) {
      FOLIO_TRY(const Dim dim, take_dim(&type, 0));
      batch = known_dim(batch, dim);
    }
    if (k >= options.states) {
      FOLIO_TRY(const Dim dim,
                take_dim(&type, options.input_axes[static_cast<size_t>(k - options.states)]));
      length = known_dim(length, dim);
    }
    inputs.push_back(std::move(type));
  }
  const auto states = static_cast<size_t>(options.states);
  FOLIO_TRY(const LoopTypes types, infer_loop_body(infer, body, std::move(inputs), 0, 0, states));
  const size_t outputs = states + static_cast<size_t>(options.stacked);
  if (types.outputs.size() != outputs) {
    return invalid_graph("the body has ", types.outputs.size(), " outputs, expected ", outputs);
  }
  for (size_t k = 0; k < outputs; ++k) {
    TypeInfo type = k < states ? types.inputs[k] : types.outputs[k];
    if (k >= states) {
      FOLIO_RETURN_IF_ERROR(put_dim(&type, options.output_axes[k - states], length));
    }
    if (options.batched) FOLIO_RETURN_IF_ERROR(put_dim(&type, 0, batch));
    infer.set_output(static_cast<int>(k), std::move(type));
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make_scan(OpBuild& build) {
  FOLIO_TRY(const int body, subgraph_index(build.node(), "body"));
  FOLIO_TRY(Options options,
            parse(build.attrs(), build.version(), build.input_count(), build.output_count()));
  return std::unique_ptr<OpKernel>(std::make_unique<Scan>(build, body, std::move(options)));
}

}  // namespace

void register_scan(OpRegistry& registry) {
  OpDef def;
  def.type = "Scan";
  def.since = 8;
  def.max_inputs = kVariadic;
  def.max_outputs = kVariadic;
  def.infer = infer_scan;
  def.make = make_scan;
  registry.add(def);
}

}  // namespace folio
