// Split and Slice of an image's channels, with channels last: who reads them reads the image, where
// all of them can.
//
//   Split, Slice along the last axis -> folio.nhwc.Conv, ConvChain, Concat
//       -> the same of some channels of what was cut; Concat is folio.nhwc.Join then
//   Concat of what another Concat begins with, and more -> Concat of that one's result, and more
//
// Private: the result is never saved.
#include <algorithm>

#include "core/passes/channel_readers.h"
#include "core/passes/passes.h"
#include "core/passes/pattern.h"

namespace folio {
namespace {

class ReadsChannels {
 public:
  explicit ReadsChannels(Pattern& pattern) : p_(pattern), readers_(&pattern) {}

  void run() {
    // The last ones first: those before are as they were then.
    for (NodeId id = p_.count() - 1; id >= 0; --id) {
      if (p_.is(id, "Concat")) begin_with_another(id);
    }
    // What is cut from a part first.
    for (NodeId id = p_.count() - 1; id >= 0; --id) {
      if (p_.is(id, "Split")) take_split(id);
      if (p_.is(id, "Slice")) take_slice(id);
    }
  }

 private:
  // As the blocks of a DenseNet have them.
  void begin_with_another(NodeId id) {
    const std::vector<ValueId> inputs = p_.node(id).inputs;
    if (!readers_.join_of(id)) return;
    NodeId longest = kNone;
    for (const NodeId other : p_.readers_of(inputs[0])) {
      const std::vector<ValueId>& begin = p_.node(other).inputs;
      if (other >= id || !p_.is(other, "Concat") || !readers_.join_of(other) || begin.size() < 2 ||
          begin.size() >= inputs.size() ||
          !std::equal(begin.begin(), begin.end(), inputs.begin())) {
        continue;
      }
      if (longest == kNone || begin.size() > p_.node(longest).inputs.size()) longest = other;
    }
    if (longest == kNone) return;
    const auto shared = static_cast<int64_t>(p_.node(longest).inputs.size());
    std::vector<ValueId> rest = {p_.node(longest).outputs[0]};
    rest.insert(rest.end(), inputs.begin() + shared, inputs.end());
    Node joined = operator_of(p_.node(id));
    joined.inputs = std::move(rest);
    p_.replace(id, std::move(joined));
  }

  void take_split(NodeId id) {
    const ValueId image = p_.input(id, 0);
    const auto axis = p_.node(id).attributes.get_int("axis", 0);
    const std::optional<int64_t> all = readers_.channels(image);
    if (!all || !axis.is_ok() || !is_last_axis(*p_.dims(image), axis.value())) return;
    const std::vector<ValueId> outputs = p_.node(id).outputs;
    int64_t count = 0;
    for (const ValueId output : outputs) {
      const std::optional<int64_t> channels = readers_.channels(output);
      if (!channels || !readers_.can_all(output)) return;
      count += *channels;
    }
    if (count != *all) return;
    int64_t at = 0;
    for (const ValueId output : outputs) {
      const int64_t channels = *readers_.channels(output);
      readers_.read_from(output, image, at);
      at += channels;
    }
  }

  void take_slice(NodeId id) {
    const ValueId image = p_.input(id, 0);
    const ValueId part = p_.node(id).outputs[0];
    const std::optional<int64_t> all = readers_.channels(image);
    const std::optional<int64_t> count = readers_.channels(part);
    const auto only = [&](size_t i) -> std::optional<int64_t> {
      const ValueId input = p_.input(id, i);
      const auto values = input == kNone ? std::nullopt : p_.ints(input);
      if (!values || values->size() != 1) return std::nullopt;
      return values->front();
    };
    const std::optional<int64_t> begin = only(1);
    const std::optional<int64_t> axis = only(3);
    if (!all || !count || !begin || !axis || !is_last_axis(*p_.dims(image), *axis)) return;
    if (p_.input(id, 4) != kNone && only(4) != 1) return;
    const int64_t at = *begin < 0 ? std::max<int64_t>(*begin + *all, 0) : *begin;
    if (*count > *all || at > *all - *count || !readers_.can_all(part)) return;
    readers_.read_from(part, image, at);
  }

  Pattern& p_;
  ChannelReaders readers_;
};

}  // namespace

void read_channels(Model* model) {
  bool changed = false;
  for_each_fitting_graph(
      &model->graph, &changed, [](Pattern& p) { ReadsChannels(p).run(); },
      [](const Graph& graph) {
        return has_convs_beside(graph, {"Concat", "Split", "Slice"});
      });
}

}  // namespace folio
