#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

#include "tests/c_api/capi_support.h"
#include "tools/make_model/onnx_model.h"

namespace capi_test {
namespace {

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string end_profiling(FolioSession* session) {
  char* raw = nullptr;
  EXPECT_CALL(api().SessionEndProfiling(session, &raw));
  const std::string path = raw ? raw : "NULL";
  api().ReleaseString(raw);
  return path;
}

// y = x beside x.
std::string concat_model() {
  using model_writer::ElementType;
  using model_writer::Type;
  model_writer::ModelWriter model(8);
  model.opset("", 17);
  model_writer::GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"n", 2}));
  graph.node("Concat", {"x", "x"}, {"y"}).named("joiner").attr_int("axis", 1);
  graph.output("y", Type::tensor(ElementType::kFloat, {"n", 4}));
  return model.serialize();
}

SessionOptions profiled(const std::string& prefix) {
  auto options = make<SessionOptions>(api().CreateSessionOptions);
  EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "folio.profile", prefix.c_str()));
  return options;
}

TEST(Profile, HasTheStepsOfTheRunsBeforeItsEnd) {
  const TempFolder folder;
  const auto session = session_of(add_model(), profiled(folder.path("p")).get());
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  uint64_t start = 0;
  ASSERT_CALL(api().SessionGetProfilingStartTime(session.get(), &start));
  EXPECT_GT(start, uint64_t{1500000000} * 1000000000);
  const std::string path = end_profiling(session.get());
  EXPECT_EQ(path.rfind(folder.path("p_"), 0), 0U) << path;
  const std::string trace = text_of(path);
  EXPECT_NE(trace.find(R"("name":"session_initialization")"), std::string::npos) << trace;
  EXPECT_NE(trace.find(R"("name":"adder_kernel_time","args":{"op_name":"Add")"), std::string::npos)
      << trace;
  EXPECT_EQ(trace.find("subtracter"), std::string::npos) << "z was not asked for";
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "z", &y));
  EXPECT_EQ(end_profiling(session.get()), "") << "it was ended";
  EXPECT_EQ(text_of(path), trace);
}

TEST(Profile, NamesTypesShapesAndAttributes) {
  const TempFolder folder;
  std::string path;
  {
    const auto session = session_of(loop_model(), profiled(folder.path("p")).get());
    const auto count = int64_scalar(2);
    const auto a = floats({1}, {1});
    const char* const names[] = {"count", "a"};
    FolioValue* const values[] = {count.get(), a.get()};
    const char* output = "y";
    FolioValue* raw = nullptr;
    ASSERT_CALL(api().Run(session.get(), nullptr, names, values, 2, &output, 1, &raw));
    const Value y(raw);
    path = end_profiling(session.get());
  }
  const auto events = nlohmann::json::parse(text_of(path), nullptr, false);
  ASSERT_TRUE(events.is_array()) << text_of(path);
  size_t adds = 0;
  for (const auto& event : events) {
    if (event["cat"] != "Node") continue;
    EXPECT_TRUE(event["dur"].is_number() && event["ts"].is_number());
    const auto& arguments = event["args"];
    if (arguments["op_name"] == "Add") ++adds;
    if (arguments["op_name"] != "Loop") continue;
    EXPECT_EQ(arguments["input_type_shape"].dump(), R"([{"int64":[]},{},{"float":[1]}])");
    EXPECT_EQ(arguments["output_type_shape"].dump(), R"([{"float":[1]}])");
  }
  EXPECT_EQ(adds, 2U) << "steps of subgraphs are recorded too";
}

TEST(Profile, HasTheAttributesOfTheNodes) {
  const TempFolder folder;
  std::string path;
  {
    const auto session = session_of(concat_model(), profiled(folder.path("p")).get());
    const auto x = floats({1, 2}, {1, 2});
    Value y;
    ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
    path = end_profiling(session.get());
  }
  const auto events = nlohmann::json::parse(text_of(path), nullptr, false);
  ASSERT_TRUE(events.is_array());
  const auto concat = std::find_if(events.begin(), events.end(), [](const auto& event) {
    return event["name"] == "joiner_kernel_time";
  });
  ASSERT_NE(concat, events.end());
  EXPECT_EQ((*concat)["args"]["attributes"].dump(), R"({"axis":1})");
}

// Trees and vocabularies are not written again by each run.
TEST(Profile, LeavesOutLongAttributes) {
  using model_writer::ElementType;
  using model_writer::Type;
  model_writer::ModelWriter model(8);
  model.opset("", 17).opset("ai.onnx.ml", 2);
  model_writer::GraphWriter& graph = model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"n", 65}));
  graph.node("Scaler", {"x"}, {"y"})
      .in_domain("ai.onnx.ml")
      .attr_floats("offset", {1})
      .attr_floats("scale", std::vector<float>(65, 2));
  graph.output("y", Type::tensor(ElementType::kFloat, {"n", 65}));
  const TempFolder folder;
  std::string path;
  {
    const auto session = session_of(model.serialize(), profiled(folder.path("p")).get());
    const auto x = floats(std::vector<float>(65, 3), {1, 65});
    Value y;
    ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
    path = end_profiling(session.get());
  }
  const std::string text = text_of(path);
  EXPECT_NE(text.find(R"("attributes":{"offset":[1]}})"), std::string::npos) << text;
}

TEST(Profile, IsWrittenWhenTheSessionGoes) {
  const TempFolder folder;
  { const auto session = session_of(add_model(), profiled(folder.path("p")).get()); }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path(""))) {
    EXPECT_EQ(entry.path().extension(), ".json");
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

TEST(Profile, ThatCannotBeWrittenFailsTheSession) {
  const TempFolder folder;
  const auto options = profiled(folder.path("no/such/p"));
  const std::string model = add_model();
  FolioSession* session = nullptr;
  EXPECT_TRUE(fails(
      api().CreateSessionFromArray(nullptr, model.data(), model.size(), options.get(), &session),
      FOLIO_NO_SUCHFILE, {"no/such"}));
}

TEST(Profile, OfAFailedLoadIsNotWritten) {
  const TempFolder folder;
  const auto options = profiled(folder.path("p"));
  const auto wrong = floats({1}, {1});
  ASSERT_CALL(api().AddInitializer(options.get(), "nobody", wrong.get()));
  const std::string model = add_model();
  FolioSession* session = nullptr;
  EXPECT_TRUE(fails(
      api().CreateSessionFromArray(nullptr, model.data(), model.size(), options.get(), &session),
      FOLIO_INVALID_ARGUMENT, {"nobody"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path("")));
}

TEST(Profile, IsAbsentUnlessAskedFor) {
  const auto session = session_of(add_model());
  EXPECT_EQ(end_profiling(session.get()), "");
  uint64_t start = 1;
  ASSERT_CALL(api().SessionGetProfilingStartTime(session.get(), &start));
  EXPECT_EQ(start, 0U);
}

TEST(SessionOptions, ExternalFileMayBeInMemory) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  const std::string bytes = external_bytes();
  ASSERT_CALL(api().SessionOptionsAddExternalFileFromMemory(
      options.get(), "./weights.bin", bytes.data(), bytes.size(), nullptr, nullptr));
  const auto session = session_of(external_model(), options.get());
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(floats_of(y.get()), (std::vector<float>{11, 22, 33}));
}

}  // namespace
}  // namespace capi_test
