// SVMClassifier and SVMRegressor.
//
// Source: ONNX operator spec, ai.onnx.ml, version 1; scores and labels as ONNX Runtime gives them.
// Shapes: x [n, features], support_vectors [vectors, features]; classifier coefficients
//         [classes - 1, vectors], rho and prob_a, prob_b one for each pair of classes; without
//         vectors_per_class a linear model with coefficients [classes, features].
//         -> labels [n] and scores [n, classes] (more than two classes without probabilities: one
//         score for each pair); regressor y [n, 1].
// Math:   K(x, v) is v.x, (gamma v.x + coef0)^degree, exp(-gamma |x - v|^2) or
//         tanh(gamma v.x + coef0). A pair (i, j) scores the sum of coefficients * K over the
//         vectors of i and j, plus rho; above 0 it votes for i. Probabilities by Platt's sigmoid
//         and pairwise coupling (Wu, Lin, Weng 2004).
// Types:  x float, double, float16, int32, int64; computed in double.
#include <algorithm>
#include <cmath>

#include "core/ops/op_broadcast.h"
#include "core/ops/op_ml.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_row_products.h"

namespace folio {
namespace {

enum class SvmKernel : uint8_t { kLinear, kPoly, kRbf, kSigmoid };

struct SvmModel {
  SvmKernel kernel = SvmKernel::kLinear;
  double gamma = 0;
  double coef0 = 0;
  double degree = 0;
  std::vector<float> vectors;
  std::vector<float> coefficients;
  std::vector<float> rho;
  int64_t features = 0;

  // out [rows, count]: K of rows of x and of `v`, each of `features`.
  Status apply(OpRun& run, int64_t rows, const double* x, int64_t count, const float* v,
               double* out) const {
    FOLIO_RETURN_IF_ERROR(
        row_products(run, rows, x, count, v, features, kernel == SvmKernel::kRbf, out));
    const int64_t all = rows * count;
    for (int64_t i = 0; i < all && kernel != SvmKernel::kLinear; ++i) {
      out[i] = kernel == SvmKernel::kRbf    ? -gamma * out[i]
               : kernel == SvmKernel::kPoly ? power(gamma * out[i] + coef0)
                                            : tangent(gamma * out[i] + coef0);
    }
    if (kernel == SvmKernel::kRbf) run.kernels().unary_f64[kFolioExpF64](all, out, out);
    return Status::ok();
  }

  double power(double x) const {
    if (degree == 2) return x * x;
    if (degree == 3) return x * x * x;
    return std::pow(x, degree);
  }

  // tanh, to some 1e-16: scores are floats.
  static double tangent(double x) {
    return std::copysign(1 - 2 / (std::exp(2 * std::abs(x)) + 1), x);
  }

  Status check_columns(const Tensor& x, const MlRows& rows) const {
    if (rows.columns == features) return Status::ok();
    return invalid_argument("X ", x.shape().to_string(), " has ", rows.columns,
                            " features, the model ", features);
  }
};

// `count` support vectors; 0: a linear model of `lines` lines of coefficients.
Result<SvmModel> parse_model(const Attributes& attrs, int64_t count, int64_t lines) {
  SvmModel model;
  FOLIO_TRY(const std::string kernel, attrs.get_string("kernel_type", "LINEAR"));
  FOLIO_TRY(const std::vector<float> parameters, attrs.get_floats("kernel_params"));
  FOLIO_TRY(model.vectors, attrs.get_floats("support_vectors"));
  FOLIO_TRY(model.coefficients, attrs.get_floats("coefficients"));
  FOLIO_TRY(model.rho, attrs.get_floats("rho"));
  const std::string_view names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const auto* found = std::find(std::begin(names), std::end(names), kernel);
  if (found == std::end(names)) return invalid_graph("attribute 'kernel_type' is '", kernel, "'");
  if (!parameters.empty() && parameters.size() != 3) {
    return invalid_graph("attribute 'kernel_params' has ", parameters.size(), " entries, not 3");
  }
  if (!parameters.empty()) {
    model.gamma = parameters[0];
    model.coef0 = parameters[1];
    model.degree = parameters[2];
  }
  model.kernel = count > 0 ? static_cast<SvmKernel>(found - std::begin(names)) : SvmKernel::kLinear;
  const std::vector<float>& table = count > 0 ? model.vectors : model.coefficients;
  const auto size = static_cast<int64_t>(table.size());
  const int64_t rows = count > 0 ? count : lines;
  if (size == 0 || rows < 1 || size % rows != 0 || model.rho.empty()) {
    return invalid_graph(size, count > 0 ? " support vector numbers" : " coefficients", " for ",
                         rows, " rows, and ", model.rho.size(), " entries of rho");
  }
  model.features = size / rows;
  return model;
}

// ---------------------------------------------------------------- regressor

class Regressor final : public OpKernel {
 public:
  SvmModel model;
  int64_t vectors = 0;
  bool one_class = false;
  PostTransform transform = PostTransform::kRaw;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, ml_rows(*x));
    FOLIO_RETURN_IF_ERROR(model.check_columns(*x, rows));
    FOLIO_TRY(const double* data, ml_doubles(run, 0));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, Shape{rows.rows, 1}));
    const float* table = vectors > 0 ? model.vectors.data() : model.coefficients.data();
    const int64_t count = std::max<int64_t>(1, vectors);
    const int64_t most = std::min(rows.rows, kProductRows);
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(most * count) * sizeof(double)));
    auto* const kernels = reinterpret_cast<double*>(bytes);
    for (int64_t first = 0; first < rows.rows; first += most) {
      const int64_t now = std::min(most, rows.rows - first);
      FOLIO_RETURN_IF_ERROR(
          model.apply(run, now, data + first * rows.columns, count, table, kernels));
      for (int64_t i = 0; i < now; ++i) {
        y->data_mut<float>()[first + i] = static_cast<float>(score(kernels + i * count));
      }
    }
    return Status::ok();
  }

 private:
  double score(const double* kernels) const {
    double sum = vectors == 0 ? kernels[0] : 0;
    for (int64_t j = 0; j < vectors; ++j) {
      sum += model.coefficients[static_cast<size_t>(j)] * kernels[j];
    }
    sum += model.rho[0];
    if (one_class) sum = sum > 0 ? 1 : -1;
    apply_post_transform(transform, 1, &sum);
    return sum;
  }
};

Result<std::unique_ptr<OpKernel>> make_regressor(OpBuild& build) {
  auto kernel = std::make_unique<Regressor>();
  FOLIO_TRY(kernel->vectors, build.attrs().get_int("n_supports", 0));
  FOLIO_TRY(const int64_t one_class, build.attrs().get_int("one_class", 0));
  FOLIO_TRY(kernel->transform, parse_post_transform(build.attrs()));
  FOLIO_TRY(kernel->model, parse_model(build.attrs(), kernel->vectors, 1));
  kernel->one_class = one_class != 0;
  const auto count = static_cast<int64_t>(kernel->model.coefficients.size());
  if (kernel->vectors < 0 || (kernel->vectors > 0 && count < kernel->vectors)) {
    return invalid_graph(count, " coefficients for ", kernel->vectors, " support vectors");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_regressor(OpInfer& infer) { return infer_ml_rows(infer, Dim::of(1)); }

// ---------------------------------------------------------------- classifier

struct SvmClasses {
  SvmModel model;
  ClassLabels labels;
  int64_t classes = 0;
  int64_t pairs = 0;
  std::vector<int64_t> first;  // support vectors of class i: [first[i], first[i + 1])
  std::vector<float> prob_a;
  std::vector<float> prob_b;
  bool positive = false;  // no coefficient below 0
  PostTransform transform = PostTransform::kRaw;

  bool linear() const { return first.back() == 0; }
  int64_t scores() const { return linear() || !prob_a.empty() || classes <= 2 ? classes : pairs; }
};

// Class probabilities p from those of the pairs, r[i * n + j] = P(i | i or j).
void couple(int64_t n, const double* r, double* q, double* qp, double* p) {
  for (int64_t i = 0; i < n; ++i) {
    p[i] = 1.0 / static_cast<double>(n);
    q[i * n + i] = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (j == i) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  }
  for (int round = 0; round < 100; ++round) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      qp[i] = 0;
      for (int64_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * p[j];
      total += p[i] * qp[i];
    }
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(qp[i] - total));
    if (worst < 0.005 / static_cast<double>(n)) return;
    for (int64_t i = 0; i < n; ++i) {
      const double step = (total - qp[i]) / q[i * n + i];
      const double grown = 1 + step;
      total = (total + step * (step * q[i * n + i] + 2 * qp[i])) / (grown * grown);
      p[i] += step;
      for (int64_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + step * q[i * n + j]) / grown;
        p[j] /= grown;
      }
    }
  }
}

class Classifier final : public OpKernel {
 public:
  SvmClasses svm;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, ml_rows(*x));
    FOLIO_RETURN_IF_ERROR(svm.model.check_columns(*x, rows));
    FOLIO_TRY(const double* data, ml_doubles(run, 0));
    FOLIO_TRY(Tensor * y, run.output(0, svm.labels.dtype(), Shape{rows.rows}));
    FOLIO_TRY(Tensor * z, run.output(1, DType::kFloat, Shape{rows.rows, svm.scores()}));
    Work work(svm);
    const SvmModel& model = svm.model;
    const float* table = svm.linear() ? model.coefficients.data() : model.vectors.data();
    const int64_t count = svm.linear() ? svm.classes : svm.first.back();
    const int64_t most = std::max<int64_t>(1, std::min(rows.rows, kProductRows));
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(most * count) * sizeof(double)));
    auto* const kernels = reinterpret_cast<double*>(bytes);
    for (int64_t row = 0; row < rows.rows; ++row) {
      if (row % most == 0) {
        const int64_t now = std::min(most, rows.rows - row);
        FOLIO_RETURN_IF_ERROR(
            model.apply(run, now, data + row * rows.columns, count, table, kernels));
      }
      work.kernels = kernels + row % most * count;
      const int64_t label = svm.linear() ? score_linear(work) : score_pairs(work);
      svm.labels.write(label, row, y);
      float* out = z->data_mut<float>() + row * svm.scores();
      for (int64_t i = 0; i < svm.scores(); ++i) {
        out[i] = static_cast<float>(work.scores[static_cast<size_t>(i)]);
      }
    }
    return Status::ok();
  }

 private:
  struct Work {
    explicit Work(const SvmClasses& svm)
        : scores(static_cast<size_t>(std::max(svm.linear() ? 0 : svm.pairs, svm.classes))),
          votes(static_cast<size_t>(svm.classes)) {
      if (svm.prob_a.empty()) return;
      const auto n = static_cast<size_t>(svm.classes);
      ratios.resize(n * n);
      q.resize(n * n);
      qp.resize(n);
    }
    const double* kernels = nullptr;  // of the row: by vector, or by class
    std::vector<double> scores;
    std::vector<int64_t> votes;
    std::vector<double> ratios, q, qp;
  };

  int64_t score_linear(Work& work) const {
    for (int64_t c = 0; c < svm.classes; ++c) {
      work.scores[static_cast<size_t>(c)] = work.kernels[c] + svm.model.rho[0];
    }
    const auto end = work.scores.begin() + svm.classes;
    const auto best = std::max_element(work.scores.begin(), end);
    const bool second = svm.classes == 2 && (svm.positive ? *best >= 0.5 : *best > 0);
    const int64_t label = second ? 1 : best - work.scores.begin();
    apply_post_transform(svm.transform, svm.classes, work.scores.data());
    return label;
  }

  int64_t score_pairs(Work& work) const {
    const SvmModel& model = svm.model;
    std::fill(work.votes.begin(), work.votes.end(), 0);
    int64_t pair = 0;
    for (int64_t i = 0; i < svm.classes; ++i) {
      for (int64_t j = i + 1; j < svm.classes; ++j, ++pair) {
        const double sum =
            part(work, i, j - 1) + part(work, j, i) + model.rho[static_cast<size_t>(pair)];
        work.scores[static_cast<size_t>(pair)] = sum;
        ++work.votes[static_cast<size_t>(sum > 0 ? i : j)];
      }
    }
    const auto best = std::max_element(work.votes.begin(), work.votes.end());
    if (!svm.prob_a.empty()) couple_pairs(work);
    double* scores = work.scores.data();
    if (svm.prob_a.empty() && svm.classes == 2) {
      const double score = scores[0];
      scores[0] = svm.transform == PostTransform::kRaw ? -score : 1 - score;
      scores[1] = score;
      if (svm.transform == PostTransform::kLogistic) scores[0] = -score;
      if (svm.transform == PostTransform::kLogistic || svm.transform == PostTransform::kProbit) {
        apply_post_transform(svm.transform, 2, scores);
      }
    } else {
      apply_post_transform(svm.transform, svm.scores(), scores);
    }
    return best - work.votes.begin();
  }

  // Sum over the vectors of class c with line `line` of coefficients.
  double part(const Work& work, int64_t c, int64_t line) const {
    const float* coefficients = svm.model.coefficients.data() + line * svm.first.back();
    double sum = 0;
    for (int64_t v = svm.first[static_cast<size_t>(c)]; v < svm.first[static_cast<size_t>(c) + 1];
         ++v) {
      sum += coefficients[v] * work.kernels[v];
    }
    return sum;
  }

  void couple_pairs(Work& work) const {
    const int64_t n = svm.classes;
    size_t pair = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j, ++pair) {
        const double margin = work.scores[pair] * svm.prob_a[pair] + svm.prob_b[pair];
        const double ratio = std::clamp(1 / (1 + std::exp(margin)), 1e-7, 1 - 1e-7);
        work.ratios[static_cast<size_t>(i * n + j)] = ratio;
        work.ratios[static_cast<size_t>(j * n + i)] = 1 - ratio;
      }
    }
    couple(n, work.ratios.data(), work.q.data(), work.qp.data(), work.scores.data());
  }
};

Result<SvmClasses> parse_classes(const Attributes& attrs) {
  SvmClasses svm;
  FOLIO_TRY(svm.labels, ClassLabels::parse(attrs, "classlabels_ints", "classlabels_strings"));
  FOLIO_TRY(const std::vector<int64_t> per_class, attrs.get_ints("vectors_per_class"));
  FOLIO_TRY(svm.prob_a, attrs.get_floats("prob_a"));
  FOLIO_TRY(svm.prob_b, attrs.get_floats("prob_b"));
  FOLIO_TRY(svm.transform, parse_post_transform(attrs));
  svm.classes = svm.labels.count();
  if (svm.classes > 65535) return invalid_graph(svm.classes, " classes, expected 65535 at most");
  svm.pairs = svm.classes * (svm.classes - 1) / 2;
  svm.first.push_back(0);
  for (const int64_t count : per_class) {
    if (count < 0 || count > (int64_t{1} << 31)) {
      return invalid_graph("attribute 'vectors_per_class' holds ", count);
    }
    svm.first.push_back(svm.first.back() + count);
  }
  const int64_t vectors = svm.first.back();
  FOLIO_TRY(svm.model, parse_model(attrs, vectors, svm.classes));
  svm.positive = std::all_of(svm.model.coefficients.begin(), svm.model.coefficients.end(),
                             [](float c) { return c >= 0; });
  if (vectors == 0) {
    svm.first = {0};
    svm.prob_a.clear();  // a linear model has no pairs
    return svm;
  }
  const auto pairs = static_cast<size_t>(svm.pairs);
  const auto needed = static_cast<size_t>(svm.classes - 1) * static_cast<size_t>(vectors);
  const bool has_probabilities = !svm.prob_a.empty();
  if (per_class.size() != static_cast<size_t>(svm.classes) || svm.model.rho.size() < pairs ||
      svm.model.coefficients.size() < needed || svm.prob_a.size() != svm.prob_b.size() ||
      (has_probabilities && (svm.prob_a.size() < pairs || svm.classes < 2))) {
    return invalid_graph("vectors_per_class, rho, coefficients, prob_a or prob_b do not fit ",
                         svm.classes, " classes and ", vectors, " support vectors");
  }
  return svm;
}

Result<std::unique_ptr<OpKernel>> make_classifier(OpBuild& build) {
  auto kernel = std::make_unique<Classifier>();
  FOLIO_TRY(kernel->svm, parse_classes(build.attrs()));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_classes(OpInfer& infer) {
  FOLIO_TRY(const SvmClasses svm, parse_classes(infer.attrs()));
  return infer_classifier(infer, "classlabels_strings", Dim::of(svm.scores()));
}

}  // namespace

[[gnu::cold]] void register_svm(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "SVMRegressor";
  def.infer = infer_regressor;
  def.make = make_regressor;
  registry.add(def);
  def.type = "SVMClassifier";
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer_classes;
  def.make = make_classifier;
  registry.add(def);
}

}  // namespace folio
