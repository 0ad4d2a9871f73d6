#include <algorithm>

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr uint64_t kBlock = 32;

// IR 10 and opset 21 brought 4-bit tensors and blocks in DequantizeLinear.
constexpr int64_t kInt4IrVersion = 10;
constexpr int64_t kInt4Opset = 21;

// Integers in [-8, 7] times this are weights whose variance is about 1 / fan_in.
float int4_scale(uint64_t fan_in) { return weight_scale(fan_in) / 8.0f; }

class Int4Builder {
 public:
  Int4Builder(GraphWriter& graph, uint64_t seed, uint64_t width)
      : graph_(graph), seeds_(seed), width_(width), dim_(static_cast<int64_t>(width)) {}

  // com.microsoft MatMulNBits: b [n, blocks, 16] holds two weights in a byte, low half first.
  // Without zero points a weight of 8 means zero.
  void matmul_nbits(const std::string& name, const std::string& x, const std::string& y,
                    const std::string& zero_points) {
    const uint64_t blocks = width_ / kBlock;
    std::vector<std::string> inputs = {x, name + ".weight", name + ".scale"};
    graph_.initializer(
        TensorWriter(name + ".weight", ElementType::kUint8,
                     {dim_, static_cast<int64_t>(blocks), static_cast<int64_t>(kBlock / 2)})
            .raw(random_bytes_payload(seeds_.next(), width_ * blocks * kBlock / 2)));
    scales(name + ".scale", {dim_ * static_cast<int64_t>(blocks)}, width_ * blocks);
    if (!zero_points.empty()) {
      // One row of packed 4-bit numbers for each column of the result: all 7 or 8.
      const uint64_t row_bytes = (blocks + 1) / 2;
      std::vector<uint8_t> packed = random_bytes(seeds_.next(), width_ * row_bytes);
      for (uint8_t& byte : packed) byte = static_cast<uint8_t>(0x77 + (byte & 0x11));
      graph_.initializer(u8_tensor(zero_points, {dim_ * static_cast<int64_t>(row_bytes)}, packed));
      inputs.push_back(zero_points);
    }
    graph_.node("MatMulNBits", inputs, {y})
        .named(name + "/MatMulNBits")
        .in_domain("com.microsoft")
        .attr_int("K", dim_)
        .attr_int("N", dim_)
        .attr_int("bits", 4)
        .attr_int("block_size", static_cast<int64_t>(kBlock));
  }

  // DequantizeLinear of an INT4 tensor in blocks of 32 along the inner dimension.
  void dequantize_blocks(const std::string& name, const std::string& x, const std::string& y) {
    const int64_t blocks = dim_ / static_cast<int64_t>(kBlock);
    packed_tensor(name + ".weight", ElementType::kInt4);
    scales(name + ".scale", {blocks, dim_}, static_cast<uint64_t>(blocks) * width_);
    graph_.node("DequantizeLinear", {name + ".weight", name + ".scale"}, {name + ".dequantized"})
        .named(name + "/DequantizeLinear")
        .attr_int("axis", 0)
        .attr_int("block_size", static_cast<int64_t>(kBlock));
    graph_.node("MatMul", {x, name + ".dequantized"}, {y}).named(name + "/MatMul");
  }

  // DequantizeLinear of a UINT4 tensor with a scale and zero point for each column.
  void dequantize_columns(const std::string& name, const std::string& x, const std::string& y) {
    packed_tensor(name + ".weight", ElementType::kUint4);
    scales(name + ".scale", {dim_}, width_);
    graph_.initializer(TensorWriter(name + ".zero", ElementType::kUint4, {dim_})
                           .raw(std::string(static_cast<size_t>(width_ / 2), '\x88')));
    graph_
        .node("DequantizeLinear", {name + ".weight", name + ".scale", name + ".zero"},
              {name + ".dequantized"})
        .named(name + "/DequantizeLinear")
        .attr_int("axis", 1);
    graph_.node("MatMul", {x, name + ".dequantized"}, {y}).named(name + "/MatMul");
  }

 private:
  void packed_tensor(const std::string& name, ElementType type) {
    graph_.initializer(TensorWriter(name, type, {dim_, dim_})
                           .raw(random_bytes_payload(seeds_.next(), width_ * width_ / 2)));
  }

  void scales(const std::string& name, const std::vector<int64_t>& dims, uint64_t count) {
    const float scale = int4_scale(width_);
    graph_.initializer(TensorWriter(name, ElementType::kFloat, dims)
                           .raw(uniform_payload(seeds_.next(), count, 0.5f * scale, 1.5f * scale)));
  }

  GraphWriter& graph_;
  Seeds seeds_;
  uint64_t width_;
  int64_t dim_;
};

}  // namespace

ModelFiles build_int4(const Int4Options& options) {
  ModelFiles files{new_model("int4", options.seed, kInt4IrVersion, kInt4Opset), std::nullopt};
  files.model.opset("com.microsoft", 1);
  const uint64_t width = std::max<uint64_t>(64, (options.width + 63) / 64 * 64);
  const int64_t dim = static_cast<int64_t>(width);
  GraphWriter& graph = files.model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", dim}));
  Int4Builder builder(graph, options.seed, width);
  builder.matmul_nbits("symmetric", "x", "h0", "");
  builder.matmul_nbits("asymmetric", "h0", "h1", "asymmetric.zero");
  builder.dequantize_blocks("blocks", "h1", "h2");
  builder.dequantize_columns("columns", "h2", "y");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", dim}));
  return files;
}

}  // namespace model_writer
