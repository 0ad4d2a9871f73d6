#include <algorithm>
#include <cstring>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

void count_call(void* user) { ++*static_cast<int*>(user); }

Model open(const std::string& path) {
  return make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                     static_cast<const FolioModelOptions*>(nullptr));
}

std::string name_of(const FolioValueInfo* info) {
  const char* name = "";
  EXPECT_CALL(api().ValueInfoGetName(info, &name));
  return name;
}

TEST(Model, InfoSaysWhatTheFileSays) {
  const TempFolder folder;
  const std::string bytes = add_model();
  const std::string path = folder.write("add.onnx", bytes);
  const auto model = open(path);
  auto info = sized<FolioModelInfo>();
  ASSERT_CALL(api().ModelGetInfo(model.get(), &info));
  EXPECT_STREQ(info.format, "onnx");
  EXPECT_EQ(info.path, path);
  EXPECT_STREQ(info.producer_name, "capi_test");
  EXPECT_STREQ(info.description, "");
  EXPECT_EQ(info.ir_version, 8);
  EXPECT_EQ(info.node_count, 2u);
  EXPECT_EQ(info.initializer_count, 1u);
  EXPECT_EQ(info.initializer_bytes, 12u);
  EXPECT_EQ(info.file_bytes, bytes.size());
}

TEST(Model, InputsAndOutputsKeepNamesTypesAndSymbols) {
  const TempFolder folder;
  const auto model = open(folder.write("add.onnx", add_model()));
  size_t count = 0;
  ASSERT_CALL(api().ModelGetOutputCount(model.get(), &count));
  EXPECT_EQ(count, 2u);
  ASSERT_CALL(api().ModelGetInputCount(model.get(), &count));
  EXPECT_EQ(count, 1u);
  const FolioValueInfo* info = nullptr;
  ASSERT_CALL(api().ModelGetInput(model.get(), 0, &info));
  EXPECT_EQ(name_of(info), "x");
  FolioElementType type = FOLIO_UNDEFINED;
  int32_t has_shape = 0;
  const int64_t* dims = nullptr;
  size_t dim_count = 0;
  const char* symbol = nullptr;
  const FolioValueInfo* element = info;
  ASSERT_CALL(api().ValueInfoGetElementType(info, &type));
  ASSERT_CALL(api().ValueInfoHasShape(info, &has_shape));
  ASSERT_CALL(api().ValueInfoGetDims(info, &dims, &dim_count));
  ASSERT_CALL(api().ValueInfoGetSymbolicDim(info, 0, &symbol));
  ASSERT_CALL(api().ValueInfoGetElement(info, &element));
  EXPECT_EQ(type, FOLIO_FLOAT);
  EXPECT_EQ(has_shape, 1);
  ASSERT_EQ(dim_count, 2u);
  EXPECT_EQ(dims[0], -1);
  EXPECT_EQ(dims[1], 3);
  EXPECT_STREQ(symbol, "batch");
  EXPECT_EQ(element, nullptr);
  ASSERT_CALL(api().ValueInfoGetSymbolicDim(info, 1, &symbol));
  EXPECT_STREQ(symbol, "");
}

TEST(Model, MetadataIsFoundByIndexAndKey) {
  const TempFolder folder;
  const auto model = open(folder.write("add.onnx", add_model()));
  size_t count = 0;
  const char* key = nullptr;
  const char* value = nullptr;
  ASSERT_CALL(api().ModelGetMetadataCount(model.get(), &count));
  EXPECT_EQ(count, 2u);
  ASSERT_CALL(api().ModelGetMetadataEntry(model.get(), 0, &key, &value));
  EXPECT_STREQ(key, "author");
  EXPECT_STREQ(value, "Ada");
  ASSERT_CALL(api().ModelLookupMetadata(model.get(), "empty", &value));
  EXPECT_STREQ(value, "");
  ASSERT_CALL(api().ModelLookupMetadata(model.get(), "missing", &value));
  EXPECT_EQ(value, nullptr);
}

TEST(Model, ErrorsNameTheFile) {
  const TempFolder folder;
  const std::string missing = folder.path("missing.onnx");
  const std::string damaged = folder.write("damaged.onnx", add_model().substr(0, 60));
  FolioModel* model = nullptr;
  EXPECT_TRUE(fails(api().OpenModel(nullptr, missing.c_str(), nullptr, &model), FOLIO_NO_SUCHFILE,
                    {missing.c_str()}));
  const Outcome outcome(api().OpenModel(nullptr, damaged.c_str(), nullptr, &model));
  EXPECT_NE(outcome.code, FOLIO_OK);
  EXPECT_NE(outcome.message.find(damaged), std::string::npos) << outcome.message;
  EXPECT_EQ(model, nullptr);
}

TEST(Model, BorrowedBytesAreGivenBackOnceByTheLastHolder) {
  const std::string bytes = add_model();
  int calls = 0;
  auto model =
      make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                  static_cast<const void*>(bytes.data()), bytes.size(), &count_call,
                  static_cast<void*>(&calls), static_cast<const FolioModelOptions*>(nullptr));
  auto session = make<Session>(api().CreateSessionFromModel, model.get(),
                               static_cast<const FolioSessionOptions*>(nullptr));
  model.reset();
  EXPECT_EQ(calls, 0);
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
  session.reset();
  EXPECT_EQ(calls, 1);
}

TEST(Model, BorrowedBytesOfAFailedOpenStayTheCallers) {
  const std::string bytes = "this is no model, and long enough to be looked at";
  int calls = 0;
  FolioModel* model = nullptr;
  const Outcome outcome(api().OpenModelFromMemory(nullptr, bytes.data(), bytes.size(), &count_call,
                                                  &calls, nullptr, &model));
  EXPECT_NE(outcome.code, FOLIO_OK);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(model, nullptr);
}

TEST(Model, CopiedBytesMayGoAtOnce) {
  std::string bytes = add_model();
  const auto model = make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                                 static_cast<const void*>(bytes.data()), bytes.size(),
                                 FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr),
                                 static_cast<const FolioModelOptions*>(nullptr));
  std::fill(bytes.begin(), bytes.end(), '\xff');
  const auto session = make<Session>(api().CreateSessionFromModel, model.get(),
                                     static_cast<const FolioSessionOptions*>(nullptr));
  const auto x = floats({0, 0, 0}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{10, 20, 30}));
  auto info = sized<FolioModelInfo>();
  ASSERT_CALL(api().ModelGetInfo(model.get(), &info));
  EXPECT_STREQ(info.path, "");
}

TEST(Model, ExternalDataFromMemoryServesBytesAndFiles) {
  const TempFolder folder;
  const std::string model_bytes = external_model();
  const std::string path = folder.write("external.onnx", model_bytes);
  const std::string weights = external_bytes();
  int calls = 0;
  auto options = make<ModelOptions>(api().CreateModelOptions);
  ASSERT_CALL(api().AddExternalFileFromMemory(options.get(), "weights.bin", weights.data(),
                                              weights.size(), &count_call, &calls));
  auto from_bytes =
      make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                  static_cast<const void*>(model_bytes.data()), model_bytes.size(),
                  FolioReleaseFunction{nullptr}, static_cast<void*>(nullptr), options.get());
  auto from_path = make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                               options.get());
  options.reset();
  for (const auto& model : {from_bytes.get(), from_path.get()}) {
    const auto session = make<Session>(api().CreateSessionFromModel, model,
                                       static_cast<const FolioSessionOptions*>(nullptr));
    const auto x = floats({0, 0, 0}, {1, 3});
    Value y;
    ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
    EXPECT_EQ(floats_of(y.get()), (std::vector<float>{10, 20, 30}));
  }
  EXPECT_EQ(calls, 0);
  from_bytes.reset();
  from_path.reset();
  EXPECT_EQ(calls, 1);
}

TEST(Model, MissingExternalDataIsNamed) {
  const TempFolder folder;
  const std::string path = folder.write("external.onnx", external_model());
  FolioSession* session = nullptr;
  EXPECT_TRUE(fails(api().CreateSession(nullptr, path.c_str(), nullptr, &session),
                    FOLIO_NO_SUCHFILE, {"weights.bin"}));
  EXPECT_EQ(session, nullptr);
}

TEST(Model, UnsupportedOperatorsAreListed) {
  model_writer::ModelWriter writer(8);
  writer.opset("", 17).opset("com.example", 3);
  auto& graph = writer.graph();
  const auto type = model_writer::Type::tensor(model_writer::ElementType::kFloat, {1});
  graph.input("x", type);
  graph.node("Frobnicate", {"x"}, {"h"}).named("first").in_domain("com.example");
  graph.node("Identity", {"h"}, {"y"});
  graph.output("y", type);
  const TempFolder folder;
  const std::string path = folder.write("custom.onnx", writer.serialize());
  const auto model = open(path);
  size_t count = 0;
  ASSERT_CALL(api().ModelGetUnsupportedOperatorCount(model.get(), &count));
  ASSERT_EQ(count, 1u);
  auto op = sized<FolioUnsupportedOperator>();
  ASSERT_CALL(api().ModelGetUnsupportedOperator(model.get(), 0, &op));
  EXPECT_STREQ(op.domain, "com.example");
  EXPECT_STREQ(op.op_type, "Frobnicate");
  EXPECT_EQ(op.opset_version, 3);
  EXPECT_STREQ(op.node_name, "first");
  EXPECT_NE(std::string(op.reason), "");
  FolioSession* session = nullptr;
  EXPECT_TRUE(fails(api().CreateSessionFromModel(model.get(), nullptr, &session),
                    FOLIO_UNSUPPORTED_OPERATOR, {"Frobnicate", path.c_str()}));
}

struct Steps {
  std::vector<double> fractions;
  size_t cancel_at = 1000;
};

int record(void* user, const char* stage, double fraction) {
  auto* steps = static_cast<Steps*>(user);
  EXPECT_STRNE(stage, "");
  steps->fractions.push_back(fraction);
  return steps->fractions.size() > steps->cancel_at ? 1 : 0;
}

TEST(Progress, GrowsFromZeroToOne) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  Steps steps;
  ASSERT_CALL(api().SessionOptionsSetProgress(options.get(), &record, &steps));
  const auto session = make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr),
                                     path.c_str(), options.get());
  ASSERT_GE(steps.fractions.size(), 3u);
  EXPECT_EQ(steps.fractions.front(), 0.0);
  EXPECT_EQ(steps.fractions.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(steps.fractions.begin(), steps.fractions.end()));
}

TEST(Progress, CallbackThatIsNotZeroCancelsAtAnyStep) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  size_t step_count = 0;
  for (size_t cancel_at = 0;; ++cancel_at) {
    Steps steps;
    steps.cancel_at = cancel_at;
    ASSERT_CALL(api().SessionOptionsSetProgress(options.get(), &record, &steps));
    FolioSession* raw = nullptr;
    FolioStatus* status = api().CreateSession(nullptr, path.c_str(), options.get(), &raw);
    if (status == nullptr) {
      api().ReleaseSession(raw);
      break;
    }
    EXPECT_TRUE(fails(status, FOLIO_MODEL_LOAD_CANCELED));
    EXPECT_EQ(raw, nullptr);
    ++step_count;
  }
  EXPECT_GE(step_count, 3u);
}

TEST(Progress, CancelThatIsSetStopsLoads) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  const auto cancel = make<Cancel>(api().CreateCancel);
  const auto options = make<ModelOptions>(api().CreateModelOptions);
  ASSERT_CALL(api().ModelOptionsSetCancel(options.get(), cancel.get()));
  const auto open_before = make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr),
                                       path.c_str(), options.get());
  ASSERT_CALL(api().CancelRequest(cancel.get()));
  FolioModel* model = nullptr;
  EXPECT_TRUE(fails(api().OpenModel(nullptr, path.c_str(), options.get(), &model),
                    FOLIO_MODEL_LOAD_CANCELED));
  const auto session_options = make<SessionOptions>(api().CreateSessionOptions);
  ASSERT_CALL(api().SessionOptionsSetCancel(session_options.get(), cancel.get()));
  FolioSession* session = nullptr;
  EXPECT_TRUE(
      fails(api().CreateSessionFromModel(open_before.get(), session_options.get(), &session),
            FOLIO_MODEL_LOAD_CANCELED));
}

}  // namespace
}  // namespace capi_test
