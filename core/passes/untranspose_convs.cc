// ConvTranspose that moves its filters pixel by pixel is Conv.
//
//   ConvTranspose(x, w, b), strides 1   ->   Conv(x, w', b)
//
// The same products, summed for each output pixel instead of scattered from each input pixel: the
// taps come in the opposite order along each axis, filters and channels of a group change places,
// and a pad of p becomes one of (kernel - 1) * dilation - p. Convolutions have the better
// algorithms (Winograd's, windows, planes), and take in functions and residuals. The weights are a
// recipe over the file's, so this only pays where they are packed.
#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/ops/op_conv_transpose.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

constexpr int kMovesVersion = 13;  // of Slice, Reshape and Transpose
constexpr int kFirstSpatial = 2;
constexpr int64_t kMostPad = 1 << 20;  // far below where sums of sizes wrap

class Untransposer {
 public:
  explicit Untransposer(Pattern& pattern) : p_(pattern) {}

  void run() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (!p_.is(id, "ConvTranspose")) continue;
      const Initializer* w = p_.constant(p_.input(id, 1));
      if (!w || w->dtype != DType::kFloat || !is_of_float_image(id, *w)) continue;
      const auto attrs = parse_conv_transpose(p_.node(id).attributes);
      if (!attrs.is_ok() || w->shape[0] % attrs.value().conv.group != 0) continue;
      const auto pads = pads_of(attrs.value(), w->shape);
      if (pads) apply(id, attrs.value().conv.group, *pads);
    }
  }

 private:
  // With as many dims and channels as the weights ask for: what does not fit keeps its own message.
  bool is_of_float_image(NodeId id, const Initializer& w) const {
    const Dims* x = p_.dims(p_.input(id, 0));
    return p_.is_float(p_.input(id, 0)) && x && w.shape.rank() > kFirstSpatial &&
           x->size() == static_cast<size_t>(w.shape.rank()) && w.shape.count() > 0 &&
           (*x)[1].is_value() && (*x)[1].value == w.shape[0];
  }

  // The pads of the convolution, begins and ends; none when ConvTranspose does something else.
  static std::optional<std::vector<int64_t>> pads_of(const TransposeAttrs& attrs, const Shape& w) {
    const WindowAttrs& window = attrs.conv.window;
    const auto rank = static_cast<size_t>(w.rank() - kFirstSpatial);
    const auto fits = [&](const auto& list, size_t size) {
      return list.empty() || list.size() == size;
    };
    const bool is_same =
        window.auto_pad == AutoPad::kSameUpper || window.auto_pad == AutoPad::kSameLower;
    if (rank > kSpatial || is_same || !attrs.output_shape.empty() || !fits(window.kernel, rank) ||
        !fits(window.strides, rank) || !fits(window.dilations, rank) ||
        !fits(window.pads, 2 * rank) ||
        std::any_of(attrs.output_padding.begin(), attrs.output_padding.end(),
                    [](int64_t each) { return each != 0; })) {
      return std::nullopt;
    }
    std::vector<int64_t> pads(2 * rank);
    for (size_t i = 0; i < pads.size(); ++i) {
      const size_t axis = i % rank;
      const int64_t kernel = w[kFirstSpatial + static_cast<int>(axis)];
      int64_t reach = 0;
      if (at_or(window.strides, axis, 1) != 1 || at_or(window.kernel, axis, kernel) != kernel ||
          kernel < 1 || !checked_mul(kernel - 1, at_or(window.dilations, axis, 1), &reach)) {
        return std::nullopt;
      }
      const bool is_padded = window.auto_pad == AutoPad::kNotSet;
      pads[i] = reach - (is_padded ? at_or(window.pads, i, 0) : 0);
      // Of an image that is cut away ConvTranspose gives nothing, and Conv an error.
      const bool cuts = i >= rank && pads[axis] + pads[i] < reach;
      if (pads[i] < 0 || pads[i] > kMostPad || cuts) return std::nullopt;
    }
    return pads;
  }

  void apply(NodeId id, int64_t group, const std::vector<int64_t>& pads) {
    const Node& old = p_.node(id);
    Node conv = make_node(old.name, "", "Conv", old.version, old.inputs);
    for (const char* name : {"dilations", "group", "kernel_shape"}) {
      const AttributeDef* given = old.attributes.find(name);
      if (given) conv.attributes.set(*given);
    }
    conv.attributes.set(ints_attribute("pads", pads));
    const std::string name = p_.graph().value(old.outputs[0]).name + "/weights";
    conv.inputs[1] = turned(name, conv.inputs[1], group);
    if (conv.inputs[1] != kNone) p_.replace(id, std::move(conv));
  }

  // [C, M / group, kernel...] as [M, C / group, kernel...], taps from the last to the first; kNone
  // where there is no memory.
  ValueId turned(const std::string& name, ValueId w, int64_t group) {
    const Shape shape = p_.constant(w)->shape;
    std::vector<int64_t> axes;
    std::vector<int64_t> kernel;
    for (int axis = kFirstSpatial; axis < shape.rank(); ++axis) {
      kernel.push_back(shape[axis]);
      if (shape[axis] > 1) axes.push_back(axis);
    }
    const auto count = axes.size();
    if (count > 0) {
      w = move(name, "Slice", Attributes(),
               {w, ints(name, std::vector<int64_t>(count, -1)),
                ints(name, std::vector<int64_t>(count, std::numeric_limits<int64_t>::min())),
                ints(name, axes), ints(name, std::vector<int64_t>(count, -1))},
               shape);
    }
    Attributes swap;
    std::vector<int64_t> perm{0, 2, 1};
    std::vector<int64_t> groups{group, shape[0] / group, shape[1]};
    for (const int64_t taps : kernel) {
      perm.push_back(std::ssize(perm));
      groups.push_back(taps);
    }
    swap.set(ints_attribute("perm", std::move(perm)));
    w = reshaped(name, w, groups);
    std::swap(groups[1], groups[2]);
    w = move(name, "Transpose", std::move(swap), {w}, shape_of(groups));
    groups[1] *= group;
    groups.erase(groups.begin());
    return reshaped(name, w, groups);
  }

  static Shape shape_of(const std::vector<int64_t>& dims) {
    return Shape(Span<const int64_t>(dims.data(), dims.size()));
  }
  ValueId ints(const std::string& name, const std::vector<int64_t>& values) {
    auto made = make_int64_tensor(values, Shape{std::ssize(values)});
    return made.is_ok() ? p_.add_constant(name, std::move(made).take()) : kNone;
  }
  ValueId reshaped(const std::string& name, ValueId w, const std::vector<int64_t>& dims) {
    return move(name, "Reshape", Attributes(), {w, ints(name, dims)}, shape_of(dims));
  }
  ValueId move(const std::string& name, const char* type, Attributes attributes,
               const std::vector<ValueId>& inputs, const Shape& shape) {
    if (std::find(inputs.begin(), inputs.end(), kNone) != inputs.end()) return kNone;
    return p_.add_recipe(name, "", type, kMovesVersion, std::move(attributes), inputs,
                         DType::kFloat, shape);
  }

  Pattern& p_;
};

}  // namespace

void untranspose_convs(Model* model, bool* changed) {
  for_each_graph(
      &model->graph, changed, [](Pattern& pattern) { Untransposer(pattern).run(); },
      "ConvTranspose");
}

}  // namespace folio
