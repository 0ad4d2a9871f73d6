// Models whose large weights stand in a pack file alone: they compute the same bits, take what is
// packed where it stands, and give every weight back; and whatever is wrong with the pack file or
// with what the model says of it is an error that says so.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "core/os/mapped_file.h"
#include "core/os/new_file.h"
#include "core/save/stored_weights.h"
#include "core/session/replace_weights.h"
#include "tests/support/pack_tester.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using namespace pack_test;
using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::TensorWriter;
using model_writer::u8_tensor;

std::string pack_of(const std::string& path) { return path + ".fpack"; }

std::vector<float> some_floats(size_t count, float seed) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = seed + static_cast<float>((i * 37) % 61) / 128;
  return out;
}

std::vector<uint8_t> some_bytes(size_t count, uint8_t seed) {
  std::vector<uint8_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint8_t>(seed + i * 29);
  return out;
}

TensorWriter floats(std::string_view name, const std::vector<int64_t>& dims, float seed = 0.5F) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  return f32_tensor(name, dims, some_floats(static_cast<size_t>(count), seed));
}

TensorWriter bytes(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                   uint8_t seed) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  const auto values = some_bytes(static_cast<size_t>(count), seed);
  return TensorWriter(name, type, dims)
      .raw(std::string_view(reinterpret_cast<const char*>(values.data()), values.size()));
}

Result<ReplaceResult> replace(const std::string& path, const std::string& to = "") {
  auto file = ModelFile::open(path, {});
  if (!file.is_ok()) return std::move(file).take_status();
  return replace_weights(file.value(), fresh(), to);
}

ReplaceResult replaced(const std::string& path, const std::string& to = "") {
  auto done = replace(path, to);
  EXPECT_TRUE(done.is_ok()) << text_of(done.status());
  return done.is_ok() ? done.value() : ReplaceResult();
}

Status open_status(const std::string& path, const SessionOptions& options = fresh()) {
  auto file = ModelFile::open(path, {});
  if (!file.is_ok()) return std::move(file).take_status();
  return Session::create(file.value(), options).take_status();
}

// All outputs of one run; inputs are made up from their types.
std::vector<Value> outputs_of(const Ref<Session>& session) {
  std::vector<NamedValue> inputs;
  for (const PortInfo& port : session->program().inputs) {
    if (port.has_default || !port.type.is_tensor()) continue;
    Shape shape;
    for (const Dim dim : *port.type.dims) shape.push_back(dim.is_value() ? dim.value : 2);
    Tensor tensor = allocate_tensor(port.type.dtype, shape).take();
    std::memset(tensor.raw_mut(), 0, tensor.bytes());
    for (int64_t i = 0; i < tensor.count(); ++i) {
      if (tensor.dtype() == DType::kFloat) {
        tensor.data_mut<float>()[i] = static_cast<float>(i % 13) - 5;
      } else if (dtype_bits(tensor.dtype()) == 8) {
        tensor.raw_mut()[i] = static_cast<uint8_t>(tensor.dtype() == DType::kBool ? i % 2 : i * 7);
      }
    }
    inputs.push_back({port.name, Value(std::move(tensor))});
  }
  auto run = run_all(*session, inputs);
  EXPECT_TRUE(run.is_ok()) << text_of(run.status());
  return run.is_ok() ? run.value() : std::vector<Value>();
}

::testing::AssertionResult same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size() || a.empty()) return ::testing::AssertionFailure() << "other outputs";
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_tensor() || !b[i].is_tensor()) {
      if (a[i].kind() == b[i].kind()) continue;
      return ::testing::AssertionFailure() << "another kind of output " << i;
    }
    const Tensor& x = a[i].tensor();
    const Tensor& y = b[i].tensor();
    const bool is_same = x.dtype() == y.dtype() && x.shape() == y.shape() &&
                         (x.is_string() || std::memcmp(x.raw(), y.raw(), x.bytes()) == 0);
    if (!is_same) return ::testing::AssertionFailure() << "output " << i;
  }
  return ::testing::AssertionSuccess();
}

// Every initializer of a model as its file says, subgraphs included, by graph and name.
std::map<std::string, std::string> weights_in(const std::string& path) {
  std::map<std::string, std::string> out;
  const Ref<ByteSource> source = open_mapped_file(path).take();
  ModelDef def = load_model_def(source, {}).take();
  int index = 0;
  each_graph(&def.graph, [&](GraphDef* graph) {
    for (const InitializerDef& each : graph->initializers) {
      const Tensor& tensor = each.tensor;
      std::string text = cat(dtype_name(tensor.dtype()), tensor.shape().to_string(), ":");
      if (!tensor.is_string()) {
        text.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
      }
      out[cat(index, "/", each.name)] = std::move(text);
    }
    ++index;
  });
  return out;
}

void restore(const std::string& path, const std::string& to) {
  const auto file = ModelFile::open(path, {});
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  InlineParallel threads;
  ModelSaving saving;
  saving.path = to;
  const auto saved = file.value()->save(saving, Optimize::kOff, {}, {}, threads, nullptr);
  ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
}

struct Expected {
  uint64_t packed = 0;
  uint64_t raw = 0;
};

// The model anew, computing the same, and back again.
void round_trip(const std::string& model, Expected expected) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", model);
  const std::string to = folder.path("r.onnx");
  const ReplaceResult result = replaced(path, to);
  EXPECT_EQ(result.packed_weights, expected.packed);
  EXPECT_EQ(result.raw_weights, expected.raw);
  const auto before = outputs_of(open(path));
  const Ref<Session> session = open(to);
  ASSERT_TRUE(session);
  std::set<const uint8_t*> blobs;
  for (const auto& blob : session->program().packed_now()) blobs.insert(blob->data());
  EXPECT_EQ(blobs.size(), expected.packed);
  EXPECT_EQ(blobs_in(session, BlobPlace::kHeap), 0);
  EXPECT_TRUE(same_bits(outputs_of(session), before));

  SessionOptions unpacked = fresh();
  unpacked.prepack = false;
  EXPECT_TRUE(same_bits(outputs_of(open(to, unpacked)), outputs_of(open(path, unpacked))));
  SessionOptions plain = fresh();
  plain.optimize = Optimize::kOff;
  EXPECT_TRUE(same_bits(outputs_of(open(to, plain)), outputs_of(open(path, plain))));
  SessionOptions ref = fresh();
  ref.kernels = CpuBits();
  EXPECT_TRUE(same_bits(outputs_of(open(to, ref)), outputs_of(open(path, ref))));

  const std::string back = folder.path("back.onnx");
  restore(to, back);
  EXPECT_EQ(weights_in(back), weights_in(path));
}

TEST(ReplaceWeights, MatMulAndGemm) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 96}));
  graph.initializer(floats("a", {96, 80}));
  graph.initializer(floats("b", {75, 80}, 0.25F));
  graph.initializer(floats("bias", {75}));
  graph.node("MatMul", {"x", "a"}, {"p"});
  graph.node("Gemm", {"p", "b", "bias"}, {"y"}).attr_int("transB", 1);
  graph.output("y", f32_type({3, 75}));
  round_trip(writer.serialize(), {2, 0});
}

TEST(ReplaceWeights, Convolutions) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 16, 9, 9}));
  graph.initializer(floats("dense", {32, 16, 3, 3}));
  graph.initializer(floats("grouped", {64, 16, 3, 3}, 0.25F));
  graph.initializer(floats("depthwise", {192, 1, 3, 3}));
  graph.initializer(floats("wide", {192, 64, 1, 1}));
  graph.node("Conv", {"x", "dense"}, {"p"});
  graph.node("Conv", {"p", "grouped"}, {"q"}).attr_int("group", 2);
  graph.node("Conv", {"q", "wide"}, {"r"});
  graph.node("Conv", {"r", "depthwise"}, {"y"}).attr_int("group", 192);
  graph.output("y", f32_type({1, 192, 3, 3}));
  round_trip(writer.serialize(), {4, 0});
}

TEST(ReplaceWeights, NormalizedConvolutions) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({1, 64, 5, 5}));
  graph.initializer(floats("w", {96, 64, 3, 3}));
  for (const char* name : {"gamma", "beta", "mean", "variance"}) {
    graph.initializer(floats(name, {96}));
  }
  graph.node("Conv", {"x", "w"}, {"p"});
  graph.node("BatchNormalization", {"p", "gamma", "beta", "mean", "variance"}, {"y"});
  graph.output("y", f32_type({1, 96, 3, 3}));
  round_trip(writer.serialize(), {1, 0});
}

TEST(ReplaceWeights, RecurrentNets) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({4, 2, 24}));
  graph.initializer(floats("w", {2, 128, 24}, -0.25F));
  graph.initializer(floats("r", {2, 128, 32}, -0.25F));
  graph.initializer(floats("gw", {2, 96, 32}, -0.25F));
  graph.initializer(floats("gr", {2, 96, 32}, -0.125F));
  graph.initializer(i64_tensor("shape", {3}, {4, 2, 32}));
  graph.node("LSTM", {"x", "w", "r"}, {"", "h"})
      .attr_int("hidden_size", 32)
      .attr_string("direction", "bidirectional");
  graph.node("Concat", {"h", "h"}, {"t"}).attr_int("axis", 0);
  graph.node("Reshape", {"t", "shape"}, {"u"});
  graph.node("GRU", {"u", "gw", "gr"}, {"y"})
      .attr_int("hidden_size", 32)
      .attr_string("direction", "bidirectional");
  graph.output("y", f32_type({4, 2, 2, 32}));
  round_trip(writer.serialize(), {4, 0});
}

TEST(ReplaceWeights, ProductsOfBytes) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  const auto u8 = [](const std::vector<model_writer::Dim>& dims) {
    return model_writer::Type::tensor(ElementType::kUint8, dims);
  };
  const auto i32 = [](const std::vector<model_writer::Dim>& dims) {
    return model_writer::Type::tensor(ElementType::kInt32, dims);
  };
  graph.input("x", u8({1, 32, 6, 6}));
  graph.input("m", u8({3, 128}));
  graph.initializer(f32_tensor("scale", {}, {0.01F}));
  graph.initializer(u8_tensor("zero", {}, {128}));
  graph.initializer(bytes("signed zero", ElementType::kInt8, {}, 0));
  graph.initializer(bytes("w", ElementType::kInt8, {64, 32, 3, 3}, 3));
  graph.initializer(bytes("a", ElementType::kUint8, {128, 96}, 5));
  graph.initializer(bytes("b", ElementType::kInt8, {128, 64}, 7));
  graph.node("QLinearConv", {"x", "scale", "zero", "w", "scale", "signed zero", "scale", "zero"},
             {"y"});
  graph.node("MatMulInteger", {"m", "a", "zero", "zero"}, {"z"});
  graph.node("MatMulInteger", {"m", "b"}, {"v"});
  graph.output("y", u8({1, 64, 4, 4}));
  graph.output("z", i32({3, 96}));
  graph.output("v", i32({3, 64}));
  round_trip(writer.serialize(), {3, 0});
}

// The weight's dequantized form, which nothing reads once the convolution takes bytes, is not
// computed: the packed weight would be unpacked for it.
TEST(ReplaceWeights, ConvolutionsThatAreQuantizedByParts) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", model_writer::Type::tensor(ElementType::kUint8, {1, 32, 6, 6}));
  graph.initializer(f32_tensor("scale", {}, {0.01F}));
  graph.initializer(u8_tensor("zero", {}, {128}));
  graph.initializer(bytes("signed zero", ElementType::kInt8, {}, 0));
  graph.initializer(bytes("w", ElementType::kInt8, {32, 32, 3, 3}, 3));
  graph.node("DequantizeLinear", {"x", "scale", "zero"}, {"floats"});
  graph.node("DequantizeLinear", {"w", "scale", "signed zero"}, {"filters"});
  graph.node("Conv", {"floats", "filters"}, {"sums"});
  graph.node("QuantizeLinear", {"sums", "scale", "zero"}, {"y"});
  graph.output("y", model_writer::Type::tensor(ElementType::kUint8, {1, 32, 4, 4}));
  round_trip(writer.serialize(), {1, 0});
}

TEST(ReplaceWeights, WeightsThatNoKernelPacksStandThereAsTheyAre) {
  model_writer::ModelWriter writer = plain_model();
  writer.opset("com.microsoft", 1);
  GraphWriter& graph = writer.graph();
  graph.input("ids", model_writer::Type::tensor(kI64, {3}));
  graph.initializer(floats("table", {40, 64}));
  graph.initializer(bytes("b", ElementType::kUint8, {160, 2, 16}, 9));
  graph.initializer(floats("scales", {320}));
  graph.node("Gather", {"table", "ids"}, {"x"});
  graph.node("MatMulNBits", {"x", "b", "scales"}, {"y"})
      .in_domain("com.microsoft")
      .attr_int("K", 64)
      .attr_int("N", 160)
      .attr_int("bits", 4)
      .attr_int("block_size", 32);
  graph.output("y", f32_type({3, 160}));
  round_trip(writer.serialize(), {0, 2});
}

TEST(ReplaceWeights, AWeightThatIsUsedInTwoWaysStandsThereOnceAndAsItIs) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 64}));
  graph.initializer(floats("two layouts", {64, 64}));
  graph.initializer(floats("raw too", {64, 64}, 0.25F));
  graph.initializer(floats("one layout", {64, 64}, 0.75F));
  graph.node("Gemm", {"x", "two layouts"}, {"p"});
  graph.node("Gemm", {"p", "two layouts"}, {"q"}).attr_int("transB", 1);
  graph.node("Gemm", {"q", "raw too"}, {"r"});
  graph.node("Gemm", {"r", "one layout"}, {"s"});
  graph.node("Gemm", {"s", "one layout"}, {"t"});
  graph.node("ReduceSum", {"t"}, {"sum"});
  graph.node("Add", {"sum", "raw too"}, {"y"});
  graph.output("y", f32_type({64, 64}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const ReplaceResult result = replaced(path, folder.path("r.onnx"));
  EXPECT_EQ(result.packed_weights, 1U);
  EXPECT_EQ(result.raw_weights, 2U);
  EXPECT_EQ(result.packed_bytes + result.raw_bytes, 3U * 64 * 64 * 4);
  EXPECT_TRUE(same_bits(outputs_of(open(folder.path("r.onnx"))), outputs_of(open(path))));
}

TEST(ReplaceWeights, WeightsThatPaddingMakesLargerStandThereAsTheyAre) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 320}));
  graph.initializer(floats("even", {320, 192}));
  graph.initializer(floats("odd", {192, 17}, 0.25F));  // 32 columns
  graph.initializer(floats("nearly even", {192, 95}, 0.25F));
  graph.node("MatMul", {"x", "even"}, {"p"});
  graph.node("MatMul", {"p", "odd"}, {"y"});
  graph.node("MatMul", {"p", "nearly even"}, {"z"});
  graph.output("y", f32_type({3, 17}));
  graph.output("z", f32_type({3, 95}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  const ReplaceResult result = replaced(path, folder.path("r.onnx"));
  EXPECT_EQ(result.packed_weights, 2U);
  EXPECT_EQ(result.raw_weights, 1U);
  EXPECT_TRUE(same_bits(outputs_of(open(folder.path("r.onnx"))), outputs_of(open(path))));
}

TEST(ReplaceWeights, EqualWeightsStandThereOnce) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 64}));
  graph.initializer(floats("a", {64, 64}));
  graph.initializer(floats("b", {64, 64}));
  graph.node("MatMul", {"x", "a"}, {"p"});
  graph.node("MatMul", {"p", "b"}, {"y"});
  graph.output("y", f32_type({3, 64}));
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", writer.serialize());
  EXPECT_EQ(replaced(path, folder.path("r.onnx")).packed_weights, 1U);
  EXPECT_TRUE(same_bits(outputs_of(open(folder.path("r.onnx"))), outputs_of(open(path))));
}

TEST(ReplaceWeights, Subgraphs) {
  const auto branch = [](const char* name, float seed) {
    GraphWriter graph(name);
    graph.initializer(floats("own", {64, 64}, seed));  // the same name in both
    graph.node("MatMul", {"x", "own"}, {"inner"});
    graph.node("MatMul", {"inner", "outer"}, {std::string("out of ") + name});
    graph.output(std::string("out of ") + name, f32_type({3, 64}));
    return graph;
  };
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, 64}));
  graph.input("which", model_writer::Type::tensor(kBoolean, {1}));
  graph.initializer(floats("outer", {64, 64}));
  graph.node("If", {"which"}, {"y"})
      .attr_graph("then_branch", branch("then", 0.25F))
      .attr_graph("else_branch", branch("else", 0.75F));
  graph.output("y", f32_type({3, 64}));
  round_trip(writer.serialize(), {3, 0});
}

TEST(ReplaceWeights, EveryKindOfModel) {
  const model_writer::MlpOptions external{1, 3, 128, 0, "weights.bin", 4096};
  std::vector<model_writer::ModelFiles> kinds;
  kinds.push_back(model_writer::build_mlp(external));
  kinds.push_back(model_writer::build_cnn(1));
  kinds.push_back(model_writer::build_int4({}));
  kinds.push_back(model_writer::build_fold({}));
  kinds.push_back(model_writer::build_aliased(1, "weights.bin"));
  for (const model_writer::ModelFiles& kind : kinds) {
    const TempFolder folder;
    const std::string path = folder.path("m.onnx");
    ASSERT_TRUE(model_writer::write_model_files(kind, path).ok());
    const auto before = outputs_of(open(path));
    const auto weights = weights_in(path);
    const ReplaceResult result = replaced(path);
    EXPECT_GT(result.packed_weights + result.raw_weights, 0U);
    fs::remove(folder.path("weights.bin"));
    EXPECT_TRUE(same_bits(outputs_of(open(path)), before));
    restore(path, folder.path("back.onnx"));
    auto back = weights_in(folder.path("back.onnx"));
    for (const auto& [name, value] : weights) {
      if (back.count(name) == 0) continue;  // nothing reads it
      EXPECT_EQ(back[name], value) << name;
    }
    EXPECT_FALSE(back.empty());
  }
}

// ---------------------------------------------------------------- loading

// x a: 100 KiB packed, and a table of 16 KiB.
std::string small_model(float seed = 0.5F) {
  model_writer::ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({3, kSize}));
  graph.initializer(floats("a", {kSize, kSize}, seed));
  graph.initializer(floats("table", {32, kSize}, seed));
  graph.node("MatMul", {"x", "a"}, {"p"});
  graph.node("ReduceSum", {"p"}, {"s"});
  graph.node("Add", {"s", "table"}, {"y"});
  graph.output("y", f32_type({32, kSize}));
  return writer.serialize();
}

struct Replaced {
  explicit Replaced(float seed = 0.5F) {
    const std::string original = folder.write("original.onnx", small_model(seed));
    expected = outputs_of(open(original));
    path = folder.path("m.onnx");
    replaced(original, path);
  }

  std::string text() const {
    std::ifstream in(pack_of(path), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write_pack(const std::string& text) const {
    fs::remove(pack_of(path));
    folder.write("m.onnx.fpack", text);
  }

  TempFolder folder;
  std::string path;
  std::vector<Value> expected;
};

TEST(ReplacedModel, LoadsWithoutUnpackingOrReadingAWeight) {
  const Replaced model;
  const TempFolder store;
  SessionOptions options = fresh();
  options.pack.stores = {store.path()};
  static size_t largest;
  largest = 0;
  set_allocation_hook([](size_t bytes) {
    largest = std::max(largest, bytes);
    return true;
  });
  const Ref<Session> session = open(model.path, options);
  set_allocation_hook(nullptr);
  EXPECT_LT(largest, 10000U) << "the weights have 100 and 20 KiB";
  EXPECT_EQ(blobs_in(session, BlobPlace::kSidecar), 1);
  const PackedCache::Stats stats = options.cache->stats();
  EXPECT_EQ(stats.made_blobs, 0U);
  EXPECT_EQ(stats.files.hits, 1U);
  EXPECT_EQ(stats.files.hashed_bytes, 0U);
  EXPECT_EQ(stats.files.written_blobs, 0U);
  EXPECT_TRUE(same_bits(outputs_of(session), model.expected));
}

TEST(ReplacedModel, MayBeReadIntoPrivateMemory) {
  const Replaced model;
  ModelOptions options;
  options.read_into_memory = true;
  const auto file = ModelFile::open(model.path, options);
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  const auto session = Session::create(file.value(), fresh());
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  EXPECT_TRUE(same_bits(outputs_of(session.value()), model.expected));
}

TEST(ReplacedModel, SessionsShareWhatIsPacked) {
  const Replaced model;
  SessionOptions options = fresh();
  const Ref<Session> one = open(model.path, options);
  const Ref<Session> two = open(model.path, options);
  EXPECT_EQ(options.cache->stats().hits, 1U);
  EXPECT_EQ(one->program().packed_now()[0]->data(), two->program().packed_now()[0]->data());
}

TEST(ReplacedModel, TakesInitializersOfTheUser) {
  const Replaced model;
  SessionOptions options = fresh();
  const Tensor other = make_tensor<float>({kSize, kSize}, some_floats(kSize * kSize, 0.75F));
  options.initializers = {{"a", other}};
  EXPECT_TRUE(same_bits(outputs_of(open(model.path, options)),
                        outputs_of(open(model.folder.path("original.onnx"), options))));
}

TEST(ReplacedModel, SaysWhatItsWeightsAre) {
  const Replaced model;
  const auto file = ModelFile::open(model.path, {}).take();
  const auto original = ModelFile::open(model.folder.path("original.onnx"), {}).take();
  EXPECT_EQ(file->info().initializer_count, original->info().initializer_count);
  EXPECT_EQ(file->info().initializer_bytes, original->info().initializer_bytes);
  EXPECT_EQ(file->info().operators, original->info().operators);
  EXPECT_EQ(file->info().metadata, original->info().metadata);
  EXPECT_EQ(file->pack_file(), "m.onnx.fpack");
}

TEST(ReplacedModel, BecomesAnOrtModelWithItsWeights) {
  const Replaced model;
  restore(model.path, model.folder.path("m.ort"));
  fs::remove(pack_of(model.path));
  EXPECT_TRUE(same_bits(outputs_of(open(model.folder.path("m.ort"))), model.expected));
}

TEST(ReplacedModel, CanBeReplacedElsewhereButNotWhereItIs) {
  const Replaced model;
  const auto again = replace(model.path);
  EXPECT_TRUE(fails_with(again.status(), Code::kInvalidArgument, {"m.onnx.fpack", "already"}));
  replaced(model.path, model.folder.path("other.onnx"));
  fs::remove(pack_of(model.path));
  EXPECT_TRUE(same_bits(outputs_of(open(model.folder.path("other.onnx"))), model.expected));
}

// ---------------------------------------------------------------- the pack file

TEST(ReplacedModel, ItsPackFileIsNoCache) {
  const Replaced model;
  EXPECT_TRUE(PackFile::open(pack_of(model.path), BlobPlace::kSidecar).value()->is_only_copy());
  const auto file = ModelFile::open(model.path, {}).take();
  EXPECT_TRUE(fails_with(pack_model(file, fresh(), {}).status(), Code::kInvalidArgument,
                         {"m.onnx.fpack", "only copy"}));
  PackModelOptions elsewhere;
  elsewhere.path = model.folder.path("other.fpack");
  EXPECT_TRUE(pack_model(file, fresh(), elsewhere).is_ok());
  EXPECT_TRUE(fails_with(replace(model.folder.path("original.onnx"), model.path).status(),
                         Code::kInvalidArgument, {"only copy"}));
  fs::copy_file(pack_of(model.path), model.folder.path("original.onnx.fpack"));
  EXPECT_EQ(blobs_in(open(model.folder.path("original.onnx")), BlobPlace::kSidecar), 0);
  EXPECT_TRUE(same_bits(outputs_of(open(model.path)), model.expected));

  const TempFolder store;
  const std::string inside = store.path("0123456789abcdef.fpack");
  fs::copy_file(pack_of(model.path), inside);
  const auto opened = PackStore::open(store.path(), PackChecksum::kOff, true).take();
  ASSERT_TRUE(opened->collect(1).is_ok());
  EXPECT_TRUE(fs::exists(inside)) << "a limit of one byte";
}

TEST(ReplacedModel, NeedsItsPackFile) {
  const Replaced model;
  fs::remove(pack_of(model.path));
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kNoSuchFile, {"m.onnx.fpack"}));
}

TEST(ReplacedModel, NeedsAllOfItsPackFile) {
  const Replaced model;
  const std::string text = model.text();
  for (const size_t size : {size_t{100}, size_t{4096}, text.size() / 2, text.size() - 1}) {
    model.write_pack(text.substr(0, size));
    EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidGraph,
                           {"m.onnx", "m.onnx.fpack", std::to_string(size)}))
        << size;
  }
}

TEST(ReplacedModel, NeedsItsOwnPackFile) {
  const Replaced model;
  const Replaced other(0.75F);
  ASSERT_EQ(model.text().size(), other.text().size());
  model.write_pack(other.text());
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidGraph,
                         {"m.onnx", "m.onnx.fpack", "another one", "the model expects"}));
}

TEST(ReplacedModel, NeedsAPackFileOfAVersionThatIsKnown) {
  const Replaced model;
  std::string text = model.text();
  text[8] = 2;
  model.write_pack(text);
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidGraph,
                         {"m.onnx.fpack", "version 2, expected 1"}));
  text[0] = 'X';
  model.write_pack(text);
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidGraph, {"is no pack file"}));
}

TEST(ReplacedModel, ComparesChecksumsWhereThatIsWanted) {
  const Replaced model;
  std::string text = model.text();
  text[4096 + 5000] ^= 0x40;
  model.write_pack(text);
  EXPECT_TRUE(open_status(model.path).is_ok()) << "as with any file of weights";
  for (const PackChecksum checksum : {PackChecksum::kFirstUse, PackChecksum::kOpen}) {
    SessionOptions options = fresh();
    options.pack.checksum = checksum;
    EXPECT_TRUE(fails_with(open_status(model.path, options), Code::kInvalidGraph,
                           {"'a'", "damaged", "expected"}));
  }
}

TEST(ReplacedModel, TrustsItsPackFileAsFarAsItself) {
  const Replaced model;
  chmod(pack_of(model.path).c_str(), 0646);
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidArgument,
                         {"m.onnx.fpack", "can be written by"}));
  chmod(model.path.c_str(), 0646);
  EXPECT_TRUE(open_status(model.path).is_ok()) << "whoever writes to one may write to the other";
  if (geteuid() != 0) return;
  chmod(pack_of(model.path).c_str(), 0644);
  ASSERT_EQ(chown(pack_of(model.path).c_str(), 12345, 12345), 0);
  EXPECT_TRUE(fails_with(open_status(model.path), Code::kInvalidArgument,
                         {"m.onnx.fpack", "belongs to user 12345"}));
  ASSERT_EQ(chown(model.path.c_str(), 12345, 12345), 0);
  EXPECT_TRUE(open_status(model.path).is_ok());
}

// ---------------------------------------------------------------- what a file may say

PackedWeight matrix(int64_t k, int64_t n) {
  PackedWeight out;
  out.dtype = DType::kFloat;
  out.shape = {k, n};
  out.form.layout = Layout::kF32P16;
  out.form.version = kF32P16Version;
  out.form.k = k;
  out.form.n = n;
  out.form.row_stride = n;
  out.form.col_stride = 1;
  EXPECT_TRUE(f32p16_bytes(k, n, &out.form.bytes));
  return out;
}

// y = x w, w unpacked from bytes that stand in the model.
struct MovedBytes {
  PackedWeight weight = matrix(64, 64);
  std::vector<uint8_t> blob = some_bytes(64 * 64 * 4, 1);
  ElementType type = ElementType::kUint8;
  std::vector<int64_t> dims = {64 * 64 * 4};
  std::vector<std::string> inputs = {"blob"};
  std::vector<std::string> outputs = {"w"};

  MovedBytes() {
    for (size_t i = 3; i < blob.size(); i += 4) blob[i] = 0x3F;  // numbers near 1
    weight.checksum = checksum_bytes({blob.data(), blob.size()});
  }

  Status load() const {
    model_writer::ModelWriter writer = plain_model();
    writer.opset(kUnpackDomain, kUnpackVersion);
    GraphWriter& graph = writer.graph();
    graph.input("x", f32_type({2, 64}));
    const std::string_view text(reinterpret_cast<const char*>(blob.data()), blob.size());
    graph.initializer(TensorWriter("blob", type, dims).raw(text));
    auto& node = graph.node(kUnpackType, inputs, outputs).named("u").in_domain(kUnpackDomain);
    for (const AttributeDef& each : packed_weight_attributes(weight)) {
      if (each.type == AttributeDef::Type::kInt) node.attr_int(each.name, each.ints[0]);
      if (each.type == AttributeDef::Type::kInts) node.attr_ints(each.name, each.ints);
      if (each.type == AttributeDef::Type::kString) node.attr_string(each.name, each.strings[0]);
    }
    graph.node("MatMul", {"x", "w"}, {"y"});
    graph.output("y", f32_type({2, 64}));
    auto session = open_session(writer, fresh());
    if (!session.is_ok()) return std::move(session).take_status();
    outputs_of(session.value());
    return Status::ok();
  }
};

TEST(UnpackNode, ItsBytesMayHaveBeenMoved) {
  EXPECT_TRUE(MovedBytes().load().is_ok());
  MovedBytes damaged;
  damaged.blob[77] ^= 1;
  EXPECT_TRUE(fails_with(damaged.load(), Code::kInvalidGraph, {"'u'", "'blob'", "checksum"}));
}

TEST(UnpackNode, IsRefusedWhereItDoesNotFitItsBytes) {
  MovedBytes size;
  size.weight = matrix(64, 80);
  EXPECT_TRUE(fails_with(size.load(), Code::kInvalidGraph, {"'u' (Unpack)", "[20480]"}));
  MovedBytes type;
  type.type = ElementType::kInt8;
  EXPECT_TRUE(fails_with(type.load(), Code::kInvalidGraph, {"'u' (Unpack)", "int8"}));
  MovedBytes dims;
  dims.dims = {64, 256};
  EXPECT_TRUE(fails_with(dims.load(), Code::kInvalidGraph, {"'u' (Unpack)", "[64,256]"}));
  MovedBytes strides;
  strides.weight.form.col_stride = int64_t{1} << 40;
  EXPECT_TRUE(fails_with(strides.load(), Code::kInvalidGraph, {"'u' (Unpack)", "strides"}));
  MovedBytes shape;
  shape.weight.shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_TRUE(fails_with(shape.load(), Code::kInvalidGraph, {"'u' (Unpack)", "shape"}));
}

TEST(UnpackNode, IsRefusedWithoutBytesOfItsOwn) {
  MovedBytes computed;
  computed.inputs = {"x"};
  EXPECT_TRUE(fails_with(computed.load(), Code::kInvalidGraph, {"'u' (Unpack)", "initializer"}));
  MovedBytes itself;
  itself.inputs = {"w"};
  EXPECT_FALSE(itself.load().is_ok());
  MovedBytes none;
  none.inputs = {};
  EXPECT_TRUE(fails_with(none.load(), Code::kInvalidGraph, {"'u' (Unpack)", "0 inputs"}));
  MovedBytes two;
  two.outputs = {"w", "v"};
  EXPECT_TRUE(fails_with(two.load(), Code::kInvalidGraph, {"'u' (Unpack)", "2 outputs"}));
}

// ---------------------------------------------------------------- writing

TEST(ReplaceWeights, OfSmallWeightsOrOrtModelsIsRefused) {
  const TempFolder folder;
  model_writer::ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({3, 4}));
  writer.graph().initializer(floats("a", {4, 4}));
  writer.graph().node("MatMul", {"x", "a"}, {"y"});
  writer.graph().output("y", f32_type({3, 4}));
  const std::string small = folder.write("small.onnx", writer.serialize());
  EXPECT_TRUE(fails_with(replace(small).status(), Code::kInvalidArgument, {"4096"}));
  const std::string path = folder.write("m.onnx", small_model());
  restore(path, folder.path("m.ort"));
  EXPECT_TRUE(fails_with(replace(folder.path("m.ort")).status(), Code::kInvalidArgument,
                         {"m.ort", "folio convert"}));
  EXPECT_TRUE(fails_with(replace(path, folder.path("o.ort")).status(), Code::kInvalidArgument,
                         {"o.ort", "folio convert"}));
  const auto expected = outputs_of(open(path));
  replaced(folder.path("m.ort"), folder.path("of ort.onnx"));
  EXPECT_TRUE(same_bits(outputs_of(open(folder.path("of ort.onnx"))), expected));
}

int g_step = 0;
int g_fail_at = 0;

TEST(ReplaceWeights, LeavesTheModelAsItWasWhereADiskIsFull) {
  const TempFolder folder;
  const std::string model = small_model();
  const std::string path = folder.write("m.onnx", model);
  int last = 0;
  for (g_fail_at = 1; last == 0 && g_fail_at < 200; ++g_fail_at) {
    g_step = 0;
    NewFile::set_step_hook([](const char*) { return ++g_step != g_fail_at; });
    const auto done = replace(path);
    NewFile::set_step_hook(nullptr);
    if (done.is_ok()) {
      last = g_fail_at;
      break;
    }
    std::ifstream in(path, std::ios::binary);
    const std::string now{std::istreambuf_iterator<char>(in), {}};
    ASSERT_EQ(now, model) << "step " << g_fail_at;
    EXPECT_FALSE(fs::exists(pack_of(path))) << "step " << g_fail_at;
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1) << g_fail_at;
  }
  EXPECT_GT(last, 10);
  EXPECT_TRUE(open_status(path).is_ok());
}

TEST(ReplaceWeights, IsForAllSessionsAlike) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", small_model());
  const auto file = ModelFile::open(path, {}).take();
  SessionOptions options[3] = {fresh(), fresh(), fresh()};
  options[0].prepack = false;
  options[1].initializers = {{"a", make_tensor<float>({kSize, kSize}, numbers(1))}};
  options[2].free_dims = {{"N", 1}};
  for (const SessionOptions& each : options) {
    EXPECT_TRUE(fails_with(replace_weights(file, each, "").status(), Code::kInvalidArgument,
                           {"for all sessions alike"}));
  }
}

TEST(ReplaceWeights, CanBeCancelled) {
  const TempFolder folder;
  const std::string path = folder.write("m.onnx", small_model());
  const auto file = ModelFile::open(path, {}).take();
  for (const float until : {0.0F, 0.3F, 0.7F}) {
    SessionOptions options = fresh();
    options.progress = [&](float done, const char*) { return done < until; };
    EXPECT_EQ(replace_weights(file, options, "").status().code(), Code::kCancelled) << until;
    EXPECT_FALSE(fs::exists(pack_of(path)));
  }
}

}  // namespace
}  // namespace folio
