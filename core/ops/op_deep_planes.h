// Convolution of deep images (three spatial dims) with few channels by few filters, channels first.
//
// Math:    each plane of y is a sum of filters of two dims over planes of x: those of all channels
//          at one depth under the filter, then at the next.
// Method:  the slot filter_plane_f32, whose vectors are neighbouring pixels of a line: products
//          have the filters beside each other, of which there are too few for a vector. Some lines
//          of all filters at a time, so that what they read of the planes stays near.
// Splits:  by planes and lines, by shape only; bit-identical for any number of threads.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op_depthwise.h"

namespace folio {

// Pixels of the shortest line, two vectors: of a shorter one edges are too much.
inline constexpr int64_t kDeepLine = 32;

// By the weights [M, C, kernel...] alone; what lines of an image are too short for is not known
// yet.
bool are_deep_planes(Span<const int64_t> w, const ConvAttrs& attrs);

bool fits_deep_planes(const ConvSizes& s);

// Of sizes that fit; `bias` may be null.
Status run_deep_planes(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                       const float* bias, const ConvFinish& finish, float* y);

}  // namespace folio
