#include "core/ops/op_ml.h"

#include <algorithm>
#include <cmath>

#include "core/ops/op_dispatch.h"

namespace folio {
namespace {

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// sqrt(2) * the inverse of erf (Winitzki's approximation) of 2 p - 1, as ONNX Runtime computes it.
double probit(double p) {
  const double x = 2 * p - 1;
  const double log = std::log((1 - x) * (1 + x));
  const double a = 2 / (3.14159 * 0.147) + 0.5 * log;
  const double root = std::sqrt(std::sqrt(a * a - log / 0.147) - a);
  return 1.41421356 * (x < 0 ? -root : root);
}

void softmax(int64_t n, double* x, bool keeps_zeros) {
  const double most = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (keeps_zeros && std::abs(x[i]) <= 1e-7) {
      x[i] *= std::exp(-most);
      continue;
    }
    x[i] = std::exp(x[i] - most);
    sum += x[i];
  }
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
}

using MlTypes = TypeList<float, double, Float16, int32_t, int64_t>;

template <typename T>
Result<const T*> ml_numbers(OpRun& run, int input) {
  FOLIO_TRY(const Tensor* x, run.tensor(input));
  if (x->dtype() == dtype_of<T>()) return x->data<T>();
  if (!contains(MlTypes{}, x->dtype())) return wrong_type(input, x->dtype());
  FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(x->count()) * sizeof(T)));
  auto* out = reinterpret_cast<T*>(bytes);
  dispatch(MlTypes{}, x->dtype(), [&](auto tag) {
    using From = typename decltype(tag)::type;
    const From* from = x->data<From>();
    for (int64_t i = 0, end = x->count(); i < end; ++i) {
      out[i] = static_cast<T>(static_cast<Compute<From>>(from[i]));
    }
  });
  return static_cast<const T*>(out);
}

// [n] of [n, ...]; 1 of [c].
Dim row_dim(const Dims& x) { return x.size() < 2 ? Dim::of(1) : x[0]; }

}  // namespace

Result<PostTransform> parse_post_transform(const Attributes& attrs) {
  FOLIO_TRY(const std::string name, attrs.get_string("post_transform", "NONE"));
  const std::string_view names[] = {"NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (name == names[i]) return static_cast<PostTransform>(i);
  }
  return invalid_graph("attribute 'post_transform' is '", name, "'");
}

void apply_post_transform(PostTransform transform, int64_t n, double* scores) {
  if (n == 0 || (n == 1 && transform != PostTransform::kProbit)) return;
  switch (transform) {
    case PostTransform::kRaw:
      return;
    case PostTransform::kLogistic:
      for (int64_t i = 0; i < n; ++i) scores[i] = logistic(scores[i]);
      return;
    case PostTransform::kProbit:
      for (int64_t i = 0; i < n; ++i) scores[i] = probit(scores[i]);
      return;
    case PostTransform::kSoftmax:
    case PostTransform::kSoftmaxZero:
      return softmax(n, scores, transform == PostTransform::kSoftmaxZero);
  }
}

bool second_wins(BinaryScore kind, double score) {
  return kind == BinaryScore::kProbability ? score > 0.5 : score > 0;
}

bool expand_binary(PostTransform transform, BinaryScore kind, double score, double out[2]) {
  const bool wins = second_wins(kind, score);
  const bool is_logistic = transform == PostTransform::kLogistic;
  out[0] = kind == BinaryScore::kProbability && !is_logistic ? 1 - score : -score;
  out[1] = score;
  if (is_logistic || transform == PostTransform::kProbit) apply_post_transform(transform, 2, out);
  return wins;
}

Result<MlRows> ml_rows(const Tensor& x) {
  if (x.rank() == 0) return invalid_argument("X is a scalar, expected rows of features");
  if (x.rank() == 1) return MlRows{1, x.dim(0)};
  return MlRows{x.dim(0), x.shape().product(1, x.rank())};
}

Result<const double*> ml_doubles(OpRun& run, int input) { return ml_numbers<double>(run, input); }
Result<const float*> ml_floats(OpRun& run, int input) { return ml_numbers<float>(run, input); }

Result<ClassLabels> ClassLabels::parse(const Attributes& attrs, std::string_view ints,
                                       std::string_view strings) {
  ClassLabels labels;
  FOLIO_TRY(labels.ints_, attrs.get_ints(ints));
  FOLIO_TRY(labels.strings_, attrs.get_strings(strings));
  if (labels.ints_.empty() == labels.strings_.empty()) {
    return invalid_graph("exactly one of '", ints, "' and '", strings, "' must hold labels");
  }
  return labels;
}

void ClassLabels::write(int64_t label, int64_t row, Tensor* y) const {
  if (strings_.empty()) {
    y->data_mut<int64_t>()[row] = ints_[static_cast<size_t>(label)];
  } else {
    y->data_mut<std::string>()[row] = strings_[static_cast<size_t>(label)];
  }
}

void ClassLabels::write_sign(bool positive, int64_t row, Tensor* y) const {
  if (strings_.empty()) {
    y->data_mut<int64_t>()[row] = positive ? 1 : 0;
  } else {
    y->data_mut<std::string>()[row] = strings_.front();
  }
}

Status infer_classifier(OpInfer& infer, std::string_view strings_attribute, Dim scores) {
  FOLIO_TRY(const std::vector<std::string> strings, infer.attrs().get_strings(strings_attribute));
  const DType labels = strings.empty() ? DType::kInt64 : DType::kString;
  const Dims* x = infer.dims_of(0);
  const Dim rows = x && !x->empty() ? row_dim(*x) : Dim::unknown();
  infer.set_tensor(0, labels, Dims{rows});
  infer.set_tensor(1, DType::kFloat, Dims{rows, scores});
  return Status::ok();
}

Status infer_ml_rows(OpInfer& infer, Dim columns) {
  const Dims* x = infer.dims_of(0);
  const Dim rows = x && !x->empty() ? row_dim(*x) : Dim::unknown();
  infer.set_tensor(0, DType::kFloat, Dims{rows, columns});
  return Status::ok();
}

}  // namespace folio
