#include "tools/op_bench/one_node.h"

#include <numeric>

#include "tools/make_model/random_weights.h"

namespace op_bench {

namespace {

using model_writer::AttributeWriter;
using model_writer::TensorWriter;
using model_writer::Type;

constexpr int64_t kIrVersion = 8;

// Reductions have their axes as attributes until 17; Col2Im came with 18.
int64_t opset_of(const std::string& op_type) { return op_type == "Col2Im" ? 18 : 17; }

uint64_t count_of(const OneNode::Dims& dims) {
  return static_cast<uint64_t>(
      std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
}

Type type_of(ElementType type, const OneNode::Dims& dims) {
  return Type::tensor(type, {dims.begin(), dims.end()});
}

}  // namespace

OneNode::OneNode(const std::string& family, const std::string& name, const std::string& op_type,
                 const std::string& domain)
    : domain_(domain), model_(kIrVersion) {
  case_.name = family + "/" + op_type + "/" + name;
  shapes_.op_type = op_type;
  shapes_.attributes = nlohmann::json::object();
  model_.opset("", opset_of(op_type));
  if (!domain.empty()) model_.opset(domain, 1);
}

std::string OneNode::next_input(ElementType type, const Dims& dims) {
  shapes_.inputs.push_back({static_cast<FolioElementType>(type), dims});
  inputs_.push_back("x" + std::to_string(inputs_.size()));
  return inputs_.back();
}

OneNode& OneNode::x(ElementType type, const Dims& dims, double low, double high) {
  const std::string name = next_input(type, dims);
  model_.graph().input(name, type_of(type, dims));
  case_.ranges.push_back(name + "=" + std::to_string(low) + ":" + std::to_string(high));
  return *this;
}

OneNode& OneNode::x_bytes(ElementType type, const Dims& dims) {
  return type == ElementType::kInt8 ? x(type, dims, -128, 127) : x(type, dims, 0, 255);
}

OneNode& OneNode::constant(TensorWriter tensor) {
  model_.graph().initializer(std::move(tensor));
  return *this;
}

OneNode& OneNode::w(ElementType type, const Dims& dims) {
  const std::string name = next_input(type, dims);
  const uint64_t seed = inputs_.size();
  TensorWriter tensor(name, type, dims);
  if (type == ElementType::kFloat) {
    tensor.raw(model_writer::uniform_payload(seed, count_of(dims), -1, 1));
  } else {
    tensor.raw(model_writer::random_bytes_payload(
        seed, count_of(dims) * model_writer::element_bits(type) / 8));
  }
  return constant(std::move(tensor));
}

OneNode& OneNode::w_even(const Dims& dims) {
  const std::string name = next_input(ElementType::kFloat, dims);
  const float half = model_writer::weight_scale(static_cast<uint64_t>(dims.back()));
  TensorWriter tensor(name, ElementType::kFloat, dims);
  tensor.raw(model_writer::uniform_payload(inputs_.size(), count_of(dims), -half, half));
  return constant(std::move(tensor));
}

OneNode& OneNode::w_floats(const Dims& dims, const std::vector<float>& values) {
  const std::string name = next_input(ElementType::kFloat, dims);
  return constant(model_writer::f32_tensor(name, dims, values));
}

OneNode& OneNode::w_ints(const Dims& dims, const std::vector<int64_t>& values) {
  const std::string name = next_input(ElementType::kInt64, dims);
  return constant(model_writer::i64_tensor(name, dims, values));
}

OneNode& OneNode::w_zero(ElementType type) {
  const std::string name = next_input(type, {});
  // Unsigned bytes have theirs in the middle.
  const char zero = type == ElementType::kUint8 ? '\x80' : '\0';
  TensorWriter tensor(name, type, {});
  tensor.raw(std::string(1, zero));
  return constant(std::move(tensor));
}

OneNode& OneNode::none() {
  shapes_.inputs.emplace_back();
  inputs_.emplace_back();
  return *this;
}

OneNode& OneNode::y(ElementType type, const Dims& dims) {
  shapes_.outputs.push_back({static_cast<FolioElementType>(type), dims});
  outputs_.push_back("y" + std::to_string(outputs_.size()));
  model_.graph().output(outputs_.back(), type_of(type, dims));
  return *this;
}

OneNode& OneNode::attr(const std::string& name, int64_t value) {
  shapes_.attributes[name] = value;
  attributes_.push_back(AttributeWriter::of_int(name, value));
  return *this;
}

OneNode& OneNode::attr(const std::string& name, const Dims& values) {
  shapes_.attributes[name] = values;
  attributes_.push_back(AttributeWriter::of_ints(name, values));
  return *this;
}

OneNode& OneNode::attr(const std::string& name, const char* value) {
  attributes_.push_back(AttributeWriter::of_string(name, value));
  return *this;
}

OneNode& OneNode::attr_float(const std::string& name, float value) {
  attributes_.push_back(AttributeWriter::of_float(name, value));
  return *this;
}

OpCase OneNode::done() {
  auto& node = model_.graph().node(shapes_.op_type, inputs_, outputs_).named("node");
  if (!domain_.empty()) node.in_domain(domain_);
  for (AttributeWriter& attribute : attributes_) node.attr(std::move(attribute));
  case_.model = model_.serialize();
  case_.work = folio_cli::work_of(shapes_);
  return std::move(case_);
}

}  // namespace op_bench
