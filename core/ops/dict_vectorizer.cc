// Maps to tensors: DictVectorizer and CastMap.
//
// Source: ONNX operator spec, ai.onnx.ml, version 1.
// Shapes: DictVectorizer: [1, vocabulary]; CastMap: [1, entries] (DENSE, by key) or [1, max_map]
//         (SPARSE, an entry stands at its key).
// Math:   what has no entry is 0 or "". CastMap's cast_to makes floats, int64s (truncated) or
//         strings (six decimals).
// Types:  DictVectorizer: maps from int64 or strings to all types but those of 2 and 4 bits.
//         CastMap: maps from int64 to float or strings; y float, int64, strings.
// Errors: kInvalidArgument for other maps, keys outside max_map, strings that are no number.
#include <algorithm>
#include <charconv>

#include "core/ops/op_dispatch.h"
#include "core/ops/op_move.h"
#include "core/ops/op_registry.h"

namespace folio {
namespace {

Result<const MapData*> map_input(const OpRun& run) {
  if (!run.has_input(0) || run.value(0).kind() != Value::Kind::kMap) {
    return invalid_argument("input 0 is not a map");
  }
  const MapData& map = run.value(0).map();
  if (map.keys.count() != map.values.count()) {
    return invalid_argument("a map has ", map.keys.count(), " keys and ", map.values.count(),
                            " values");
  }
  return &map;
}

void clear(Tensor* y) {
  if (!y->is_string()) std::fill_n(y->raw_mut(), y->bytes(), uint8_t{0});
}

// ---------------------------------------------------------------- DictVectorizer

class DictVectorizer final : public OpKernel {
 public:
  std::vector<int64_t> ints;
  std::vector<std::string> strings;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const MapData* map, map_input(run));
    const bool by_string = !strings.empty();
    if (map->keys.dtype() != (by_string ? DType::kString : DType::kInt64)) {
      return invalid_argument("the map's keys are ", dtype_name(map->keys.dtype()),
                              ", the vocabulary is not");
    }
    FOLIO_RETURN_IF_ERROR(check_whole_bytes(map->values));
    const auto count = static_cast<int64_t>(by_string ? strings.size() : ints.size());
    FOLIO_TRY(Tensor * y, run.output(0, map->values.dtype(), Shape{1, count}));
    clear(y);
    for (int64_t i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      const int64_t found = by_string ? find(map->keys, strings[at]) : find(map->keys, ints[at]);
      if (found < map->keys.count()) move_element(map->values, found, y, i);
    }
    return Status::ok();
  }

 private:
  template <typename T>
  static int64_t find(const Tensor& keys, const T& key) {
    const T* begin = keys.data<T>();
    return std::find(begin, begin + keys.count(), key) - begin;
  }
};

Result<std::unique_ptr<OpKernel>> make_vectorizer(OpBuild& build) {
  auto kernel = std::make_unique<DictVectorizer>();
  FOLIO_TRY(kernel->ints, build.attrs().get_ints("int64_vocabulary"));
  FOLIO_TRY(kernel->strings, build.attrs().get_strings("string_vocabulary"));
  if (kernel->ints.empty() == kernel->strings.empty()) {
    return invalid_graph("exactly one of int64_vocabulary and string_vocabulary must be given");
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

Status infer_vectorizer(OpInfer& infer) {
  FOLIO_TRY(const std::vector<int64_t> ints, infer.attrs().get_ints("int64_vocabulary"));
  FOLIO_TRY(const std::vector<std::string> strings, infer.attrs().get_strings("string_vocabulary"));
  const TypeInfo& map = infer.input(0);
  if (map.kind != TypeInfo::Kind::kMap || !map.element) return Status::ok();
  const auto count = static_cast<int64_t>(std::max(ints.size(), strings.size()));
  infer.set_tensor(0, map.element->dtype, Dims{Dim::of(1), Dim::of(count)});
  return Status::ok();
}

// ---------------------------------------------------------------- CastMap

Result<double> number_of(const Tensor& values, int64_t i) {
  if (values.dtype() == DType::kFloat) return static_cast<double>(values.data<float>()[i]);
  const std::string& text = values.data<std::string>()[i];
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return invalid_argument("the map's value '", text, "' is no number");
  }
  return number;
}

std::string text_of(const Tensor& values, int64_t i) {
  if (values.is_string()) return values.data<std::string>()[i];
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), values.data<float>()[i],
                                 std::chars_format::fixed, 6);
  return std::string(text, end.ptr);
}

class CastMap final : public OpKernel {
 public:
  DType to = DType::kFloat;
  bool sparse = false;
  int64_t max_map = 1;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const MapData* map, map_input(run));
    const bool known = map->values.is_string() || map->values.dtype() == DType::kFloat;
    if (map->keys.dtype() != DType::kInt64 || !known) {
      return invalid_argument("the map is from ", dtype_name(map->keys.dtype()), " to ",
                              dtype_name(map->values.dtype()),
                              ", expected int64 to float or string");
    }
    const int64_t count = map->keys.count();
    const int64_t* keys = map->keys.data<int64_t>();
    std::vector<int64_t> order(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) order[static_cast<size_t>(i)] = i;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
    FOLIO_TRY(Tensor * y, run.output(0, to, Shape{1, sparse ? max_map : count}));
    clear(y);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      const int64_t at = sparse ? keys[from] : i;
      if (at < 0 || at >= y->count()) {
        return invalid_argument("key ", at, " is outside max_map ", max_map);
      }
      FOLIO_RETURN_IF_ERROR(cast(map->values, from, y, at));
    }
    return Status::ok();
  }

 private:
  Status cast(const Tensor& values, int64_t from, Tensor* y, int64_t at) const {
    if (to == DType::kString) {
      y->data_mut<std::string>()[at] = text_of(values, from);
      return Status::ok();
    }
    FOLIO_TRY(const double number, number_of(values, from));
    if (to == DType::kFloat) {
      y->data_mut<float>()[at] = static_cast<float>(number);
    } else {
      y->data_mut<int64_t>()[at] = saturating_cast<int64_t>(number);
    }
    return Status::ok();
  }
};

Result<CastMap> parse_cast(const Attributes& attrs) {
  CastMap cast;
  FOLIO_TRY(const std::string to, attrs.get_string("cast_to", "TO_FLOAT"));
  FOLIO_TRY(const std::string form, attrs.get_string("map_form", "DENSE"));
  FOLIO_TRY(cast.max_map, attrs.get_int("max_map", 1));
  const bool known = to == "TO_FLOAT" || to == "TO_STRING" || to == "TO_INT64";
  if (!known || (form != "DENSE" && form != "SPARSE") || cast.max_map < 0) {
    return invalid_graph("attribute 'cast_to' is '", to, "', 'map_form' '", form, "', 'max_map' ",
                         cast.max_map);
  }
  cast.to = to == "TO_FLOAT" ? DType::kFloat : to == "TO_STRING" ? DType::kString : DType::kInt64;
  cast.sparse = form == "SPARSE";
  return cast;
}

Result<std::unique_ptr<OpKernel>> make_cast(OpBuild& build) {
  FOLIO_TRY(const CastMap cast, parse_cast(build.attrs()));
  return std::unique_ptr<OpKernel>(std::make_unique<CastMap>(cast));
}

Status infer_cast(OpInfer& infer) {
  FOLIO_TRY(const CastMap cast, parse_cast(infer.attrs()));
  const Dim count = cast.sparse ? Dim::of(cast.max_map) : Dim::unknown();
  infer.set_tensor(0, cast.to, Dims{Dim::of(1), count});
  return Status::ok();
}

}  // namespace

[[gnu::cold]] void register_dict_vectorizer(OpRegistry& registry) {
  OpDef def;
  def.domain = "ai.onnx.ml";
  def.type = "DictVectorizer";
  def.infer = infer_vectorizer;
  def.make = make_vectorizer;
  registry.add(def);
  def.type = "CastMap";
  def.infer = infer_cast;
  def.make = make_cast;
  registry.add(def);
}

}  // namespace folio
