#include "core/ops/op_nhwc_conv.h"

#include "core/base/checked_math.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kRowStep = 14;             // rows of the widest kernel's tile
constexpr int64_t kTileRows = 168;           // what the product packs of A at once
constexpr int64_t kMostPieces = 320 * 1024;  // pointers, or floats of border pieces, of one tile
constexpr int64_t kFewChannels = 32;         // below that, a row of the window is one piece
constexpr int64_t kChunkMacs = 1 << 20;
constexpr int64_t kGrainWork = 1 << 15;  // multiply-adds of a depthwise chunk

bool is_depthwise(const ConvSizes& s) { return s.c_in == 1 && s.c_out == 1 && s.group > 1; }

int64_t panel_columns(int64_t columns) { return (columns + kPanel - 1) / kPanel * kPanel; }

// Taps outermost: rows of a panel as the source has them (channel by channel), then moved.
Status fill_product(const PackRequest& r, const void* context, const Tensor& source,
                    uint8_t* blob) {
  const auto* kernels = static_cast<const FolioKernels*>(context);
  const int64_t channels = r.k / r.taps;
  const int64_t columns = r.n / r.groups;
  const auto row_bytes = static_cast<size_t>(kPanel) * sizeof(float);
  FOLIO_TRY(Tensor panel, allocate_tensor(DType::kFloat, Shape{r.k * kPanel}));
  uint8_t* rows = panel.raw_mut();
  for (int64_t g = 0; g < r.groups; ++g) {
    for (int64_t j = 0; j < columns; j += kPanel) {
      const uint8_t* from = source.raw() + (g * columns + j) * r.k * 4;
      kernels->pack_f32p16(r.k, std::min(kPanel, columns - j), from, 1, r.k,
                           reinterpret_cast<float*>(rows));
      for (int64_t t = 0; t < r.taps; ++t) {
        for (int64_t c = 0; c < channels; ++c, blob += row_bytes) {
          std::memcpy(blob, rows + static_cast<size_t>(c * r.taps + t) * row_bytes, row_bytes);
        }
      }
    }
  }
  return Status::ok();
}

Status fill_depthwise(const PackRequest& r, const void* context, const Tensor& source,
                      uint8_t* blob) {
  static_cast<const FolioKernels*>(context)->transpose_b32(r.n, r.k, source.raw(), r.k, blob, r.n);
  return Status::ok();
}

class NhwcProduct {
 public:
  NhwcProduct(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args)
      : s_(s), kernels_(kernels), args_(args) {
    const Window& w = s.window;
    in_place_ = is_pointwise(w);
    joined_ = !in_place_ && s.group == 1 && w.dilation[2] == 1 && s.c_in < kFewChannels;
    run_ = joined_ ? s.c_in * w.kernel[2] : s.c_in;
    pieces_ = joined_ ? w.kernel[0] * w.kernel[1] : w.kernel_count();
    const int64_t per_row = joined_ ? s.k() : pieces_;
    rows_ = s.batch * w.out_count();
    const int64_t most =
        in_place_ ? kTileRows
                  : std::clamp(kMostPieces / std::max<int64_t>(per_row, 1) / kRowStep * kRowStep,
                               kRowStep, kTileRows);
    const int64_t work = std::max<int64_t>(1, most * s.k() * panel_columns(s.c_out));
    const int64_t blocks = in_place_ ? std::max<int64_t>(1, kChunkMacs / work) : 1;
    tiling_ = make_tiling(rows_, most * blocks, kRowStep, s.group, s.c_out);
  }

  int64_t chunks() const { return tiling_.tiles * s_.group * tiling_.blocks; }
  size_t zero_bytes() const { return static_cast<size_t>(run_) * sizeof(float); }
  size_t pointer_bytes() const {
    return in_place_ ? 0
                     : align_up(static_cast<size_t>(tiling_.tile * pieces_) * sizeof(float*), 64);
  }
  size_t border_bytes() const {
    return joined_ ? align_up(static_cast<size_t>(tiling_.tile * s_.k()) * sizeof(float), 64) : 0;
  }
  size_t scratch_bytes() const { return pointer_bytes() + border_bytes(); }

  void compute(int64_t chunk, uint8_t* scratch, const float* zeros) const {
    const int64_t block = chunk % tiling_.blocks;
    const int64_t group = chunk / tiling_.blocks % s_.group;
    const int64_t row = chunk / tiling_.blocks / s_.group * tiling_.tile;
    const int64_t channels = s_.group * s_.c_in;
    FolioGemmF32 gemm{};
    gemm.m = std::min(tiling_.tile, rows_ - row);
    gemm.n = std::min(tiling_.columns, s_.c_out - block * tiling_.columns);
    gemm.k = s_.k();
    if (in_place_) {
      gemm.a = args_.x + row * channels + group * s_.c_in;
      gemm.a_row_stride = channels;
      gemm.a_col_stride = 1;
    } else {
      const auto** pointers = reinterpret_cast<const float**>(scratch);
      auto* border = reinterpret_cast<float*>(scratch + pointer_bytes());
      point(row, gemm.m, group * s_.c_in, zeros, pointers, border);
      gemm.a_rows = pointers;
      gemm.a_run = run_;
    }
    gemm.b =
        args_.packed + group * panel_columns(s_.c_out) * gemm.k + block * tiling_.columns * gemm.k;
    const int64_t channel = group * s_.c_out + block * tiling_.columns;
    gemm.c_row_stride = s_.group * s_.c_out;
    gemm.c = args_.y + row * gemm.c_row_stride + channel;
    gemm.col_bias = args_.bias ? args_.bias + channel : nullptr;
    gemm.alpha = 1.0F;
    const bool finished = args_.activation.set_in_gemm(&gemm);
    if (args_.z) {
      copy_rows(gemm, args_.z + row * gemm.c_row_stride + channel);
      gemm.accumulate = 1;
    }
    kernels_.gemm_f32(&gemm);
    if (!finished) activate(gemm);
  }

 private:
  static void copy_rows(const FolioGemmF32& gemm, const float* z) {
    for (int64_t i = 0; i < gemm.m; ++i) {
      std::memcpy(gemm.c + i * gemm.c_row_stride, z + i * gemm.c_row_stride,
                  static_cast<size_t>(gemm.n) * sizeof(float));
    }
  }

  // While the tile is in the cache.
  void activate(const FolioGemmF32& gemm) const {
    if (gemm.n == gemm.c_row_stride) {
      args_.activation.apply(kernels_, gemm.m * gemm.n, gemm.c);
      return;
    }
    for (int64_t i = 0; i < gemm.m; ++i) {
      args_.activation.apply(kernels_, gemm.n, gemm.c + i * gemm.c_row_stride);
    }
  }

  // pointers[piece][i]: the piece of output pixel row + i; border pieces are made in `border`.
  void point(int64_t row, int64_t count, int64_t first_channel, const float* zeros,
             const float** pointers, float* border) const {
    const Window& w = s_.window;
    const int64_t channels = s_.group * s_.c_in;
    int64_t v = row % w.out[2];
    int64_t h = row / w.out[2] % w.out[1];
    int64_t d = row / w.out[2] / w.out[1] % w.out[0];
    int64_t image = row / w.out_count();
    for (int64_t i = 0; i < count; ++i) {
      const float* x = args_.x + image * w.in_count() * channels + first_channel;
      const int64_t at[kSpatial] = {d * w.stride[0] - w.pad_begin[0],
                                    h * w.stride[1] - w.pad_begin[1],
                                    v * w.stride[2] - w.pad_begin[2]};
      const float** to = pointers + i;
      for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
        const int64_t depth = at[0] + kd * w.dilation[0];
        for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
          const int64_t line = at[1] + kh * w.dilation[1];
          const bool inside = depth >= 0 && depth < w.in[0] && line >= 0 && line < w.in[1];
          const float* from = inside ? x + (depth * w.in[1] + line) * w.in[2] * channels : nullptr;
          to = joined_ ? point_joined(from, at[2], count, zeros, &border, to)
                       : point_taps(from, at[2], count, zeros, to);
        }
      }
      if (++v < w.out[2]) continue;
      v = 0;
      if (++h < w.out[1]) continue;
      h = 0;
      if (++d < w.out[0]) continue;
      d = 0;
      ++image;
    }
  }

  // `line`: the image's row, null outside. Give the place of the next piece.
  const float** point_taps(const float* line, int64_t at, int64_t count, const float* zeros,
                           const float** to) const {
    const Window& w = s_.window;
    const int64_t channels = s_.group * s_.c_in;
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw, to += count) {
      const int64_t v = at + kw * w.dilation[2];
      *to = line && v >= 0 && v < w.in[2] ? line + v * channels : zeros;
    }
    return to;
  }

  const float** point_joined(const float* line, int64_t at, int64_t count, const float* zeros,
                             float** border, const float** to) const {
    const Window& w = s_.window;
    if (!line) {
      *to = zeros;
    } else if (at >= 0 && at + w.kernel[2] <= w.in[2]) {
      *to = line + at * s_.c_in;
    } else {
      const int64_t begin = std::clamp<int64_t>(-at, 0, w.kernel[2]);
      const int64_t end = std::clamp<int64_t>(w.in[2] - at, begin, w.kernel[2]);
      std::fill_n(*border, run_, 0.0F);
      if (begin < end) {
        std::memcpy(*border + begin * s_.c_in, line + (at + begin) * s_.c_in,
                    static_cast<size_t>((end - begin) * s_.c_in) * sizeof(float));
      }
      *to = *border;
      *border += run_;
    }
    return to + count;
  }

  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  bool in_place_ = false;
  bool joined_ = false;  // the taps of one row of the window are one piece
  int64_t run_ = 0;      // floats of a piece
  int64_t pieces_ = 0;
  int64_t rows_ = 0;  // output pixels of all images
  ConvTiling tiling_;
};

Status run_depthwise_rows(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  const FolioKernels& kernels = run.kernels();
  const Window& w = s.window;
  const int64_t channels = s.group;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, NhwcRow::scratch_bytes(w), &scratch));
  FolioGemmF32 function{};
  const bool finishes = !args.z && args.activation.set_in_gemm(&function);
  const int64_t lines = w.out[0] * w.out[1];
  const int64_t floats = w.out[2] * channels;
  const int64_t grain = std::max<int64_t>(1, kGrainWork / (floats * w.kernel_count()));
  run.parallel().for_range(s.batch * lines, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    const NhwcRow row(w, channels, args.packed, block.data());
    for (int64_t at = begin; at < end; ++at) {
      const float* image = args.x + at / lines * w.in_count() * channels;
      float* to = args.y + at * floats;
      row.walk(image, at % lines / w.out[1], at % w.out[1],
               [&](int64_t column, FolioWindowF32& window, const WindowTaps[]) {
                 window.bias = args.bias;
                 if (finishes) {
                   window.activation = function.activation;
                   window.clip_lo = function.clip_lo;
                   window.clip_hi = function.clip_hi;
                 }
                 window.y = to + column * channels;
                 kernels.depthwise_f32(&window);
               });
      if (finishes) continue;
      if (args.z) kernels.binary_f32[kFolioAdd](floats, to, 1, args.z + at * floats, 1, to);
      args.activation.apply(kernels, floats, to);
    }
  });
  return Status::ok();
}

}  // namespace

bool fits_nhwc_conv(Span<const int64_t> w, int64_t group) {
  if (w.size() < 3 || w[0] < 1 || w[1] < 1 || group < 1 || w[0] % group != 0) return false;
  // Groups of few channels would leave most of each panel empty, unless each is a filter of its
  // own.
  return group == 1 || (w[1] == 1 && w[0] == group) || w[0] / group >= kPanel / 2;
}

Result<PackRequest> nhwc_conv_request(const FolioKernels& kernels, Span<const int64_t> w,
                                      int64_t group) {
  uint64_t taps = 0;
  int64_t k = 0;
  if (!checked_count(w.subspan(2), &taps) || !checked_mul(w[1], static_cast<int64_t>(taps), &k)) {
    return invalid_argument("W has more elements than can be counted");
  }
  PackRequest request;
  request.context = &kernels;
  request.taps = static_cast<int64_t>(taps);
  if (w[1] == 1 && w[0] == group && group > 1) {
    request.layout = Layout::kF32Tapwise;
    request.version = kF32TapwiseVersion;
    request.k = k;
    request.n = w[0];
    request.bytes = taps * static_cast<uint64_t>(w[0]) * sizeof(float);
    request.fill = fill_depthwise;
    return request;
  }
  request.layout = Layout::kF32P16;
  request.version = kF32P16Version;
  request.k = k;
  request.n = w[0];
  request.row_stride = 1;
  request.col_stride = k;
  request.groups = group;
  request.fill = fill_product;
  uint64_t each = 0;
  if (!f32p16_bytes(k, w[0] / group, &each) ||
      !checked_mul(each, static_cast<uint64_t>(group), &request.bytes)) {
    return invalid_argument("W is too large to be packed");
  }
  return request;
}

Status run_nhwc_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  if (is_depthwise(s)) return run_depthwise_rows(run, s, args);
  const NhwcProduct product(s, run.kernels(), args);
  FOLIO_TRY(uint8_t * zeros, run.scratch(product.zero_bytes()));
  std::memset(zeros, 0, product.zero_bytes());
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, product.scratch_bytes(), &scratch));
  run.parallel().for_range(product.chunks(), 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      product.compute(chunk, block.data(), reinterpret_cast<const float*>(zeros));
    }
  });
  return Status::ok();
}

}  // namespace folio
