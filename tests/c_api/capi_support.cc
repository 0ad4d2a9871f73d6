#include "tests/c_api/capi_support.h"

#include <stdlib.h>

#include <cstring>
#include <stdexcept>

namespace capi_test {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using model_writer::Type;

ModelWriter new_model() {
  ModelWriter model(8);
  model.opset("", 17).producer("capi_test", "1").metadata("author", "Ada").metadata("empty", "");
  return model;
}

std::string add_model_with(TensorWriter weight) {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.initializer(std::move(weight));
  graph.node("Add", {"x", "w"}, {"y"}).named("adder");
  graph.node("Sub", {"x", "w"}, {"z"}).named("subtracter");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.output("z", Type::tensor(ElementType::kFloat, {"batch", 3}));
  return model.serialize();
}

}  // namespace

std::string add_model() { return add_model_with(model_writer::f32_tensor("w", {3}, {10, 20, 30})); }

std::string external_model() {
  TensorWriter weight("w", ElementType::kFloat, {3});
  weight.external("weights.bin", 0, 12);
  return add_model_with(std::move(weight));
}

std::string external_bytes() {
  const float values[3] = {10, 20, 30};
  std::string bytes(sizeof values, '\0');
  std::memcpy(bytes.data(), values, sizeof values);
  return bytes;
}

std::string matmul_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  std::vector<float> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(static_cast<float>(i));
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 4}));
  graph.initializer(model_writer::f32_tensor("w", {4, 4}, weights));
  graph.node("MatMul", {"x", "w"}, {"y"}).named("product");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 4}));
  return model.serialize();
}

std::string loop_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("count", Type::tensor(ElementType::kInt64, {}));
  graph.input("a", Type::tensor(ElementType::kFloat, {1}));
  GraphWriter body("body");
  body.input("i", Type::tensor(ElementType::kInt64, {}));
  body.input("go_on", Type::tensor(ElementType::kBool, {}));
  body.input("before", Type::tensor(ElementType::kFloat, {1}));
  body.initializer(model_writer::f32_tensor("one", {1}, {1}));
  body.node("Identity", {"go_on"}, {"goes_on"});
  body.node("Add", {"before", "one"}, {"after"});
  body.output("goes_on", Type::tensor(ElementType::kBool, {}));
  body.output("after", Type::tensor(ElementType::kFloat, {1}));
  graph.node("Loop", {"count", "", "a"}, {"y"}).named("rounds").attr_graph("body", std::move(body));
  graph.output("y", Type::tensor(ElementType::kFloat, {1}));
  return model.serialize();
}

std::string string_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("s", Type::tensor(ElementType::kString, {"n"}));
  graph.node("Identity", {"s"}, {"t"});
  graph.output("t", Type::tensor(ElementType::kString, {"n"}));
  return model.serialize();
}

std::string constant_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {1}));
  graph.initializer(TensorWriter("c", ElementType::kFloat, {3}).floats({1, 2, 3}));
  graph.node("Identity", {"c"}, {"y"});
  graph.output("y", Type::tensor(ElementType::kFloat, {3}));
  return model.serialize();
}

TempFolder::TempFolder() {
  std::string name = std::filesystem::temp_directory_path() / "folio_capi_XXXXXX";
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

std::string TempFolder::write(const std::string& name, const std::string& bytes) const {
  std::ofstream(path(name), std::ios::binary) << bytes;
  return path(name);
}

}  // namespace capi_test
