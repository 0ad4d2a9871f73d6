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
// Weights: U packed before (F32WINO43, F32WINOLINE); else made for some output channels at a time
//          by the same code: bit-identical.
// Errors:  an image that has a sum which is not finite is computed again directly, from the weights
//          themselves: infinities and NaN are those of direct convolution, and so is what only the
//          transforms' larger numbers overflow.
// Memory:  a block's V and products for each thread; fresh U instead, then V of kMostShared floats
//          for all.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_nhwc_conv.h"

namespace folio {

// How outputs along one axis, `dilation` apart, are cut into tiles.
struct WinogradAxis {
  WinogradAxis(int64_t outputs, int64_t dilation);
  // Of a tile's outputs. The first one of tile i is i % together + i / together * 4 * step: tiles
  // side by side are neighbours.
  int64_t step;
  int64_t together;  // tiles whose outputs stand between each other's
  int64_t count;
};

// Of an image, by axes as a Window counts them.
struct WinogradAxes {
  WinogradAxis of[3];
  int64_t count() const { return of[0].count * of[1].count * of[2].count; }
};

// Whether it computes this: stride 1, one group, of all axes one that is 3 to 33, or several with
// 81 taps at most.
bool fits_winograd(Span<const int64_t> w, const ConvAttrs& attrs);
// Whether that is faster for images that are not small, too: fewer channels or filters leave the
// transforms too much of the work.
bool suits_winograd(Span<const int64_t> w, const ConvAttrs& attrs);
// Of weights that fit: matrices of [depth, M], which are multiplied instead of `taps`. Axes are
// those of a Window.
struct WinogradForm {
  explicit WinogradForm(Span<const int64_t> w);
  // Whether tiles are of several outputs along that axis.
  bool has_tiles(int axis) const { return size[axis] > 1; }
  // As the transforms have them.
  int32_t line_taps() const { return is_line ? static_cast<int32_t>(piece_taps) : 0; }

  bool is_line;
  int64_t kernel[3];
  int64_t size[3];   // of a piece of the taps: 3 by 3, of a line 3 or 4; else 1
  int64_t count[3];  // pieces
  int64_t taps;
  int64_t pieces;
  int64_t piece_taps;
  int64_t planes;
  int64_t depth;
};
Result<PackRequest> winograd_request(const FolioKernels& kernels, Span<const int64_t> w);

// args.packed: as winograd_request() has it, or null.
Status run_winograd_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

}  // namespace folio
