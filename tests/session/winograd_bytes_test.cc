// Convolutions of bytes by Winograd's algorithm in sessions: the bits of direct convolution in
// every pack state, its key, and its weights in pack files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "core/kernels/select.h"
#include "core/os/cpu_features.h"
#include "core/prepack/fpack_file.h"
#include "core/session/pack_model.h"
#include "tests/session/winograd_tester.h"
#include "tests/support/byte_conv_model.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using testing::TempFolder;

constexpr ByteConvModel kModel{.side = 23, .count = 2};
constexpr uint64_t kPackedBytes = (36 * 64 * 2 + 8) * 64;  // of S16WINO43

class WinogradBytes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kernels_for(cpu_bits()).winograd_bytes) {
      GTEST_SKIP() << "products of bytes are faster here";
    }
    path_ = folder_.write("m.onnx", kModel.writer().serialize());
    usleep(150'000);  // old enough for its digests to be remembered
  }

  static std::vector<float> run(const Ref<Session>& session) {
    const Value x = make_tensor<float>({1, 64, 23, 23}, small_wave(64 * 23 * 23, 9));
    return floats_of_run(session, x);
  }
  static int blobs(const Session& session, BlobPlace place) {
    return count_blobs(session, place, kPackedBytes);
  }
  std::vector<float> directly() const {
    SessionOptions off;
    EXPECT_TRUE(set_config(nullptr, &off, "folio.conv_winograd", "off").is_ok());
    const Ref<Session> session = session_of(path_, off);
    EXPECT_FALSE(session->program().uses_winograd);
    return run(session);
  }

  const TempFolder folder_;
  std::string path_;
};

TEST_F(WinogradBytes, GivesTheBitsOfDirectConvolutionHoweverMuchIsPackedAndForAnyThreads) {
  const std::vector<float> direct = directly();
  EXPECT_NE(direct, std::vector<float>(direct.size(), direct[0]));
  for (const int threads : {1, 3}) {
    EXPECT_EQ(run(session_of(path_, packing_with(threads, Packing::kOff))), direct);
    const Ref<Session> packed = session_of(path_, packing_with(threads, Packing::kLoad));
    EXPECT_TRUE(packed->program().uses_winograd);
    EXPECT_EQ(blobs(*packed, BlobPlace::kHeap), 2);
    EXPECT_EQ(run(packed), direct);
    const Ref<Session> behind = session_of(path_, packing_with(threads, Packing::kBehind));
    EXPECT_EQ(run(behind), direct) << "while it is packed";
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_EQ(run(behind), direct) << "afterwards";
  }
}

TEST_F(WinogradBytes, APackFileHasItsWeightsAndNoOthers) {
  SessionOptions fresh;
  fresh.cache = std::make_shared<PackedCache>();
  {
    const auto file = ModelFile::open(path_, {});
    ASSERT_TRUE(file.is_ok());
    const auto packed = pack_model(file.value(), fresh, {});
    ASSERT_TRUE(packed.is_ok()) << text_of(packed.status());
    const auto pack = PackFile::open(packed.value().path, BlobPlace::kSidecar);
    ASSERT_TRUE(pack.is_ok()) << text_of(pack.status());
    for (const PackEntry& entry : pack.value()->index().entries) {
      EXPECT_STREQ(layout_name(entry.layout), "S16WINO43");
      EXPECT_EQ(entry.version, kS16Wino43Version);
      EXPECT_EQ(entry.bytes, kPackedBytes);
    }
    EXPECT_EQ(pack.value()->index().entries.size(), 2U);
  }
  fresh.cache = std::make_shared<PackedCache>();
  const Ref<Session> session = session_of(path_, fresh);
  EXPECT_EQ(blobs(*session, BlobPlace::kSidecar), 2);
  EXPECT_EQ(blobs(*session, BlobPlace::kHeap), 0);
  EXPECT_EQ(run(session), directly());
}

}  // namespace
}  // namespace folio
