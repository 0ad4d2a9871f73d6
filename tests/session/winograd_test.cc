// Winograd's convolution in sessions: the same bits in every pack state and for any number of
// threads, its key, and its weights in pack files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "core/prepack/fpack_file.h"
#include "core/session/pack_model.h"
#include "tests/session/winograd_tester.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using testing::TempFolder;

constexpr int64_t kImage = 23;  // 36 tiles: at every level enough
constexpr int64_t kChannels = 40;
constexpr uint64_t kPackedBytes = 36 * kChannels * 48 * 4;  // of F32WINO43

// Two convolutions, the second with a residual, and a scale that makes sums scaled.
model_writer::ModelWriter model() {
  model_writer::ModelWriter writer = plain_model();
  auto& graph = writer.graph();
  graph.input("x", f32_type({2, kChannels, kImage, kImage}));
  for (const char* name : {"w1", "w2"}) {
    graph.initializer(
        f32_tensor(name, {kChannels, kChannels, 3, 3},
                   small_wave(kChannels * kChannels * 9, static_cast<float>(name[1]))));
  }
  graph.initializer(f32_tensor("b", {kChannels}, small_wave(kChannels, 3)));
  graph.initializer(f32_tensor("scale", {kChannels, 1, 1}, small_wave(kChannels, 4)));
  graph.node("Conv", {"x", "w1"}, {"c1"}).attr_ints("pads", {1, 1, 1, 1});
  graph.node("Mul", {"c1", "scale"}, {"s"});
  graph.node("Relu", {"s"}, {"r1"});
  graph.node("Conv", {"r1", "w2", "b"}, {"c2"}).attr_ints("pads", {1, 1, 1, 1});
  graph.node("Add", {"c2", "x"}, {"a"});
  graph.node("Relu", {"a"}, {"y"});
  graph.output("y", f32_type({2, kChannels, kImage, kImage}));
  return writer;
}

class Winograd : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = folder_.write("m.onnx", model().serialize());
    usleep(150'000);  // old enough for its digests to be remembered
  }

  static std::vector<float> run(const Ref<Session>& session) {
    const int64_t count = 2 * kChannels * kImage * kImage;
    const Value x = make_tensor<float>({2, kChannels, kImage, kImage}, small_wave(count, 9));
    return floats_of_run(session, x);
  }
  std::vector<float> run(const SessionOptions& options) const {
    return run(session_of(path_, options));
  }

  static int blobs(const Session& session, BlobPlace place) {
    return count_blobs(session, place, kPackedBytes);
  }

  const TempFolder folder_;
  std::string path_;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_F(Winograd, GivesTheSameBitsHoweverMuchIsPackedAndForAnyThreads) {
  const std::vector<float> unpacked = run(packing_with(1, Packing::kOff));
  for (const int threads : {1, 2, 3}) {
    EXPECT_TRUE(same_bits(run(packing_with(threads, Packing::kOff)), unpacked)) << threads;
    EXPECT_TRUE(same_bits(run(packing_with(threads, Packing::kLoad)), unpacked)) << threads;
    const Ref<Session> behind = session_of(path_, packing_with(threads, Packing::kBehind));
    EXPECT_TRUE(same_bits(run(behind), unpacked)) << "while it is packed";
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_TRUE(same_bits(run(behind), unpacked)) << "afterwards";
    EXPECT_EQ(blobs(*behind, BlobPlace::kHeap), 2);
  }
}

TEST_F(Winograd, TheKeyAndUnpackedWeightsTurnItOff) {
  SessionOptions off;
  ASSERT_TRUE(set_config(nullptr, &off, "folio.conv_winograd", "off").is_ok());
  const std::vector<float> direct = run(off);
  SessionOptions automatic;
  ASSERT_TRUE(set_config(nullptr, &automatic, "folio.conv_winograd", "auto").is_ok());
  const std::vector<float> by_winograd = run(automatic);
  EXPECT_FALSE(same_bits(by_winograd, direct));
  ASSERT_EQ(by_winograd.size(), direct.size());
  for (size_t i = 0; i < direct.size(); ++i) {
    EXPECT_NEAR(by_winograd[i], direct[i], 1e-4F * (1 + std::abs(direct[i])));
  }
  EXPECT_EQ(blobs(*session_of(path_, off), BlobPlace::kHeap), 0);
  SessionOptions unpacked;
  unpacked.prepack = false;
  EXPECT_TRUE(session_of(path_, unpacked)->program().packed_now().empty());
  EXPECT_TRUE(fails_with(set_config(nullptr, &off, "folio.conv_winograd", "on"),
                         Code::kInvalidArgument, {"folio.conv_winograd", "auto or off"}));
}

// Both are open at once: programs are shared by sessions with equal options alone.
TEST_F(Winograd, SessionsWithAndWithoutItShareNoProgram) {
  const Ref<Session> with_it = session_of(path_, {});
  SessionOptions off;
  off.conv_winograd = false;
  const Ref<Session> without = session_of(path_, off);
  EXPECT_NE(&with_it->program(), &without->program());
  EXPECT_TRUE(with_it->program().uses_winograd);
  EXPECT_FALSE(without->program().uses_winograd);
  EXPECT_FALSE(same_bits(run(with_it), run(without)));
}

TEST_F(Winograd, APackFileHasItsWeights) {
  const std::vector<float> expected = run(packing_with(1, Packing::kOff));
  SessionOptions fresh;
  fresh.cache = std::make_shared<PackedCache>();
  {
    const auto file = ModelFile::open(path_, {});
    ASSERT_TRUE(file.is_ok());
    const auto packed = pack_model(file.value(), fresh, {});
    ASSERT_TRUE(packed.is_ok()) << text_of(packed.status());
    const auto pack = PackFile::open(packed.value().path, BlobPlace::kSidecar);
    ASSERT_TRUE(pack.is_ok()) << text_of(pack.status());
    int transformed = 0;
    for (const PackEntry& entry : pack.value()->index().entries) {
      transformed += std::strcmp(layout_name(entry.layout), "F32WINO43") == 0 &&
                     entry.version == kF32Wino43Version && entry.bytes == kPackedBytes;
    }
    EXPECT_EQ(transformed, 2);
  }
  fresh.cache = std::make_shared<PackedCache>();
  const Ref<Session> session = session_of(path_, fresh);
  EXPECT_EQ(blobs(*session, BlobPlace::kSidecar), 2);
  EXPECT_EQ(blobs(*session, BlobPlace::kHeap), 0);
  EXPECT_TRUE(same_bits(run(session), expected));
}

TEST_F(Winograd, ASavedModelKnowsNothingOfIt) {
  SessionOptions options;
  options.saving.path = folder_.path() + "/saved.onnx";
  const std::vector<float> expected = run(options);
  const Ref<Session> again = session_of(options.saving.path, packing_with(1, Packing::kLoad));
  EXPECT_EQ(blobs(*again, BlobPlace::kHeap), 2);
  SessionOptions off;
  off.optimize = Optimize::kOff;
  for (const Ref<Session>& session : {again, session_of(options.saving.path, off)}) {
    const std::vector<float> got = run(session);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-4F * (1 + std::abs(expected[i]))) << i;
    }
  }
}

}  // namespace
}  // namespace folio
