// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
//
// Source: ONNX operator spec, NegativeLogLikelihoodLoss opsets 12, 13, 22; SoftmaxCrossEntropyLoss
//         opsets 12, 13.
// Shapes: x [n, classes, d...], target [n, d...], weight [classes] -> loss [n, d...] (reduction
//         none) or a scalar; SoftmaxCrossEntropyLoss also log_prob, as x.
// Math:   loss = -weight[t] * x[.., t, ..], x for the second being log softmax(scores) over the
//         classes; a target of ignore_index counts nothing. mean divides by the sum of weights.
// Types:  float, double, float16, bfloat16; targets int32, int64. Summed in double.
// Errors: kInvalidArgument for targets that are no class.
#include <algorithm>
#include <cmath>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

enum class Reduction : uint8_t { kRaw, kMean, kSum };

struct LossShape {
  int64_t batch = 0;
  int64_t classes = 0;
  int64_t inner = 0;
  Shape target;
};

class Loss final : public OpKernel {
 public:
  bool takes_scores = false;  // SoftmaxCrossEntropyLoss
  bool ignores = false;
  int64_t ignored = 0;
  Reduction reduction = Reduction::kMean;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(const Tensor* targets, run.tensor(1));
    FOLIO_TRY(const LossShape s, shape_of(x->shape(), targets->shape()));
    FOLIO_TRY(const std::vector<int64_t> target, run.ints(1));
    for (const int64_t t : target) {
      if ((t < 0 || t >= s.classes) && !(ignores && t == ignored)) {
        return invalid_argument("target ", t, " is none of ", s.classes, " classes");
      }
    }
    FOLIO_TRY(const Tensor* weight, run.optional_tensor(2, x->dtype()));
    if (weight && (weight->rank() != 1 || weight->count() != s.classes)) {
      return invalid_argument("weight ", weight->shape().to_string(), " must have ", s.classes,
                              " entries");
    }
    FOLIO_TRY(Tensor * y,
              run.output(0, x->dtype(), reduction == Reduction::kRaw ? s.target : Shape{}));
    Tensor* log_prob = nullptr;
    if (run.has_output(1)) {
      FOLIO_TRY(log_prob, run.output(1, x->dtype(), x->shape()));
    }
    dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      compute(s, x->data<T>(), target, weight ? weight->data<T>() : nullptr,
              log_prob ? log_prob->data_mut<T>() : nullptr, y->data_mut<T>());
    });
    return Status::ok();
  }

 private:
  static Result<LossShape> shape_of(const Shape& x, const Shape& target) {
    LossShape s;
    if (x.rank() < 2)
      return invalid_argument("input ", x.to_string(), " must be [n, classes, ...]");
    s.batch = x[0];
    s.classes = x[1];
    s.inner = x.product(2, x.rank());
    s.target = x;
    s.target.erase(1);
    if (!(s.target == target)) {
      return invalid_argument("target ", target.to_string(), " does not fit input ", x.to_string());
    }
    return s;
  }

  // Log of the sum of exp over the classes of one element.
  template <typename T>
  static double log_sum(const T* x, int64_t classes, int64_t step) {
    double most = -HUGE_VAL;
    for (int64_t c = 0; c < classes; ++c) {
      most = std::max<double>(most, static_cast<Compute<T>>(x[c * step]));
    }
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      sum += std::exp(static_cast<double>(static_cast<Compute<T>>(x[c * step])) - most);
    }
    return most + std::log(sum);
  }

  template <typename T>
  void compute(const LossShape& s, const T* x, const std::vector<int64_t>& target, const T* weight,
               T* log_prob, T* y) const {
    using C = Compute<T>;
    double total = 0;
    double weights = 0;
    for (int64_t i = 0; i < s.batch * s.inner; ++i) {
      const T* element = x + i / s.inner * s.classes * s.inner + i % s.inner;
      const double norm = takes_scores ? log_sum(element, s.classes, s.inner) : 0;
      for (int64_t c = 0; log_prob && c < s.classes; ++c) {
        const double value = static_cast<double>(static_cast<C>(element[c * s.inner])) - norm;
        log_prob[element - x + c * s.inner] = static_cast<T>(static_cast<C>(value));
      }
      const int64_t t = target[static_cast<size_t>(i)];
      double loss = 0;
      if (!ignores || t != ignored) {
        const double w = weight ? static_cast<double>(static_cast<C>(weight[t])) : 1.0;
        loss = (norm - static_cast<double>(static_cast<C>(element[t * s.inner]))) * w;
        weights += w;
      }
      total += loss;
      if (reduction == Reduction::kRaw) y[i] = static_cast<T>(static_cast<C>(loss));
    }
    if (reduction == Reduction::kRaw) return;
    *y = static_cast<T>(static_cast<C>(reduction == Reduction::kMean ? total / weights : total));
  }
};

Result<Reduction> parse_reduction(const Attributes& attrs) {
  FOLIO_TRY(const std::string name, attrs.get_string("reduction", "mean"));
  if (name == "none") return Reduction::kRaw;
  if (name == "mean") return Reduction::kMean;
  if (name == "sum") return Reduction::kSum;
  return invalid_graph("attribute 'reduction' is '", name, "', expected none, mean or sum");
}

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<Loss>();
  kernel->takes_scores = build.node().op_type == "SoftmaxCrossEntropyLoss";
  kernel->ignores = build.attrs().has("ignore_index");
  FOLIO_TRY(kernel->ignored, build.attrs().get_int("ignore_index", 0));
  FOLIO_TRY(kernel->reduction, parse_reduction(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer(OpInfer& infer) {
  FOLIO_TRY(const Reduction reduction, parse_reduction(infer.attrs()));
  const Dims* x = infer.dims_of(0);
  std::optional<Dims> loss;
  std::optional<Dims> whole;
  if (x) whole = *x;
  if (reduction != Reduction::kRaw) {
    loss = Dims{};
  } else if (x && x->size() >= 2) {
    loss = *x;
    loss->erase(loss->begin() + 1);
  }
  infer.set_tensor(0, infer.dtype(0), std::move(loss));
  infer.set_tensor(1, infer.dtype(0), std::move(whole));
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_losses(OpRegistry& registry) {
  OpDef def;
  def.since = 12;
  def.min_inputs = 2;
  def.max_inputs = 3;
  def.infer = infer;
  def.make = make;
  def.one_type = 0b101;
  def.type = "NegativeLogLikelihoodLoss";
  registry.add(def);
  def.type = "SoftmaxCrossEntropyLoss";
  def.max_outputs = 2;
  registry.add(def);
}

}  // namespace folio
