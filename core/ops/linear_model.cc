// LinearClassifier and LinearRegressor.
//
// Source: ONNX operator spec, ai.onnx.ml, version 1.
// Shapes: x [n, features], coefficients [targets, features], intercepts [targets] -> labels [n]
//         and scores [n, classes], or y [n, targets].
// Math:   scores = x * coefficients^T + intercepts, then post_transform. The label is the class of
//         the highest score; one score for two labels: op_ml.h (a label wins above 0).
// Types:  float, double, float16, int32, int64; computed in float.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_ml.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

struct LinearModel {
  std::vector<float> coefficients;
  std::vector<float> intercepts;
  int64_t targets = 1;
  PostTransform transform = PostTransform::kRaw;

  static Result<LinearModel> parse(const Attributes& attrs, int64_t targets) {
    LinearModel model;
    FOLIO_TRY(model.coefficients, attrs.get_floats("coefficients"));
    FOLIO_TRY(model.intercepts, attrs.get_floats("intercepts"));
    FOLIO_TRY(model.transform, parse_post_transform(attrs));
    model.targets = targets;
    const auto count = static_cast<int64_t>(model.intercepts.size());
    if (targets < 1 || model.coefficients.empty() || (count != 0 && count != targets)) {
      return invalid_graph(model.coefficients.size(), " coefficients and ", count,
                           " intercepts for ", targets, " targets");
    }
    return model;
  }

  // [rows, targets] in scratch, not transformed.
  Result<float*> scores(OpRun& run, const MlRows& rows) const {
    int64_t expected = 0;
    if (!checked_mul(targets, rows.columns, &expected) ||
        expected != static_cast<int64_t>(coefficients.size())) {
      return invalid_argument(coefficients.size(), " coefficients do not fit ", rows.columns,
                              " features and ", targets, " targets");
    }
    FOLIO_TRY(const float* x, ml_floats(run, 0));
    FOLIO_TRY(uint8_t * bytes,
              run.scratch(static_cast<size_t>(rows.rows * targets) * sizeof(float)));
    FolioGemmF32 args{};
    args.m = rows.rows;
    args.n = targets;
    args.k = rows.columns;
    args.a = x;
    args.a_row_stride = rows.columns;
    args.a_col_stride = 1;
    args.c = reinterpret_cast<float*>(bytes);
    args.c_row_stride = targets;
    args.col_bias = intercepts.empty() ? nullptr : intercepts.data();
    args.alpha = 1.0F;
    GemmB b;
    b.data = coefficients.data();
    b.row_stride = 1;
    b.col_stride = rows.columns;
    b.unpacked = true;
    FOLIO_RETURN_IF_ERROR(gemm_f32(run, args, b));
    return args.c;
  }
};

// Transforms a row of floats.
void transform_row(PostTransform transform, int64_t n, const float* from, double* work, float* to) {
  std::copy_n(from, n, work);
  apply_post_transform(transform, n, work);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(work[i]);
}

class Classifier final : public OpKernel {
 public:
  LinearModel model;
  ClassLabels labels;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, ml_rows(*x));
    FOLIO_TRY(const float* scores, model.scores(run, rows));
    const bool expands = model.targets == 1 && labels.count() == 2;
    const int64_t columns = expands ? 2 : model.targets;
    FOLIO_TRY(Tensor * y, run.output(0, labels.dtype(), Shape{rows.rows}));
    FOLIO_TRY(Tensor * z, run.output(1, DType::kFloat, Shape{rows.rows, columns}));
    std::vector<double> work(static_cast<size_t>(columns));
    for (int64_t row = 0; row < rows.rows; ++row) {
      const float* from = scores + row * model.targets;
      float* to = z->data_mut<float>() + row * columns;
      if (!expands) transform_row(model.transform, columns, from, work.data(), to);
      if (expands) {
        double pair[2];
        labels.write(*from > 0 ? 1 : 0, row, y);
        const bool is_margin = model.transform == PostTransform::kLogistic;
        expand_binary(model.transform, is_margin ? BinaryScore::kMargin : BinaryScore::kProbability,
                      *from, pair);
        to[0] = static_cast<float>(pair[0]);
        to[1] = static_cast<float>(pair[1]);
      } else if (model.targets == 1) {
        labels.write_sign(*from > 0, row, y);
      } else {
        labels.write(std::max_element(from, from + columns) - from, row, y);
      }
    }
    return Status::ok();
  }
};

class Regressor final : public OpKernel {
 public:
  LinearModel model;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, ml_rows(*x));
    FOLIO_TRY(const float* scores, model.scores(run, rows));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, Shape{rows.rows, model.targets}));
    std::vector<double> work(static_cast<size_t>(model.targets));
    for (int64_t row = 0; row < rows.rows; ++row) {
      transform_row(model.transform, model.targets, scores + row * model.targets, work.data(),
                    y->data_mut<float>() + row * model.targets);
    }
    return Status::ok();
  }
};

// One row of coefficients for each intercept, or for each label.
Result<int64_t> class_targets(const Attributes& attrs, const ClassLabels& labels) {
  FOLIO_TRY(const std::vector<float> intercepts, attrs.get_floats("intercepts"));
  const int64_t targets =
      intercepts.empty() ? labels.count() : static_cast<int64_t>(intercepts.size());
  if (targets > 1 && targets > labels.count()) {
    return invalid_graph(targets, " intercepts for ", labels.count(), " class labels");
  }
  return targets;
}

Result<std::unique_ptr<OpKernel>> make_classifier(OpBuild& build) {
  auto kernel = std::make_unique<Classifier>();
  FOLIO_TRY(kernel->labels,
            ClassLabels::parse(build.attrs(), "classlabels_ints", "classlabels_strings"));
  FOLIO_TRY(const int64_t targets, class_targets(build.attrs(), kernel->labels));
  FOLIO_TRY(kernel->model, LinearModel::parse(build.attrs(), targets));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Result<std::unique_ptr<OpKernel>> make_regressor(OpBuild& build) {
  auto kernel = std::make_unique<Regressor>();
  FOLIO_TRY(const int64_t targets, build.attrs().get_int("targets", 1));
  FOLIO_TRY(kernel->model, LinearModel::parse(build.attrs(), targets));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_classes(OpInfer& infer) {
  FOLIO_TRY(const ClassLabels labels,
            ClassLabels::parse(infer.attrs(), "classlabels_ints", "classlabels_strings"));
  FOLIO_TRY(const int64_t targets, class_targets(infer.attrs(), labels));
  const bool expands = targets == 1 && labels.count() == 2;
  return infer_classifier(infer, "classlabels_strings", Dim::of(expands ? 2 : targets));
}

Status infer_targets(OpInfer& infer) {
  FOLIO_TRY(const int64_t targets, infer.attrs().get_int("targets", 1));
  return infer_ml_rows(infer, targets < 1 ? Dim::unknown() : Dim::of(targets));
}

}  // namespace

[[gnu::cold]] void register_linear_model(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "LinearClassifier";
  def.min_outputs = def.max_outputs = 2;
  def.infer = infer_classes;
  def.make = make_classifier;
  registry.add(def);
  def.type = "LinearRegressor";
  def.min_outputs = def.max_outputs = 1;
  def.infer = infer_targets;
  def.make = make_regressor;
  registry.add(def);
}

}  // namespace folio
