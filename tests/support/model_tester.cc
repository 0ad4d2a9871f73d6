#include "tests/support/model_tester.h"

#include <cmath>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/memory_source.h"

namespace folio {

std::vector<float> small_wave(int64_t count, float phase) {
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::sin(phase + static_cast<float>(i % 8191) * 0.37F) / 4;  // small arguments
  }
  return out;
}

model_writer::ModelWriter plain_model(int64_t ir_version, int64_t opset) {
  model_writer::ModelWriter writer(ir_version);
  writer.opset("", opset);
  return writer;
}

Ref<ByteSource> source_of(const std::string& bytes) {
  const Bytes view(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  auto made = MemorySource::copy(view);
  return made.is_ok() ? Ref<ByteSource>(std::move(made).take()) : nullptr;
}

Result<ModelDef> load_def(const std::string& bytes) {
  LoadOptions options;
  options.format = ModelFormat::kOnnx;
  return load_model_def(source_of(bytes), options);
}

Result<std::unique_ptr<Model>> build(const model_writer::ModelWriter& writer,
                                     const FreeDims& free_dims) {
  FOLIO_TRY(ModelDef def, load_def(writer.serialize()));
  return build_model(std::move(def), free_dims);
}

Evaluator test_evaluator() {
  static InlineParallel parallel;
  return Evaluator{kernels_for(cpu_bits()), parallel};
}

Result<std::unique_ptr<Model>> optimized(const model_writer::ModelWriter& writer, Optimize level) {
  FOLIO_TRY(std::unique_ptr<Model> model, build(writer));
  FOLIO_RETURN_IF_ERROR(run_passes(model.get(), test_evaluator(), level));
  return model;
}

Result<Ref<ModelFile>> open_model(const model_writer::ModelWriter& writer) {
  return ModelFile::open(source_of(writer.serialize()), {});
}

Result<Ref<Session>> open_session(const model_writer::ModelWriter& writer,
                                  const SessionOptions& options) {
  FOLIO_TRY(Ref<ModelFile> file, open_model(writer));
  return Session::create(std::move(file), options);
}

Ref<Session> session_of(const std::string& path, const SessionOptions& options) {
  auto file = ModelFile::open(path, {});
  EXPECT_TRUE(file.is_ok()) << text_of(file.status());
  if (!file.is_ok()) return nullptr;
  auto session = Session::create(std::move(file).take(), options);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return session.is_ok() ? std::move(session).take() : nullptr;
}

Result<std::vector<Value>> run_all(Session& session, const std::vector<NamedValue>& inputs) {
  std::vector<WantedOutput> wanted;
  for (const PortInfo& port : session.program().outputs) wanted.push_back({port.name, Tensor()});
  std::vector<Value> outputs;
  FOLIO_RETURN_IF_ERROR(session.run({}, inputs, wanted, &outputs));
  return outputs;
}

Result<std::vector<Value>> run_once(const model_writer::ModelWriter& writer,
                                    const std::vector<NamedValue>& inputs,
                                    const SessionOptions& options) {
  FOLIO_TRY(Ref<Session> session, open_session(writer, options));
  return run_all(*session, inputs);
}

std::vector<float> floats_of(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::kFloat) return {};
  const auto span = value.tensor().span<float>();
  return std::vector<float>(span.begin(), span.end());
}

int count_nodes(const Graph& graph, std::string_view op_type) {
  int count = 0;
  for (const Node& node : graph.nodes) count += !node.dead && node.op_type == op_type;
  return count;
}

ValueId find_value(const Graph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].name == name) return static_cast<ValueId>(i);
  }
  return kNone;
}

std::string text_of(const Status& status) {
  return cat("code ", static_cast<int>(status.code()), ": ", status.message());
}

::testing::AssertionResult fails_with(const Status& status, Code code,
                                      const std::vector<std::string>& parts) {
  if (status.code() != code) {
    return ::testing::AssertionFailure()
           << "expected code " << static_cast<int>(code) << ", got " << text_of(status);
  }
  for (const std::string& part : parts) {
    if (status.message().find(part) == std::string_view::npos) {
      return ::testing::AssertionFailure() << "no '" << part << "' in " << text_of(status);
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace folio
