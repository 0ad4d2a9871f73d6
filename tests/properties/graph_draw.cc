#include "tests/properties/graph_draw.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace folio::properties {

using model_writer::AttributeWriter;
using model_writer::ElementType;
using model_writer::TensorWriter;
using model_writer::Type;

int64_t count_of(const Dims64& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return count;
}

AttributeWriter ints(std::string_view name, const Dims64& values) {
  return AttributeWriter::of_ints(name, values);
}

AttributeWriter integer(std::string_view name, int64_t value) {
  return AttributeWriter::of_int(name, value);
}

AttributeWriter real(std::string_view name, double value) {
  return AttributeWriter::of_float(name, static_cast<float>(value));
}

double range_for(int64_t terms) { return std::sqrt(3.0 / static_cast<double>(terms)); }

GraphDraw::GraphDraw(uint64_t seed, bool of_halves, int64_t newest)
    : draw_(seed, Numbers::kTame),
      opset_(newest > 22 && draw_.one_in(3) ? between(23, newest) : between(13, newest)),
      element_(of_halves ? ElementType::kFloat16 : ElementType::kFloat),
      writer_(10),
      graph_(&writer_.graph()) {
  writer_.opset("", opset_).opset("com.microsoft", 1);
}

std::string GraphDraw::new_name(std::string_view prefix) { return cat(prefix, names_++); }

Held GraphDraw::input(const Dims64& dims, Symbols symbols) {
  const std::string name = new_name("x");
  std::vector<model_writer::Dim> declared(dims.begin(), dims.end());
  Dims64 others = dims;
  const bool is_dynamic = draw_.one_in(3) || (symbols == Symbols::kMost && draw_.one_in(2));
  for (size_t i = 0; is_dynamic && i < dims.size(); ++i) {
    // Never the channels, which weights and constants ask for.
    if (i == (dims.size() == 4 ? 1 : 2) || draw_.one_in(4)) continue;
    declared[i] = cat(name, "_", i);
    const bool is_empty = symbols == Symbols::kMost && draw_.one_in(12);
    others[i] = is_empty ? 0 : between(1, dims[i] + 3);
    out_.symbols.emplace_back(declared[i].symbol, dims[i]);
    out_.other_symbols.emplace_back(declared[i].symbol, others[i]);
  }
  writer_.graph().input(name, Type::tensor(ElementType::kFloat, declared));
  if (first_dims_.empty()) first_dims_ = declared;
  const auto drawn = [this](const Dims64& of) {
    Tensor tensor = allocate_tensor(DType::kFloat, Shape(of)).take();
    for (int64_t i = 0; i < tensor.count(); ++i) {
      tensor.data_mut<float>()[i] = static_cast<float>(draw_.below(2001) - 1000) / 1000;
    }
    return Value(std::move(tensor));
  };
  out_.inputs.push_back({name, drawn(dims)});
  out_.other_inputs.push_back({name, drawn(others)});
  out_.text += cat(name, " = input ", Shape(dims).to_string(), " or ", Shape(others).to_string(),
                   ", opset ", opset_, "\n");
  if (element_ == ElementType::kFloat) {
    values_.push_back({{name, dims}, 0, true});
  } else {
    const auto to = static_cast<int64_t>(element_);
    values_.push_back({{node("Cast", {name}, {AttributeWriter::of_int("to", to)}), dims}, 0, true});
  }
  return values_.back().held;
}

std::string GraphDraw::ids(int64_t count) {
  const std::string name = new_name("ids");
  const std::vector<model_writer::Dim> declared(first_dims_.begin(), first_dims_.end() - 1);
  writer_.graph().input(name, Type::tensor(ElementType::kInt64, declared));
  const auto drawn = [&](const Value& of) {
    Dims64 dims;
    for (int i = 0; i + 1 < of.tensor().rank(); ++i) dims.push_back(of.tensor().dim(i));
    Tensor tensor = allocate_tensor(DType::kInt64, Shape(dims)).take();
    for (int64_t i = 0; i < tensor.count(); ++i) {
      tensor.data_mut<int64_t>()[i] = draw_.below(count);
    }
    return Value(std::move(tensor));
  };
  out_.inputs.push_back({name, drawn(out_.inputs[0].value)});
  out_.other_inputs.push_back({name, drawn(out_.other_inputs[0].value)});
  out_.text += cat(name, " = input below ", count, "\n");
  return name;
}

std::vector<float> GraphDraw::numbers(const Dims64& dims, double range) {
  std::vector<float> values(static_cast<size_t>(count_of(dims)));
  for (float& value : values) {
    value = static_cast<float>(static_cast<double>(draw_.below(2001) - 1000) / 1000 * range);
  }
  return values;
}

std::string GraphDraw::weight(const Dims64& dims, double range) {
  return floats(dims, numbers(dims, range));
}

std::string GraphDraw::add_constant(std::string_view prefix, const Dims64& dims,
                                    const std::vector<float>& values, ElementType type) {
  const std::string name = new_name(prefix);
  const Tensor tensor = make_float_tensor(static_cast<DType>(type), Shape(dims),
                                          std::vector<double>(values.begin(), values.end()));
  const std::string bytes(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  graph_->initializer(TensorWriter(name, type, dims).raw(bytes));
  out_.text += cat(name, " = ", dtype_name(tensor.dtype()), Shape(dims).to_string());
  if (dims.empty()) out_.text += cat(" ", std::to_string(values[0]));
  out_.text += "\n";
  return name;
}

std::string GraphDraw::floats(const Dims64& dims, const std::vector<float>& values) {
  return add_constant(dims.empty() ? "c" : "w", dims, values, element_);
}

std::string GraphDraw::full_floats(const Dims64& dims, const std::vector<float>& values) {
  return add_constant("w", dims, values, ElementType::kFloat);
}

std::string GraphDraw::ints(const Dims64& values) {
  const std::string name = new_name("i");
  const Dims64 dims{static_cast<int64_t>(values.size())};
  graph_->initializer(TensorWriter(name, ElementType::kInt64, dims).int64s(values));
  out_.text += cat(name, " = ", Shape(values).to_string(), "\n");
  return name;
}

std::string GraphDraw::whole(int64_t value) {
  const std::string name = new_name("i");
  graph_->initializer(TensorWriter(name, ElementType::kInt64, {}).int64s({value}));
  out_.text += cat(name, " = ", value, "\n");
  return name;
}

std::string GraphDraw::codes(const Dims64& dims, int64_t least, int64_t most, ElementType type) {
  const std::string name = new_name("q");
  const auto bits = static_cast<int64_t>(model_writer::element_bits(type));
  std::string bytes(static_cast<size_t>((count_of(dims) * bits + 7) / 8), '\0');
  for (char& byte : bytes) byte = static_cast<char>(between(least, most));
  graph_->initializer(TensorWriter(name, type, dims).raw(bytes));
  out_.text += cat(name, " = bytes ", Shape(dims).to_string(), "\n");
  return name;
}

std::string GraphDraw::half_weight(const Dims64& dims, double range) {
  return add_constant("h", dims, numbers(dims, range), ElementType::kFloat16);
}

std::string GraphDraw::zero_point(ElementType type, int64_t value) {
  const std::string name = new_name("z");
  const std::string byte(1, static_cast<char>(value));
  graph_->initializer(TensorWriter(name, type, {}).raw(byte));
  out_.text += cat(name, " = zero point ", value, "\n");
  return name;
}

std::vector<std::string> GraphDraw::add(std::string_view type,
                                        const std::vector<std::string>& inputs,
                                        std::vector<std::string> outputs, Attributes attributes,
                                        std::string_view domain) {
  auto& made = graph_->node(type, inputs, outputs);
  made.in_domain(domain);
  for (const std::string& output : outputs) out_.text += cat(output, " ");
  out_.text += cat("= ", domain, domain.empty() ? "" : ".", type, "(");
  for (const std::string& input : inputs) out_.text += cat(input.empty() ? "-" : input, " ");
  out_.text += cat(") ", attributes.size(), " attributes\n");
  for (auto& attribute : attributes) made.attr(std::move(attribute));
  return outputs;
}

std::string GraphDraw::node(std::string_view type, const std::vector<std::string>& inputs,
                            Attributes attributes, std::string_view domain) {
  return add(type, inputs, {new_name("v")}, std::move(attributes), domain)[0];
}

std::vector<std::string> GraphDraw::nodes(std::string_view type,
                                          const std::vector<std::string>& inputs, size_t outputs,
                                          Attributes attributes, std::string_view domain,
                                          Named named) {
  std::vector<std::string> names;
  for (size_t i = 0; i < outputs; ++i) {
    const bool is_end = i == 0 || i + 1 == outputs;
    names.push_back(named == Named::kAll || is_end ? new_name("v") : "");
  }
  return add(type, inputs, std::move(names), std::move(attributes), domain);
}

AttributeWriter GraphDraw::body(const std::vector<Type>& inputs, const std::vector<Type>& outputs,
                                const std::function<Names(const Names&)>& draw_body) {
  model_writer::GraphWriter* const outer = graph_;
  model_writer::GraphWriter made("body");
  graph_ = &made;
  Names names;
  out_.text += "body of";
  for (const Type& type : inputs) {
    names.push_back(new_name("b"));
    made.input(names.back(), type);
    out_.text += cat(" ", names.back());
  }
  out_.text += ":\n";
  const Names results = draw_body(names);
  out_.text += "body gives";
  for (size_t i = 0; i < outputs.size(); ++i) {
    // A body gives what is its own, each once.
    const bool is_first = std::find(results.begin(), results.begin() + static_cast<int64_t>(i),
                                    results[i]) == results.begin() + static_cast<int64_t>(i);
    const bool is_plain = is_first && draw_.one_in(2);
    const std::string result = is_plain ? results[i] : new_name("v");
    if (!is_plain) made.node("Identity", {results[i]}, {result});
    made.output(result, outputs[i]);
    out_.text += cat(" ", results[i]);
  }
  out_.text += "\n";
  graph_ = outer;
  return AttributeWriter::of_graph("body", std::move(made));
}

Type GraphDraw::type_of_rank(size_t rank) const {
  return Type::tensor(element_, std::vector<model_writer::Dim>(rank));
}

std::string GraphDraw::branches(const std::string& condition, const Dims64& dims,
                                const std::function<std::string()>& draw_branch, ElementType type) {
  std::vector<model_writer::Dim> declared(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != kUnknown) declared[i] = dims[i];
  }
  model_writer::GraphWriter* const outer = graph_;
  std::vector<model_writer::GraphWriter> made;
  for (const char* name : {"then", "else"}) {
    model_writer::GraphWriter branch(name);
    graph_ = &branch;
    out_.text += cat(name, ":\n");
    // What a branch gives, one of its nodes has made.
    const std::string result = node("Identity", {draw_branch()});
    branch.output(result, Type::tensor(type, declared));
    made.push_back(std::move(branch));
  }
  graph_ = outer;
  Attributes attributes;
  attributes.push_back(AttributeWriter::of_graph("then_branch", std::move(made[0])));
  attributes.push_back(AttributeWriter::of_graph("else_branch", std::move(made[1])));
  return node("If", {condition}, std::move(attributes));
}

Held GraphDraw::hold(std::string name, Dims64 dims) {
  out_.text += cat("  ", name, " ", Shape(dims).to_string(), "\n");
  values_.push_back({{std::move(name), std::move(dims)}});
  return values_.back().held;
}

Held GraphDraw::hold_coded(const std::string& name, Dims64 dims) {
  constexpr double kScales[] = {kStep, kStep, 0.0153713, 0.0131279};  // few sums are ties
  constexpr int64_t kZeros[] = {128, 128, 0, 117};
  const int64_t zero = draw_.of(kZeros);
  const bool is_signed = draw_.one_in(3);
  const std::string scale = number(draw_.of(kScales));
  const std::string point = is_signed ? zero_point(ElementType::kInt8, zero - 128)
                                      : zero_point(ElementType::kUint8, zero);
  const std::string codes = node("QuantizeLinear", {name, scale, point});
  return hold(node("DequantizeLinear", {codes, scale, point}), std::move(dims));
}

const Held* GraphDraw::pick(const std::function<bool(const Held&)>& fits) {
  std::vector<Entry*> found;
  for (Entry& entry : values_) {
    if (fits(entry.held)) found.push_back(&entry);
  }
  if (found.empty()) return nullptr;
  const auto last = std::min<int64_t>(static_cast<int64_t>(found.size()), 2);
  const bool is_late = !draw_.one_in(4);
  Entry* entry =
      is_late ? found[found.size() - 1 - static_cast<size_t>(draw_.below(last))] : draw_.of(found);
  ++entry->readers;
  return &entry->held;
}

const Held* GraphDraw::pick_rank(size_t rank) {
  return pick([rank](const Held& held) { return held.rank() == rank; });
}

const Held& GraphDraw::exact() {
  return *pick([this](const Held& held) {
    return &held == &values_[0].held;  // others may come behind it
  });
}

RandomGraph GraphDraw::take() {
  if (values_.back().is_input) hold(node("Relu", {values_[0].held.name}), values_[0].held.dims);
  values_.back().readers = 0;
  for (const Entry& entry : values_) {
    if (entry.is_input || (entry.readers > 0 && !draw_.one_in(12))) continue;
    std::string name = entry.held.name;
    if (element_ != ElementType::kFloat) {
      name = node("Cast", {name}, {AttributeWriter::of_int("to", 1)});
    }
    const std::vector<model_writer::Dim> dims(entry.held.rank());
    writer_.graph().output(name, Type::tensor(ElementType::kFloat, dims));
    out_.outputs.push_back(name);
  }
  out_.bytes = writer_.serialize();
  return std::move(out_);
}

}  // namespace folio::properties
