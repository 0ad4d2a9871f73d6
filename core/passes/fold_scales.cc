// Conv, ConvTranspose and Gemm with constant weights take in what scales and shifts their output
// channels: BatchNormalization, and Mul, Div, Add and Sub of one constant a channel.
//
//   y = (W x + b) * scale + shift  ->  (W * scale) x + (b * scale + shift)
//
// The scaled weights are a recipe over the file's: computed when a kernel packs them and freed
// then; where channels_last follows, it scales the sums instead. Bias and scale are computed here,
// in double. Float only; where the result before the scale is read elsewhere too, nothing is
// folded.
#include "core/passes/channel_affine.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kMulVersion = 14;

class ScaleFolder {
 public:
  explicit ScaleFolder(Pattern& pattern) : p_(pattern) {}

  void fold() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "BatchNormalization")) {
        fold_into(id, p_.input(id, 0));
      } else if (p_.is(id, "Mul") || p_.is(id, "Add") || p_.is(id, "Div") || p_.is(id, "Sub")) {
        if (p_.node(id).inputs.size() != 2) continue;
        const bool swaps = p_.is(id, "Mul") || p_.is(id, "Add");
        if (!fold_into(id, p_.input(id, 0)) && swaps) fold_into(id, p_.input(id, 1));
      }
    }
  }

 private:
  // What the weights' producer looks like to a scale per output channel.
  struct Layer {
    NodeId id = kNone;
    int64_t channels = 0;
    Shape scale_shape;  // that broadcasts over the weights
    bool is_gemm = false;
  };

  bool fold_into(NodeId id, ValueId x) {
    const auto layer = layer_of(x);
    if (!layer) return false;
    const auto affine = affine_of(id, x, *layer);
    if (!affine || !affine->is_finite()) return false;
    return apply(id, *layer, *affine);
  }

  std::optional<Layer> layer_of(ValueId x) const {
    if (!p_.is_read_once(x) || !p_.is_float(x)) return std::nullopt;
    Layer layer;
    layer.id = p_.producer(x);
    if (layer.id == kNone || !p_.node(layer.id).domain.empty()) return std::nullopt;
    const std::string& type = p_.node(layer.id).op_type;
    const Initializer* w = p_.constant(p_.input(layer.id, 1));
    if (!w || w->dtype != DType::kFloat) return std::nullopt;
    const Shape& shape = w->shape;
    const Attributes& attrs = p_.node(layer.id).attributes;
    int axis = 0;
    if (type == "Conv" && shape.rank() >= 3) {
      axis = 0;
    } else if (type == "ConvTranspose" && shape.rank() >= 3) {
      const auto group = attrs.get_int("group", 1);
      if (!group.is_ok() || group.value() != 1) return std::nullopt;
      axis = 1;
    } else if (type == "Gemm" && shape.rank() == 2) {
      const auto trans = attrs.get_int("transB", 0);
      if (!trans.is_ok()) return std::nullopt;
      axis = trans.value() != 0 ? 0 : 1;
      layer.is_gemm = true;
    } else {
      return std::nullopt;
    }
    layer.channels = shape[axis];
    layer.scale_shape = shape;
    for (int i = 0; i < shape.rank(); ++i) layer.scale_shape[i] = i == axis ? shape[i] : 1;
    return layer;
  }

  std::optional<ChannelAffine> affine_of(NodeId id, ValueId x, const Layer& layer) const {
    if (p_.is(id, "BatchNormalization")) {
      return affine_of_normalization(p_, p_.node(id), layer.channels);
    }
    const ValueId other = p_.other_input(id, x);
    const Initializer* constant = p_.constant(other);
    if (other == x || !constant || !is_per_channel(constant->shape, x, layer)) return std::nullopt;
    auto given = channel_numbers(p_, other, layer.channels);
    if (!given) return std::nullopt;
    const std::vector<double> ones(given->size(), 1.0);
    const std::vector<double> zeros(given->size(), 0.0);
    if (p_.is(id, "Mul")) return ChannelAffine{*given, zeros};
    if (p_.is(id, "Add")) return ChannelAffine{ones, *given};
    if (p_.is(id, "Sub")) {
      for (double& each : *given) each = -each;
      return ChannelAffine{ones, *given};
    }
    for (double& each : *given) each = 1.0 / each;
    return ChannelAffine{*given, zeros};
  }

  // A constant that broadcasts to x along its channels only, without giving it another rank.
  bool is_per_channel(const Shape& shape, ValueId x, const Layer& layer) const {
    const Dims* dims = p_.dims(x);
    if (!dims) return false;
    const int rank = static_cast<int>(dims->size());
    if (shape.rank() > rank) return false;
    if (shape.count() == 1) return true;
    const int axis = 1 - (rank - shape.rank());
    if (axis < 0) return false;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] != (i == axis ? layer.channels : 1)) return false;
    }
    return true;
  }

  // Conv's B has a number for each channel; Gemm's C broadcasts, and may have rows.
  static bool takes_bias(const Layer& layer, const Shape& bias) {
    if (!layer.is_gemm) return bias == Shape{layer.channels};
    return bias.rank() <= 1 || bias[0] == 1;
  }

  bool apply(NodeId id, const Layer& layer, const ChannelAffine& affine) {
    const Node& old = p_.node(layer.id);
    Node fused = make_node(old.name, old.domain, old.op_type, old.version, old.inputs);
    fused.attributes = old.attributes;
    fused.outputs = {p_.node(id).outputs[0]};
    const std::string name = p_.graph().value(fused.outputs[0]).name;
    std::vector<double> bias(affine.scale.size(), 0.0);
    if (fused.inputs.size() > 2 && fused.inputs[2] != kNone) {
      const Initializer* given = p_.constant(fused.inputs[2]);
      if (!given || !takes_bias(layer, given->shape)) return false;
      const auto found = channel_numbers(p_, fused.inputs[2], layer.channels);
      const auto beta = layer.is_gemm ? fused.attributes.get_float("beta", 1.0F) : 1.0F;
      if (!found || !beta.is_ok()) return false;
      for (size_t c = 0; c < bias.size(); ++c) {
        bias[c] = (*found)[c] * static_cast<double>(beta.value());
      }
    }
    for (size_t c = 0; c < bias.size(); ++c) {
      bias[c] = bias[c] * affine.scale[c] + affine.shift[c];
    }
    if (affine.scales() && !scale_weights(layer, affine, name, &fused)) return false;
    const ValueId new_bias = add_floats(&p_, name + "/bias", Shape{layer.channels}, bias);
    if (new_bias == kNone) return false;
    fused.inputs.resize(3, kNone);
    fused.inputs[2] = new_bias;
    if (layer.is_gemm) fused.attributes.set(float_attribute("beta", 1.0F));
    p_.replace(id, std::move(fused));
    return true;
  }

  bool scale_weights(const Layer& layer, const ChannelAffine& affine, const std::string& name,
                     Node* fused) {
    const ValueId scale = add_floats(&p_, name + "/scale", layer.scale_shape, affine.scale);
    if (scale == kNone) return false;
    const Shape shape = p_.constant(fused->inputs[1])->shape;
    fused->inputs[1] = p_.add_recipe(name + "/weights", "", "Mul", kMulVersion, Attributes(),
                                     {fused->inputs[1], scale}, DType::kFloat, shape);
    return true;
  }

  Pattern& p_;
};

}  // namespace

void fold_scales(Model* model, bool* changed) {
  for_each_graph(&model->graph, changed, [](Pattern& pattern) { ScaleFolder(pattern).fold(); });
}

}  // namespace folio
