// Convolution of an image that has its few channels first by so few filters that vectors of
// neighbouring pixels take less time than those of filters or of taps.
//
// Method:  the slot filter_plane_f32, some lines of all filters at a time, whose results are put
//          between each other; then what is added and applied.
// Splits:  by lines, by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_nhwc_conv.h"

namespace folio {

bool fits_few_planes(const ConvSizes& s, const NhwcConvArgs& args);

// As run_nhwc_conv(), which calls it. args.turned is there.
Status run_few_planes(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

}  // namespace folio
