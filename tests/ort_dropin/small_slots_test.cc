// Slots that answer in a line, by groups: what they say of the one device, of options, types and
// memory.
#include <cstring>

#include "tests/ort_dropin/dropin_support.h"

namespace dropin_test {
namespace {

using folio::ort::kFail;
using folio::ort::kInvalidArgument;

Metadata metadata_of(const Session& session) {
  return make<Metadata>(api().SessionGetModelMetadata,
                        static_cast<const OrtSession*>(session.get()));
}

TensorInfo new_info() { return make<TensorInfo>(api().CreateTensorTypeAndShapeInfo); }

// ---- devices and providers ----

TEST(Device, IsTheCpu) {
  size_t count = 0;
  ASSERT_CALL(api().GetNumHardwareDevices(env(), &count));
  ASSERT_GE(count, 1U);
  std::vector<const OrtHardwareDevice*> devices(count);
  ASSERT_CALL(api().GetHardwareDevices(env(), devices.data(), count));
  EXPECT_EQ(api().HardwareDevice_Type(devices[0]), 0);
  EXPECT_NE(api().HardwareDevice_Vendor(devices[0]), nullptr);
  EXPECT_NE(api().HardwareDevice_Metadata(devices[0]), nullptr);
  if (!is_folio()) return;
  EXPECT_EQ(api().HardwareDevice_VendorId(devices[0]), 0U);
  EXPECT_EQ(api().HardwareDevice_DeviceId(devices[0]), 0U);
  EXPECT_TRUE(fails(api().GetHardwareDevices(env(), devices.data(), 2), kInvalidArgument));
}

TEST(Device, IsThatOfTheOneProvider) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  ASSERT_CALL(api().GetEpDevices(env(), &devices, &count));
  ASSERT_GE(count, 1U);
  EXPECT_NE(api().EpDevice_EpVendor(devices[0]), nullptr);
  EXPECT_NE(api().EpDevice_EpMetadata(devices[0]), nullptr);
  EXPECT_NE(api().EpDevice_EpOptions(devices[0]), nullptr);
  const auto options = make<Options>(api().CreateSessionOptions);
  EXPECT_CALL(api().SessionOptionsAppendExecutionProvider_V2(
      options.get(), const_cast<OrtEnv*>(env()), devices, 1, nullptr, nullptr, 0));
  EXPECT_CALL(api().SessionOptionsSetEpSelectionPolicy(options.get(), 1));
  if (!is_folio()) return;
  const OrtMemoryInfo* const memory = api().EpDevice_MemoryInfo(devices[0], 0);
  const char* name = nullptr;
  ASSERT_CALL(api().MemoryInfoGetName(memory, &name));
  EXPECT_STREQ(name, "Cpu");
  const OrtEpDevice* const stranger = nullptr;
  EXPECT_TRUE(
      fails(api().SessionOptionsAppendExecutionProvider_V2(
                options.get(), const_cast<OrtEnv*>(env()), &stranger, 1, nullptr, nullptr, 0),
            kInvalidArgument, {"GetEpDevices"}));
}

TEST(Device, IsWhereInputsAndOutputsAre) {
  const Session session = session_of(add_model());
  const OrtMemoryInfo* in = nullptr;
  const OrtMemoryInfo* out[2] = {};
  ASSERT_CALL(api().SessionGetMemoryInfoForInputs(session.get(), &in, 1));
  ASSERT_CALL(api().SessionGetMemoryInfoForOutputs(session.get(), out, 2));
  for (const OrtMemoryInfo* info : {in, out[0], out[1]}) {
    const char* name = nullptr;
    ASSERT_CALL(api().MemoryInfoGetName(info, &name));
    EXPECT_STREQ(name, "Cpu");
    int type = -9;
    ASSERT_CALL(api().MemoryInfoGetMemType(info, &type));
    EXPECT_EQ(type, 0);
    EXPECT_EQ(api().MemoryInfoGetDeviceMemType(info), 0);
    EXPECT_EQ(api().MemoryInfoGetVendorId(info), 0U);
  }
  EXPECT_TRUE(
      fails(api().SessionGetMemoryInfoForOutputs(session.get(), out, 1), kInvalidArgument, {"2"}));
  if (!is_folio()) return;
  const OrtEpDevice* devices[2] = {};
  ASSERT_CALL(api().SessionGetEpDeviceForInputs(session.get(), devices, 1));
  EXPECT_STREQ(api().EpDevice_EpName(devices[0]), "CPUExecutionProvider");
  ASSERT_CALL(api().SessionGetEpDeviceForOutputs(session.get(), devices, 2));
  EXPECT_STREQ(api().EpDevice_EpName(devices[1]), "CPUExecutionProvider");
}

// What C#'s and node's bindings call for a provider that was asked for.
TEST(Providers, OfOneSlotEachAreRefused) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime's builds differ";
  const auto owner = make<Options>(api().CreateSessionOptions);
  OrtSessionOptions* const o = owner.get();
  const OrtApi& a = api();
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_CUDA(o, nullptr), kFail, {"CUDA"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_CUDA_V2(o, nullptr), kFail, {"CUDA"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_ROCM(o, nullptr), kFail, {"ROCM"}));
  EXPECT_TRUE(
      fails(a.SessionOptionsAppendExecutionProvider_TensorRT(o, nullptr), kFail, {"TensorRT"}));
  EXPECT_TRUE(
      fails(a.SessionOptionsAppendExecutionProvider_TensorRT_V2(o, nullptr), kFail, {"TensorRT"}));
  EXPECT_TRUE(
      fails(a.SessionOptionsAppendExecutionProvider_OpenVINO(o, nullptr), kFail, {"OpenVINO"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_OpenVINO_V2(o, nullptr, nullptr, 0),
                    kFail, {"OpenVINO"}));
  EXPECT_TRUE(
      fails(a.SessionOptionsAppendExecutionProvider_MIGraphX(o, nullptr), kFail, {"MIGraphX"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_CANN(o, nullptr), kFail, {"CANN"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_Dnnl(o, nullptr), kFail, {"oneDNN"}));
  EXPECT_TRUE(fails(a.SessionOptionsAppendExecutionProvider_VitisAI(o, nullptr, nullptr, 0), kFail,
                    {"VitisAI"}));
  EXPECT_TRUE(fails(a.CreateCUDAProviderOptions(nullptr), kFail, {"CUDA"}));
  EXPECT_TRUE(fails(a.CreateTensorRTProviderOptions(nullptr), kFail, {"TensorRT"}));
  EXPECT_TRUE(fails(a.CreateROCMProviderOptions(nullptr), kFail, {"ROCM"}));
}

// ---- options ----

TEST(SmallOptions, AreTakenAndTold) {
  const auto owner = make<Options>(api().CreateSessionOptions);
  OrtSessionOptions* const options = owner.get();
  EXPECT_CALL(api().EnableProfiling(options, "nowhere/profile"));
  EXPECT_CALL(api().DisableProfiling(options));
  const Session silent = session_of(add_model(), options);  // and writes no profile there
  int enabled = -1;
  EXPECT_CALL(api().DisableMemPattern(options));
  if (api().GetMemPatternEnabled) {
    EXPECT_CALL(api().GetMemPatternEnabled(options, &enabled));
    EXPECT_EQ(enabled, 0);
    EXPECT_CALL(api().EnableMemPattern(options));
    EXPECT_CALL(api().GetMemPatternEnabled(options, &enabled));
    EXPECT_EQ(enabled, 1);
  }
  int mode = -1;
  EXPECT_CALL(api().SetSessionExecutionMode(options, 1));
  EXPECT_CALL(api().GetSessionExecutionMode(options, &mode));
  EXPECT_EQ(mode, 1);
}

TEST(SmallOptions, TellTheirEntries) {
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.set_denormal_as_zero", "1"));
  OrtKeyValuePairs* pairs = nullptr;
  ASSERT_CALL(api().GetSessionOptionsConfigEntries(options.get(), &pairs));
  EXPECT_STREQ(api().GetKeyValue(pairs, "session.set_denormal_as_zero"), "1");
  api().ReleaseKeyValuePairs(pairs);
}

struct Log {
  std::string lines;
  static void add(void* user, int, const char*, const char*, const char*, const char* text) {
    static_cast<Log*>(user)->lines += std::string(text) + "\n";
  }
};

TEST(SmallOptions, HaveALogOfTheirOwn) {
  Log log;
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().SetUserLoggingFunction(options.get(), Log::add, &log));
  ASSERT_CALL(api().SetSessionLogSeverityLevel(options.get(), 0));
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.no_such_key_small", "1"));
  const Session session = session_of(add_model(), options.get());
  EXPECT_NE(log.lines, "");
}

TEST(SmallOptions, InitializersInMemoryStandForExternalOnes) {
  const auto options = make<Options>(api().CreateSessionOptions);
  std::vector<float> w = {1, 2, 3};
  const Value value = floats(&w, {3});
  const char* const name = "w";
  const OrtValue* const given = value.get();
  ASSERT_CALL(api().AddExternalInitializers(options.get(), &name, &given, 1));
  const Session session = session_of(external_model(), options.get());
  std::vector<float> x = {10, 20, 30};
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", floats(&x, {1, 3}).get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
}

// ---- environments ----

TEST(SmallEnv, TakesWhatItIsTold) {
  EXPECT_CALL(api().EnableTelemetryEvents(env()));
  OrtThreadingOptions* threading = nullptr;
  ASSERT_CALL(api().CreateThreadingOptions(&threading));
  EXPECT_CALL(api().SetGlobalIntraOpNumThreads(threading, 2));
  EXPECT_CALL(api().SetGlobalIntraOpThreadAffinity(threading, "1"));
  OrtEnv* raw = nullptr;
  Log log;
  ASSERT_CALL(api().CreateEnvWithCustomLoggerAndGlobalThreadPools(Log::add, &log, 2, "pools",
                                                                  threading, &raw));
  const Env owner(raw);
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().DisablePerSessionThreads(options.get()));
  // ONNX Runtime has one environment in a process: the first, which has no such threads.
  if (!is_folio()) return api().ReleaseThreadingOptions(threading);
  const std::string model = add_model();
  OrtSession* session = nullptr;
  ASSERT_CALL(
      api().CreateSessionFromArray(raw, model.data(), model.size(), options.get(), &session));
  api().ReleaseSession(session);
  api().ReleaseThreadingOptions(threading);
}

TEST(SmallEnv, IsMadeOfOptions) {
  Log log;
  OrtEnvCreationOptions options = {};
  options.version = folio::ort::kApiVersion;
  options.level = 2;
  options.log_id = "of options";
  options.log = Log::add;
  options.log_user = &log;
  OrtEnv* raw = nullptr;
  ASSERT_CALL(api().CreateEnvWithOptions(&options, &raw));
  EXPECT_NE(raw, nullptr);
  api().ReleaseEnv(raw);
  EXPECT_TRUE(fails(api().CreateEnvWithOptions(nullptr, &raw), kInvalidArgument));
}

// ---- memory ----

TEST(SmallMemory, ArenasAreDescribed) {
  OrtArenaCfg* arena = nullptr;
  ASSERT_CALL(api().CreateArenaCfg(0, -1, -1, -1, &arena));
  if (is_folio()) {
    EXPECT_CALL(api().CreateAndRegisterAllocator(const_cast<OrtEnv*>(env()), cpu(), arena));
    EXPECT_CALL(api().CreateAndRegisterAllocatorV2(
        const_cast<OrtEnv*>(env()), "CPUExecutionProvider", cpu(), arena, nullptr, nullptr, 0));
  }
  api().ReleaseArenaCfg(arena);
  const char* const key = "max_mem";
  const size_t value = 1 << 20;
  ASSERT_CALL(api().CreateArenaCfgV2(&key, &value, 1, &arena));
  api().ReleaseArenaCfg(arena);
  const char* const odd = "no_such_key";
  EXPECT_TRUE(fails(api().CreateArenaCfgV2(&odd, &value, 1, &arena), kInvalidArgument, {odd}));
}

TEST(SmallMemory, AllocatorsOfASessionGiveMemory) {
  const Session session = session_of(add_model());
  OrtAllocator* made = nullptr;
  ASSERT_CALL(api().CreateAllocator(session.get(), cpu(), &made));
  void* memory = nullptr;
  ASSERT_CALL(api().AllocatorAlloc(made, 100, &memory));
  std::memset(memory, 7, 100);
  ASSERT_CALL(api().AllocatorFree(made, memory));
  api().ReleaseAllocator(made);
  OrtKeyValuePairs* stats = nullptr;
  ASSERT_CALL(api().AllocatorGetStats(allocator(), &stats));
  api().ReleaseKeyValuePairs(stats);
  OrtAllocator* shared = nullptr;
  ASSERT_CALL(api().GetSharedAllocator(const_cast<OrtEnv*>(env()), cpu(), &shared));
  EXPECT_NE(shared, nullptr);
}

TEST(SmallMemory, InfosOfAnyDeviceAreMade) {
  OrtMemoryInfo* raw = nullptr;
  ASSERT_CALL(api().CreateMemoryInfo_V2("Mine", 3, 0x1234, 5, 0, 64, 0, &raw));
  const MemoryInfo info(raw);
  EXPECT_EQ(api().MemoryInfoGetVendorId(raw), 0x1234U);
  int id = 0;
  ASSERT_CALL(api().MemoryInfoGetId(raw, &id));
  EXPECT_EQ(id, 5);
  int type = 0;
  api().MemoryInfoGetDeviceType(raw, &type);
  EXPECT_EQ(type, 3);
}

TEST(SmallMemory, ExternalInitializersAreDescribed) {
  OrtExternalInitializerInfo* info = nullptr;
  ASSERT_CALL(api().CreateExternalInitializerInfo("weights.bin", 4096, 100, &info));
  EXPECT_STREQ(api().ExternalInitializerInfo_GetFilePath(info), "weights.bin");
  EXPECT_EQ(api().ExternalInitializerInfo_GetFileOffset(info), 4096);
  EXPECT_EQ(api().ExternalInitializerInfo_GetByteSize(info), 100U);
  api().ReleaseExternalInitializerInfo(info);
}

// ---- values and types ----

TEST(SmallTypes, AreMadeByHand) {
  const TensorInfo info = new_info();
  ASSERT_CALL(api().SetTensorElementType(info.get(), kInt64));
  const int64_t dims[] = {2, -1};
  ASSERT_CALL(api().SetDimensions(info.get(), dims, 2));
  const char* names[] = {"", "n"};
  ASSERT_CALL(api().SetSymbolicDimensions(info.get(), names, 2));
  int type = 0;
  ASSERT_CALL(api().GetTensorElementType(info.get(), &type));
  EXPECT_EQ(type, kInt64);
  int64_t told[2] = {};
  ASSERT_CALL(api().GetDimensions(info.get(), told, 2));
  EXPECT_EQ(told[1], -1);
  const char* symbols[2] = {};
  ASSERT_CALL(api().GetSymbolicDimensions(info.get(), symbols, 2));
  EXPECT_STREQ(symbols[1], "n");
  EXPECT_TRUE(api().TensorTypeAndShape_HasShape(info.get()));
  EXPECT_FALSE(api().TensorTypeAndShape_HasShape(new_info().get()));
}

TEST(SmallTypes, OfAnInputHaveNoDenotationAndAreNotOptional) {
  const Session session = session_of(add_model());
  const auto info = make<TypeInfo>(api().SessionGetInputTypeInfo,
                                   static_cast<const OrtSession*>(session.get()), size_t{0});
  const char* denotation = nullptr;
  size_t bytes = 9;
  ASSERT_CALL(api().GetDenotationFromTypeInfo(info.get(), &denotation, &bytes));
  EXPECT_EQ(bytes, 0U);
  const OrtOptionalTypeInfo* optional = nullptr;
  EXPECT_CALL(api().CastTypeInfoToOptionalTypeInfo(info.get(), &optional));
  EXPECT_EQ(optional, nullptr);
  if (is_folio()) {
    EXPECT_TRUE(fails(api().GetOptionalContainedTypeInfo(nullptr, nullptr), kInvalidArgument));
  }
  api().ReleaseMapTypeInfo(nullptr);
  api().ReleaseSequenceTypeInfo(nullptr);
}

TEST(SmallTypes, OfAnInitializerThatARunMayOverride) {
  const Session session = session_of(default_model());
  const auto info = make<TypeInfo>(api().SessionGetOverridableInitializerTypeInfo,
                                   static_cast<const OrtSession*>(session.get()), size_t{0});
  int kind = 0;
  ASSERT_CALL(api().GetOnnxTypeFromTypeInfo(info.get(), &kind));
  EXPECT_EQ(kind, 1);
}

TEST(SmallTypes, OfAValueAreReadInPlace) {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const Value value = floats(&x, {2, 3});
  int type = 0;
  const int64_t* dims = nullptr;
  size_t count = 0;
  ASSERT_CALL(api().GetTensorElementTypeAndShapeDataReference(value.get(), &type, &dims, &count));
  EXPECT_EQ(type, kFloat);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(dims[1], 3);
}

TEST(SmallValues, AreCopied) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime copies between devices alone";
  std::vector<float> from = {1, 2, 3};
  std::vector<float> to = {0, 0, 0};
  const Value source = floats(&from, {3});
  const Value target = floats(&to, {3});
  const OrtValue* const sources[] = {source.get()};
  OrtValue* const targets[] = {target.get()};
  ASSERT_CALL(api().CopyTensors(env(), sources, targets, nullptr, 1));
  EXPECT_EQ(to, from);
}

TEST(SmallMetadata, OfWhatAModelLacksIsEmpty) {
  const Session session = session_of(add_model());
  const Metadata metadata = metadata_of(session);
  char* text = nullptr;
  ASSERT_CALL(api().ModelMetadataGetDomain(metadata.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "");
  ASSERT_CALL(api().ModelMetadataGetGraphDescription(metadata.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "");
}

}  // namespace
}  // namespace dropin_test
