#include <algorithm>
#include <cmath>

#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

struct MlpSizes {
  uint64_t width = 0;
  uint64_t outputs = 0;  // columns of the last layer
};

// All layers are square but the last, which takes up what is left to the wanted size: then the
// size is exact to one column.
MlpSizes mlp_sizes(const MlpOptions& options) {
  if (options.size_mb == 0) return {options.width, options.width};
  const uint64_t floats = options.size_mb * kMegabyte / sizeof(float);
  const double exact = std::sqrt(static_cast<double>(floats) / static_cast<double>(options.layers));
  // A multiple of 16 where there is room: most machines' favourite.
  const uint64_t width = std::max<uint64_t>(1, static_cast<uint64_t>(exact) / 16 * 16);
  const uint64_t column = width + 1;  // and its bias
  const uint64_t square_layers = (options.layers - 1) * width * column;
  const uint64_t left = floats > square_layers ? floats - square_layers : 0;
  return {width, std::max<uint64_t>(1, left / column)};
}

}  // namespace

ModelFiles build_mlp(const MlpOptions& options) {
  ModelFiles files{new_model("mlp", options.seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  if (!options.external.empty()) {
    files.data.emplace(options.external, options.external_alignment);
  }
  const MlpSizes sizes = mlp_sizes(options);
  Seeds seeds(options.seed);
  GraphWriter& graph = files.model.graph();
  const auto add = [&](const std::string& name, const std::vector<int64_t>& dims, uint64_t count) {
    const float scale = weight_scale(sizes.width);
    Payload payload = uniform_payload(seeds.next(), count, -scale, scale);
    if (files.data) {
      graph.initializer(files.data->tensor(name, ElementType::kFloat, dims, std::move(payload)));
    } else {
      graph.initializer(TensorWriter(name, ElementType::kFloat, dims).raw(std::move(payload)));
    }
  };

  const int64_t width = static_cast<int64_t>(sizes.width);
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", width}));
  std::string value = "x";
  for (uint64_t layer = 0; layer < options.layers; ++layer) {
    const bool last = layer + 1 == options.layers;
    const uint64_t columns = last ? sizes.outputs : sizes.width;
    const std::string name = "layer" + std::to_string(layer);
    add(name + ".weight", {width, static_cast<int64_t>(columns)}, sizes.width * columns);
    add(name + ".bias", {static_cast<int64_t>(columns)}, columns);
    if (options.biases_as_inputs) {
      graph.input(name + ".bias",
                  Type::tensor(ElementType::kFloat, {static_cast<int64_t>(columns)}));
    }
    graph.node("MatMul", {value, name + ".weight"}, {name + ".product"}).named(name + "/MatMul");
    const std::string sum = last ? "y" : name + ".sum";
    graph.node("Add", {name + ".product", name + ".bias"}, {sum}).named(name + "/Add");
    if (last) break;
    value = name + ".out";
    graph.node("Relu", {sum}, {value}).named(name + "/Relu");
  }
  graph.output("y",
               Type::tensor(ElementType::kFloat, {"batch", static_cast<int64_t>(sizes.outputs)}));
  return files;
}

}  // namespace model_writer
