#include "tools/folio/ort_peer.h"

#include <dlfcn.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "tools/folio/element_type.h"
#include "tools/folio/ort_api.h"

namespace folio_cli {

namespace {

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

constexpr int kLogFatal = 4;  // errors come back as statuses

constexpr const char* kOptimizationLevel = "graph_optimization_level";

int level_of(const std::string& text) {
  for (const int level : {0, 1, 2, 99}) {
    if (text == std::to_string(level)) return level;
  }
  throw CliError(kExitUsage,
                 std::string(kOptimizationLevel) + " is 0, 1, 2 or 99, not '" + text + "'");
}

// ONNX Runtime's numbers are ONNX's but for the last three.
constexpr std::pair<FolioElementType, int> kOtherNumbers[] = {
    {FOLIO_UINT2, 24}, {FOLIO_INT2, 25}, {FOLIO_FLOAT8E8M0, 26}};

int to_ort_type(FolioElementType type) {
  for (const auto& [ours, theirs] : kOtherNumbers) {
    if (ours == type) return theirs;
  }
  return static_cast<int>(type);
}

FolioElementType from_ort_type(int type) {
  for (const auto& [ours, theirs] : kOtherNumbers) {
    if (theirs == type) return ours;
  }
  const bool is_known = type > FOLIO_UNDEFINED && type <= FOLIO_FLOAT4E2M1;
  return is_known ? static_cast<FolioElementType>(type) : FOLIO_UNDEFINED;
}

// Releases what a slot gave by `out`.
class Owned {
 public:
  using Release = void (*)(OrtHandle*);
  explicit Owned(Release release = nullptr) : release_(release) {}
  Owned(OrtHandle* handle, Release release) : handle_(handle), release_(release) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) release_(handle_);
  }

  OrtHandle* get() const { return handle_; }
  OrtHandle** out() { return &handle_; }

 private:
  OrtHandle* handle_ = nullptr;
  Release release_;
};

class OrtPeer : public Peer {
 public:
  OrtPeer(const std::string& library, const SessionSettings& settings) {
    open(library);
    env_ = Owned(api_->ReleaseEnv);
    check(api_->CreateEnv(kLogFatal, "folio compare", env_.out()));
    check(api_->GetAllocatorWithDefaultOptions(&allocator_));
    memory_ = Owned(api_->ReleaseMemoryInfo);
    check(api_->CreateCpuMemoryInfo(kOrtArenaAllocator, 0, memory_.out()));
    options_ = Owned(api_->ReleaseSessionOptions);
    check(api_->CreateSessionOptions(options_.out()));
    if (settings.threads != 0) {
      check(api_->SetIntraOpNumThreads(options_.get(), static_cast<int>(settings.threads)));
    }
    for (const std::string& entry : settings.config) {
      const auto [key, value] = split_assignment("--against-config", entry, SplitAt::kFirst);
      if (key == kOptimizationLevel) {
        check(api_->SetSessionGraphOptimizationLevel(options_.get(), level_of(value)));
      } else {
        check(api_->AddSessionConfigEntry(options_.get(), key.c_str(), value.c_str()));
      }
    }
  }

  std::string version() const override { return version_; }

  void load(const std::string& model) override {
    session_ = Owned(api_->ReleaseSession);
    check(api_->CreateSession(env_.get(), model.c_str(), options_.get(), session_.out()));
  }

  std::vector<Port> inputs() const override {
    size_t count = 0;
    check(api_->SessionGetInputCount(session_.get(), &count));
    std::vector<Port> ports;
    for (size_t i = 0; i < count; ++i) {
      Owned info(api_->ReleaseTypeInfo);
      check(api_->SessionGetInputTypeInfo(session_.get(), i, info.out()));
      Port port = port_of_type(info.get());
      port.name = name_of(api_->SessionGetInputName, i);
      ports.push_back(std::move(port));
    }
    return ports;
  }

  std::vector<std::string> output_names() const override {
    size_t count = 0;
    check(api_->SessionGetOutputCount(session_.get(), &count));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back(name_of(api_->SessionGetOutputName, i));
    return names;
  }

  void set_inputs(std::vector<NamedValue> inputs) override {
    given_ = std::move(inputs);
    output_names_ = output_names();
    for (const NamedValue& input : given_) {
      values_.push_back(to_ort(input.value));
      input_pointers_.push_back(values_.back().get());
      input_names_.push_back(input.name.c_str());
    }
    for (const std::string& name : output_names_) output_pointers_.push_back(name.c_str());
  }

  void run() override {
    outputs_.clear();
    std::vector<OrtHandle*> outputs(output_pointers_.size(), nullptr);
    OrtHandle* status =
        api_->Run(session_.get(), nullptr, input_names_.data(), input_pointers_.data(),
                  input_pointers_.size(), output_pointers_.data(), outputs.size(), outputs.data());
    for (OrtHandle* output : outputs) outputs_.emplace_back(output, api_->ReleaseValue);
    check(status);
  }

  std::vector<HostValue> outputs() const override {
    std::vector<HostValue> values;
    for (const Owned& output : outputs_) values.push_back(from_ort(output.get()));
    return values;
  }

 private:
  using NameSlot = OrtHandle* (*)(const OrtHandle*, size_t, OrtHandle*, char**);

  void open(const std::string& path) {
    // Never unloaded: its threads may outlive everything here.
    void* library = dlopen(file_or_name(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      fail(std::string("ONNX Runtime: ") + dlerror() +
           "; --ort (or FOLIO_ORT_LIBRARY) names its shared library, such as libonnxruntime.so.1");
    }
    void* symbol = dlsym(library, "OrtGetApiBase");
    if (symbol == nullptr) fail(path + " is not ONNX Runtime: it has no OrtGetApiBase");
    const OrtApiBase* (*get_base)() = nullptr;
    std::memcpy(&get_base, &symbol, sizeof symbol);
    const OrtApiBase* base = get_base();
    version_ = base->GetVersionString();
    api_ = base->GetApi(kOrtApiVersion);
    if (api_ == nullptr) fail(path + ": ONNX Runtime " + version_ + " is too old");
  }

  void check(OrtHandle* status) const {
    if (status == nullptr) return;
    const std::string message = api_->GetErrorMessage(status);
    api_->ReleaseStatus(status);
    fail(message);
  }

  std::string name_of(NameSlot slot, size_t index) const {
    char* name = nullptr;
    check(slot(session_.get(), index, allocator_, &name));
    const std::string text = name;
    check(api_->AllocatorFree(allocator_, name));
    return text;
  }

  Port port_of_type(const OrtHandle* info) const {
    Port port;
    int kind = 0;
    check(api_->GetOnnxTypeFromTypeInfo(info, &kind));
    port.kind = static_cast<FolioValueKind>(kind);  // the same numbers
    if (kind == FOLIO_KIND_SEQUENCE) {
      const OrtHandle* sequence = nullptr;
      check(api_->CastTypeInfoToSequenceTypeInfo(info, &sequence));
      Owned element(api_->ReleaseTypeInfo);
      check(api_->GetSequenceElementType(sequence, element.out()));
      port.element = port_of_type(element.get()).type;
    }
    if (kind != FOLIO_KIND_TENSOR) return port;
    const OrtHandle* tensor = nullptr;
    check(api_->CastTypeInfoToTensorInfo(info, &tensor));
    std::tie(port.type, port.dims) = type_and_dims(tensor);
    std::vector<const char*> names(port.dims.size(), "");
    check(api_->GetSymbolicDimensions(tensor, names.data(), names.size()));
    port.symbolic_dims.assign(names.begin(), names.end());
    return port;
  }

  std::pair<FolioElementType, folio::Dims> type_and_dims(const OrtHandle* tensor) const {
    int type = 0;
    size_t count = 0;
    check(api_->GetTensorElementType(tensor, &type));
    check(api_->GetDimensionsCount(tensor, &count));
    folio::Dims dims(count);
    check(api_->GetDimensions(tensor, dims.data(), count));
    return {from_ort_type(type), dims};
  }

  // Tensors of numbers stay where `value` has them.
  Owned to_ort(const HostValue& value) {
    Owned result(api_->ReleaseValue);
    if (value.kind == FOLIO_KIND_OPTIONAL && value.parts.size() == 1) return to_ort(value.parts[0]);
    if (value.kind == FOLIO_KIND_TENSOR) {
      const int type = to_ort_type(value.type);
      if (value.type != FOLIO_STRING) {
        check(api_->CreateTensorWithDataAsOrtValue(
            memory_.get(), const_cast<std::byte*>(value.bytes.data()), value.bytes.size(),
            value.dims.data(), value.dims.size(), type, result.out()));
        return result;
      }
      check(api_->CreateTensorAsOrtValue(allocator_, value.dims.data(), value.dims.size(), type,
                                         result.out()));
      std::vector<const char*> strings;
      for (const std::string& text : value.strings) strings.push_back(text.c_str());
      check(api_->FillStringTensor(result.get(), strings.data(), strings.size()));
      return result;
    }
    std::vector<const OrtHandle*> parts;
    for (const HostValue& part : value.parts) {
      values_.push_back(to_ort(part));
      parts.push_back(values_.back().get());
    }
    check(
        api_->CreateValue(parts.data(), parts.size(), static_cast<int>(value.kind), result.out()));
    return result;
  }

  HostValue from_ort(OrtHandle* value) const {
    HostValue result;
    result.kind = FOLIO_KIND_OPTIONAL;
    int has_value = 0;
    if (value != nullptr) check(api_->HasValue(value, &has_value));
    if (has_value == 0) return result;
    int kind = 0;
    check(api_->GetValueType(value, &kind));
    result.kind = static_cast<FolioValueKind>(kind);
    if (kind == FOLIO_KIND_TENSOR) return tensor_from_ort(value);
    size_t count = 0;
    check(api_->GetValueCount(value, &count));
    for (size_t i = 0; i < count; ++i) {
      Owned part(api_->ReleaseValue);
      check(api_->GetValue(value, static_cast<int>(i), allocator_, part.out()));
      result.parts.push_back(from_ort(part.get()));
    }
    return result;
  }

  HostValue tensor_from_ort(OrtHandle* value) const {
    HostValue result;
    Owned info(api_->ReleaseTensorTypeAndShapeInfo);
    check(api_->GetTensorTypeAndShape(value, info.out()));
    std::tie(result.type, result.dims) = type_and_dims(info.get());
    const size_t count = checked_count(result.dims, result.type);
    if (result.type == FOLIO_STRING) {
      size_t length = 0;
      check(api_->GetStringTensorDataLength(value, &length));
      std::string text(length, '\0');
      std::vector<size_t> offsets(count);
      check(api_->GetStringTensorContent(value, text.data(), length, offsets.data(), count));
      for (size_t i = 0; i < count; ++i) {
        const size_t end = i + 1 < count ? offsets[i + 1] : length;
        result.strings.push_back(text.substr(offsets[i], end - offsets[i]));
      }
      return result;
    }
    result.bytes.resize(packed_bytes(result.type, count));
    void* data = nullptr;
    check(api_->GetTensorMutableData(value, &data));
    if (!result.bytes.empty()) std::memcpy(result.bytes.data(), data, result.bytes.size());
    return result;
  }

  const OrtApi* api_ = nullptr;
  std::string version_;
  OrtHandle* allocator_ = nullptr;  // ONNX Runtime's own
  Owned env_;                       // released last
  Owned memory_;
  Owned options_;
  Owned session_;
  std::vector<NamedValue> given_;  // memory of the inputs
  std::vector<Owned> values_;      // the inputs, and parts of those that have parts
  std::vector<const OrtHandle*> input_pointers_;
  std::vector<const char*> input_names_;
  std::vector<std::string> output_names_;
  std::vector<const char*> output_pointers_;
  std::vector<Owned> outputs_;
};

}  // namespace

std::unique_ptr<Peer> make_ort_peer(const std::string& library, const SessionSettings& settings) {
  return std::make_unique<OrtPeer>(library, settings);
}

}  // namespace folio_cli
