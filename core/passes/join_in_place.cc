// Concat of images with channels last: what makes them writes their channels of its result, and
// what else reads these reads them there. Half of its channels, at least, as the image is then held
// from the first of them on, and none long before the next.
//
//   folio.nhwc.Conv, ConvChain, ConvTranspose, Resize
//       -> Concat along the last axis, folio.nhwc.Join
//       -> the same over one image, which each gets from the one before; folio.nhwc.Join copies
//          what others make into it
//   Concat -> Concat: what makes the first one's images makes channels of the second one's
//
// Private: the result is never saved.
#include <algorithm>
#include <unordered_map>

#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"
#include "core/passes/channel_readers.h"
#include "core/passes/passes.h"

namespace folio {
namespace {

constexpr NodeId kMostBetween = 4;  // nodes from one that writes to the next

class JoinsInPlace {
 public:
  explicit JoinsInPlace(Pattern& pattern) : p_(pattern), readers_(&pattern) {}

  void join() {
    // What joins another's result takes that one in.
    for (NodeId id = p_.count() - 1; id >= 0; --id) join_at(id);
  }

 private:
  // What makes an image, or a join with what it copies, and its channels of the joined one, from
  // `at` on.
  struct Writer {
    NodeId node = kNone;
    NodeId join = kNone;  // which reads them as an image of their own
    int64_t at = 0;
    std::optional<ChannelJoin> copies;
    bool writes() const { return !copies || !copies->parts.empty(); }
  };
  // What became channels of another image, and the first of them.
  struct Place {
    ValueId image = kNone;
    int64_t at = 0;
  };

  void join_at(NodeId id) {
    const std::optional<ChannelJoin> join = readers_.join_of(id);
    if (!join || join->begun != kNone || p_.is_output(p_.node(id).outputs[0])) return;
    std::vector<Writer> writers;
    if (2 * find_writers({id, kNone, 0, *join}, &writers) < join->channels) return;
    if (writers.size() == 1) return;
    std::sort(writers.begin(), writers.end(),
              [](const Writer& a, const Writer& b) { return a.node < b.node; });
    const ValueId image = p_.node(id).outputs[0];
    const auto last = std::find_if(writers.rbegin(), writers.rend(),
                                   [](const Writer& writer) { return writer.writes(); });
    moved_.clear();
    ValueId begun = kNone;
    for (Writer& writer : writers) {
      const ValueId part = p_.node(writer.node).outputs[0];
      const bool is_last = &writer == &*last;
      const ValueId made = is_last           ? image
                           : writer.writes() ? begun_image(image, p_.node(writer.node).name)
                                             : begun;
      write(&writer, join->channels, begun, made);
      begun = made;
      if (part == image) continue;
      readers_.read_from(part, begun, writer.at, writer.join);
      moved_[part] = {begun, writer.at};
    }
  }

  // Those of a join, and of joins that it takes in, with itself. Gives how many channels are
  // written but not copied.
  int64_t find_writers(Writer join, std::vector<Writer>* writers) const {
    const ChannelJoin all = std::move(*join.copies);
    ChannelJoin copies;
    int64_t written = 0;
    NodeId next = join.node;
    for (const size_t i : last_made_first(all)) {
      const JoinPart& part = all.parts[i];
      const NodeId maker = maker_of(all, i, join.node);
      const int64_t at = join.at + part.at;
      // A join that is taken in may have it, too.
      const bool is_taken = std::any_of(writers->begin(), writers->end(),
                                        [&](const Writer& writer) { return writer.node == maker; });
      if (maker == kNone || is_taken || maker < next - kMostBetween) {
        copies.images.push_back(all.images[i]);
        copies.parts.push_back({at, part.from, part.count});
        continue;
      }
      next = maker;
      if (std::optional<ChannelJoin> inner = readers_.join_of(maker)) {
        written += find_writers({maker, join.node, at, std::move(inner)}, writers);
      } else {
        writers->push_back({maker, join.node, at, std::nullopt});
        written += part.count;
      }
    }
    join.copies = std::move(copies);
    writers->push_back(std::move(join));
    return written;
  }

  std::vector<size_t> last_made_first(const ChannelJoin& join) const {
    std::vector<size_t> order(join.images.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const NodeId of_a = p_.producer(join.images[a]);
      const NodeId of_b = p_.producer(join.images[b]);
      return of_a != of_b ? of_a > of_b : a < b;
    });
    return order;
  }

  // What makes image `i` of a join and can write it there: all of it goes there once, and who else
  // reads it can read it there.
  NodeId maker_of(const ChannelJoin& join, size_t i, NodeId id) const {
    const ValueId x = join.images[i];
    const JoinPart& part = join.parts[i];
    const NodeId maker = p_.producer(x);
    if (maker == kNone || part.from != 0 || part.count != readers_.channels(x) ||
        std::count(join.images.begin(), join.images.end(), x) != 1 || !readers_.can_all(x, id)) {
      return kNone;
    }
    if (const std::optional<ChannelJoin> inner = readers_.join_of(maker)) {
      return inner->begun == kNone ? maker : kNone;
    }
    if (p_.node(maker).attributes.has(kJoinedAttribute)) return kNone;
    if (is_resize_of_pixels(maker) || p_.is(maker, "ConvTranspose", kNhwcDomain)) return maker;
    const std::optional<ConvStep> step = last_step(p_, maker);
    return step && has_room(p_, *step) ? maker : kNone;
  }

  bool is_resize_of_pixels(NodeId id) const {
    constexpr int kHasSizes = 11;
    return p_.is(id, "Resize") && p_.node(id).version >= kHasSizes &&
           !p_.node(id).attributes.has("axes") &&
           readers_.channels(p_.input(id, 0)) == readers_.channels(p_.node(id).outputs[0]);
  }

  // The input of an operator that is the image it goes on with.
  static size_t into_input(std::string_view type) {
    if (type == "Resize") return static_cast<size_t>(kResizeInto);
    if (type == "ConvTranspose") return static_cast<size_t>(kTransposeInto);
    return static_cast<size_t>(type == "Conv" ? kConvInto : kChainInto);
  }

  ValueId begun_image(ValueId image, const std::string& name) {
    return p_.add_value(name + "/joined", p_.graph().value(image).type);
  }

  void write(Writer* writer, int64_t channels, ValueId begun, ValueId made) {
    if (!writer->writes()) return p_.remove(writer->node);
    if (writer->copies) {
      ChannelJoin& join = *writer->copies;
      join.begun = begun;
      join.channels = channels;
      for (size_t i = 0; i < join.images.size(); ++i) {
        const auto moved = moved_.find(join.images[i]);
        if (moved == moved_.end()) continue;
        join.images[i] = moved->second.image;
        join.parts[i].from += moved->second.at;
      }
      return readers_.set_join(writer->node, join, made);
    }
    Node node = operator_of(p_.node(writer->node));
    node.domain = kNhwcDomain;
    if (begun != kNone) {
      node.inputs.resize(into_input(node.op_type), kNone);
      node.inputs.push_back(begun);
    }
    set_join_place({writer->at, channels}, &node.attributes);
    node.outputs = {made};
    p_.replace(writer->node, std::move(node));
  }

  Pattern& p_;
  ChannelReaders readers_;
  std::unordered_map<ValueId, Place> moved_;
};

}  // namespace

void join_in_place(Model* model) {
  bool changed = false;
  for_each_fitting_graph(
      &model->graph, &changed, [](Pattern& p) { JoinsInPlace(p).join(); },
      [](const Graph& graph) {
        return has_convs_beside(graph, {"Concat", "Join"});
      });
}

}  // namespace folio
