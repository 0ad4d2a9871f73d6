#include <mutex>
#include <nlohmann/json.hpp>

#include "tests/c_api/capi_support.h"
#include "tools/make_model/onnx_model.h"

namespace capi_test {
namespace {

struct Log {
  std::mutex mutex;
  std::vector<std::string> lines;
  int releases = 0;

  static void write(void* user, FolioLogLevel level, const char* message) {
    auto* log = static_cast<Log*>(user);
    const std::lock_guard<std::mutex> lock(log->mutex);
    if (level == FOLIO_LOG_WARNING) log->lines.push_back(message);
  }
  static void release(void* user) { ++static_cast<Log*>(user)->releases; }
};

Env env_with_log(Log* log) {
  auto options = sized<FolioEnvOptions>();
  options.log = &Log::write;
  options.log_user = log;
  options.log_release = &Log::release;
  options.log_level = FOLIO_LOG_WARNING;
  return make<Env>(api().CreateEnv, &options);
}

void cause_warning(const char* key) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  ASSERT_CALL(api().AddSessionConfigEntry(options.get(), key, "1"));
}

TEST(Env, NewestLivingLogReceivesWarnings) {
  Log first;
  Log second;
  auto env = env_with_log(&first);
  auto newer = env_with_log(&second);
  cause_warning("session.env_test_a");
  ASSERT_EQ(second.lines.size(), 1u);
  EXPECT_NE(second.lines[0].find("session.env_test_a"), std::string::npos);
  EXPECT_TRUE(first.lines.empty());
  newer.reset();
  EXPECT_EQ(second.releases, 1);
  cause_warning("session.env_test_b");
  EXPECT_EQ(first.lines.size(), 1u);
  env.reset();
  EXPECT_EQ(first.releases, 1);
  cause_warning("session.env_test_c");
  EXPECT_EQ(first.lines.size(), 1u);
}

TEST(Env, LogLivesAsLongAsTheSessionsOfItsEnvironment) {
  Log log;
  auto env = env_with_log(&log);
  const std::string model = add_model();
  auto session =
      make<Session>(api().CreateSessionFromArray, env.get(), static_cast<const void*>(model.data()),
                    model.size(), static_cast<const FolioSessionOptions*>(nullptr));
  env.reset();
  cause_warning("session.env_test_d");
  EXPECT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.releases, 0);
  session.reset();
  EXPECT_EQ(log.releases, 1);
}

TEST(Env, BadOptionsAreRefusedAndTakeNothing) {
  Log log;
  auto options = sized<FolioEnvOptions>();
  options.log = &Log::write;
  options.log_user = &log;
  options.log_release = &Log::release;
  options.log_level = static_cast<FolioLogLevel>(9);
  FolioEnv* env = nullptr;
  EXPECT_TRUE(fails(api().CreateEnv(&options, &env), FOLIO_INVALID_ARGUMENT, {"log_level"}));
  options.log_level = FOLIO_LOG_INFO;
  options.thread_count = 100000;
  EXPECT_TRUE(
      fails(api().CreateEnv(&options, &env), FOLIO_INVALID_ARGUMENT, {"thread_count", "256"}));
  EXPECT_EQ(env, nullptr);
  EXPECT_EQ(log.releases, 0);
}

TEST(Env, MetricsSumOverSessionsThatAreAndWere) {
  auto options = sized<FolioEnvOptions>();
  options.thread_count = 1;
  options.max_arenas = 2;
  const auto env = make<Env>(api().CreateEnv, &options);
  const std::string model = add_model();
  const auto create = [&] {
    return make<Session>(api().CreateSessionFromArray, env.get(),
                         static_cast<const void*>(model.data()), model.size(),
                         static_cast<const FolioSessionOptions*>(nullptr));
  };
  auto first = create();
  auto second = create();
  const auto x = floats({1, 2, 3}, {1, 3});
  Value y;
  ASSERT_CALL(run_one(first.get(), "x", x.get(), "y", &y));
  ASSERT_CALL(run_one(second.get(), "x", x.get(), "y", &y));
  EXPECT_TRUE(fails(run_one(second.get(), "no", x.get(), "y", &y), FOLIO_INVALID_ARGUMENT));
  first.reset();
  auto metrics = sized<FolioMetrics>();
  ASSERT_CALL(api().EnvGetMetrics(env.get(), &metrics));
  EXPECT_EQ(metrics.run_count, 3u);
  EXPECT_EQ(metrics.error_count, 1u);
  EXPECT_EQ(metrics.session_count, 1u);
  char* text = nullptr;
  ASSERT_CALL(api().EnvGetMetricsText(env.get(), &text));
  const std::string prometheus = text;
  api().ReleaseString(text);
  EXPECT_NE(prometheus.find("\nfolio_runs_total 3\n"), std::string::npos) << prometheus;
  EXPECT_NE(prometheus.find("folio_run_seconds_bucket{le=\"1e-05\"} "), std::string::npos);
  EXPECT_NE(prometheus.find("folio_run_seconds_bucket{le=\"+Inf\"} 3\n"), std::string::npos);
  EXPECT_NE(prometheus.find("\nfolio_run_seconds_count 3\n"), std::string::npos);
  EXPECT_CALL(api().EnvTrim(env.get()));
  EXPECT_CALL(api().EnvTrim(nullptr));
}

TEST(MemoryReport, SessionListsMappingAndPackedWeights) {
  const TempFolder folder;
  const std::string bytes = matmul_model();
  const std::string path = folder.write("matmul.onnx", bytes);
  const auto session =
      make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                    static_cast<const FolioSessionOptions*>(nullptr));
  const auto report = make<Report>(api().SessionGetMemoryReport, session.get());
  size_t count = 0;
  ASSERT_CALL(api().MemoryReportGetEntryCount(report.get(), &count));
  ASSERT_GE(count, 2u);
  auto entry = sized<FolioMemoryEntry>();
  ASSERT_CALL(api().MemoryReportGetEntry(report.get(), 0, &entry));
  EXPECT_EQ(entry.name, path);
  EXPECT_STREQ(entry.kind, "mapping");
  EXPECT_EQ(entry.bytes, bytes.size());
  EXPECT_EQ(entry.is_private, 0);
  EXPECT_GT(entry.resident_bytes, 0u) << "it has been parsed";
  ASSERT_CALL(api().MemoryReportGetEntry(report.get(), 1, &entry));
  EXPECT_STREQ(entry.kind, "packed");
  EXPECT_EQ(entry.is_private, 1);
  EXPECT_TRUE(
      fails(api().MemoryReportGetEntry(report.get(), count, &entry), FOLIO_INVALID_ARGUMENT));
  const char* text = nullptr;
  ASSERT_CALL(api().MemoryReportGetText(report.get(), &text));
  EXPECT_NE(std::string(text).find(path), std::string::npos);
  ASSERT_CALL(api().MemoryReportGetJson(report.get(), &text));
  EXPECT_NE(std::string(text).find("\"kind\": \"mapping\""), std::string::npos);
}

TEST(MemoryReport, SessionNamesItsArithmeticAndTheArenaOfTheLastRun) {
  const auto session = session_of(matmul_model());
  const auto json_of = [&] {
    const auto report = make<Report>(api().SessionGetMemoryReport, session.get());
    const char* text = nullptr;
    EXPECT_CALL(api().MemoryReportGetJson(report.get(), &text));
    return nlohmann::json::parse(text, nullptr, false);
  };
  const auto before = json_of();
  ASSERT_TRUE(before.is_object());
  EXPECT_EQ(before["arithmetic"], before["kernels"]) << "it has no convolution";
  EXPECT_EQ(before["arena"]["planned_bytes"], 0) << "nothing ran";
  const auto x = floats(std::vector<float>(8, 1), {2, 4});
  Value y;
  ASSERT_CALL(run_one(session.get(), "x", x.get(), "y", &y));
  EXPECT_EQ(json_of()["arena"]["live_bytes"], 0) << "the one value leaves the run";
}

TEST(MemoryReport, SessionSaysHowManyThreadsItHasWhateverWasAskedFor) {
  for (const auto& [asked, given] : {std::pair{"1", 1}, {"2", 2}, {"1000", 256}}) {
    const auto options = make<SessionOptions>(api().CreateSessionOptions);
    ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "folio.threads", asked));
    const auto session = session_of(matmul_model(), options.get());
    const auto report = make<Report>(api().SessionGetMemoryReport, session.get());
    const char* text = nullptr;
    ASSERT_CALL(api().MemoryReportGetJson(report.get(), &text));
    EXPECT_EQ(nlohmann::json::parse(text, nullptr, false)["threads"], given) << text;
  }
}

TEST(MemoryReport, CopiedModelsArePrivateAndBorrowedOnesAreNot) {
  const std::string bytes = add_model();
  auto entry = sized<FolioMemoryEntry>();
  for (const FolioReleaseFunction release : {FolioReleaseFunction{nullptr}, +[](void*) {}}) {
    const auto model =
        make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                    static_cast<const void*>(bytes.data()), bytes.size(), release,
                    static_cast<void*>(nullptr), static_cast<const FolioModelOptions*>(nullptr));
    const auto report = make<Report>(api().ModelGetMemoryReport, model.get());
    ASSERT_CALL(api().MemoryReportGetEntry(report.get(), 0, &entry));
    EXPECT_STREQ(entry.kind, "memory");
    EXPECT_EQ(entry.bytes, bytes.size());
    EXPECT_EQ(entry.is_private, release ? 0 : 1);
  }
}

// y = x @ w, with a weight large enough to be worth a place in files.
constexpr int64_t kLargeDim = 256;
constexpr uint64_t kLargeWeightBytes = kLargeDim * kLargeDim * 4;

std::string large_matmul_model() {
  using model_writer::ElementType;
  using model_writer::Type;
  model_writer::ModelWriter model(8);
  model.opset("", 17);
  model_writer::GraphWriter& graph = model.graph();
  std::vector<float> weights(kLargeDim * kLargeDim);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 103);
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", kLargeDim}));
  graph.initializer(model_writer::f32_tensor("w", {kLargeDim, kLargeDim}, weights));
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", kLargeDim}));
  return model.serialize();
}

FolioMemorySummary summary_of(const Report& report) {
  auto sum = sized<FolioMemorySummary>();
  EXPECT_CALL(api().MemoryReportGetSummary(report.get(), &sum));
  return sum;
}

FolioMemorySummary process_summary() {
  return summary_of(make<Report>(api().EnvGetMemoryReport, static_cast<const FolioEnv*>(nullptr)));
}

// With all its weights packed: what is reported does not change any more.
Session open_path(const std::string& path) {
  auto session = make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr),
                               path.c_str(), static_cast<const FolioSessionOptions*>(nullptr));
  int32_t is_packed = 0;
  EXPECT_CALL(api().SessionWaitPacked(session.get(), -1, &is_packed));
  return session;
}

TEST(MemoryReport, SummaryAddsTheEntriesUp) {
  const TempFolder folder;
  const std::string bytes = large_matmul_model();
  const std::string path = folder.write("matmul.onnx", bytes);
  const FolioMemorySummary before = process_summary();
  const auto session = open_path(path);
  const auto sum = summary_of(make<Report>(api().SessionGetMemoryReport, session.get()));
  EXPECT_EQ(sum.mapped_bytes, bytes.size());
  EXPECT_GT(sum.resident_bytes, 0u);
  EXPECT_LE(sum.resident_bytes, sum.mapped_bytes);
  EXPECT_LE(sum.pss_bytes, sum.resident_bytes);
  EXPECT_GT(sum.packed_heap_bytes, kLargeWeightBytes - 1);
  EXPECT_EQ(sum.packed_sidecar_bytes + sum.packed_store_bytes, 0u);
  EXPECT_EQ(sum.private_bytes, sum.packed_heap_bytes + sum.constant_bytes);
  EXPECT_EQ(sum.saved_file_bytes + sum.saved_packed_bytes, 0u) << "nobody else has this model";
  EXPECT_EQ(sum.process_rss_bytes, 0u) << "not of a session";
  const FolioMemorySummary process = process_summary();
  EXPECT_EQ(process.mapped_bytes, before.mapped_bytes + bytes.size());
  EXPECT_EQ(process.packed_heap_bytes, before.packed_heap_bytes + sum.packed_heap_bytes);
  EXPECT_GT(process.process_rss_bytes, 0u);
  EXPECT_LE(process.process_pss_bytes, process.process_rss_bytes);
  EXPECT_GT(process.process_anonymous_bytes, kLargeWeightBytes);
  EXPECT_GT(process.process_page_table_bytes, 0u);
}

TEST(MemoryReport, WhatLaterSessionsDidNotNeedAgainIsSaved) {
  const TempFolder folder;
  const std::string bytes = large_matmul_model();
  const std::string path = folder.write("matmul.onnx", bytes);
  const FolioMemorySummary before = process_summary();
  auto first = open_path(path);
  const uint64_t packed =
      summary_of(make<Report>(api().SessionGetMemoryReport, first.get())).packed_heap_bytes;
  EXPECT_EQ(process_summary().saved_file_bytes, before.saved_file_bytes);
  const auto second = open_path(path);
  const auto third = open_path(path);
  const FolioMemorySummary all = process_summary();
  EXPECT_EQ(all.saved_file_bytes, before.saved_file_bytes + 2 * bytes.size());
  EXPECT_GE(all.saved_packed_bytes, before.saved_packed_bytes + 2 * packed);
  EXPECT_EQ(all.packed_heap_bytes, before.packed_heap_bytes + packed) << "once";
  const auto of_second = summary_of(make<Report>(api().SessionGetMemoryReport, second.get()));
  EXPECT_EQ(of_second.saved_file_bytes, bytes.size());
  EXPECT_GE(of_second.saved_packed_bytes, packed);
  first.reset();
  EXPECT_EQ(process_summary().saved_file_bytes, before.saved_file_bytes + bytes.size());
}

TEST(MemoryReport, PackedWeightsStandAtTheirPlace) {
  const TempFolder folder;
  const std::string path = folder.write("matmul.onnx", large_matmul_model());
  {
    const auto model = make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr),
                                   path.c_str(), static_cast<const FolioModelOptions*>(nullptr));
    ASSERT_CALL(api().ModelPack(model.get(), nullptr, nullptr, nullptr));
  }
  const FolioMemorySummary before = process_summary();
  const auto session = open_path(path);
  const auto report = make<Report>(api().SessionGetMemoryReport, session.get());
  const auto sum = summary_of(report);
  EXPECT_GE(sum.packed_sidecar_bytes, kLargeWeightBytes);
  EXPECT_EQ(sum.packed_heap_bytes + sum.packed_store_bytes, 0u);
  EXPECT_EQ(sum.private_bytes, sum.constant_bytes);
  const FolioMemorySummary process = process_summary();
  EXPECT_EQ(process.packed_sidecar_bytes, before.packed_sidecar_bytes + sum.packed_sidecar_bytes);
  EXPECT_EQ(process.packed_heap_bytes, before.packed_heap_bytes);

  const auto model = make<Model>(api().SessionGetModel, session.get());
  const auto files = make<Report>(api().ModelGetMemoryReport, model.get());
  size_t count = 0;
  ASSERT_CALL(api().MemoryReportGetEntryCount(files.get(), &count));
  EXPECT_EQ(count, 2u) << "the model, and its pack file";
  const char* text = nullptr;
  ASSERT_CALL(api().MemoryReportGetText(report.get(), &text));
  EXPECT_NE(std::string(text).find("packed weights, sidecar"), std::string::npos) << text;
  ASSERT_CALL(api().MemoryReportGetJson(report.get(), &text));
  EXPECT_NE(std::string(text).find("\"summary\": {\"mapped_bytes\": "), std::string::npos) << text;
}

TEST(MemoryReport, ProcessReportHasWhatTheSystemSays) {
  const auto report = make<Report>(api().EnvGetMemoryReport, static_cast<const FolioEnv*>(nullptr));
  const char* json = nullptr;
  ASSERT_CALL(api().MemoryReportGetJson(report.get(), &json));
  EXPECT_NE(std::string(json).find("\"process\": {\"rss_kib\": "), std::string::npos) << json;
  EXPECT_NE(std::string(json).find("\"kernels\": \""), std::string::npos);
  EXPECT_NE(std::string(json).find("\"page_tables_kib\": "), std::string::npos);
  EXPECT_NE(std::string(json).find("\"arena_bytes\": "), std::string::npos);
}

}  // namespace
}  // namespace capi_test
