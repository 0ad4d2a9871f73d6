#include <algorithm>
#include <cmath>

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

// Stored bytes for each weight of a square matrix: int8, half, and float twice (product and
// concatenation).
constexpr double kBytesPerElement = 1 + 2 + 4 + 4;

uint64_t fold_width(const FoldOptions& options) {
  if (options.size_mb == 0) return std::max<uint64_t>(2, (options.width + 1) / 2 * 2);
  const double elements = static_cast<double>(options.size_mb * kMegabyte) / kBytesPerElement;
  return std::max<uint64_t>(2, static_cast<uint64_t>(std::sqrt(elements)) / 2 * 2);
}

class FoldBuilder {
 public:
  FoldBuilder(GraphWriter& graph, uint64_t seed, uint64_t width)
      : graph_(graph),
        seeds_(seed),
        width_(width),
        dim_(static_cast<int64_t>(width)),
        scale_(weight_scale(width)) {}

  // int8 -> DequantizeLinear with a scale for each column.
  void dequantized(const std::string& name) {
    graph_.initializer(TensorWriter(name + ".q", ElementType::kInt8, {dim_, dim_})
                           .raw(random_bytes_payload(seeds_.next(), width_ * width_)));
    graph_.initializer(f32_tensor(
        name + ".scale", {dim_},
        uniform_values(seeds_.next(), width_, 0.5f * scale_ / 128, 1.5f * scale_ / 128)));
    graph_.initializer(TensorWriter(name + ".zero", ElementType::kInt8, {dim_})
                           .raw(std::string(static_cast<size_t>(width_), '\0')));
    graph_.node("DequantizeLinear", {name + ".q", name + ".scale", name + ".zero"}, {name})
        .named(name + "/DequantizeLinear")
        .attr_int("axis", 1);
  }

  // half -> Cast -> Transpose.
  void cast_and_transposed(const std::string& name) {
    graph_.initializer(
        TensorWriter(name + ".half", ElementType::kFloat16, {dim_, dim_})
            .raw(uniform_f16_payload(seeds_.next(), width_ * width_, -scale_, scale_)));
    graph_.node("Cast", {name + ".half"}, {name + ".float"})
        .named(name + "/Cast")
        .attr_int("to", static_cast<int64_t>(ElementType::kFloat));
    graph_.node("Transpose", {name + ".float"}, {name})
        .named(name + "/Transpose")
        .attr_ints("perm", {1, 0});
  }

  // float * (integer Constant -> Cast).
  void multiplied(const std::string& name) {
    uniform(name + ".base", {dim_, dim_}, width_ * width_, scale_ / 3);
    graph_.node("Constant", {}, {name + ".three"})
        .named(name + "/Constant")
        .attr_tensor("value", i64_tensor("", {}, {3}));
    graph_.node("Cast", {name + ".three"}, {name + ".factor"})
        .named(name + "/Cast")
        .attr_int("to", static_cast<int64_t>(ElementType::kFloat));
    graph_.node("Mul", {name + ".base", name + ".factor"}, {name}).named(name + "/Mul");
  }

  // Two halves -> Concat.
  void concatenated(const std::string& name) {
    uniform(name + ".top", {dim_ / 2, dim_}, width_ * width_ / 2, scale_);
    uniform(name + ".bottom", {dim_ / 2, dim_}, width_ * width_ / 2, scale_);
    graph_.node("Concat", {name + ".top", name + ".bottom"}, {name})
        .named(name + "/Concat")
        .attr_int("axis", 0);
  }

  // A chain of small constants: the bias is [1, 2, ... width] / width, made by arithmetic.
  void bias(const std::string& name) {
    graph_.initializer(i64_tensor(name + ".one", {}, {1}));
    graph_.initializer(i64_tensor(name + ".limit", {}, {dim_ + 1}));
    graph_.node("Range", {name + ".one", name + ".limit", name + ".one"}, {name + ".counts"})
        .named(name + "/Range");
    graph_.node("Cast", {name + ".counts"}, {name + ".float"})
        .named(name + "/Cast")
        .attr_int("to", static_cast<int64_t>(ElementType::kFloat));
    graph_.node("Constant", {}, {name + ".divisor"})
        .named(name + "/Constant")
        .attr_float("value_float", static_cast<float>(width_));
    graph_.node("Div", {name + ".float", name + ".divisor"}, {name}).named(name + "/Div");
  }

  void matmul(const std::string& x, const std::string& weight, const std::string& y) {
    graph_.node("MatMul", {x, weight}, {y}).named(weight + "/MatMul");
  }

 private:
  void uniform(const std::string& name, const std::vector<int64_t>& dims, uint64_t count,
               float scale) {
    graph_.initializer(TensorWriter(name, ElementType::kFloat, dims)
                           .raw(uniform_payload(seeds_.next(), count, -scale, scale)));
  }

  GraphWriter& graph_;
  Seeds seeds_;
  uint64_t width_;
  int64_t dim_;
  float scale_;
};

}  // namespace

ModelFiles build_fold(const FoldOptions& options) {
  ModelFiles files{new_model("fold", options.seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  const uint64_t width = fold_width(options);
  const int64_t dim = static_cast<int64_t>(width);
  GraphWriter& graph = files.model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", dim}));
  FoldBuilder fold(graph, options.seed, width);
  fold.dequantized("w0");
  fold.cast_and_transposed("w1");
  fold.multiplied("w2");
  fold.concatenated("w3");
  fold.bias("bias");
  fold.matmul("x", "w0", "h0");
  fold.matmul("h0", "w1", "h1");
  fold.matmul("h1", "w2", "h2");
  fold.matmul("h2", "w3", "h3");
  graph.node("Add", {"h3", "bias"}, {"y"}).named("bias/Add");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", dim}));
  return files;
}

}  // namespace model_writer
