// A shuffle of channels: as ShuffleNet has it, so that groups see each other's channels.
//
//   [N, C, ...] -> Reshape [N, a, b, ...] -> Transpose [0, 2, 1, ...] -> Reshape [N, C, ...]
//
// With channels last it is the same of the last dims.
//
// Owns:    ids of nodes and values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/passes/pattern.h"

namespace folio {

struct ChannelShuffle {
  NodeId transpose = kNone;
  NodeId last = kNone;     // the second Reshape
  ValueId result = kNone;  // what that makes
  int64_t parts[2];        // of the channels, before they change places
};

// The one that begins with node `first`, whose values between nothing else reads.
std::optional<ChannelShuffle> channel_shuffle_at(const Pattern& pattern, NodeId first);

// The same of an image with channels last: three nodes, the last of which gets its output from the
// caller. None where there is no memory for their constants.
std::vector<Node> shuffle_last(Pattern* pattern, const ChannelShuffle& shuffle,
                               const std::string& name, ValueId x, int opset);

}  // namespace folio
