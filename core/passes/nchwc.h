// The domain com.microsoft.nchwc: what ONNX Runtime's highest level of optimization leaves in a
// model that it saves. Images stand in blocks of channels there, [N, C / block, H, W, block], under
// dims that say [N, C, H, W]; filters stand in blocks too. The file does not say how long a block
// is: as many channels as the machine that saved it has floats in a register, 8 or 16.
//
// Flow:    right after a model was built, before anyone looks at its nodes: nchwc_block_size, then
//          take_nchwc (passes.h).
// Owns:    nothing.
// Threads: one thread while loading.
#pragma once

#include "core/model/graph.h"

namespace folio {

inline constexpr std::string_view kNchwcDomain = "com.microsoft.nchwc";

inline bool is_nchwc(const Node& node) { return node.domain == kNchwcDomain; }
inline bool is_nchwc(const Node& node, std::string_view type) {
  return is_nchwc(node) && node.op_type == type;
}

// Whether a node of the domain gives an image in blocks.
inline bool makes_blocks(const Node& node) {
  return is_nchwc(node) && node.op_type != "ReorderOutput";
}

// The block of a graph that has nodes of the domain, and of those inside it: 8 or 16. By counts of
// channels that only one of the two has; else by which weights of a filter are alike; else 16, with
// a warning in the log.
int64_t nchwc_block_size(const Graph& graph);

}  // namespace folio
