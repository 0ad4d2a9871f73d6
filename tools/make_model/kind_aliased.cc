#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kWidth = 64;
constexpr uint64_t kMatrixBytes = kWidth * kWidth * sizeof(float);
constexpr uint64_t kRowBytes = kWidth * sizeof(float);

}  // namespace

ModelFiles build_aliased(uint64_t seed, const std::string& location) {
  ModelFiles files{new_model("aliased", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  ExternalData& data = files.data.emplace(location);
  Seeds seeds(seed);
  // One and a half matrices, so that a second matrix can begin in the middle of the first.
  const float scale = weight_scale(kWidth);
  const uint64_t count = kWidth * kWidth * 3 / 2;
  const ExternalData::Range all = data.add(uniform_payload(seeds.next(), count, -scale, scale));
  const uint64_t start = all.offset;

  GraphWriter& graph = files.model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", kWidth}));
  const auto alias = [&](const std::string& name, ElementType type,
                         const std::vector<int64_t>& dims, uint64_t offset, uint64_t bytes) {
    graph.initializer(data.tensor_at(name, type, dims, {offset, bytes}));
  };
  alias("first", ElementType::kFloat, {kWidth, kWidth}, start, kMatrixBytes);
  alias("same", ElementType::kFloat, {kWidth, kWidth}, start, kMatrixBytes);
  alias("reshaped", ElementType::kFloat, {kWidth * kWidth}, start, kMatrixBytes);
  alias("overlapping", ElementType::kFloat, {kWidth, kWidth}, start + kMatrixBytes / 2,
        kMatrixBytes);
  // Off the alignment of pages and of cache lines, but not of floats.
  alias("inside", ElementType::kFloat, {kWidth}, start + 3 * kRowBytes + 4, kRowBytes);
  // The same bytes as another type, at an odd offset.
  alias("as_bytes", ElementType::kInt8, {kWidth}, start + 1, kWidth);

  graph.node("MatMul", {"x", "first"}, {"h0"}).named("first/MatMul");
  graph.node("MatMul", {"h0", "same"}, {"h1"}).named("same/MatMul");
  graph.node("MatMul", {"h1", "overlapping"}, {"h2"}).named("overlapping/MatMul");
  graph.initializer(i64_tensor("square", {2}, {kWidth, kWidth}));
  graph.node("Reshape", {"reshaped", "square"}, {"reshaped.square"}).named("reshaped/Reshape");
  graph.node("MatMul", {"h2", "reshaped.square"}, {"h3"}).named("reshaped/MatMul");
  graph.node("Add", {"h3", "inside"}, {"h4"}).named("inside/Add");
  graph.node("Cast", {"as_bytes"}, {"as_bytes.float"})
      .named("as_bytes/Cast")
      .attr_int("to", static_cast<int64_t>(ElementType::kFloat));
  graph.node("Add", {"h4", "as_bytes.float"}, {"y"}).named("as_bytes/Add");
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", kWidth}));
  return files;
}

}  // namespace model_writer
