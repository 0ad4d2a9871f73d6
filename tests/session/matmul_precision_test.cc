// folio.float32_matmul_precision in whole programs: in each precision, a level's bits are those of
// any pack state and number of threads; and what bfloat16 models lose in none.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>

#include "core/kernels/select.h"
#include "core/ops/op_half.h"
#include "core/os/cpu_features.h"
#include "tests/support/model_tester.h"
#include "tests/support/run_floats.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using model_writer::ElementType;
using model_writer::GraphWriter;
using testing::TempFolder;

using Outputs = std::vector<std::vector<float>>;

void add_weight(GraphWriter& graph, const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  graph.initializer(
      f32_tensor(name, dims, floats_of_many_bits(count, 37 + static_cast<int>(name.size()))));
}

// A product, convolutions by taps, in lines, of planes, of 1x1, and attention: all large enough for
// parts.
model_writer::ModelWriter products() {
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 100, 192}));
  add_weight(graph, "w", {192, 576});
  graph.initializer(f32_tensor("bias", {576}, floats_of_many_bits(576, 3)));
  graph.node("Attention", {"x", "w", "bias"}, {"attended"})
      .in_domain("com.microsoft")
      .attr_int("num_heads", 2);
  add_weight(graph, "dense", {192, 200});
  graph.node("MatMul", {"attended", "dense"}, {"product"});
  graph.node("Relu", {"product"}, {"y"});
  graph.output("y", f32_type({2, 100, 200}));
  graph.input("image", f32_type({2, 16, 31, 33}));
  add_weight(graph, "lines", {64, 16, 3, 3});
  graph.node("Conv", {"image", "lines"}, {"c1"}).attr_ints("strides", {2, 2});
  add_weight(graph, "filters", {96, 64, 3, 3});
  graph.node("Conv", {"c1", "filters"}, {"c2"}).attr_ints("strides", {2, 2});
  graph.node("Relu", {"c2"}, {"r2"});
  add_weight(graph, "points", {100, 96, 1, 1});
  graph.node("Conv", {"r2", "points"}, {"z"});
  graph.output("z", f32_type({2, 100, 7, 7}));
  graph.input("planes", f32_type({2, 3, 70, 72}));
  add_weight(graph, "first", {40, 3, 7, 7});
  graph.node("Conv", {"planes", "first"}, {"f1"})
      .attr_ints("strides", {2, 2})
      .attr_ints("pads", {3, 3, 3, 3});
  graph.node("Relu", {"f1"}, {"f2"});
  add_weight(graph, "next", {48, 40, 3, 3});
  graph.node("Conv", {"f2", "next"}, {"f3"}).attr_ints("strides", {2, 2});
  graph.output("f3", f32_type({2, 48, 17, 17}));
  return writer;
}

// Of operands that are bfloat16, between Casts: a constant one, rows and columns turned, batches.
model_writer::ModelWriter products_of_bfloat16() {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 100, 192}));
  graph.node("Cast", {"x"}, {"a"}).attr_int("to", 16);
  const std::vector<float> values = floats_of_many_bits(192 * 80, 41);
  std::string raw(2 * values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = float_to_bfloat16(values[i]);
    std::memcpy(raw.data() + 2 * i, &bits, 2);
  }
  graph.initializer(model_writer::TensorWriter("w", ElementType::kBfloat16, {192, 80}).raw(raw));
  graph.node("MatMul", {"a", "w"}, {"m"});
  graph.initializer(i64_tensor("flat", {2}, {200, 80}));
  graph.node("Reshape", {"m", "flat"}, {"rows"});
  graph.initializer(model_writer::TensorWriter("v", ElementType::kBfloat16, {192, 80}).raw(raw));
  graph.node("Gemm", {"rows", "v"}, {"g"}).attr_int("transB", 1);
  graph.node("Transpose", {"a"}, {"turned"}).attr_ints("perm", {0, 2, 1});
  graph.node("MatMul", {"a", "turned"}, {"p"});
  for (const char* name : {"m", "g", "p"}) {
    graph.node("Cast", {name}, {std::string("y_") + name}).attr_int("to", 1);
  }
  graph.output("y_m", f32_type({2, 100, 80}));
  graph.output("y_g", f32_type({200, 192}));
  graph.output("y_p", f32_type({2, 100, 100}));
  return writer;
}

Outputs run(const Ref<Session>& session) {
  return run_floats(*session, [](int64_t count) { return floats_of_many_bits(count, 29); });
}

SessionOptions with(FolioPrecision precision, int threads, Packing packing) {
  SessionOptions options;
  options.precision = precision;
  options.threads = threads;
  options.packing = packing;
  return options;
}

TEST(MatmulPrecision, HasTheSameBitsInEveryPackStateAndForAnyThreads) {
  const TempFolder folder;
  for (const bool is_bfloat16 : {false, true}) {
    const auto model = is_bfloat16 ? products_of_bfloat16() : products();
    const std::string path = folder.write(is_bfloat16 ? "b.onnx" : "f.onnx", model.serialize());
    for (const FolioPrecision precision : {kFolioHighest, kFolioHigh, kFolioMedium}) {
      const Outputs expected = run(session_of(path, with(precision, 1, Packing::kLoad)));
      ASSERT_FALSE(expected.empty());
      for (const int threads : {1, 2, 3}) {
        for (const Packing packing : {Packing::kOff, Packing::kLoad}) {
          EXPECT_EQ(run(session_of(path, with(precision, threads, packing))), expected)
              << precision << ' ' << threads;
        }
        const Ref<Session> behind = session_of(path, with(precision, threads, Packing::kBehind));
        EXPECT_EQ(run(behind), expected) << "while it is packed";
        EXPECT_TRUE(behind->wait_packed(-1ms));
        EXPECT_EQ(run(behind), expected) << "afterwards";
      }
    }
  }
}

// The key reaches the kernels where the level has parts, and nothing else changes.
TEST(MatmulPrecision, OfMediumIsNearHighest) {
  const TempFolder folder;
  const std::string path = folder.write("f.onnx", products().serialize());
  const Outputs highest = run(session_of(path, with(kFolioHighest, 1, Packing::kLoad)));
  const Outputs medium = run(session_of(path, with(kFolioMedium, 1, Packing::kLoad)));
  const bool has_parts =
      folio_multiplies_parts(&kernels_for(cpu_bits(), kFolioMedium), kFolioMedium) != 0;
  ASSERT_EQ(highest.size(), medium.size());
  for (size_t i = 0; i < highest.size(); ++i) {
    EXPECT_EQ(highest[i] != medium[i], has_parts) << i;
    double squares = 0;
    double off = 0;
    for (size_t at = 0; at < highest[i].size(); ++at) {
      const double d = double{medium[i][at]} - highest[i][at];
      off += d * d;
      squares += double{highest[i][at]} * highest[i][at];
    }
    // Five products, one after the other, each off by 2^-7 of its sum of magnitudes at most, of
    // which roundings in both directions leave a part.
    EXPECT_LE(std::sqrt(off / squares), 5 * 0x1p-7) << i;
  }
}

// Pairs of bfloat16 are multiplied at every precision, with the bits of the floats that they are.
TEST(MatmulPrecision, BFloat16LosesNothingByPairs) {
  if (!(cpu_bits() & kCpuFastBf16)) GTEST_SKIP() << "no CPU that multiplies pairs at the full rate";
  const TempFolder folder;
  const std::string path = folder.write("b.onnx", products_of_bfloat16().serialize());
  for (const int threads : {1, 2}) {
    SessionOptions pairs = with(kFolioHighest, threads, Packing::kLoad);
    SessionOptions floats = pairs;
    floats.kernels = cpu_bits() & ~CpuBits{kCpuFastBf16};
    EXPECT_EQ(run(session_of(path, pairs)), run(session_of(path, floats))) << threads;
  }
}

}  // namespace
}  // namespace folio
