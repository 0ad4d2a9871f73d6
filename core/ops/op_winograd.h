// Winograd's convolution: 3x3 with stride 1 and channels last, 4 x 4 outputs at a time. Dilated
// filters: outputs that are the dilation apart see pixels that no others see, so they are a smaller
// image of their own.
//
// Filters along a line, 1 x K or K x 1, 4 outputs at a time by 3 or 4 taps at a time: 6
// multiply-adds for what takes 12 directly, or 7 for 16. Larger filters, and of 3-D images: as
// several of 3 x 3.
//
// Math:    core/kernels/winograd.h. V [36][tiles, C], U [36][C, M]: 36 products of matrices, whose
//          results are turned into pixels. 36 multiply-adds for what takes 144 directly.
// Method:  a block of tiles at a time, so that its V and its products stay in L2; fewer blocks than
//          threads: some output channels of one for each, all of whom make its V.
//          Filters of several pieces: V [36][tiles, pieces * C], of lines [6 or 7]: each piece
//          sees pixels of its own, and their products are one sum.
// Weights: U packed before; else each run makes it from the weights, as direct convolution has them
//          packed or as they lie, by the same code: bit-identical. Where there are more tiles than
//          filters once for all, else for some output channels at a time, which meet all tiles.
// Errors:  an image that has a sum which is not finite is computed again directly, from the weights
//          themselves: infinities and NaN are those of direct convolution, and so is what only the
//          transforms' larger numbers overflow.
// Memory:  a block's V and products for each thread, and U for all if it was not packed; or a
//          block's U and products for each thread, and V for all: kMostShared floats at most.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_nhwc_conv.h"
#include "core/ops/op_winograd_tiles.h"

namespace folio {

// The attribute `winograd` of convolutions that compute so, and of those whose U is packed.
inline constexpr int64_t kWinograd = 1;
inline constexpr int64_t kWinogradPacked = 2;

// Whether it computes this: stride 1, one group, of all axes one that is 3 to 33, or several with
// 81 taps at most.
bool fits_winograd(Span<const int64_t> w, const ConvAttrs& attrs);
// Whether that is faster for images that are not small, too: fewer channels or filters leave the
// transforms too much of the work.
bool suits_winograd(Span<const int64_t> w, const ConvAttrs& attrs);
// Asks for U (F32WINO43, F32WINOLINE), which is args.transformed then.
Result<PackRequest> winograd_request(const FolioKernels& kernels, Span<const int64_t> w);

Status run_winograd_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

}  // namespace folio
