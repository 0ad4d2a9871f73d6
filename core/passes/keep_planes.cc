#include "core/passes/keep_planes.h"

#include <unordered_set>

#include "core/base/checked_math.h"
#include "core/ops/op_deep_planes.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/passes/pixels_last.h"

namespace folio {
namespace {

// More in a row win more by channels last than two Transposes cost: three of 64 channels at 56 x 56
// take as long either way.
constexpr size_t kMostConvs = 2;
// Of a product with fewer pixels most of a panel may be empty; of a line with fewer, of a vector.
constexpr int64_t kFewestPixels = 32;
constexpr int64_t kShortestLine = 8;
// What may be empty of the panels: 14 x 14 pixels leave one part in 16 and lose by it (1.09).
constexpr int64_t kWaste = 32;

bool is_turn(const Node& node, size_t rank, bool to_last) {
  const auto perm = node.attributes.get_ints("perm");
  if (!perm.is_ok() || perm.value().size() != rank || rank < 3) return false;
  for (size_t i = 1; i < rank; ++i) {
    const size_t from = to_last ? i % (rank - 1) + 1 : i == 1 ? rank - 1 : i - 1;
    if (perm.value()[i] != static_cast<int64_t>(from)) return false;
  }
  return perm.value()[0] == 0;
}

class PlaneChoice {
 public:
  PlaneChoice(const Pattern& pattern, TurningOf turning_of)
      : pattern_(pattern), turning_of_(turning_of) {}

  std::vector<bool> choose() {
    std::vector<bool> keeps(static_cast<size_t>(pattern_.count()), false);
    bool any = false;
    for (NodeId id = 0; id < pattern_.count(); ++id) {
      keeps[static_cast<size_t>(id)] = is_deep(id);
      any |= takes_planes(id);
    }
    if (!any) return keeps;
    readers_.resize(pattern_.graph().values.size());
    for (NodeId id = 0; id < pattern_.count(); ++id) {
      if (pattern_.node(id).dead) continue;
      Graph::for_each_read(pattern_.node(id), [&](ValueId read) {
        if (read != kNone) readers_.add(read, id);
      });
    }
    for (NodeId id = 0; id < pattern_.count(); ++id) {
      if (seen_nodes_.contains(id) || !takes_planes(id)) continue;
      convs_.clear();
      gains_ = false;
      reach(id);
      while (!values_.empty()) {
        const ValueId value = values_.back();
        values_.pop_back();
        look_around(value);
      }
      if (gains_ || convs_.size() > kMostConvs || has_pair()) continue;
      for (const NodeId conv : convs_) keeps[static_cast<size_t>(conv)] = true;
    }
    return keeps;
  }

 private:
  bool is_image(ValueId id) const {
    const Dims* dims = id == kNone ? nullptr : pattern_.dims(id);
    return dims && dims->size() >= 3 && dims->size() <= 5;
  }

  static bool is_conv(const Node& node) {
    return (node.domain.empty() && node.op_type == "Conv") ||
           (node.domain == "com.microsoft" && node.op_type == "FusedConv");
  }

  // Its weights, if they stand there as floats, and the dims of its result.
  const Initializer* floats_of(const Node& node) const {
    if (node.dead || !is_conv(node) || node.inputs.size() < 2 || node.outputs.empty()) {
      return nullptr;
    }
    const ValueId y = node.outputs[0];
    const Initializer* w = pattern_.constant(node.inputs[1]);
    // Weights that are not there yet would be computed into memory of this process.
    const bool fits = is_image(node.inputs[0]) && is_image(y) && pattern_.is_float(y) && w &&
                      w->tensor && w->dtype == DType::kFloat &&
                      w->shape.dims().size() == pattern_.dims(y)->size();
    return fits ? w : nullptr;
  }

  // Few filters over few channels of a deep image: channels last would leave vectors empty,
  // whatever is around. Lines of a known length are long enough.
  bool is_deep(NodeId id) const {
    const Node& node = pattern_.node(id);
    const Initializer* w = floats_of(node);
    if (!w) return false;
    const auto attrs = parse_conv(node.attributes);
    if (!attrs.is_ok() || !are_deep_planes(w->shape.dims(), attrs.value())) return false;
    const Dim& line = pattern_.dims(node.outputs[0])->back();
    return !line.is_value() || line.value >= kDeepLine;
  }

  // Whether this convolution's form with channels first is a good one.
  bool takes_planes(NodeId id) const {
    const Node& node = pattern_.node(id);
    const Initializer* w = floats_of(node);
    if (!w) return false;
    const auto attrs = parse_conv(node.attributes);
    if (!attrs.is_ok()) return false;
    const Span<const int64_t> shape = w->shape.dims();
    const Dims& out = *pattern_.dims(node.outputs[0]);
    if (!fits_nhwc_conv(shape, attrs.value().group)) return false;
    if (is_depthwise_conv(shape, attrs.value().group))
      return is_plane_filter(shape, attrs.value(), out);
    return is_pointwise(shape, attrs.value(), out);
  }

  static bool is_pointwise(Span<const int64_t> w, const ConvAttrs& attrs, const Dims& out) {
    int64_t pixels = 1;
    bool is_known = true;
    for (size_t i = 2; i < w.size(); ++i) {
      if (w[i] != 1) return false;
      is_known = is_known && out[i].is_value() && checked_mul(pixels, out[i].value, &pixels);
    }
    const bool is_full = panel_columns(pixels) - pixels <= pixels / kWaste;
    const bool fits = !is_known || (pixels >= kFewestPixels && is_full);
    return fits && all_are(attrs.window.strides, 1) && all_are(attrs.window.pads, 0);
  }

  static bool is_plane_filter(Span<const int64_t> w, const ConvAttrs& attrs, const Dims& out) {
    const AxisNumbers& strides = attrs.window.strides;
    const Dim& line = out[out.size() - 1];
    const int64_t taps = w.size() == 3 ? w[2] : w[2] * w[3];
    return w.size() <= 4 && taps <= kPlaneTaps &&
           (strides.empty() || strides[strides.size() - 1] <= 2) &&
           (!line.is_value() || line.value >= kShortestLine);
  }

  // A node that would follow.
  void reach(NodeId id) {
    if (!seen_nodes_.insert(id).second) return;
    const Node& node = pattern_.node(id);
    if (is_conv(node)) convs_.push_back(id);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_conv(node) || i == 0 || i == 3) values_.push_back(node.inputs[i]);
    }
    for (const ValueId output : node.outputs) values_.push_back(output);
  }

  void meet(NodeId id, ValueId value, bool reads) {
    const Node& node = pattern_.node(id);
    if (node.op_type == "Shape" && node.domain.empty()) return;
    if (node.op_type == "Transpose" && node.domain.empty()) {
      gains_ |= is_turn(node, pattern_.dims(value)->size(), reads);
    } else if (takes_planes(id)) {
      if (!reads || value == node.inputs[0] ||
          (node.inputs.size() > 3 && value == node.inputs[3])) {
        reach(id);
      }
    } else if (is_conv(node)) {
      gains_ |= would_turn(node) && !is_deep(id);
    } else if (const Turning turning = turning_of_(node); turning == Turning::kGains) {
      gains_ = true;
    } else if (turning == Turning::kFollows || moves_pixels(pattern_, node)) {
      reach(id);
    }
  }

  // A product and a filter over one channel each that chain_convs would make one step.
  bool has_pair() const {
    for (const NodeId conv : convs_) {
      const Node& second = pattern_.node(conv);
      const ValueId between = second.inputs[0];
      const NodeId first = pattern_.producer(between);
      if (first == kNone || !is_depthwise(second)) continue;
      if (std::count(convs_.begin(), convs_.end(), first) == 0) continue;
      const std::optional<Shape> shape = pattern_.shape(between);
      if (is_depthwise(pattern_.node(first))) continue;
      if (!shape || static_cast<uint64_t>(shape->count()) >= kFewestChainFloats) return true;
    }
    return false;
  }

  bool is_depthwise(const Node& conv) const {
    return is_depthwise_conv(pattern_.constant(conv.inputs[1])->shape.dims(),
                             conv.attributes.get_int("group", 1).value());
  }

  // Another convolution that channels_last converts, or may.
  bool would_turn(const Node& node) const {
    if (node.inputs.size() < 2) return false;
    const std::optional<Shape> w = pattern_.shape(node.inputs[1]);
    const auto group = node.attributes.get_int("group", 1);
    return w && group.is_ok() && fits_nhwc_conv(w->dims(), group.value());
  }

  void look_around(ValueId value) {
    if (!is_image(value) || pattern_.constant(value) || !seen_values_.insert(value).second) return;
    const NodeId producer = pattern_.producer(value);
    if (producer != kNone) meet(producer, value, false);
    for (const NodeId reader : readers_.of(value)) meet(reader, value, true);
  }

  const Pattern& pattern_;
  TurningOf turning_of_;
  ReaderLists readers_;
  std::unordered_set<NodeId> seen_nodes_;
  std::unordered_set<ValueId> seen_values_;
  std::vector<ValueId> values_;  // to look around
  std::vector<NodeId> convs_;    // of what is being looked at
  bool gains_ = false;
};

}  // namespace

std::vector<bool> convs_that_keep_planes(const Pattern& pattern, TurningOf turning_of) {
  return PlaneChoice(pattern, turning_of).choose();
}

}  // namespace folio
