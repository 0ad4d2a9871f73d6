// Weights [M, C/g, kernel...] of convolutions with channels last: which ones that form takes, and
// how they are packed (op_nhwc_conv.h computes).
#pragma once

#include "core/base/span.h"
#include "core/model/attributes.h"
#include "core/ops/op_half_panels.h"
#include "core/prepack/pack_request.h"

namespace folio {

bool fits_nhwc_conv(Span<const int64_t> w, int64_t group);
// A filter over one channel each.
bool is_depthwise_conv(Span<const int64_t> w, int64_t group);
// Filters whose sums stand beside their channels (depthwise_f32, grouped_f32): over one channel
// each, or in square groups of 2, 4, 8 or 16.
bool is_window_conv(Span<const int64_t> w, int64_t group);
// As OpDef::takes_half, of weights.
bool takes_half_nhwc(const Attributes& attributes, const Shape& w);

Result<PackRequest> nhwc_conv_request(const FolioKernels& kernels, Span<const int64_t> w,
                                      int64_t group, bool is_planes = false,
                                      DType dtype = DType::kFloat);

// Filters [first, first + count), all of one group, of k = taps * channels elements each, as
// F32P16. `source`: float, float16 or bfloat16, perhaps unaligned.
void fill_conv_panels(const FolioKernels& kernels, int64_t taps, int64_t k, int64_t first,
                      int64_t count, const Tensor& source, float* panels);

}  // namespace folio
