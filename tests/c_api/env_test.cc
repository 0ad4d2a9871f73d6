#include <mutex>

#include "tests/c_api/capi_support.h"

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

TEST(MemoryReport, ProcessReportHasWhatTheSystemSays) {
  const auto report = make<Report>(api().EnvGetMemoryReport, static_cast<const FolioEnv*>(nullptr));
  const char* json = nullptr;
  ASSERT_CALL(api().MemoryReportGetJson(report.get(), &json));
  EXPECT_NE(std::string(json).find("\"process\": {\"rss_kib\": "), std::string::npos) << json;
  EXPECT_NE(std::string(json).find("\"kernels\": \""), std::string::npos);
}

}  // namespace
}  // namespace capi_test
