#include "core/passes/channel_shuffle.h"

#include <numeric>
#include <utility>

#include "core/base/checked_math.h"

namespace folio {
namespace {

// [N, C, ...] and [N, a, b, ...]. A Reshape leaves the count of elements: so what comes behind are
// the pixels, in however many dims.
bool splits_channels(const Pattern& pattern, const Dims& whole, const Dims& parts) {
  if (whole.size() < 3 || whole.size() > 5 || parts.size() < 3) return false;
  if (!pattern.same_dims(Dims{whole[0]}, Dims{parts[0]})) return false;
  int64_t channels = 0;
  return whole[1].is_value() && parts[1].is_value() && parts[2].is_value() &&
         checked_mul(parts[1].value, parts[2].value, &channels) && channels > 0 &&
         channels == whole[1].value;
}

bool swaps_parts(const Node& transpose, size_t rank) {
  auto perm = transpose.attributes.get_ints("perm");
  if (!perm.is_ok() || perm.value().size() != rank) return false;
  std::vector<int64_t> order = std::move(perm).take();
  std::swap(order[1], order[2]);
  for (size_t i = 0; i < rank; ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

std::optional<ChannelShuffle> channel_shuffle_at(const Pattern& pattern, NodeId first) {
  if (!pattern.is(first, "Reshape")) return std::nullopt;
  const ValueId x = pattern.input(first, 0);
  const ValueId parts = pattern.node(first).outputs[0];
  const Dims* from = pattern.dims(x);
  const Dims* to = pattern.dims(parts);
  // Before the first reader is asked for: most graphs have none of these, and then no such lists.
  if (!from || !to || !splits_channels(pattern, *from, *to)) return std::nullopt;
  ChannelShuffle out;
  out.transpose = pattern.sole_reader(parts);
  if (!pattern.is(out.transpose, "Transpose") ||
      !swaps_parts(pattern.node(out.transpose), to->size())) {
    return std::nullopt;
  }
  const ValueId swapped = pattern.node(out.transpose).outputs[0];
  out.last = pattern.sole_reader(swapped);
  if (!pattern.is(out.last, "Reshape") || pattern.input(out.last, 0) != swapped) {
    return std::nullopt;
  }
  out.result = pattern.node(out.last).outputs[0];
  if (!pattern.same_dims(x, out.result)) return std::nullopt;
  out.parts[0] = (*to)[1].value;
  out.parts[1] = (*to)[2].value;
  return out;
}

std::vector<Node> shuffle_last(Pattern* pattern, const ChannelShuffle& shuffle,
                               const std::string& name, ValueId x, int opset) {
  const auto [a, b] = shuffle.parts;
  const TypeInfo type = pattern->graph().value(x).type;
  const size_t channels = type.dims->size() - 1;  // their axis
  TypeInfo split = type;
  split.dims->back() = Dim::of(a);
  split.dims->push_back(Dim::of(b));
  TypeInfo swapped = split;
  std::swap((*swapped.dims)[channels], (*swapped.dims)[channels + 1]);
  std::vector<int64_t> target(channels, 0);  // copies of the dims there
  target.push_back(a * b);
  const ValueId to_joined = pattern->add_ints(name + "/joined/nhwc", target);
  target.back() = a;
  target.push_back(b);
  const ValueId to_split = pattern->add_ints(name + "/split/nhwc", target);
  if (to_joined == kNone || to_split == kNone) return {};
  std::vector<int64_t> perm(channels + 2);
  std::iota(perm.begin(), perm.end(), int64_t{0});
  std::swap(perm[channels], perm[channels + 1]);

  std::vector<Node> nodes;
  nodes.push_back(make_node(name, "", "Reshape", kReshapeVersion, {x, to_split}));
  nodes.back().outputs = {pattern->add_value(name + "/nhwc", std::move(split))};
  nodes.push_back(make_node(name + "/swap", "", "Transpose", opset, nodes[0].outputs));
  nodes.back().outputs = {pattern->add_value(name + "/swapped/nhwc", std::move(swapped))};
  nodes.back().attributes.set(ints_attribute("perm", std::move(perm)));
  nodes.push_back(
      make_node(name + "/join", "", "Reshape", kReshapeVersion, {nodes[1].outputs[0], to_joined}));
  return nodes;
}

}  // namespace folio
