// A recording cache: what sessions of several models packed or found goes into one pack file, and a
// later session packs nothing. What the counters say is what was done.
#include <filesystem>
#include <fstream>

#include "tests/support/pack_tester.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;

SessionOptions recording() {
  SessionOptions options = fresh();
  options.cache = std::make_shared<PackedCache>(PackedCache::Keep::kRecord);
  return options;
}

SessionOptions with_file(const std::string& path) {
  SessionOptions options = fresh();
  const Status status = set_config(nullptr, &options, "folio.pack_sidecar", path);
  EXPECT_TRUE(status.is_ok()) << text_of(status);
  return options;
}

PackRecord::Size write(const SessionOptions& options, const std::string& path) {
  const auto written = options.cache->record()->write(path, "a test");
  EXPECT_TRUE(written.is_ok()) << text_of(written.status());
  return written.is_ok() ? written.value() : PackRecord::Size();
}

TEST(PackRecord, OneFileServesAllModelsThatWereRecorded) {
  const TempFolder folder;
  const std::string first = write_model(folder, "first.onnx", 1);
  const std::string second = write_model(folder, "second.onnx", 2);  // its a is the first one's b
  const SessionOptions options = recording();
  const auto expected = run(open(first, options));
  const auto expected_second = run(open(second, options));
  const std::string path = folder.path("both.fpack");
  EXPECT_EQ(write(options, path).blobs, 6U);

  for (const PackTrust trust : {PackTrust::kBound, PackTrust::kVerify}) {
    SessionOptions found = with_file(path);
    found.pack.trust = trust;
    const Ref<Session> session = open(first, found);
    EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
    EXPECT_EQ(run(session), expected);
    EXPECT_EQ(run(open(second, found)), expected_second);
    const PackedCache::Stats stats = found.cache->stats();
    EXPECT_EQ(stats.files.hits, 6U);
    EXPECT_EQ(stats.made_blobs, 0U) << "nothing is packed";
    EXPECT_EQ(stats.files.hashed_bytes > 0, trust == PackTrust::kVerify)
        << "the file knows the digests of both models";
  }
}

TEST(PackRecord, WhatAModelHasInCommonWithAnotherIsWrittenOnce) {
  const TempFolder folder;
  const SessionOptions options = recording();
  open(write_model(folder, "first.onnx", 1), options);
  open(write_model(folder, "copy.onnx", 1), options);
  EXPECT_EQ(write(options, folder.path("m.fpack")).blobs, 3U);
}

TEST(PackRecord, WhatWasFoundInFilesIsRecordedToo) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  const SessionOptions options = recording();
  const Ref<Session> session = open(path, options);
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
  const std::string all = folder.path("all.fpack");
  EXPECT_EQ(write(options, all).blobs, 3U);
  EXPECT_EQ(options.cache->stats().files.hashed_bytes, 0U) << "the sidecar knows the digests";
  fs::remove(path + ".fpack");
  EXPECT_EQ(blobs_in(open(path, with_file(all)), BlobPlace::kSidecar), 3);
}

TEST(PackRecord, ASecondSessionHashesNothingAgain) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const SessionOptions options = recording();
  const Ref<Session> session = open(path, options);
  const uint64_t hashed = options.cache->stats().files.hashed_bytes;
  EXPECT_GE(hashed, 3U * kSize * kSize * sizeof(float));
  open(path, options);
  EXPECT_EQ(options.cache->stats().files.hashed_bytes, hashed);
  EXPECT_EQ(options.cache->stats().made_blobs, 3U);
}

TEST(PackRecord, RecordedBlobsLiveWithoutSessionsUntilTheyAreCollected) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const SessionOptions options = recording();
  Ref<Session> session = open(path, options);
  options.cache->collect();
  EXPECT_EQ(options.cache->record()->size().blobs, 3U) << "a session uses them";
  session = nullptr;
  EXPECT_EQ(options.cache->stats().live_blobs, 3U);
  options.cache->collect();
  EXPECT_EQ(options.cache->stats().live_blobs, 0U);
  EXPECT_EQ(options.cache->record()->size().blobs, 0U);
}

TEST(PackRecord, CollectingAHoldingCacheKeepsWhatASessionUses) {
  const TempFolder folder;
  SessionOptions options = fresh();
  options.cache = std::make_shared<PackedCache>(PackedCache::Keep::kHold);
  const Ref<Session> kept = open(write_model(folder, "kept.onnx", 1), options);
  const auto expected = run(kept);
  // With a store, each blob has two keys.
  options.pack.stores = {folder.path("store")};
  open(write_model(folder, "gone.onnx", 7), options);
  EXPECT_EQ(options.cache->stats().live_blobs, 6U);
  options.cache->collect();
  EXPECT_EQ(options.cache->stats().live_blobs, 3U);
  EXPECT_EQ(run(kept), expected);
}

TEST(PackRecord, AnUnwritablePathIsAnErrorThatNamesIt) {
  const TempFolder folder;
  const SessionOptions options = recording();
  open(write_model(folder, "m.onnx"), options);
  EXPECT_TRUE(fails_with(options.cache->record()->write(folder.path("no/m.fpack"), "").status(),
                         Code::kNoSuchFile, {"no/m.fpack"}));
}

TEST(PackRecord, ANamedPackFileStandsInTheSidecarsPlace) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  const std::string elsewhere = folder.path("elsewhere.fpack");
  fs::rename(path + ".fpack", elsewhere);
  EXPECT_EQ(blobs_in(open(path), BlobPlace::kSidecar), 0);
  EXPECT_EQ(blobs_in(open(path, with_file(elsewhere)), BlobPlace::kSidecar), 3);
  EXPECT_EQ(blobs_in(open(path, with_file(folder.path("missing.fpack"))), BlobPlace::kHeap), 3);
  SessionOptions options;
  EXPECT_EQ(set_config(nullptr, &options, "folio.pack_sidecar", "of").code(),
            Code::kInvalidArgument);
}

// ---- counters

TEST(PackCounts, SayWhyABlobWasNotFound) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx", 1);
  SessionOptions options = fresh();
  Ref<Session> session = open(path, options);
  EXPECT_EQ(options.cache->stats().misses, 3U);
  EXPECT_EQ(options.cache->stats().made_blobs, 3U);
  EXPECT_EQ(options.cache->stats().files.misses, 0U) << "there was no file to look in";

  const std::string other = write_model(folder, "other.onnx", 7);
  pack(other);
  fs::rename(other + ".fpack", path + ".fpack");
  options = fresh();
  session = open(path, options);
  EXPECT_EQ(options.cache->stats().files.misses, 3U) << "another model's";
  EXPECT_GT(options.cache->stats().files.hashed_bytes, 0U);

  folder.write("m.onnx.fpack", "no pack file");
  options = fresh();
  session = open(path, options);
  EXPECT_EQ(options.cache->stats().files.ignored_files, 1U);

  pack(path);
  options = fresh();
  session = open(path, options);
  const PackedCache::Stats stats = options.cache->stats();
  EXPECT_EQ(stats.files.hits, 3U);
  EXPECT_EQ(stats.files.hit_bytes, stats.live_bytes);
  EXPECT_EQ(stats.place_blobs[static_cast<int>(BlobPlace::kSidecar)], 3U);
  EXPECT_EQ(stats.files.hashed_bytes, 0U);
  EXPECT_GT(stats.files.memo_bytes, 0U);
}

TEST(PackCounts, ADamagedBlobIsCountedOnce) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  fs::permissions(path + ".fpack", fs::perms::owner_all);
  for (uint64_t at = 4096; at + 5000 < fs::file_size(path + ".fpack"); at += 50000) {
    std::fstream file(path + ".fpack", std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x55');
  }
  SessionOptions options = fresh();
  options.pack.checksum = PackChecksum::kFirstUse;
  const Ref<Session> session = open(path, options);
  const PackCounts counts = options.cache->stats().files;
  EXPECT_EQ(counts.damaged, 3U);
  EXPECT_EQ(counts.misses, 0U);
  EXPECT_EQ(counts.hits, 0U);
}

// ---- digests

TEST(DigestCache, RemembersWhatWasHashed) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  // A copy of both: its digests are those of another inode.
  const std::string copy = folder.path("copy.onnx");
  fs::copy_file(path, copy);
  fs::copy_file(path + ".fpack", copy + ".fpack");
  usleep(150'000);
  const std::string cache = folder.path("home/.cache/folio");
  for (const bool first : {true, false}) {
    SessionOptions options = fresh();
    ASSERT_TRUE(set_config(nullptr, &options, "folio.digest_cache", cache).is_ok());
    const Ref<Session> session = open(copy, options);
    EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
    const PackCounts counts = options.cache->stats().files;
    EXPECT_EQ(counts.hashed_bytes > 0, first);
    EXPECT_EQ(counts.cached_bytes > 0, !first);
  }
  EXPECT_EQ(fs::status(cache).permissions(), fs::perms::owner_all);
  SessionOptions verify = fresh();
  verify.pack.digest_cache = cache;
  verify.pack.trust = PackTrust::kVerify;
  open(copy, verify);
  EXPECT_EQ(verify.cache->stats().files.cached_bytes, 0U);
}

TEST(DigestCache, IsOffUnlessItIsAskedFor) {
  const TempFolder folder;
  const std::string home = folder.path("home");
  setenv("XDG_CACHE_HOME", home.c_str(), 1);
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  SessionOptions options = fresh();
  options.pack.trust = PackTrust::kVerify;
  open(path, options);
  EXPECT_FALSE(fs::exists(home));
  EXPECT_EQ(default_digest_cache(), home + "/folio");
  ASSERT_TRUE(set_config(nullptr, &options, "folio.digest_cache", "on").is_ok());
  EXPECT_EQ(options.pack.digest_cache, home + "/folio");
  unsetenv("XDG_CACHE_HOME");
}

TEST(DigestCache, OneThatCannotBeUsedFailsNothing) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  fs::copy_file(path, folder.path("copy.onnx"));
  fs::rename(path + ".fpack", folder.path("copy.onnx.fpack"));
  const std::string cache = folder.path("shared");
  fs::create_directory(cache);
  fs::permissions(cache, fs::perms::all);
  SessionOptions options = fresh();
  options.pack.digest_cache = cache;
  const Ref<Session> session = open(folder.path("copy.onnx"), options);
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
  EXPECT_TRUE(fs::is_empty(cache)) << "others can write there";
  EXPECT_EQ(options.cache->stats().files.ignored_files, 1U);
}

// Its weights stand in no file: they have one name, which a load must not wait for while it has it.
TEST(PackRecord, ModelsFromMemoryUsePackFilesToo) {
  const TempFolder folder;
  SessionOptions options = recording();
  const auto open_bytes = [](const SessionOptions& with) {
    auto file = ModelFile::open(source_of(model_bytes()), {});
    EXPECT_TRUE(file.is_ok()) << text_of(file.status());
    auto session = Session::create(std::move(file).take(), with);
    EXPECT_TRUE(session.is_ok()) << text_of(session.status());
    return session.is_ok() ? std::move(session).take() : nullptr;
  };
  const auto expected = run(open_bytes(options));
  const std::string path = folder.path("memory.fpack");
  EXPECT_EQ(write(options, path).blobs, 3U);
  const Ref<Session> found = open_bytes(with_file(path));
  EXPECT_EQ(blobs_in(found, BlobPlace::kSidecar), 3);
  EXPECT_EQ(run(found), expected);
}

}  // namespace
}  // namespace folio
