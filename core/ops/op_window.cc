#include "core/ops/op_window.h"

#include <algorithm>

namespace folio {
namespace {

// No real model comes near; larger values only serve to overflow index arithmetic.
constexpr int64_t kMaxWindow = int64_t{1} << 31;

Result<AxisNumbers> parse_numbers(const Attributes& attrs, std::string_view name, int64_t lowest) {
  FOLIO_TRY(const Span<const int64_t> values, attrs.view_ints(name));
  if (values.size() > AxisNumbers::kCapacity) {
    return not_implemented("attribute '", name, "' has ", values.size(), " entries, expected ",
                           kSpatial, " spatial dims at most");
  }
  for (const int64_t value : values) {
    if (value < lowest || value > kMaxWindow) {
      return invalid_graph("attribute '", name, "' holds ", value, ", expected ", lowest, " to ",
                           kMaxWindow);
    }
  }
  return AxisNumbers(values);
}

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

// What SAME pads in all, so that out = ceil(in / stride).
int64_t same_total(int64_t in, int64_t span, int64_t stride) {
  return std::max<int64_t>((ceil_div(in, stride) - 1) * stride + span - in, 0);
}

struct AxisOut {
  int64_t out = 0;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
};

AxisOut axis_out(const WindowAttrs& attrs, int64_t in, int64_t kernel, size_t axis, size_t rank) {
  const int64_t stride = at_or(attrs.strides, axis, 1);
  const int64_t span = (kernel - 1) * at_or(attrs.dilations, axis, 1) + 1;
  AxisOut result;
  if (attrs.auto_pad == AutoPad::kSameUpper || attrs.auto_pad == AutoPad::kSameLower) {
    const int64_t total = same_total(in, span, stride);
    const bool upper = attrs.auto_pad == AutoPad::kSameUpper;
    result.pad_begin = upper ? total / 2 : total - total / 2;
    result.pad_end = total - result.pad_begin;
  } else if (attrs.auto_pad == AutoPad::kNotSet) {
    result.pad_begin = at_or(attrs.pads, axis, 0);
    result.pad_end = at_or(attrs.pads, axis + rank, 0);
  }
  const int64_t room = in + result.pad_begin + result.pad_end - span;
  // As the spec rounds: ceil's last window hangs over the end, be it the first one too; floor's
  // lies inside. (ORT divides by truncation: of a window larger than the input it makes one output
  // where the spec has none.)
  if (room <= (attrs.ceil_mode ? -stride : -1)) return result;
  result.out = (attrs.ceil_mode ? ceil_div(room, stride) : room / stride) + 1;
  // A last window that would start in the end padding is left out (as ORT and PyTorch do).
  if (attrs.ceil_mode && (result.out - 1) * stride >= in + result.pad_begin) --result.out;
  return result;
}

}  // namespace

Result<WindowAttrs> parse_window(const Attributes& attrs) {
  WindowAttrs out;
  FOLIO_TRY(out.kernel, parse_numbers(attrs, "kernel_shape", 1));
  FOLIO_TRY(out.strides, parse_numbers(attrs, "strides", 1));
  FOLIO_TRY(out.dilations, parse_numbers(attrs, "dilations", 1));
  FOLIO_TRY(out.pads, parse_numbers(attrs, "pads", 0));
  FOLIO_TRY(const int64_t ceil_mode, attrs.get_int("ceil_mode", 0));
  FOLIO_TRY(const std::string auto_pad, attrs.get_string("auto_pad", "NOTSET"));
  out.ceil_mode = ceil_mode != 0;
  if (auto_pad == "SAME_UPPER") {
    out.auto_pad = AutoPad::kSameUpper;
  } else if (auto_pad == "SAME_LOWER") {
    out.auto_pad = AutoPad::kSameLower;
  } else if (auto_pad == "VALID") {
    out.auto_pad = AutoPad::kValid;
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    return invalid_graph("attribute 'auto_pad' is '", auto_pad,
                         "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  return out;
}

void Window::append_out(Shape* shape) const {
  for (int i = kSpatial - rank; i < kSpatial; ++i) shape->push_back(out[i]);
}

Shape channels_first(const Shape& last) {
  Shape first = last;
  if (last.rank() < 2) return first;
  first.erase(last.rank() - 1);
  first.insert(1, last[last.rank() - 1]);
  return first;
}

Shape channels_last(const Shape& first) {
  Shape last = first;
  if (first.rank() < 2) return last;
  last.erase(1);
  last.push_back(first[1]);
  return last;
}

Result<Window> make_window(const WindowAttrs& attrs, const Shape& x, Span<const int64_t> kernel) {
  const int rank = x.rank() - 2;
  if (rank < 1 || rank > kSpatial) {
    return not_implemented("input ", x.to_string(), " has ", rank, " spatial dims, expected 1 to ",
                           kSpatial);
  }
  const auto wanted = static_cast<size_t>(rank);
  const auto wrong = [&](const AxisNumbers& values, size_t size) {
    return !values.empty() && values.size() != size;
  };
  if (kernel.size() != wanted || wrong(attrs.strides, wanted) || wrong(attrs.dilations, wanted) ||
      wrong(attrs.pads, 2 * wanted)) {
    return invalid_argument("kernel_shape, strides, dilations or pads do not have one entry per ",
                            "spatial dim of the input ", x.to_string());
  }
  Window window;
  window.rank = rank;
  for (size_t axis = 0; axis < wanted; ++axis) {
    const size_t i = axis + static_cast<size_t>(kSpatial - rank);
    window.in[i] = x[static_cast<int>(axis) + 2];
    window.kernel[i] = kernel[axis];
    window.stride[i] = at_or(attrs.strides, axis, 1);
    window.dilation[i] = at_or(attrs.dilations, axis, 1);
    if (window.in[i] > kMaxWindow || kernel[axis] < 1 || kernel[axis] > kMaxWindow) {
      return invalid_argument("input ", x.to_string(), " or a kernel dim of ", kernel[axis],
                              " is out of range");
    }
    const AxisOut out = axis_out(attrs, window.in[i], kernel[axis], axis, wanted);
    // A window of one pixel finds none in an image that has none: as the spec's formula says.
    const bool is_empty =
        window.in[i] == 0 && kernel[axis] == 1 && out.pad_begin == 0 && out.pad_end == 0;
    if (out.out < 1 && !is_empty) {
      return invalid_argument("the window does not fit: dim ", axis + 2, " of input ",
                              x.to_string(), ", kernel ", kernel[axis], ", dilation ",
                              window.dilation[i], ", pads ", out.pad_begin, " and ", out.pad_end);
    }
    window.out[i] = out.out;
    window.pad_begin[i] = out.pad_begin;
    window.pad_end[i] = out.pad_end;
  }
  return window;
}

Dim window_out_dim(const WindowAttrs& attrs, DimTable& table, Dim in, int64_t kernel, size_t axis,
                   size_t rank) {
  const bool sizes_fit = (attrs.strides.empty() || attrs.strides.size() == rank) &&
                         (attrs.dilations.empty() || attrs.dilations.size() == rank) &&
                         (attrs.pads.empty() || attrs.pads.size() == 2 * rank);
  if (!sizes_fit || kernel < 1 || kernel > kMaxWindow) return Dim::unknown();
  if (in.is_value()) {
    if (in.value > kMaxWindow) return Dim::unknown();
    const int64_t out = axis_out(attrs, in.value, kernel, axis, rank).out;
    return out > 0 ? Dim::of(out) : Dim::unknown();
  }
  const int64_t stride = at_or(attrs.strides, axis, 1);
  if (attrs.auto_pad == AutoPad::kSameUpper || attrs.auto_pad == AutoPad::kSameLower) {
    return table.ceil_div(in, Dim::of(stride));
  }
  if (attrs.ceil_mode) return Dim::unknown();
  // (in + pads - span) / stride + 1, with the constant part on whichever side is positive.
  const int64_t span = (kernel - 1) * at_or(attrs.dilations, axis, 1) + 1;
  const bool pads = attrs.auto_pad == AutoPad::kNotSet;
  const int64_t padding = pads ? at_or(attrs.pads, axis, 0) + at_or(attrs.pads, axis + rank, 0) : 0;
  const int64_t extra = padding - span;
  const Dim room = extra >= 0 ? table.add(in, Dim::of(extra)) : table.sub(in, Dim::of(-extra));
  return table.add(table.floor_div(room, Dim::of(stride)), Dim::of(1));
}

}  // namespace folio
