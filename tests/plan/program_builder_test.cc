// build_program: slots, frees, captures, constants and blobs.
#include "core/plan/program_builder.h"

#include <gtest/gtest.h>

#include "tests/support/model_tester.h"

namespace folio {
namespace {

using model_writer::GraphWriter;
using model_writer::ModelWriter;

Result<Ref<Program>> program_of(const ModelWriter& writer, PackedCache* cache,
                                Optimize level = Optimize::kAll) {
  FOLIO_TRY(std::unique_ptr<Model> model, optimized(writer, level));
  ProgramOptions options;
  options.prepack = cache != nullptr;
  options.cache = cache;
  return build_program(model.get(), test_evaluator(), options);
}

// x[n, 64] * w[64, 64] -> Relu -> y
ModelWriter matmul_model(int copies = 1) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 64}));
  graph.initializer(f32_tensor("w", {64, 64}, std::vector<float>(64 * 64, 0.5F)));
  std::string last = "x";
  for (int i = 0; i < copies; ++i) {
    const std::string product = "p" + std::to_string(i);
    graph.node("MatMul", {last, "w"}, {product});
    last = product;
  }
  graph.node("Relu", {last}, {"y"});
  graph.output("y", f32_type({"n", 64}));
  return writer;
}

TEST(ProgramBuilder, EverySlotIsFreedAfterItsLastReader) {
  const auto made = program_of(matmul_model(3), nullptr);
  ASSERT_TRUE(made.is_ok()) << text_of(made.status());
  const Program& program = *made.value();
  std::vector<int> freed(static_cast<size_t>(program.slot_count), 0);
  for (const Step& step : program.steps) {
    for (const Operand input : step.inputs) {
      if (!input.is_slot()) continue;
      EXPECT_EQ(freed[input.index()], 0) << "read after it was freed";
    }
    for (const int32_t slot : step.frees) ++freed[static_cast<size_t>(slot)];
  }
  for (const PortInfo& output : program.outputs) {
    ASSERT_TRUE(output.source.is_slot());
    EXPECT_EQ(freed[output.source.index()], 0);
    freed[output.source.index()] = 1;
  }
  for (const int count : freed) EXPECT_EQ(count, 1);
}

TEST(ProgramBuilder, OneWeightIsPackedOnceForAllItsReaders) {
  PackedCache cache;
  const auto made = program_of(matmul_model(3), &cache);
  ASSERT_TRUE(made.is_ok()) << text_of(made.status());
  const PackedCache::Stats stats = cache.stats();
  EXPECT_EQ(stats.misses, 1U);
  EXPECT_EQ(stats.hits, 2U);
  EXPECT_EQ(stats.live_blobs, 1U);
}

TEST(ProgramBuilder, BlobsDieWithTheLastProgram) {
  PackedCache cache;
  {
    const auto first = program_of(matmul_model(), &cache);
    const auto second = program_of(matmul_model(), &cache);
    ASSERT_TRUE(first.is_ok() && second.is_ok());
    EXPECT_EQ(cache.stats().live_blobs, 1U);
    ASSERT_EQ(first.value()->packed_now().size(), 1U);
    EXPECT_EQ(first.value()->packed_now()[0], second.value()->packed_now()[0]);
  }
  EXPECT_EQ(cache.stats().live_blobs, 0U);
  EXPECT_EQ(cache.stats().live_bytes, 0U);
}

TEST(ProgramBuilder, ConstantsAreNeverOursToGiveAway) {
  // A small initializer lives on the heap; outputs that are views of it must be copied.
  const auto made = program_of(matmul_model(), nullptr);
  ASSERT_TRUE(made.is_ok());
  for (const Value& constant : made.value()->constants) EXPECT_FALSE(constant.tensor().escapes());
}

// x * (-w) with a computed weight; `also_added` reads it once more.
ModelWriter computed_weight_model(bool also_added) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({64, 64}));
  graph.initializer(f32_tensor("w", {64, 64}, std::vector<float>(64 * 64, 0.5F)));
  graph.node("Neg", {"w"}, {"v"});
  graph.node("MatMul", {"x", "v"}, {also_added ? "p" : "y"});
  if (also_added) graph.node("Mul", {"p", "v"}, {"y"});
  graph.output("y", f32_type({64, 64}));
  return writer;
}

TEST(ProgramBuilder, BytesOfAComputedWeightGoOnceItIsPacked) {
  PackedCache cache;
  const auto made = program_of(computed_weight_model(false), &cache);
  ASSERT_TRUE(made.is_ok()) << text_of(made.status());
  ASSERT_EQ(made.value()->constants.size(), 1U);
  EXPECT_EQ(made.value()->constants[0].tensor().raw(), nullptr);
  EXPECT_EQ(made.value()->constants[0].tensor().shape(), Shape({64, 64}));
  const auto outputs = run_once(computed_weight_model(false),
                                {{"x", make_tensor<float>({64, 64}, std::vector<float>(4096, 1))}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), std::vector<float>(4096, -32));
}

TEST(ProgramBuilder, BytesOfAWeightThatOthersReadStay) {
  PackedCache cache;
  const auto shared = program_of(computed_weight_model(true), &cache);
  ASSERT_TRUE(shared.is_ok()) << text_of(shared.status());
  for (const Value& constant : shared.value()->constants) {
    EXPECT_NE(constant.tensor().raw(), nullptr);
  }
  const auto unpacked = program_of(computed_weight_model(false), nullptr);
  ASSERT_TRUE(unpacked.is_ok()) << text_of(unpacked.status());
  EXPECT_NE(unpacked.value()->constants[0].tensor().raw(), nullptr);
}

TEST(ProgramBuilder, UnreadInputsAreMarked) {
  ModelWriter writer = matmul_model();
  writer.graph().input("unused", f32_type({1}));
  const auto made = program_of(writer, nullptr);
  ASSERT_TRUE(made.is_ok());
  ASSERT_EQ(made.value()->inputs.size(), 2U);
  EXPECT_TRUE(made.value()->inputs[0].is_read);
  EXPECT_FALSE(made.value()->inputs[1].is_read);
}

TEST(ProgramBuilder, DefaultsOfInputsAreAligned) {
  // Padding in front moves the payload; at least one of the four shifts is unaligned.
  for (size_t shift = 0; shift < 4; ++shift) {
    ModelWriter writer = plain_model();
    writer.doc(std::string(shift + 1, 'd'));
    GraphWriter& graph = writer.graph();
    graph.doc(std::string(shift + 1, 'd'));
    graph.input("w", f32_type({2000}));
    std::string raw(8000, '\0');
    graph.initializer(
        model_writer::TensorWriter("w", kF32, {2000}).doc(std::string(shift, 'x')).raw(raw));
    graph.node("Neg", {"w"}, {"y"});
    graph.output("y", f32_type({2000}));
    const auto made = program_of(writer, nullptr);
    ASSERT_TRUE(made.is_ok()) << text_of(made.status());
    ASSERT_TRUE(made.value()->inputs[0].has_default);
    EXPECT_TRUE(is_aligned_for(made.value()->inputs[0].default_value.tensor()));
  }
}

TEST(ProgramBuilder, DeepCapturesReachThroughEveryLevel) {
  // The innermost of 20 nested branches reads x of the outermost graph.
  GraphWriter graph("level20");
  graph.node("Neg", {"x"}, {"y20"});
  graph.output("y20", f32_type({2}));
  for (int level = 19; level > 0; --level) {
    const std::string output = "y" + std::to_string(level);
    GraphWriter outer("level" + std::to_string(level));
    GraphWriter other("other" + std::to_string(level));
    other.output("x", f32_type({2}));  // a captured value as it is
    outer.node("If", {"c"}, {output})
        .attr_graph("then_branch", std::move(graph))
        .attr_graph("else_branch", std::move(other));
    outer.output(output, f32_type({2}));
    graph = std::move(outer);
  }
  ModelWriter writer = plain_model();
  writer.graph().input("c", model_writer::Type::tensor(kBoolean, {}));
  writer.graph().input("x", f32_type({2}));
  GraphWriter other("other");
  other.output("x", f32_type({2}));
  writer.graph()
      .node("If", {"c"}, {"y"})
      .attr_graph("then_branch", std::move(graph))
      .attr_graph("else_branch", std::move(other));
  writer.graph().output("y", f32_type({2}));
  for (const bool condition : {true, false}) {
    const auto outputs = run_once(writer, {{"c", make_tensor<bool>({}, {condition})},
                                           {"x", make_tensor<float>({2}, {1, -2})}});
    ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
    EXPECT_EQ(floats_of(outputs.value()[0]),
              condition ? (std::vector<float>{-1, 2}) : (std::vector<float>{1, -2}));
  }
}

TEST(ProgramBuilder, ManyNodesAreFast) {
  ModelWriter writer = plain_model();
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"n", 8}));
  std::string last = "x";
  for (int i = 0; i < 20000; ++i) {
    const std::string next = "v" + std::to_string(i);
    graph.node("Neg", {last}, {next});
    last = next;
  }
  graph.output(last, f32_type({"n", 8}));
  const auto outputs =
      run_once(writer, {{"x", make_tensor<float>({1, 8}, {1, 2, 3, 4, 5, 6, 7, 8})}});
  ASSERT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

}  // namespace
}  // namespace folio
