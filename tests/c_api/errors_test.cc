#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/c_api/capi_support.h"
#include "tests/support/sanitizers.h"

namespace capi_test {
namespace {

TEST(Base, TableIsGivenForItsVersionsOnly) {
  EXPECT_EQ(FolioGetApiBase()->GetApi(0), nullptr);
  EXPECT_EQ(FolioGetApiBase()->GetApi(FOLIO_API_VERSION + 1), nullptr);
  EXPECT_NE(FolioGetApiBase()->GetApi(1), nullptr);
  EXPECT_STREQ(FolioGetApiBase()->GetVersionString(), api().GetVersionString());
  EXPECT_NE(std::string(api().GetBuildInfo()).find(api().GetVersionString()), std::string::npos);
}

TEST(Base, CpuInfoNamesLevelAndThreads) {
  auto info = sized<FolioCpuInfo>();
  ASSERT_CALL(api().GetCpuInfo(&info));
  EXPECT_STRNE(info.level, "");
  EXPECT_GE(info.logical_cpu_count, 1u);
  EXPECT_GE(info.default_thread_count, 1u);
}

TEST(Base, NamesOfCodesAndTypes) {
  EXPECT_STREQ(api().GetErrorName(FOLIO_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  EXPECT_STREQ(api().GetErrorName(FOLIO_MODEL_LOAD_CANCELED), "MODEL_LOAD_CANCELED");
  EXPECT_STREQ(api().GetErrorName(static_cast<FolioErrorCode>(77)), "UNKNOWN");
  EXPECT_STREQ(api().GetElementTypeName(FOLIO_BFLOAT16), "bfloat16");
  EXPECT_STREQ(api().GetElementTypeName(static_cast<FolioElementType>(99)), "undefined");
  EXPECT_EQ(api().GetElementTypeBits(FOLIO_UINT4), 4u);
  EXPECT_EQ(api().GetElementTypeBits(FOLIO_DOUBLE), 64u);
  EXPECT_EQ(api().GetElementTypeBits(FOLIO_STRING), 0u);
  EXPECT_EQ(api().GetElementTypeBits(static_cast<FolioElementType>(-1)), 0u);
}

TEST(Errors, NullHandlesAreReleased) {
  api().ReleaseString(nullptr);
  api().ReleaseStatus(nullptr);
  api().ReleaseEnv(nullptr);
  api().ReleaseCancel(nullptr);
  api().ReleaseModelOptions(nullptr);
  api().ReleaseModel(nullptr);
  api().ReleasePackCache(nullptr);
  api().ReleaseSessionOptions(nullptr);
  api().ReleaseSession(nullptr);
  api().ReleaseRunOptions(nullptr);
  api().ReleaseValue(nullptr);
  api().ReleaseIoBinding(nullptr);
  api().ReleaseMemoryReport(nullptr);
  EXPECT_EQ(api().GetErrorCode(nullptr), FOLIO_OK);
  EXPECT_STREQ(api().GetErrorMessage(nullptr), "");
}

TEST(Errors, NullArgumentsAreNamed) {
  const auto session = session_of(add_model());
  size_t count = 0;
  const FolioValueInfo* info = nullptr;
  EXPECT_TRUE(fails(api().GetCpuInfo(nullptr), FOLIO_INVALID_ARGUMENT, {"'out' is NULL"}));
  EXPECT_TRUE(fails(api().CreateCancel(nullptr), FOLIO_INVALID_ARGUMENT, {"'out'"}));
  EXPECT_TRUE(fails(api().OpenModel(nullptr, nullptr, nullptr, nullptr), FOLIO_INVALID_ARGUMENT,
                    {"'path' is NULL"}));
  EXPECT_TRUE(fails(api().SessionGetInputCount(nullptr, &count), FOLIO_INVALID_ARGUMENT,
                    {"'session' is NULL"}));
  EXPECT_TRUE(
      fails(api().SessionGetInput(session.get(), 0, nullptr), FOLIO_INVALID_ARGUMENT, {"'out'"}));
  EXPECT_TRUE(fails(api().SessionGetInput(session.get(), 7, &info), FOLIO_INVALID_ARGUMENT,
                    {"index 7", "1 inputs"}));
  EXPECT_EQ(info, nullptr);
  EXPECT_TRUE(fails(api().GetTensorDims(nullptr, nullptr, nullptr), FOLIO_INVALID_ARGUMENT,
                    {"'value' is NULL"}));
}

TEST(Errors, StructsOfWrongSizeAreRefused) {
  FolioCpuInfo info = {};
  info.size = sizeof(size_t);
  info.logical_cpu_count = 77;
  EXPECT_TRUE(fails(api().GetCpuInfo(&info), FOLIO_INVALID_ARGUMENT, {"FolioCpuInfo", "sizeof"}));
  EXPECT_EQ(info.logical_cpu_count, 77u);
  FolioEnvOptions options = {};
  FolioEnv* env = nullptr;
  EXPECT_TRUE(fails(api().CreateEnv(&options, &env), FOLIO_INVALID_ARGUMENT, {"FolioEnvOptions"}));
}

TEST(Errors, LongerStructsKeepWhatIsNotKnown) {
  struct Longer {
    FolioCpuInfo info;
    uint64_t newer;
  } longer = {};
  longer.info.size = sizeof longer;
  longer.newer = 77;
  ASSERT_CALL(api().GetCpuInfo(&longer.info));
  EXPECT_EQ(longer.info.size, sizeof longer);
  EXPECT_EQ(longer.newer, 77u);
}

// That of a sanitizer, asked for more than it has.
constexpr bool kAllocatorEndsTheProcess = folio::kAddressSanitizer || folio::kThreadSanitizer;

// More strings than any address space holds: the allocator throws, and the border catches it.
TEST(Errors, ExceptionsOfTheAllocatorBecomeOutOfMemory) {
  if (kAllocatorEndsTheProcess) GTEST_SKIP();
  const int64_t dims[] = {int64_t{1} << 43};
  FolioValue* value = nullptr;
  FolioStatus* first = api().CreateTensor(FOLIO_STRING, dims, 1, &value);
  FolioStatus* second = api().CreateTensor(FOLIO_STRING, dims, 1, &value);
  EXPECT_EQ(first, second) << "the status is preallocated";
  EXPECT_TRUE(fails(first, FOLIO_OUT_OF_MEMORY, {"out of memory"}));
  EXPECT_TRUE(fails(second, FOLIO_OUT_OF_MEMORY, {"out of memory"})) << "and never freed";
  EXPECT_EQ(value, nullptr);
}

TEST(Errors, TensorsLargerThanTheAddressSpaceAreOutOfMemory) {
  if (kAllocatorEndsTheProcess) GTEST_SKIP();
  const int64_t dims[] = {int64_t{1} << 48};
  FolioValue* value = nullptr;
  EXPECT_TRUE(
      fails(api().CreateTensor(FOLIO_FLOAT, dims, 1, &value), FOLIO_OUT_OF_MEMORY, {"bytes"}));
  EXPECT_EQ(value, nullptr);
}

TEST(Config, UnknownKeySuggestsTheNearest) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  EXPECT_TRUE(fails(api().AddSessionConfigEntry(options.get(), "folio.thread", "1"),
                    FOLIO_INVALID_ARGUMENT, {"'folio.thread'", "did you mean 'folio.threads'"}));
  EXPECT_TRUE(fails(api().AddSessionConfigEntry(options.get(), "folio.threads", "many"),
                    FOLIO_INVALID_ARGUMENT, {"'many'"}));
  EXPECT_TRUE(fails(api().AddSessionConfigEntry(options.get(), nullptr, "1"),
                    FOLIO_INVALID_ARGUMENT, {"'key' is NULL"}));
}

TEST(Config, KeysOfOtherRuntimesAreWarningsOnly) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "session.made_up_for_this_test", "1"));
}

TEST(Config, KeysAtTheWrongPlaceAreRefused) {
  const auto model = make<ModelOptions>(api().CreateModelOptions);
  const auto run = make<RunOptions>(api().CreateRunOptions);
  EXPECT_TRUE(fails(api().AddModelConfigEntry(model.get(), "folio.threads", "1"),
                    FOLIO_INVALID_ARGUMENT, {"folio.threads", "sessions"}));
  EXPECT_TRUE(fails(api().AddRunConfigEntry(run.get(), "folio.model_loading", "map"),
                    FOLIO_INVALID_ARGUMENT, {"folio.model_loading", "models"}));
}

std::string file_text(const std::string& path) {
  std::ifstream in(std::string(FOLIO_TESTS_DIR) + "/../" + path);
  EXPECT_TRUE(in) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Row {
  std::string place;
  std::vector<std::string> values;
  bool is_text = false;  // any text is a value
};

// The rows of the first table in docs/config_keys.md.
std::map<std::string, Row> documented_keys() {
  std::map<std::string, Row> rows;
  std::istringstream lines(file_text("docs/config_keys.md"));
  const std::regex row("\\| `([a-z._]+)` \\| ([MSR]+) \\| ([^|]*) \\|.*");
  const std::regex quoted("`([^`]+)`");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    Row found;
    found.place = match[2];
    const std::string values = match[3];
    for (std::sregex_iterator it(values.begin(), values.end(), quoted), end; it != end; ++it) {
      found.values.push_back((*it)[1]);
    }
    if (found.values.empty()) found.values = {"0", "1"};
    found.is_text = values.find("path") == 2 || values.find("file's name") == 2;
    rows[match[1]] = found;
  }
  return rows;
}

TEST(Config, DocumentedKeysWorkWhereTheDocumentSays) {
  const auto rows = documented_keys();
  ASSERT_GE(rows.size(), 5u);
  for (const auto& [key, row] : rows) {
    for (const std::string& value : row.values) {
      const auto model = make<ModelOptions>(api().CreateModelOptions);
      const auto session = make<SessionOptions>(api().CreateSessionOptions);
      EXPECT_CALL(api().AddSessionConfigEntry(session.get(), key.c_str(), value.c_str())) << key;
      const Outcome of_model(api().AddModelConfigEntry(model.get(), key.c_str(), value.c_str()));
      const bool is_model_key = row.place.find('M') != std::string::npos;
      EXPECT_EQ(of_model.code, is_model_key ? FOLIO_OK : FOLIO_INVALID_ARGUMENT) << key;
    }
    if (row.is_text) continue;
    const auto session = make<SessionOptions>(api().CreateSessionOptions);
    EXPECT_TRUE(fails(api().AddSessionConfigEntry(session.get(), key.c_str(), "?"),
                      FOLIO_INVALID_ARGUMENT, {key.c_str(), "expected"}));
  }
}

TEST(Config, EveryKeyOfTheCoreIsDocumented) {
  const auto rows = documented_keys();
  std::set<std::string> documented;
  for (const auto& [key, row] : rows) documented.insert(key);
  std::set<std::string> known;
  const std::string source = file_text("core/session/options.cc");
  const std::regex entry("\\{\"((folio|session)\\.[a-z._]+)\"");
  for (std::sregex_iterator it(source.begin(), source.end(), entry), end; it != end; ++it) {
    known.insert((*it)[1]);
  }
  EXPECT_EQ(known, documented);
}

}  // namespace
}  // namespace capi_test
