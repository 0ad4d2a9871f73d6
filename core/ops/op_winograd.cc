#include "core/ops/op_winograd.h"

#include <array>
#include <atomic>

#include "core/base/checked_math.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kMostPlanes = FOLIO_WINOGRAD_PLANES;
constexpr int64_t kMostOutputs = FOLIO_WINOGRAD_OUTPUTS;
constexpr int64_t kSquare = 3;      // taps of a square's side
constexpr int64_t kFewestTaps = 3;  // of a line
constexpr int64_t kMostLineTaps = 33;
constexpr int64_t kMostTaps = 81;

constexpr int64_t kBlockFloats = 160 * 1024;  // of V and of products, each, of a block of tiles
constexpr int64_t kFewestTiles = 28;          // of a block, if there are more: they share U
constexpr int64_t kMostTiles = 56;
constexpr int64_t kMostLineTiles = 224;
constexpr int64_t kFreshFloats = 160 * 1024;    // of U that is made while it is used
constexpr int64_t kFewestColumns = 2 * kPanel;  // of a block, if there are more
constexpr int64_t kEnoughBlocks = 4;            // to keep all threads at work
constexpr int64_t kMostShared = 1 << 21;        // floats of V, or of U, that all threads read
constexpr int64_t kGrainFloats = 1024;          // pixels times channels of a task that makes V
constexpr int64_t kStep = 8;                    // tiles whose places are looked up at once
constexpr int64_t kFilterStep = 8;              // channels of filters that are transformed at once

// Taps of up to kFilterStep channels, [taps][channels][16], of a piece; zeros for what the filter
// has not.
struct PieceTaps {
  static constexpr int64_t kStride = kFilterStep * kPanel;
  alignas(64) float all[kSquare * kSquare * kStride];

  // `begin`, `end`: of the piece, by axes; `panel`: of the first channel.
  void read(const WinogradForm& form, const int64_t* begin, const int64_t* end, const float* panel,
            int64_t tap_stride, int64_t channels) {
    float* to = all;
    for (int64_t i = begin[0]; i < end[0]; ++i) {
      for (int64_t j = begin[1]; j < end[1]; ++j) {
        for (int64_t k = begin[2]; k < end[2]; ++k, to += kStride) {
          const bool has = i < form.kernel[0] && j < form.kernel[1] && k < form.kernel[2];
          const int64_t tap = (i * form.kernel[1] + j) * form.kernel[2] + k;
          if (has) {
            std::copy_n(panel + tap * tap_stride, channels * kPanel, to);
          } else {
            std::fill_n(to, channels * kPanel, 0.0F);
          }
        }
      }
    }
  }
};

// U of 16 filters, a panel of F32P16 of [taps * channels] rows: a panel in each plane. Pieces whose
// taps are neighbours are read where they lie.
void transform_panel(const FolioKernels& kernels, const WinogradForm& form, const float* panel,
                     float* u, int64_t stride) {
  const int64_t channels = form.depth / form.pieces;
  const int64_t tap_stride = channels * kPanel;
  PieceTaps taps;
  FolioWinogradFilter filter{};
  filter.plane_stride = stride;
  filter.line_taps = form.line_taps();
  for (int64_t piece = 0; piece < form.pieces; ++piece, u += channels * kPanel) {
    int64_t begin[3], end[3];
    form.place_of(piece, begin);
    bool is_whole = true;
    int64_t first = 0;  // taps of the filter
    int64_t last = 0;
    for (int axis = 0; axis < 3; ++axis) {
      begin[axis] *= form.size[axis];
      end[axis] = begin[axis] + form.size[axis];
      is_whole &= end[axis] <= form.kernel[axis];
      first = first * form.kernel[axis] + begin[axis];
      last = last * form.kernel[axis] + end[axis] - 1;
    }
    const bool in_place = is_whole && last - first + 1 == form.piece_taps;
    filter.g = in_place ? panel + first * tap_stride : taps.all;
    filter.tap_stride = in_place ? tap_stride : PieceTaps::kStride;
    const int64_t step = in_place ? channels : kFilterStep;
    for (int64_t c = 0; c < channels; c += step) {
      filter.channels = std::min(step, channels - c);
      if (!in_place) {
        taps.read(form, begin, end, panel + c * kPanel, tap_stride, filter.channels);
      }
      filter.u = u + c * kPanel;
      kernels.winograd_filter_f32(&filter);
    }
  }
}

// Weights [M, C, kernel...] as floats in panels (F32P16), of halves, or as they lie.
struct Filters {
  const FolioKernels& kernels;
  const Tensor& weights;
  const float* packed;
  const uint8_t* packed_halves;

  int64_t rows(const WinogradForm& form) const { return form.taps * weights.shape()[1]; }
  // Of a panel of floats, where there is none.
  size_t scratch_bytes(const WinogradForm& form) const {
    return packed ? 0 : static_cast<size_t>(rows(form) * kPanel) * sizeof(float);
  }
  // U of filters [first, last), whole panels but for the last one.
  void transform(const WinogradForm& form, int64_t first, int64_t last, float* u, int64_t stride,
                 uint8_t* scratch) const {
    const DType dtype = weights.dtype();
    const int64_t k = rows(form);
    for (int64_t j = first; j < last; j += kPanel, u += kPanel * form.depth) {
      auto* panel = reinterpret_cast<float*>(scratch);
      if (packed_halves) {
        const int64_t at = j * panel_rows(dtype, k) * panel_element_bytes(dtype);
        widen_panels(kernels, dtype, k, kPanel, packed_halves + at, panel);
      } else if (!packed) {
        fill_conv_panels(kernels, form.taps, k, j, std::min(kPanel, last - j), weights, panel);
      }
      transform_panel(kernels, form, packed ? packed + j * k : panel, u, stride);
    }
  }
};

Status fill_blob(const PackRequest& r, const void* context, const Tensor& source, uint8_t* blob) {
  const WinogradForm form(source.shape().dims());
  const Filters filters{*static_cast<const FolioKernels*>(context), source, nullptr, nullptr};
  FOLIO_TRY(const Ref<Buffer> panel, allocate_buffer(filters.scratch_bytes(form)));
  filters.transform(form, 0, r.n, reinterpret_cast<float*>(blob), r.k * panel_columns(r.n),
                    panel->data());
  return Status::ok();
}

class WinogradProduct {
 public:
  WinogradProduct(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args,
                  int threads)
      : s_(s),
        kernels_(kernels),
        args_(args),
        filters_{kernels, *args.weights, args.packed, args.packed_halves},
        form_(args.weights->shape().dims()),
        places_(form_, s.window, args.x_pixel(s)),
        tiles_(s.batch * image_tiles()) {
    // The transforms enlarge what a product loses: it loses nothing, whatever the session allows.
    const int32_t precision = product_precision(kernels, image_tiles(), s.c_out, form_.depth,
                                                Operands::kFloats, /*in_pieces=*/true);
    precision_ = std::min<int32_t>(precision, kFolioHighest);
    FolioGemmF32 function{};
    finishes_ = args.activation.set_in_kernel(&function);
    function_ = function;
    const int64_t floats = form_.planes * form_.depth;  // of V of a tile, of U of a filter
    shares_filters_ =
        args.transformed || panel_columns(s.c_out) <= std::min(tiles_, kMostShared / floats);
    const int64_t held = std::clamp(kBlockFloats / floats, kFewestTiles,
                                    form_.is_line ? kMostLineTiles : kMostTiles);
    const int64_t shares = form_.is_line ? line_shares(threads) : threads;
    const int64_t most = form_.is_line ? std::min(held, (tiles_ + shares - 1) / shares) : held;
    tile_ = even_part(tiles_, std::max(most, kFewestTiles));
    const int64_t room =
        shares_filters_ ? kBlockFloats / (form_.planes * tile_) : kFreshFloats / floats;
    // Threads share blocks of tiles, and columns where these are too few; of fresh columns, which
    // meet all tiles, only those.
    const int64_t parts = shares_filters_ ? blocks(tiles_) : 1;
    const int64_t least = shares_filters_ ? std::min(kEnoughBlocks, shares) : kEnoughBlocks;
    const int64_t wanted = (least + parts - 1) / parts;
    is_cut_ = wanted > 1;
    const int64_t enough = (s.c_out + wanted - 1) / wanted;
    columns_ = even_part(s.c_out, std::max(std::min(room, enough), kFewestColumns), kFewestColumns);
    round_ =
        shares_filters_ ? tile_ : std::clamp(kMostShared / floats / tile_ * tile_, tile_, tiles_);
  }

  // Sets images[i] of those that have a sum which is not finite. zeros: a pixel.
  Status run(OpRun& run, const float* zeros, uint8_t* images) {
    zeros_ = zeros;
    images_ = images;
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, scratch_bytes(), &scratch));
    return shares_filters_ ? by_tiles(run, &scratch) : by_columns(run, &scratch);
  }

 private:
  // U of all filters, unless it was packed.
  Result<const float*> all_filters(OpRun& run, int64_t stride, ThreadScratch* scratch) const {
    if (args_.transformed) return args_.transformed;
    FOLIO_TRY(uint8_t * memory, run.scratch(bytes_of(stride)));
    auto* u = reinterpret_cast<float*>(memory);
    const int64_t panels = panel_columns(s_.c_out) / kPanel;
    run.parallel().for_range(panels, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(*scratch);
      filters_.transform(form_, begin * kPanel, std::min(end * kPanel, s_.c_out),
                         u + begin * kPanel * form_.depth, stride, block.data());
    });
    return u;
  }

  // Each thread makes V of the tiles that it multiplies, also where others do so for other columns:
  // another core's is far away. It is kept from one part of the columns to the next.
  Status by_tiles(OpRun& run, ThreadScratch* scratch) const {
    const int64_t packed = panel_columns(s_.c_out) * form_.depth;
    const int64_t stride =
        args_.transformed ? packed : winograd_plane_stride(packed, sizeof(float));
    FOLIO_TRY(const float* u, all_filters(run, stride, scratch));
    std::array<int64_t, ThreadScratch::kMaxBlocks> held;  // the tiles whose V a block has
    held.fill(-1);
    const int64_t parts = is_cut_ ? column_blocks() : 1;
    run.parallel().for_range(blocks(tiles_) * parts, 1, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(*scratch);
      int64_t& has = held[static_cast<size_t>(block.index())];
      auto* v = reinterpret_cast<float*>(block.data() + m_bytes());
      for (int64_t at = begin; at < end; ++at) {
        const int64_t first = at / parts * tile_;
        const int64_t count = std::min(tile_, tiles_ - first);
        if (has != first) transform(first, count, v);
        has = first;
        const int64_t column = at % parts * columns_;
        const int64_t last = is_cut_ ? column + columns_ : s_.c_out;
        for (int64_t j = column; j < last; j += columns_) {
          multiply(first, count, j, v, u + j * form_.depth, stride,
                   reinterpret_cast<float*>(block.data()));
        }
      }
    });
    return Status::ok();
  }

  // U of some columns at a time, which meet V of all tiles of a round.
  Status by_columns(OpRun& run, ThreadScratch* scratch) const {
    FOLIO_TRY(uint8_t * bytes, run.scratch(v_bytes()));
    auto* v = reinterpret_cast<float*>(bytes);
    const int64_t grain = std::max<int64_t>(1, kGrainFloats / form_.depth);
    for (int64_t first = 0; first < tiles_; first += round_) {
      const int64_t count = std::min(round_, tiles_ - first);
      run.parallel().for_range(count, grain, [&](int64_t begin, int64_t end) {
        transform(first + begin, end - begin, v + begin * form_.depth);
      });
      run.parallel().for_range(column_blocks(), 1, [&](int64_t begin, int64_t end) {
        const ThreadScratch::Block block(*scratch);
        for (int64_t at = begin; at < end; ++at) {
          multiply_fresh(first, count, at * columns_, v, block.data());
        }
      });
    }
    return Status::ok();
  }

  // Lines may be short: in how many parts they repay to wake threads.
  int64_t line_shares(int threads) const {
    const auto macs = static_cast<double>(tiles_ * form_.planes * form_.depth);
    return thread_parts(macs * static_cast<double>(s_.c_out) / kThreadMacs, threads);
  }

  int64_t blocks(int64_t tiles) const { return (tiles + tile_ - 1) / tile_; }
  int64_t column_blocks() const { return (s_.c_out + columns_ - 1) / columns_; }
  int64_t v_stride() const { return winograd_plane_stride(round_ * form_.depth, sizeof(float)); }
  int64_t u_stride() const {
    return winograd_plane_stride(panel_columns(columns_) * form_.depth, sizeof(float));
  }
  int64_t m_stride() const {
    return winograd_plane_stride(tile_ * panel_columns(columns_), sizeof(float));
  }
  size_t bytes_of(int64_t stride) const {
    return static_cast<size_t>(form_.planes * stride) * sizeof(float);
  }
  size_t v_bytes() const { return bytes_of(v_stride()); }
  size_t m_bytes() const { return bytes_of(m_stride()); }
  size_t scratch_bytes() const {
    const size_t panel = args_.transformed ? 0 : filters_.scratch_bytes(form_);
    if (shares_filters_) return std::max(m_bytes() + v_bytes(), panel);
    return m_bytes() + bytes_of(u_stride()) + panel;
  }

  // A block of output channels of any number of tiles.
  void multiply_fresh(int64_t first, int64_t count, int64_t column, const float* v,
                      uint8_t* scratch) const {
    auto* u = reinterpret_cast<float*>(scratch + m_bytes());
    filters_.transform(form_, column, std::min(column + columns_, s_.c_out), u, u_stride(),
                       scratch + m_bytes() + bytes_of(u_stride()));
    for (int64_t t = 0; t < count; t += tile_) {
      multiply(first + t, std::min(tile_, count - t), column, v + t * form_.depth, u, u_stride(),
               reinterpret_cast<float*>(scratch));
    }
  }

  int64_t image_tiles() const { return places_.of_image(); }

  // V of tiles [first, first + count); v: where the first one's goes.
  void transform(int64_t first, int64_t count, float* v) const {
    const float* x[kStep * kMostPlanes];
    FolioWinogradInput input{};
    input.channels = s_.c_in;
    input.x = x;
    input.plane_stride = v_stride();
    input.row_stride = form_.depth;
    input.line_taps = form_.line_taps();
    TilePlace begin = places_.at(first);
    for (int64_t t = 0; t < count; t += kStep) {
      input.tiles = std::min(kStep, count - t);
      TilePlace end = begin;
      for (int64_t piece = 0; piece < form_.pieces; ++piece) {
        int64_t behind[3];  // a tile's first output
        places_.first_tap(piece, behind);
        const float** to = x;
        end = begin;
        for (int64_t i = 0; i < input.tiles; ++i, end.next()) {
          to = places_.inputs(end, behind, args_.x, zeros_, to);
        }
        input.v = v + t * form_.depth + piece * s_.c_in;
        kernels_.winograd_input_f32(&input);
      }
      begin = end;
    }
  }

  // A block of tiles times the columns from `column` on.
  void multiply(int64_t first, int64_t count, int64_t column, const float* v, const float* u,
                int64_t stride, float* m) const {
    FolioGemmF32 gemm{};
    gemm.m = count;
    gemm.n = std::min(columns_, s_.c_out - column);
    gemm.k = form_.depth;
    gemm.a_row_stride = form_.depth;
    gemm.a_col_stride = 1;
    gemm.c_row_stride = panel_columns(columns_);
    gemm.alpha = 1.0F;
    gemm.precision = precision_;
    gemm.next_rows = 1;
    gemm.next_bytes = panel_columns(gemm.n) * gemm.k * static_cast<int64_t>(sizeof(float));
    for (int64_t e = 0; e < form_.planes; ++e) {
      gemm.a = v + e * v_stride();
      gemm.b = u + e * stride;
      gemm.c = m + e * m_stride();
      const bool comes_from_afar = shares_filters_ && e + 1 < form_.planes;
      gemm.next = comes_from_afar ? reinterpret_cast<const char*>(gemm.b + stride) : nullptr;
      kernels_.gemm_f32(&gemm);
    }
    for (int64_t t = 0; t < count;) {
      const int64_t image = (first + t) / image_tiles();
      const int64_t end = std::min(first + count, (image + 1) * image_tiles()) - first;
      const int64_t tiles = std::min(kStep, end - t);
      if (!finish(first + t, tiles, column, gemm.n, m + t * gemm.c_row_stride)) mark(image);
      t += tiles;
    }
  }

  void mark(int64_t image) const {
    std::atomic_ref<uint8_t>(images_[image]).store(1, std::memory_order_relaxed);
  }

  // From products to pixels; false when a sum is not finite.
  bool finish(int64_t first, int64_t tiles, int64_t column, int64_t columns, const float* m) const {
    int64_t pixels[kStep * kMostOutputs];
    int64_t* end = pixels;
    TilePlace at = places_.at(first);
    for (int64_t i = 0; i < tiles; ++i, at.next()) end = places_.outputs(at, end);
    FolioWinogradOutput output{};
    output.tiles = tiles;
    output.channels = columns;
    output.m = m;
    output.plane_stride = m_stride();
    output.row_stride = panel_columns(columns_);
    output.pixels = pixels;
    output.y_step = args_.y_pixel(s_);
    output.addend_step = args_.z_pixel(s_);
    output.scale = args_.scale ? args_.scale + column : nullptr;
    output.bias = args_.bias ? args_.bias + column : nullptr;
    output.addend = args_.z ? args_.z + column : nullptr;
    output.activation = function_.activation;
    output.clip_lo = function_.clip_lo;
    output.clip_hi = function_.clip_hi;
    output.y = args_.y + column;
    output.line_taps = form_.line_taps();
    const bool is_finite = kernels_.winograd_output_f32(&output) != 0;
    for (const int64_t* to = pixels; to != end && !finishes_; ++to) {
      if (*to >= 0) args_.activation.apply(kernels_, columns, output.y + *to * output.y_step);
    }
    for (const int64_t* to = pixels; to != end && args_.behind; ++to) {
      if (*to < 0) continue;
      const float* const z = args_.behind + *to * output.addend_step + column;
      add_pixels(kernels_, 1, columns, z, 0, output.y + *to * output.y_step, 0);
    }
    return is_finite;
  }

  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  const Filters filters_;
  WinogradForm form_;
  WinogradTiles places_;
  int64_t tiles_;            // of all images
  FolioGemmF32 function_{};  // the activation, if the transform itself applies it
  int32_t precision_ = kFolioChain;
  bool finishes_ = false;
  bool shares_filters_ = false;   // threads share U; else V
  bool is_cut_ = false;           // blocks of columns are what threads share
  int64_t tile_ = 0;              // tiles of a block
  int64_t columns_ = 0;           // output channels of a block
  int64_t round_ = 0;             // tiles whose V is there at once
  const float* zeros_ = nullptr;  // a pixel
  uint8_t* images_ = nullptr;
};

// Images [first, first + count) directly.
Status run_directly(OpRun& run, const ConvSizes& s, const NhwcConvArgs& given, int64_t first,
                    int64_t count) {
  ConvSizes images = s;
  images.batch = count;
  NhwcConvArgs args = given;
  args.x += first * s.window.in_count() * args.x_pixel(s);
  const int64_t pixel = first * s.window.out_count();
  args.y += pixel * args.y_pixel(s);
  if (args.z) args.z += pixel * args.z_pixel(s);
  if (args.behind) args.behind += pixel * args.z_pixel(s);
  return run_nhwc_conv(run, images, args);
}

}  // namespace

bool fits_winograd(Span<const int64_t> w, const ConvAttrs& attrs) {
  if (w.size() < 3 || w.size() > 5 || w[0] < 1 || w[1] < 1) return false;
  const bool is_small =
      std::all_of(w.begin() + 2, w.end(), [](int64_t dim) { return dim >= 1 && dim <= kMostTaps; });
  if (!is_small) return false;
  const WinogradForm form(w);
  const bool fits = form.is_line ? form.taps >= kFewestTaps && form.taps <= kMostLineTaps
                                 : form.taps <= kMostTaps;
  return fits && attrs.group == 1 && all_are(attrs.window.strides, 1);
}

bool suits_winograd(Span<const int64_t> w, const ConvAttrs& attrs) {
  constexpr int64_t kFewestChannels = 8;
  constexpr int64_t kFewestOfLines = 32;
  return fits_winograd(w, attrs) &&
         std::min(w[0], w[1]) >= (WinogradForm(w).is_line ? kFewestOfLines : kFewestChannels);
}

Result<PackRequest> winograd_request(const FolioKernels& kernels, Span<const int64_t> w) {
  const WinogradForm form(w);
  PackRequest request;
  request.context = &kernels;
  request.layout = form.is_line ? Layout::kF32WinoLine : Layout::kF32Wino43;
  request.version = form.is_line ? kF32WinoLineVersion : kF32Wino43Version;
  request.k = form.depth;
  request.n = w[0];
  request.row_stride = form.taps;
  request.col_stride = w[1] * form.taps;
  request.fill = fill_blob;
  uint64_t each = 0;
  if (!f32p16_bytes(request.k, request.n, &each) ||
      !checked_mul(each, static_cast<uint64_t>(form.planes), &request.bytes)) {
    return invalid_argument("W is too large to be packed");
  }
  return request;
}

Status run_winograd_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  WinogradProduct product(s, run.kernels(), args, run.parallel().thread_count());
  const size_t pixel = static_cast<size_t>(s.c_in) * sizeof(float);
  FOLIO_TRY(uint8_t * zeros, run.scratch(pixel + static_cast<size_t>(s.batch)));
  uint8_t* const images = zeros + pixel;
  std::memset(zeros, 0, pixel + static_cast<size_t>(s.batch));
  FOLIO_RETURN_IF_ERROR(product.run(run, reinterpret_cast<const float*>(zeros), images));
  for (int64_t i = 0; i < s.batch; ++i) {
    int64_t count = 0;
    while (i + count < s.batch && images[i + count]) ++count;
    if (count > 0) FOLIO_RETURN_IF_ERROR(run_directly(run, s, args, i, count));
    i += count;
  }
  return Status::ok();
}

}  // namespace folio
