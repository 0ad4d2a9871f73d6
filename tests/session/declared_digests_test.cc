// What a saved model says of its weights' contents: it finds blobs without reading a weight, no
// longer than nobody wrote to the file, and whoever lies there harms nobody else.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/pack_tester.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;
using testing::contents;

timespec time_of(const std::string& path) {
  struct stat s = {};
  EXPECT_EQ(stat(path.c_str(), &s), 0);
  return s.st_mtim;
}

void set_time(const std::string& path, const timespec& time) {
  const timespec times[] = {time, time};
  EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

class DeclaredDigestsOf : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string original = write_model(folder, "m.onnx");
    expected = run(open(original));
    pack(original);
    packed = original + ".fpack";
    model = ModelFile::open(original, {}).take();
  }

  // The model as Folio saves it. Only the original's digests stand in its pack file.
  std::string save(const std::string& name, const std::string& data_file = "") const {
    ModelSaving saving;
    saving.path = folder.path(name);
    saving.external_file = data_file;
    InlineParallel threads;
    const auto saved = model->save(saving, Optimize::kOff, {}, {}, threads, nullptr);
    EXPECT_TRUE(saved.is_ok()) << text_of(saved.status());
    return saving.path;
  }
  SessionOptions with_pack(PackTrust trust) const {
    SessionOptions options = fresh();
    options.pack.sidecar = packed;
    options.pack.trust = trust;
    return options;
  }
  // Loads the model and gives the counts; the results are always right.
  PackCounts load(const std::string& path, PackTrust trust) const {
    const SessionOptions options = with_pack(trust);
    const Ref<Session> session = open(path, options);
    EXPECT_EQ(run(session), expected);
    // An .ort names an operator's version otherwise: what is computed has another name there.
    EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), path.ends_with(".ort") ? 1 : 3);
    return options.cache->stats().files;
  }

  const TempFolder folder;
  std::vector<float> expected;
  std::string packed;
  Ref<ModelFile> model;
};

TEST_F(DeclaredDigestsOf, ASavedModelFindsItsBlobsUnread) {
  for (const std::string& path : {save("s.onnx"), save("s.ort"), save("e.onnx", "e.data")}) {
    for (const PackTrust trust : {PackTrust::kBound, PackTrust::kStat, PackTrust::kVerify}) {
      const PackCounts counts = load(path, trust);
      const bool is_read = trust == PackTrust::kVerify;
      EXPECT_EQ(counts.hashed_bytes > 0, is_read) << path << static_cast<int>(trust);
      EXPECT_EQ(counts.declared_bytes > 0, !is_read) << path << static_cast<int>(trust);
    }
  }
}

TEST_F(DeclaredDigestsOf, SavingTwiceGivesTheSameBytes) {
  EXPECT_EQ(contents(save("one.onnx")), contents(save("two.onnx")));
  EXPECT_EQ(contents(save("one.ort")), contents(save("two.ort")));
}

TEST_F(DeclaredDigestsOf, ACopyThatKeepsTheTimeIsBelievedByItsStatOnly) {
  const std::string path = save("s.onnx");
  const std::string copy = folder.path("copy.onnx");
  fs::copy_file(path, copy);
  timespec time = time_of(path);
  EXPECT_EQ(load(copy, PackTrust::kStat).declared_bytes, 0U) << "a copy of now";
  time.tv_sec -= 10;
  set_time(copy, time);
  EXPECT_GT(load(copy, PackTrust::kStat).declared_bytes, 0U);
  const PackCounts bound = load(copy, PackTrust::kBound);
  EXPECT_EQ(bound.declared_bytes, 0U);
  EXPECT_GT(bound.hashed_bytes, 0U);
}

TEST_F(DeclaredDigestsOf, AFileThatWasWrittenToIsNotBelieved) {
  const std::string path = save("s.onnx");
  std::string bytes = contents(path);
  const size_t at = bytes.find(contents(folder.path("m.onnx")).substr(2000, 64));  // amid a
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = static_cast<char>(bytes[at + 2] ^ 1);
  folder.write("s.onnx", bytes);
  const TempFolder elsewhere;
  const auto right = run(open(elsewhere.write("s.onnx", bytes)));
  EXPECT_NE(right, expected);
  for (const PackTrust trust : {PackTrust::kBound, PackTrust::kStat}) {
    const SessionOptions options = with_pack(trust);
    EXPECT_EQ(run(open(path, options)), right);
    EXPECT_EQ(options.cache->stats().files.declared_bytes, 0U);
  }
}

// The digests in a pack file that was made right after the saving are not believed: the model could
// have been written to once more within the clock's granularity.
TEST_F(DeclaredDigestsOf, AModelSavedWithItsPackFileIsNeverRead) {
  SessionOptions saving = fresh();
  saving.saving.path = folder.path("saved.onnx");
  saving.saving.packs = true;
  open(folder.path("m.onnx"), saving);
  const SessionOptions options = fresh();
  const Ref<Session> session = open(saving.saving.path, options);
  EXPECT_EQ(run(session), expected);
  EXPECT_EQ(blobs_in(session, BlobPlace::kHeap), 0);
  EXPECT_EQ(options.cache->stats().files.hashed_bytes, 0U);
}

// Swaps what is said of two weights, and sets the time that goes with the text.
TEST_F(DeclaredDigestsOf, ALieIsNobodyElsesTrouble) {
  const std::string path = save("liar.onnx");
  std::string bytes = contents(path);
  const size_t entry = bytes.find(DeclaredDigests::kKey);
  ASSERT_NE(entry, std::string::npos);
  constexpr size_t kHead = 33, kEntry = 65, kDigest = 32;
  const size_t text_at = bytes.find("1000", entry);
  const size_t first = text_at + kHead + kEntry - kDigest;
  const std::string digest = bytes.substr(first, kDigest);
  bytes.replace(first, kDigest, bytes.substr(first + kEntry, kDigest));
  bytes.replace(first + kEntry, kDigest, digest);
  folder.write("liar.onnx", bytes);
  const std::string text = bytes.substr(text_at, kHead + 3 * kEntry);
  ASSERT_TRUE(DeclaredDigests::parse(text).has_value());
  timespec time = time_of(path);
  time.tv_sec -= 1;
  time.tv_nsec = DeclaredDigests::signature(text);
  set_time(path, time);

  // A pack file that has none of its blobs: it packs its own, under no name that others use.
  const std::string other = write_model(folder, "other.onnx", 20);
  pack(other);
  SessionOptions options = fresh();
  options.pack.sidecar = other + ".fpack";
  const Ref<Session> liar = open(path, options);
  EXPECT_GT(options.cache->stats().files.declared_bytes, 0U);
  EXPECT_EQ(run(liar), expected);
  EXPECT_EQ(run(open(folder.path("m.onnx"), options)), expected) << "in the same cache";

  // Where it would write or record, its weights are hashed.
  SessionOptions storing = fresh();
  storing.pack.stores = {folder.path("store")};
  EXPECT_EQ(run(open(path, storing)), expected);
  EXPECT_EQ(storing.cache->stats().files.declared_bytes, 0U);
  SessionOptions reading = fresh();
  reading.pack.stores = {folder.path("store")};
  EXPECT_EQ(run(open(folder.path("m.onnx"), reading)), expected);
}

TEST_F(DeclaredDigestsOf, TheEntryIsNotAmongTheMetadata) {
  const auto saved = ModelFile::open(save("s.onnx"), {}).take();
  EXPECT_NE(saved->declared(), nullptr);
  for (const auto& [key, value] : saved->info().metadata) EXPECT_NE(key, DeclaredDigests::kKey);
  EXPECT_EQ(model->declared(), nullptr);
}

TEST(DeclaredDigestsText, IsReadBackOrRefused) {
  DeclaredDigests digests;
  digests.set_size(DeclaredDigests::File::kModel, 1000);
  digests.add(DeclaredDigests::File::kModel, 512, 100, {1, 2});
  const std::string text = digests.to_text(3);
  EXPECT_EQ(text.size(), DeclaredDigests::placeholder(3).size());
  const auto parsed = DeclaredDigests::parse(text);
  ASSERT_TRUE(parsed.has_value());
  FileIdentity file;
  file.size = 1000;
  file.mtime_ns = 5'000'000'000 + DeclaredDigests::signature(text);
  file.ctime_ns = file.mtime_ns + 1'000'000'000;
  const ContentId* found = parsed->find(file, /*by_inode=*/true, 512, 100);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, (ContentId{1, 2}));
  EXPECT_EQ(parsed->find(file, true, 512, 99), nullptr);
  EXPECT_EQ(parsed->find(file, true, 0, 0), nullptr) << "entries that say nothing";
  file.ctime_ns += 5'000'000'000;
  EXPECT_EQ(parsed->find(file, true, 512, 100), nullptr);
  EXPECT_NE(parsed->find(file, false, 512, 100), nullptr);
  ++file.mtime_ns;
  EXPECT_EQ(parsed->find(file, false, 512, 100), nullptr);
  for (const std::string& bad :
       {std::string(), text.substr(1), text + "0", "2" + text.substr(1),
        DeclaredDigests::placeholder(3), text.substr(0, 40) + "G" + text.substr(41)}) {
    EXPECT_FALSE(DeclaredDigests::parse(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace folio
