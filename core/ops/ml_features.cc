// Preparation of features: Normalizer, Scaler, Binarizer, Imputer, FeatureVectorizer.
//
// Source: ONNX operator spec, ai.onnx.ml, version 1.
// Shapes: y has x's; FeatureVectorizer: [n, sum of inputdimensions].
// Math:   Normalizer: a row divided by its max, sum of absolute values, or Euclidean norm (by 1
//         when that is 0). Scaler: (x - offset) * scale, one number or
//         one per column. Binarizer: x > threshold. Imputer: replaced_value (NaN included) becomes
//         imputed_value. FeatureVectorizer: inputs side by side, cut or filled with zeros.
// Types:  x float, double, float16, int32, int64; y float. Binarizer, Imputer: float, double,
// int32,
//         int64.
#include <algorithm>
#include <cmath>

#include "core/base/checked_math.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_ml.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// ---------------------------------------------------------------- Normalizer

class Normalizer final : public OpKernel {
 public:
  enum class Norm : uint8_t { kMax, kL1, kL2 };
  Norm norm = Norm::kMax;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    FOLIO_TRY(const MlRows rows, ml_rows(*x));
    FOLIO_TRY(const float* from, ml_floats(run, 0));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, x->shape()));
    if (y->count() == 0) return Status::ok();  // of rows without columns there may be any number
    float* to = y->data_mut<float>();
    for (int64_t row = 0; row < rows.rows; ++row) {
      const float* line = from + row * rows.columns;
      double total = norm == Norm::kMax ? static_cast<double>(line[0]) : 0;
      for (int64_t i = 0; i < rows.columns; ++i) {
        const auto v = static_cast<double>(line[i]);
        total = norm == Norm::kMax  ? std::max(total, v)
                : norm == Norm::kL1 ? total + std::abs(v)
                                    : total + v * v;
      }
      if (norm == Norm::kL2) total = std::sqrt(total);
      if (total == 0) total = 1;
      for (int64_t i = 0; i < rows.columns; ++i) {
        to[row * rows.columns + i] = static_cast<float>(line[i] / total);
      }
    }
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_normalizer(OpBuild& build) {
  auto kernel = std::make_unique<Normalizer>();
  FOLIO_TRY(const std::string norm, build.attrs().get_string("norm", "MAX"));
  if (norm != "MAX" && norm != "L1" && norm != "L2") {
    return invalid_graph("attribute 'norm' is '", norm, "', expected MAX, L1 or L2");
  }
  kernel->norm = norm == "MAX"  ? Normalizer::Norm::kMax
                 : norm == "L1" ? Normalizer::Norm::kL1
                                : Normalizer::Norm::kL2;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_float(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, DType::kFloat, x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

Status infer_same(OpInfer& infer) {
  infer.set_output(0, infer.input(0));
  return Status::ok();
}

// ---------------------------------------------------------------- Scaler

class Scaler final : public OpKernel {
 public:
  std::vector<float> offset;
  std::vector<float> scale;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (x->rank() == 0) return invalid_argument("X is a scalar, expected rows of features");
    const int64_t columns = x->dim(x->rank() - 1);
    for (const auto* list : {&offset, &scale}) {
      if (list->size() != 1 && static_cast<int64_t>(list->size()) != columns) {
        return invalid_argument("X ", x->shape().to_string(), " has ", columns,
                                " features; offset and scale have ", offset.size(), " and ",
                                scale.size(), " entries");
      }
    }
    FOLIO_TRY(const float* from, ml_floats(run, 0));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, x->shape()));
    float* to = y->data_mut<float>();
    const size_t offset_step = offset.size() == 1 ? 0 : 1;
    const size_t scale_step = scale.size() == 1 ? 0 : 1;
    for (int64_t base = 0; base < x->count(); base += columns) {
      for (int64_t i = 0; i < columns; ++i) {
        const auto at = static_cast<size_t>(i);
        to[base + i] = (from[base + i] - offset[at * offset_step]) * scale[at * scale_step];
      }
    }
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_scaler(OpBuild& build) {
  auto kernel = std::make_unique<Scaler>();
  FOLIO_TRY(kernel->offset, build.attrs().get_floats("offset"));
  FOLIO_TRY(kernel->scale, build.attrs().get_floats("scale"));
  if (kernel->offset.empty()) kernel->offset = {0.0F};
  if (kernel->scale.empty()) kernel->scale = {1.0F};
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

// ---------------------------------------------------------------- Binarizer, Imputer

using MlTypes = TypeList<float, double, int32_t, int64_t>;

class Binarizer final : public OpKernel {
 public:
  float threshold = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(MlTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    FOLIO_TRY(Tensor * y, run.output(0, x->dtype(), x->shape()));
    dispatch(MlTypes{}, x->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0, end = x->count(); i < end; ++i) {
        const bool above = static_cast<double>(x->data<T>()[i]) > static_cast<double>(threshold);
        y->data_mut<T>()[i] = above ? T{1} : T{0};
      }
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_binarizer(OpBuild& build) {
  auto kernel = std::make_unique<Binarizer>();
  FOLIO_TRY(kernel->threshold, build.attrs().get_float("threshold", 0));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

class Imputer final : public OpKernel {
 public:
  std::vector<float> floats;
  std::vector<int64_t> ints;
  float replaced_float = 0;
  int64_t replaced_int = 0;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    switch (x->dtype()) {
      case DType::kFloat:
        return impute<float>(run, *x, floats, replaced_float);
      case DType::kDouble:
        return impute<double>(run, *x, floats, replaced_float);
      case DType::kInt32:
        return impute<int32_t>(run, *x, ints, replaced_int);
      case DType::kInt64:
        return impute<int64_t>(run, *x, ints, replaced_int);
      default:
        return wrong_type(0, x->dtype());
    }
  }

 private:
  template <typename T, typename V>
  static Status impute(OpRun& run, const Tensor& x, const std::vector<V>& values, V replaced) {
    if (x.rank() == 0) return invalid_argument("X is a scalar, expected rows of features");
    const int64_t columns = x.dim(x.rank() - 1);
    if (values.size() != 1 && static_cast<int64_t>(values.size()) != columns) {
      return invalid_argument("X ", x.shape().to_string(), " has ", columns, " features, but ",
                              values.size(), " imputed values are given for its type");
    }
    FOLIO_TRY(Tensor * y, run.output(0, x.dtype(), x.shape()));
    const bool replaces_nan = replaced != replaced;
    const size_t step = values.size() == 1 ? 0 : 1;
    for (int64_t base = 0; base < x.count(); base += columns) {
      for (int64_t i = 0; i < columns; ++i) {
        const T v = x.data<T>()[base + i];
        const bool hit = replaces_nan ? v != v : v == static_cast<T>(replaced);
        const V imputed = values[static_cast<size_t>(i) * step];
        y->data_mut<T>()[base + i] = hit ? static_cast<T>(imputed) : v;
      }
    }
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_imputer(OpBuild& build) {
  auto kernel = std::make_unique<Imputer>();
  FOLIO_TRY(kernel->floats, build.attrs().get_floats("imputed_value_floats"));
  FOLIO_TRY(kernel->ints, build.attrs().get_ints("imputed_value_int64s"));
  FOLIO_TRY(kernel->replaced_float, build.attrs().get_float("replaced_value_float", 0));
  FOLIO_TRY(kernel->replaced_int, build.attrs().get_int("replaced_value_int64", 0));
  if (kernel->floats.empty() == kernel->ints.empty()) {
    return invalid_graph("one of imputed_value_floats and imputed_value_int64s must be given");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

// ---------------------------------------------------------------- FeatureVectorizer

class FeatureVectorizer final : public OpKernel {
 public:
  std::vector<int64_t> dims;
  int64_t total = 0;

  Status run(OpRun& run) const override {
    int64_t rows = 0;
    for (int i = 0; i < run.input_count(); ++i) {
      FOLIO_TRY(const Tensor* x, run.tensor(i));
      FOLIO_TRY(const MlRows own, ml_rows(*x));
      if (i > 0 && own.rows != rows) {
        return invalid_argument("input ", i, " has ", own.rows, " rows, input 0 has ", rows);
      }
      rows = own.rows;
    }
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, Shape{rows, total}));
    if (y->count() == 0) return Status::ok();
    int64_t at = 0;
    for (int i = 0; i < run.input_count(); ++i) {
      const int64_t width = dims[static_cast<size_t>(i)];
      const int64_t columns = ml_rows(run.value(i).tensor()).take().columns;
      FOLIO_TRY(const float* x, ml_floats(run, i));
      const int64_t used = std::min(width, columns);
      for (int64_t row = 0; row < rows; ++row) {
        float* to = y->data_mut<float>() + row * total + at;
        std::copy_n(x + row * columns, used, to);
        std::fill_n(to + used, width - used, 0.0F);
      }
      at += width;
    }
    return Status::ok();
  }
};

Result<int64_t> vector_width(const Attributes& attrs, int inputs) {
  FOLIO_TRY(const std::vector<int64_t> dims, attrs.get_ints("inputdimensions"));
  int64_t total = 0;
  for (const int64_t dim : dims) {
    if (dim < 0 || !checked_add(total, dim, &total)) {
      return invalid_graph("attribute 'inputdimensions' holds ", dim);
    }
  }
  if (static_cast<int>(dims.size()) != inputs) {
    return invalid_graph("attribute 'inputdimensions' has ", dims.size(), " entries for ", inputs,
                         " inputs");
  }
  return total;
}

Result<std::unique_ptr<OpKernel>> make_vectorizer(OpBuild& build) {
  auto kernel = std::make_unique<FeatureVectorizer>();
  FOLIO_TRY(kernel->total, vector_width(build.attrs(), build.input_count()));
  FOLIO_TRY(kernel->dims, build.attrs().get_ints("inputdimensions"));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_vectorizer(OpInfer& infer) {
  FOLIO_TRY(const int64_t total, vector_width(infer.attrs(), infer.input_count()));
  return infer_ml_rows(infer, Dim::of(total));
}

void add(OpRegistry& registry, std::string_view type, int max_inputs, InferFn infer, MakeFn make) {
  registry.add({.domain = "ai.onnx.ml",
                .type = type,
                .min_inputs = 1,
                .max_inputs = max_inputs,
                .infer = infer,
                .make = make});
}

}  // namespace

[[gnu::cold]] void register_ml_features(OpRegistry& registry) {
  add(registry, "Normalizer", 1, infer_float, make_normalizer);
  add(registry, "Scaler", 1, infer_float, make_scaler);
  add(registry, "Binarizer", 1, infer_same, make_binarizer);
  add(registry, "Imputer", 1, infer_same, make_imputer);
  add(registry, "FeatureVectorizer", kVariadic, infer_vectorizer, make_vectorizer);
}

}  // namespace folio
