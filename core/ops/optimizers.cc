// Adagrad, Adam and Momentum: one step of training of any number of tensors.
//
// Source: ONNX operator spec, ai.onnx.preview.training, opset 1.
// Shapes: R (rate) and T (steps so far): one element each; then, for n tensors, n of X, n of their
//         gradients G, and n of each state (Adagrad H; Adam V, H; Momentum V) -> n of X, n of each
//         state; all of one tensor's have its shape and type.
// Math:   g = norm_coefficient * X + G, then
//         Adagrad   H += g^2; X -= R / (1 + T * decay_factor) * g / (sqrt(H) + epsilon)
//         Adam      V = alpha V + (1 - alpha) g; H = beta H + (1 - beta) g^2;
//                   X -= rate * V / (sqrt(H) + epsilon); X *= 1 - norm_coefficient_post;
//                   rate = T > 0 ? R sqrt(1 - beta^T) / (1 - alpha^T) : R
//         Momentum  V = alpha V + (T > 0 ? beta : 1) g; X -= R V, or nesterov: R (g + alpha V)
// Types:  R float, double; T int64; tensors float, double, each computed in double.
// Errors: kInvalidGraph for a count of inputs or outputs that is no whole number of tensors, and
//         for another mode; kInvalidArgument for shapes and types that do not fit.
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using TrainedTypes = TypeList<float, double>;

enum class Rule : uint8_t { kAdagrad, kAdam, kMomentum, kNesterov };

struct Options {
  Rule rule = Rule::kAdagrad;
  double norm = 0;
  double norm_post = 0;
  double epsilon = 0;
  double decay = 0;
  double alpha = 0;
  double beta = 0;

  int state_count() const { return rule == Rule::kAdam ? 2 : 1; }
};

// An element and its states: Adagrad H; Adam V, H; Momentum V.
struct Element {
  double x = 0;
  double state[2] = {0, 0};
};

// What a step's count makes of the options.
struct Step {
  double rate = 0;
  double beta = 0;  // Momentum
};

Step step_of(const Options& o, double rate, int64_t steps) {
  const auto t = static_cast<double>(steps);
  Step step{rate, steps > 0 ? o.beta : 1};
  if (o.rule == Rule::kAdagrad) step.rate = rate / (1 + t * o.decay);
  if (o.rule == Rule::kAdam && steps > 0) {
    step.rate = rate * std::sqrt(1 - std::pow(o.beta, t)) / (1 - std::pow(o.alpha, t));
  }
  return step;
}

Element updated(const Options& o, const Step& step, Element e, double gradient) {
  const double g = o.norm * e.x + gradient;
  switch (o.rule) {
    case Rule::kAdagrad:
      e.state[0] += g * g;
      e.x -= step.rate * g / (std::sqrt(e.state[0]) + o.epsilon);
      return e;
    case Rule::kAdam:
      e.state[0] = o.alpha * e.state[0] + (1 - o.alpha) * g;
      e.state[1] = o.beta * e.state[1] + (1 - o.beta) * g * g;
      e.x -= step.rate * e.state[0] / (std::sqrt(e.state[1]) + o.epsilon);
      e.x *= 1 - o.norm_post;
      return e;
    case Rule::kMomentum:
    case Rule::kNesterov:
      e.state[0] = o.alpha * e.state[0] + step.beta * g;
      e.x -= step.rate * (o.rule == Rule::kMomentum ? e.state[0] : g + o.alpha * e.state[0]);
      return e;
  }
  return e;
}

// R as a number.
Result<double> rate_input(const OpRun& run) {
  FOLIO_TRY(const Tensor* rate, run.tensor(0));
  if (!contains(TrainedTypes{}, rate->dtype())) return wrong_type(0, rate->dtype());
  if (rate->count() != 1) {
    return invalid_argument("R has shape ", rate->shape().to_string(), ", expected one element");
  }
  return rate->dtype() == DType::kFloat ? double{*rate->data<float>()} : *rate->data<double>();
}

Result<int64_t> steps_input(const OpRun& run) {
  FOLIO_TRY(const Tensor* steps, run.tensor(1, DType::kInt64));
  if (steps->count() != 1) {
    return invalid_argument("T has shape ", steps->shape().to_string(), ", expected one element");
  }
  return *steps->data<int64_t>();
}

class Optimizer final : public OpKernel {
 public:
  Options options;
  int tensors = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const double rate, rate_input(run));
    FOLIO_TRY(const int64_t steps, steps_input(run));
    const Step step = step_of(options, rate, steps);
    for (int i = 0; i < tensors; ++i) FOLIO_RETURN_IF_ERROR(update(run, step, i));
    return Status::ok();
  }

 private:
  Status update(OpRun& run, const Step& step, int i) const {
    FOLIO_TRY(const Tensor* x, run.tensor(2 + i));
    if (!contains(TrainedTypes{}, x->dtype())) return wrong_type(2 + i, x->dtype());
    const int states = options.state_count();
    const Tensor* given[3] = {};  // the gradient, then the states
    for (int k = 0; k <= states; ++k) {
      const int input = 2 + (k + 1) * tensors + i;
      FOLIO_TRY(given[k], run.tensor(input, x->dtype()));
      if (!(given[k]->shape() == x->shape())) {
        return invalid_argument("input ", input, " has shape ", given[k]->shape().to_string(),
                                ", expected that of input ", 2 + i, ", ", x->shape().to_string());
      }
    }
    Tensor* out[3] = {};  // x, then the states; null: nobody reads it
    for (int k = 0; k <= states; ++k) {
      if (!run.has_output(k * tensors + i)) continue;
      FOLIO_TRY(out[k], run.output(k * tensors + i, x->dtype(), x->shape()));
    }
    dispatch(TrainedTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      run.parallel().for_range(x->count(), kElementGrain, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at) {
          Element e{x->data<T>()[at]};
          for (int k = 0; k < states; ++k) e.state[k] = given[k + 1]->data<T>()[at];
          e = updated(options, step, e, given[0]->data<T>()[at]);
          const double results[3] = {e.x, e.state[0], e.state[1]};
          for (int k = 0; k <= states; ++k) {
            if (out[k]) out[k]->data_mut<T>()[at] = static_cast<T>(results[k]);
          }
        }
      });
    });
    return Status::ok();
  }
};

// ---------------------------------------------------------------- registration

Result<Rule> rule_of(const Node& node) {
  if (node.op_type == "Adagrad") return Rule::kAdagrad;
  if (node.op_type == "Adam") return Rule::kAdam;
  FOLIO_TRY(const std::string mode, node.attributes.get_string("mode"));
  if (mode == "standard") return Rule::kMomentum;
  if (mode == "nesterov") return Rule::kNesterov;
  return invalid_graph("attribute 'mode' is '", mode, "', expected 'standard' or 'nesterov'");
}

// A float attribute; Momentum's have no defaults.
Status read(const Attributes& attrs, bool is_required, std::string_view name, float fallback,
            double* to) {
  FOLIO_TRY(const float value,
            is_required ? attrs.get_float(name) : attrs.get_float(name, fallback));
  *to = double{value};
  return Status::ok();
}

Result<Options> parse(const Node& node) {
  Options options;
  FOLIO_TRY(options.rule, rule_of(node));
  const Attributes& attrs = node.attributes;
  const bool required = node.op_type == "Momentum";
  FOLIO_RETURN_IF_ERROR(read(attrs, required, "norm_coefficient", 0, &options.norm));
  FOLIO_RETURN_IF_ERROR(read(attrs, required, "alpha", 0.9F, &options.alpha));
  FOLIO_RETURN_IF_ERROR(read(attrs, required, "beta", 0.999F, &options.beta));
  FOLIO_RETURN_IF_ERROR(read(attrs, false, "norm_coefficient_post", 0, &options.norm_post));
  FOLIO_RETURN_IF_ERROR(read(attrs, false, "epsilon", 1e-6F, &options.epsilon));
  FOLIO_RETURN_IF_ERROR(read(attrs, false, "decay_factor", 0, &options.decay));
  return options;
}

// How many tensors a node of these counts trains.
Result<int> tensors_of(const Options& options, int inputs, int outputs) {
  const int kept = options.state_count() + 1;  // X and the states; the gradient is read only
  const int tensors = (inputs - 2) / (kept + 1);
  if (tensors < 1 || inputs != 2 + tensors * (kept + 1) || outputs != tensors * kept) {
    return invalid_graph("has ", inputs, " inputs and ", outputs, " outputs, expected 2 + ",
                         kept + 1, " and ", kept, " for each trained tensor");
  }
  return tensors;
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Options options, parse(infer.node()));
  FOLIO_TRY(const int tensors, tensors_of(options, infer.input_count(), infer.output_count()));
  for (int i = 0; i < infer.output_count(); ++i) {
    const Dims* dims = infer.dims_of(2 + i % tensors);
    infer.set_tensor(i, infer.dtype(2 + i % tensors),
                     dims ? std::optional<Dims>(*dims) : std::nullopt);
  }
  return Status::ok();
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Optimizer>();
  FOLIO_TRY(kernel->options, parse(build.node()));
  FOLIO_TRY(kernel->tensors,
            tensors_of(kernel->options, build.input_count(), build.output_count()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_optimizers(OpRegistry& registry) {
  for (const std::string_view type : {"Adagrad", "Adam", "Momentum"}) {
    registry.add({.domain = "ai.onnx.preview.training",
                  .type = type,
                  .min_inputs = 5,
                  .max_inputs = kVariadic,
                  .min_outputs = 2,
                  .max_outputs = kVariadic,
                  .infer = infer,
                  .make = make});
  }
}

}  // namespace folio
