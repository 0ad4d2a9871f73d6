// Serve first, pack behind: a load leaves packing to the idle worker, runs give the same bits
// before, during and after it, and releases, forks and stores lose nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "core/os/idle_worker.h"
#include "core/session/pack_model.h"
#include "core/session/session.h"
#include "tests/support/held_task.h"
#include "tests/support/model_tester.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using model_writer::AttributeWriter;
using model_writer::GraphWriter;
using testing::TempFolder;

constexpr int64_t kImage = 8;
constexpr int64_t kChannels = 128;
constexpr int64_t kWide = kChannels * kImage * kImage;
constexpr size_t kWeights = 8;  // all above 4 KiB: what is smaller is copied and packed at once

// Convolutions (3x3, depthwise, 1x1), an LSTM, products with many rows, few rows and a transposed
// weight: each kind that has packed weights. `shift` moves all payloads off their alignment.
std::string model_bytes(const std::string& shift) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  const auto weight = [&](const std::string& name, const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    graph.initializer(f32_tensor(name, dims, small_wave(count, static_cast<float>(name.size()))));
  };
  graph.input("x", f32_type({1, 3, kImage, kImage}));
  const std::string conv = cat("conv", shift);
  weight(conv, {kChannels, 3, 3, 3});
  weight("depthwise", {kChannels, 1, 3, 3});
  weight("pointwise", {kChannels, kChannels, 1, 1});
  weight("many_rows", {kImage, 160});
  weight("few_rows", {kWide, 24});
  weight("across", {80, 24});
  weight("lstm_w", {1, 128, 80});
  weight("lstm_r", {1, 128, 32});
  graph.initializer(i64_tensor("flat", {2}, {1, -1}));
  graph.initializer(i64_tensor("sequence", {3}, {1, 1, 80}));
  const auto pads = AttributeWriter::of_ints("pads", {1, 1, 1, 1});
  graph.node("Conv", {"x", conv}, {"c1"}).attr(pads);
  graph.node("Conv", {"c1", "depthwise"}, {"c2"})
      .attr(pads)
      .attr(AttributeWriter::of_int("group", kChannels));
  graph.node("Conv", {"c2", "pointwise"}, {"c3"});
  graph.node("MatMul", {"c3", "many_rows"}, {"rows"});
  graph.node("Reshape", {"c3", "flat"}, {"flattened"});
  graph.node("MatMul", {"flattened", "few_rows"}, {"few"});
  graph.node("Gemm", {"few", "across"}, {"g"}).attr(AttributeWriter::of_int("transB", 1));
  graph.node("Reshape", {"g", "sequence"}, {"s"});
  graph.node("LSTM", {"s", "lstm_w", "lstm_r"}, {"l"})
      .attr(AttributeWriter::of_int("hidden_size", 32));
  graph.output("rows", f32_type({1, kChannels, kImage, 160}));
  graph.output("few", f32_type({1, 24}));
  graph.output("g", f32_type({1, 80}));
  graph.output("l", f32_type({1, 1, 1, 32}));
  return writer.serialize();
}

class PackBehind : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.write("m.onnx", model_bytes(""));
    usleep(150'000);  // old enough for its digests to be remembered
  }

  static Ref<Session> open(const std::string& path, Packing packing,
                           const std::string& store = "") {
    SessionOptions options;
    options.packing = packing;
    if (!store.empty()) options.pack.stores = {store};
    return session_of(path, options);
  }

  // All outputs, end to end.
  static std::vector<float> run(Session& session) {
    const Value x = make_tensor<float>({1, 3, kImage, kImage}, small_wave(3 * kImage * kImage, 9));
    const auto outputs = run_all(session, {{"x", x}});
    EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    std::vector<float> all;
    if (!outputs.is_ok()) return all;
    for (const Value& output : outputs.value()) {
      const std::vector<float> floats = floats_of(output);
      all.insert(all.end(), floats.begin(), floats.end());
    }
    return all;
  }

  static bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  }

  static size_t heap_blobs(const Session& session) {
    size_t count = 0;
    for (const auto& blob : session.program().packed_now()) {
      count += blob->place() == BlobPlace::kHeap;
    }
    return count;
  }

  const TempFolder folder_;
  std::string path_;
};

TEST_F(PackBehind, ResultsHaveTheSameBitsHoweverMuchIsPacked) {
  // Payloads of an .onnx stand at any offset: each alignment once.
  for (const char* shift : {"", "_", "__", "___"}) {
    const std::string path = folder_.write(cat("m", shift, "x.onnx"), model_bytes(shift));
    std::vector<float> unpacked;
    {
      const Ref<Session> session = open(path, Packing::kOff);
      unpacked = run(*session);
      EXPECT_TRUE(session->wait_packed(0ms)) << "nothing is to come";
      EXPECT_LE(heap_blobs(*session), 2U) << "an LSTM's weights that are not aligned";
    }
    const Ref<Session> behind = open(path, Packing::kBehind);
    EXPECT_TRUE(same_bits(run(*behind), unpacked)) << "while it is packed";
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_TRUE(same_bits(run(*behind), unpacked)) << "afterwards";
    EXPECT_EQ(heap_blobs(*behind), kWeights);
    const Ref<Session> packed = open(path, Packing::kLoad);
    EXPECT_TRUE(same_bits(run(*packed), unpacked)) << "packed by the load";
    EXPECT_EQ(heap_blobs(*packed), kWeights);
  }
}

TEST_F(PackBehind, ALoadWaitsIfItIsToldToAndReportsProgress) {
  SessionOptions options;
  options.packing = Packing::kLoad;
  float last = 0;
  options.progress = [&](float done, const char*) {
    EXPECT_GE(done, last);
    last = done;
    return true;
  };
  auto file = ModelFile::open(path_, {});
  ASSERT_TRUE(file.is_ok());
  {
    const auto session = Session::create(file.value(), options);
    ASSERT_TRUE(session.is_ok());
    EXPECT_EQ(last, 1.0F);
    EXPECT_TRUE(session.value()->program().weights->is_done());
  }
  options.progress = [&](float, const char* what) { return std::strcmp(what, "pack") != 0; };
  EXPECT_TRUE(fails_with(Session::create(file.value(), options).status(), Code::kCancelled, {}));
}

TEST_F(PackBehind, RunsAndPackingGoOnTogether) {
  const std::vector<float> expected = run(*open(path_, Packing::kOff));
  for (int i = 0; i < 20; ++i) {
    const Ref<Session> session = open(path_, Packing::kBehind);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] { EXPECT_TRUE(same_bits(run(*session), expected)); });
    }
    threads.emplace_back([&] { EXPECT_TRUE(session->wait_packed(-1ms)); });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(PackBehind, SessionsMayBeReleasedBeforeTheirWeightsArePacked) {
  for (int i = 0; i < 50; ++i) (void)open(path_, Packing::kBehind);
  while (idle_worker_is_alive()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(PackedCache::process().stats().live_blobs, 0U);
}

TEST_F(PackBehind, AClosedSessionIsNotWaitedFor) {
  const Ref<Session> session = open(path_, Packing::kBehind);
  session->close(Session::Close::kWait);
  (void)session->wait_packed(-1ms);  // returns
}

// Forks while the worker is at work: the child finds no thread, and some work half done. What the
// sanitizers can see of that is in prepack/weight_slots_test.cc.
TEST_F(PackBehind, AChildOfForkRunsAndPacksItself) {
  if (kAddressSanitizer) GTEST_SKIP() << "its allocator (GCC 12) is left locked in a child of fork";
  if (kThreadSanitizer) GTEST_SKIP() << "TSan allows no threads after fork";
  const std::vector<float> expected = run(*open(path_, Packing::kOff));
  for (int i = 0; i < 30; ++i) {
    const Ref<Session> session =
        open(path_, Packing::kBehind, i % 2 ? folder_.path() + "/store" : "");
    usleep(static_cast<useconds_t>(i) * 40);
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      const bool first = same_bits(run(*session), expected);
      const bool waited = session->wait_packed(-1ms);
      _exit(first && waited && same_bits(run(*session), expected) ? 0 : 1);
    }
    EXPECT_TRUE(same_bits(run(*session), expected));
    EXPECT_TRUE(session->wait_packed(-1ms));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " at " << i;
  }
}

TEST_F(PackBehind, AStoreHasTheWeightsOnceAllArePacked) {
  const std::string store = folder_.path() + "/store";
  const std::vector<float> expected = run(*open(path_, Packing::kOff));
  {
    const Ref<Session> first = open(path_, Packing::kBehind, store);
    EXPECT_TRUE(same_bits(run(*first), expected));
    EXPECT_TRUE(first->wait_packed(-1ms));
  }
  const Ref<Session> second = open(path_, Packing::kBehind, store);
  EXPECT_TRUE(second->program().weights->is_done() || second->wait_packed(-1ms));
  for (const auto& blob : second->program().packed_now()) {
    EXPECT_EQ(blob->place(), BlobPlace::kStore);
  }
  EXPECT_EQ(second->program().packed_now().size(), kWeights);
  EXPECT_TRUE(same_bits(run(*second), expected));
}

// A model that is opened while another's weights wait to be packed may bring them in its pack.
TEST_F(PackBehind, APackFileOfAnotherModelIsWatchedOnceItsBlobsAreFound) {
  SessionOptions alone;
  alone.cache = std::make_shared<PackedCache>();
  ASSERT_TRUE(pack_model(ModelFile::open(path_, {}).take(), alone, {}).is_ok());
  const auto held = make_ref<testing::HeldTask>();
  run_when_idle(held);
  const std::string copy = folder_.write("copy.onnx", model_bytes(""));
  const std::string store = folder_.path("store");  // so that contents are compared
  const Ref<Session> session = open(copy, Packing::kBehind, store);
  EXPECT_LT(session->program().packed_now().size(), kWeights);
  const Ref<Session> other = open(path_, Packing::kLoad, store);
  EXPECT_EQ(other->program().packed_now().size(), kWeights);
  held->may_end.store(true);
  ASSERT_TRUE(session->wait_packed(-1ms));
  EXPECT_EQ(heap_blobs(*session), 0U) << "all are the other's";
  const FileWatch::Files files = session->model().watch().files();
  const auto is_pack = [&](const auto& file) { return file->name() == path_ + ".fpack"; };
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), is_pack));
}

}  // namespace
}  // namespace folio
