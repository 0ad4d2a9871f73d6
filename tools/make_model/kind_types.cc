#include <array>
#include <cstring>

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

// An even count, so that 4-bit types fill their bytes, but not 2-bit types.
constexpr uint64_t kCount = 6;

enum class TypedField { kFloats, kDoubles, kInt32s, kInt64s, kUint64s };

// Complex numbers have no Cast to float.
enum class CastToFloat { kYes, kNo };

struct TypeRow {
  ElementType type;
  const char* name;
  TypedField typed_field;
  CastToFloat cast;
  TypeSet since;
};

constexpr std::array<TypeRow, 25> kTypes = {{
    {ElementType::kFloat, "float", TypedField::kFloats, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kUint8, "uint8", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kInt8, "int8", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kUint16, "uint16", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kInt16, "int16", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kInt32, "int32", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kInt64, "int64", TypedField::kInt64s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kBool, "bool", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kFloat16, "float16", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kDouble, "double", TypedField::kDoubles, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kUint32, "uint32", TypedField::kUint64s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kUint64, "uint64", TypedField::kUint64s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kBfloat16, "bfloat16", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kBasic},
    {ElementType::kFloat8E4M3Fn, "float8e4m3fn", TypedField::kInt32s, CastToFloat::kYes,
     TypeSet::kStandard},
    {ElementType::kFloat8E4M3Fnuz, "float8e4m3fnuz", TypedField::kInt32s, CastToFloat::kYes,
     TypeSet::kStandard},
    {ElementType::kFloat8E5M2, "float8e5m2", TypedField::kInt32s, CastToFloat::kYes,
     TypeSet::kStandard},
    {ElementType::kFloat8E5M2Fnuz, "float8e5m2fnuz", TypedField::kInt32s, CastToFloat::kYes,
     TypeSet::kStandard},
    {ElementType::kUint4, "uint4", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kStandard},
    {ElementType::kInt4, "int4", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kStandard},
    {ElementType::kComplex64, "complex64", TypedField::kFloats, CastToFloat::kNo, TypeSet::kAll},
    {ElementType::kComplex128, "complex128", TypedField::kDoubles, CastToFloat::kNo, TypeSet::kAll},
    {ElementType::kFloat4E2M1, "float4e2m1", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kAll},
    {ElementType::kFloat8E8M0, "float8e8m0", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kAll},
    {ElementType::kUint2, "uint2", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kAll},
    {ElementType::kInt2, "int2", TypedField::kInt32s, CastToFloat::kYes, TypeSet::kAll},
}};

template <class T>
void append_bits(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

// The raw bytes of kCount elements. Bit patterns of narrow floats are kept small enough to be
// finite in every format; integers use the whole range.
std::string raw_values(const TypeRow& row, uint64_t seed) {
  const uint64_t bytes = (kCount * element_bits(row.type) + 7) / 8;
  const std::vector<uint8_t> random = random_bytes(seed, bytes);
  std::string out(random.begin(), random.end());
  switch (row.type) {
    case ElementType::kFloat:
    case ElementType::kComplex64:
      out.clear();
      for (uint64_t i = 0; i < bytes / 4; ++i) append_bits(out, uniform_at(seed, i, -1, 1));
      break;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      out.clear();
      for (uint64_t i = 0; i < bytes / 8; ++i) {
        append_bits(out, static_cast<double>(uniform_at(seed, i, -1, 1)));
      }
      break;
    case ElementType::kFloat16:
      out.clear();
      for (uint64_t i = 0; i < kCount; ++i) append_bits(out, f16_bits(uniform_at(seed, i, -1, 1)));
      break;
    case ElementType::kBfloat16:
      out.clear();
      for (uint64_t i = 0; i < kCount; ++i) append_bits(out, bf16_bits(uniform_at(seed, i, -1, 1)));
      break;
    case ElementType::kBool:
      for (char& value : out) value = static_cast<char>(value & 1);
      break;
    case ElementType::kFloat8E4M3Fn:
    case ElementType::kFloat8E4M3Fnuz:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2Fnuz:
    case ElementType::kFloat8E8M0:
      for (char& value : out) value = static_cast<char>(value & 0x3f);
      break;
    case ElementType::kUint2:
    case ElementType::kInt2:
      // Six 2-bit elements end in the middle of a byte; unused bits are zero.
      out.back() = static_cast<char>(out.back() & 0x0f);
      break;
    default:
      break;
  }
  return out;
}

// The entries of int32_data: one an element, or one a byte where a byte holds several elements.
template <class T>
std::vector<int64_t> entries_of(const std::string& raw) {
  std::vector<int64_t> entries;
  for (size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, raw.data() + at, sizeof value);
    entries.push_back(static_cast<int64_t>(value));
  }
  return entries;
}

std::vector<int64_t> int32_entries(ElementType type, const std::string& raw) {
  switch (type) {
    case ElementType::kInt8:
      return entries_of<int8_t>(raw);
    case ElementType::kInt16:
      return entries_of<int16_t>(raw);
    case ElementType::kInt32:
      return entries_of<int32_t>(raw);
    case ElementType::kUint16:
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return entries_of<uint16_t>(raw);
    default:
      return entries_of<uint8_t>(raw);
  }
}

template <class T>
std::vector<T> values_of(const std::string& raw) {
  std::vector<T> values(raw.size() / sizeof(T));
  std::memcpy(values.data(), raw.data(), values.size() * sizeof(T));
  return values;
}

TensorWriter typed_tensor(const TypeRow& row, const std::string& name, const std::string& raw) {
  TensorWriter tensor(name, row.type, {static_cast<int64_t>(kCount)});
  switch (row.typed_field) {
    case TypedField::kFloats:
      return tensor.floats(values_of<float>(raw));
    case TypedField::kDoubles:
      return tensor.doubles(values_of<double>(raw));
    case TypedField::kInt32s:
      return tensor.int32s(int32_entries(row.type, raw));
    case TypedField::kInt64s:
      return tensor.int64s(values_of<int64_t>(raw));
    case TypedField::kUint64s:
      if (row.type == ElementType::kUint64) return tensor.uint64s(values_of<uint64_t>(raw));
      const std::vector<uint32_t> narrow = values_of<uint32_t>(raw);
      return tensor.uint64s(std::vector<uint64_t>(narrow.begin(), narrow.end()));
  }
  return tensor;
}

// Two initializers of the same values, an output of each, and (cast to float) their difference,
// which a right reader finds to be zero. Gives the name of the difference, or nothing.
std::string add_type(GraphWriter& graph, const TypeRow& row, uint64_t seed) {
  const std::string name = row.name;
  const Type type = Type::tensor(row.type, {static_cast<int64_t>(kCount)});
  const std::string raw = raw_values(row, seed);
  graph.initializer(TensorWriter(name + ".raw", row.type, {static_cast<int64_t>(kCount)}).raw(raw));
  graph.initializer(typed_tensor(row, name + ".typed", raw));
  for (const std::string form : {".raw", ".typed"}) {
    // No runtime has Identity for elements smaller than a byte; they are only cast.
    if (element_bits(row.type) >= 8) {
      graph.node("Identity", {name + form}, {name + form + "_out"})
          .named(name + form + "/Identity");
      graph.output(name + form + "_out", type);
    }
    if (row.cast == CastToFloat::kNo) continue;
    graph.node("Cast", {name + form}, {name + form + "_float"})
        .named(name + form + "/Cast")
        .attr_int("to", static_cast<int64_t>(ElementType::kFloat));
  }
  if (row.cast == CastToFloat::kNo) return {};
  graph.node("Sub", {name + ".raw_float", name + ".typed_float"}, {name + ".difference"})
      .named(name + "/Sub");
  return name + ".difference";
}

void add_strings(GraphWriter& graph) {
  const std::vector<std::string> values = {"",
                                           "plain",
                                           "g\u0308r\u00fc\u00df",
                                           "two\nlines",
                                           std::string("zero\0inside", 11),
                                           std::string(300, 's')};
  const Type type = Type::tensor(ElementType::kString, {2, 3});
  graph.initializer(TensorWriter("string.typed", ElementType::kString, {2, 3}).strings(values));
  graph.node("Identity", {"string.typed"}, {"string.typed_out"}).named("string/Identity");
  graph.output("string.typed_out", type);
}

// The same sparse matrix with linear indices and with coordinates.
void add_sparse(GraphWriter& graph) {
  const std::vector<int64_t> dims = {4, 5};
  graph.sparse_initializer(SparseTensorWriter(f32_tensor("sparse.linear", {3}, {1.5f, -2.0f, 4.0f}),
                                              i64_tensor("", {3}, {2, 9, 19}), dims));
  graph.sparse_initializer(
      SparseTensorWriter(f32_tensor("sparse.coordinates", {3}, {1.5f, -2.0f, 4.0f}),
                         i64_tensor("", {3, 2}, {0, 2, 1, 4, 3, 4}), dims));
  for (const std::string name : {"sparse.linear", "sparse.coordinates"}) {
    graph.node("Identity", {name}, {name + "_out"}).named(name + "/Identity");
    graph.output(name + "_out", Type::tensor(ElementType::kFloat, {4, 5}));
  }
}

ModelWriter types_model(uint64_t seed, TypeSet set) {
  switch (set) {
    case TypeSet::kBasic:
      return new_model("types", seed, kPlainIrVersion, kPlainOpset);
    case TypeSet::kStandard:
      return new_model("types", seed, 10, 21);
    case TypeSet::kAll:
      break;
  }
  return new_model("types", seed, 13, 26);
}

}  // namespace

ModelFiles build_types(uint64_t seed, TypeSet set) {
  ModelFiles files{types_model(seed, set), std::nullopt};
  GraphWriter& graph = files.model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {static_cast<int64_t>(kCount)}));
  // First of the outputs: x if every pair of initializers is equal.
  graph.output("y", Type::tensor(ElementType::kFloat, {static_cast<int64_t>(kCount)}));
  Seeds seeds(seed);
  std::vector<std::string> differences = {"x"};
  for (const TypeRow& row : kTypes) {
    const uint64_t type_seed = seeds.next();
    if (row.since > set) continue;
    const std::string difference = add_type(graph, row, type_seed);
    if (!difference.empty()) differences.push_back(difference);
  }
  graph.node("Sum", differences, {"y"}).named("y/Sum");
  add_strings(graph);
  add_sparse(graph);
  return files;
}

}  // namespace model_writer
