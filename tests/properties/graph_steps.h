// Steps of random_graph.cc: each takes values that are there and adds a pattern over them.
//
// A step gives false, having added nothing, where no value fits.
#pragma once

#include "tests/properties/graph_draw.h"

namespace folio::properties {

using Step = bool (*)(GraphDraw& g);

// A function of elements, in one of its spellings; `channels` for a slope per channel (axis 1).
std::string draw_function(GraphDraw& g, const std::string& x, int64_t channels);

// ReduceMean and its like, whose axes are an attribute or an input.
std::string reduced(GraphDraw& g, std::string_view type, const std::string& x, const Dims64& axes,
                    bool keeps);

// Rows [B, S, E] of a value times those of another, turned: [B, S, T].
struct Scores {
  std::string name;  // "": no value fits
  Dims64 dims;
  int64_t width = 0;  // E
};
Scores draw_scores(GraphDraw& g);

// x, or x and a bias of `width`.
std::string maybe_biased(GraphDraw& g, const std::string& x, int64_t width);

// Convolutions, pools and all that has channels.
Span<const Step> image_steps();
// Products, norms and attention over [batch, tokens, width].
Span<const Step> token_steps();
// Operators between DequantizeLinear and QuantizeLinear.
Span<const Step> byte_steps();
// What moves, cuts and joins values of any rank.
Span<const Step> move_steps();

}  // namespace folio::properties
