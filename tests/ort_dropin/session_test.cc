#include <fstream>
#include <sstream>

#include "tests/ort_dropin/dropin_support.h"

namespace dropin_test {
namespace {

using folio::ort::kInvalidArgument;

TEST(Session, IsMadeFromAFile) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", add_model());
  const auto session =
      make<Session>(api().CreateSession, env(), path.c_str(), (const OrtSessionOptions*)nullptr);
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
}

TEST(Session, NamesAndTypesOfItsPorts) {
  const auto session = session_of(add_model());
  size_t count = 0;
  ASSERT_CALL(api().SessionGetInputCount(session.get(), &count));
  EXPECT_EQ(count, 1U);
  ASSERT_CALL(api().SessionGetOutputCount(session.get(), &count));
  EXPECT_EQ(count, 2U);
  char* name = nullptr;
  ASSERT_CALL(api().SessionGetInputName(session.get(), 0, allocator(), &name));
  EXPECT_EQ(taken(name), "x");
  ASSERT_CALL(api().SessionGetOutputName(session.get(), 1, allocator(), &name));
  EXPECT_EQ(taken(name), "z");
  EXPECT_TRUE(fails(api().SessionGetOutputName(session.get(), 2, allocator(), &name),
                    is_folio() ? kInvalidArgument : folio::ort::kFail));
  const auto type = make<TypeInfo>(api().SessionGetInputTypeInfo,
                                   const_cast<const OrtSession*>(session.get()), size_t{0});
  int kind = -1;
  ASSERT_CALL(api().GetOnnxTypeFromTypeInfo(type.get(), &kind));
  EXPECT_EQ(kind, 1);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ASSERT_CALL(api().CastTypeInfoToTensorInfo(type.get(), &tensor));
  int element = 0;
  ASSERT_CALL(api().GetTensorElementType(tensor, &element));
  EXPECT_EQ(element, kFloat);
  int64_t dims[2] = {};
  const char* symbols[2] = {};
  ASSERT_CALL(api().GetDimensions(tensor, dims, 2));
  ASSERT_CALL(api().GetSymbolicDimensions(tensor, symbols, 2));
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 3);
  EXPECT_STREQ(symbols[0], "batch");
  EXPECT_STREQ(symbols[1], "");
  const OrtSequenceTypeInfo* sequence = nullptr;
  ASSERT_CALL(api().CastTypeInfoToSequenceTypeInfo(type.get(), &sequence));
  EXPECT_EQ(sequence, nullptr);
}

TEST(Session, ErrorsHaveOnnxRuntimesCodes) {
  OrtSession* session = nullptr;
  EXPECT_TRUE(fails(api().CreateSession(env(), "/no/such/file.onnx", nullptr, &session),
                    folio::ort::kNoSuchFile, {"/no/such/file.onnx"}));
  EXPECT_TRUE(fails(api().CreateSessionFromArray(env(), "garbage", 7, nullptr, &session),
                    folio::ort::kInvalidProtobuf));
  EXPECT_EQ(session, nullptr);
}

TEST(Session, TellsTheModelsMetadata) {
  const auto session = session_of(add_model());
  const auto metadata =
      make<Metadata>(api().SessionGetModelMetadata, const_cast<const OrtSession*>(session.get()));
  char* text = nullptr;
  ASSERT_CALL(api().ModelMetadataGetProducerName(metadata.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "dropin_test");
  ASSERT_CALL(api().ModelMetadataGetGraphName(metadata.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "graph");
  ASSERT_CALL(api().ModelMetadataGetDescription(metadata.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "");
  int64_t version = 0;
  ASSERT_CALL(api().ModelMetadataGetVersion(metadata.get(), &version));
  EXPECT_EQ(version, 7);
  ASSERT_CALL(
      api().ModelMetadataLookupCustomMetadataMap(metadata.get(), allocator(), "author", &text));
  EXPECT_EQ(taken(text), "Ada");
  ASSERT_CALL(
      api().ModelMetadataLookupCustomMetadataMap(metadata.get(), allocator(), "none", &text));
  EXPECT_EQ(text, nullptr);
  char** keys = nullptr;
  int64_t count = 0;
  ASSERT_CALL(
      api().ModelMetadataGetCustomMetadataMapKeys(metadata.get(), allocator(), &keys, &count));
  ASSERT_EQ(count, 1);
  EXPECT_EQ(taken(keys[0]), "author");
  allocator()->Free(allocator(), keys);
}

TEST(Session, OverridableInitializersAreNoInputsAndMayBeGiven) {
  const auto session = session_of(default_model());
  size_t count = 0;
  ASSERT_CALL(api().SessionGetInputCount(session.get(), &count));
  EXPECT_EQ(count, 1U);
  ASSERT_CALL(api().SessionGetOverridableInitializerCount(session.get(), &count));
  ASSERT_EQ(count, 1U);
  char* name = nullptr;
  ASSERT_CALL(api().SessionGetOverridableInitializerName(session.get(), 0, allocator(), &name));
  EXPECT_EQ(taken(name), "w");
  std::vector<float> numbers = {1, 2, 3};
  std::vector<float> other = {4, 4, 4};
  const auto x = floats(&numbers, {1, 3});
  const auto w = floats(&other, {3});
  const char* names[] = {"w", "x"};
  const OrtValue* values[] = {w.get(), x.get()};
  const char* output = "y";
  OrtValue* raw = nullptr;
  ASSERT_CALL(api().Run(session.get(), nullptr, names, values, 2, &output, 1, &raw));
  const Value y(raw);
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{5, 6, 7}));
}

TEST(Options, InitializersOfTheProgramReplaceTheModels) {
  const auto options = make<Options>(api().CreateSessionOptions);
  std::vector<float> weights = {1, 1, 1};
  const auto w = floats(&weights, {3});
  ASSERT_CALL(api().AddInitializer(options.get(), "w", w.get()));
  EXPECT_TRUE(fails(api().AddInitializer(options.get(), "w", w.get()), kInvalidArgument, {"'w'"}));
  const auto session = session_of(add_model(), options.get());
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{2, 3, 4}));
}

TEST(Options, ExternalFilesMayBeInMemory) {
  const auto options = make<Options>(api().CreateSessionOptions);
  const char* name = "weights.bin";
  std::string bytes = external_bytes();
  char* data = bytes.data();
  const size_t size = bytes.size();
  ASSERT_CALL(
      api().AddExternalInitializersFromFilesInMemory(options.get(), &name, &data, &size, 1));
  const auto session = session_of(external_model(), options.get());
  bytes.assign(size, 'x');  // copied when the session was made
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
}

TEST(Options, ConfigEntriesAreKeptAndShown) {
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.disable_prepacking", "1"));
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "some.other_key", "two"));
  int has = 0;
  ASSERT_CALL(api().HasSessionConfigEntry(options.get(), "some.other_key", &has));
  EXPECT_EQ(has, 1);
  ASSERT_CALL(api().HasSessionConfigEntry(options.get(), "none", &has));
  EXPECT_EQ(has, 0);
  size_t bytes = 0;
  ASSERT_CALL(api().GetSessionConfigEntry(options.get(), "some.other_key", nullptr, &bytes));
  EXPECT_EQ(bytes, 4U);
  char text[4] = "";
  ASSERT_CALL(api().GetSessionConfigEntry(options.get(), "some.other_key", text, &bytes));
  EXPECT_STREQ(text, "two");
  EXPECT_TRUE(fails(api().AddSessionConfigEntry(options.get(), "", "1"), kInvalidArgument));
  OrtSessionOptions* raw = nullptr;
  ASSERT_CALL(api().CloneSessionOptions(options.get(), &raw));
  const Options clone(raw);
  ASSERT_CALL(api().HasSessionConfigEntry(raw, "some.other_key", &has));
  EXPECT_EQ(has, 1);
  EXPECT_NE(session_of(add_model(), raw), nullptr);
}

TEST(Options, EverySetterIsTaken) {
  const auto options = make<Options>(api().CreateSessionOptions);
  OrtSessionOptions* const o = options.get();
  EXPECT_CALL(api().SetIntraOpNumThreads(o, 2));
  EXPECT_CALL(api().SetInterOpNumThreads(o, 2));
  EXPECT_CALL(api().SetSessionExecutionMode(o, 1));
  EXPECT_CALL(api().EnableMemPattern(o));
  EXPECT_CALL(api().DisableMemPattern(o));
  EXPECT_CALL(api().EnableCpuMemArena(o));
  EXPECT_CALL(api().DisableCpuMemArena(o));
  EXPECT_CALL(api().SetSessionLogId(o, "id"));
  EXPECT_CALL(api().SetSessionLogVerbosityLevel(o, 0));
  EXPECT_CALL(api().SetSessionLogSeverityLevel(o, 3));
  EXPECT_CALL(api().SetDeterministicCompute(o, true));
  EXPECT_CALL(api().AddFreeDimensionOverrideByName(o, "batch", 2));
  EXPECT_CALL(api().AddFreeDimensionOverrideByName(o, "other", -1));
  for (const int level : {0, 1, 2, 3, 99}) {
    EXPECT_CALL(api().SetSessionGraphOptimizationLevel(o, level));
  }
  EXPECT_TRUE(fails(api().SetSessionGraphOptimizationLevel(o, 7), kInvalidArgument));
  EXPECT_TRUE(fails(api().SetSessionExecutionMode(o, 7), kInvalidArgument));
  // Keys that only tune ONNX Runtime's machinery, and flags with values that are neither 0 nor 1.
  EXPECT_CALL(api().AddSessionConfigEntry(o, "session.intra_op.allow_spinning", "0"));
  EXPECT_CALL(api().AddSessionConfigEntry(o, "session.set_denormal_as_zero", "no"));
  const auto session = session_of(add_model(), o);
  const auto type = make<TypeInfo>(api().SessionGetInputTypeInfo,
                                   const_cast<const OrtSession*>(session.get()), size_t{0});
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ASSERT_CALL(api().CastTypeInfoToTensorInfo(type.get(), &tensor));
  int64_t dims[2] = {};
  ASSERT_CALL(api().GetDimensions(tensor, dims, 2));
  EXPECT_EQ(dims[0], 2) << "the free dimension override";
}

TEST(Options, FoliosOwnKeysWorkAndAreChecked) {
  if (!is_folio()) GTEST_SKIP() << "Folio's keys";
  const auto options = make<Options>(api().CreateSessionOptions);
  EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "folio.packing", "load"));
  EXPECT_TRUE(fails(api().AddSessionConfigEntry(options.get(), "folio.pack_ing", "load"),
                    kInvalidArgument, {"folio.packing"}));
  EXPECT_NE(session_of(matmul_model(), options.get()), nullptr);
}

TEST(Options, OptimizedModelIsSaved) {
  const TempFolder folder;
  const auto options = make<Options>(api().CreateSessionOptions);
  const std::string saved = folder.path("saved.onnx");
  ASSERT_CALL(api().SetOptimizedModelFilePath(options.get(), saved.c_str()));
  ASSERT_NE(session_of(matmul_model(), options.get()), nullptr);
  EXPECT_TRUE(std::filesystem::exists(saved));
  EXPECT_NE(
      make<Session>(api().CreateSession, env(), saved.c_str(), (const OrtSessionOptions*)nullptr),
      nullptr);
}

TEST(Options, CancelledLoadFails) {
  if (!is_folio() && api().SessionOptionsSetLoadCancellationFlag == nullptr) GTEST_SKIP();
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().SessionOptionsSetLoadCancellationFlag(options.get(), true));
  const std::string model = add_model();
  OrtSession* session = nullptr;
  EXPECT_TRUE(fails(
      api().CreateSessionFromArray(env(), model.data(), model.size(), options.get(), &session),
      folio::ort::kModelLoadCanceled));
  ASSERT_CALL(api().SessionOptionsSetLoadCancellationFlag(options.get(), false));
  EXPECT_NE(session_of(model, options.get()), nullptr);
}

TEST(PrepackedWeights, ContainerServesSeveralSessions) {
  OrtPrepackedWeightsContainer* raw = nullptr;
  ASSERT_CALL(api().CreatePrepackedWeightsContainer(&raw));
  const Container container(raw);
  const TempFolder folder;
  const std::string model = matmul_model();
  const std::string path = folder.write("m.onnx", model);
  OrtSession* first = nullptr;
  OrtSession* second = nullptr;
  ASSERT_CALL(
      api().CreateSessionWithPrepackedWeightsContainer(env(), path.c_str(), nullptr, raw, &first));
  const Session a(first);
  ASSERT_CALL(api().CreateSessionFromArrayWithPrepackedWeightsContainer(
      env(), model.data(), model.size(), nullptr, raw, &second));
  const Session b(second);
  std::vector<float> numbers = {1, 0, 0, 1};
  const auto x = floats(&numbers, {1, 4});
  for (OrtSession* session : {first, second}) {
    Value y;
    ASSERT_CALL(run_one(session, "x", x.get(), "y", &y));
    EXPECT_EQ(floats_of(y.get()), (std::vector<float>{12, 14, 16, 18}));
  }
}

TEST(Profiling, WritesATraceOfTheRuns) {
  const TempFolder folder;
  const auto options = make<Options>(api().CreateSessionOptions);
  ASSERT_CALL(api().EnableProfiling(options.get(), folder.path("prof").c_str()));
  const auto session = session_of(add_model(), options.get());
  std::vector<float> numbers = {1, 2, 3};
  const auto x = floats(&numbers, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  uint64_t start = 0;
  ASSERT_CALL(api().SessionGetProfilingStartTimeNs(session.get(), &start));
  EXPECT_GT(start, 0U);
  char* text = nullptr;
  ASSERT_CALL(api().SessionEndProfiling(session.get(), allocator(), &text));
  const std::string path = taken(text);
  EXPECT_EQ(path.rfind(folder.path("prof"), 0), 0U) << path;
  std::stringstream trace;
  trace << std::ifstream(path).rdbuf();
  std::string text_of_trace = trace.str();
  std::erase(text_of_trace, ' ');  // ONNX Runtime has some
  EXPECT_NE(text_of_trace.find(R"("name":"model_run")"), std::string::npos);
  EXPECT_NE(text_of_trace.find(R"("name":"adder_kernel_time")"), std::string::npos);
  EXPECT_NE(text_of_trace.find(R"("op_name":"Add")"), std::string::npos);
}

TEST(Profiling, OfASessionWithoutOneHasNoFile) {
  const auto session = session_of(add_model());
  char* text = nullptr;
  ASSERT_CALL(api().SessionEndProfiling(session.get(), allocator(), &text));
  EXPECT_EQ(taken(text), "");
}

}  // namespace
}  // namespace dropin_test
