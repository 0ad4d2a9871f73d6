// round_weights: which weights become bfloat16 with folio.float32_weights, in packs too, and that
// results are those of a model that has the rounded ones.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/kernels/select.h"
#include "core/ops/op_half.h"
#include "core/os/cpu_features.h"
#include "tests/support/model_tester.h"
#include "tests/support/run_floats.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using testing::TempFolder;

enum class Numbers : uint8_t { kAny, kRounded };

void add_weight(GraphWriter& graph, Numbers numbers, const std::string& name,
                const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 37 + name.size()) % 2003 - 1001) / 3000;
    if (numbers == Numbers::kRounded) values[i] = bfloat16_to_float(float_to_bfloat16(values[i]));
  }
  graph.initializer(f32_tensor(name, dims, values));
}

// Products of few and of many rows, by taps and in groups, of a recurrence; a table.
model_writer::ModelWriter products(Numbers numbers) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  add_weight(graph, numbers, "w", {300, 192});
  for (const int64_t rows : {2, 90}) {
    const std::string n = std::to_string(rows);
    graph.input("x" + n, f32_type({rows, 300}));
    graph.node("MatMul", {"x" + n, "w"}, {"y" + n});
    graph.output("y" + n, f32_type({rows, 192}));
  }
  graph.input("image", f32_type({1, 48, 20, 21}));
  add_weight(graph, numbers, "taps", {96, 48, 3, 3});
  add_weight(graph, numbers, "points", {400, 96, 1, 1});
  graph.node("Conv", {"image", "taps"}, {"c1"}).attr_ints("strides", {2, 2});
  graph.node("HardSwish", {"c1"}, {"h1"});
  graph.node("Conv", {"h1", "points"}, {"z"});
  graph.output("z", f32_type({1, 400, 9, 10}));
  add_weight(graph, numbers, "grouped", {400, 48, 2, 2});
  graph.node("Conv", {"h1", "grouped"}, {"g"}).attr_int("group", 2);
  graph.output("g", f32_type({1, 400, 8, 9}));
  graph.input("steps", f32_type({5, 2, 144}));
  add_weight(graph, numbers, "gates", {1, 256, 144});
  add_weight(graph, Numbers::kRounded, "again", {1, 256, 64});
  graph.node("LSTM", {"steps", "gates", "again"}, {"h"}).attr_int("hidden_size", 64);
  graph.output("h", f32_type({5, 1, 2, 64}));
  return writer;
}

SessionOptions with(bool rounds, FolioPrecision precision, Packing packing, int threads = 1) {
  SessionOptions options;
  options.weights = rounds ? FloatWeights::kBfloat16 : FloatWeights::kFloat32;
  options.precision = precision;
  options.packing = packing;
  options.threads = threads;
  return options;
}

std::vector<std::vector<float>> run(const Ref<Session>& session) {
  return run_floats(*session, [](int64_t count) { return small_wave(count, 3); });
}

TEST(RoundWeights, GivesTheResultsOfRoundedOnes) {
  const TempFolder folder;
  const std::string any = folder.write("any.onnx", products(Numbers::kAny).serialize());
  const std::string rounded = folder.write("rounded.onnx", products(Numbers::kRounded).serialize());
  for (const FolioPrecision precision : {kFolioHighest, kFolioMedium}) {
    const auto expected = run(session_of(rounded, with(false, precision, Packing::kLoad)));
    ASSERT_EQ(expected.size(), 5U);
    for (const Packing packing : {Packing::kOff, Packing::kBehind, Packing::kLoad}) {
      for (const int threads : {1, 2}) {
        EXPECT_EQ(run(session_of(any, with(true, precision, packing, threads))), expected);
      }
    }
  }
  const auto rounds = run(session_of(any, with(true, kFolioHighest, Packing::kLoad)));
  const auto plain = run(session_of(any, with(false, kFolioHighest, Packing::kLoad)));
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NE(rounds[i], plain[i]) << i;
}

// Bytes of the packed weights.
std::multiset<uint64_t> packed(const std::string& path, bool rounds) {
  SessionOptions options = with(rounds, kFolioHighest, Packing::kLoad);
  options.cache = std::make_shared<PackedCache>();
  const Ref<Session> session = session_of(path, options);
  std::set<const uint8_t*> seen;
  std::multiset<uint64_t> bytes;
  for (const auto& blob : session->program().packed_now()) {
    if (seen.insert(blob->data()).second) bytes.insert(blob->bytes());
  }
  return bytes;
}

TEST(RoundWeights, HalvesWhatIsPacked) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", products(Numbers::kAny).serialize());
  constexpr uint64_t kAgain = 256 * 64;  // of the recurrence, a step at a time
  const std::multiset<uint64_t> numbers = {300 * 192, 96 * 48 * 9, 400 * 96, 416 * 48 * 4,
                                           256 * 144};
  std::multiset<uint64_t> halves = {kAgain * 4};
  std::multiset<uint64_t> floats = {kAgain * 4};
  for (const uint64_t count : numbers) {
    halves.insert(count * 2);
    floats.insert(count * 4);
  }
  EXPECT_EQ(packed(path, true), halves);
  EXPECT_EQ(packed(path, false), floats);
}

// Unless a key says otherwise: where products of that precision round both operands anyway.
TEST(RoundWeights, AutomaticallyWhereProductsRoundThem) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", products(Numbers::kAny).serialize());
  const bool rounds = folio_multiplies_parts(&kernels_for(cpu_bits()), kFolioMedium) != 0;
  for (const FolioPrecision precision : {kFolioHighest, kFolioHigh, kFolioMedium}) {
    SessionOptions options = with(false, precision, Packing::kLoad);
    const auto floats = run(session_of(path, options));
    const auto rounded = run(session_of(path, with(true, precision, Packing::kLoad)));
    options.weights = FloatWeights::kAuto;
    const bool is_rounded = rounds && precision == kFolioMedium;
    EXPECT_EQ(run(session_of(path, options)), is_rounded ? rounded : floats) << precision;
    EXPECT_NE(rounded, floats) << "so that one of them is seen";
  }
}

TEST(RoundWeights, LeavesTablesAndSmallOnes) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  add_weight(graph, Numbers::kAny, "table", {700, 96});
  add_weight(graph, Numbers::kAny, "small", {96, 340});  // 63.75 KiB as bfloat16
  graph.input("x", f32_type({90}));
  graph.node("Cast", {"x"}, {"ids"}).attr_int("to", 7);
  graph.node("Gather", {"table", "ids"}, {"rows"});
  graph.node("MatMul", {"rows", "small"}, {"y"});
  graph.output("y", f32_type({90, 340}));
  const TempFolder folder;
  const Ref<Session> session = session_of(folder.write("m.onnx", writer.serialize()),
                                          with(true, kFolioHighest, Packing::kOff));
  int constants = 0;
  for (const Value& constant : session->program().constants) {
    if (constant.tensor().count() < 1000) continue;
    EXPECT_EQ(constant.tensor().dtype(), DType::kFloat);
    ++constants;
  }
  EXPECT_EQ(constants, 2);
}

// As the kernels round operands; infinite ones are what they are.
TEST(RoundWeights, FiniteOnesStayFinite) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const float largest_rounded = bfloat16_to_float(0x7f7f);
  std::vector<float> w(300 * 192, 0);
  w[0] = kLargest;
  w[1] = -kLargest;
  w[2] = std::numeric_limits<float>::infinity();
  w[3] = 1.00390625F;  // a tie: to even
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 1}));
  graph.initializer(f32_tensor("w", {1, 300 * 192}, w));
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y", f32_type({1, 300 * 192}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  for (const Packing packing : {Packing::kOff, Packing::kLoad}) {
    const Ref<Session> session = session_of(path, with(true, kFolioHighest, packing));
    const auto outputs = run_all(*session, {{"x", make_tensor<float>({1, 1}, {1})}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    const std::vector<float> y = floats_of(outputs.value()[0]);
    EXPECT_EQ(y[0], largest_rounded);
    EXPECT_EQ(y[1], -largest_rounded);
    EXPECT_EQ(y[2], w[2]);
    EXPECT_EQ(y[3], 1.0F);
  }
}

TEST(RoundWeights, IsAKey) {
  SessionOptions options;
  EXPECT_EQ(options.weights, FloatWeights::kAuto);
  EXPECT_TRUE(set_config(nullptr, &options, "folio.float32_weights", "bfloat16").is_ok());
  EXPECT_EQ(options.weights, FloatWeights::kBfloat16);
  EXPECT_TRUE(set_config(nullptr, &options, "folio.float32_weights", "float32").is_ok());
  EXPECT_EQ(options.weights, FloatWeights::kFloat32);
  EXPECT_TRUE(set_config(nullptr, &options, "folio.float32_weights", "auto").is_ok());
  EXPECT_EQ(options.weights, FloatWeights::kAuto);
  EXPECT_TRUE(fails_with(set_config(nullptr, &options, "folio.float32_weights", "float16"),
                         Code::kInvalidArgument, {"folio.float32_weights", "bfloat16"}));
}

}  // namespace
}  // namespace folio
