// Weights of 16 bits: the bits of the same numbers in float32, in every pack state and for any
// number of threads, with half the bytes in memory and in pack files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "core/ops/op_half.h"
#include "core/prepack/fpack_file.h"
#include "core/session/pack_model.h"
#include "core/session/replace_weights.h"
#include "tests/support/model_tester.h"
#include "tests/support/run_floats.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

using namespace std::chrono_literals;
using model_writer::ElementType;
using model_writer::GraphWriter;
using testing::TempFolder;

enum class Stands : uint8_t { kWide, kFloat16, kBfloat16 };

// A weight of small numbers that 16 bits of either kind hold, as float32, or behind a Cast.
std::string add_weight(GraphWriter& graph, Stands stands, const std::string& name,
                       const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 37 + name.size()) % 61 - 30) / 256;
  }
  if (stands == Stands::kWide) {
    graph.initializer(f32_tensor(name, dims, values));
    return name;
  }
  std::string raw(2 * values.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits =
        stands == Stands::kFloat16 ? float_to_half(values[i]) : float_to_bfloat16(values[i]);
    std::memcpy(raw.data() + 2 * i, &bits, 2);
  }
  const auto type = stands == Stands::kFloat16 ? ElementType::kFloat16 : ElementType::kBfloat16;
  graph.initializer(model_writer::TensorWriter(name, type, dims).raw(raw));
  graph.node("Cast", {name}, {name + "_wide"}).attr_int("to", 1);
  return name + "_wide";
}

// The same turned round, as a head has the table of its embeddings, before the Cast or after it.
std::string add_turned(GraphWriter& graph, Stands stands, const std::string& name,
                       const std::vector<int64_t>& dims, bool is_before) {
  const std::string turned = name + "_turned";
  const std::string wide = add_weight(graph, stands, name, dims);
  if (!is_before || stands == Stands::kWide) {
    graph.node("Transpose", {wide}, {turned});
    return turned;
  }
  graph.node("Transpose", {name}, {name + "_half"}).attr_ints("perm", {1, 0});
  graph.node("Cast", {name + "_half"}, {turned}).attr_int("to", 1);
  return turned;
}

constexpr int64_t kRows[] = {1, 3, 40, 400};
constexpr uint64_t kProductBytes = 300 * 192 * 2;  // of a packed weight

// Products of few and of many rows, row by row and column by column.
model_writer::ModelWriter products(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  const std::string w1 = add_weight(graph, stands, "w1", {300, 192});
  const std::string w2 = add_weight(graph, stands, "weight2", {300, 192});
  graph.initializer(f32_tensor("bias", {192}, small_wave(192, 2)));
  for (const int64_t rows : kRows) {
    const std::string n = std::to_string(rows);
    graph.input("x" + n, f32_type({rows, 300}));
    graph.node("MatMul", {"x" + n, w1}, {"m" + n});
    graph.node("Add", {"m" + n, "bias"}, {"a" + n});
    graph.node("Relu", {"a" + n}, {"r" + n});
    graph.node("Gemm", {"r" + n, w2}, {"y" + n}).attr_int("transB", 1);
    graph.output("y" + n, f32_type({rows, 300}));
  }
  return writer;
}

// 1x1, scaled, with a function that no product applies; by taps; in groups; by Winograd's
// algorithm, added.
model_writer::ModelWriter convolutions(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 96, 41, 21}));  // 36 tiles of the third: at every level enough
  const std::string w1 = add_weight(graph, stands, "w1", {200, 96, 1, 1});
  const std::string w2 = add_weight(graph, stands, "weight2", {96, 100, 3, 3});
  const std::string w3 = add_weight(graph, stands, "weight_3", {96, 96, 3, 3});
  const std::string w4 = add_weight(graph, stands, "the_4th", {400, 48, 1, 1});
  graph.initializer(f32_tensor("bias", {96}, small_wave(96, 2)));
  graph.node("Conv", {"x", w1}, {"c1"});
  graph.initializer(f32_tensor("scale", {200, 1, 1}, small_wave(200, 5)));
  graph.node("Mul", {"c1", "scale"}, {"s1"});
  graph.node("HardSwish", {"s1"}, {"h1"});
  graph.node("Conv", {"h1", w2, "bias"}, {"c2"})
      .attr_int("group", 2)
      .attr_ints("strides", {2, 1})
      .attr_ints("pads", {1, 1, 1, 1});
  graph.node("Conv", {"c2", w3}, {"c3"}).attr_ints("pads", {1, 1, 1, 1});
  graph.node("Add", {"c3", "c2"}, {"a3"});
  graph.node("Relu", {"a3"}, {"r3"});
  graph.node("Conv", {"r3", w4}, {"y"}).attr_int("group", 2);
  graph.output("y", f32_type({2, 400, 21, 21}));
  return writer;
}

model_writer::ModelWriter recurrent(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({5, 2, 144}));
  const std::string w = add_weight(graph, stands, "w", {2, 128, 144});
  const std::string r = add_weight(graph, stands, "r", {2, 128, 32});
  graph.node("LSTM", {"x", w, r}, {"y"})
      .attr_int("hidden_size", 32)
      .attr_string("direction", "bidirectional");
  graph.output("y", f32_type({5, 2, 2, 32}));
  return writer;
}

// The products of the projection alone have halves.
model_writer::ModelWriter attention(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2, 7, 96}));
  const std::string w = add_weight(graph, stands, "w", {96, 288});
  graph.initializer(f32_tensor("bias", {288}, small_wave(288, 2)));
  graph.node("Attention", {"x", w, "bias"}, {"y"})
      .in_domain("com.microsoft")
      .attr_int("num_heads", 4);
  graph.output("y", f32_type({2, 7, 96}));
  return writer;
}

// ids [7, 5], made of x.
void add_ids(GraphWriter& graph) {
  graph.input("x", f32_type({7, 5}));
  graph.initializer(f32_tensor("range", {}, {300}));
  graph.node("Mul", {"x", "range"}, {"places"});
  graph.node("Cast", {"places"}, {"ids"}).attr_int("to", 7);
}

// Rows and columns of tables by index; one of the tables is a product's operand too.
model_writer::ModelWriter embeddings(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  add_ids(graph);
  const std::string table = add_weight(graph, stands, "table", {700, 96});
  const std::string other = add_weight(graph, stands, "other table", {3, 400, 33});
  graph.node("Gather", {table, "ids"}, {"rows"});
  graph.node("Gather", {other, "ids"}, {"columns"}).attr_int("axis", 1);
  graph.node("FusedMatMul", {"rows", table}, {"y"})
      .in_domain("com.microsoft")
      .attr_int("transB", 1);
  graph.output("y", f32_type({7, 5, 700}));
  graph.output("columns", f32_type({3, 7, 5, 33}));
  return writer;
}

// Heads that read the table of their embeddings: MatMul, with and without a function, and Gemm,
// whose other matrix is turned twice. And filters that another framework has in its own order.
template <bool is_before>
model_writer::ModelWriter heads(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  add_ids(graph);
  const std::string turned = add_turned(graph, stands, "table", {700, 96}, is_before);
  const std::string table = stands == Stands::kWide ? "table" : "table_wide";
  graph.node("Gather", {table, "ids"}, {"rows"});
  graph.node("MatMul", {"rows", turned}, {"y"});
  graph.initializer(f32_tensor("bias", {700}, small_wave(700, 2)));
  graph.node("MatMul", {"rows", turned}, {"m"});
  graph.node("Add", {"m", "bias"}, {"a"});
  graph.node("Relu", {"a"}, {"r"});
  graph.initializer(i64_tensor("flat", {2}, {-1, 96}));
  graph.node("Reshape", {"rows", "flat"}, {"flat_rows"});
  graph.node("Gemm", {"flat_rows", turned}, {"g"});
  const std::string other = add_turned(graph, stands, "the other", {96, 400}, is_before);
  graph.node("Gemm", {"flat_rows", other}, {"h"}).attr_int("transB", 1);
  for (const char* name : {"y", "r"}) graph.output(name, f32_type({7, 5, 700}));
  graph.output("g", f32_type({35, 700}));
  graph.output("h", f32_type({35, 400}));
  return writer;
}

// Filters that stand in another order, and a table of other rows.
model_writer::ModelWriter moved(Stands stands) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 96, 9, 11}));
  const std::string filters = add_weight(graph, stands, "w", {2, 1, 96, 100});
  graph.node("Transpose", {filters}, {"ordered"}).attr_ints("perm", {3, 2, 0, 1});
  graph.node("Conv", {"x", "ordered"}, {"y"});
  graph.initializer(i64_tensor("rows", {2}, {-1, 32}));
  const std::string table = add_weight(graph, stands, "table", {300, 64});
  graph.node("Reshape", {table, "rows"}, {"cut"});
  graph.initializer(i64_tensor("ids", {3}, {599, 0, 7}));
  graph.initializer(f32_tensor("zero", {}, {0}));
  graph.node("ReduceSum", {"x"}, {"sum"}).attr_int("keepdims", 0);
  graph.node("Mul", {"sum", "zero"}, {"nothing"});
  graph.node("Cast", {"nothing"}, {"shift"}).attr_int("to", 7);
  graph.node("Add", {"ids", "shift"}, {"places"});
  graph.node("Gather", {"cut", "places"}, {"rows_read"});
  graph.output("y", f32_type({1, 100, 8, 11}));
  graph.output("rows_read", f32_type({3, 32}));
  return writer;
}

using Build = model_writer::ModelWriter (*)(Stands stands);
using Outputs = std::vector<std::vector<float>>;

// Weights that stay halves: of the convolutions all but Winograd's, of the recurrent net W.
int halves_in(Build build) {
  if (build == convolutions) return 3;
  return build == products || build == heads<false> || build == heads<true> ? 2 : 1;
}

SessionOptions with(int threads, Packing packing) {
  SessionOptions options;
  options.threads = threads;
  options.packing = packing;
  return options;
}

Outputs run(const Ref<Session>& session) {
  return run_floats(*session, [](int64_t count) { return small_wave(count, 9); });
}

class HalfWeights : public ::testing::TestWithParam<std::tuple<Build, Stands>> {
 protected:
  void SetUp() override {
    const auto [build, stands] = GetParam();
    wide_ = folder_.write("wide.onnx", build(Stands::kWide).serialize());
    half_ = folder_.write("half.onnx", build(stands).serialize());
    usleep(150'000);  // old enough for its digests to be remembered
  }

  const TempFolder folder_;
  std::string wide_;
  std::string half_;
};

TEST_P(HalfWeights, HaveTheBitsOfFloatsInEveryPackStateAndForAnyThreads) {
  const Outputs expected = run(session_of(wide_, with(1, Packing::kLoad)));
  for (const int threads : {1, 2, 3}) {
    EXPECT_EQ(run(session_of(half_, with(threads, Packing::kOff))), expected) << threads;
    EXPECT_EQ(run(session_of(half_, with(threads, Packing::kLoad))), expected) << threads;
    const Ref<Session> behind = session_of(half_, with(threads, Packing::kBehind));
    EXPECT_EQ(run(behind), expected) << "while it is packed";
    EXPECT_TRUE(behind->wait_packed(-1ms));
    EXPECT_EQ(run(behind), expected) << "afterwards";
  }
  SessionOptions unpacked;
  unpacked.prepack = false;
  EXPECT_EQ(run(session_of(half_, unpacked)), run(session_of(wide_, unpacked)));
  SessionOptions plain;
  plain.kernels = CpuBits();
  EXPECT_EQ(run(session_of(half_, plain)), run(session_of(wide_, plain)));
}

TEST_P(HalfWeights, StandInPackFiles) {
  const Outputs expected = run(session_of(wide_, with(1, Packing::kLoad)));
  SessionOptions fresh;
  fresh.cache = std::make_shared<PackedCache>();
  {
    const auto file = ModelFile::open(half_, {});
    ASSERT_TRUE(file.is_ok());
    const auto packed = pack_model(file.value(), fresh, {});
    ASSERT_TRUE(packed.is_ok()) << text_of(packed.status());
    const auto pack = PackFile::open(packed.value().path, BlobPlace::kSidecar);
    ASSERT_TRUE(pack.is_ok()) << text_of(pack.status());
    const Layout layout =
        std::get<1>(GetParam()) == Stands::kFloat16 ? Layout::kF16P16 : Layout::kBF16P16;
    int halves = 0;
    for (const PackEntry& entry : pack.value()->index().entries) halves += entry.layout == layout;
    EXPECT_EQ(halves, halves_in(std::get<0>(GetParam())));
  }
  fresh.cache = std::make_shared<PackedCache>();
  const Ref<Session> session = session_of(half_, fresh);
  for (const auto& blob : session->program().packed_now()) {
    EXPECT_EQ(blob->place(), BlobPlace::kSidecar);
  }
  EXPECT_EQ(run(session), expected);
}

INSTANTIATE_TEST_SUITE_P(
    All, HalfWeights,
    ::testing::Combine(::testing::Values(products, convolutions, recurrent, attention, embeddings,
                                         heads<false>, heads<true>, moved),
                       ::testing::Values(Stands::kFloat16, Stands::kBfloat16)));

// Nothing of a weight is in private memory before it is packed, and then half of float32's bytes.
TEST(HalfWeightsMemory, IsHalfOfThatOfFloats) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", products(Stands::kFloat16).serialize());
  SessionOptions options = with(1, Packing::kOff);
  options.cache = std::make_shared<PackedCache>();
  SessionOptions unpacked = options;
  unpacked.prepack = false;
  for (const SessionOptions& each : {with(1, Packing::kOff), unpacked}) {
    const Ref<Session> session = session_of(path, each);
    run(session);
    EXPECT_TRUE(session->program().packed_now().empty());
    for (const Value& constant : session->program().constants) {
      if (!constant.is_tensor() || constant.tensor().count() < 1000) continue;
      EXPECT_EQ(constant.tensor().dtype(), DType::kFloat16);
      EXPECT_EQ(constant.tensor().bytes(), kProductBytes);
    }
  }
  options.packing = Packing::kLoad;
  const Ref<Session> packed = session_of(path, options);
  std::map<const uint8_t*, uint64_t> sizes;  // nodes share them
  for (const auto& blob : packed->program().packed_now()) sizes[blob->data()] = blob->bytes();
  std::multiset<uint64_t> found;
  for (const auto& [data, bytes] : sizes) found.insert(bytes);
  // 300 rows of 192, and 192 of 300, whose last panel has padding.
  EXPECT_EQ(found, (std::multiset<uint64_t>{kProductBytes, uint64_t{304} * 192 * 2}));
}

// A matrix that is read turned round is the file's all the same: of the copy that a Transpose would
// make nothing is there, whether weights are packed or not, and a pack is that of the file's bytes.
TEST(HalfWeightsMemory, TransposesAreReadAsTheFileHasThem) {
  for (const Build build : {heads<false>, heads<true>}) {
    for (const Stands stands : {Stands::kWide, Stands::kFloat16, Stands::kBfloat16}) {
      const TempFolder folder;
      const std::string path = folder.write("m.onnx", build(stands).serialize());
      const bool is_half = stands != Stands::kWide;
      SessionOptions options = with(1, Packing::kOff);
      options.cache = std::make_shared<PackedCache>();
      SessionOptions unpacked = options;
      unpacked.prepack = false;
      for (const SessionOptions& each : {with(1, Packing::kOff), unpacked}) {
        const Ref<Session> session = session_of(path, each);
        std::multiset<std::string> found;
        for (const Value& constant : session->program().constants) {
          if (!constant.is_tensor() || constant.tensor().count() < 1000) continue;
          EXPECT_EQ(dtype_bits(constant.tensor().dtype()), is_half ? 16 : 32);
          found.insert(constant.tensor().shape().to_string());
        }
        EXPECT_EQ(found, (std::multiset<std::string>{"[700,96]", "[96,400]"}));
        EXPECT_TRUE(session->program().packed_now().empty());
      }
      options.packing = Packing::kLoad;
      const Ref<Session> packed = session_of(path, options);
      std::set<const uint8_t*> blobs;
      uint64_t bytes = 0;
      for (const auto& blob : packed->program().packed_now()) {
        if (blobs.insert(blob->data()).second) bytes += blob->bytes();
      }
      EXPECT_EQ(bytes, (704 * 96 + 400 * 96) * (is_half ? 2U : 4U));
    }
  }
}

// Where the table alone is read, nothing of it is in private memory.
TEST(HalfWeightsMemory, TablesAreReadAsTheyStand) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({9}));
  graph.node("Cast", {"x"}, {"ids"}).attr_int("to", 7);
  graph.node("Gather", {add_weight(graph, Stands::kBfloat16, "w", {700, 96}), "ids"}, {"y"});
  graph.output("y", f32_type({9, 96}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const Ref<Session> session = session_of(path, with(1, Packing::kLoad));
  int tables = 0;
  for (const Value& constant : session->program().constants) {
    if (constant.tensor().count() < 1000) continue;
    EXPECT_EQ(constant.tensor().dtype(), DType::kBfloat16);
    ++tables;
  }
  EXPECT_EQ(tables, 1);
  EXPECT_TRUE(session->program().packed_now().empty());
  EXPECT_EQ(run(session)[0].size(), 9U * 96);
}

// Up to 64 KiB in float32 are widened once, by the load.
TEST(HalfWeightsMemory, SmallWeightsAreWidened) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 128}));
  graph.node("MatMul", {"x", add_weight(graph, Stands::kFloat16, "w", {128, 128})}, {"y"});
  graph.output("y", f32_type({3, 128}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const Ref<Session> session = session_of(path, with(1, Packing::kLoad));
  ASSERT_EQ(session->program().packed_now().size(), 1U);
  EXPECT_EQ(session->program().packed_now()[0]->bytes(), uint64_t{128} * 128 * 4);
}

// float16 in operators that nobody widens: B is widened piece by piece all the same.
TEST(HalfWeightsMemory, OperatorsOfHalvesReadThemSoToo) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  const auto half = [](const std::vector<model_writer::Dim>& dims) {
    return model_writer::Type::tensor(ElementType::kBfloat16, dims);
  };
  graph.input("x", half({5, 300}));
  add_weight(graph, Stands::kBfloat16, "w1", {300, 192});
  add_weight(graph, Stands::kBfloat16, "w2", {40, 192});
  graph.node("MatMul", {"x", "w1"}, {"m"});
  graph.node("Gemm", {"m", "w2"}, {"y"}).attr_int("transB", 1);
  graph.output("y", half({5, 40}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const Value x = make_float_tensor(DType::kBfloat16, {5, 300}, std::vector<double>(1500, 0.25));
  std::vector<std::string> found;
  for (const Packing packing : {Packing::kOff, Packing::kLoad}) {
    const Ref<Session> session = session_of(path, with(2, packing));
    const auto outputs = run_all(*session, {{"x", x}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    const Tensor& y = outputs.value()[0].tensor();
    found.emplace_back(reinterpret_cast<const char*>(y.raw()), y.bytes());
    EXPECT_EQ(session->program().packed_now().size(), packing == Packing::kOff ? 0U : 2U);
  }
  EXPECT_EQ(found[0], found[1]);
}

// A model of bfloat16: its convolutions are those of float32, rounded; weights stay as they are.
TEST(HalfWeightsMemory, ConvolutionsOfBfloat16ReadPackedWeights) {
  const auto build = [](Stands stands) {
    model_writer::ModelWriter writer = plain_model();
    GraphWriter& graph = writer.graph();
    const bool is_half = stands == Stands::kBfloat16;
    const auto type = [&](const std::vector<model_writer::Dim>& dims) {
      return is_half ? model_writer::Type::tensor(ElementType::kBfloat16, dims) : f32_type(dims);
    };
    graph.input("x", type({1, 96, 9, 11}));
    const std::string w1 = add_weight(graph, stands, "w1", {192, 96, 1, 1});
    const std::string w2 = add_weight(graph, stands, "weight2", {40, 192, 3, 3});
    const std::string b = add_weight(graph, stands, "bias", {40});
    graph.node("Conv", {"x", is_half ? "w1" : w1}, {"c"});
    if (!is_half) {
      graph.node("Cast", {"c"}, {"rounded"}).attr_int("to", 16);
      graph.node("Cast", {"rounded"}, {"r"}).attr_int("to", 1);
    }
    graph.node("Conv", {is_half ? "c" : "r", is_half ? "weight2" : w2, is_half ? "bias" : b}, {"y"})
        .attr_ints("strides", {2, 1});
    graph.output("y", type({1, 40, 4, 9}));
    return writer;
  };
  const TempFolder folder;
  const std::string wide = folder.write("wide.onnx", build(Stands::kWide).serialize());
  const std::string half = folder.write("half.onnx", build(Stands::kBfloat16).serialize());
  const std::vector<float> x = small_wave(96 * 9 * 11, 9);
  std::vector<double> rounded;
  for (const float each : x) rounded.push_back(float{BFloat16(each)});
  const std::vector<float> same(rounded.begin(), rounded.end());
  SessionOptions unpacked;
  unpacked.prepack = false;
  for (const SessionOptions& each :
       {with(1, Packing::kOff), with(2, Packing::kLoad), with(1, Packing::kBehind), unpacked}) {
    const auto floats =
        run_all(*session_of(wide, each), {{"x", make_tensor<float>({1, 96, 9, 11}, same)}});
    const Ref<Session> session = session_of(half, each);
    const auto halves =
        run_all(*session, {{"x", make_float_tensor(DType::kBfloat16, {1, 96, 9, 11}, rounded)}});
    ASSERT_TRUE(floats.is_ok() && halves.is_ok());
    const Tensor& y = halves.value()[0].tensor();
    const std::vector<float> of_floats = floats_of(floats.value()[0]);
    ASSERT_EQ(static_cast<size_t>(y.count()), of_floats.size());
    for (size_t i = 0; i < of_floats.size(); ++i) {
      ASSERT_EQ(float{y.data<BFloat16>()[i]}, float{BFloat16(of_floats[i])}) << i;
    }
    if (!each.prepack) continue;
    for (const Value& constant : session->program().constants) {
      if (constant.tensor().count() < 1000) continue;
      EXPECT_EQ(constant.tensor().dtype(), DType::kBfloat16);
    }
  }
  const Ref<Session> packed = session_of(half, with(1, Packing::kLoad));
  std::multiset<uint64_t> found;
  for (const auto& blob : packed->program().packed_now()) found.insert(blob->bytes());
  EXPECT_EQ(found, (std::multiset<uint64_t>{96 * 192 * 2, 192 * 9 * 48 * 2}));
}

// A product of float and bfloat16 is none of ONNX's, whatever stands in the constant.
TEST(HalfWeightsMemory, AreNotTakenWhereTheModelHasOtherTypes) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 300}));
  add_weight(graph, Stands::kBfloat16, "w", {300, 192});
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y", f32_type({3, 192}));
  const auto outputs =
      run_once(writer, {{"x", make_tensor<float>({3, 300}, small_wave(900, 1))}}, SessionOptions());
  EXPECT_FALSE(outputs.is_ok());
}

}  // namespace
}  // namespace folio
