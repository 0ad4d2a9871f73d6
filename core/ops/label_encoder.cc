// From one set of labels to another: LabelEncoder, CategoryMapper, OneHotEncoder.
//
// Source: ONNX operator spec, ai.onnx.ml: LabelEncoder 1 (classes_strings, both ways), 2 (lists of
//         keys and values), 4 (tensors); CategoryMapper 1; OneHotEncoder 1.
// Shapes: y has x's; OneHotEncoder: x's and [categories].
// Math:   a key that is not known gives the default; NaN is a key like any other. OneHotEncoder:
//         all zeros, or an error when zeros is 0.
// Types:  LabelEncoder: strings, int64, float; version 4 also double, int32, int16.
//         CategoryMapper: strings to int64, int64 to strings. OneHotEncoder: strings, float,
//         double, int16, int32, int64; y float.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

using KeyNumbers = TypeList<float, double, int64_t, int32_t, int16_t>;

// Position of each key.
class KeyIndex {
 public:
  static Result<KeyIndex> of(const Tensor& keys) {
    KeyIndex index;
    index.dtype_ = keys.dtype();
    for (int64_t i = 0, end = keys.count(); keys.is_string() && i < end; ++i) {
      index.strings_.emplace(keys.data<std::string>()[i], i);
    }
    if (keys.is_string()) return index;
    const bool known = dispatch(KeyNumbers{}, keys.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0, end = keys.count(); i < end; ++i) index.add(keys.data<T>()[i], i);
    });
    if (!known) return invalid_graph("keys of type ", dtype_name(keys.dtype()));
    return index;
  }

  DType dtype() const { return dtype_; }

  // Calls body(i, position or -1) for each element of x, whose type need not be the keys'.
  template <typename Body>
  Status for_each(const Tensor& x, Body&& body) const {
    if (x.is_string() != (dtype_ == DType::kString)) {
      return invalid_argument("X is ", dtype_name(x.dtype()), ", the keys are ",
                              dtype_name(dtype_));
    }
    for (int64_t i = 0, end = x.count(); x.is_string() && i < end; ++i) {
      const auto found = strings_.find(x.data<std::string>()[i]);
      body(i, found == strings_.end() ? -1 : found->second);
    }
    if (x.is_string()) return Status::ok();
    const bool known = dispatch(KeyNumbers{}, x.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0, end = x.count(); i < end; ++i) body(i, find(x.data<T>()[i]));
    });
    return known ? Status::ok() : wrong_type(0, x.dtype());
  }

 private:
  template <typename T>
  void add(T key, int64_t at) {
    if constexpr (std::is_integral_v<T>) {
      ints_.emplace(key, at);
    } else if (std::isnan(key)) {
      if (nan_ < 0) nan_ = at;
    } else {
      floats_.emplace(static_cast<double>(key), at);
    }
  }

  template <typename T>
  int64_t find(T key) const {
    if (std::is_floating_point_v<T> && key != key) return nan_;
    if constexpr (std::is_integral_v<T>) {
      if (floats_.empty()) return at_or_none(ints_, static_cast<int64_t>(key));
    } else if (floats_.empty()) {
      // Whole numbers among integer keys.
      const auto whole = saturating_cast<int64_t>(key);
      return static_cast<T>(whole) == key ? at_or_none(ints_, whole) : -1;
    }
    return at_or_none(floats_, static_cast<double>(key));
  }

  template <typename Map, typename Key>
  static int64_t at_or_none(const Map& map, Key key) {
    const auto found = map.find(key);
    return found == map.end() ? -1 : found->second;
  }

  DType dtype_ = DType::kUndefined;
  std::unordered_map<std::string, int64_t> strings_;
  std::unordered_map<int64_t, int64_t> ints_;
  std::unordered_map<double, int64_t> floats_;
  int64_t nan_ = -1;
};

// Keys, the value of each, and the value of all others.
struct LabelMap {
  KeyIndex keys;
  Tensor values;
  Tensor fallback;  // one element of the values' type
};

Status run_map(OpRun& run, const LabelMap& map) {
  FOLIO_TRY(const Tensor* x, run.tensor(0));
  FOLIO_TRY(Tensor * y, run.output(0, map.values.dtype(), x->shape()));
  return map.keys.for_each(*x, [&](int64_t i, int64_t at) {
    move_element(at < 0 ? map.fallback : map.values, std::max<int64_t>(at, 0), y, i);
  });
}

Result<Tensor> strings_tensor(const std::vector<std::string>& strings) {
  FOLIO_TRY(Tensor tensor,
            allocate_tensor(DType::kString, Shape{static_cast<int64_t>(strings.size())}));
  std::copy(strings.begin(), strings.end(), tensor.data_mut<std::string>());
  return tensor;
}

Result<Tensor> ints_tensor(const std::vector<int64_t>& ints) {
  return make_int64_tensor(ints, Shape{static_cast<int64_t>(ints.size())});
}

Result<Tensor> floats_tensor(const std::vector<float>& floats) {
  FOLIO_TRY(Tensor tensor,
            allocate_tensor(DType::kFloat, Shape{static_cast<int64_t>(floats.size())}));
  std::copy(floats.begin(), floats.end(), tensor.data_mut<float>());
  return tensor;
}

Result<LabelMap> make_map(const Tensor& keys, Tensor values, Tensor fallback) {
  if (keys.count() != values.count()) {
    return invalid_graph(keys.count(), " keys for ", values.count(), " values");
  }
  LabelMap map;
  FOLIO_TRY(map.keys, KeyIndex::of(keys));
  map.values = std::move(values);
  map.fallback = std::move(fallback);
  return map;
}

// ---------------------------------------------------------------- both ways

// LabelEncoder 1 and CategoryMapper: strings become numbers, numbers become strings.
class TwoWay final : public OpKernel {
 public:
  LabelMap to_ints;
  LabelMap to_strings;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    return run_map(run, x->is_string() ? to_ints : to_strings);
  }
};

Result<std::unique_ptr<OpKernel>> make_two_way(OpBuild& build) {
  auto kernel = std::make_unique<TwoWay>();
  const bool is_mapper = build.node().op_type == "CategoryMapper";
  const Attributes& attrs = build.attrs();
  FOLIO_TRY(const std::vector<std::string> names,
            attrs.get_strings(is_mapper ? "cats_strings" : "classes_strings"));
  FOLIO_TRY(std::vector<int64_t> numbers, attrs.get_ints("cats_int64s"));
  for (size_t i = 0; !is_mapper && i < names.size(); ++i) {
    numbers.push_back(static_cast<int64_t>(i));
  }
  FOLIO_TRY(const int64_t default_int, attrs.get_int("default_int64", -1));
  FOLIO_TRY(const std::string default_string, attrs.get_string("default_string", "_Unused"));
  FOLIO_TRY(const Tensor strings, strings_tensor(names));
  FOLIO_TRY(const Tensor ints, ints_tensor(numbers));
  FOLIO_TRY(const Tensor fallback_int, ints_tensor({default_int}));
  FOLIO_TRY(const Tensor fallback_string, strings_tensor({default_string}));
  FOLIO_TRY(kernel->to_ints, make_map(strings, ints, fallback_int));
  FOLIO_TRY(kernel->to_strings, make_map(ints, strings, fallback_string));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_two_way(OpInfer& infer) {
  const Dims* x = infer.dims_of(0);
  if (!infer.input(0).is_tensor()) return Status::ok();
  infer.set_tensor(0, infer.dtype(0) == DType::kString ? DType::kInt64 : DType::kString,
                   x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

// ---------------------------------------------------------------- LabelEncoder 2 and 4

// `keys` or `values`: as a tensor, strings, int64s or floats.
Result<Tensor> side_of(const Attributes& attrs, const std::string& side) {
  if (attrs.has(side + "_tensor")) {
    FOLIO_TRY(const Tensor tensor, attrs.get_tensor(side + "_tensor"));
    return aligned(tensor);
  }
  if (attrs.has(side + "_strings")) {
    FOLIO_TRY(const std::vector<std::string> strings, attrs.get_strings(side + "_strings"));
    return strings_tensor(strings);
  }
  if (attrs.has(side + "_int64s")) {
    FOLIO_TRY(const std::vector<int64_t> ints, attrs.get_ints(side + "_int64s"));
    return ints_tensor(ints);
  }
  if (attrs.has(side + "_floats")) {
    FOLIO_TRY(const std::vector<float> floats, attrs.get_floats(side + "_floats"));
    return floats_tensor(floats);
  }
  return invalid_graph("no attribute '", side, "_*' is given");
}

Result<Tensor> fallback_of(const Attributes& attrs, DType dtype) {
  if (attrs.has("default_tensor")) {
    FOLIO_TRY(const Tensor given, attrs.get_tensor("default_tensor"));
    if (given.dtype() != dtype || given.count() != 1) {
      return invalid_graph("attribute 'default_tensor' is ", dtype_name(given.dtype()),
                           given.shape().to_string(), ", expected one ", dtype_name(dtype));
    }
    return aligned(given);
  }
  FOLIO_TRY(const float default_float, attrs.get_float("default_float", -0.0F));
  FOLIO_TRY(const int64_t default_int, attrs.get_int("default_int64", -1));
  FOLIO_TRY(const std::string default_string, attrs.get_string("default_string", "_Unused"));
  FOLIO_TRY(Tensor fallback, allocate_tensor(dtype, Shape{1}));
  if (dtype == DType::kString) *fallback.data_mut<std::string>() = default_string;
  dispatch(KeyNumbers{}, dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *fallback.data_mut<T>() =
        std::is_integral_v<T> ? static_cast<T>(default_int) : static_cast<T>(default_float);
  });
  return fallback;
}

class LabelEncoder final : public OpKernel {
 public:
  LabelMap map;
  Status run(OpRun& run) const override { return run_map(run, map); }
};

Result<std::unique_ptr<OpKernel>> make_encoder(OpBuild& build) {
  auto kernel = std::make_unique<LabelEncoder>();
  FOLIO_TRY(const Tensor keys, side_of(build.attrs(), "keys"));
  FOLIO_TRY(Tensor values, side_of(build.attrs(), "values"));
  if (!values.is_string() && !contains(KeyNumbers{}, values.dtype())) {
    return invalid_graph("values of type ", dtype_name(values.dtype()));
  }
  FOLIO_TRY(Tensor fallback, fallback_of(build.attrs(), values.dtype()));
  FOLIO_TRY(kernel->map, make_map(keys, std::move(values), std::move(fallback)));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_encoder(OpInfer& infer) {
  FOLIO_TRY(const Tensor values, side_of(infer.attrs(), "values"));
  const Dims* x = infer.dims_of(0);
  infer.set_tensor(0, values.dtype(), x ? std::optional<Dims>(*x) : std::nullopt);
  return Status::ok();
}

// ---------------------------------------------------------------- OneHotEncoder

class OneHotEncoder final : public OpKernel {
 public:
  KeyIndex keys;
  int64_t categories = 0;
  bool zeros = true;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0));
    std::vector<int64_t> dims(x->shape().begin(), x->shape().end());
    dims.push_back(categories);
    FOLIO_TRY(const Shape shape, shape_from(dims));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, shape));
    float* out = y->data_mut<float>();
    std::fill_n(out, y->count(), 0.0F);
    bool unknown = false;
    FOLIO_RETURN_IF_ERROR(keys.for_each(*x, [&](int64_t i, int64_t at) {
      if (at >= 0) out[i * categories + at] = 1.0F;
      unknown |= at < 0;
    }));
    if (unknown && !zeros) return invalid_argument("X holds a category that is not listed");
    return Status::ok();
  }
};

Result<Tensor> categories_of(const Attributes& attrs) {
  FOLIO_TRY(const std::vector<std::string> strings, attrs.get_strings("cats_strings"));
  FOLIO_TRY(const std::vector<int64_t> ints, attrs.get_ints("cats_int64s"));
  if (strings.empty() == ints.empty()) {
    return invalid_graph("exactly one of cats_int64s and cats_strings must hold categories");
  }
  return strings.empty() ? ints_tensor(ints) : strings_tensor(strings);
}

Result<std::unique_ptr<OpKernel>> make_one_hot(OpBuild& build) {
  auto kernel = std::make_unique<OneHotEncoder>();
  FOLIO_TRY(const Tensor categories, categories_of(build.attrs()));
  FOLIO_TRY(kernel->keys, KeyIndex::of(categories));
  FOLIO_TRY(const int64_t zeros, build.attrs().get_int("zeros", 1));
  kernel->categories = categories.count();
  kernel->zeros = zeros != 0;
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_one_hot(OpInfer& infer) {
  FOLIO_TRY(const Tensor categories, categories_of(infer.attrs()));
  infer.set_tensor(0, DType::kFloat);
  if (!infer.dims_of(0)) return Status::ok();
  Dims out = *infer.dims_of(0);
  out.push_back(Dim::of(categories.count()));
  infer.set_tensor(0, DType::kFloat, std::move(out));
  return Status::ok();
}

void add(OpRegistry& registry, std::string_view type, int since, int until, InferFn infer,
         MakeFn make) {
  registry.add({.domain = "ai.onnx.ml",
                .type = type,
                .since = since,
                .until = until,
                .infer = infer,
                .make = make});
}

}  // namespace

[[gnu::cold]] void register_label_encoder(OpRegistry& registry) {
  add(registry, "LabelEncoder", 1, 1, infer_two_way, make_two_way);
  add(registry, "LabelEncoder", 2, kLatest, infer_encoder, make_encoder);
  add(registry, "CategoryMapper", 1, kLatest, infer_two_way, make_two_way);
  add(registry, "OneHotEncoder", 1, kLatest, infer_one_hot, make_one_hot);
}

}  // namespace folio
