// What both forms of ConvTranspose share: attributes, sizes and inference.
//
// Owns:    plain values.
// Errors:  kInvalidGraph for attributes, kInvalidArgument for shapes that do not fit.
#pragma once

#include <vector>

#include "core/ops/op_conv.h"

namespace folio {

struct TransposeAttrs {
  ConvAttrs conv;
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape;  // spatial, or with batch and channels in front
};

Result<TransposeAttrs> parse_conv_transpose(const Attributes& attrs);

// x [N, C, spatial...], w [C, M / group, kernel...]; `b` may be null. Of the window, `in` is x's
// and `out` y's: y[i * stride + t * dilation - pad_begin] += w[t] * x[i].
Result<ConvSizes> transpose_sizes(const TransposeAttrs& attrs, const Shape& x, const Shape& w,
                                  const Tensor* b);

// x [N, spatial..., C] where it has channels last, and y then, too.
Status infer_conv_transpose(OpInfer& infer, bool channels_last);
Status infer_conv_transpose(OpInfer& infer, bool channels_last, const TransposeAttrs& attrs);

// Whether weights [C, M / group, kernel...] have the form with channels last.
bool fits_nhwc_transpose(Span<const int64_t> w, const TransposeAttrs& attrs);

}  // namespace folio
