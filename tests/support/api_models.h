// Small models of the tests that see a shared library only (c_api, ort_dropin): each room's are a
// ModelWriter with its own producer and metadata, filled here. Header only: without the core.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tools/make_model/onnx_model.h"

namespace api_models {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using model_writer::Type;

// y = x + w and z = x - w, x [batch, 3].
inline std::string add_with(ModelWriter model, TensorWriter weight) {
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.initializer(std::move(weight));
  graph.node("Add", {"x", "w"}, {"y"}).named("adder");
  graph.node("Sub", {"x", "w"}, {"z"}).named("subtracter");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.output("z", Type::tensor(ElementType::kFloat, {"batch", 3}));
  return model.serialize();
}

// The same, w = [10, 20, 30].
inline std::string add(ModelWriter model) {
  return add_with(std::move(model), model_writer::f32_tensor("w", {3}, {10, 20, 30}));
}

// The same, "w" in the external file "weights.bin", whose bytes are external_bytes().
inline std::string external(ModelWriter model) {
  TensorWriter weight("w", ElementType::kFloat, {3});
  weight.external("weights.bin", 0, 12);
  return add_with(std::move(model), std::move(weight));
}

inline std::string external_bytes() {
  const float values[3] = {10, 20, 30};
  std::string bytes(sizeof values, '\0');
  std::memcpy(bytes.data(), values, sizeof values);
  return bytes;
}

// y = x @ w, x [batch, 4], w [4, 4] of 0 to 15: an operator that packs its weight.
inline std::string matmul(ModelWriter model) {
  GraphWriter& graph = model.graph();
  std::vector<float> weights;
  for (int i = 0; i < 16; ++i) weights.push_back(static_cast<float>(i));
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 4}));
  graph.initializer(model_writer::f32_tensor("w", {4, 4}, weights));
  graph.node("MatMul", {"x", "w"}, {"y"}).named("product");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 4}));
  return model.serialize();
}

// y = a + count, by a Loop of `count` rounds: runs as long as a test wants, with many steps.
inline std::string loop(ModelWriter model) {
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

// t = s, a tensor of strings [n].
inline std::string strings(ModelWriter model) {
  GraphWriter& graph = model.graph();
  graph.input("s", Type::tensor(ElementType::kString, {"n"}));
  graph.node("Identity", {"s"}, {"t"});
  graph.output("t", Type::tensor(ElementType::kString, {"n"}));
  return model.serialize();
}

}  // namespace api_models
