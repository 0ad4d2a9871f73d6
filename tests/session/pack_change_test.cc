// Pack files that change while programs read them: whoever opened or wrote them, every session that
// has their weights says so, and one that is made afterwards does without.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/os/sigbus_guard.h"
#include "core/session/file_watch.h"
#include "tests/support/child.h"
#include "tests/support/pack_tester.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;

Status run_status(const Ref<Session>& session) {
  const std::vector<float> x(2 * kSize, 0.5F);
  std::vector<Value> outputs;
  return session->run({}, {{"x", Value(make_tensor<float>({2, kSize}, x))}}, {{"y", Tensor()}},
                      &outputs);
}

// What runs say once the last look at the files is too old to count.
Status status_after_a_while(const Ref<Session>& session) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(FileWatch::kIntervalNs));
  return run_status(session);
}

// Bytes of blobs, where the index does not tell.
void overwrite(const std::string& pack) {
  ASSERT_EQ(::chmod(pack.c_str(), 0644), 0);
  std::fstream file(pack, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(8192);
  file << std::string(64 << 10, '\x11');
}

SessionOptions with_store(const TempFolder& folder) {
  SessionOptions options = fresh();
  options.pack.stores = {folder.path("store")};
  return options;
}

std::string pack_in_store(const TempFolder& folder) {
  for (const auto& file : fs::directory_iterator(folder.path("store"))) {
    const std::string name = file.path().filename();
    if (name.ends_with(".fpack") && name != "index.fpack") return file.path();
  }
  ADD_FAILURE() << "no pack";
  return "";
}

TEST(PackChange, IsFoundByAModelThatHasTheBlobsFromAnother) {
  const TempFolder folder;
  const std::string path = write_model(folder, "a.onnx");
  fs::copy_file(path, folder.path("b.onnx"));
  (void)open(path, with_store(folder));  // as another process
  const SessionOptions options = with_store(folder);
  const Ref<Session> first = open(path, options);
  const Ref<Session> second = open(folder.path("b.onnx"), options);
  EXPECT_EQ(options.cache->stats().live_blobs, 3U) << "shared";
  EXPECT_EQ(blobs_in(second, BlobPlace::kStore), 3);
  EXPECT_TRUE(status_after_a_while(first).is_ok() && run_status(second).is_ok());
  const std::string pack = pack_in_store(folder);
  overwrite(pack);
  EXPECT_TRUE(fails_with(status_after_a_while(first), Code::kModelChanged, {pack}));
  EXPECT_TRUE(fails_with(run_status(second), Code::kModelChanged, {pack}));
}

TEST(PackChange, IsFoundByWhoWroteThePack) {
  const TempFolder folder;
  const Ref<Session> session = open(write_model(folder, "m.onnx"), with_store(folder));
  EXPECT_EQ(blobs_in(session, BlobPlace::kStore), 3);
  EXPECT_TRUE(status_after_a_while(session).is_ok());
  const std::string pack = pack_in_store(folder);
  overwrite(pack);
  EXPECT_TRUE(fails_with(status_after_a_while(session), Code::kModelChanged, {pack}));
}

TEST(PackChange, NewNamesLinksAndModesAreNoneForWhoWroteThePack) {
  const TempFolder folder;
  const Ref<Session> session = open(write_model(folder, "m.onnx"), with_store(folder));
  const std::string pack = pack_in_store(folder);
  ASSERT_EQ(::chmod(pack.c_str(), 0644), 0);
  EXPECT_TRUE(status_after_a_while(session).is_ok());
  fs::rename(pack, folder.path("renamed"));
  EXPECT_TRUE(status_after_a_while(session).is_ok());
  fs::remove(folder.path("renamed"));
  EXPECT_TRUE(status_after_a_while(session).is_ok());
}

TEST(PackChange, APackThatItsWriterShortensIsAnErrorOfTheRunWhenTheGuardIsOn) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  for (const Packing packing : {Packing::kLoad, Packing::kBehind}) {
    fs::remove_all(folder.path("store"));
    const pid_t child = fork();
    if (child == 0) {
      SessionOptions options = with_store(folder);
      options.sigbus_guard = true;
      options.packing = packing;
      if (packing == Packing::kBehind) options.cache = nullptr;  // the process's
      const Ref<Session> session = open(path, options);
      if (!session->wait_packed(std::chrono::milliseconds(-1))) _exit(1);
      if (!run_status(session).is_ok()) _exit(2);
      fs::resize_file(pack_in_store(folder), 0);  // at once: the last look is not old
      for (int i = 0; i < 3; ++i) {
        if (run_status(session).code() != Code::kModelChanged) _exit(3);
      }
      _exit(0);
    }
    EXPECT_EQ(verdict_of(child), 0);
  }
}

TEST(PackChange, IsFoundByTheNewerModelOfAReload) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  const std::string sidecar = path + ".fpack";
  fs::create_hard_link(sidecar, folder.path("kept"));
  const SessionOptions options = fresh();
  const Ref<ModelFile> older = ModelFile::open(path, {}).take();
  const Ref<Session> session = Session::create(older, options).take();
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
  fs::rename(folder.write("new.tmp", model_bytes()), path);
  fs::remove(sidecar);
  const Ref<ModelFile> newer = older->reopen(nullptr).take();
  const Ref<Session> second = Session::create(newer, options).take();
  EXPECT_EQ(blobs_in(second, BlobPlace::kSidecar), 3) << "those of the older one";
  EXPECT_TRUE(status_after_a_while(second).is_ok());
  overwrite(folder.path("kept"));
  EXPECT_TRUE(fails_with(status_after_a_while(second), Code::kModelChanged, {sidecar}));
  EXPECT_TRUE(fails_with(run_status(session), Code::kModelChanged, {sidecar}));
}

TEST(PackChange, ASessionThatIsMadeAfterwardsDoesWithoutThePack) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const SessionOptions options = with_store(folder);
  const Ref<Session> session = open(path, options);
  const std::vector<float> expected = run(session);
  fs::resize_file(pack_in_store(folder), 0);
  const Ref<Session> second = open(path, options);
  EXPECT_EQ(run(second), expected) << "though the other one's blobs are still in the cache";
  EXPECT_TRUE(status_after_a_while(second).is_ok());
  EXPECT_EQ(status_after_a_while(session).code(), Code::kModelChanged);
}

TEST(PackChange, WhatStoodInAPackThatChangedIsNotWrittenIntoAnother) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  SessionOptions options = fresh();
  options.cache = std::make_shared<PackedCache>(PackedCache::Keep::kRecord);
  const Ref<Session> session = open(path, options);
  const PackRecord& record = *options.cache->record();
  EXPECT_EQ(record.size().blobs, 3U);
  overwrite(path + ".fpack");
  const std::string out = folder.path("out.fpack");
  EXPECT_TRUE(
      fails_with(record.write(out, "a test").status(), Code::kModelChanged, {path + ".fpack"}));
  EXPECT_FALSE(fs::exists(out));
  fs::remove(path + ".fpack");
  const Ref<Session> second = open(path, options);  // packs, and is recorded in the other's place
  const auto written = record.write(out, "a test");
  ASSERT_TRUE(written.is_ok()) << text_of(written.status());
  EXPECT_EQ(written.value().blobs, 3U);
}

}  // namespace
}  // namespace folio
