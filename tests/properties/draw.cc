#include "tests/properties/draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "core/ops/op_registry.h"

namespace folio::properties {
namespace {

using Kind = AttributeDef::Type;

// Words that attributes ask for, and others.
constexpr std::string_view kTexts[] = {"",           "NOTSET",     "SAME_UPPER",
                                       "SAME_LOWER", "VALID",      "nearest",
                                       "linear",     "cubic",      "bilinear",
                                       "constant",   "reflect",    "edge",
                                       "wrap",       "zeros",      "border",
                                       "half_pixel", "asymmetric", "align_corners",
                                       "forward",    "reverse",    "bidirectional",
                                       "none",       "add",        "mul",
                                       "max",        "min",        "sum",
                                       "mean",       "tanh",       "Relu",
                                       "DCR",        "CRD",        "L1",
                                       "MAX",        "TFIDF",      "NONE",
                                       "LOGISTIC",   "SOFTMAX",    "standard",
                                       "nesterov",   "gelu",       "silu",
                                       "avg",        "lp",         "ij,jk->ik",
                                       "ii",         "...i->...",  "[a-z]+",
                                       "up",         "LEFT",       "1.5"};

std::string attribute_text(const AttributeDef& attribute) {
  std::string out = attribute.name + "=";
  for (const int64_t each : attribute.ints) out += cat(each, " ");
  for (const float each : attribute.floats) out += std::to_string(each) + " ";
  for (const std::string& each : attribute.strings) out += "'" + each + "' ";
  for (const Tensor& each : attribute.tensors) {
    out += cat(dtype_name(each.dtype()), each.shape().to_string(), " ");
  }
  return out;
}

std::string value_text(const Value& value) {
  if (value.is_tensor()) {
    return cat(dtype_name(value.tensor().dtype()), value.tensor().shape().to_string());
  }
  return value.is_none() ? "absent" : "sequence";
}

// What is 0 or 1 when nothing is hostile: runtimes differ in what other numbers mean.
bool is_flag(std::string_view name) {
  constexpr std::string_view kFlags[] = {"keepdims", "noop_with_empty_axes", "exclusive",
                                         "reverse",  "select_last_index",    "saturate",
                                         "sorted"};
  return std::find(std::begin(kFlags), std::end(kFlags), name) != std::end(kFlags);
}

}  // namespace

int64_t Draw::number() {
  constexpr int64_t kHostile[] = {std::numeric_limits<int64_t>::min(),
                                  std::numeric_limits<int64_t>::max(),
                                  int64_t{1} << 31,
                                  -(int64_t{1} << 31) - 1,
                                  (int64_t{1} << 62) + 1,
                                  100000,
                                  -7};
  if (hostile_ && one_in(32)) return of(kHostile);
  return one_in(6) ? -1 - below(3) : below(5);
}

double Draw::real() {
  constexpr double kHostile[] = {std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(),
                                 1e30,
                                 -1e300,
                                 1e-40};
  if (hostile_ && one_in(16)) return of(kHostile);
  return static_cast<double>(below(65) - 32) / 16;
}

std::string Draw::text() { return std::string(of(kTexts)); }

std::vector<int64_t> Draw::numbers(int64_t most) {
  std::vector<int64_t> out(static_cast<size_t>(below(most + 1)));
  for (int64_t& each : out) each = number();
  return out;
}

int64_t Draw::dim() {
  constexpr int64_t kDims[] = {0, 1, 1, 2, 2, 3, 4, 4, 5, 7};
  return of(kDims);
}

Shape Draw::shape() {
  Shape out;
  for (int64_t rank = below(6); rank > 0; --rank) out.push_back(dim());
  return out;
}

DType Draw::dtype() {
  constexpr DType kCommon[] = {DType::kFloat, DType::kFloat, DType::kInt64, DType::kInt32,
                               DType::kBool,  DType::kUint8, DType::kInt8};
  return one_in(3) ? static_cast<DType>(1 + below(kDTypeCount - 1)) : of(kCommon);
}

Tensor Draw::tensor(DType dtype, const Shape& shape) {
  Tensor out = allocate_tensor(dtype, shape).take();
  if (out.is_string()) {
    for (int64_t i = 0; i < out.count(); ++i) out.data_mut<std::string>()[i] = text();
  } else if (dtype_is_float(dtype)) {
    std::vector<double> values(static_cast<size_t>(out.count()));
    for (double& value : values) value = real();
    return make_float_tensor(dtype, shape, values);
  } else if (dtype == DType::kInt64) {
    for (int64_t i = 0; i < out.count(); ++i) out.data_mut<int64_t>()[i] = number();
  } else if (dtype == DType::kInt32) {
    for (int64_t i = 0; i < out.count(); ++i) {
      out.data_mut<int32_t>()[i] = static_cast<int32_t>(number());
    }
  } else {
    const int64_t bound = dtype == DType::kBool ? 2 : one_in(2) ? 5 : 256;
    for (size_t i = 0; i < out.bytes(); ++i) out.raw_mut()[i] = static_cast<uint8_t>(below(bound));
  }
  return out;
}

AttributeDef Draw::attribute(std::string name, Kind type) {
  constexpr Kind kAny[] = {Kind::kInt,    Kind::kInts,    Kind::kFloat, Kind::kFloats,
                           Kind::kString, Kind::kStrings, Kind::kTensor};
  AttributeDef out;
  out.name = std::move(name);
  out.type = type == Kind::kUndefined || one_in(48) ? of(kAny) : type;
  const bool is_list =
      out.type == Kind::kInts || out.type == Kind::kFloats || out.type == Kind::kStrings;
  const int64_t count = is_list ? below(6) : 1;
  for (int64_t i = 0; i < count; ++i) {
    if (out.type == Kind::kInt || out.type == Kind::kInts) {
      out.ints.push_back(!hostile_ && is_flag(out.name) ? below(2) : number());
    }
    if (out.type == Kind::kFloat || out.type == Kind::kFloats) {
      out.floats.push_back(static_cast<float>(real()));
    }
    if (out.type == Kind::kString || out.type == Kind::kStrings) out.strings.push_back(text());
    if (out.type == Kind::kTensor) {
      out.tensors.push_back(tensor(dtype(), one_in(2) ? Shape{below(5)} : shape()));
    }
  }
  return out;
}

std::string Case::describe() const {
  std::string out = cat(domain.empty() ? "" : domain + ".", type, " ", version, " (");
  for (const AttributeDef& attribute : attributes) out += attribute_text(attribute);
  out += ";";
  for (const Input& input : inputs) {
    out += (input.constant ? " =" : " ") + value_text(input.value);
  }
  return cat(out, " -> ", outputs, ")");
}

// ---------------------------------------------------------------- samples

namespace {

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr NamedType kTypes[] = {{"f32", DType::kFloat},       {"f64", DType::kDouble},
                                {"f16", DType::kFloat16},     {"bf16", DType::kBfloat16},
                                {"i8", DType::kInt8},         {"u8", DType::kUint8},
                                {"i16", DType::kInt16},       {"u16", DType::kUint16},
                                {"i32", DType::kInt32},       {"u32", DType::kUint32},
                                {"i64", DType::kInt64},       {"u64", DType::kUint64},
                                {"bool", DType::kBool},       {"str", DType::kString},
                                {"i4", DType::kInt4},         {"u4", DType::kUint4},
                                {"i2", DType::kInt2},         {"u2", DType::kUint2},
                                {"f8", DType::kFloat8E4M3FN}, {"f8z", DType::kFloat8E4M3FNUZ},
                                {"f8b", DType::kFloat8E5M2},  {"f8bz", DType::kFloat8E5M2FNUZ},
                                {"f8s", DType::kFloat8E8M0},  {"f4", DType::kFloat4E2M1},
                                {"c64", DType::kComplex64},   {"c128", DType::kComplex128}};

struct TypeClass {
  char letter;
  std::string_view types;
};
constexpr TypeClass kClasses[] = {
    {'F', "f32 f32 f64 f16 bf16"},
    {'G', "f32 f32 f16 bf16"},
    {'H', "f32 f64"},
    {'N', "f32 f32 f64 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64"},
    {'M', "f32 f64 i32 i64 u32 u64"},
    {'I', "i8 u8 i16 u16 i32 u32 i64 u64"},
    {'U', "u8 u16 u32 u64"},
    {'A', "f32 f64 f16 i8 u8 i32 i64 bool str"},
    {'Q', "i8 u8"},
    {'K', "i32 i64"},
};

// Reads a sample from left to right.
class Reader {
 public:
  Reader(std::string_view text, Draw* draw, std::map<std::string, int64_t>* names,
         std::map<std::string, DType>* types)
      : rest_(text), draw_(*draw), names_(*names), types_(*types) {}

  bool at_end() const { return rest_.empty(); }
  char next() const { return rest_.empty() ? '\0' : rest_[0]; }
  bool take(char c) {
    if (next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    EXPECT_TRUE(take(c)) << "expected '" << c << "' before '" << rest_ << "'";
    if (rest_.empty()) return;
  }
  void skip_spaces() {
    while (take(' ')) {
    }
  }
  std::string word() {
    size_t n = 0;
    while (n < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[n])) != 0 || rest_[n] == '_')) {
      ++n;
    }
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  std::string quoted() {
    expect('\'');
    const size_t n = rest_.find('\'');
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n + 1);
    return out;
  }
  // Up to one of these.
  std::string_view until(std::string_view ends) {
    const std::string_view out = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(out.size());
    return out;
  }

  int64_t number() {
    int64_t sum = 0;
    do {
      const bool negative = take('-');
      int64_t product = factor();
      while (take('*')) product *= factor();
      sum += negative ? -product : product;
    } while (take('+') || next() == '-');
    return sum;
  }

  Value value() {
    if (rest_.substr(0, 4) == "map(") {
      rest_.remove_prefix(4);
      Tensor keys = tensor();
      expect(',');
      return make_map(std::move(keys), tensor());  // the rest is the bracket
    }
    if (rest_.substr(0, 4) != "seq(") return Value(tensor());
    rest_.remove_prefix(4);
    std::vector<Value> elements;
    while (!take(')')) {
      elements.emplace_back(tensor());
      take(',');
    }
    const DType dtype = elements.at(0).tensor().dtype();
    return make_sequence(dtype, std::move(elements));
  }

  Tensor tensor() {
    const DType dtype = type();
    Shape shape;
    expect('[');
    while (!take(']') && !at_end()) {
      shape.push_back(number());
      take(',');
    }
    if (take('{')) return literal(dtype, shape);
    if (take('<')) return in_range(dtype, shape);
    Tensor out = draw_.tensor(dtype, shape);
    return out;
  }

 private:
  int64_t factor() {
    const std::string name = word();
    if (name.empty()) {
      ADD_FAILURE() << "no number before '" << rest_ << "'";
      rest_ = {};
      return 0;
    }
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) return std::stoll(name);
    const auto [it, is_new] = names_.try_emplace(name, 0);
    if (is_new) it->second = 1 + draw_.below(4);
    return it->second;
  }

  DType type() {
    const std::string name = word();
    for (const NamedType& each : kTypes) {
      if (each.name == name) return each.dtype;
    }
    const auto found = types_.find(name);
    if (found != types_.end()) return found->second;
    for (const TypeClass& each : kClasses) {
      if (name.empty() || each.letter != name[0]) continue;
      std::vector<DType> all;
      Reader list(each.types, &draw_, &names_, &types_);
      for (; !list.at_end(); list.skip_spaces()) all.push_back(list.type());
      return types_[name] = draw_.of(all);
    }
    ADD_FAILURE() << "no type '" << name << "'";
    return DType::kFloat;
  }

  static void set(Tensor* out, int64_t i, double value) {
    switch (out->dtype()) {
      case DType::kInt64:
        // 2^63 - 1 is 2^63 by now.
        out->data_mut<int64_t>()[i] = value < 0x1p63 ? static_cast<int64_t>(value) : INT64_MAX;
        break;
      case DType::kUint64:
        out->data_mut<uint64_t>()[i] = static_cast<uint64_t>(value);
        break;
      case DType::kInt32:
      case DType::kUint32:
        out->data_mut<int32_t>()[i] = static_cast<int32_t>(static_cast<int64_t>(value));
        break;
      case DType::kInt16:
      case DType::kUint16:
        out->data_mut<int16_t>()[i] = static_cast<int16_t>(static_cast<int64_t>(value));
        break;
      default:
        out->raw_mut()[i] = static_cast<uint8_t>(static_cast<int64_t>(value));
    }
  }

  Tensor made(DType dtype, const Shape& shape, const std::vector<double>& values) {
    if (dtype_is_float(dtype)) return make_float_tensor(dtype, shape, values);
    Tensor out = allocate_tensor(dtype, shape).take();
    EXPECT_EQ(out.count(), static_cast<int64_t>(values.size())) << rest_;
    for (size_t i = 0; i < values.size(); ++i) set(&out, static_cast<int64_t>(i), values[i]);
    return out;
  }

  Tensor literal(DType dtype, const Shape& shape) {
    if (dtype == DType::kString) {
      std::vector<std::string> texts;
      while (!take('}') && !at_end()) {
        texts.push_back(quoted());
        take(',');
      }
      return make_tensor<std::string>(shape, texts);
    }
    std::vector<double> values;
    while (!take('}') && !at_end()) {
      const std::string_view text = until(",}");
      const bool is_real = text.find('.') != std::string_view::npos;
      Reader inner(text, &draw_, &names_, &types_);
      values.push_back(is_real ? std::stod(std::string(text))
                               : static_cast<double>(inner.number()));
      take(',');
    }
    return made(dtype, shape, values);
  }

  Tensor in_range(DType dtype, const Shape& shape) {
    const int64_t low = number();
    expect(',');
    const int64_t high = number();
    expect('>');
    std::vector<double> values(static_cast<size_t>(shape.count()));
    for (double& value : values) {
      const int64_t steps = dtype_is_float(dtype) ? 16 : 1;
      value = static_cast<double>(low) +
              static_cast<double>(draw_.below(std::max<int64_t>(1, (high - low) * steps))) /
                  static_cast<double>(steps);
    }
    return made(dtype, shape, values);
  }

  std::string_view rest_;
  Draw& draw_;
  std::map<std::string, int64_t>& names_;
  std::map<std::string, DType>& types_;
};

void append(Reader& reader, AttributeDef* out, bool is_list) {
  const auto set = [&](Kind one, Kind many) { out->type = is_list ? many : one; };
  if (reader.next() == '\'') {
    set(Kind::kString, Kind::kStrings);
    out->strings.push_back(reader.quoted());
    return;
  }
  const std::string_view text = reader.until(",]|? ");
  if (text.find('.') != std::string_view::npos) {
    set(Kind::kFloat, Kind::kFloats);
    out->floats.push_back(std::stof(std::string(text)));
  }
}

}  // namespace

namespace {

// One attribute value; `text` holds nothing else.
AttributeDef parse_attribute(std::string name, std::string_view text, Draw& draw,
                             std::map<std::string, int64_t>* names,
                             std::map<std::string, DType>* types) {
  AttributeDef out;
  out.name = std::move(name);
  Reader reader(text, &draw, names, types);
  if (reader.take('@')) {
    out.type = Kind::kTensor;
    out.tensors.push_back(reader.tensor());
    return out;
  }
  const bool is_list = reader.take('[');
  out.type = Kind::kInts;  // of an empty list
  while (!reader.at_end() && reader.next() != ']') {
    if (reader.next() == '\'' || text.find('.') != std::string_view::npos) {
      append(reader, &out, is_list);
    } else {
      out.type = is_list ? Kind::kInts : Kind::kInt;
      out.ints.push_back(reader.number());
    }
    if (!reader.take(',')) break;
  }
  return out;
}

// Splits at `separator` outside quotes, brackets and braces.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  int depth = 0;
  bool quoted = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    depth += c == '[' || c == '{' || c == '(' || c == '<' ? 1 : 0;
    depth -= c == ']' || c == '}' || c == ')' || c == '>' ? 1 : 0;
    if (c != separator || depth > 0) continue;
    out.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  out.push_back(text.substr(begin));
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

DType type_named(std::string_view name) {
  for (const NamedType& each : kTypes) {
    if (each.name == name) return each.dtype;
  }
  return DType::kUndefined;
}

Case case_of(const Sample& sample, Draw& draw) {
  Case out;
  out.domain = sample.domain;
  out.type = sample.type;
  out.outputs = sample.outputs;
  out.version =
      sample.since + static_cast<int>(draw.below(std::max(1, sample.until - sample.since + 1)));
  std::map<std::string, int64_t> names;
  std::map<std::string, DType> types;
  for (std::string_view text : split(sample.inputs, ';')) {
    text = trim(text);
    const bool may_lack = !text.empty() && text.back() == '?';
    if (may_lack) text.remove_suffix(1);
    const bool constant = !text.empty() && text.front() == '=';
    if (constant) text.remove_prefix(1);
    Reader reader(text, &draw, &names, &types);
    Value value = text.empty() ? Value() : reader.value();
    if (may_lack && draw.one_in(2)) value = Value();
    out.inputs.push_back({std::move(value), constant});
  }
  while (!out.inputs.empty() && out.inputs.back().value.is_none()) out.inputs.pop_back();
  for (std::string_view text : split(sample.attributes, ' ')) {
    text = trim(text);
    if (text.empty()) continue;
    if (text == "graphs") {
      out.has_graphs = true;
      continue;
    }
    const bool may_lack = text.back() == '?';
    if (may_lack) text.remove_suffix(1);
    if (may_lack && draw.one_in(2)) continue;
    const size_t equals = text.find('=');
    const auto choices = split(text.substr(equals + 1), '|');
    out.attributes.push_back(parse_attribute(std::string(text.substr(0, equals)), draw.of(choices),
                                             draw, &names, &types));
  }
  return out;
}

}  // namespace folio::properties
