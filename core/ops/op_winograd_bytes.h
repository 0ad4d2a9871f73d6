// Convolutions of bytes, 3 x 3 with stride 1, by Winograd's algorithm in whole numbers: 36 products
// of words instead of 144 of bytes, the same sums bit by bit. Any dilations.
//
// Math:    core/kernels/winograd.h. V [36][tiles, C], U [36][C, M]: 36 products of matrices modulo
//          2^32, whose results are turned into sums, which become what FolioSums says.
// Method:  a block of tiles at a time, so that its V and its products stay in L2.
// Weights: U packed before (S16WINO43); where there is none, or sums might not fit, the convolution
//          is computed directly, with the same results.
// Memory:  a block's V and products for each thread.
// Splits:  by shape and threads; exact, so bit-identical for any number of them.
#pragma once

#include "core/ops/op_conv_bytes.h"

namespace folio {

// Whether it computes this: [M, C, 3, 3], stride 1, one group, C a multiple of 16.
bool fits_winograd_bytes(Span<const int64_t> w, const ConvAttrs& attrs);
// Whether that is faster for so many tiles of 4 x 4 outputs of `pixels` outputs.
bool winograd_bytes_pays(int64_t channels, int64_t filters, double tiles, double pixels);

// Asks for the constant weights at `input` when they fit.
Status request_winograd_bytes(OpBuild& build, int input, const ConvAttrs& attrs);
// S16WINO43 of W; false when there are too many bytes.
bool winograd_bytes_request(Span<const int64_t> w, PackRequest* out);

// Whether all sums of such weights, S16WINO43 of [filters, channels], are known to fit: of more
// than 227 channels those of large weights may not (of 256 more than 113 on average, of 512 56).
bool winograd_sums_fit(int64_t channels, int64_t filters, const uint8_t* panels);

// x: [N, pixels, C] unsigned with the zero point x_zero; panels: as they were asked for, whose sums
// fit. The zero points of W are 0 (of unsigned ones 128).
Status run_winograd_bytes(OpRun& run, const ConvSizes& s, const ByteConv& conv, const uint8_t* x,
                          uint8_t x_zero, const uint8_t* panels);

}  // namespace folio
