// ONNX Runtime's binary interface as the drop-in has it: handles, structs that cross the border,
// and the table of functions, whose places come from api_slots.inc.
//
// Flow:    a program asks OrtGetApiBase for the table of its version and calls through it. There is
//          one table for all versions, since ONNX Runtime only ever adds at the end.
// Owns:    nothing; types only. Written from facts of the interface, not from its header.
// Errors:  OrtStatus*: NULL is success, else the caller's, to be given to ReleaseStatus.
#pragma once

#include <cstddef>
#include <cstdint>

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtIoBinding;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtMapTypeInfo;
struct OrtSequenceTypeInfo;
struct OrtOptionalTypeInfo;
struct OrtMemoryInfo;
struct OrtModelMetadata;
struct OrtThreadingOptions;
struct OrtArenaCfg;
struct OrtKeyValuePairs;
struct OrtPrepackedWeightsContainer;
struct OrtExternalInitializerInfo;
struct OrtEpDevice;
struct OrtHardwareDevice;

// Of things that the drop-in never makes: pointers to them pass through, or are refused.
struct OrtCANNProviderOptions;
struct OrtCUDAProviderOptions;
struct OrtCUDAProviderOptionsV2;
struct OrtCustomOp;
struct OrtCustomOpDomain;
struct OrtDeviceEpIncompatibilityDetails;
struct OrtDnnlProviderOptions;
struct OrtEpApi;
struct OrtEpAssignedNode;
struct OrtEpAssignedSubgraph;
struct OrtGraph;
struct OrtInteropApi;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtLogger;
struct OrtLoraAdapter;
struct OrtMIGraphXProviderOptions;
struct OrtModel;
struct OrtModelEditorApi;
struct OrtNode;
struct OrtOp;
struct OrtOpAttr;
struct OrtOpenVINOProviderOptions;
struct OrtROCMProviderOptions;
struct OrtShapeInferContext;
struct OrtSyncStream;
struct OrtTensorRTProviderOptions;
struct OrtTensorRTProviderOptionsV2;
struct OrtThreadPoolCallbacksConfig;
struct OrtTrainingApi;
struct OrtValueInfo;

using OrtLoggingFunction = void (*)(void* user, int level, const char* category, const char* log_id,
                                    const char* code_location, const char* message);
using RunAsyncCallbackFn = void (*)(void* user, OrtValue** outputs, size_t output_count,
                                    OrtStatus* status);
using OrtCustomThreadHandle = void*;
using OrtCustomCreateThreadFn = OrtCustomThreadHandle (*)(void* options, void (*worker)(void*),
                                                          void* parameter);
using OrtCustomJoinThreadFn = void (*)(OrtCustomThreadHandle thread);
using EpSelectionDelegate = void*;
using OrtExperimentalFnPtr = void (*)();

// Of the caller's or of ours; what a struct of a lower version does not have is not read.
struct OrtAllocator {
  uint32_t version;
  void* (*Alloc)(OrtAllocator* self, size_t bytes);
  void (*Free)(OrtAllocator* self, void* memory);
  const OrtMemoryInfo* (*Info)(const OrtAllocator* self);
  void* (*Reserve)(OrtAllocator* self, size_t bytes);
  OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out);
  void* (*AllocOnStream)(OrtAllocator* self, size_t bytes, OrtSyncStream* stream);
  OrtStatus* (*Shrink)(OrtAllocator* self);
};

// Input of CreateEnvWithOptions.
struct OrtEnvCreationOptions {
  uint32_t version;
  int32_t level;
  const char* log_id;
  OrtLoggingFunction log;
  void* log_user;
  const OrtThreadingOptions* threading;
  const OrtKeyValuePairs* config;
};

namespace folio::ort {

// OrtErrorCode.
enum Code : int {
  kOk = 0,
  kFail = 1,
  kInvalidArgument = 2,
  kNoSuchFile = 3,
  kNoModel = 4,
  kEngineError = 5,
  kRuntimeException = 6,
  kInvalidProtobuf = 7,
  kModelLoaded = 8,
  kNotImplemented = 9,
  kInvalidGraph = 10,
  kEpFail = 11,
  kModelLoadCanceled = 12,
  kModelRequiresCompilation = 13,
  kNotFound = 14,
};

constexpr uint32_t kApiVersion = 30;  // the newest whose slots are known by name
constexpr size_t kNamedSlotCount = 426;
// Slots that later versions may have added: a program that calls one gets NOT_IMPLEMENTED.
constexpr size_t kUnnamedSlotCount = 86;
constexpr size_t kSlotCount = kNamedSlotCount + kUnnamedSlotCount;

}  // namespace folio::ort

// Sub-table of slot GetCompileApi. It makes models for devices that have a compiler of their own;
// each of its functions but the release, the first, answers NOT_IMPLEMENTED.
struct OrtCompileApi {
  void (*ReleaseModelCompilationOptions)(void* options);
  OrtStatus* (*others[31])();
};

struct OrtApi {
#define ORT_SLOT(place, name, result, arguments) result(*name) arguments;
#define ORT_REFUSED(place, name, result, arguments) result(*name) arguments;
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
  OrtStatus* (*unnamed[folio::ort::kUnnamedSlotCount])();
};

struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

// The one exported symbol.
extern "C" __attribute__((visibility("default"))) const OrtApiBase* OrtGetApiBase();

namespace folio::ort {

// Functions of the slots that the drop-in has; none throws.
namespace slot {
#define ORT_SLOT(place, name, result, arguments) result name arguments noexcept;
#define ORT_REFUSED(place, name, result, arguments)
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
}  // namespace slot

}  // namespace folio::ort
