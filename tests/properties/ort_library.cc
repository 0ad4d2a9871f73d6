#include "tests/properties/ort_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/properties/one_node.h"
#include "tests/support/op_tester.h"

namespace folio::properties {
namespace {

constexpr int kLogFatal = 4;  // errors come back as statuses
constexpr int kTensorKind = 1;
constexpr int kSequenceKind = 2;
constexpr int kMapKind = 3;

// ONNX Runtime says 24, 25, 26 of values of uint2, int2 and float8e8m0, and takes ONNX's numbers:
// float8e8m0, uint2, int2.
int onnx_type(int said) {
  constexpr int kFirst = 24;
  constexpr int kLast = 26;
  if (said < kFirst || said > kLast) return said;
  return said == kLast ? kFirst : said + 1;
}

}  // namespace

// One call of run(): what it made, and the first error.
struct OrtLibrary::Run {
  explicit Run(const OrtLibrary& library) : lib(library), api(*library.api_) {}
  ~Run() {
    for (OrtHandle* value : values) {
      if (value) api.ReleaseValue(value);
    }
    if (session) api.ReleaseSession(session);
  }

  bool ok(OrtHandle* status) {
    if (!status) return error.empty();
    if (error.empty()) error = api.GetErrorMessage(status);
    if (error.empty()) error = "an error without words";
    api.ReleaseStatus(status);
    return false;
  }

  OrtHandle* keep(OrtHandle* value) {
    values.push_back(value);
    return value;
  }

  OrtHandle* to_ort(const Value& value) {
    OrtHandle* made = nullptr;
    if (value.kind() == Value::Kind::kMap) {
      const OrtHandle* parts[] = {to_ort(Value(value.map().keys)),
                                  to_ort(Value(value.map().values))};
      ok(api.CreateValue(parts, 2, kMapKind, &made));
      return keep(made);
    }
    if (value.kind() == Value::Kind::kSequence) {
      std::vector<const OrtHandle*> parts;
      for (const Value& element : value.sequence().elements) parts.push_back(to_ort(element));
      ok(api.CreateValue(parts.data(), parts.size(), kSequenceKind, &made));
      return keep(made);
    }
    const Tensor& tensor = value.tensor();
    const auto dims = tensor.shape().dims();
    const int type = static_cast<int>(tensor.dtype());
    if (!tensor.is_string()) {
      ok(api.CreateTensorWithDataAsOrtValue(lib.memory_, const_cast<uint8_t*>(tensor.raw()),
                                            tensor.bytes(), dims.data(), dims.size(), type, &made));
      return keep(made);
    }
    ok(api.CreateTensorAsOrtValue(lib.allocator_, dims.data(), dims.size(), type, &made));
    std::vector<const char*> texts;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      texts.push_back(tensor.data<std::string>()[i].c_str());
    }
    if (made) ok(api.FillStringTensor(made, texts.data(), texts.size()));
    return keep(made);
  }

  Value from_ort(OrtHandle* value) {
    int has_value = 0;
    if (!value || !ok(api.HasValue(value, &has_value)) || has_value == 0) return {};
    int kind = 0;
    if (!ok(api.GetValueType(value, &kind))) return {};
    if (kind == kTensorKind) return tensor_from(value);
    size_t count = 0;
    if (!ok(api.GetValueCount(value, &count))) return {};
    std::vector<Value> parts;
    for (size_t i = 0; i < count; ++i) {
      OrtHandle* part = nullptr;
      if (!ok(api.GetValue(value, static_cast<int>(i), lib.allocator_, &part))) return {};
      parts.push_back(from_ort(keep(part)));
    }
    if (kind == kMapKind && parts.size() == 2)
      return make_map(parts[0].tensor(), parts[1].tensor());
    const bool has_dtype = !parts.empty() && parts[0].is_tensor();
    const DType dtype = has_dtype ? parts[0].tensor().dtype() : DType::kUndefined;
    return make_sequence(dtype, std::move(parts));
  }

  Value tensor_from(OrtHandle* value) {
    OrtHandle* info = nullptr;
    int type = 0;
    size_t rank = 0;
    if (!ok(api.GetTensorTypeAndShape(value, &info))) return {};
    ok(api.GetTensorElementType(info, &type));
    type = onnx_type(type);
    ok(api.GetDimensionsCount(info, &rank));
    std::vector<int64_t> dims(rank);
    ok(api.GetDimensions(info, dims.data(), rank));
    api.ReleaseTensorTypeAndShapeInfo(info);
    auto shape = shape_from(dims);
    if (!shape.is_ok() || !dtype_known(type)) return {};
    Tensor out = allocate_tensor(static_cast<DType>(type), shape.value()).take();
    if (out.is_string()) {
      fill_strings(value, &out);
      return Value(std::move(out));
    }
    void* data = nullptr;
    ok(api.GetTensorMutableData(value, &data));
    if (data && out.bytes() > 0) std::memcpy(out.raw_mut(), data, out.bytes());
    return Value(std::move(out));
  }

  void fill_strings(OrtHandle* value, Tensor* out) {
    size_t bytes = 0;
    const auto count = static_cast<size_t>(out->count());
    if (!ok(api.GetStringTensorDataLength(value, &bytes)) || count == 0) return;
    std::string all(bytes, '\0');
    std::vector<size_t> begins(count);
    ok(api.GetStringTensorContent(value, all.data(), bytes, begins.data(), count));
    for (size_t i = 0; i < count; ++i) {
      const size_t end = i + 1 < count ? begins[i + 1] : bytes;
      out->data_mut<std::string>()[i] = all.substr(begins[i], end - begins[i]);
    }
  }

  const OrtLibrary& lib;
  const OrtApi& api;
  OrtHandle* session = nullptr;
  std::vector<OrtHandle*> values;
  std::string error;
};

std::unique_ptr<OrtLibrary> OrtLibrary::open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never unloaded
  void* symbol = library ? dlsym(library, "OrtGetApiBase") : nullptr;
  EXPECT_NE(symbol, nullptr) << path << " is not ONNX Runtime";
  if (!symbol) return nullptr;
  const OrtApiBase* (*get_base)() = nullptr;
  std::memcpy(&get_base, &symbol, sizeof symbol);
  const OrtApiBase* base = get_base();
  const OrtApi* api = base->GetApi(kOrtApiVersion);
  EXPECT_NE(api, nullptr) << path << " is too old";
  if (!api) return nullptr;
  std::unique_ptr<OrtLibrary> out(new OrtLibrary(api, base->GetVersionString()));
  Run made(*out);
  made.ok(api->CreateEnv(kLogFatal, "folio", &out->env_));
  made.ok(api->CreateSessionOptions(&out->options_));
  made.ok(api->SetIntraOpNumThreads(out->options_, 1));
  made.ok(api->CreateCpuMemoryInfo(kOrtArenaAllocator, 0, &out->memory_));
  made.ok(api->GetAllocatorWithDefaultOptions(&out->allocator_));
  EXPECT_EQ(made.error, "");
  return made.error.empty() ? std::move(out) : nullptr;
}

OrtLibrary::~OrtLibrary() {
  if (memory_) api_->ReleaseMemoryInfo(memory_);
  if (options_) api_->ReleaseSessionOptions(options_);
  if (env_) api_->ReleaseEnv(env_);
}

void OrtLibrary::disable_optimizations() {
  constexpr int kDisableAll = 0;
  Run(*this).ok(api_->SetSessionGraphOptimizationLevel(options_, kDisableAll));
}

OrtOutcome OrtLibrary::run(const std::string& model, const std::vector<NamedValue>& inputs,
                           const std::vector<std::string>& outputs,
                           const std::vector<int>& in_place) const {
  Run at(*this);
  OrtOutcome out;
  std::vector<const OrtHandle*> values;
  std::vector<const char*> names;
  std::vector<const char*> wanted;
  std::vector<OrtHandle*> results(outputs.size(), nullptr);
  const auto is_input = [&](size_t i) { return i < in_place.size() && in_place[i] >= 0; };
  if (at.ok(
          api_->CreateSessionFromArray(env_, model.data(), model.size(), options_, &at.session))) {
    for (const NamedValue& input : inputs) {
      values.push_back(at.to_ort(input.value));
      names.push_back(input.name.c_str());
    }
    for (const std::string& name : outputs) wanted.push_back(name.c_str());
    for (size_t i = 0; i < results.size() && at.error.empty(); ++i) {
      if (is_input(i)) results[i] = at.values[static_cast<size_t>(in_place[i])];
    }
    if (at.error.empty()) {
      at.ok(api_->Run(at.session, nullptr, names.data(), values.data(), values.size(),
                      wanted.data(), wanted.size(), results.data()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (!is_input(i)) at.keep(results[i]);
    }
    if (at.error.empty()) {
      for (OrtHandle* result : results) out.outputs.push_back(at.from_ort(result));
    }
  }
  out.error = at.error;
  return out;
}

bool OrtLibrary::saturates_bytes() const {
  Draw draw(1);
  const OneNode model = model_of(case_of(
      {"", "MatMulInteger", 10, 10, 1, "", "u8[1,4]{255,255,255,255};=i8[4,1]{127,127,127,127}"},
      draw));
  const OrtOutcome got = run(model.bytes, model.inputs, model.outputs);
  EXPECT_EQ(got.error, "");
  return !got.error.empty() || got.outputs[0].tensor().data<int32_t>()[0] != 4 * 255 * 127;
}

}  // namespace folio::properties
