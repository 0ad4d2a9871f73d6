// Loading helpers shared by the tests of formats/onnx.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/formats/load.h"
#include "tests/formats/pb_writer.h"
#include "tests/support/test_source.h"

namespace folio {

inline Result<ModelDef> load_bytes(std::string_view bytes, TestSource::Siblings siblings = {},
                                   const LoadOptions& options = {}) {
  return load_model_def(make_ref<TestSource>(bytes, "m.onnx", std::move(siblings)), options);
}

// The model of `graph`; a failed load fails the test and gives an empty model.
inline ModelDef load_graph(const PbWriter& graph, TestSource::Siblings siblings = {}) {
  Result<ModelDef> model = load_bytes(model_of(graph), std::move(siblings));
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? std::move(model).take() : ModelDef{};
}

// The one initializer of a model that has `tensor`.
inline InitializerDef load_tensor(const PbWriter& tensor, TestSource::Siblings siblings = {}) {
  ModelDef model = load_graph(graph_of_tensor(tensor), std::move(siblings));
  EXPECT_EQ(model.graph.initializers.size(), 1U);
  return model.graph.initializers.empty() ? InitializerDef{}
                                          : std::move(model.graph.initializers[0]);
}

// Expects a load to fail with `code` and a message that holds every one of `parts`.
inline void expect_error(std::string_view bytes, Code code, const std::vector<std::string>& parts,
                         TestSource::Siblings siblings = {}) {
  const Result<ModelDef> model = load_bytes(bytes, std::move(siblings));
  ASSERT_FALSE(model.is_ok());
  const std::string message(model.status().message());
  EXPECT_EQ(model.status().code(), code) << message;
  EXPECT_EQ(message.rfind("m.onnx: ", 0), 0U) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "no '" << part << "' in: " << message;
  }
}

inline void expect_graph_error(const PbWriter& graph, Code code,
                               const std::vector<std::string>& parts,
                               TestSource::Siblings siblings = {}) {
  expect_error(model_of(graph), code, parts, std::move(siblings));
}

inline void expect_tensor_error(const PbWriter& tensor, Code code,
                                const std::vector<std::string>& parts,
                                TestSource::Siblings siblings = {}) {
  expect_graph_error(graph_of_tensor(tensor), code, parts, std::move(siblings));
}

// The elements' bytes, as raw_data would have them.
inline std::string tensor_bytes(const Tensor& tensor) {
  return std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
}

}  // namespace folio
