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

// x W [+ b], with W turned here and there.
std::string draw_product(GraphDraw& g, const std::string& x, int64_t from, int64_t to,
                         bool has_bias);
// x W of codes of 4 or 8 bits in blocks, with a bias here and there.
std::string block_product(GraphDraw& g, const std::string& x, int64_t from, int64_t to);

// A Cast to a type of ONNX.
std::string cast(GraphDraw& g, const std::string& x, model_writer::ElementType type);

// Shape arithmetic of a value of `rank` dims, in one of exporters' spellings; all of int64.
struct Sized {
  std::string name;
  size_t rank;
};
std::string dim_of(GraphDraw& g, const Sized& x, int64_t axis);     // [1]
std::string scalar_of(GraphDraw& g, const Sized& x, int64_t axis);  // []
// The dims of x along these axes; -n is the constant n, and an axis that x does not have is -1, for
// Reshape to find.
std::string dims_of(GraphDraw& g, const Sized& x, const Dims64& axes);
// 0, 1 ... up to a scalar, [N].
std::string range_to(GraphDraw& g, const std::string& count);

// Convolutions, pools and all that has channels.
Span<const Step> image_steps();
// Products, norms and attention over [batch, tokens, width].
Span<const Step> token_steps();
// What exporters make of a language model, over the same values.
Span<const Step> decoder_steps();
Span<const Step> attention_steps();
// Dims that are computed, masks, indices.
Span<const Step> shape_steps();
// Loop, Scan and If.
Span<const Step> body_steps();
// Operators between DequantizeLinear and QuantizeLinear.
Span<const Step> byte_steps();
// What moves, cuts and joins values of any rank.
Span<const Step> move_steps();

}  // namespace folio::properties
