// Scales of block-quantized weights: packed as float16 where that holds every one of them, with the
// same bits of all results as from the floats, which stay readable; else left as they are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/prepack/fpack_file.h"
#include "core/session/pack_model.h"
#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using model_writer::ElementType;
using model_writer::GraphWriter;
using testing::TempFolder;

constexpr int64_t kBlock = 32;
constexpr int64_t kBlocks = 12;
constexpr int64_t kDepth = kBlock * kBlocks;
constexpr int64_t kColumns = 2048 + 5;
constexpr int64_t kScales = kColumns * kBlocks;  // more than 64 KiB of floats
constexpr int kRows[] = {1, 3, 9};

// Of either sign, zero and subnormal ones of float16 among them.
std::vector<float> exact_scales(int64_t count = kScales) {
  std::vector<float> scales(static_cast<size_t>(count));
  for (size_t i = 0; i < scales.size(); ++i) {
    const int number = static_cast<int>(i * 37 % 2047) - 1023;
    scales[i] = std::ldexp(static_cast<float>(number), i % 11 == 0 ? -24 : -18);
  }
  return scales;
}

// Products of few and many rows at some accuracy levels, and a table: all with the same scales.
std::string model_of(const std::vector<float>& scales, const std::vector<int>& levels = {0, 4}) {
  const auto columns = static_cast<int64_t>(scales.size()) / kBlocks;
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  std::string codes(static_cast<size_t>(columns * kDepth / 2), 0);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i * 31 + i / 255);
  const auto u8 = ElementType::kUint8;
  graph.initializer(
      model_writer::TensorWriter("codes", u8, {columns, kBlocks, kBlock / 2}).raw(codes));
  graph.initializer(model_writer::TensorWriter("table", u8, {columns, kDepth / 2}).raw(codes));
  graph.initializer(f32_tensor("scales", {columns, kBlocks}, scales));
  for (const int rows : kRows) {
    graph.input(cat("x", rows), f32_type({rows, kDepth}));
    for (const int level : levels) {
      const std::string tag = cat(rows, "_", level);
      graph.node("MatMulNBits", {cat("x", rows), "codes", "scales"}, {"y" + tag})
          .in_domain("com.microsoft")
          .attr_int("K", kDepth)
          .attr_int("N", columns)
          .attr_int("bits", 4)
          .attr_int("block_size", kBlock)
          .attr_int("accuracy_level", level);
      graph.output("y" + tag, f32_type({rows, columns}));
    }
  }
  graph.input("ids", model_writer::Type::tensor(kI64, {3}));
  graph.node("GatherBlockQuantized", {"table", "ids", "scales"}, {"rows"})
      .in_domain("com.microsoft")
      .attr_int("gather_axis", 0)
      .attr_int("quantize_axis", 1)
      .attr_int("block_size", kBlock);
  graph.output("rows", f32_type({3, kDepth}));
  return writer.serialize();
}

class HalfScales : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<float>& scales) {
    const std::string path = folder_.write(name, model_of(scales));
    usleep(150'000);  // old enough for its digests to be remembered
    return path;
  }

  // As another process would open it.
  static SessionOptions with(int threads, Packing packing) {
    SessionOptions options;
    options.cache = std::make_shared<PackedCache>();
    options.threads = threads;
    options.packing = packing;
    return options;
  }

  // With a store of its own, empty at first.
  SessionOptions stored(int threads, Packing packing) {
    SessionOptions options = with(threads, packing);
    options.pack.stores = {cat(folder_.path(), "/store", ++stores_)};
    return options;
  }

  // The bits of all outputs, end to end.
  static std::vector<uint32_t> run(const Ref<Session>& session) {
    std::vector<NamedValue> inputs;
    inputs.push_back({"ids", make_tensor<int64_t>({3}, {5, 2000, 0})});
    for (const int rows : kRows) {
      inputs.push_back(
          {cat("x", rows), make_tensor<float>({rows, kDepth}, small_wave(rows * kDepth, 3))});
    }
    const auto outputs = run_all(*session, inputs);
    EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    std::vector<uint32_t> bits;
    if (!outputs.is_ok()) return bits;
    for (const Value& output : outputs.value()) {
      for (const float number : floats_of(output)) {
        bits.push_back(0);
        std::memcpy(&bits.back(), &number, 4);
      }
    }
    return bits;
  }

  static std::vector<Ref<const PackedBlob>> blobs(const Ref<Session>& session) {
    return session->program().packed_now();
  }

  static PackModelResult pack(const std::string& path, bool check) {
    PackModelOptions options;
    options.check = check;
    auto packed = pack_model(ModelFile::open(path, {}).take(), with(1, Packing::kLoad), options);
    EXPECT_TRUE(packed.is_ok()) << text_of(packed.status());
    return packed.is_ok() ? packed.value() : PackModelResult{};
  }

  const TempFolder folder_;
  int stores_ = 0;
};

TEST_F(HalfScales, GiveTheBitsOfFloatsInEveryPackState) {
  const std::string path = write("m.onnx", exact_scales());
  SessionOptions unpacked = with(1, Packing::kOff);
  unpacked.prepack = false;
  const auto expected = run(session_of(path, unpacked));
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(run(session_of(path, with(threads, Packing::kOff))), expected);
    const Ref<Session> loaded = session_of(path, stored(threads, Packing::kLoad));
    ASSERT_FALSE(blobs(loaded).empty());
    for (const auto& blob : blobs(loaded)) {
      EXPECT_EQ(blob->bytes(), 2U * kScales);
      EXPECT_EQ(blob->data(), blobs(loaded)[0]->data()) << "all nodes share it";
    }
    EXPECT_EQ(run(loaded), expected);
    const Ref<Session> behind = session_of(path, stored(threads, Packing::kBehind));
    EXPECT_EQ(run(behind), expected) << "while it is packed";
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_FALSE(blobs(behind).empty());
    EXPECT_EQ(run(behind), expected) << "afterwards";
  }
  SessionOptions plain = stored(1, Packing::kLoad);
  plain.kernels = CpuBits();
  unpacked.kernels = CpuBits();
  EXPECT_EQ(run(session_of(path, plain)), run(session_of(path, unpacked)));
}

// A copy of them is worth pages that all processes share, not memory of each.
TEST_F(HalfScales, AreNotPackedInMemory) {
  const std::string path = write("m.onnx", exact_scales());
  const auto expected = run(session_of(path, with(1, Packing::kOff)));
  for (const Packing packing : {Packing::kLoad, Packing::kBehind}) {
    const SessionOptions options = with(1, packing);
    const Ref<Session> session = session_of(path, options);
    EXPECT_TRUE(session->wait_packed(-1ms));
    EXPECT_TRUE(blobs(session).empty());
    EXPECT_EQ(options.cache->stats().failures, 0U);
    EXPECT_EQ(run(session), expected);
  }
}

TEST_F(HalfScales, StandInPackFiles) {
  const std::string path = write("m.onnx", exact_scales());
  const auto expected = run(session_of(path, with(1, Packing::kOff)));
  const PackModelResult packed = pack(path, /*check=*/false);
  EXPECT_EQ(packed.written_blobs, 1U);
  EXPECT_EQ(packed.written_bytes, 2U * kScales);
  const auto file = PackFile::open(packed.path, BlobPlace::kSidecar);
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  ASSERT_EQ(file.value()->index().entries.size(), 1U);
  EXPECT_EQ(file.value()->index().entries[0].layout, Layout::kF16Exact);
  const Ref<Session> session = session_of(path, with(1, Packing::kBehind));
  ASSERT_FALSE(blobs(session).empty());
  for (const auto& blob : blobs(session)) EXPECT_EQ(blob->place(), BlobPlace::kSidecar);
  EXPECT_EQ(run(session), expected);
}

TEST_F(HalfScales, OfWhichOneIsNotExactStayAsTheyAre) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float bad[] = {0.1f,
                       65520.0f,
                       2049.0f,
                       1.5f * 0x1p-24f,
                       0x1p-25f,
                       0x1p-140f,
                       kInfinity,
                       -kInfinity,
                       std::numeric_limits<float>::quiet_NaN()};
  int at = 0;
  for (const float number : bad) {
    SCOPED_TRACE(number);
    std::vector<float> scales = exact_scales();
    scales[at % 2 == 0 ? scales.size() - 1 : 1500] = number;  // in any part
    const std::string path = write(cat("m", at++, ".onnx"), scales);
    const auto expected = run(session_of(path, with(1, Packing::kOff)));
    const Ref<Session> loaded = session_of(path, with(1, Packing::kLoad));
    EXPECT_TRUE(blobs(loaded).empty());
    EXPECT_EQ(run(loaded), expected);
    const SessionOptions options = stored(1, Packing::kBehind);
    const Ref<Session> behind = session_of(path, options);
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_TRUE(blobs(behind).empty());
    EXPECT_EQ(run(behind), expected);
    EXPECT_EQ(options.cache->stats().failures, 0U);
    const PackModelResult missing = pack(path, /*check=*/true);
    EXPECT_EQ(missing.missing_blobs + missing.found_blobs, 0U);
  }
}

TEST_F(HalfScales, OfAFewColumnsStayAsTheyAre) {
  const std::string path = write("m.onnx", exact_scales(kBlocks * 1300));
  EXPECT_TRUE(blobs(session_of(path, stored(1, Packing::kLoad))).empty());
}

TEST_F(HalfScales, OfRowsThatAreNotRoundedStayAsTheyAre) {
  const std::string path = folder_.write("m.onnx", model_of(exact_scales(), {0}));
  EXPECT_TRUE(blobs(session_of(path, stored(1, Packing::kLoad))).empty());
}

// Scales that do not fit the attributes are never read by those sizes.
TEST_F(HalfScales, OfAnotherCountAreRefusedByTheRunAndNotPacked) {
  for (const int64_t more : {int64_t{-1}, int64_t{1}, int64_t{1} << 30}) {
    model_writer::ModelWriter writer = plain_model();
    writer.opset("com.microsoft", 1);
    GraphWriter& graph = writer.graph();
    const std::string codes(static_cast<size_t>(kColumns * kDepth / 2), 1);
    graph.initializer(
        model_writer::TensorWriter("codes", ElementType::kUint8, {kColumns, kBlocks, kBlock / 2})
            .raw(codes));
    graph.initializer(f32_tensor("scales", {kColumns, kBlocks}, exact_scales()));
    graph.input("x", f32_type({1, kDepth}));
    graph.node("MatMulNBits", {"x", "codes", "scales"}, {"y"})
        .in_domain("com.microsoft")
        .attr_int("K", kDepth)
        .attr_int("N", kColumns + more)
        .attr_int("block_size", kBlock);
    graph.output("y", f32_type({1, kColumns + more}));
    const std::string path = folder_.write("m.onnx", writer.serialize());
    auto session = Session::create(ModelFile::open(path, {}).take(), stored(1, Packing::kLoad));
    if (!session.is_ok()) continue;
    EXPECT_TRUE(blobs(session.value()).empty());
    const Value x = make_tensor<float>({1, kDepth}, small_wave(kDepth, 3));
    EXPECT_FALSE(run_all(*session.value(), {{"x", x}}).is_ok()) << more;
  }
}

}  // namespace
}  // namespace folio
