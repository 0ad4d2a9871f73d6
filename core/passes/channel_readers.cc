#include "core/passes/channel_readers.h"

#include <algorithm>

#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_chain.h"

namespace folio {
namespace {

constexpr size_t kFewestDims = 3;
constexpr size_t kMostDims = 5;

// Beside the last one's.
bool same_pixels(const Pattern& p, const Dims& a, Dims b) {
  if (a.size() != b.size()) return false;
  b.back() = a.back();
  return p.same_dims(a, b);
}

// What follows on what is there already of the same image is one part with it.
void add_part(ValueId image, const JoinPart& part, ChannelJoin* join) {
  if (!join->parts.empty() && join->images.back() == image) {
    JoinPart& last = join->parts.back();
    if (last.from + last.count == part.from && last.at + last.count == part.at) {
      last.count += part.count;
      return;
    }
  }
  join->images.push_back(image);
  join->parts.push_back(part);
}

// Of a convolution, or a chain's step if it has that one.
std::optional<ConvStep> step_of(const Pattern& p, NodeId id, size_t step) {
  const Node& node = p.node(id);
  if (p.is(id, "Conv", kNhwcDomain)) return ConvStep{{}, node.attributes, p.input(id, 1)};
  ConvStep found{std::string(kChainSteps[step]), attributes_of_step(node.attributes, step),
                 p.input(id, static_cast<size_t>(weights_of_step(step)))};
  const bool is_there = found.weights != kNone || found.attributes.has("kernel_shape");
  return is_there ? std::make_optional(std::move(found)) : std::nullopt;
}

bool is_conv(const Pattern& p, NodeId id) {
  return p.is(id, "Conv", kNhwcDomain) || p.is(id, "ConvChain", kNhwcDomain);
}

}  // namespace

std::optional<ConvStep> first_step(const Pattern& p, NodeId id) {
  std::optional<ConvStep> found;
  for (size_t step = 0; is_conv(p, id) && !found && step < kMostSteps; ++step) {
    found = step_of(p, id, step);
  }
  return found;
}

std::optional<ConvStep> last_step(const Pattern& p, NodeId id) {
  std::optional<ConvStep> found;
  for (size_t step = kMostSteps; is_conv(p, id) && !found && step > 0; --step) {
    found = step_of(p, id, step - 1);
  }
  return found;
}

bool has_room(const Pattern& p, const ConvStep& step) {
  if (step.weights == kNone) return true;
  const std::optional<Shape> w = p.shape(step.weights);
  const auto group = step.attributes.get_int("group", 1);
  return w && group.is_ok() && leaves_room(w->dims(), group.value());
}

bool has_convs_beside(const Graph& graph, std::initializer_list<std::string_view> types) {
  return (has_operator(graph, "Conv") || has_operator(graph, "ConvChain")) &&
         std::any_of(types.begin(), types.end(),
                     [&](std::string_view type) { return has_operator(graph, type); });
}

bool is_last_axis(const Dims& image, int64_t axis) {
  return axis == static_cast<int64_t>(image.size()) - 1 || axis == -1;
}

std::optional<int64_t> ChannelReaders::channels(ValueId value) const {
  const Dims* const dims = value != kNone && p_.is_float(value) ? p_.dims(value) : nullptr;
  if (!dims || dims->size() < kFewestDims || dims->size() > kMostDims || !dims->back().is_value() ||
      dims->back().value <= 0) {
    return std::nullopt;
  }
  return dims->back().value;
}

std::optional<ChannelJoin> ChannelReaders::join_of(NodeId id) const {
  const bool is_join = p_.is(id, "Join", kNhwcDomain);
  if (!is_join && !p_.is(id, "Concat")) return std::nullopt;
  const Node& node = p_.node(id);
  const std::optional<int64_t> all = channels(node.outputs[0]);
  if (!all) return std::nullopt;
  const Dims& joined = *p_.dims(node.outputs[0]);
  const auto axis = node.attributes.get_int("axis", 1);
  if (!is_join && (!axis.is_ok() || !is_last_axis(joined, axis.value()))) return std::nullopt;
  ChannelJoin join;
  join.begun = is_join ? p_.input(id, 0) : kNone;
  const size_t first = is_join ? 1 : 0;
  auto parts =
      parse_join_parts(node.attributes, is_join ? static_cast<int>(node.inputs.size()) - 1 : 0);
  if (is_join && !parts.is_ok()) return std::nullopt;
  for (size_t i = first; i < node.inputs.size(); ++i) {
    const std::optional<int64_t> count = channels(node.inputs[i]);
    if (!count || !same_pixels(p_, joined, *p_.dims(node.inputs[i]))) return std::nullopt;
    const JoinPart whole{join.channels, 0, *count};
    const JoinPart& part = is_join ? parts.value()[i - 1] : whole;
    add_part(node.inputs[i], part, &join);
    join.channels += part.count;
  }
  if (is_join) join.channels = *all;
  if (join.channels != *all) return std::nullopt;
  return join;
}

void ChannelReaders::set_join(NodeId id, const ChannelJoin& join, ValueId made) {
  std::vector<ValueId> inputs = {join.begun};
  inputs.insert(inputs.end(), join.images.begin(), join.images.end());
  Node node = make_node(p_.node(id).name, kNhwcDomain, "Join", 1, std::move(inputs));
  set_join_parts(join.parts, &node.attributes);
  set_join_place({0, join.channels}, &node.attributes);
  if (made != kNone) node.outputs = {made};
  p_.replace(id, std::move(node));
}

std::string ChannelReaders::attribute_of(NodeId reader, size_t i) const {
  const bool is_chain = p_.is(reader, "ConvChain", kNhwcDomain);
  if (i == static_cast<size_t>(is_chain ? kChainZ : kConvZ)) return std::string(kZAtAttribute);
  const std::optional<ConvStep> step = i == 0 ? first_step(p_, reader) : std::nullopt;
  const bool reads = step && step->weights != kNone && !step->attributes.has(kPlanesAttribute);
  return reads && has_room(p_, *step) ? step->prefix + std::string(kXAtAttribute) : "";
}

bool ChannelReaders::can(NodeId reader, ValueId value) const {
  const Node& node = p_.node(reader);
  if (join_of(reader)) return node.inputs[0] != value || p_.is(reader, "Concat");
  if (!is_conv(p_, reader)) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == value && attribute_of(reader, i).empty()) return false;
  }
  return true;
}

bool ChannelReaders::can_all(ValueId value, NodeId besides) const {
  if (!p_.can_bypass(value)) return false;
  const std::vector<NodeId> readers = p_.readers_of(value);
  return std::all_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return reader == besides || can(reader, value); });
}

void ChannelReaders::read_from(ValueId value, ValueId image, int64_t at, NodeId besides) {
  for (const NodeId reader : p_.readers_of(value)) {
    if (reader == besides) continue;
    if (std::optional<ChannelJoin> join = join_of(reader)) {
      ChannelJoin moved;
      moved.begun = join->begun;
      moved.channels = join->channels;
      for (size_t i = 0; i < join->images.size(); ++i) {
        const bool is_it = join->images[i] == value;
        JoinPart part = join->parts[i];
        if (is_it) part.from += at;
        add_part(is_it ? image : join->images[i], part, &moved);
      }
      set_join(reader, moved);
      continue;
    }
    Node node = operator_of(p_.node(reader));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != value) continue;
      const std::string name = attribute_of(reader, i);
      const auto before = node.attributes.get_int(name, 0);
      node.attributes.set(int_attribute(name, at + (before.is_ok() ? before.value() : 0)));
      node.inputs[i] = image;
    }
    p_.replace(reader, std::move(node));
  }
}

}  // namespace folio
