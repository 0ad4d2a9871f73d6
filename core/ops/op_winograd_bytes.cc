#include "core/ops/op_winograd_bytes.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/base/checked_math.h"
#include "core/ops/op_move.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_scratch.h"
#include "core/ops/op_winograd_tiles.h"

namespace folio {
namespace {

constexpr int64_t kPanel = 16;
constexpr int64_t kEdge = FOLIO_WINOGRAD_EDGE;
constexpr int64_t kPlanes = FOLIO_WINOGRAD_PLANES;
constexpr int64_t kOutputs = FOLIO_WINOGRAD_OUTPUTS;
constexpr int64_t kTaps = 9;
constexpr int64_t kColumns = 64;             // that are multiplied and ended together
constexpr int64_t kBlockBytes = 512 * 1024;  // of V and of products of a block of tiles
constexpr int64_t kFewestTiles = 12;         // of a block: whole tiles of all kernels
constexpr int64_t kMostTiles = 48;
constexpr int64_t kRowStep = 6;  // rows of the widest kernel's tile
constexpr int64_t kStep = 8;     // tiles whose pixels are looked up at once

int64_t filled(int64_t filters) { return (filters + kPanel - 1) / kPanel * kPanel; }
int64_t panel_words(int64_t c_in) { return c_in * kPanel; }
int64_t plane_words(int64_t c_in, int64_t filters) { return filled(filters) * c_in; }
// Behind all planes: the sums of the filters' weights, then of their magnitudes.
const int32_t* sums_of(int64_t c_in, int64_t filters, const uint8_t* panels) {
  return reinterpret_cast<const int32_t*>(panels + kPlanes * plane_words(c_in, filters) * 2);
}

// to[i * step] = G (g[0], g[g_step], g[2 g_step]).
void filter_line(const int32_t* g, int64_t g_step, int32_t* to, int64_t step) {
  const int32_t ends = g[0] + g[2 * g_step];
  const int32_t far = g[0] + 4 * g[2 * g_step];
  const int32_t middle = g[g_step];
  to[0] = 6 * g[0];
  to[step] = -4 * (ends + middle);
  to[2 * step] = -4 * (ends - middle);
  to[3 * step] = far + 2 * middle;
  to[4 * step] = far - 2 * middle;
  to[5 * step] = 6 * g[2 * g_step];
}

// U of one filter and channel: a word of each plane.
void fill_words(const int32_t* g, int16_t* to, int64_t plane) {
  int32_t down[kEdge * 3];
  int32_t row[kEdge];
  for (int64_t j = 0; j < 3; ++j) filter_line(g + j, 3, down + j, 3);
  for (int64_t i = 0; i < kEdge; ++i) {
    filter_line(down + 3 * i, 1, row, 1);
    for (const int32_t word : row) {
      *to = static_cast<int16_t>(word);
      to += plane;
    }
  }
}

Status fill_blob(const PackRequest& r, const void*, const Tensor& source, uint8_t* blob) {
  const uint8_t flip = source.dtype() == DType::kUint8 ? 0x80 : 0;
  const int64_t plane = plane_words(r.k, r.n);
  std::memset(blob, 0, static_cast<size_t>(r.bytes));
  auto* words = reinterpret_cast<int16_t*>(blob);
  auto* sums = reinterpret_cast<int32_t*>(words + kPlanes * plane);
  int32_t* const magnitudes = sums + filled(r.n);
  const uint8_t* from = source.raw();
  for (int64_t m = 0; m < r.n; ++m) {
    int16_t* column = words + m / kPanel * panel_words(r.k) + m % kPanel * 2;
    for (int64_t c = 0; c < r.k; ++c, from += kTaps) {
      int32_t g[kTaps];
      for (int64_t t = 0; t < kTaps; ++t) {
        g[t] = static_cast<int8_t>(from[t] ^ flip);
        sums[m] += g[t];
        magnitudes[m] += std::abs(g[t]);
      }
      fill_words(g, column + c / 2 * 2 * kPanel + c % 2, plane);
    }
  }
  return Status::ok();
}

class ByteWinograd {
 public:
  ByteWinograd(const ConvSizes& s, const ByteConv& conv, const FolioKernels& kernels, int threads)
      : s_(s),
        conv_(conv),
        kernels_(kernels),
        form_(conv.w->shape().dims()),
        places_(form_, s.window, s.c_in),
        tiles_(s.batch * places_.of_image()) {
    const int64_t bytes = kPlanes * (s.c_in * 2 + kColumns * 4);
    const int64_t most = std::clamp(kBlockBytes / bytes, kFewestTiles, kMostTiles);
    const int64_t share = (tiles_ + threads - 1) / threads;
    tile_ = even_part(tiles_, std::clamp(share, kFewestTiles, most), kRowStep);
  }

  const uint8_t* x = nullptr;
  const uint8_t* border = nullptr;  // a pixel of zero points
  int32_t x_zero = 0;
  const uint8_t* panels = nullptr;

  int64_t blocks() const { return (tiles_ + tile_ - 1) / tile_; }
  size_t scratch_bytes() const { return v_bytes() + static_cast<size_t>(kPlanes * m_stride()) * 4; }

  void compute(int64_t block, uint8_t* scratch) const {
    const int64_t first = block * tile_;
    const int64_t count = std::min(tile_, tiles_ - first);
    auto* v = reinterpret_cast<int16_t*>(scratch);
    auto* m = reinterpret_cast<int32_t*>(scratch + v_bytes());
    for (int64_t t = 0; t < count; t += kStep) {
      transform(first + t, std::min(kStep, count - t), v + t * s_.c_in);
    }
    std::array<int64_t, kMostTiles * kOutputs> pixels;
    int64_t* end = pixels.data();
    TilePlace at = places_.at(first);
    for (int64_t t = 0; t < count; ++t, at.next()) end = places_.outputs(at, end);
    for (int64_t column = 0; column < s_.c_out; column += kColumns) {
      multiply(count, column, v, m);
      finish(count, column, pixels.data(), m);
    }
  }

 private:
  int64_t v_stride() const { return winograd_plane_stride(tile_ * s_.c_in, 2); }
  int64_t m_stride() const { return winograd_plane_stride(tile_ * kColumns, 4); }
  size_t v_bytes() const { return static_cast<size_t>(kPlanes * v_stride()) * 2; }

  // V of tiles [first, first + count).
  void transform(int64_t first, int64_t count, int16_t* v) const {
    std::array<const uint8_t*, kStep * kPlanes> pixels;
    const uint8_t** end = pixels.data();
    int64_t behind[3];
    places_.first_tap(0, behind);
    TilePlace at = places_.at(first);
    for (int64_t t = 0; t < count; ++t, at.next()) {
      end = places_.inputs(at, behind, x, border, end);
    }
    FolioWinogradInputU8 input{};
    input.tiles = count;
    input.channels = s_.c_in;
    input.x = pixels.data();
    input.v = v;
    input.plane_stride = v_stride();
    input.row_stride = s_.c_in;
    kernels_.winograd_input_u8(&input);
  }

  void multiply(int64_t count, int64_t column, const int16_t* v, int32_t* m) const {
    const auto* u =
        reinterpret_cast<const int16_t*>(panels) + column / kPanel * panel_words(s_.c_in);
    const int64_t plane = plane_words(s_.c_in, s_.c_out);
    FolioGemmS16 gemm{};
    gemm.m = count;
    gemm.n = std::min(kColumns, s_.c_out - column);
    gemm.k = s_.c_in;
    gemm.a_row_stride = s_.c_in;
    gemm.c_row_stride = kColumns;
    for (int64_t e = 0; e < kPlanes; ++e) {
      gemm.a = v + e * v_stride();
      gemm.b = u + e * plane;
      gemm.c = m + e * m_stride();
      gemm.next = e + 1 < kPlanes ? u + (e + 1) * plane : nullptr;
      kernels_.gemm_s16(&gemm);
    }
  }

  void finish(int64_t count, int64_t column, const int64_t* pixels, const int32_t* m) const {
    FolioWinogradOutputU8 output{};
    output.tiles = count;
    output.channels = std::min(kColumns, s_.c_out - column);
    output.m = m;
    output.plane_stride = m_stride();
    output.row_stride = kColumns;
    output.pixels = pixels;
    output.y_step = s_.c_out;
    output.sums = conv_.sums;
    FolioSums& sums = output.sums;
    sums.offset = conv_.bias ? conv_.bias + column : nullptr;
    sums.column_sum = sums_of(s_.c_in, s_.c_out, panels) + column;
    sums.a_zero = x_zero - 128;  // which V is without
    if (sums.scale) sums.scale += column;
    if (sums.bias) sums.bias += column;
    if (sums.add) sums.addend += column;
    sums.addend_row_stride = s_.c_out;
    const int64_t element = sums.to == kFolioToByte ? 1 : 4;
    output.y = static_cast<uint8_t*>(conv_.y) + column * element;
    kernels_.winograd_output_u8(&output);
  }

  const ConvSizes& s_;
  const ByteConv& conv_;
  const FolioKernels& kernels_;
  WinogradForm form_;
  WinogradTiles places_;
  int64_t tiles_;     // of all images
  int64_t tile_ = 0;  // of a block
};

}  // namespace

bool fits_winograd_bytes(Span<const int64_t> w, const ConvAttrs& attrs) {
  return w.size() == 4 && w[0] >= 1 && w[1] >= kPanel && w[1] % kPanel == 0 && w[2] == 3 &&
         w[3] == 3 && attrs.group == 1 && all_are(attrs.window.strides, 1);
}

// All as products of bytes (2026-12, Zen 5: a word's are two; a channel of a tile's pixels takes as
// long as 450, of its outputs 950, and to read a weight's U once from L3 500).
bool winograd_bytes_pays(int64_t channels, int64_t filters, double tiles, double pixels) {
  constexpr double kMostTime = 0.9;
  constexpr double kInput = 450;
  constexpr double kOutput = 950;
  constexpr double kWeight = 500;
  const auto c = static_cast<double>(channels);
  const auto m = static_cast<double>(filled(filters));
  const double products = 2 * kPlanes * tiles * c * m;
  return products + tiles * (kInput * c + kOutput * m) + kWeight * c * m <=
         kMostTime * kTaps * pixels * c * m;
}

bool winograd_bytes_request(Span<const int64_t> w, PackRequest* out) {
  out->layout = Layout::kS16Wino43;
  out->version = kS16Wino43Version;
  out->k = w[1];
  out->n = w[0];
  out->row_stride = kTaps;
  out->col_stride = w[1] * kTaps;
  out->fill = fill_blob;
  return s16wino43_bytes(out->k, out->n, &out->bytes);
}

Status request_winograd_bytes(OpBuild& build, int input, const ConvAttrs& attrs) {
  const Initializer* w = build.initializer(input);
  if (!w || !is_byte(w->dtype) || !fits_winograd_bytes(w->shape.dims(), attrs)) {
    return Status::ok();
  }
  PackRequest request;
  if (!winograd_bytes_request(w->shape.dims(), &request)) {
    return invalid_argument("W ", w->shape.to_string(), " is too large to be packed");
  }
  build.request_pack(input, request);
  return Status::ok();
}

bool winograd_sums_fit(int64_t channels, int64_t filters, const uint8_t* panels) {
  if (channels <= FOLIO_S16WINO43_MAGNITUDES / (kTaps * 128)) return true;
  const int32_t* magnitudes = sums_of(channels, filters, panels) + filled(filters);
  return *std::max_element(magnitudes, magnitudes + filters) <= FOLIO_S16WINO43_MAGNITUDES;
}

Status run_winograd_bytes(OpRun& run, const ConvSizes& s, const ByteConv& conv, const uint8_t* x,
                          uint8_t x_zero, const uint8_t* panels) {
  ByteWinograd product(s, conv, run.kernels(), run.parallel().thread_count());
  const auto pixel = static_cast<size_t>(s.c_in);
  FOLIO_TRY(uint8_t * border, run.scratch(pixel));
  std::memset(border, x_zero, pixel);
  product.x = x;
  product.border = border;
  product.x_zero = x_zero;
  product.panels = panels;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, product.scratch_bytes(), &scratch));
  run.parallel().for_range(product.blocks(), 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t i = begin; i < end; ++i) product.compute(i, block.data());
  });
  return Status::ok();
}

}  // namespace folio
