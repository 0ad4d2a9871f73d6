// A model opened in the place of another shares what was packed of weights that did not change,
// computed ones too; one that changed by a bit is packed anew.
#include <filesystem>

#include "core/os/mapped_file.h"
#include "tests/support/pack_tester.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;

// The file is replaced by rename, as it should be.
void replace(const TempFolder& folder, const std::string& path, const std::string& bytes) {
  fs::rename(folder.write("new.tmp", bytes), path);
}

Ref<Session> session_of(const Ref<ModelFile>& file, const SessionOptions& options) {
  auto session = Session::create(file, options);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  return std::move(session).take();
}

struct Packed {
  uint64_t blobs = 0;
  uint64_t bytes = 0;
};

Packed packed_so_far(const SessionOptions& options) {
  const PackedCache::Stats stats = options.cache->stats();
  return {stats.made_blobs, stats.made_bytes};
}

class Reload : public ::testing::Test {
 protected:
  void SetUp() override {
    path = write_model(folder, "m.onnx");
    older = ModelFile::open(path, {}).take();
    session = session_of(older, options);
    EXPECT_EQ(packed_so_far(options).blobs, 3U);
  }
  Ref<ModelFile> reopen(const Ref<ModelFile>& file) {
    auto opened = file->reopen(nullptr);
    EXPECT_TRUE(opened.is_ok()) << text_of(opened.status());
    return std::move(opened).take();
  }

  const TempFolder folder;
  const SessionOptions options = fresh();
  std::string path;
  Ref<ModelFile> older;
  Ref<Session> session;
};

TEST_F(Reload, EqualWeightsOfANewFileArePackedOnce) {
  replace(folder, path, model_of(1, 2, 3));
  const Ref<Session> newer = session_of(reopen(older), options);
  EXPECT_EQ(packed_so_far(options).blobs, 3U) << "nothing was packed for the second file";
  EXPECT_EQ(options.cache->stats().live_blobs, 3U);
  EXPECT_EQ(run(newer), run(session));
}

TEST_F(Reload, OnlyWhatChangedIsPacked) {
  const Packed before = packed_so_far(options);
  replace(folder, path, model_of(5, 2, 3));
  const Ref<Session> newer = session_of(reopen(older), options);
  const Packed after = packed_so_far(options);
  EXPECT_EQ(after.blobs - before.blobs, 1U) << "a; -b and exp(c) are the older model's";
  EXPECT_GE(after.bytes - before.bytes, kSize * kSize * sizeof(float));
  EXPECT_LT(after.bytes - before.bytes, 2 * kSize * kSize * sizeof(float));
  const TempFolder elsewhere;
  const std::string same = elsewhere.write("m.onnx", model_of(5, 2, 3));
  EXPECT_EQ(run(newer), run(open(same)));
  EXPECT_NE(run(newer), run(session));
}

TEST_F(Reload, OneBitIsAChange) {
  std::string bytes = model_of(1, 2, 3);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);  // amid b
  replace(folder, path, bytes);
  const Ref<Session> newer = session_of(reopen(older), options);
  EXPECT_EQ(packed_so_far(options).blobs, 4U);
  const TempFolder elsewhere;
  EXPECT_EQ(run(newer), run(open(elsewhere.write("m.onnx", bytes))));
}

TEST_F(Reload, ReloadsFollowEachOther) {
  replace(folder, path, model_of(1, 2, 9));
  const Ref<ModelFile> second = reopen(older);
  const Ref<Session> second_session = session_of(second, options);
  session = nullptr;
  older = nullptr;
  replace(folder, path, model_of(1, 8, 9));
  const Ref<Session> third = session_of(reopen(second), options);
  // a lives on from the first model, exp(c) from the second.
  EXPECT_EQ(packed_so_far(options).blobs, 5U);
  const TempFolder elsewhere;
  EXPECT_EQ(run(third), run(open(elsewhere.write("m.onnx", model_of(1, 8, 9)))));
}

TEST_F(Reload, AnOlderModelThatHasGoneIsNotKept) {
  replace(folder, path, model_of(1, 2, 3));
  const Ref<ModelFile> newer = reopen(older);
  const uint64_t before = registry_stats().mapped_files;
  session = nullptr;
  older = nullptr;
  EXPECT_EQ(registry_stats().mapped_files, before - 1) << "its file is closed";
  const Ref<Session> second = session_of(newer, options);
  EXPECT_EQ(packed_so_far(options).blobs, 6U) << "there was nothing left to share";
}

TEST_F(Reload, AnOlderFileThatWasWrittenToIsNoTwin) {
  // A hard link: what is written through it changes the older model's bytes, not the path's.
  fs::create_hard_link(path, folder.path("link"));
  replace(folder, path, model_of(5, 2, 3));
  const Ref<ModelFile> newer = reopen(older);
  usleep(20'000);
  folder.write("link", model_of(5, 2, 3));  // now equal, but a was packed from 1
  const Ref<Session> second = session_of(newer, options);
  EXPECT_EQ(packed_so_far(options).blobs, 6U);
  const TempFolder elsewhere;
  EXPECT_EQ(run(second), run(open(elsewhere.write("m.onnx", model_of(5, 2, 3)))));
}

}  // namespace
}  // namespace folio
