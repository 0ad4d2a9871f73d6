// Convolutions become one step with the filter over one channel each that stands between or beside
// them, where what they hand on is more than a cache keeps.
//
//   folio.nhwc.Conv (one group) -> folio.nhwc.Conv (depthwise) -> folio.nhwc.Conv (pixels)
//       -> folio.nhwc.ConvChain; the first or the last may be missing; folio.nhwc.MaxPool of small
//          windows may stand for the filter, behind a first
//
// Two spatial dims, of any size where they are not known when the model is loaded. A sum is taken
// in by the last one only; none by Winograd's algorithm. Private: the result is never saved.
#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Of the products' weights, which a call without packed weights packs anew.
constexpr uint64_t kMostWeights = uint64_t{64} << 10;

class ConvChains {
 public:
  explicit ConvChains(Pattern& pattern) : p_(pattern) {}

  void join() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (is_filter(id)) join_at(id);
    }
  }

 private:
  bool is_plain(NodeId id) const {
    return p_.is(id, "Conv", kNhwcDomain) && !p_.node(id).attributes.has("winograd") &&
           weights(id) && weights(id)->shape.rank() == 4;
  }
  bool adds_nothing(NodeId id) const { return p_.input(id, 3) == kNone; }

  // Large windows are reduced along one axis, then the other, which wants whole images.
  bool is_pool(NodeId id) const {
    constexpr int64_t kMost = 3;
    if (!p_.is(id, "MaxPool", kNhwcDomain)) return false;
    const auto kernel = p_.node(id).attributes.get_ints("kernel_shape");
    return kernel.is_ok() && kernel.value().size() == 2 &&
           std::all_of(kernel.value().begin(), kernel.value().end(),
                       [](int64_t taps) { return taps <= kMost; });
  }
  bool is_filter(NodeId id) const {
    if (is_pool(id)) return true;
    return is_plain(id) && adds_nothing(id) &&
           is_depthwise_conv(weights(id)->shape.dims(), group(id));
  }
  bool is_product(NodeId id) const {
    return is_plain(id) && group(id) == 1 &&
           static_cast<uint64_t>(weights(id)->shape.count()) <= kMostWeights;
  }
  bool is_of_pixels(NodeId id) const {
    const auto attrs = parse_conv(p_.node(id).attributes);
    const Shape& w = weights(id)->shape;
    return attrs.is_ok() && w[2] == 1 && w[3] == 1 && all_are(attrs.value().window.strides, 1) &&
           all_are(attrs.value().window.pads, 0) && !p_.node(id).attributes.has(kPlanesAttribute);
  }

  const Initializer* weights(NodeId id) const { return p_.constant(p_.input(id, 1)); }

  int64_t group(NodeId id) const {
    const auto attrs = parse_conv(p_.node(id).attributes);
    return attrs.is_ok() ? attrs.value().group : 0;
  }

  // Whether `reader` alone has what the other one makes, and that is large.
  bool hands_on(NodeId maker, NodeId reader) const {
    const ValueId between = p_.node(maker).outputs[0];
    const Dims* const dims = p_.dims(between);
    return dims && dims->size() == 4 && p_.sole_reader(between) == reader && may_be_large(*dims) &&
           p_.input(reader, 0) == between;
  }

  // By the dims that are known when the model is loaded; a run decides about the others.
  static bool may_be_large(const Dims& dims) {
    uint64_t count = 1;
    for (size_t i = 1; i < dims.size(); ++i) {
      if (!dims[i].is_value()) return true;
      if (dims[i].value < 0 || !checked_mul(count, static_cast<uint64_t>(dims[i].value), &count)) {
        return false;
      }
    }
    return count >= kFewestChainFloats;
  }

  // The product whose result the filter reads.
  NodeId first_of(NodeId filter) const {
    const NodeId maker = p_.made_by(p_.input(filter, 0), "Conv", kNhwcDomain);
    const bool is_first =
        maker != kNone && is_product(maker) && adds_nothing(maker) && hands_on(maker, filter);
    return is_first ? maker : kNone;
  }

  // The product that reads the filter's result. It is rather the first of another chain, as what
  // firsts make is wider, as a rule.
  NodeId last_of(NodeId filter) const {
    const NodeId reader = p_.sole_reader(p_.node(filter).outputs[0]);
    if (reader == kNone || !is_product(reader) || !is_of_pixels(reader)) return kNone;
    if (!hands_on(filter, reader)) return kNone;
    const NodeId next = p_.sole_reader(p_.node(reader).outputs[0]);
    const bool is_taken = next != kNone && is_filter(next) && first_of(next) == reader;
    return is_taken ? kNone : reader;
  }

  void join_at(NodeId filter) {
    const NodeId first = first_of(filter);
    const NodeId last = last_of(filter);
    if (first == kNone && (last == kNone || is_pool(filter))) return;
    const NodeId steps[kMostSteps] = {first, filter, last};
    const NodeId end = last == kNone ? filter : last;
    std::vector<ValueId> inputs = {p_.input(first == kNone ? filter : first, 0)};
    Attributes attributes;
    for (size_t step = 0; step < kMostSteps; ++step) {
      const NodeId id = steps[step];
      for (const size_t i : {1, 2, 4}) {  // weights, bias, scale; a pool has none
        inputs.push_back(id == kNone ? kNone : p_.input(id, i));
      }
      if (id != kNone) set_attributes_of_step(p_.node(id).attributes, step, &attributes);
    }
    inputs.push_back(last == kNone ? kNone : p_.input(last, 3));
    while (inputs.back() == kNone) inputs.pop_back();
    Node joined = make_node(p_.node(end).name, kNhwcDomain, "ConvChain", 1, std::move(inputs));
    joined.attributes = std::move(attributes);
    p_.replace(end, std::move(joined));
  }

  Pattern& p_;
};

}  // namespace

void chain_convs(Model* model) {
  bool changed = false;
  for_each_graph(
      &model->graph, &changed, [](Pattern& p) { ConvChains(p).join(); }, "Conv");
}

}  // namespace folio
