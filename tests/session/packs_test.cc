// Pack files and stores as sessions use them: what a file has is neither packed nor computed again,
// and whatever is wrong with a file, the load succeeds and the results are the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/os/new_file.h"
#include "tests/support/pack_tester.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;

// Changes one byte of a file that is not to be changed.
void flip(const std::string& path, uint64_t offset) {
  chmod(path.c_str(), 0600);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x40));
}

std::string sidecar(const std::string& path) { return path + ".fpack"; }

// Steps of writing a file, of which one fails.
int g_step = 0;
int g_fail_at = 0;

TEST(Packs, ASidecarHasAllThatALoadWouldMake) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const Ref<Session> without = open(path);
  EXPECT_EQ(blobs_in(without, BlobPlace::kHeap), 3);
  pack(path);
  const uint64_t live_before = buffer_bytes_live();
  const Ref<Session> with = open(path);
  EXPECT_EQ(blobs_in(with, BlobPlace::kSidecar), 3);
  EXPECT_EQ(blobs_in(with, BlobPlace::kHeap), 0);
  EXPECT_LT(buffer_bytes_live() - live_before, 20000U) << "a blob has 100 KiB";
  EXPECT_EQ(run(with), run(without));
}

TEST(Packs, CheckSaysWhatIsMissing) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  PackModelOptions check;
  check.check = true;
  const auto file = ModelFile::open(path, {}).take();
  EXPECT_EQ(pack_model(file, fresh(), check).value().missing_blobs, 3U);
  pack(path);
  EXPECT_EQ(pack_model(file, fresh(), check).value().missing_blobs, 0U);
  EXPECT_EQ(pack_model(file, fresh(), check).value().found_blobs, 3U);
}

TEST(Packs, NoModelIsReplacedByItsPackFile) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  PackModelOptions onto;
  onto.path = path;
  const auto file = ModelFile::open(path, {}).take();
  EXPECT_TRUE(fails_with(pack_model(file, fresh(), onto).status(), Code::kInvalidArgument,
                         {"m.onnx", "no pack file"}));
  EXPECT_TRUE(ModelFile::open(path, {}).is_ok());
}

TEST(Packs, AnotherModelsSidecarGivesNothing) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx", 1);
  const std::string other = write_model(folder, "other.onnx", 7);
  pack(other);
  const auto expected = run(open(path));
  fs::rename(sidecar(other), sidecar(path));
  const Ref<Session> session = open(path);
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 0);
  EXPECT_EQ(run(session), expected);
}

TEST(Packs, DamagedBlobsArePackedAnewWhereChecksumsAreOn) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  pack(path);
  for (uint64_t at = 4096; at + 5000 < fs::file_size(sidecar(path)); at += 50000) {
    flip(sidecar(path), at);
  }
  for (const PackChecksum checksum : {PackChecksum::kFirstUse, PackChecksum::kOpen}) {
    SessionOptions options = fresh();
    options.pack.checksum = checksum;
    const Ref<Session> session = open(path, options);
    EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 0);
    EXPECT_EQ(run(session), expected);
  }
}

TEST(Packs, ADamagedOrForeignFileNeverFailsALoad) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  pack(path);
  std::string text;
  {
    std::ifstream in(sidecar(path), std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (const size_t size :
       {size_t{0}, size_t{100}, size_t{4096}, text.size() / 2, text.size() - 1}) {
    fs::remove(sidecar(path));
    folder.write("m.onnx.fpack", text.substr(0, size));
    EXPECT_EQ(run(open(path)), expected) << size;
  }
  fs::remove(sidecar(path));
  fs::create_directory(sidecar(path));
  EXPECT_EQ(run(open(path)), expected) << "a folder";
}

TEST(Packs, AModelTrainedAnewInPlaceIsNeverGivenOldWeights) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx", 1);
  pack(path);
  // The same size and mtime, as a careless tool leaves them.
  struct stat before = {};
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  folder.write("m.onnx", model_bytes(3));
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  const TempFolder elsewhere;
  const auto expected = run(open(write_model(elsewhere, "m.onnx", 3)));
  for (const PackTrust trust : {PackTrust::kBound, PackTrust::kVerify}) {
    SessionOptions options = fresh();
    options.pack.trust = trust;
    EXPECT_EQ(run(open(path, options)), expected) << static_cast<int>(trust);
  }
}

TEST(Packs, AModelPackedRightAfterItWasWrittenIsNotHashedByLoads) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", model_bytes());
  pack(path);
  SessionOptions options = fresh();
  PackOptions pack_options = options.pack;
  pack_options.sidecar = sidecar(path);
  options.library = PackLibrary::open(pack_options).take();
  const Ref<Session> session = open(path, options);
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
  EXPECT_EQ(options.library->stats().hashed_bytes, 0U);
}

TEST(Packs, ACopyIsHashedOnceOrTrustedByItsStat) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  const TempFolder image;
  const std::string copy = image.path("m.onnx");
  fs::copy_file(path, copy);
  fs::copy_file(sidecar(path), sidecar(copy));
  fs::last_write_time(copy, fs::last_write_time(path));
  for (const PackTrust trust : {PackTrust::kBound, PackTrust::kStat, PackTrust::kVerify}) {
    SessionOptions options = fresh();
    options.pack.trust = trust;
    PackOptions pack_options = options.pack;
    pack_options.sidecar = sidecar(copy);
    options.library = PackLibrary::open(pack_options).take();
    const Ref<Session> session = open(copy, options);
    EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
    const bool hashes = trust != PackTrust::kStat;
    EXPECT_EQ(options.library->stats().hashed_bytes > 0, hashes) << static_cast<int>(trust);
  }
}

SessionOptions with_store(const std::string& folder) {
  SessionOptions options = fresh();
  options.pack.stores = {folder};
  return options;
}

TEST(Packs, WhatOneLoadPacksIntoAStoreTheNextFinds) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const std::string store = folder.path("store");
  const Ref<Session> first = open(path, with_store(store));
  EXPECT_EQ(blobs_in(first, BlobPlace::kStore), 3) << "written and mapped back";
  const Ref<Session> second = open(path, with_store(store));
  EXPECT_EQ(blobs_in(second, BlobPlace::kStore), 3);
  EXPECT_EQ(run(first), run(second));
  EXPECT_EQ(run(first), run(open(path)));
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  EXPECT_EQ(opened->index()->packs.size(), 1U) << "the second load adds nothing";
  EXPECT_TRUE(opened->verify().value().damaged.empty());
}

TEST(Packs, ModelsShareTheWeightsThatTheyHaveInCommon) {
  const TempFolder folder;
  const std::string store = folder.path("store");
  open(write_model(folder, "a.onnx", 1), with_store(store));
  // Its matrix a is the first one's b, but the other two are new.
  open(write_model(folder, "b.onnx", 2), with_store(store));
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  EXPECT_EQ(opened->index()->packs.size(), 2U);
  open(write_model(folder, "copy.onnx", 1), with_store(store));
  EXPECT_EQ(PackStore::open(store, PackChecksum::kOff, false).value()->index()->packs.size(), 2U);
}

TEST(Packs, AStoreMayVanishAtAnyTime) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const std::string store = folder.path("store");
  const Ref<Session> session = open(path, with_store(store));
  const auto expected = run(session);
  for (const auto& entry : fs::directory_iterator(store)) {
    if (entry.path().filename() != "index.fpack") fs::remove(entry.path());
  }
  EXPECT_EQ(run(open(path, with_store(store))), expected) << "the packs are gone";
  fs::remove_all(store);
  EXPECT_EQ(run(session), expected) << "mapped files live on";
  EXPECT_EQ(run(open(path, with_store(store))), expected) << "it is made anew";
}

TEST(Packs, StoresOfOthersAreNeitherReadNorWritten) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const std::string store = folder.path("store");
  fs::create_directory(store);
  chmod(store.c_str(), 0777);
  const Ref<Session> session = open(path, with_store(store));
  EXPECT_EQ(blobs_in(session, BlobPlace::kHeap), 3);
  EXPECT_TRUE(fs::is_empty(store));
}

TEST(Packs, TheOldestPacksGoWhenAStoreIsFull) {
  const TempFolder folder;
  const std::string store = folder.path("store");
  for (int i = 0; i < 4; ++i) {
    SessionOptions options = with_store(store);
    options.pack.store_limit = 1'000'000;  // a pack has 310 KB
    open(write_model(folder, "m" + std::to_string(i), static_cast<float>(10 * i)), options);
  }
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  EXPECT_EQ(opened->index()->packs.size(), 3U);
  EXPECT_EQ(blobs_in(open(folder.path("m3"), with_store(store)), BlobPlace::kStore), 3);
}

// Names of the files in a folder whose names end so.
std::set<std::string> names_in(const std::string& folder, std::string_view suffix) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(suffix) && name != "index.fpack") names.insert(name);
  }
  return names;
}

TEST(Packs, AStoreRemovesNothingThatItDidNotWrite) {
  const TempFolder folder;
  const std::string store = folder.path("store");
  open(write_model(folder, "m.onnx"), with_store(store));
  const std::string own = *names_in(store, ".fpack").begin();
  const std::string path = store + "/model.onnx";
  fs::copy_file(folder.path("m.onnx"), path);
  pack(path);
  for (const char* name : {"x.tmp", ".model.onnx.1.2.tmp", "sub.fpack", ".sub.fpack.1.2.tmp"}) {
    std::ofstream(store + "/" + name) << "somebody's";
  }
  std::ofstream(store + "/." + own + ".1.2.tmp") << "left over";
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  const auto report = opened->collect(/*limit=*/1).take();
  EXPECT_EQ(report.removed, 2U) << "its pack and its own temporary";
  EXPECT_EQ(report.damaged.size(), 1U) << "sub.fpack, which stays";
  const std::set<std::string> packs = {"model.onnx.fpack", "sub.fpack"};
  EXPECT_EQ(names_in(store, ".fpack"), packs);
  const std::set<std::string> others = {"x.tmp", ".model.onnx.1.2.tmp", ".sub.fpack.1.2.tmp"};
  EXPECT_EQ(names_in(store, ".tmp"), others);
  EXPECT_EQ(blobs_in(open(path), BlobPlace::kSidecar), 3);
}

TEST(Packs, AFullStoreRemovesNoModelsPackFile) {
  const TempFolder folder;
  const std::string store = folder.path("store");
  fs::create_directory(store);
  chmod(store.c_str(), 0700);
  fs::copy_file(write_model(folder, "a.onnx", 1), store + "/a.onnx");
  pack(store + "/a.onnx");
  SessionOptions options = with_store(store);
  options.pack.store_limit = 1;
  options.find_sidecar = false;
  open(write_model(folder, "b.onnx", 20), options);
  EXPECT_TRUE(fs::exists(store + "/a.onnx.fpack"));
}

TEST(Packs, WhatCannotBeReadIsNotDamaged) {
  const TempFolder folder;
  const std::string store = folder.path("store");
  open(write_model(folder, "m.onnx"), with_store(store));
  const std::string own = store + "/" + *names_in(store, ".fpack").begin();
  chmod(own.c_str(), 0664);  // its group might have changed it
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  const auto report = opened->collect(0).take();
  EXPECT_TRUE(report.damaged.empty());
  ASSERT_EQ(report.ignored.size(), 1U);
  EXPECT_NE(report.ignored[0].find(own), std::string::npos);
  EXPECT_TRUE(fs::exists(own));
  EXPECT_EQ(opened->verify().value().ignored, report.ignored);
}

TEST(Packs, ADamagedPackOfAStoreIsCollected) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const std::string store = folder.path("store");
  const auto expected = run(open(path, with_store(store)));
  flip(store + "/" + *names_in(store, ".fpack").begin(), 5000);  // of a blob
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  EXPECT_EQ(opened->verify().value().damaged.size(), 1U);
  const auto report = opened->collect(0).take();
  EXPECT_EQ(report.damaged.size(), 1U);
  EXPECT_EQ(report.removed, 1U);
  EXPECT_TRUE(names_in(store, ".fpack").empty());
  EXPECT_EQ(run(open(path, with_store(store))), expected);
}

TEST(Packs, AFolderWithoutAStoreIsNone) {
  const TempFolder folder;
  const auto opened = PackStore::open(folder.path(""), PackChecksum::kOff, false).take();
  EXPECT_TRUE(fails_with(opened->check_is_store(), Code::kInvalidArgument, {"no pack store"}));
  const std::string store = folder.path("store");
  open(write_model(folder, "m.onnx"), with_store(store));
  fs::remove(store + "/index.fpack");
  const auto made = PackStore::open(store, PackChecksum::kOff, false).take();
  EXPECT_TRUE(made->check_is_store().is_ok()) << "collect() makes the index anew";
}

TEST(Packs, PackingIntoAStoreThatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto file = ModelFile::open(path, {}).take();
  int refused = 0;
  for (g_fail_at = 1; g_fail_at < 200; ++g_fail_at) {
    PackModelOptions into;
    into.store = folder.path("store" + std::to_string(g_fail_at));
    g_step = 0;
    NewFile::set_step_hook([](const char*) { return ++g_step != g_fail_at; });
    const auto packed = pack_model(file, fresh(), into);
    NewFile::set_step_hook(nullptr);
    if (g_step < g_fail_at) break;
    if (!packed.is_ok()) ++refused;
    const auto store = PackStore::open(into.store, PackChecksum::kOff, false).take();
    const bool is_there = store->index() && store->index()->entries.size() == 3;
    EXPECT_EQ(packed.is_ok(), is_there) << g_fail_at;
  }
  EXPECT_GT(refused, 5);
}

TEST(Packs, LevelsThatTakeTheSameBytesShareThem) {
  model_writer::ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({2, kSize}));
  writer.graph().initializer(f32_tensor("a", {kSize, kSize}, numbers(1)));
  writer.graph().node("MatMul", {"x", "a"}, {"y"});
  writer.graph().output("y", f32_type({2, kSize}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const auto file = ModelFile::open(path, {}).take();
  PackModelOptions options;
  for (const KernelLevel& level : kernel_levels()) {
    if (level_usable(level, cpu_bits())) options.levels.push_back(level.name);
  }
  options.levels.push_back("ref");  // twice, wherever this runs
  const auto packed = pack_model(file, fresh(), options).take();
  EXPECT_EQ(packed.written_blobs, 1U);
  EXPECT_EQ(packed.found_blobs, 0U) << "nothing was there before";
  EXPECT_EQ(packed.missing_blobs, 0U);
  EXPECT_LT(fs::file_size(sidecar(path)), 150000U) << "a blob has 100 KiB";
}

// In a child: the guard stays on for a whole process.
TEST(Packs, AFileCutShortIsAnErrorOfTheRunWhenTheGuardIsOn) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  pack(path);
  const pid_t child = fork();
  if (child == 0) {
    ModelOptions guarded;
    guarded.sigbus_guard = true;
    const auto file = ModelFile::open(path, guarded).take();
    const Ref<Session> session = Session::create(file, fresh()).take();
    if (blobs_in(session, BlobPlace::kSidecar) != 3) _exit(2);
    if (truncate(sidecar(path).c_str(), 4096) != 0) _exit(3);
    std::vector<Value> outputs;
    const Tensor x = make_tensor<float>({2, kSize}, std::vector<float>(2 * kSize, 1));
    const auto status = session->run({}, {{"x", Value(x)}}, {{"y", Tensor()}}, &outputs);
    const bool names_it = status.message().find("m.onnx.fpack") != std::string_view::npos;
    _exit(status.code() == Code::kModelChanged && names_it ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// ---- faults while a file is written

TEST(Packs, AFullDiskAtAnyStepNeverFailsALoad) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  bool was_refused = true;
  for (g_fail_at = 1; was_refused && g_fail_at < 200; ++g_fail_at) {
    const std::string store = folder.path("store" + std::to_string(g_fail_at));
    g_step = 0;
    NewFile::set_step_hook([](const char*) { return ++g_step != g_fail_at; });
    const Ref<Session> session = open(path, with_store(store));
    NewFile::set_step_hook(nullptr);
    was_refused = g_step >= g_fail_at;
    EXPECT_EQ(run(session), expected) << g_fail_at;
    EXPECT_EQ(run(open(path, with_store(store))), expected) << g_fail_at;
  }
  EXPECT_GT(g_fail_at, 10) << "every step was refused once";
}

TEST(Packs, AnUnwritablePackFileIsAnErrorThatNamesIt) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto file = ModelFile::open(path, {}).take();
  PackModelOptions options;
  options.path = folder.path("nowhere/m.fpack");
  EXPECT_TRUE(fails_with(pack_model(file, fresh(), options).status(), Code::kNoSuchFile,
                         {"nowhere/m.fpack"}));
}

// A child dies at each step of building a pack: what it leaves never disturbs anybody.
TEST(Packs, ABuilderKilledAtAnyStepLeavesNothingThatDisturbs) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  const std::string store = folder.path("store");
  bool died = true;
  for (g_fail_at = 1; died && g_fail_at < 200; ++g_fail_at) {
    const pid_t child = fork();
    if (child == 0) {
      g_step = 0;
      NewFile::set_step_hook([](const char*) {
        if (++g_step == g_fail_at) kill(getpid(), SIGKILL);
        return true;
      });
      fs::remove_all(store + "/index.fpack");  // so that each child has something to write
      open(path, with_store(store));
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    died = WIFSIGNALED(status);
    EXPECT_EQ(run(open(path, with_store(store))), expected) << g_fail_at;
  }
  EXPECT_GT(g_fail_at, 10);
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  ASSERT_TRUE(opened->collect(0).is_ok());
  for (const auto& entry : fs::directory_iterator(store)) {
    EXPECT_FALSE(entry.path().string().ends_with(".tmp")) << entry.path();
  }
  EXPECT_TRUE(opened->verify().value().damaged.empty());
}

TEST(Packs, ManyProcessesBuildTheSamePack) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  for (int round = 0; round < 5; ++round) {
    const std::string store = folder.path("store" + std::to_string(round));
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
      children.push_back(fork());
      if (children.back() == 0) _exit(run(open(path, with_store(store))) == expected ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
    ASSERT_NE(opened->index(), nullptr);
    EXPECT_EQ(opened->index()->packs.size(), 1U);
    EXPECT_EQ(blobs_in(open(path, with_store(store)), BlobPlace::kStore), 3);
  }
}

TEST(Packs, SavingWithPrepackedWeightsPacksTheSavedModel) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  for (const char* name : {"saved.onnx", "saved.ort"}) {
    SessionOptions options = fresh();
    options.saving.path = folder.path(name);
    options.saving.packs = true;
    const auto expected = run(open(path, options));
    const Ref<Session> saved = open(folder.path(name));
    EXPECT_GT(blobs_in(saved, BlobPlace::kSidecar), 0);
    EXPECT_EQ(blobs_in(saved, BlobPlace::kHeap), 0);
    EXPECT_EQ(run(saved), expected);
  }
}

}  // namespace
}  // namespace folio
