// Helpers for tests that take a model through the rooms: writer -> ModelDef -> Model -> Session.
//
// Flow:    a test writes a model with tools/make_model, then opens, builds or runs it here.
// Owns:    results are the caller's.
// Errors:  the open_... and run functions hand statuses on; nothing here fails a test by itself.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/load.h"
#include "core/passes/passes.h"
#include "core/session/session.h"
#include "tests/support/op_tester.h"
#include "tools/make_model/onnx_model.h"

namespace folio {

// Shorthands of what nearly every test model uses.
inline constexpr model_writer::ElementType kF32 = model_writer::ElementType::kFloat;
inline constexpr model_writer::ElementType kI64 = model_writer::ElementType::kInt64;
inline constexpr model_writer::ElementType kBoolean = model_writer::ElementType::kBool;

inline model_writer::Type f32_type(const std::vector<model_writer::Dim>& dims) {
  return model_writer::Type::tensor(kF32, dims);
}
inline model_writer::TensorWriter f32_tensor(std::string_view name,
                                             const std::vector<int64_t>& dims,
                                             const std::vector<float>& values) {
  return model_writer::TensorWriter(name, kF32, dims).floats(values);
}
inline model_writer::TensorWriter i64_tensor(std::string_view name,
                                             const std::vector<int64_t>& dims,
                                             const std::vector<int64_t>& values) {
  return model_writer::TensorWriter(name, kI64, dims).int64s(values);
}

// Numbers between -0.25 and 0.25, all different nearby; another row of them for each `phase`.
std::vector<float> small_wave(int64_t count, float phase);

// A writer with ai.onnx opset 17 imported.
model_writer::ModelWriter plain_model(int64_t ir_version = 8, int64_t opset = 17);

// A copy of the bytes as core/os gives it.
Ref<ByteSource> source_of(const std::string& bytes);

Result<ModelDef> load_def(const std::string& bytes);
Result<std::unique_ptr<Model>> build(const model_writer::ModelWriter& writer,
                                     const FreeDims& free_dims = {});
// The same through run_passes.
Result<std::unique_ptr<Model>> optimized(const model_writer::ModelWriter& writer,
                                         Optimize level = Optimize::kUnpacked);
Evaluator test_evaluator();

Result<Ref<ModelFile>> open_model(const model_writer::ModelWriter& writer);
Result<Ref<Session>> open_session(const model_writer::ModelWriter& writer,
                                  const SessionOptions& options = {});

// Of a file. Failures fail the test and give null.
Ref<Session> session_of(const std::string& path, const SessionOptions& options);

// All outputs of one run, in the program's order.
Result<std::vector<Value>> run_all(Session& session, const std::vector<NamedValue>& inputs);
// Opens, runs once, and gives all outputs.
Result<std::vector<Value>> run_once(const model_writer::ModelWriter& writer,
                                    const std::vector<NamedValue>& inputs,
                                    const SessionOptions& options = {});

std::vector<float> floats_of(const Value& value);

// Node counts by "domain.type" of a graph alone, without its subgraphs.
int count_nodes(const Graph& graph, std::string_view op_type);
ValueId find_value(const Graph& graph, std::string_view name);

// For EXPECT_TRUE: names what failed.
std::string text_of(const Status& status);
// Succeeds when the status has this code and its message holds each part.
::testing::AssertionResult fails_with(const Status& status, Code code,
                                      const std::vector<std::string>& parts);

}  // namespace folio
