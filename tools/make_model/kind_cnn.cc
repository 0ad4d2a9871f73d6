#include "tools/make_model/kinds.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {

namespace {

constexpr int64_t kClasses = 10;

class CnnBuilder {
 public:
  CnnBuilder(GraphWriter& graph, uint64_t seed) : graph_(graph), seeds_(seed) {}

  // Convolution without bias and batch normalisation; gives the name of the result.
  std::string conv_norm(const std::string& name, const std::string& x, int64_t channels_in,
                        int64_t channels_out, int64_t kernel, int64_t stride) {
    const uint64_t fan_in = static_cast<uint64_t>(channels_in * kernel * kernel);
    const float scale = weight_scale(fan_in);
    uniform(name + ".weight", {channels_out, channels_in, kernel, kernel}, -scale, scale);
    const int64_t pad = kernel / 2;
    graph_.node("Conv", {x, name + ".weight"}, {name + ".conv"})
        .named(name + "/Conv")
        .attr_ints("dilations", {1, 1})
        .attr_int("group", 1)
        .attr_ints("kernel_shape", {kernel, kernel})
        .attr_ints("pads", {pad, pad, pad, pad})
        .attr_ints("strides", {stride, stride});
    uniform(name + ".scale", {channels_out}, 0.5f, 1.5f);
    uniform(name + ".shift", {channels_out}, -0.1f, 0.1f);
    uniform(name + ".mean", {channels_out}, -0.1f, 0.1f);
    uniform(name + ".variance", {channels_out}, 0.5f, 1.5f);
    graph_
        .node(
            "BatchNormalization",
            {name + ".conv", name + ".scale", name + ".shift", name + ".mean", name + ".variance"},
            {name + ".norm"})
        .named(name + "/BatchNormalization")
        .attr_float("epsilon", 1e-5f);
    return name + ".norm";
  }

  std::string relu(const std::string& name, const std::string& x) {
    graph_.node("Relu", {x}, {name + ".relu"}).named(name + "/Relu");
    return name + ".relu";
  }

  // relu(x + norm(conv(relu(norm(conv(x)))))); x goes through a 1x1 convolution where its shape
  // changes.
  std::string residual(const std::string& name, const std::string& x, int64_t channels_in,
                       int64_t channels_out, int64_t stride) {
    const std::string first =
        relu(name + ".a", conv_norm(name + ".a", x, channels_in, channels_out, 3, stride));
    const std::string second = conv_norm(name + ".b", first, channels_out, channels_out, 3, 1);
    const bool same = channels_in == channels_out && stride == 1;
    const std::string side =
        same ? x : conv_norm(name + ".side", x, channels_in, channels_out, 1, stride);
    graph_.node("Add", {second, side}, {name + ".add"}).named(name + "/Add");
    return relu(name, name + ".add");
  }

  // Mean over the image, then a linear classifier.
  void classifier(const std::string& x, int64_t channels) {
    graph_.node("GlobalAveragePool", {x}, {"pooled"}).named("head/GlobalAveragePool");
    graph_.node("Flatten", {"pooled"}, {"flat"}).named("head/Flatten").attr_int("axis", 1);
    const float scale = weight_scale(static_cast<uint64_t>(channels));
    uniform("head.weight", {kClasses, channels}, -scale, scale);
    uniform("head.bias", {kClasses}, -scale, scale);
    graph_.node("Gemm", {"flat", "head.weight", "head.bias"}, {"logits"})
        .named("head/Gemm")
        .attr_int("transB", 1);
    graph_.node("Softmax", {"logits"}, {"y"}).named("head/Softmax").attr_int("axis", 1);
  }

 private:
  void uniform(const std::string& name, const std::vector<int64_t>& dims, float low, float high) {
    uint64_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<uint64_t>(dim);
    graph_.initializer(TensorWriter(name, ElementType::kFloat, dims)
                           .raw(uniform_payload(seeds_.next(), count, low, high)));
  }

  GraphWriter& graph_;
  Seeds seeds_;
};

}  // namespace

ModelFiles build_cnn(uint64_t seed) {
  ModelFiles files{new_model("cnn", seed, kPlainIrVersion, kPlainOpset), std::nullopt};
  GraphWriter& graph = files.model.graph();
  graph.input("x", Type::tensor(ElementType::kFloat, {"batch", 3, 32, 32}));
  CnnBuilder cnn(graph, seed);
  const std::string stem = cnn.relu("stem", cnn.conv_norm("stem", "x", 3, 16, 3, 1));
  graph.node("MaxPool", {stem}, {"stem.pool"})
      .named("stem/MaxPool")
      .attr_ints("kernel_shape", {2, 2})
      .attr_ints("strides", {2, 2});
  const std::string block0 = cnn.residual("block0", "stem.pool", 16, 16, 1);
  const std::string block1 = cnn.residual("block1", block0, 16, 32, 2);
  cnn.classifier(block1, 32);
  graph.output("y", Type::tensor(ElementType::kFloat, {"batch", kClasses}));
  return files;
}

}  // namespace model_writer
