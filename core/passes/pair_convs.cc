// A convolution and the filter over one channel each which alone reads its result become one step,
// where what stands between them is more than a cache keeps.
//
//   folio.nhwc.Conv (one group) -> folio.nhwc.Conv (depthwise)   ->   folio.nhwc.ConvPair
//
// Two spatial dims, of any size where they are not known when the model is loaded. Not where a sum
// is taken in, nor by Winograd's algorithm. Private: the result is never saved.
#include "core/base/checked_math.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_conv.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

// Of the first one's weights, which a call without packed weights packs anew.
constexpr uint64_t kMostWeights = uint64_t{64} << 10;

class ConvPairs {
 public:
  explicit ConvPairs(Pattern& pattern) : p_(pattern) {}

  void pair() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (!is_plain_conv(id)) continue;
      const NodeId first = p_.made_by(p_.input(id, 0), "Conv", kNhwcDomain);
      if (first != kNone && fits(first, id)) fuse(first, id);
    }
  }

 private:
  bool is_plain_conv(NodeId id) const {
    return p_.is(id, "Conv", kNhwcDomain) && p_.input(id, 3) == kNone &&
           !p_.node(id).attributes.has("winograd");
  }

  const Initializer* weights(NodeId id) const { return p_.constant(p_.input(id, 1)); }

  int64_t group(NodeId id) const {
    const auto attrs = parse_conv(p_.node(id).attributes);
    return attrs.is_ok() ? attrs.value().group : 0;
  }

  bool fits(NodeId first, NodeId second) const {
    const ValueId between = p_.input(second, 0);
    const Initializer* const w1 = weights(first);
    const Initializer* const w2 = weights(second);
    const Dims* const dims = p_.dims(between);
    if (!is_plain_conv(first) || !w1 || !w2 || !dims) return false;
    if (dims->size() != 4 || w1->shape.rank() != 4 || w2->shape.rank() != 4) return false;
    if (p_.sole_reader(between) != second) return false;  // not an output either
    if (!is_depthwise_conv(w2->shape.dims(), group(second)) || group(first) != 1) return false;
    const uint64_t w1_count = static_cast<uint64_t>(w1->shape.count());
    return w1_count <= kMostWeights && may_be_large(*dims);
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
    return count >= kFewestPairFloats;
  }

  void fuse(NodeId first, NodeId second) {
    const Node& a = p_.node(first);
    const Node& b = p_.node(second);
    Node fused = make_node(b.name, kNhwcDomain, "ConvPair", 1,
                           {p_.input(first, 0), p_.input(first, 1), p_.input(first, 2),
                            p_.input(first, 4), p_.input(second, 1), p_.input(second, 2)});
    fused.attributes = b.attributes;
    set_attributes_of_first(a.attributes, &fused.attributes);
    p_.replace(second, std::move(fused));
  }

  Pattern& p_;
};

}  // namespace

void pair_convs(Model* model) {
  bool changed = false;
  for_each_graph(
      &model->graph, &changed, [](Pattern& p) { ConvPairs(p).pair(); }, "Conv");
}

}  // namespace folio
