// Slots: execution providers. There is one, the CPU; others are refused as ONNX Runtime refuses
// those that its build lacks.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "c_api/ort_dropin/handles.h"

struct OrtHardwareDevice {};

struct OrtEpDevice {
  OrtHardwareDevice hardware;
  OrtKeyValuePairs none;
};

namespace folio::ort {
namespace {

// Short names of providers that slot SessionOptionsAppendExecutionProvider knows, and their long
// ones.
constexpr const char* kKnownProviders[][2] = {
    {"DML", "DmlExecutionProvider"},
    {"QNN", "QNNExecutionProvider"},
    {"OpenVINO", "OpenVINOExecutionProvider"},
    {"SNPE", "SNPEExecutionProvider"},
    {"XNNPACK", "XnnpackExecutionProvider"},
    {"WEBNN", "WebNNExecutionProvider"},
    {"WebGPU", "WebGpuExecutionProvider"},
    {"AZURE", "AzureExecutionProvider"},
    {"JS", "JsExecutionProvider"},
    {"VitisAI", "VitisAIExecutionProvider"},
    {"CoreML", "CoreMLExecutionProvider"},
    {"NvTensorRtRtx", "NvTensorRTRTXExecutionProvider"},
    {"MIGraphX", "MIGraphXExecutionProvider"},
};

// The slots that are one provider's own answer FAIL, the one for any of them INVALID_ARGUMENT.
OrtStatus* absent(const char* provider, int code = kFail) noexcept {
  return guarded([&] {
    return make_status(code, std::string(provider) +
                                 " execution provider is not enabled in this build: Folio "
                                 "computes on the CPU");
  });
}

OrtEpDevice& device() {
  static auto* const made = new OrtEpDevice;
  return *made;
}

// For every input or output: the CPU's.
template <typename T>
OrtStatus* fill(const T** out, size_t count, size_t expected, const T* what) {
  if (count > 0) ORT_NOT_NULL(out);
  if (count != expected) {
    return make_status(kInvalidArgument, "the session has " + std::to_string(expected) +
                                             " of them, room is given for " +
                                             std::to_string(count));
  }
  std::fill_n(out, count, what);
  return nullptr;
}

template <typename T>
OrtStatus* fill_inputs(const OrtSession* session, const T** out, size_t count, const T* what) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    size_t expected = 0;
    ORT_CALL(folio().SessionGetInputCount(session->session.get(), &expected));
    return fill(out, count, expected, what);
  });
}

template <typename T>
OrtStatus* fill_outputs(const OrtSession* session, const T** out, size_t count, const T* what) {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(session);
    size_t expected = 0;
    ORT_CALL(folio().SessionGetOutputCount(session->session.get(), &expected));
    return fill(out, count, expected, what);
  });
}

}  // namespace

const OrtEpDevice* cpu_device() { return &device(); }

namespace slot {

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options, const char* name,
                                                 const char* const*, const char* const*,
                                                 size_t) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    ORT_NOT_NULL(name);
    if (std::strcmp(name, "CPU") == 0 || std::strcmp(name, kProviderName) == 0) return nullptr;
    for (const auto& known : kKnownProviders) {
      if (std::strcmp(name, known[0]) == 0 || std::strcmp(name, known[1]) == 0) {
        return absent(known[0], kInvalidArgument);
      }
    }
    return make_status(kInvalidArgument, std::string("unknown provider name '") + name +
                                             "': this library has 'CPU'/'CPUExecutionProvider'");
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions*,
                                                      const OrtCUDAProviderOptions*) noexcept {
  return absent("CUDA");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CUDA_V2(OrtSessionOptions*,
                                                         const OrtCUDAProviderOptionsV2*) noexcept {
  return absent("CUDA");
}
OrtStatus* SessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions*,
                                                      const OrtROCMProviderOptions*) noexcept {
  return absent("ROCM");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO(
    OrtSessionOptions*, const OrtOpenVINOProviderOptions*) noexcept {
  return absent("OpenVINO");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO_V2(OrtSessionOptions*, const char* const*,
                                                             const char* const*, size_t) noexcept {
  return absent("OpenVINO");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT(
    OrtSessionOptions*, const OrtTensorRTProviderOptions*) noexcept {
  return absent("TensorRT");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT_V2(
    OrtSessionOptions*, const OrtTensorRTProviderOptionsV2*) noexcept {
  return absent("TensorRT");
}
OrtStatus* SessionOptionsAppendExecutionProvider_MIGraphX(
    OrtSessionOptions*, const OrtMIGraphXProviderOptions*) noexcept {
  return absent("MIGraphX");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CANN(OrtSessionOptions*,
                                                      const OrtCANNProviderOptions*) noexcept {
  return absent("CANN");
}
OrtStatus* SessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions*,
                                                      const OrtDnnlProviderOptions*) noexcept {
  return absent("oneDNN");
}
OrtStatus* SessionOptionsAppendExecutionProvider_VitisAI(OrtSessionOptions*, const char* const*,
                                                         const char* const*, size_t) noexcept {
  return absent("VitisAI");
}

OrtStatus* CreateCUDAProviderOptions(OrtCUDAProviderOptionsV2**) noexcept { return absent("CUDA"); }
OrtStatus* CreateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2**) noexcept {
  return absent("TensorRT");
}
OrtStatus* CreateCANNProviderOptions(OrtCANNProviderOptions**) noexcept { return absent("CANN"); }
OrtStatus* CreateDnnlProviderOptions(OrtDnnlProviderOptions**) noexcept { return absent("oneDNN"); }
OrtStatus* CreateROCMProviderOptions(OrtROCMProviderOptions**) noexcept { return absent("ROCM"); }

// ---- devices: the CPU ----

OrtStatus* GetEpDevices(const OrtEnv*, const OrtEpDevice* const** out, size_t* out_count) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    ORT_NOT_NULL(out_count);
    static const OrtEpDevice* const devices[] = {cpu_device()};
    *out = devices;
    *out_count = std::size(devices);
    return nullptr;
  });
}

OrtStatus* GetNumHardwareDevices(const OrtEnv*, size_t* out) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(out);
    *out = 1;
    return nullptr;
  });
}

OrtStatus* GetHardwareDevices(const OrtEnv*, const OrtHardwareDevice** out, size_t count) noexcept {
  return guarded([&] { return fill<OrtHardwareDevice>(out, count, 1, &cpu_device()->hardware); });
}

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* options, OrtEnv*,
                                                    const OrtEpDevice* const* devices, size_t count,
                                                    const char* const*, const char* const*,
                                                    size_t) noexcept {
  return guarded([&]() -> OrtStatus* {
    ORT_NOT_NULL(options);
    if (count > 0) ORT_NOT_NULL(devices);
    for (size_t i = 0; i < count; ++i) {
      if (devices[i] != cpu_device()) {
        return make_status(kInvalidArgument, "a device that GetEpDevices did not give");
      }
    }
    return nullptr;
  });
}

// Whatever is preferred, the CPU is what there is.
OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions*, int) noexcept { return nullptr; }

int HardwareDevice_Type(const OrtHardwareDevice*) noexcept { return 0; }  // CPU
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice*) noexcept { return 0; }
const char* HardwareDevice_Vendor(const OrtHardwareDevice*) noexcept {
  FolioCpuInfo info = {};
  info.size = sizeof info;
  OrtStatus* const status = to_ort(folio().GetCpuInfo(&info));
  const bool failed = status != nullptr;
  slot::ReleaseStatus(status);
  return failed ? "" : info.brand;
}
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice*) noexcept { return 0; }
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice*) noexcept {
  return &device().none;
}
const char* EpDevice_EpName(const OrtEpDevice*) noexcept { return kProviderName; }
const char* EpDevice_EpVendor(const OrtEpDevice*) noexcept { return "Folio"; }
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice*) noexcept { return &device().none; }
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice*) noexcept { return &device().none; }
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* ep) noexcept {
  return ep ? &ep->hardware : nullptr;
}
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice*, int) noexcept { return &cpu_memory(); }

OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session, const OrtMemoryInfo** out,
                                         size_t count) noexcept {
  return fill_inputs(session, out, count, &cpu_memory());
}
OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session, const OrtMemoryInfo** out,
                                          size_t count) noexcept {
  return fill_outputs(session, out, count, &cpu_memory());
}
OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session, const OrtEpDevice** out,
                                       size_t count) noexcept {
  return fill_inputs(session, out, count, cpu_device());
}
OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session, const OrtEpDevice** out,
                                        size_t count) noexcept {
  return fill_outputs(session, out, count, cpu_device());
}

}  // namespace slot
}  // namespace folio::ort
