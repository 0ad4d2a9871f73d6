#include "tests/ort_dropin/dropin_support.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/support/api_models.h"

namespace dropin_test {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;
using model_writer::Type;

const OrtApiBase* open_library() {
  const char* other = getenv("FOLIO_ORT_TEST_LIBRARY");
  const char* path = other ? other : FOLIO_ORT_LIBRARY;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  void* symbol = dlsym(library, "OrtGetApiBase");
  const OrtApiBase* (*get)() = nullptr;
  std::memcpy(&get, &symbol, sizeof symbol);
  return get();
}

ModelWriter new_model(int64_t ir_version = 8) {
  ModelWriter model(ir_version);
  model.opset("", 17).producer("dropin_test", "1").metadata("author", "Ada").model_version(7);
  return model;
}

}  // namespace

const OrtApiBase& base() {
  static const OrtApiBase* const found = open_library();
  return *found;
}

const OrtApi& api() {
  static const OrtApi* const table = [] {
    const OrtApi* found = nullptr;
    for (uint32_t v = folio::ort::kApiVersion; v > 0 && !found; --v) found = base().GetApi(v);
    return found;
  }();
  return *table;
}

bool is_folio() { return std::strstr(base().GetVersionString(), "folio") != nullptr; }

testing::AssertionResult is_ok(OrtStatus* status) {
  const Outcome outcome(status);
  if (outcome.code == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << outcome.code << ": " << outcome.message;
}

testing::AssertionResult fails(OrtStatus* status, int code,
                               std::initializer_list<const char*> parts) {
  const Outcome outcome(status);
  const auto wrong = [&] {
    return testing::AssertionFailure()
           << "got " << outcome.code << ": '" << outcome.message << "', expected " << code;
  };
  if (outcome.code != code) return wrong();
  for (const char* part : parts) {
    if (is_folio() && outcome.message.find(part) == std::string::npos) {
      return wrong() << " with '" << part << "'";
    }
  }
  return testing::AssertionSuccess();
}

const OrtEnv* env() {
  static OrtEnv* const made = [] {
    OrtEnv* created = nullptr;
    EXPECT_CALL(api().CreateEnv(3, "dropin_test", &created));
    return created;
  }();
  return made;
}

OrtAllocator* allocator() {
  OrtAllocator* found = nullptr;
  EXPECT_CALL(api().GetAllocatorWithDefaultOptions(&found));
  return found;
}

const OrtMemoryInfo* cpu() {
  static OrtMemoryInfo* const made = [] {
    OrtMemoryInfo* created = nullptr;
    EXPECT_CALL(api().CreateCpuMemoryInfo(0, 0, &created));
    return created;
  }();
  return made;
}

std::string taken(char* text) {
  if (!text) return "NULL";
  std::string copy = text;
  allocator()->Free(allocator(), text);
  return copy;
}

Value floats(std::vector<float>* elements, const std::vector<int64_t>& dims) {
  return make<Value>(api().CreateTensorWithDataAsOrtValue, cpu(),
                     static_cast<void*>(elements->data()), elements->size() * sizeof(float),
                     dims.data(), dims.size(), kFloat);
}

Value strings(const std::vector<const char*>& texts) {
  const int64_t dims[] = {static_cast<int64_t>(texts.size())};
  auto value = make<Value>(api().CreateTensorAsOrtValue, allocator(), dims, size_t{1}, kString);
  EXPECT_CALL(api().FillStringTensor(value.get(), texts.data(), texts.size()));
  return value;
}

std::vector<int64_t> dims_of(const OrtValue* value) {
  const auto info = make<TensorInfo>(api().GetTensorTypeAndShape, value);
  size_t count = 0;
  EXPECT_CALL(api().GetDimensionsCount(info.get(), &count));
  std::vector<int64_t> dims(count);
  EXPECT_CALL(api().GetDimensions(info.get(), dims.data(), count));
  return dims;
}

std::vector<float> floats_of(OrtValue* value) {
  const auto info =
      make<TensorInfo>(api().GetTensorTypeAndShape, const_cast<const OrtValue*>(value));
  size_t count = 0;
  EXPECT_CALL(api().GetTensorShapeElementCount(info.get(), &count));
  void* data = nullptr;
  EXPECT_CALL(api().GetTensorMutableData(value, &data));
  const auto* first = static_cast<const float*>(data);
  return std::vector<float>(first, first + count);
}

std::vector<std::string> strings_of(const OrtValue* value) {
  const auto info = make<TensorInfo>(api().GetTensorTypeAndShape, value);
  size_t count = 0;
  size_t bytes = 0;
  EXPECT_CALL(api().GetTensorShapeElementCount(info.get(), &count));
  EXPECT_CALL(api().GetStringTensorDataLength(value, &bytes));
  std::string all(bytes, '?');
  std::vector<size_t> offsets(count + 1, bytes);
  EXPECT_CALL(api().GetStringTensorContent(value, all.data(), bytes, offsets.data(), count));
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    texts.push_back(all.substr(offsets[i], offsets[i + 1] - offsets[i]));
  }
  return texts;
}

Session session_of(const std::string& model, const OrtSessionOptions* options) {
  return make<Session>(api().CreateSessionFromArray, env(), static_cast<const void*>(model.data()),
                       model.size(), options);
}

OrtStatus* run_one(OrtSession* session, const char* input, const OrtValue* value,
                   const char* output, Value* result, const OrtRunOptions* options) {
  OrtValue* raw = nullptr;
  OrtStatus* status = api().Run(session, options, &input, &value, 1, &output, 1, &raw);
  result->reset(raw);
  return status;
}

std::string add_model() { return api_models::add(new_model()); }
std::string external_model() { return api_models::external(new_model()); }
std::string external_bytes() { return api_models::external_bytes(); }
std::string matmul_model() { return api_models::matmul(new_model()); }
std::string loop_model() { return api_models::loop(new_model()); }
std::string string_model() { return api_models::strings(new_model()); }

std::string default_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 3}));
  graph.input("w", Type::tensor(ElementType::kFloat, {3}));
  graph.initializer(model_writer::f32_tensor("w", {3}, {10, 20, 30}));
  graph.node("Add", {"x", "w"}, {"y"}).named("adder");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", 3}));
  return model.serialize();
}

std::string sequence_model() {
  ModelWriter model = new_model();
  GraphWriter& graph = model.graph();
  const auto column = Type::tensor(ElementType::kFloat, {2, 1});
  graph.input("x", Type::tensor(ElementType::kFloat, {2, 3}));
  graph.input("given", Type::sequence(Type::tensor(ElementType::kFloat, {"n"})));
  graph.initializer(model_writer::i64_tensor("zero", {}, {0}));
  graph.node("SplitToSequence", {"x"}, {"parts"}).attr_int("axis", 1);
  graph.node("SequenceAt", {"given", "zero"}, {"first"});
  graph.output("parts", Type::sequence(column));
  graph.output("first", Type::tensor(ElementType::kFloat, {"n"}));
  return model.serialize();
}

std::string map_model() {
  ModelWriter model = new_model();
  model.opset("ai.onnx.ml", 3);
  GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"n", 2}));
  graph.node("ZipMap", {"x"}, {"m"})
      .in_domain("ai.onnx.ml")
      .attr_ints("classlabels_int64s", {5, 6});
  graph.output(
      "m", Type::sequence(Type::map(ElementType::kInt64, Type::tensor(ElementType::kFloat, {}))));
  return model.serialize();
}

}  // namespace dropin_test
