// Helpers shared by the tests of formats/ort.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/formats/ort/ort_loader.h"
#include "core/formats/ort/ort_schema_generated.h"
#include "tests/support/ort_writer.h"
#include "tests/support/test_source.h"

namespace folio::ort_case {

using Type = AttributeDef::Type;

inline Result<ModelDef> load(std::string_view bytes, const LoadOptions& options = {}) {
  return load_ort(make_ref<TestSource>(bytes, "m.ort"), options);
}

inline ModelDef load_or_fail(std::string_view bytes) {
  Result<ModelDef> model = load(bytes);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? std::move(model).take() : ModelDef{};
}

// Expects a load to fail with `code` and a message that holds every one of `parts`.
inline void expect_refused(std::string_view bytes, Code code, const std::vector<std::string>& parts,
                           const LoadOptions& options = {}) {
  const Result<ModelDef> model = load(bytes, options);
  ASSERT_FALSE(model.is_ok());
  const std::string message(model.status().message());
  EXPECT_EQ(model.status().code(), code) << message;
  EXPECT_EQ(message.find("m.ort: "), 0U) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

inline Tensor raw_tensor(DType dtype, const Shape& shape, const std::string& bytes) {
  Tensor tensor = allocate_tensor(dtype, shape).take();
  EXPECT_EQ(tensor.bytes(), bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.raw_mut(), bytes.data(), bytes.size());
  return tensor;
}

inline Tensor int64_tensor(const std::vector<int64_t>& values, const Shape& shape) {
  return make_int64_tensor(values, shape).take();
}

inline Tensor string_tensor(const std::vector<std::string>& values) {
  Tensor tensor = allocate_tensor(DType::kString, {static_cast<int64_t>(values.size())}).take();
  std::copy(values.begin(), values.end(), tensor.data_mut<std::string>());
  return tensor;
}

inline InitializerDef initializer(std::string name, Tensor tensor) {
  InitializerDef out;
  out.name = std::move(name);
  out.tensor = std::move(tensor);
  return out;
}

inline AttributeDef attribute(std::string name, Type type) {
  AttributeDef out;
  out.name = std::move(name);
  out.type = type;
  return out;
}

// A model whose one initializer is `tensor`.
inline ModelDef constant_model(Tensor tensor) {
  ModelDef model = ort_add_model(2);
  model.graph.initializers[0].tensor = std::move(tensor);
  return model;
}

inline std::shared_ptr<GraphDef> branch(const std::string& output) {
  auto graph = std::make_shared<GraphDef>();
  graph->outputs = {ort_float_value(output, {2})};
  NodeDef node;
  node.op_type = "Identity";
  node.inputs = {"x"};
  node.outputs = {output};
  graph->nodes.push_back(node);
  graph->initializers.push_back(initializer("c_" + output, ort_float_tensor({1, 2}, {2})));
  return graph;
}

// Has everything that the format can say, in a few KiB.
inline ModelDef rich_model() {
  ModelDef model = ort_add_model(2);
  NodeDef& node = model.graph.nodes[0];
  node.inputs = {"x", "", "w"};
  AttributeDef a = attribute("f", Type::kFloat);
  a.floats = {1.5F};
  node.attributes.push_back(a);
  a = attribute("i", Type::kInt);
  a.ints = {-7};
  node.attributes.push_back(a);
  a = attribute("s", Type::kString);
  a.strings = {std::string("\xFF\0z", 3)};
  node.attributes.push_back(a);
  a = attribute("t", Type::kTensor);
  a.tensors = {int64_tensor({3, 4}, {2})};
  node.attributes.push_back(a);
  a = attribute("g", Type::kGraph);
  a.graphs = {branch("inner")};
  node.attributes.push_back(a);
  a = attribute("fs", Type::kFloats);
  a.floats = {1, 2, 3};
  node.attributes.push_back(a);
  a = attribute("is", Type::kInts);
  a.ints = {1, -2, int64_t{1} << 40};
  node.attributes.push_back(a);
  a = attribute("ss", Type::kStrings);
  a.strings = {"p", "", "q"};
  node.attributes.push_back(a);
  a = attribute("ts", Type::kTensors);
  a.tensors = {string_tensor({"u", "v"}), ort_float_tensor({9}, {})};
  node.attributes.push_back(a);
  a = attribute("gs", Type::kGraphs);
  a.graphs = {branch("left"), branch("right")};
  node.attributes.push_back(a);
  model.metadata = {{"k", "v"}};
  return model;
}

inline OrtWriteOptions rich_options() {
  OrtWriteOptions options;
  options.with_runtime_optimizations = true;
  options.sparse_initializers.push_back(
      {"sp", ort_float_tensor({5, 6}, {2}), int64_tensor({1, 3}, {2}), {2, 2}});
  return options;
}

inline std::string rich_bytes() { return write_ort(rich_model(), rich_options()); }

inline ort_schema::Graph* graph_in(std::string* bytes) {
  return const_cast<ort_schema::Graph*>(
      ort_schema::GetInferenceSession(bytes->data())->model()->graph());
}

}  // namespace folio::ort_case
