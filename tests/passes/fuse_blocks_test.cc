// fuse_blocks: products with weights of few bits become MatMulNBits; results stay.
#include <gtest/gtest.h>

#include "tests/passes/pass_tester.h"

namespace folio {
namespace {

using model_writer::ElementType;
using model_writer::GraphWriter;
using model_writer::ModelWriter;
using model_writer::TensorWriter;

constexpr int64_t kN = 6;

struct Case {
  ElementType type = ElementType::kUint4;
  int64_t k = 64;
  bool turned = false;     // stored as [K, N]
  int64_t block = 16;      // 0: none
  bool per_column = true;  // where there are no blocks
  bool zeros = true;
  bool gemm = false;
  std::string label() const {
    return testing::PrintToString(static_cast<int>(type)) + " k " + std::to_string(k) + " block " +
           std::to_string(block) + (turned ? " turned" : "") + (zeros ? " zeros" : "") +
           (gemm ? " gemm" : "");
  }
};

std::string codes(ElementType type, int64_t count, uint32_t seed) {
  const int64_t bits = model_writer::element_bits(type);
  std::string out(static_cast<size_t>((count * bits + 7) / 8), '\0');
  for (char& byte : out) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<char>(seed >> 24);
  }
  const int64_t used = count * bits % 8;
  if (used != 0) out.back() = static_cast<char>(out.back() & ((1 << used) - 1));
  return out;
}

// x [3, k] -> y [3, n].
ModelWriter product(const Case& c) {
  ModelWriter writer = plain_model(12, 25);
  GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({"rows", c.k}));
  const bool as_stored = !c.turned;
  const std::vector<int64_t> dims =
      as_stored ? std::vector<int64_t>{kN, c.k} : std::vector<int64_t>{c.k, kN};
  graph.initializer(TensorWriter("w", c.type, dims).raw(codes(c.type, kN * c.k, 7)));
  std::vector<int64_t> scales;
  const int64_t blocks = c.block == 0 ? 1 : (c.k + c.block - 1) / c.block;
  if (c.block != 0) {
    scales = as_stored ? std::vector<int64_t>{kN, blocks} : std::vector<int64_t>{blocks, kN};
  } else if (c.per_column) {
    scales = {kN};
  }
  int64_t count = 1;
  for (const int64_t dim : scales) count *= dim;
  std::vector<float> values = wave(count);
  for (float& value : values) value = 0.05F + 0.02F * value;
  graph.initializer(f32_tensor("s", scales, values));
  if (c.zeros) graph.initializer(TensorWriter("z", c.type, scales).raw(codes(c.type, count, 9)));
  auto& dq = graph.node(
      "DequantizeLinear",
      c.zeros ? std::vector<std::string>{"w", "s", "z"} : std::vector<std::string>{"w", "s"},
      {"wd"});
  const int64_t k_axis = as_stored ? 1 : 0;
  dq.attr_int("axis", c.block != 0 ? k_axis : 1 - k_axis);
  if (c.block != 0) dq.attr_int("block_size", c.block);
  if (c.gemm) {
    graph.initializer(f32_tensor("c", {kN}, wave(kN)));
    graph.node("Gemm", {"x", "wd", "c"}, {"y"}).attr_int("transB", as_stored);
  } else if (as_stored) {
    graph.node("Transpose", {"wd"}, {"wt"}).attr_ints("perm", {1, 0});
    graph.node("MatMul", {"x", "wt"}, {"y"});
  } else {
    graph.node("MatMul", {"x", "wd"}, {"y"});
  }
  graph.output("y", f32_type({"rows", kN}));
  return writer;
}

const Node* fused_node(const Case& c, std::unique_ptr<Model>* model) {
  *model = fused(product(c), {{"x", make_tensor<float>({3, c.k}, wave(3 * c.k))}});
  EXPECT_EQ(types_of((*model)->graph), "com.microsoft.MatMulNBits") << c.label();
  return (*model)->graph.nodes.empty() ? nullptr : &(*model)->graph.nodes[0];
}

TEST(FuseBlocks, EveryTypeLayoutAndScaleIsTaken) {
  for (const ElementType type : {ElementType::kUint4, ElementType::kInt4, ElementType::kUint2,
                                 ElementType::kInt2, ElementType::kUint8, ElementType::kInt8}) {
    for (const bool turned : {false, true}) {
      for (const bool zeros : {false, true}) {
        for (const bool gemm : {false, true}) {
          for (const int64_t block : {0, 16, 32}) {
            if (block == 0 && model_writer::element_bits(type) == 8) continue;
            Case c{type, 80, turned, block, !gemm, zeros, gemm};
            SCOPED_TRACE(c.label());
            std::unique_ptr<Model> model;
            const Node* node = fused_node(c, &model);
            ASSERT_NE(node, nullptr);
            EXPECT_EQ(node->attributes.get_int("K").value(), 80);
          }
        }
      }
    }
  }
}

TEST(FuseBlocks, UnsignedCodesOfWholeBlocksAreReadWhereTheyAre) {
  const auto is_view = [](const Case& c, size_t input) {
    std::unique_ptr<Model> model;
    const Node* node = fused_node(c, &model);
    const GraphValue* value = node ? model->graph.constant_value(node->inputs[input]) : nullptr;
    return value && value->initializer->tensor.has_value();  // no recipe
  };
  Case c;
  EXPECT_TRUE(is_view(c, 1));
  EXPECT_TRUE(is_view(c, 3));  // zero points of 4 blocks: two bytes a row
  c.k = 72;                    // the last block is not whole
  EXPECT_FALSE(is_view(c, 1));
  c.k = 48;  // three zero points do not fill bytes
  EXPECT_TRUE(is_view(c, 1));
  EXPECT_FALSE(is_view(c, 3));
  c.type = ElementType::kInt4;
  EXPECT_FALSE(is_view(c, 1));
  c.type = ElementType::kUint8;
  EXPECT_TRUE(is_view(c, 1));
  c.turned = true;
  EXPECT_FALSE(is_view(c, 1));
}

TEST(FuseBlocks, OtherBlocksAxesAndReadersStay) {
  const auto stays = [](const Case& c, ModelWriter writer) {
    const auto model = fused(writer, {{"x", make_tensor<float>({3, c.k}, wave(3 * c.k))}});
    EXPECT_EQ(count_nodes(model->graph, "MatMulNBits"), 0);
  };
  Case c;
  c.block = 8;  // too short
  stays(c, product(c));
  c.block = 48;  // no power of two
  stays(c, product(c));
  c.block = 0;
  c.type = ElementType::kInt8;  // one scale a column: float panels are faster
  stays(c, product(c));
}

TEST(FuseBlocks, SavedModelsKeepTheirDequantizeLinear) {
  const Case c;
  const auto model = optimized(product(c), Optimize::kExtended);
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  EXPECT_EQ(count_nodes(model.value()->graph, "MatMulNBits"), 0);
  EXPECT_EQ(count_nodes(model.value()->graph, "DequantizeLinear"), 1);
}

}  // namespace
}  // namespace folio
