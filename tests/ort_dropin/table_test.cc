#include <cstring>
#include <type_traits>

#include "tests/ort_dropin/dropin_support.h"

namespace dropin_test {
namespace {

// What a client of each version asks for. ONNX Runtime 1.30 has none after 30.
TEST(Table, IsTheSameForEveryVersion) {
  for (uint32_t version = 1; version <= folio::ort::kApiVersion; ++version) {
    const OrtApi* const found = base().GetApi(version);
    if (is_folio()) {
      ASSERT_NE(found, nullptr) << version;
    }
    if (found) {
      EXPECT_EQ(found, &api()) << version;
    }
  }
  EXPECT_EQ(base().GetApi(0), nullptr);
  for (const uint32_t later : {31U, 32U, 99U, ~0U}) {
    EXPECT_EQ(base().GetApi(later), is_folio() ? &api() : nullptr) << later;
  }
}

TEST(Table, HasAFunctionInEverySlot) {
  if (!is_folio()) GTEST_SKIP() << "about Folio's own slots";
  const void* slots[folio::ort::kSlotCount];
  static_assert(sizeof slots == sizeof(OrtApi));
  std::memcpy(slots, &api(), sizeof slots);
  for (size_t i = 0; i < folio::ort::kSlotCount; ++i) EXPECT_NE(slots[i], nullptr) << i;
  EXPECT_NE(api().GetCompileApi(), nullptr);
  const OrtCompileApi& compile = *api().GetCompileApi();
  compile.ReleaseModelCompilationOptions(nullptr);
  for (const auto other : compile.others) ASSERT_NE(other, nullptr);
}

template <typename Result, typename... Arguments>
void expect_refused(const char* name, Result (*slot)(Arguments...)) {
  SCOPED_TRACE(name);
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    EXPECT_TRUE(fails(slot(Arguments{}...), folio::ort::kNotImplemented, {name}));
  } else if constexpr (std::is_void_v<Result>) {
    slot(Arguments{}...);
  } else {
    EXPECT_EQ(slot(Arguments{}...), Result{});
  }
}

TEST(Table, EveryRefusedSlotNamesItsFunction) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime has these";
#define ORT_SLOT(place, name, result, arguments)
#define ORT_REFUSED(place, name, result, arguments) expect_refused(#name, api().name);
#include "c_api/ort_dropin/api_slots.inc"
#undef ORT_SLOT
#undef ORT_REFUSED
  for (size_t i = 0; i < folio::ort::kUnnamedSlotCount; ++i) {
    const std::string name = "slot " + std::to_string(folio::ort::kNamedSlotCount + i);
    EXPECT_TRUE(fails(api().unnamed[i](), folio::ort::kNotImplemented, {name.c_str()}));
  }
  for (const auto other : api().GetCompileApi()->others) {
    EXPECT_TRUE(fails(other(), folio::ort::kNotImplemented, {"compilation"}));
  }
}

TEST(Table, SubTablesThatAreAbsentAreNull) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime has some of these";
  EXPECT_EQ(api().GetTrainingApi(1), nullptr);
  EXPECT_EQ(api().GetModelEditorApi(), nullptr);
  EXPECT_EQ(api().GetEpApi(), nullptr);
  EXPECT_EQ(api().GetInteropApi(), nullptr);
  EXPECT_EQ(api().GetExperimentalFunction("anything"), nullptr);
}

TEST(Table, VersionBeginsAsOnnxRuntimesDoes) {
  EXPECT_EQ(std::strncmp(base().GetVersionString(), "1.", 2), 0);
  EXPECT_NE(api().GetBuildInfoString(), nullptr);
}

TEST(Status, HasCodeAndMessage) {
  OrtStatus* const status = api().CreateStatus(10, "the graph");
  EXPECT_TRUE(fails(status, 10, {"the graph"}));
}

TEST(Release, TakesNull) {
  api().ReleaseEnv(nullptr);
  api().ReleaseStatus(nullptr);
  api().ReleaseMemoryInfo(nullptr);
  api().ReleaseSession(nullptr);
  api().ReleaseValue(nullptr);
  api().ReleaseRunOptions(nullptr);
  api().ReleaseTypeInfo(nullptr);
  api().ReleaseTensorTypeAndShapeInfo(nullptr);
  api().ReleaseSessionOptions(nullptr);
  api().ReleaseModelMetadata(nullptr);
  api().ReleaseIoBinding(nullptr);
  api().ReleaseThreadingOptions(nullptr);
  api().ReleaseArenaCfg(nullptr);
  api().ReleasePrepackedWeightsContainer(nullptr);
}

TEST(Arguments, ThatAreNullAreRefused) {
  if (!is_folio()) GTEST_SKIP() << "ONNX Runtime reads through some of them";
  constexpr int kBad = folio::ort::kInvalidArgument;
  EXPECT_TRUE(fails(api().CreateEnv(2, "x", nullptr), kBad, {"out"}));
  EXPECT_TRUE(fails(api().CreateSession(env(), nullptr, nullptr, nullptr), kBad));
  EXPECT_TRUE(fails(api().CreateSessionFromArray(env(), nullptr, 3, nullptr, nullptr), kBad));
  EXPECT_TRUE(fails(api().Run(nullptr, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr), kBad));
  EXPECT_TRUE(fails(api().GetTensorMutableData(nullptr, nullptr), kBad));
  EXPECT_TRUE(fails(api().SetIntraOpNumThreads(nullptr, 1), kBad));
  EXPECT_TRUE(fails(api().SessionGetInputCount(nullptr, nullptr), kBad));
  EXPECT_TRUE(fails(api().CreateIoBinding(nullptr, nullptr), kBad));
}

TEST(Env, SendsItsLogToTheProgram) {
  struct Log {
    std::string lines;
    static void add(void* user, int, const char*, const char* id, const char*, const char* text) {
      static_cast<Log*>(user)->lines += std::string(id) + ": " + text + "\n";
    }
  } log;
  OrtEnv* raw = nullptr;
  ASSERT_CALL(api().CreateEnvWithCustomLogger(Log::add, &log, 2, "mine", &raw));
  const Env owner(raw);
  ASSERT_CALL(api().DisableTelemetryEvents(raw));
  ASSERT_CALL(api().SetLanguageProjection(raw, 0));
  if (!is_folio()) return;
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.no_such_key_a", "1"));
  const std::string model = add_model();
  const auto load = [&] {
    Session session;
    OrtSession* made = nullptr;
    EXPECT_CALL(
        api().CreateSessionFromArray(raw, model.data(), model.size(), options.get(), &made));
    session.reset(made);
  };
  load();
  EXPECT_NE(log.lines.find("mine: "), std::string::npos) << log.lines;
  EXPECT_NE(log.lines.find("session.no_such_key_a"), std::string::npos) << log.lines;
  log.lines.clear();
  ASSERT_CALL(api().UpdateEnvWithCustomLogLevel(raw, 4));
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.no_such_key_b", "1"));
  load();
  EXPECT_EQ(log.lines, "");
}

TEST(Env, WithThreadsOfItsOwnServesSessions) {
  OrtThreadingOptions* threading = nullptr;
  ASSERT_CALL(api().CreateThreadingOptions(&threading));
  EXPECT_CALL(api().SetGlobalIntraOpNumThreads(threading, 1));
  EXPECT_CALL(api().SetGlobalInterOpNumThreads(threading, 1));
  EXPECT_CALL(api().SetGlobalSpinControl(threading, 0));
  EXPECT_CALL(api().SetGlobalDenormalAsZero(threading));
  OrtEnv* raw = nullptr;
  ASSERT_CALL(api().CreateEnvWithGlobalThreadPools(3, "pools", threading, &raw));
  const Env owner(raw);
  api().ReleaseThreadingOptions(threading);
}

TEST(Providers, AreTheCpuAlone) {
  char** names = nullptr;
  int count = 0;
  ASSERT_CALL(api().GetAvailableProviders(&names, &count));
  EXPECT_STREQ(names[count - 1], "CPUExecutionProvider");
  if (is_folio()) {
    EXPECT_EQ(count, 1);
  }
  ASSERT_CALL(api().ReleaseAvailableProviders(names, count));
  const OrtEpDevice* const* devices = nullptr;
  size_t device_count = 0;
  ASSERT_CALL(api().GetEpDevices(env(), &devices, &device_count));
  ASSERT_GE(device_count, 1U);
  EXPECT_STREQ(api().EpDevice_EpName(devices[0]), "CPUExecutionProvider");
  EXPECT_EQ(api().HardwareDevice_Type(api().EpDevice_Device(devices[0])), 0);
}

TEST(Providers, ThatAreAbsentAreRefused) {
  const auto options = make<Options>(api().CreateSessionOptions);
  const auto append = [&](const char* name) {
    return api().SessionOptionsAppendExecutionProvider(options.get(), name, nullptr, nullptr, 0);
  };
  EXPECT_CALL(append("CPU"));
  EXPECT_CALL(append("CPUExecutionProvider"));
  EXPECT_TRUE(fails(append("XNNPACK"), folio::ort::kInvalidArgument, {"XNNPACK"}));
  EXPECT_TRUE(fails(append("CoreML"), folio::ort::kInvalidArgument, {"CoreML"}));
  EXPECT_TRUE(fails(append("nobody"), folio::ort::kInvalidArgument, {"nobody"}));
  OrtCANNProviderOptions* cann = nullptr;
  EXPECT_TRUE(fails(api().CreateCANNProviderOptions(&cann), folio::ort::kFail, {"CANN"}));
  OrtDnnlProviderOptions* dnnl = nullptr;
  EXPECT_TRUE(fails(api().CreateDnnlProviderOptions(&dnnl), folio::ort::kFail, {"oneDNN"}));
}

TEST(KeyValuePairs, KeepWhatIsPut) {
  OrtKeyValuePairs* pairs = nullptr;
  api().CreateKeyValuePairs(&pairs);
  ASSERT_NE(pairs, nullptr);
  api().AddKeyValuePair(pairs, "a", "1");
  api().AddKeyValuePair(pairs, "b", "2");
  api().AddKeyValuePair(pairs, "a", "3");
  EXPECT_STREQ(api().GetKeyValue(pairs, "a"), "3");
  EXPECT_EQ(api().GetKeyValue(pairs, "c"), nullptr);
  api().RemoveKeyValuePair(pairs, "a");
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api().GetKeyValuePairs(pairs, &keys, &values, &count);
  ASSERT_EQ(count, 1U);
  EXPECT_STREQ(keys[0], "b");
  EXPECT_STREQ(values[0], "2");
  api().ReleaseKeyValuePairs(pairs);
}

}  // namespace
}  // namespace dropin_test
