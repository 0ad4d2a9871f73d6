// Runs: who owns outputs, where they are written, what is skipped, and floating point control.
#include "core/run/executor.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "core/os/run_blocks.h"
#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

Value vector_of(std::vector<float> values) {
  const auto count = static_cast<int64_t>(values.size());
  return make_tensor<float>({count}, values);
}

// What the caller has in `memory`, as a tensor of kind kBorrowed.
Tensor borrow(std::vector<float>* memory) {
  const auto count = static_cast<int64_t>(memory->size());
  Ref<Buffer> buffer =
      view_buffer(Buffer::Kind::kBorrowed, memory->data(), memory->size() * sizeof(float), nullptr);
  return Tensor(DType::kFloat, {count}, reinterpret_cast<uint8_t*>(memory->data()),
                std::move(buffer));
}

ModelWriter vector_model() {
  ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({"n"}));
  return writer;
}

TEST(Executor, OutputsStayAsTheyAreWhenTheNextRunStarts) {
  // Every way for a value to become an output: computed, a view, a view of a view, the same twice.
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.initializer(i64_tensor("column", {2}, {-1, 1}));
  graph.initializer(i64_tensor("flat", {1}, {-1}));
  graph.node("Neg", {"x"}, {"a"});
  graph.node("Reshape", {"a", "column"}, {"b"});
  graph.node("Reshape", {"b", "flat"}, {"c"});
  graph.node("Abs", {"c"}, {"d"});
  graph.node("Reshape", {"x", "column"}, {"e"});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    graph.output(name, model_writer::Type::tensor_of_unknown_rank(kF32));
  }
  graph.output("a", f32_type({"n"}));
  graph.output("x", f32_type({"n"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const Value first_input = vector_of({1, -2, 3});
  auto first = run_all(*session.value(), {{"x", first_input}});
  ASSERT_TRUE(first.is_ok()) << text_of(first.status());
  std::vector<std::vector<float>> before;
  for (const Value& value : first.value()) before.push_back(floats_of(value));
  // The next run, and a caller who fills his input anew, change nothing of what was given out.
  ASSERT_TRUE(run_all(*session.value(), {{"x", vector_of({7, 7, 7})}}).is_ok());
  Tensor input = first_input.tensor();
  std::fill_n(input.data_mut<float>(), 3, 99.0F);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(floats_of(first.value()[i]), before[i]) << "output " << i;
    EXPECT_TRUE(first.value()[i].tensor().escapes());
  }
  // No two outputs share bytes.
  std::fill_n(first.value()[0].tensor().data_mut<float>(), 3, 55.0F);
  for (size_t i = 1; i < before.size(); ++i) {
    EXPECT_EQ(floats_of(first.value()[i]), before[i]) << "output " << i;
  }
}

TEST(Executor, WritingToAnOutputDoesNotReachTheWeights) {
  for (const Optimize level : {Optimize::kAll, Optimize::kOff}) {
    ModelWriter writer = vector_model();
    GraphWriter& graph = writer.graph();
    graph.initializer(f32_tensor("w", {2}, {1, 2}));
    graph.node("Identity", {"w"}, {"copy"});
    graph.node("Add", {"x", "w"}, {"y"});
    for (const char* name : {"w", "copy", "y"}) graph.output(name, f32_type({2}));
    SessionOptions options;
    options.optimize = level;
    const auto session = open_session(writer, options);
    ASSERT_TRUE(session.is_ok()) << text_of(session.status());
    for (int run = 0; run < 2; ++run) {
      auto outputs = run_all(*session.value(), {{"x", vector_of({10, 20})}});
      ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
      EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{1, 2}));
      EXPECT_EQ(floats_of(outputs.value()[1]), (std::vector<float>{1, 2}));
      EXPECT_EQ(floats_of(outputs.value()[2]), (std::vector<float>{11, 22}));
      for (Value& value : outputs.value()) std::fill_n(value.tensor().data_mut<float>(), 2, -1.0F);
    }
  }
}

TEST(Executor, OutputsOfBranchesMayBeCaptured) {
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.initializer(f32_tensor("w", {2}, {1, 2}));
  graph.node("Neg", {"x"}, {"n"});
  GraphWriter then_graph("then");
  then_graph.output("n", f32_type({2}));
  then_graph.output("w", f32_type({2}));
  then_graph.output("x", f32_type({2}));
  GraphWriter else_graph = then_graph;
  graph.node("If", {"c"}, {"p", "q", "r"})
      .attr_graph("then_branch", std::move(then_graph))
      .attr_graph("else_branch", std::move(else_graph));
  for (const char* name : {"p", "q", "r"}) graph.output(name, f32_type({2}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const std::vector<NamedValue> inputs{{"x", vector_of({5, 6})},
                                       {"c", make_tensor<bool>({}, {true})}};
  for (int run = 0; run < 2; ++run) {
    auto outputs = run_all(*session.value(), inputs);
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{-5, -6}));
    EXPECT_EQ(floats_of(outputs.value()[1]), (std::vector<float>{1, 2}));
    EXPECT_EQ(floats_of(outputs.value()[2]), (std::vector<float>{5, 6}));
    for (Value& value : outputs.value()) std::fill_n(value.tensor().data_mut<float>(), 2, -1.0F);
  }
}

size_t g_largest = 0;

TEST(Executor, MemoryGivenForAnOutputIsWrittenDirectly) {
  ModelWriter writer = vector_model();
  writer.graph().node("Neg", {"x"}, {"a"});
  writer.graph().node("Abs", {"a"}, {"y"});
  writer.graph().output("y", f32_type({"n"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  constexpr size_t kCount = 100000;
  const Value input = vector_of(std::vector<float>(kCount, 3));
  std::vector<float> memory(kCount, -1);
  std::vector<Value> outputs;
  ASSERT_TRUE(session.value()->run({}, {{"x", input}}, {{"y", borrow(&memory)}}, &outputs).is_ok());
  // Once more, with the arena there already: nothing as large as the output is allocated.
  g_largest = 0;
  set_allocation_hook([](size_t bytes) {
    g_largest = std::max(g_largest, bytes);
    return true;
  });
  const Status status =
      session.value()->run({}, {{"x", input}}, {{"y", borrow(&memory)}}, &outputs);
  set_allocation_hook(nullptr);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_LT(g_largest, kCount * sizeof(float));
  EXPECT_EQ(outputs[0].tensor().raw(), reinterpret_cast<uint8_t*>(memory.data()));
  EXPECT_EQ(memory, std::vector<float>(kCount, 3));
}

TEST(Executor, WeightsThatABranchGivesAreNotCopied) {
  // As LongRoPE chooses its tables: constants of the branch, and one of the graph around it.
  constexpr int64_t kCount = 100000;
  const std::vector<float> table(kCount, 2.0F);
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.input("c", model_writer::Type::tensor(kBoolean, {}));
  graph.initializer(f32_tensor("outer", {kCount}, table));
  graph.initializer(i64_tensor("at", {1}, {7}));
  const auto branch = [&](const char* name) {
    GraphWriter out(name);
    out.initializer(f32_tensor("inner", {kCount}, table));
    out.output("inner", f32_type({kCount}));
    out.output("outer", f32_type({kCount}));
    return out;
  };
  graph.node("If", {"c"}, {"p", "q"})
      .attr_graph("then_branch", branch("then"))
      .attr_graph("else_branch", branch("else"));
  graph.node("Gather", {"p", "at"}, {"of_inner"});
  graph.node("Gather", {"q", "at"}, {"of_outer"});
  graph.node("Add", {"of_inner", "of_outer"}, {"y"});
  graph.output("y", f32_type({1}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const std::vector<NamedValue> inputs{{"x", vector_of({5})},
                                       {"c", make_tensor<bool>({}, {false})}};
  BlockPool::process().trim();
  g_largest = 0;
  set_allocation_hook([](size_t bytes) {
    g_largest = std::max(g_largest, bytes);
    return true;
  });
  const auto outputs = run_all(*session.value(), inputs);
  set_allocation_hook(nullptr);
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{4}));
  EXPECT_LT(g_largest, kCount * sizeof(float));
}

TEST(Executor, MemoryOfTheWrongKindIsNamed) {
  ModelWriter writer = vector_model();
  writer.graph().node("Neg", {"x"}, {"y"});
  writer.graph().output("y", f32_type({"n"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok());
  std::vector<float> memory(3, -1);
  std::vector<Value> outputs;
  const Status shape =
      session.value()->run({}, {{"x", vector_of({1, 2})}}, {{"y", borrow(&memory)}}, &outputs);
  EXPECT_TRUE(fails_with(shape, Code::kInvalidArgument, {"'y'", "[2]", "[3]"}));
  const Status dtype = session.value()->run({}, {{"x", vector_of({1, 2})}},
                                            {{"y", make_tensor<int32_t>({2}, {0, 0})}}, &outputs);
  EXPECT_TRUE(fails_with(dtype, Code::kInvalidArgument, {"'y'", "float", "int32"}));
  EXPECT_TRUE(outputs.empty());
}

TEST(Executor, MemoryOfAnInputMayTakeAnOutput) {
  // y = -x is ready before x is read for the last time; z = x + y must still see the old x.
  ModelWriter writer = vector_model();
  writer.graph().node("Neg", {"x"}, {"y"});
  writer.graph().node("Add", {"x", "y"}, {"z"});
  writer.graph().output("y", f32_type({"n"}));
  writer.graph().output("z", f32_type({"n"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok());
  std::vector<float> memory{1, 2, 3};
  std::vector<Value> outputs;
  const Status status = session.value()->run({}, {{"x", borrow(&memory)}},
                                             {{"y", borrow(&memory)}, {"z", Tensor()}}, &outputs);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(memory, (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(floats_of(outputs[1]), (std::vector<float>{0, 0, 0}));
}

TEST(Executor, MemoryTakesInputsConstantsAndDuplicates) {
  ModelWriter writer = vector_model();
  writer.graph().initializer(f32_tensor("w", {2}, {8, 9}));
  writer.graph().node("Neg", {"x"}, {"y"});
  for (const char* name : {"x", "w", "y", "y"}) writer.graph().output(name, f32_type({2}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  std::vector<std::vector<float>> memory(4, std::vector<float>(2, -7));
  std::vector<WantedOutput> wanted{{"x", borrow(&memory[0])},
                                   {"w", borrow(&memory[1])},
                                   {"y", borrow(&memory[2])},
                                   {"y", borrow(&memory[3])}};
  std::vector<Value> outputs;
  const Status status = session.value()->run({}, {{"x", vector_of({1, 2})}}, wanted, &outputs);
  ASSERT_TRUE(status.is_ok()) << text_of(status);
  EXPECT_EQ(memory[0], (std::vector<float>{1, 2}));
  EXPECT_EQ(memory[1], (std::vector<float>{8, 9}));
  EXPECT_EQ(memory[2], (std::vector<float>{-1, -2}));
  EXPECT_EQ(memory[3], (std::vector<float>{-1, -2}));
}

TEST(Executor, StepsThatNoWantedOutputNeedsAreSkipped) {
  // `bad` fails whenever it runs.
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.input("at", model_writer::Type::tensor(kI64, {1}));
  graph.node("Neg", {"x"}, {"shared"});
  graph.node("Abs", {"shared"}, {"good"});
  graph.node("Gather", {"shared", "at"}, {"bad"}).named("gather");
  graph.output("bad", f32_type({1}));
  graph.output("good", f32_type({"n"}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const std::vector<NamedValue> inputs{{"x", vector_of({1, -2})},
                                       {"at", make_tensor<int64_t>({1}, {50})}};
  std::vector<Value> outputs;
  const Status good = session.value()->run({}, inputs, {{"good", Tensor()}}, &outputs);
  ASSERT_TRUE(good.is_ok()) << text_of(good);
  EXPECT_EQ(floats_of(outputs[0]), (std::vector<float>{1, 2}));
  const Status bad = session.value()->run({}, inputs, {{"bad", Tensor()}}, &outputs);
  ASSERT_FALSE(bad.is_ok());
  EXPECT_NE(bad.message().find("node 'gather' (Gather)"), std::string_view::npos) << bad.message();
  EXPECT_EQ(outputs.size(), 1U) << "an error must leave the outputs alone";
  EXPECT_TRUE(session.value()->run({}, inputs, {}, &outputs).is_ok());
  EXPECT_TRUE(outputs.empty());
}

TEST(Executor, OverridableDefaultsAreUsedUntilGiven) {
  ModelWriter writer = vector_model();
  writer.graph().input("w", f32_type({2}));
  writer.graph().initializer(f32_tensor("w", {2}, {1, 2}));
  writer.graph().node("Add", {"x", "w"}, {"y"});
  writer.graph().output("y", f32_type({2}));
  writer.graph().output("w", f32_type({2}));
  const auto session = open_session(writer);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  for (int run = 0; run < 2; ++run) {
    auto without = run_all(*session.value(), {{"x", vector_of({10, 20})}});
    ASSERT_TRUE(without.is_ok()) << text_of(without.status());
    EXPECT_EQ(floats_of(without.value()[0]), (std::vector<float>{11, 22}));
    EXPECT_EQ(floats_of(without.value()[1]), (std::vector<float>{1, 2}));
    std::fill_n(without.value()[1].tensor().data_mut<float>(), 2, 77.0F);
  }
  const auto with =
      run_all(*session.value(), {{"x", vector_of({10, 20})}, {"w", vector_of({5, 6})}});
  ASSERT_TRUE(with.is_ok());
  EXPECT_EQ(floats_of(with.value()[0]), (std::vector<float>{15, 26}));
}

TEST(Executor, EqualSymbolsMayDifferAtRunTime) {
  // Both inputs claim "n"; the second is given longer than the first.
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.input("z", f32_type({"n"}));
  graph.node("Neg", {"z"}, {"a"});
  graph.node("Neg", {"a"}, {"b"});
  graph.node("Neg", {"b"}, {"y"});
  graph.node("Abs", {"x"}, {"w"});
  graph.output("y", f32_type({"n"}));
  graph.output("w", f32_type({"n"}));
  std::vector<float> longer(5000);
  for (size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<float>(i);
  const auto outputs = run_once(writer, {{"x", vector_of({1})}, {"z", vector_of(longer)}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  for (float& value : longer) value = -value;
  EXPECT_EQ(floats_of(outputs.value()[0]), longer);
}

TEST(Executor, DenormalsAreFlushedOnRequestAndTheCallersSettingIsKept) {
  ModelWriter writer = vector_model();
  writer.graph().initializer(f32_tensor("one", {1}, {1}));
  writer.graph().node("Mul", {"x", "one"}, {"y"});
  writer.graph().output("y", f32_type({"n"}));
  const unsigned before = _mm_getcsr();
  constexpr unsigned kOdd = 0x1f80 | 0x4000 | 0x8000;  // round up, flush to zero
  for (const bool flush : {false, true}) {
    SessionOptions options;
    options.flush_denormals = flush;
    _mm_setcsr(kOdd);
    const auto session = open_session(writer, options);
    const unsigned after_load = _mm_getcsr() & ~0x3fU;  // without the sticky flags
    ASSERT_TRUE(session.is_ok()) << text_of(session.status());
    const auto outputs = run_all(*session.value(), {{"x", vector_of({1e-40F, 1e-40F})}});
    const unsigned after_run = _mm_getcsr() & ~0x3fU;
    _mm_setcsr(before);
    ASSERT_TRUE(outputs.is_ok());
    EXPECT_EQ(after_load, kOdd);
    EXPECT_EQ(after_run, kOdd);
    EXPECT_EQ(floats_of(outputs.value()[0])[0] == 0, flush);
  }
}

TEST(Executor, FoldingDoesNotDependOnTheHostsFloatSetting) {
  ModelWriter writer = vector_model();
  writer.graph().initializer(f32_tensor("tiny", {1}, {1e-40F}));
  writer.graph().initializer(f32_tensor("one", {1}, {1}));
  writer.graph().node("Mul", {"tiny", "one"}, {"t"});
  writer.graph().node("Identity", {"t"}, {"y"});
  writer.graph().output("y", f32_type({1}));
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80 | 0x8040);
  const auto session = open_session(writer);
  _mm_setcsr(before);
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  const auto outputs = run_all(*session.value(), {});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0])[0], 1e-40F);
}

// x[n, k] * w[k, n] through MatMul, then Gemm with a transposed weight and a bias.
ModelWriter product_model(int64_t k, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto noise = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
  };
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"m", k}));
  graph.initializer(f32_tensor("w", {k, n}, noise(k * n)));
  graph.initializer(f32_tensor("v", {k, n}, noise(k * n)));
  graph.initializer(f32_tensor("b", {k}, noise(k)));
  graph.node("MatMul", {"x", "w"}, {"p"});
  graph.node("Gemm", {"p", "v", "b"}, {"y"}).attr_int("transB", 1).attr_float("alpha", 0.5F);
  graph.output("p", f32_type({"m", n}));
  graph.output("y", f32_type({"m", k}));
  return writer;
}

TEST(Executor, ResultsAreTheSameBitsHoweverTheyAreMade) {
  uint32_t seed = 0;
  for (const auto& [m, k, n] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 64, 64}, {3, 7, 17}, {5, 100, 33}, {64, 65, 130}, {130, 256, 96}}) {
    const ModelWriter writer = product_model(k, n, ++seed);
    std::mt19937 random(seed);
    std::vector<float> x(static_cast<size_t>(m * k));
    for (float& value : x) value = static_cast<float>(random() % 2000) / 1000 - 1;
    std::vector<std::vector<float>> expected;
    for (const bool prepack : {true, false}) {
      for (const int threads : {1, 2}) {
        SessionOptions options;
        options.prepack = prepack;
        options.threads = threads;
        const auto outputs = run_once(writer, {{"x", make_tensor<float>({m, k}, x)}}, options);
        ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
        std::vector<std::vector<float>> got;
        for (const Value& value : outputs.value()) got.push_back(floats_of(value));
        if (expected.empty()) expected = got;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i].size(), expected[i].size());
          EXPECT_EQ(std::memcmp(got[i].data(), expected[i].data(), got[i].size() * sizeof(float)),
                    0)
              << "output " << i << " of " << m << "x" << k << "x" << n << ", prepack " << prepack
              << ", threads " << threads;
        }
      }
    }
  }
}

// A carried shape may change, so inference forgets it; the file says what a row would be.
TEST(Executor, AStackOfNothingHasTheDeclaredDims) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("a", f32_type({3}));
  graph.initializer(i64_tensor("trips", {}, {0}));
  GraphWriter body("body");
  body.input("i", model_writer::Type::tensor(kI64, {}));
  body.input("go", model_writer::Type::tensor(kBoolean, {}));
  body.input("b", f32_type({3}));
  body.node("Identity", {"go"}, {"again"});
  body.node("Neg", {"b"}, {"next"});
  body.node("Abs", {"b"}, {"row"});
  body.output("again", model_writer::Type::tensor(kBoolean, {}));
  body.output("next", f32_type({3}));
  body.output("row", f32_type({3}));
  graph.node("Loop", {"trips", "", "a"}, {"last", "rows"}).attr_graph("body", std::move(body));
  graph.output("rows", f32_type({"n", 3}));
  const auto outputs = run_once(writer, {{"a", make_tensor<float>({3}, {1, 2, 3})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(outputs.value()[0].tensor().shape(), Shape({0, 3}));
}

// ---------------------------------------------------------------- memory that is not there

bool refuse_large(size_t bytes) { return bytes < size_t{1} << 20; }
bool throw_for_large(size_t bytes) {
  if (!refuse_large(bytes)) throw std::bad_alloc();
  return true;
}

// Of a run with no room for a MiB.
Status status_without(bool (*hook)(size_t), const ModelWriter& writer) {
  const auto session = open_session(writer);
  EXPECT_TRUE(session.is_ok()) << text_of(session.status());
  ArenaPool::process().trim();
  BlockPool::process().trim();
  const Value x = vector_of(std::vector<float>(size_t{1} << 18, 1));
  set_allocation_hook(hook);
  Status status = run_all(*session.value(), {{"x", x}}).status();
  set_allocation_hook(nullptr);
  return status;
}

TEST(Executor, NamesTheNodeForWhichThereIsNoMemory) {
  ModelWriter writer = vector_model();
  writer.graph().node("NonZero", {"x"}, {"y"}).named("places");
  writer.graph().output("y", model_writer::Type::tensor_of_unknown_rank(kI64));
  for (const auto hook : {refuse_large, throw_for_large}) {
    EXPECT_TRUE(
        fails_with(status_without(hook, writer), Code::kOutOfMemory, {"node 'places' (NonZero)"}));
  }
}

TEST(Executor, NamesTheOutputThatThereIsNoMemoryFor) {
  ModelWriter writer = vector_model();
  writer.graph().output("x", f32_type({"n"}));
  EXPECT_TRUE(fails_with(status_without(refuse_large, writer), Code::kOutOfMemory,
                         {"output 'x'", " bytes"}));
}

TEST(Executor, SaysThatTheArenaIsOfAllNodes) {
  ModelWriter writer = vector_model();
  GraphWriter& graph = writer.graph();
  graph.node("Neg", {"x"}, {"a"});
  graph.node("Cos", {"a"}, {"b"});
  graph.node("ReduceSum", {"b"}, {"y"});
  graph.output("y", model_writer::Type::tensor_of_unknown_rank(kF32));
  EXPECT_TRUE(fails_with(status_without(refuse_large, writer), Code::kOutOfMemory,
                         {"arena of ", " bytes", "values of all nodes"}));
}

}  // namespace
}  // namespace folio
