// Pack files where things go wrong or are unusual: whatever the place, the name, the moment of a
// kill or the state of a store, a load succeeds and is right, and packing takes little memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "tests/support/child.h"
#include "tests/support/pack_tester.h"
#include "tests/support/sanitizers.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;

std::string sidecar(const std::string& path) { return path + ".fpack"; }

SessionOptions with_store(const std::string& folder) {
  SessionOptions options = fresh();
  options.pack.stores = {folder};
  return options;
}

// Waits for a child that runs `work`; its exit code, or minus the signal.
template <typename Work>
int in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  return verdict_of(child);
}

Status pack_at(const std::string& path, const PackModelOptions& options = {}) {
  auto file = ModelFile::open(path, {});
  if (!file.is_ok()) return std::move(file).take_status();
  return pack_model(file.value(), fresh(), options).take_status();
}

// What the model of `seed` gives, from nothing but its own file.
std::vector<float> expected_of(float seed) {
  const TempFolder folder;
  return run(open(write_model(folder, "m.onnx", seed)));
}

// Sidecar and store in `root`, each made, found again, and right.
void check_place(const std::string& root, const std::string& name) {
  fs::create_directories(root);
  const std::string path = root + "/" + name;
  std::ofstream(path, std::ios::binary) << model_bytes();
  usleep(150'000);  // old enough for its digests to be remembered
  const auto expected = expected_of(1);
  const std::string store = root + "/store of " + name;
  EXPECT_EQ(run(open(path, with_store(store))), expected);
  const Ref<Session> stored = open(path, with_store(store));
  EXPECT_EQ(blobs_in(stored, BlobPlace::kStore), 3);
  EXPECT_EQ(run(stored), expected);
  const Status packed = pack_at(path);
  ASSERT_TRUE(packed.is_ok()) << text_of(packed);
  const Ref<Session> beside = open(path);
  EXPECT_EQ(blobs_in(beside, BlobPlace::kSidecar), 3);
  EXPECT_EQ(run(beside), expected);
}

TEST(PackFaults, FilesMayLieInMemory) {
  struct statfs system = {};
  constexpr long kTmpfs = 0x01021994;
  if (statfs("/dev/shm", &system) != 0 || system.f_type != kTmpfs ||
      access("/dev/shm", W_OK) != 0) {
    GTEST_SKIP() << "/dev/shm is no tmpfs that can be written to";
  }
  std::string root = "/dev/shm/folio_packs_XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  check_place(root, "m.onnx");
  fs::remove_all(root);
}

TEST(PackFaults, NamesMayHoldAnyBytes) {
  const TempFolder folder;
  for (const char* name : {"\u6a21\u578b/\u00fcbung \U0001F600.onnx", "a b/c'd\"e\n.onnx",
                           "latin1 \xe9/\xff\xfe.onnx"}) {
    const std::string full = name;
    const size_t slash = full.find('/');
    check_place(folder.path(full.substr(0, slash)), full.substr(slash + 1));
  }
}

TEST(PackFaults, FoldersAndModelsMayBeSymlinks) {
  const TempFolder folder;
  const auto expected = expected_of(1);
  const std::string real = write_model(folder, "real/m.onnx");
  const std::string folder_link = folder.link(folder.path("real"), "folder");
  ASSERT_TRUE(pack_at(folder_link + "/m.onnx").is_ok());
  EXPECT_TRUE(fs::exists(sidecar(real))) << "beside the model, by whatever way one came there";
  EXPECT_EQ(blobs_in(open(real), BlobPlace::kSidecar), 3);
  const Ref<Session> session = open(folder_link + "/m.onnx");
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 3);
  EXPECT_EQ(run(session), expected);

  // The sidecar stands beside the name that the user gave.
  const std::string model_link = folder.link(real, "links/model.onnx");
  EXPECT_EQ(run(open(model_link)), expected);
  ASSERT_TRUE(pack_at(model_link).is_ok());
  const Ref<Session> linked = open(model_link);
  EXPECT_EQ(blobs_in(linked, BlobPlace::kSidecar), 3);
  EXPECT_EQ(run(linked), expected);

  // A link in place of the pack file is not followed, and nothing is lost but time.
  fs::remove(sidecar(model_link));
  fs::create_symlink(sidecar(real), sidecar(model_link));
  const Ref<Session> refused = open(model_link);
  EXPECT_EQ(blobs_in(refused, BlobPlace::kSidecar), 0);
  EXPECT_EQ(run(refused), expected);
}

TEST(PackFaults, AStoreMayBeReachedByASymlink) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  fs::create_directory(folder.path("real"));
  chmod(folder.path("real").c_str(), 0700);
  const std::string link = folder.link(folder.path("real"), "store");
  const auto expected = expected_of(1);
  EXPECT_EQ(run(open(path, with_store(link))), expected);
  EXPECT_EQ(run(open(path, with_store(link))), expected);
  EXPECT_EQ(run(open(path, with_store(folder.path("real")))), expected);
}

// An image: model, sidecar and store copied with their times, the inodes being others.
TEST(PackFaults, ACopiedImageIsRightWhateverIsTrusted) {
  const TempFolder folder;
  const std::string path = write_model(folder, "image/m.onnx");
  const auto expected = expected_of(1);
  open(path, with_store(folder.path("image/store")));
  ASSERT_TRUE(pack_at(path).is_ok());
  const TempFolder elsewhere;
  const std::string image = elsewhere.path("image");
  fs::copy(folder.path("image"), image, fs::copy_options::recursive);
  chmod((image + "/store").c_str(), 0700);
  const std::string copy = image + "/m.onnx";
  fs::last_write_time(copy, fs::last_write_time(path));

  for (const bool in_store : {false, true}) {
    for (const PackTrust trust : {PackTrust::kStat, PackTrust::kBound, PackTrust::kVerify}) {
      SessionOptions options = fresh();
      PackOptions pack;
      pack.trust = trust;
      pack.is_read_only = true;  // a store would remember the new digests
      if (in_store) pack.stores = {image + "/store"};
      if (!in_store) pack.sidecar = sidecar(copy);
      options.library = PackLibrary::open(pack).take();
      const Ref<Session> session = open(copy, options);
      const BlobPlace place = in_store ? BlobPlace::kStore : BlobPlace::kSidecar;
      EXPECT_EQ(blobs_in(session, place), 3) << in_store << static_cast<int>(trust);
      EXPECT_EQ(run(session), expected);
      const bool hashes = options.library->stats().hashed_bytes > 0;
      EXPECT_EQ(hashes, trust != PackTrust::kStat) << in_store << static_cast<int>(trust);
    }
  }
}

std::map<std::string, fs::file_time_type> listing(const std::string& folder) {
  std::map<std::string, fs::file_time_type> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = entry.last_write_time();
  }
  return files;
}

TEST(PackFaults, OfTwoStoresTheFirstIsOnlyRead) {
  const TempFolder folder;
  const std::string system = folder.path("system");
  const std::string own = folder.path("own");
  open(write_model(folder, "a.onnx", 1), with_store(system));
  chmod(system.c_str(), 0555);
  const auto before = listing(system);
  SessionOptions both = with_store(system);
  both.pack.stores.push_back(own);

  // Matrix a of the second model is the first one's c, but it is used as a weight here: all new.
  const std::string other = write_model(folder, "b.onnx", 11);
  EXPECT_EQ(run(open(other, both)), expected_of(11));
  EXPECT_EQ(listing(system), before) << "only the last store is written to";
  const auto opened = PackStore::open(own, PackChecksum::kOff, false).take();
  ASSERT_NE(opened->index(), nullptr);
  EXPECT_EQ(opened->index()->packs.size(), 1U);

  both.cache = std::make_shared<PackedCache>();
  const Ref<Session> first = open(folder.path("a.onnx"), both);
  EXPECT_EQ(blobs_in(first, BlobPlace::kStore), 3);
  EXPECT_EQ(run(first), expected_of(1));
  both.cache = std::make_shared<PackedCache>();
  const Ref<Session> second = open(other, both);
  EXPECT_EQ(blobs_in(second, BlobPlace::kStore), 3);
  EXPECT_EQ(listing(system), before);
  const auto again = PackStore::open(own, PackChecksum::kOff, false).take();
  EXPECT_EQ(again->index()->packs.size(), 1U) << "what the first has is not written again";
  chmod(system.c_str(), 0700);
}

TEST(PackFaults, AStoreThatTheProcessMayNotFillCostsOnlyTime) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = expected_of(1);
  const int verdict = in_child([&] {
    alarm(60);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Ref<Session> session = open(path, with_store(folder.path("store")));
    return session && run(session) == expected ? 0 : 1;
  });
  EXPECT_EQ(verdict, 0) << "minus the signal that ended it";
  EXPECT_EQ(run(open(path, with_store(folder.path("store")))), expected);
}

TEST(PackFaults, AStoreMayBeEmptiedWhileItsBlobsAreMapped) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const std::string store = folder.path("store");
  const auto expected = expected_of(1);
  open(path, with_store(store));
  const Ref<Session> session = open(path, with_store(store));
  ASSERT_EQ(blobs_in(session, BlobPlace::kStore), 3);
  const auto opened = PackStore::open(store, PackChecksum::kOff, false).take();
  const auto report = opened->collect(/*limit=*/1).take();
  EXPECT_EQ(report.packs, 0U);
  EXPECT_EQ(run(session), expected) << "what is mapped stays";
  const Ref<Session> next = open(path, with_store(store));
  EXPECT_EQ(run(next), expected);
  EXPECT_EQ(blobs_in(open(path, with_store(store)), BlobPlace::kStore), 3) << "it fills again";
}

void expect_clean(const std::string& folder) {
  const auto store = PackStore::open(folder, PackChecksum::kOff, true).take();
  ASSERT_TRUE(store->collect(0).is_ok());
  EXPECT_TRUE(store->verify().value().damaged.empty());
  for (const auto& [name, time] : listing(folder)) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
}

TEST(PackFaults, ABuilderKilledAtAnyMomentLeavesNothingThatDisturbs) {
  const TempFolder folder;
  const std::string path = write_model(folder, "m.onnx");
  const auto expected = run(open(path));
  const std::string store = folder.path("store");
  const auto build = [&] {
    std::error_code ignored;
    fs::remove(store + "/index.fpack", ignored);  // so that each child has something to write
    PackModelOptions options;
    options.store = store;
    return pack_at(path, options).is_ok() ? 0 : 1;
  };
  using std::chrono::steady_clock;
  auto whole = std::chrono::microseconds::max();  // a slow one would leave most children alone
  for (int i = 0; i < 5; ++i) {
    const auto start = steady_clock::now();
    ASSERT_EQ(in_child(build), 0);
    whole = std::min(
        whole, std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - start));
  }

  std::mt19937 random(4711);
  std::uniform_int_distribution<int64_t> moment(0, std::max<int64_t>(whole.count(), 1));
  int killed = 0;
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(build());
    std::this_thread::sleep_for(std::chrono::microseconds(moment(random)));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    EXPECT_EQ(run(open(path, with_store(store))), expected) << i;
    if (i % 20 == 19) expect_clean(store);
  }
  EXPECT_GT(killed, 50) << "of 200 moments within the time that a build takes";
  EXPECT_EQ(blobs_in(open(path, with_store(store)), BlobPlace::kStore), 3);
}

// ---- memory while packing

constexpr int64_t kLarge = 2048;  // 16 MiB a matrix
constexpr uint64_t kLargeBytes = kLarge * kLarge * 4;
constexpr int kLargeCount = 8;

// x w0 exp(w1)^T w2 exp(w3)^T ...: every second weight has to be computed too, in two steps.
std::string large_model() {
  model_writer::ModelWriter writer = plain_model();
  model_writer::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, kLarge}));
  std::vector<float> values(kLarge * kLarge);
  std::string at = "x";
  for (int i = 0; i < kLargeCount; ++i) {
    const std::string name = "w" + std::to_string(i);
    for (size_t k = 0; k < values.size(); ++k) {
      values[k] = static_cast<float>(k % 251 + static_cast<size_t>(i)) / 256;
    }
    graph.initializer(f32_tensor(name, {kLarge, kLarge}, values));
    std::string weight = name;
    if (i % 2 == 1) {
      weight = "turned_" + name;
      graph.node("Exp", {name}, {"exp_" + name});
      graph.node("Transpose", {"exp_" + name}, {weight}).attr_ints("perm", {1, 0});
    }
    const std::string next = i + 1 < kLargeCount ? "y" + std::to_string(i) : "y";
    graph.node("MatMul", {at, weight}, {next});
    at = next;
  }
  graph.output("y", f32_type({1, kLarge}));
  return writer.serialize();
}

uint64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

// The highest anonymous memory of this process while it lives, above that at its start.
class PeakAnonymous {
 public:
  PeakAnonymous() : start_(anonymous_bytes()) {
    thread_ = std::thread([this] {
      while (running_) {
        peak_ = std::max(peak_, anonymous_bytes());
        std::this_thread::sleep_for(std::chrono::microseconds(300));
      }
    });
  }
  uint64_t stop() {
    running_ = false;
    thread_.join();
    peak_ = std::max(peak_, anonymous_bytes());
    return peak_ - std::min(peak_, start_);
  }

 private:
  const uint64_t start_;
  uint64_t peak_ = 0;
  std::atomic<bool> running_{true};
  std::thread thread_;
};

// In a child, since what a process once allocated may stay with it: 0 if `work` succeeds within the
// bound, else 1; and a line.
template <typename Work>
int within_two_tensors(const char* what, Work work) {
  return in_child([&] {
    PeakAnonymous anonymous;
    const bool is_done = work();
    const uint64_t peak = anonymous.stop();
    std::fprintf(stderr, "%s: peak anonymous %.1f MB, a tensor has %.1f MB\n", what,
                 static_cast<double>(peak) / 1e6, static_cast<double>(kLargeBytes) / 1e6);
    const bool is_measured = peak >= kLargeBytes;
    return is_done && is_measured && peak < 2 * kLargeBytes + 10'000'000 ? 0 : 1;
  });
}

TEST(PackFaults, PackingIntoFilesTakesTheMemoryOfTwoTensors) {
  if (kAddressSanitizer || kThreadSanitizer) {
    GTEST_SKIP() << "a sanitizer's shadow is anonymous memory too";
  }
  const TempFolder folder;
  const std::string path = folder.path("m.onnx");
  // In a child, so that this process stays small.
  ASSERT_EQ(in_child([&] {
              std::ofstream(path, std::ios::binary) << large_model();
              return fs::file_size(path) > kLargeCount * kLargeBytes ? 0 : 1;
            }),
            0);
  EXPECT_EQ(within_two_tensors("pack file", [&] { return pack_at(path).is_ok(); }), 0);
  EXPECT_GE(fs::file_size(sidecar(path)), kLargeCount * kLargeBytes);
  fs::remove(sidecar(path));
  EXPECT_EQ(within_two_tensors("session and store",
                               [&] {
                                 const auto session = open(path, with_store(folder.path("store")));
                                 return session &&
                                        blobs_in(session, BlobPlace::kStore) == kLargeCount;
                               }),
            0);
}

}  // namespace
}  // namespace folio
