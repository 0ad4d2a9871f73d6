// PackCache: what a recording one writes serves later sessions; collecting; counters.
#include <filesystem>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

PackCache cache_of(int32_t hold, int32_t record) {
  auto options = sized<FolioPackCacheOptions>();
  options.hold = hold;
  options.record = record;
  return make<PackCache>(api().CreatePackCache, &options);
}

Session open(const std::string& path, const PackCache& cache, const char* sidecar = "off") {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  EXPECT_CALL(api().SessionOptionsSetPackCache(options.get(), cache.get()));
  EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "folio.pack_sidecar", sidecar));
  return make<Session>(api().CreateSession, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                       options.get());
}

FolioPackCacheStats stats_of(const PackCache& cache) {
  auto stats = sized<FolioPackCacheStats>();
  EXPECT_CALL(api().PackCacheGetStats(cache.get(), &stats));
  return stats;
}

TEST(PackCacheWrite, GivesAFileThatLaterSessionsFind) {
  const TempFolder folder;
  const std::string model = folder.write("matmul.onnx", matmul_model());
  const std::string pack = folder.path("all.fpack");
  {
    const auto cache = cache_of(0, 1);
    const auto session = open(model, cache);
    FolioPackCacheStats stats = stats_of(cache);
    EXPECT_EQ(stats.recorded_count, 1u);
    EXPECT_EQ(stats.packed_count, 1u);
    EXPECT_EQ(stats.packed_bytes, stats.recorded_bytes);
    EXPECT_EQ(stats.absent_count, 1u);
    EXPECT_EQ(stats.heap_blob_count, 1u);
    auto written = sized<FolioPackResult>();
    ASSERT_CALL(api().PackCacheWrite(cache.get(), pack.c_str(), &written));
    EXPECT_EQ(written.written_blob_count, 1u);
    EXPECT_EQ(written.written_blob_bytes, stats.recorded_bytes);
  }
  const auto cache = cache_of(0, 0);
  const auto session = open(model, cache, pack.c_str());
  const FolioPackCacheStats stats = stats_of(cache);
  EXPECT_EQ(stats.found_count, 1u);
  EXPECT_EQ(stats.found_bytes, stats.blob_bytes);
  EXPECT_EQ(stats.packed_count, 0u);
  EXPECT_EQ(stats.absent_count, 0u);
  EXPECT_EQ(stats.sidecar_blob_count, 1u);
  EXPECT_EQ(stats.heap_blob_count, 0u);
}

TEST(PackCacheWrite, MistakesAreRefused) {
  const TempFolder folder;
  const auto holding = cache_of(1, 0);
  const std::string path = folder.path("m.fpack");
  EXPECT_TRUE(fails(api().PackCacheWrite(holding.get(), path.c_str(), nullptr),
                    FOLIO_INVALID_ARGUMENT, {"record"}));
  EXPECT_TRUE(fails(api().PackCacheWrite(nullptr, path.c_str(), nullptr), FOLIO_INVALID_ARGUMENT,
                    {"cache"}));
  const auto recording = cache_of(0, 1);
  EXPECT_TRUE(fails(api().PackCacheWrite(recording.get(), nullptr, nullptr), FOLIO_INVALID_ARGUMENT,
                    {"path"}));
  const std::string nowhere = folder.path("no/m.fpack");
  EXPECT_TRUE(fails(api().PackCacheWrite(recording.get(), nowhere.c_str(), nullptr),
                    FOLIO_NO_SUCHFILE, {"no/m.fpack"}));
  EXPECT_FALSE(std::filesystem::exists(nowhere));
  auto options = sized<FolioPackCacheOptions>();
  options.record = 2;
  FolioPackCache* raw = nullptr;
  EXPECT_TRUE(
      fails(api().CreatePackCache(&options, &raw), FOLIO_INVALID_ARGUMENT, {"record is 2"}));
}

TEST(PackCacheCollect, LetsGoOfWhatNoSessionUses) {
  const TempFolder folder;
  const std::string model = folder.write("matmul.onnx", matmul_model());
  for (const int32_t record : {0, 1}) {
    const auto cache = cache_of(1, record);
    auto session = open(model, cache);
    auto collected = sized<FolioPackCacheCollected>();
    ASSERT_CALL(api().PackCacheCollect(cache.get(), &collected));
    EXPECT_EQ(collected.blob_count, 0u) << "in use";
    const uint64_t bytes = stats_of(cache).blob_bytes;
    session.reset();
    EXPECT_EQ(stats_of(cache).blob_count, 1u);
    ASSERT_CALL(api().PackCacheCollect(cache.get(), &collected));
    EXPECT_EQ(collected.blob_count, 1u);
    EXPECT_EQ(collected.blob_bytes, bytes);
    EXPECT_EQ(stats_of(cache).blob_count, 0u);
    EXPECT_EQ(stats_of(cache).recorded_count, 0u);
    EXPECT_CALL(api().PackCacheCollect(cache.get(), nullptr));
  }
  EXPECT_TRUE(fails(api().PackCacheCollect(nullptr, nullptr), FOLIO_INVALID_ARGUMENT, {"cache"}));
}

}  // namespace
}  // namespace capi_test
