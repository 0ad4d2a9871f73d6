#include "core/ops/op_conv_transpose.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/ops/op_nhwc_channels.h"

namespace folio {
namespace {

// Larger numbers only serve to overflow index arithmetic.
constexpr int64_t kMaxSize = int64_t{1} << 30;

struct AxisSizes {
  int64_t out = 0;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
};

// The attributes' lengths have been checked for this rank.
AxisSizes axis_sizes(const TransposeAttrs& attrs, int64_t in, int64_t kernel, size_t axis,
                     size_t rank) {
  const WindowAttrs& w = attrs.conv.window;
  const int64_t stride = at_or(w.strides, axis, 1);
  const int64_t span = (kernel - 1) * at_or(w.dilations, axis, 1) + 1;
  const int64_t whole = stride * (in - 1) + at_or(attrs.output_padding, axis, 0) + span;
  const bool same = w.auto_pad == AutoPad::kSameUpper || w.auto_pad == AutoPad::kSameLower;
  AxisSizes sizes;
  if (attrs.output_shape.empty() && !same) {
    const bool pads = w.auto_pad == AutoPad::kNotSet;
    sizes.pad_begin = pads ? at_or(w.pads, axis, 0) : 0;
    sizes.pad_end = pads ? at_or(w.pads, axis + rank, 0) : 0;
    sizes.out = whole - sizes.pad_begin - sizes.pad_end;
    return sizes;
  }
  sizes.out = attrs.output_shape.empty()
                  ? in * stride
                  : attrs.output_shape[attrs.output_shape.size() - rank + axis];
  const int64_t total = std::max<int64_t>(whole - sizes.out, 0);
  sizes.pad_begin = w.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
  sizes.pad_end = total - sizes.pad_begin;
  return sizes;
}

bool lengths_fit(const TransposeAttrs& attrs, size_t rank) {
  const WindowAttrs& w = attrs.conv.window;
  const auto fits = [](Span<const int64_t> values, size_t size) {
    return values.empty() || values.size() == size;
  };
  return fits(w.kernel, rank) && fits(w.strides, rank) && fits(w.dilations, rank) &&
         fits(w.pads, 2 * rank) && fits(attrs.output_padding, rank) &&
         (fits(attrs.output_shape, rank) || attrs.output_shape.size() == rank + 2);
}

Result<Window> window_of(const TransposeAttrs& attrs, const Shape& x, const Shape& w) {
  const int rank = x.rank() - 2;
  if (rank < 1 || rank > kSpatial || w.rank() != x.rank()) {
    return invalid_argument("X ", x.to_string(), " and W ", w.to_string(),
                            " must have the same rank, 3 to ", kSpatial + 2);
  }
  const auto wanted = static_cast<size_t>(rank);
  const WindowAttrs& given = attrs.conv.window;
  if (!lengths_fit(attrs, wanted)) {
    return invalid_argument("an attribute does not have one entry per spatial dim of the input ",
                            x.to_string());
  }
  Window window;
  window.rank = rank;
  for (size_t axis = 0; axis < wanted; ++axis) {
    const size_t i = axis + static_cast<size_t>(kSpatial - rank);
    window.in[i] = x[static_cast<int>(axis) + 2];
    window.kernel[i] = w[static_cast<int>(axis) + 2];
    window.stride[i] = at_or(given.strides, axis, 1);
    window.dilation[i] = at_or(given.dilations, axis, 1);
    if (window.in[i] > kMaxSize || window.kernel[i] < 1 || window.kernel[i] > kMaxSize ||
        at_or(given.kernel, axis, window.kernel[i]) != window.kernel[i]) {
      return invalid_argument("X ", x.to_string(), " or W ", w.to_string(),
                              " is out of range or does not agree with kernel_shape");
    }
    const AxisSizes sizes = axis_sizes(attrs, window.in[i], window.kernel[i], axis, wanted);
    if (sizes.out < 0) {
      return invalid_argument("the pads leave ", sizes.out, " of dim ", axis + 2, " of the output");
    }
    window.out[i] = sizes.out;
    window.pad_begin[i] = sizes.pad_begin;
    window.pad_end[i] = sizes.pad_end;
  }
  return window;
}

// One spatial dim, symbolically: only a number or `in * constant` forms are claimed.
Dim infer_axis(const TransposeAttrs& attrs, DimTable& table, Dim in, Dim kernel, size_t axis,
               size_t rank) {
  if (!attrs.output_shape.empty()) {
    return Dim::of(attrs.output_shape[attrs.output_shape.size() - rank + axis]);
  }
  const WindowAttrs& w = attrs.conv.window;
  const bool same = w.auto_pad == AutoPad::kSameUpper || w.auto_pad == AutoPad::kSameLower;
  const int64_t stride = at_or(w.strides, axis, 1);
  if (same) return table.mul(in, Dim::of(stride));
  if (!kernel.is_value() || kernel.value < 1 || kernel.value > kMaxSize) return Dim::unknown();
  // out = in * stride + rest.
  const int64_t rest = axis_sizes(attrs, 1, kernel.value, axis, rank).out - stride;
  const Dim scaled = table.mul(in, Dim::of(stride));
  if (in.is_value()) {
    if (in.value > kMaxSize || in.value * stride + rest < 0) return Dim::unknown();
    return Dim::of(in.value * stride + rest);
  }
  return rest >= 0 ? table.add(scaled, Dim::of(rest)) : table.sub(scaled, Dim::of(-rest));
}

}  // namespace

Result<TransposeAttrs> parse_conv_transpose(const Attributes& attrs) {
  TransposeAttrs out;
  FOLIO_TRY(out.conv, parse_conv(attrs));
  FOLIO_TRY(out.output_padding, attrs.get_ints("output_padding"));
  FOLIO_TRY(out.output_shape, attrs.get_ints("output_shape"));
  for (const auto* values : {&out.output_padding, &out.output_shape}) {
    for (const int64_t value : *values) {
      if (value < 0 || value > kMaxSize) {
        return invalid_graph("attribute 'output_padding' or 'output_shape' holds ", value);
      }
    }
  }
  return out;
}

Result<ConvSizes> transpose_sizes(const TransposeAttrs& attrs, const Shape& x, const Shape& w,
                                  const Tensor* b) {
  ConvSizes s;
  FOLIO_TRY(s.window, window_of(attrs, x, w));
  s.batch = x[0];
  s.group = attrs.conv.group;
  s.c_in = x[1] / s.group;
  s.c_out = w[1];
  int64_t channels = 0;
  if (x[1] != w[0] || x[1] % s.group != 0 || !checked_mul(s.c_out, s.group, &channels)) {
    return invalid_argument("X ", x.to_string(), ", W ", w.to_string(), " and group ", s.group,
                            " do not agree on channels");
  }
  if (b && (b->rank() != 1 || b->dim(0) != channels)) {
    return invalid_argument("B ", b->shape().to_string(), " must have ", channels, " entries");
  }
  s.out = Shape{s.batch, channels};
  s.window.append_out(&s.out);
  // An empty X may claim any batch: the output's size must be known to fit.
  FOLIO_TRY(s.out, shape_from(s.out.dims()));
  // Without elements, X and W may claim dims whose products wrap.
  const Window& v = s.window;
  const int64_t rows[] = {s.c_out, v.kernel[0], v.kernel[1], v.kernel[2], 64};
  uint64_t count = 0;
  if (!checked_count(v.in, &count) || !checked_count(rows, &count)) {
    return invalid_argument("X ", x.to_string(), " or W ", w.to_string(), " is too large");
  }
  return s;
}

Status infer_conv_transpose(OpInfer& infer, bool channels_last) {
  FOLIO_TRY(const TransposeAttrs attrs, parse_conv_transpose(infer.attrs()));
  return infer_conv_transpose(infer, channels_last, attrs);
}

Status infer_conv_transpose(OpInfer& infer, bool channels_last, const TransposeAttrs& attrs) {
  const Dims* x = infer.dims_of(0);
  const Dims* w = infer.dims_of(1);
  infer.set_tensor(0, infer.dtype(0));
  if (!x || !w || x->size() < 3 || w->size() != x->size()) return Status::ok();
  const size_t rank = x->size() - 2;
  if (!lengths_fit(attrs, rank)) return Status::ok();
  const size_t first = channels_last ? 1 : 2;  // spatial dim
  Dims out{(*x)[0]};
  for (size_t axis = 0; axis < rank; ++axis) {
    out.push_back(infer_axis(attrs, infer.table(), (*x)[first + axis], (*w)[axis + 2], axis, rank));
  }
  const Dim channels = infer.table().mul((*w)[1], Dim::of(attrs.conv.group));
  out.insert(channels_last ? out.end() : out.begin() + 1, channels);
  if (channels_last) FOLIO_RETURN_IF_ERROR(infer_joined(infer.attrs(), &out));
  infer.set_tensor(0, infer.dtype(0), std::move(out));
  return Status::ok();
}

bool fits_nhwc_transpose(Span<const int64_t> w, const TransposeAttrs& attrs) {
  constexpr int64_t kMostReached = 16;    // pixels that one of y reads: their products are kept
  constexpr int64_t kFewestChannels = 8;  // of y: sums of fewer leave most of a vector empty
  const WindowAttrs& window = attrs.conv.window;
  if (w.size() < 3 || w.size() > 4 || w[0] < 1 || w[1] < kFewestChannels || attrs.conv.group != 1)
    return false;
  int64_t reached = 1;
  for (size_t axis = 0; axis + 2 < w.size(); ++axis) {
    const int64_t kernel = w[axis + 2];
    const int64_t stride = at_or(window.strides, axis, 1);
    if (kernel < 1 || kernel > kMaxSize || stride < 1) return false;
    const int64_t span = (kernel - 1) * at_or(window.dilations, axis, 1) / stride + 1;
    if (span > kMostReached) return false;
    reached *= span;
  }
  return reached <= kMostReached;
}

}  // namespace folio
