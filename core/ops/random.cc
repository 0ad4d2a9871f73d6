// Random numbers: RandomUniform, RandomNormal, their Like forms, Bernoulli, Multinomial.
//
// Source: ONNX operator spec: Random* opsets 1, 22; Multinomial 7, 22; Bernoulli 15, 22.
// Shapes: attribute shape, or the input's; Multinomial [batch, classes] -> [batch, sample_size].
// Math:   uniform in [low, high); normal by Box and Muller; Bernoulli: 1 with probability x;
//         Multinomial: classes drawn with probabilities softmax(x), x being logarithms.
//         With `seed` the first run of a kernel gives the same numbers in every process; each
//         later run goes on from there. The numbers are not those of other runtimes.
// Types:  y float, double, float16, bfloat16. Bernoulli: x float, double, float16, bfloat16; y all
//         numbers, bool. Multinomial: x float, double, float16, bfloat16; y int32, int64.
// Notes:  the numbers are not those of other runtimes.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

// SplitMix64: one addition and three mixing steps a number.
class Generator {
 public:
  explicit Generator(uint64_t state) : state_(state) {}

  uint64_t bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * 3.14159265358979323846 * uniform());
  }

 private:
  uint64_t state_;
};

// Where the streams of a kernel's runs start.
class Seed {
 public:
  static Result<Seed> parse(const Attributes& attrs) {
    Seed seed;
    if (attrs.has("seed")) {
      FOLIO_TRY(const float value, attrs.get_float("seed", 0));
      uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      seed.base_ = bits;
    } else {
      std::random_device device;
      seed.base_ = static_cast<uint64_t>(device()) << 32 | device();
    }
    return seed;
  }
  Generator stream(uint64_t run) const {
    return Generator(Generator(base_ + run * 0xd1342543de82ef95u).bits());
  }

 private:
  uint64_t base_ = 0;
};

class RandomKernel : public OpKernel {
 public:
  Seed seed;
  DType dtype = DType::kUndefined;  // kUndefined: the input's

 protected:
  // A generator of its own for this run; runs of several threads differ.
  Generator next() const { return seed.stream(runs_.fetch_add(1, std::memory_order_relaxed)); }

 private:
  mutable std::atomic<uint64_t> runs_{0};
};

Result<DType> dtype_attr(const Attributes& attrs, DType fallback) {
  FOLIO_TRY(const int64_t number, attrs.get_int("dtype", static_cast<int64_t>(fallback)));
  if (number != 0 && !dtype_known(number)) {
    return invalid_graph("attribute 'dtype' is ", number, ", which is no element type");
  }
  return static_cast<DType>(number);
}

// ---------------------------------------------------------------- uniform, normal

class Random final : public RandomKernel {
 public:
  bool is_normal = false;
  bool is_like = false;
  Shape shape;
  double first = 0;   // low, or mean
  double second = 1;  // high, or scale

  Status run(OpRun& run) const override {
    Shape out = shape;
    DType type = dtype;
    if (is_like) {
      FOLIO_TRY(const Tensor* like, run.tensor(0));
      out = like->shape();
      if (type == DType::kUndefined) type = like->dtype();
    }
    if (!contains(FloatTypes{}, type)) {
      return invalid_argument("random numbers of type ", dtype_name(type));
    }
    FOLIO_TRY(Tensor * y, run.output(0, type, out));
    Generator generator = next();
    dispatch(FloatTypes{}, type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0, end = y->count(); i < end; ++i) {
        const double value = is_normal ? first + second * generator.normal()
                                       : first + (second - first) * generator.uniform();
        y->data_mut<T>()[i] = static_cast<T>(static_cast<Compute<T>>(value));
      }
    });
    return Status::ok();
  }
};

bool is_like_type(const std::string& type) { return type.ends_with("Like"); }

Result<Shape> shape_attr(const Attributes& attrs) {
  if (!attrs.has("shape")) return invalid_graph("attribute 'shape' is required but missing");
  FOLIO_TRY(const std::vector<int64_t> dims, attrs.get_ints("shape"));
  return shape_from(dims);
}

Result<std::unique_ptr<OpKernel>> make_random(OpBuild& build) {
  auto kernel = std::make_unique<Random>();
  const Attributes& attrs = build.attrs();
  kernel->is_normal = build.node().op_type.starts_with("RandomNormal");
  kernel->is_like = is_like_type(build.node().op_type);
  FOLIO_TRY(kernel->seed, Seed::parse(attrs));
  FOLIO_TRY(kernel->dtype, dtype_attr(attrs, kernel->is_like ? DType::kUndefined : DType::kFloat));
  FOLIO_TRY(kernel->first, attrs.get_float(kernel->is_normal ? "mean" : "low", 0));
  FOLIO_TRY(kernel->second, attrs.get_float(kernel->is_normal ? "scale" : "high", 1));
  if (!kernel->is_like) {
    FOLIO_TRY(kernel->shape, shape_attr(attrs));
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_random(OpInfer& infer) {
  const bool is_like = is_like_type(infer.node().op_type);
  FOLIO_TRY(DType dtype, dtype_attr(infer.attrs(), is_like ? DType::kUndefined : DType::kFloat));
  Dims out;
  if (is_like) {
    if (dtype == DType::kUndefined) dtype = infer.dtype(0);
    const Dims* x = infer.dims_of(0);
    infer.set_tensor(0, dtype, x ? std::optional<Dims>(*x) : std::nullopt);
    return Status::ok();
  }
  FOLIO_TRY(const Shape shape, shape_attr(infer.attrs()));
  for (const int64_t dim : shape.dims()) out.push_back(Dim::of(dim));
  infer.set_tensor(0, dtype, std::move(out));
  return Status::ok();
}

// ---------------------------------------------------------------- Bernoulli

using BernoulliTypes = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t,
                                uint8_t, uint16_t, uint32_t, uint64_t, bool>;

class Bernoulli final : public RandomKernel {
 public:
  [[gnu::cold]] Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    const DType type = dtype == DType::kUndefined ? x->dtype() : dtype;
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    if (!contains(BernoulliTypes{}, type)) {
      return invalid_argument("Bernoulli of type ", dtype_name(type));
    }
    FOLIO_TRY(Tensor * y, run.output(0, type, x->shape()));
    Generator generator = next();
    dispatch(FloatTypes{}, x->dtype(), [&](auto from) {
      using X = typename decltype(from)::type;
      dispatch(BernoulliTypes{}, type, [&](auto to) {
        using T = typename decltype(to)::type;
        for (int64_t i = 0, end = x->count(); i < end; ++i) {
          const double p = static_cast<Compute<X>>(x->data<X>()[i]);
          y->data_mut<T>()[i] = static_cast<T>(static_cast<Compute<T>>(generator.uniform() < p));
        }
      });
    });
    return Status::ok();
  }
};

Result<std::unique_ptr<OpKernel>> make_bernoulli(OpBuild& build) {
  auto kernel = std::make_unique<Bernoulli>();
  FOLIO_TRY(kernel->seed, Seed::parse(build.attrs()));
  FOLIO_TRY(kernel->dtype, dtype_attr(build.attrs(), DType::kUndefined));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_bernoulli(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, dtype_attr(infer.attrs(), DType::kUndefined));
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, dtype == DType::kUndefined ? infer.dtype(0) : dtype,
                   x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

// ---------------------------------------------------------------- Multinomial

class Multinomial final : public RandomKernel {
 public:
  int64_t samples = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    if (!contains(FloatTypes{}, x->dtype())) return wrong_type(0, x->dtype());
    if (x->rank() != 2 || x->dim(1) < 1) {
      return invalid_argument("X ", x->shape().to_string(), " must be [batch, classes]");
    }
    FOLIO_TRY(Tensor * y, run.output(0, dtype, Shape{x->dim(0), samples}));
    const int64_t classes = x->dim(1);
    FOLIO_TRY(uint8_t * bytes, run.scratch(static_cast<size_t>(classes) * sizeof(double)));
    auto* sums = reinterpret_cast<double*>(bytes);
    Generator generator = next();
    for (int64_t row = 0; row < x->dim(0); ++row) {
      dispatch(FloatTypes{}, x->dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        cumulate(x->data<T>() + row * classes, classes, sums);
      });
      for (int64_t i = 0; i < samples; ++i) {
        const double at = generator.uniform() * sums[classes - 1];
        const int64_t drawn =
            std::min<int64_t>(std::upper_bound(sums, sums + classes, at) - sums, classes - 1);
        if (dtype == DType::kInt32) {
          y->data_mut<int32_t>()[row * samples + i] = static_cast<int32_t>(drawn);
        } else {
          y->data_mut<int64_t>()[row * samples + i] = drawn;
        }
      }
    }
    return Status::ok();
  }

 private:
  // Running sums of exp(x - max).
  template <typename T>
  static void cumulate(const T* x, int64_t n, double* sums) {
    double most = static_cast<Compute<T>>(x[0]);
    for (int64_t i = 1; i < n; ++i) most = std::max<double>(most, static_cast<Compute<T>>(x[i]));
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += std::exp(static_cast<double>(static_cast<Compute<T>>(x[i])) - most);
      sums[i] = sum;
    }
  }
};

Result<DType> multinomial_type(const Attributes& attrs) {
  FOLIO_TRY(const DType dtype, dtype_attr(attrs, DType::kInt32));
  if (dtype == DType::kInt32 || dtype == DType::kInt64) return dtype;
  return invalid_graph("attribute 'dtype' is ", dtype_name(dtype), ", expected int32 or int64");
}

Result<std::unique_ptr<OpKernel>> make_multinomial(OpBuild& build) {
  auto kernel = std::make_unique<Multinomial>();
  FOLIO_TRY(kernel->seed, Seed::parse(build.attrs()));
  FOLIO_TRY(kernel->dtype, multinomial_type(build.attrs()));
  FOLIO_TRY(kernel->samples, build.attrs().get_int("sample_size", 1));
  if (kernel->samples < 0) return invalid_graph("attribute 'sample_size' is ", kernel->samples);
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_multinomial(OpInfer& infer) {
  FOLIO_TRY(const DType dtype, multinomial_type(infer.attrs()));
  FOLIO_TRY(const int64_t samples, infer.attrs().get_int("sample_size", 1));
  const Dims* x = infer.dims_of(0);
  const Dim batch = x && x->size() == 2 ? (*x)[0] : Dim::unknown();
  infer.set_tensor(0, dtype, Dims{batch, samples < 0 ? Dim::unknown() : Dim::of(samples)});
  return Status::ok();
}

void add(OpRegistry& registry, std::string_view type, int since, int inputs, InferFn infer,
         MakeFn make) {
  registry.add({.domain = "",
                .type = type,
                .since = since,
                .min_inputs = inputs,
                .max_inputs = inputs,
                .infer = infer,
                .make = make,
                .foldable = false});
}

}  // namespace

[[gnu::cold]] void register_random(OpRegistry& registry) {
  add(registry, "RandomUniform", 1, 0, infer_random, make_random);
  add(registry, "RandomNormal", 1, 0, infer_random, make_random);
  add(registry, "RandomUniformLike", 1, 1, infer_random, make_random);
  add(registry, "RandomNormalLike", 1, 1, infer_random, make_random);
  add(registry, "Bernoulli", 15, 1, infer_bernoulli, make_bernoulli);
  add(registry, "Multinomial", 7, 1, infer_multinomial, make_multinomial);
}

}  // namespace folio
