// Operators that can read some channels of an image with channels last where they lie.
//
// Flow:    a pass that would have a value be channels of an image asks can_all() of its readers,
//          and then lets them read_from() that image.
// Owns:    nothing.
// Threads: one, while loading.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/op_nhwc_channels.h"
#include "core/passes/pattern.h"

namespace folio {

// A Concat, or Join, of images along their channels.
struct ChannelJoin {
  ValueId begun = kNone;        // by others; of a Join
  std::vector<ValueId> images;  // that are copied, with
  std::vector<JoinPart> parts;  // what of each
  int64_t channels = 0;
};

// A convolution with channels last, or the first or last step of a ConvChain.
struct ConvStep {
  std::string prefix;  // of its attributes' names
  Attributes attributes;
  ValueId weights = kNone;  // of MaxPool: none
};
std::optional<ConvStep> first_step(const Pattern& p, NodeId id);
std::optional<ConvStep> last_step(const Pattern& p, NodeId id);
// Whether its pixels can be apart, as those of an image's channels are: leaves_room().
bool has_room(const Pattern& p, const ConvStep& step);

// Whether a graph has convolutions with channels last, as they are now, and any of these operators:
// others have nothing to gain.
bool has_convs_beside(const Graph& graph, std::initializer_list<std::string_view> types);

// Whether that is the axis of the channels.
bool is_last_axis(const Dims& image, int64_t axis);

class ChannelReaders {
 public:
  explicit ChannelReaders(Pattern* pattern) : p_(*pattern) {}

  // Channels of a float image of 3 to 5 dims; nothing where it is none, or they are not known.
  std::optional<int64_t> channels(ValueId value) const;

  // Node `id` as a join; nothing where it is none, or an input may not fit.
  std::optional<ChannelJoin> join_of(NodeId id) const;
  // Puts a Join of that in its place, which makes `made` (kNone: what node `id` made).
  void set_join(NodeId id, const ChannelJoin& join, ValueId made = kNone);

  // Whether every reader of `value`, but for node `besides`, can read channels of an image instead.
  bool can_all(ValueId value, NodeId besides = kNone) const;
  // They read `image` then, from channel `at` on.
  void read_from(ValueId value, ValueId image, int64_t at, NodeId besides = kNone);

 private:
  bool can(NodeId reader, ValueId value) const;
  // The name of the attribute that says from which channel on input `i` is read; empty: it is none
  // of these.
  std::string attribute_of(NodeId reader, size_t i) const;

  Pattern& p_;
};

}  // namespace folio
