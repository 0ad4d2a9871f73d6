#include "core/ops/op_nhwc_weights.h"

#include <cstring>

#include "core/base/checked_math.h"
#include "core/ops/op_conv.h"
#include "core/ops/op_depthwise.h"
#include "core/ops/op_gemm.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kFreshRows = 256;  // of a panel that are turned at once, in L1

// Elements [p, p + count), count <= kFreshRows, of each of up to 16 filters as rows of a panel.
void fill_rows(const FolioKernels& kernels, DType dtype, int64_t k, int64_t filters,
               const uint8_t* from, int64_t p, int64_t count, float* rows) {
  if (!is_half(dtype)) {
    kernels.pack_f32p16(count, filters, from + 4 * p, 1, k, rows);
    return;
  }
  alignas(64) float lines[kFreshRows * kPanel];
  widen_lines(kernels, dtype, count, filters, from + 2 * p, 1, k, lines, rows);
}

// The panel of up to 16 filters of k = taps * channels elements each: they lie channel by channel,
// a panel has taps outermost.
void fill_panel(const FolioKernels& kernels, DType dtype, int64_t taps, int64_t k, int64_t filters,
                const uint8_t* from, float* panel) {
  if (taps == 1) {
    for (int64_t p = 0; p < k; p += kFreshRows) {
      fill_rows(kernels, dtype, k, filters, from, p, std::min(kFreshRows, k - p),
                panel + p * kPanel);
    }
    return;
  }
  alignas(64) float rows[kFreshRows * kPanel];
  const int64_t channels = k / taps;
  int64_t tap = 0;
  int64_t channel = 0;
  for (int64_t p = 0; p < k; p += kFreshRows) {
    const int64_t count = std::min(kFreshRows, k - p);
    fill_rows(kernels, dtype, k, filters, from, p, count, rows);
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(panel + (tap * channels + channel) * kPanel, rows + i * kPanel,
                  static_cast<size_t>(kPanel) * sizeof(float));
      if (++tap < taps) continue;
      tap = 0;
      ++channel;
    }
  }
}

Status fill_product(const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
  const int64_t columns = r.n / r.groups;
  auto* panels = reinterpret_cast<float*>(blob);
  for (int64_t g = 0; g < r.groups; ++g) {
    fill_conv_panels(*static_cast<const FolioKernels*>(context), r.taps, r.k, g * columns, columns,
                     source, panels);
    panels += panel_columns(columns) * r.k;
  }
  return Status::ok();
}

Status fill_halves(const PackRequest& r, const void*, const Tensor& source, uint8_t* blob) {
  const int64_t columns = r.n / r.groups;
  const DType dtype = source.dtype();
  for (int64_t g = 0; g < r.groups; ++g) {
    pack_half_panels({dtype, r.k, columns, r.row_stride, r.col_stride, r.taps},
                     source.raw() + 2 * g * columns * r.k, blob);
    blob += 2 * panel_columns(columns) * panel_rows(dtype, r.k);
  }
  return Status::ok();
}

Status fill_depthwise(const PackRequest& r, const void* context, const Tensor& source,
                      uint8_t* blob) {
  static_cast<const FolioKernels*>(context)->transpose_b32(r.n, r.k, source.raw(), r.k, blob, r.n);
  return Status::ok();
}

}  // namespace

void fill_conv_panels(const FolioKernels& kernels, int64_t taps, int64_t k, int64_t first,
                      int64_t count, const Tensor& source, float* panels) {
  for (int64_t j = 0; j < count; j += kPanel) {
    fill_panel(kernels, source.dtype(), taps, k, std::min(kPanel, count - j),
               source.raw() + (first + j) * k * panel_element_bytes(source.dtype()),
               panels + j * k);
  }
}

bool fits_nhwc_conv(Span<const int64_t> w, int64_t group) {
  if (w.size() < 3 || w[0] < 1 || w[1] < 1 || group < 1 || w[0] % group != 0) return false;
  // Groups of few channels would leave half of each panel empty, unless their sums stand beside
  // their channels: conv.cc has them as rows of shifted sums.
  const int64_t filters = w[0] / group;
  return group == 1 || is_window_conv(w, group) ||
         (filters >= kPanel / 2 && !is_small_group(group, filters, w[1]));
}

bool is_depthwise_conv(Span<const int64_t> w, int64_t group) {
  return w[1] == 1 && w[0] == group && group > 1;
}

bool is_window_conv(Span<const int64_t> w, int64_t group) {
  const bool is_square = group > 1 && w[0] / group == w[1] && w[0] % group == 0;
  return is_square && (w[1] == 1 || w[1] == 2 || w[1] == 4 || w[1] == 8 || w[1] == 16);
}

bool takes_half_nhwc(const Attributes& attributes, const Shape& w) {
  const auto attrs = parse_conv(attributes);
  return attrs.is_ok() && fits_nhwc_conv(w.dims(), attrs.value().group) &&
         !is_window_conv(w.dims(), attrs.value().group);
}

Result<PackRequest> nhwc_conv_request(const FolioKernels& kernels, Span<const int64_t> w,
                                      int64_t group, bool is_planes, DType dtype) {
  uint64_t taps = 0;
  int64_t k = 0;
  if (!checked_count(w.subspan(2), &taps) || !checked_mul(w[1], static_cast<int64_t>(taps), &k)) {
    return invalid_argument("W has more elements than can be counted");
  }
  PackRequest request;
  request.context = &kernels;
  request.taps = is_planes ? 1 : static_cast<int64_t>(taps);
  if (is_depthwise_conv(w, group)) {
    request.layout = Layout::kF32Tapwise;
    request.version = kF32TapwiseVersion;
    request.k = k;
    request.n = w[0];
    request.bytes = taps * static_cast<uint64_t>(w[0]) * sizeof(float);
    request.fill = fill_depthwise;
    return request;
  }
  set_panels_of(dtype, &request);
  request.k = k;
  request.n = w[0];
  request.row_stride = 1;
  request.col_stride = k;
  // Small groups are side by side in a panel: as if all filters were over the same channels.
  request.groups = is_window_conv(w, group) ? 1 : group;
  request.fill = is_half(dtype) ? fill_halves : fill_product;
  uint64_t each = 0;
  if (!panels_bytes(dtype, k, w[0] / request.groups, &each) ||
      !checked_mul(each, static_cast<uint64_t>(request.groups), &request.bytes)) {
    return invalid_argument("W is too large to be packed");
  }
  return request;
}

}  // namespace folio
