// Concat of images with channels last: the convolutions that make them write their channels of its
// result, where nothing else reads them. Most of its channels, at least, as the image is then held
// from the first of them on, and not long before.
//
//   folio.nhwc.Conv, ConvChain -> Concat along the last axis
//       -> the same over one image, which each gets from the one before; folio.nhwc.Join copies
//          what others make into it
//
// Private: the result is never saved.
#include <algorithm>

#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/ops/op_nhwc_join.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class JoinsInPlace {
 public:
  explicit JoinsInPlace(Pattern& pattern) : p_(pattern) {}

  void join() {
    for (NodeId id = 0; id < p_.count(); ++id) {
      if (p_.is(id, "Concat")) join_at(id);
    }
  }

 private:
  // A convolution and its channels in the image.
  struct Writer {
    NodeId node = kNone;
    int64_t at = 0;
  };
  // What becomes of a Concat's inputs.
  struct Parts {
    std::vector<Writer> writers;   // in the order in which they run
    std::vector<ValueId> copied;   // the others, with
    std::vector<int64_t> copy_at;  // their first channels
    int64_t written = 0;           // channels, of
    int64_t channels = 0;
  };

  void join_at(NodeId concat) {
    const ValueId image = p_.node(concat).outputs[0];
    const Dims* const dims = image_dims(concat);
    if (!dims || p_.is_output(image)) return;
    Parts parts = parts_of(concat, *dims);
    if (2 * parts.written <= parts.channels || !(dims->back() == Dim::of(parts.channels))) return;
    if (parts.copied.empty()) p_.remove(concat);
    ValueId begun = kNone;
    for (const Writer& writer : parts.writers) {
      const bool is_last = parts.copied.empty() && &writer == &parts.writers.back();
      const ValueId made = is_last ? image : begun_image(image, p_.node(writer.node).name);
      write_into({writer.at, parts.channels}, writer.node, begun, made);
      begun = made;
    }
    if (parts.copied.empty()) return;
    parts.copied.insert(parts.copied.begin(), begun);
    Node copy = make_node(p_.node(concat).name, kNhwcDomain, "Join", 1, std::move(parts.copied));
    copy.attributes.set(ints_attribute("at", std::move(parts.copy_at)));
    p_.replace(concat, std::move(copy));
  }

  // No channels where an input may not fit.
  Parts parts_of(NodeId concat, const Dims& joined) const {
    Parts parts;
    const auto count = static_cast<NodeId>(p_.node(concat).inputs.size());
    // The whole image is held from its first channels on: not through what else stands between.
    const NodeId first = concat - (2 * count + 2);
    for (NodeId i = 0; i < count; ++i) {
      const ValueId x = p_.input(concat, static_cast<size_t>(i));
      const std::optional<int64_t> channels = channels_beside(x, joined);
      if (!channels) return {};
      const NodeId writer = writer_of(x, concat);
      if (writer >= std::max<NodeId>(first, 0)) {
        parts.writers.push_back({writer, parts.channels});
        parts.written += *channels;
      } else {
        parts.copied.push_back(x);
        parts.copy_at.push_back(parts.channels);
      }
      parts.channels += *channels;
    }
    std::sort(parts.writers.begin(), parts.writers.end(),
              [](const Writer& a, const Writer& b) { return a.node < b.node; });
    return parts;
  }

  // Of a Concat along the last of 3 to 5 axes; null: it is none.
  const Dims* image_dims(NodeId concat) const {
    const ValueId image = p_.node(concat).outputs[0];
    const Dims* const dims = p_.is_float(image) ? p_.dims(image) : nullptr;
    if (!dims || dims->size() < 3 || dims->size() > 5) return nullptr;
    const auto rank = static_cast<int64_t>(dims->size());
    const auto axis = p_.node(concat).attributes.get_int("axis", 1);
    return axis.is_ok() && (axis.value() == rank - 1 || axis.value() == -1) ? dims : nullptr;
  }

  // The channels of an image whose other dims are those of the joined one in every run.
  std::optional<int64_t> channels_beside(ValueId x, const Dims& joined) const {
    const Dims* const dims = p_.dims(x);
    if (!dims || dims->size() != joined.size() || !dims->back().is_value()) return std::nullopt;
    Dims same = *dims;
    same.back() = joined.back();
    if (!p_.same_dims(same, joined)) return std::nullopt;
    return dims->back().value;
  }

  // The convolution that makes `x` for this Concat alone, and can write it there.
  NodeId writer_of(ValueId x, NodeId concat) const {
    if (p_.sole_reader(x) != concat) return kNone;
    const NodeId id = p_.producer(x);
    if (id == kNone || p_.node(id).attributes.has(kJoinedAttribute)) return kNone;
    const bool is_chain = p_.is(id, "ConvChain", kNhwcDomain);
    if (!is_chain && !p_.is(id, "Conv", kNhwcDomain)) return kNone;
    if (p_.input(id, is_chain ? kChainZ : kConvZ) != kNone) return kNone;
    const ValueId weights = p_.input(id, is_chain ? weights_of_step(kLastStep) : 1);
    const std::optional<Shape> w = weights == kNone ? std::nullopt : p_.shape(weights);
    const auto group = p_.node(id).attributes.get_int("group", 1);  // of a chain's last step 1
    return w && group.is_ok() && leaves_room(w->dims(), group.value()) ? id : kNone;
  }

  ValueId begun_image(ValueId image, const std::string& name) {
    return p_.add_value(name + "/joined", p_.graph().value(image).type);
  }

  void write_into(const JoinPlace& place, NodeId id, ValueId begun, ValueId made) {
    const Node& old = p_.node(id);
    Node node = make_node(old.name, kNhwcDomain, old.op_type, 1, old.inputs);
    node.attributes = old.attributes;
    if (begun != kNone) {
      const auto into = static_cast<size_t>(node.op_type == "Conv" ? kConvInto : kChainInto);
      node.inputs.resize(into, kNone);
      node.inputs.push_back(begun);
    }
    set_join_place(place, &node.attributes);
    node.outputs = {made};
    p_.replace(id, std::move(node));
  }

  Pattern& p_;
};

}  // namespace

void join_in_place(Model* model) {
  bool changed = false;
  for_each_graph(
      &model->graph, &changed, [](Pattern& p) { JoinsInPlace(p).join(); }, "Concat");
}

}  // namespace folio
