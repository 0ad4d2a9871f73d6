#include "core/ops/op_nhwc_conv.h"

#include "core/base/checked_math.h"
#include "core/ops/op_depthwise.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_gemm_half.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_nhwc_window.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr size_t kFloat = sizeof(float);
constexpr int64_t kRowStep = 14;   // rows of the widest kernel's tile
constexpr int64_t kTileRows = 98;  // half of 14 x 14: images of 7 times 2^i are cut evenly
constexpr int64_t kLeastTileRows = 2 * kRowStep;  // of small work that threads share
constexpr int64_t kDilatedRows = 42;  // more such tiles see no more than some lines of the window
constexpr int64_t kMostPieces = 320 * 1024;  // pointers, or floats of border pieces, of one tile
constexpr int64_t kFewChannels = 32;         // below that, a row of the window is one piece
constexpr int64_t kMostPlanes = 8;           // of an image that is read as it lies
constexpr int64_t kLinePixels = 504;         // of a tile, where it is (a part of) a line
constexpr int64_t kFewestTaps = 3;           // of a row of the window then: they are one piece
constexpr int64_t kChunkMacs = 1 << 20;
constexpr int64_t kSharedMacs = 4 * kChunkMacs;
// Weights that are packed while they are used: floats that stay in L2, fewer columns than that only
// if there are no more, and how many such blocks it takes to keep all threads at work.
constexpr int64_t kFreshFloats = 160 * 1024;
constexpr int64_t kFreshColumns = 2 * kPanel;
constexpr int64_t kEnoughBlocks = 4;
// Between two convolutions: floats that stay in L2 beside the rest, and lines of the output below
// which too many would be computed twice.
constexpr int64_t kPairFloats = 80 * 1024;
constexpr int64_t kPairLines = 4;
// Weights of 16 bits: floats that are widened at once, in L2 beside the bytes that come next; and
// how many chunks a thread should have, if there are more tiles of pixels than one.
constexpr int64_t kWideFloats = 64 * 1024;
constexpr int64_t kWideChunks = 2;
// Few filters: vectors of neighbours in the lanes of the widest kernel, and what adding those lanes
// takes, in multiply-adds.
constexpr int64_t kDotLanes = 16;
constexpr int64_t kDotEnd = 5;

// Whether the taps of one row of the window are neighbours in x for all pixels of a line.
bool has_lines(const ConvSizes& s, const NhwcConvArgs& args) {
  return args.is_planes || (!is_pointwise(s.window) && s.group == 1 && s.window.dilation[2] == 1);
}

// Floats of a piece.
int64_t piece_floats(const ConvSizes& s, const NhwcConvArgs& args, bool by_lines) {
  return (args.is_planes ? 1 : s.c_in) * (by_lines ? s.window.kernel[2] : 1);
}

// Of a pixel, in multiply-adds: all filters as sums of neighbours in its pieces.
int64_t dots_work(const ConvSizes& s, const NhwcConvArgs& args) {
  const int64_t run = std::max<int64_t>(1, piece_floats(s, args, has_lines(s, args)));
  const int64_t vectors = s.k() / run * ((run + kDotLanes - 1) / kDotLanes);
  return s.c_out * (vectors + kDotEnd) * kDotLanes;
}

// Few filters leave most of a panel empty: then sums of neighbours are faster. By shape only.
bool takes_dots(const ConvSizes& s, const NhwcConvArgs& args) {
  return s.group == 1 && s.c_out <= FOLIO_MOST_DOTS && !is_half(args.weights->dtype()) &&
         dots_work(s, args) < s.k() * kPanel * 4 / 5;
}

class NhwcProduct {
 public:
  NhwcProduct(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args,
              int threads)
      : s_(s), kernels_(kernels), args_(args), threads_(threads) {
    const Window& w = s.window;
    by_lines_ = has_lines(s, args) && (args.is_planes || args.turned || s.c_in < kFewChannels);
    in_place_ = !by_lines_ && is_pointwise(w);
    unit_ = args.is_planes ? 1 : s.c_in;
    run_ = piece_floats(s, args, by_lines_);
    pieces_ = s.k() / std::max<int64_t>(run_, 1);
    rows_ = s.batch * w.out_count();
    // Short pieces are gathered for parts, which takes longer than their products.
    const bool is_gathered = by_lines_ && pieces_ > 1 && run_ < kFewChannels;
    precision_ =
        is_gathered ? kFolioChain : product_precision(kernels, w.out_count(), s.c_out, s.k());
    as_bfloat16_ = args.packed_halves && reads_panels(kernels, precision_, args.weights->dtype());
    is_packed_ = args.packed || as_bfloat16_;
    const int64_t work =
        std::max<int64_t>(1, args.turned ? dots_work(s, args) : s.k() * panel_columns(s.c_out));
    const double macs = static_cast<double>(rows_) * static_cast<double>(work * s.group);
    // Lines are cut by filters only; other large work is in chunks enough.
    const bool is_shared = by_lines_ || macs < kSharedMacs;
    const int64_t shares = is_shared ? thread_parts(macs / kThreadMacs, threads) : 1;
    if (by_lines_) {
      parts_ = std::max<int64_t>(1, (w.out[2] + kLinePixels - 1) / kLinePixels);
      tiling_.tile = (w.out[2] + parts_ - 1) / parts_;
      tiling_.tiles = w.out[2] > 0 ? rows_ / w.out[2] * parts_ : 0;
      // Long filters over few pixels (spectrograms): threads share the filters.
      const int64_t blocks = (shares + tiling_.tiles - 1) / std::max<int64_t>(1, tiling_.tiles);
      tiling_.columns =
          args.turned || blocks <= 1 ? s.c_out : panel_columns((s.c_out + blocks - 1) / blocks);
      tiling_.blocks = (s.c_out + tiling_.columns - 1) / tiling_.columns;
    } else if (folio_multiplies_parts(&kernels, precision_)) {
      const ProductChunk chunk = parts_chunk(rows_, s.c_out, s.k(), threads);
      const int64_t most = in_place_ ? chunk.rows : kMostPieces / std::max<int64_t>(pieces_, 1);
      tiling_.tile = std::clamp<int64_t>(chunk.rows, 1, std::max(most, kRowStep));
      tiling_.tiles = (rows_ + tiling_.tile - 1) / tiling_.tile;
      tiling_.columns = chunk.columns;
      tiling_.blocks = (s.c_out + chunk.columns - 1) / chunk.columns;
    } else {
      const int64_t share = (rows_ * s.group + shares - 1) / shares;
      const int64_t even = (share + kRowStep - 1) / kRowStep * kRowStep;
      const int64_t widest = std::min(w.dilation[1] > 1 && !in_place_ ? kDilatedRows : kTileRows,
                                      shares == 1 ? kTileRows : std::max(even, kLeastTileRows));
      const int64_t most =
          in_place_ ? widest
                    : std::clamp(kMostPieces / std::max<int64_t>(pieces_, 1) / kRowStep * kRowStep,
                                 kRowStep, widest);
      const int64_t chunk = std::min(kChunkMacs, shares == 1 ? kChunkMacs : share * work);
      const int64_t blocks = in_place_ ? std::max<int64_t>(1, chunk / (work * most)) : 1;
      tiling_ = make_tiling(rows_, most * blocks, kRowStep, s.group, s.c_out);
    }
    skips_lines_ = !by_lines_ && !in_place_ && !args.turned && w.kernel[0] == 1 &&
                   w.dilation[1] > 1 && !folio_multiplies_parts(&kernels, precision_);
    cuts_lines_ = args.turned && by_lines_;
    if (cuts_lines_) find_inside();
    if (by_lines_ && is_packed_) {
      const int64_t least = std::max<int64_t>(1, kChunkMacs / (work * tiling_.tile));
      grain_ = std::clamp<int64_t>(tiling_.tiles * tiling_.blocks / shares, 1, least);
    }
    if (is_packed_) return;
    const bool widens = is_half(args.weights->dtype());
    const bool is_split = folio_multiplies_parts(&kernels, precision_) != 0;
    const int64_t panels =
        (widens && !is_split ? kWideFloats : kFreshFloats) / std::max<int64_t>(s.k(), 1) / kPanel;
    tiling_.columns = std::min(s.c_out, std::max(panels * kPanel, kFreshColumns));
    tiling_.blocks = (s.c_out + tiling_.columns - 1) / tiling_.columns;
    if (!widens || threads == 1) return;
    const int64_t wanted = (kWideChunks * threads + blocks() - 1) / blocks();
    row_parts_ = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, tiling_.tiles));
  }

  // Of columns, in all groups.
  int64_t blocks() const { return s_.group * tiling_.blocks; }
  int64_t chunks() const { return (is_packed_ ? tiling_.tiles : row_parts_) * blocks(); }
  int64_t grain() const { return grain_; }  // of chunks
  bool reads_halves() const { return as_bfloat16_; }
  size_t zero_bytes() const {
    return static_cast<size_t>(by_lines_ ? line_floats(tiling_.tile) : run_) * kFloat;
  }
  size_t pointer_bytes() const {
    if (in_place_) return 0;
    const int64_t each = by_lines_ ? 1 : tiling_.tile;
    return align_up(static_cast<size_t>(each * pieces_) * sizeof(float*), 64);
  }
  size_t border_bytes() const {
    return by_lines_
               ? align_up(static_cast<size_t>(line_floats(border_pixels()) * pieces_) * kFloat, 64)
               : 0;
  }
  size_t panel_bytes() const {
    return is_packed_ ? 0 : static_cast<size_t>(panel_columns(tiling_.columns) * s_.k()) * kFloat;
  }
  size_t gemm_bytes() const {
    return folio_multiplies_parts(&kernels_, precision_) ? FOLIO_GEMM_SCRATCH : 0;
  }
  size_t scratch_bytes() const {
    return panel_bytes() + pointer_bytes() + align_up(border_bytes(), 64) + gemm_bytes();
  }

  void compute(int64_t chunk, uint8_t* scratch, const float* zeros) const {
    const int64_t group = chunk / tiling_.blocks % s_.group;
    const int64_t first = chunk % tiling_.blocks * tiling_.columns;
    if (is_packed_) {
      multiply(tile_at(first_row(chunk / blocks()), rows_), group, first, packed_at(group, first),
               scratch, zeros);
      return;
    }
    auto* panels = reinterpret_cast<float*>(scratch);
    fill(group, first, panels);
    const int64_t part = chunk / blocks();
    const int64_t begin = tiling_.tiles * part / row_parts_;
    const int64_t end = tiling_.tiles * (part + 1) / row_parts_;
    Ahead ahead = bytes_of(chunk + threads_);  // others have the chunks between
    for (int64_t tile = begin; tile < end; ++tile) {
      multiply(tile_at(first_row(tile), rows_), group, first, panels, scratch + panel_bytes(),
               zeros, ahead);
      ahead = {};
    }
  }

  // Pixels [begin, end), of packed weights of one group; y is where that of pixel `begin` goes.
  void compute_rows(int64_t begin, int64_t end, float* y, uint8_t* scratch,
                    const float* zeros) const {
    for (int64_t row = begin; row < end;) {
      Tile tile = tile_at(row, end);
      tile.y = y + (row - begin) * s_.c_out;
      for (int64_t first = 0; first < s_.c_out; first += tiling_.columns) {
        multiply(tile, 0, first, packed_at(0, first), scratch, zeros);
      }
      row += tile.count;
    }
  }

 private:
  struct Tile {
    int64_t row;    // the first of its pixels
    int64_t count;  // of them
    float* y;
  };

  // Bytes that are read after a tile.
  struct Ahead {
    const uint8_t* from;
    int64_t bytes;
  };

  // The panels of a block of columns from `first` on.
  void fill(int64_t group, int64_t first, float* panels) const {
    const int64_t columns = std::min(tiling_.columns, s_.c_out - first);
    if (args_.packed_halves) {
      widen_halves(kernels_, args_.weights->dtype(), panel_columns(columns) * s_.k(),
                   halves_at(group, first), panels);
      return;
    }
    fill_conv_panels(kernels_, args_.is_planes ? 1 : s_.window.kernel_count(), s_.k(),
                     group * s_.c_out + first, columns, *args_.weights, panels);
  }

  const uint8_t* halves_at(int64_t group, int64_t first) const {
    return args_.packed_halves + 2 * (group * panel_columns(s_.c_out) + first) * s_.k();
  }
  Ahead bytes_of(int64_t chunk) const {
    if (!args_.packed_halves || chunk >= chunks()) return {};
    const int64_t first = chunk % tiling_.blocks * tiling_.columns;
    const int64_t columns = panel_columns(std::min(tiling_.columns, s_.c_out - first));
    return {halves_at(chunk / tiling_.blocks % s_.group, first), 2 * columns * s_.k()};
  }

  int64_t first_row(int64_t tile) const {
    if (!by_lines_) return tile * tiling_.tile;
    return tile / parts_ * s_.window.out[2] + tile % parts_ * tiling_.tile;
  }
  Tile tile_at(int64_t row, int64_t end) const {
    if (by_lines_) end = std::min(end, (row / s_.window.out[2] + 1) * s_.window.out[2]);
    return {row, std::min(tiling_.tile, end - row), args_.y + row * s_.group * s_.c_out};
  }
  const float* packed_at(int64_t group, int64_t first) const {
    if (as_bfloat16_) return reinterpret_cast<const float*>(halves_at(group, first));
    return args_.packed + (group * panel_columns(s_.c_out) + first) * s_.k();
  }

  // The pixels of a line whose windows are inside of it. To copy a line with its border would take
  // as long as few filters do: the others are tiles of their own.
  void find_inside() {
    const Window& w = s_.window;
    const int64_t room = w.in[2] + w.pad_begin[2] - w.kernel[2];
    inside_begin_ = std::min((w.pad_begin[2] + w.stride[2] - 1) / w.stride[2], w.out[2]);
    inside_end_ = std::clamp(room < 0 ? 0 : room / w.stride[2] + 1, inside_begin_, w.out[2]);
  }

  // Pixels of the largest tile that may see a border.
  int64_t border_pixels() const {
    if (!cuts_lines_) return tiling_.tile;
    return std::min(tiling_.tile, std::max(inside_begin_, s_.window.out[2] - inside_end_));
  }

  // How many of a tile's pixels from one on are computed together.
  int64_t together(int64_t row, int64_t left) const {
    if (!cuts_lines_) return left;
    const int64_t at = row % s_.window.out[2];
    const int64_t end = at < inside_begin_ ? inside_begin_
                        : at < inside_end_ ? inside_end_
                                           : at + left;
    return std::min(left, end - at);
  }

  // A tile of pixels times the columns from `first` on.
  void multiply(const Tile& tile, int64_t group, int64_t first, const float* b, uint8_t* scratch,
                const float* zeros, const Ahead& ahead = {}) const {
    for (int64_t done = 0; done < tile.count;) {
      const int64_t row = tile.row + done;
      const int64_t count = together(row, tile.count - done);
      multiply_part({row, count, tile.y + done * s_.group * s_.c_out}, group, first, b, scratch,
                    zeros, ahead);
      done += count;
    }
  }

  void multiply_part(const Tile& tile, int64_t group, int64_t first, const float* b,
                     uint8_t* scratch, const float* zeros, const Ahead& ahead) const {
    const int64_t row = tile.row;
    const int64_t channels = s_.group * s_.c_in;
    FolioGemmF32 gemm{};
    gemm.m = tile.count;
    gemm.n = std::min(tiling_.columns, s_.c_out - first);
    gemm.k = s_.k();
    if (in_place_) {
      gemm.a = args_.x + row * channels + group * s_.c_in;
      gemm.a_row_stride = channels;
      gemm.a_col_stride = 1;
    } else {
      const auto** pointers = reinterpret_cast<const float**>(scratch);
      gemm.a_run = run_;
      if (by_lines_) {
        point_lines(tile, zeros, pointers, reinterpret_cast<float*>(scratch + pointer_bytes()));
        gemm.a_lines = pointers;
        gemm.a_row_stride = s_.window.stride[2] * unit_;
      } else {
        point(row, gemm.m, group * s_.c_in, zeros, pointers);
        gemm.a_rows = pointers;
      }
    }
    gemm.b = b;
    gemm.b_is_bfloat16 = as_bfloat16_ ? 1 : 0;
    const int64_t channel = group * s_.c_out + first;
    gemm.c_row_stride = s_.group * s_.c_out;
    gemm.c = tile.y + channel;
    gemm.col_scale = args_.scale ? args_.scale + channel : nullptr;
    gemm.col_bias = args_.bias ? args_.bias + channel : nullptr;
    gemm.addend = args_.z ? args_.z + row * gemm.c_row_stride + channel : nullptr;
    gemm.addend_row_stride = gemm.c_row_stride;
    gemm.alpha = 1.0F;
    gemm.precision = precision_;
    if (gemm_bytes() > 0) {
      gemm.scratch = scratch + pointer_bytes() + align_up(border_bytes(), 64);
    }
    if (ahead.from) {
      gemm.next = reinterpret_cast<const char*>(ahead.from);
      gemm.next_rows = 1;
      gemm.next_bytes = ahead.bytes;
    }
    const bool finished = args_.activation.set_in_gemm(&gemm);
    if (args_.turned) gemm.b = args_.turned;
    const KernelLines seen = skips_lines_ ? seen_lines(row, gemm.m) : KernelLines{};
    if (seen.count > 0) {
      multiply_lines(gemm, seen);
    } else {
      (args_.turned ? kernels_.dots_f32 : kernels_.gemm_f32)(&gemm);
    }
    if (!finished) activate(gemm);
  }

  // Lines of the window.
  struct KernelLines {
    int64_t first = 0;
    int64_t count = 0;  // 0: all
  };

  // Those of which pixels [row, row + count) see any, if these are of one image and do not see all.
  KernelLines seen_lines(int64_t row, int64_t count) const {
    const Window& w = s_.window;
    const int64_t begin = row / w.out[2];
    const int64_t end = (row + count - 1) / w.out[2];
    if (begin / w.out[1] != end / w.out[1]) return {};
    const int64_t above = taps_inside(w, 1, end % w.out[1]).from;
    const int64_t below = taps_inside(w, 1, begin % w.out[1]).to;
    return below - above == w.kernel[1] || below <= above ? KernelLines{}
                                                          : KernelLines{above, below - above};
  }

  // The products with the other lines of the window are zeros. Panel by panel, as the rows of B
  // that are left are neighbours in one only; the order of each sum is that of the whole.
  void multiply_lines(const FolioGemmF32& whole, const KernelLines& lines) const {
    const int64_t taps = s_.window.kernel[2];
    for (int64_t j = 0; j < whole.n; j += kPanel) {
      FolioGemmF32 gemm = whole;
      gemm.n = std::min(kPanel, whole.n - j);
      gemm.k = lines.count * taps * run_;
      gemm.a_rows += lines.first * taps * whole.m;
      gemm.b += j * whole.k + lines.first * taps * run_ * kPanel;
      gemm.c += j;
      if (gemm.col_scale) gemm.col_scale += j;
      if (gemm.col_bias) gemm.col_bias += j;
      if (gemm.addend) gemm.addend += j;
      if (j > 0) gemm.next = nullptr;
      kernels_.gemm_f32(&gemm);
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

  // pointers[piece][i]: the piece of output pixel row + i. Lines of output pixels one after the
  // other: what is the same for a line is found once.
  void point(int64_t row, int64_t count, int64_t first_channel, const float* zeros,
             const float** pointers) const {
    const Window& w = s_.window;
    const int64_t channels = s_.group * s_.c_in;
    for (int64_t done = 0; done < count;) {
      const int64_t at = row + done;
      const int64_t v = at % w.out[2];
      const int64_t pixels = std::min(w.out[2] - v, count - done);
      const float* x = args_.x + at / w.out_count() * w.in_count() * channels + first_channel;
      const float** to = pointers + done;
      for_each_line(at, [&](int64_t line) {
        const float* from = line < 0 ? nullptr : x + line * w.in[2] * channels;
        to = point_taps(from, v * w.stride[2] - w.pad_begin[2], pixels, count, zeros, to);
      });
      done += pixels;
    }
  }

  // body(line): the lines of the image that output pixel `at` sees, numbered through all depths; -1
  // outside.
  template <typename Body>
  void for_each_line(int64_t at, const Body& body) const {
    const Window& w = s_.window;
    const int64_t h = at / w.out[2] % w.out[1];
    const int64_t d = at / w.out[2] / w.out[1] % w.out[0];
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      const int64_t depth = d * w.stride[0] - w.pad_begin[0] + kd * w.dilation[0];
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        const int64_t line = h * w.stride[1] - w.pad_begin[1] + kh * w.dilation[1];
        const bool inside = depth >= 0 && depth < w.in[0] && line >= 0 && line < w.in[1];
        body(inside ? depth * w.in[1] + line : -1);
      }
    }
  }

  // `line`: the image's row, null outside. Gives the place of the next piece.
  const float** point_taps(const float* line, int64_t column, int64_t pixels, int64_t count,
                           const float* zeros, const float** to) const {
    const Window& w = s_.window;
    const int64_t channels = s_.group * s_.c_in;
    for (int64_t kw = 0; kw < w.kernel[2]; ++kw, to += count) {
      int64_t at = column + kw * w.dilation[2];
      for (int64_t i = 0; i < pixels; ++i, at += w.stride[2]) {
        to[i] = line && at >= 0 && at < w.in[2] ? line + at * channels : zeros;
      }
    }
    return to;
  }

  // pointers[piece]: the piece of the tile's first pixel; those of the others follow in steps. A
  // line that ends within what the tile sees is copied with the border.
  void point_lines(const Tile& tile, const float* zeros, const float** pointers,
                   float* border) const {
    const Window& w = s_.window;
    const float* x = args_.x + tile.row / w.out_count() * w.in_count() * s_.c_in;
    const int64_t first = tile.row % w.out[2] * w.stride[2] - w.pad_begin[2];
    const int64_t floats = line_floats(tile.count);
    const int64_t end = first + floats / unit_;
    const int64_t from = std::clamp<int64_t>(first, 0, w.in[2]);
    const int64_t to = std::clamp<int64_t>(end, from, w.in[2]);
    const bool is_inside = from == first && to == end;
    const int64_t before = std::clamp<int64_t>(-first, 0, end - first) * unit_;
    for (int64_t plane = 0; plane < s_.c_in / unit_; ++plane, x += w.in_count()) {
      for_each_line(tile.row, [&](int64_t line) {
        if (line < 0) {
          *pointers++ = zeros;
          return;
        }
        const float* inside = x + (line * w.in[2] + from) * unit_;
        if (is_inside) {
          *pointers++ = inside;
          return;
        }
        *pointers++ = border;
        const int64_t count = (to - from) * unit_;
        std::fill_n(border, before, 0.0F);
        std::memcpy(border + before, inside, static_cast<size_t>(count) * kFloat);
        std::fill_n(border + before + count, floats - before - count, 0.0F);
        border += floats;
      });
    }
  }

  // Of the image and its border that so many outputs of a line see.
  int64_t line_floats(int64_t pixels) const {
    const Window& w = s_.window;
    return std::max<int64_t>(0, (pixels - 1) * w.stride[2] + w.kernel[2]) * unit_;
  }

  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  const int threads_;
  bool in_place_ = false;
  bool by_lines_ = false;     // the taps of one row of the window are one piece
  bool skips_lines_ = false;  // of the window: dilated ones see a border from many pixels
  int64_t unit_ = 0;          // floats of a pixel, or of a plane's
  int64_t run_ = 0;           // floats of a piece
  int64_t pieces_ = 0;
  int64_t grain_ = 1;
  int32_t precision_ = kFolioChain;
  bool as_bfloat16_ = false;  // kernels read packed weights so
  bool is_packed_ = false;    // as kernels read them
  int64_t parts_ = 1;         // tiles of a line
  bool cuts_lines_ = false;   // pixels [inside_begin_, inside_end_) of a line see no border
  int64_t inside_begin_ = 0;
  int64_t inside_end_ = 0;
  int64_t row_parts_ = 1;  // chunks that have the same columns of halves
  int64_t rows_ = 0;       // output pixels of all images
  ConvTiling tiling_;
};

// A product whose result only a depthwise filter reads, some lines at a time: they never leave the
// cache. A strip of lines is one chunk, block after block; the lines that two blocks need stay.
// Those that two strips need are computed twice.
class ConvPair {
 public:
  ConvPair(const OpRun& run, const ConvSizes& first, const NhwcConvArgs& first_args,
           const ConvSizes& second, const NhwcConvArgs& second_args)
      : second_(second),
        second_args_(second_args),
        product_(first, run.kernels(), first_args, run.parallel().thread_count()),
        filter_(second, run.kernels(), second_args) {
    const Window& w = second.window;
    line_ = w.in[2] * second.group;
    reach_ = (w.kernel[1] - 1) * w.dilation[1] + 1;
    // Enough strips for all threads, unless too much would be computed twice. Bits are the same.
    const int64_t threads = run.parallel().thread_count();
    const int64_t share = threads == 1 ? w.out[1] : second.batch * w.out[1] / (2 * threads);
    strip_ = even_part(w.out[1], std::clamp(share, std::min(kPairLines, w.out[1]), w.out[1]));
    const int64_t held = std::max(kPairFloats / std::max<int64_t>(line_, 1), reach_);
    block_ = even_part(strip_, std::min((held - reach_) / w.stride[1] + 1, strip_));
    held_ = (block_ - 1) * w.stride[1] + reach_;
  }

  int64_t strips() const { return second_.batch * per_image(); }
  size_t zero_bytes() const { return product_.zero_bytes(); }
  size_t line_bytes() const { return static_cast<size_t>(held_ * line_) * kFloat; }
  size_t scratch_bytes() const {
    return align_up(line_bytes(), 64) +
           std::max(product_.scratch_bytes(), NhwcRow::scratch_bytes(second_.window));
  }

  void compute(int64_t strip, uint8_t* scratch, const float* zeros) const {
    const Window& w = second_.window;
    const int64_t begin = strip % per_image() * strip_;
    const int64_t end = std::min(begin + strip_, w.out[1]);
    Lines held;
    for (int64_t at = begin; at < end; at += block_) {
      compute_block(strip / per_image(), at, std::min(at + block_, end), &held, scratch, zeros);
    }
  }

 private:
  // Of the image between the two.
  struct Lines {
    int64_t from = 0;
    int64_t to = 0;
  };

  // The largest of parts of nearly one size, of at most `most`.
  static int64_t even_part(int64_t all, int64_t most) {
    const int64_t parts = (all + most - 1) / most;
    return (all + parts - 1) / parts;
  }
  int64_t per_image() const { return (second_.window.out[1] + strip_ - 1) / strip_; }

  // Lines [begin, end) of the output; `held` are those in the scratch before and after.
  void compute_block(int64_t image, int64_t begin, int64_t end, Lines* held, uint8_t* scratch,
                     const float* zeros) const {
    Window w = second_.window;
    // What the block sees of the image: a smaller image, with less above it.
    Lines seen;
    seen.from = std::clamp<int64_t>(begin * w.stride[1] - w.pad_begin[1], 0, w.in[1]);
    seen.to = std::clamp<int64_t>((end - 1) * w.stride[1] - w.pad_begin[1] + reach_, seen.from,
                                  w.in[1]);
    auto* const lines = reinterpret_cast<float*>(scratch);
    uint8_t* const rest = scratch + align_up(line_bytes(), 64);
    const int64_t kept = std::max<int64_t>(0, held->to - seen.from);
    if (kept > 0) {
      std::memmove(lines, lines + (seen.from - held->from) * line_,
                   static_cast<size_t>(kept * line_) * kFloat);
    }
    const int64_t row = image * w.in[1] + seen.from;
    product_.compute_rows((row + kept) * w.in[2], (row + seen.to - seen.from) * w.in[2],
                          lines + kept * line_, rest, zeros);
    w.in[1] = seen.to - seen.from;
    w.pad_begin[1] += seen.from;
    const NhwcRow windows(w, second_.group, second_args_.packed, rest);
    filter_.compute(windows, lines, 0, begin, end, image * w.out[1] + begin);
    *held = seen;
  }

  const ConvSizes& second_;
  const NhwcConvArgs& second_args_;
  NhwcProduct product_;
  WindowLines filter_;
  int64_t line_;   // floats of a line between the two
  int64_t reach_;  // lines that one line of the output sees
  int64_t strip_;  // lines of the output, as are
  int64_t block_;  // these
  int64_t held_;   // lines between the two
};

}  // namespace

bool adds_in_place(Span<const int64_t> w, int64_t group) {
  uint64_t k = 0;
  return !is_window_conv(w, group) && checked_count(w.subspan(1), &k) && k <= FOLIO_GEMM_ONE_SUM;
}

bool fits_planes(Span<const int64_t> w, const ConvAttrs& attrs) {
  const AxisNumbers& dilations = attrs.window.dilations;
  return attrs.group == 1 && w[1] <= kMostPlanes && w[w.size() - 1] >= kFewestTaps &&
         (dilations.empty() || dilations[dilations.size() - 1] == 1);
}

namespace {

// All of W for this call. Bits do not depend on whether this was done.
Status pack_now(OpRun& run, const ConvSizes& s, NhwcConvArgs* args) {
  const Tensor& w = *args->weights;
  FOLIO_TRY(const PackRequest request,
            nhwc_conv_request(run.kernels(), w.shape().dims(), s.group, args->is_planes));
  FOLIO_TRY(uint8_t * bytes, run.scratch(request.bytes));
  FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, w, bytes));
  args->packed = reinterpret_cast<const float*>(bytes);
  return Status::ok();
}

// The filters one after the other, for sums of neighbours: they are small.
Status turn_filters(OpRun& run, const ConvSizes& s, NhwcConvArgs* args) {
  uint64_t bytes = 0;
  if (!checked_mul<uint64_t>(static_cast<uint64_t>(s.k()), static_cast<uint64_t>(s.c_out) * kFloat,
                             &bytes)) {
    return invalid_argument("W has more elements than can be counted");
  }
  FOLIO_TRY(uint8_t * turned, run.scratch(bytes));
  run.kernels().transpose_b32(s.k(), s.c_out, args->packed, kPanel, turned, s.k());
  args->turned = reinterpret_cast<const float*>(turned);
  return Status::ok();
}

// 1x1 without stride or border, weights of 16 bits: plain products.
Status run_pointwise_halves(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  FolioGemmF32 gemm{};
  gemm.m = s.batch * s.window.out_count();
  gemm.n = s.c_out;
  gemm.k = s.c_in;
  gemm.a_row_stride = s.group * s.c_in;
  gemm.a_col_stride = 1;
  gemm.c_row_stride = gemm.addend_row_stride = s.group * s.c_out;
  gemm.alpha = 1.0F;
  gemm.precision = product_precision(run.kernels(), s.window.out_count(), gemm.n, gemm.k);
  const Activation* const function =
      args.activation.set_in_gemm(&gemm) ? nullptr : &args.activation;
  GemmB all;
  all.dtype = args.weights->dtype();
  all.data = args.weights->raw();
  all.row_stride = 1;
  all.col_stride = gemm.k;
  for (int64_t g = 0; g < s.group; ++g) {
    const int64_t channel = g * s.c_out;
    gemm.a = args.x + g * s.c_in;
    gemm.c = args.y + channel;
    gemm.col_scale = args.scale ? args.scale + channel : nullptr;
    gemm.col_bias = args.bias ? args.bias + channel : nullptr;
    gemm.addend = args.z ? args.z + channel : nullptr;
    GemmB b = all.from_column(channel, gemm.k);
    if (args.packed_halves)
      b.packed_halves = args.packed_halves + 2 * g * panel_columns(s.c_out) * gemm.k;
    FOLIO_RETURN_IF_ERROR(gemm_halves(run, gemm, b, function));
  }
  return Status::ok();
}

template <typename Work>
Status run_chunks(OpRun& run, const Work& work, int64_t chunks, int64_t grain) {
  FOLIO_TRY(uint8_t * zeros, run.scratch(work.zero_bytes()));
  std::memset(zeros, 0, work.zero_bytes());
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, work.scratch_bytes(), &scratch));
  run.parallel().for_range(chunks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      work.compute(chunk, block.data(), reinterpret_cast<const float*>(zeros));
    }
  });
  return Status::ok();
}

}  // namespace

Result<NhwcConvForm> parse_nhwc_conv(const Attributes& attrs) {
  NhwcConvForm form;
  FOLIO_TRY(form.attrs, parse_conv(attrs));
  FOLIO_TRY(const std::vector<float> parameters, attrs.get_floats("activation_params"));
  FOLIO_TRY(form.activation, parse_fused_activation(attrs, parameters));
  FOLIO_TRY(const int64_t planes, attrs.get_int(kPlanesAttribute, 0));
  form.is_planes = planes != 0;
  form.has_half_w = has_half_weights(attrs);
  return form;
}

Status request_nhwc_conv(OpBuild& build, int w_input, const NhwcConvForm& form) {
  const Initializer* w = build.initializer(w_input);
  if (!w || !fits_nhwc_conv(w->shape.dims(), form.attrs.group)) return Status::ok();
  const bool is_half_w =
      form.has_half_w && is_half(w->dtype) && !is_window_conv(w->shape.dims(), form.attrs.group);
  if (w->dtype != DType::kFloat && !is_half_w) return Status::ok();
  FOLIO_TRY(PackRequest request, nhwc_conv_request(build.kernels(), w->shape.dims(),
                                                   form.attrs.group, form.is_planes, w->dtype));
  request.replaces_source = true;  // run() reads W's shape alone then
  if (request.bytes > 0) build.request_pack(w_input, request);
  return Status::ok();
}

Result<ConvSizes> read_nhwc_conv(const OpRun& run, const NhwcConvForm& form, const Shape& x,
                                 int w_input, int b_input, int scale_input, NhwcConvArgs* args) {
  FOLIO_TRY(args->weights, weights_input(run, w_input, DType::kFloat, form.has_half_w));
  const Shape& w = args->weights->shape();
  const bool is_half_w = is_half(args->weights->dtype());
  if (is_half_w && is_window_conv(w.dims(), form.attrs.group)) {
    return not_implemented("W of ", dtype_name(args->weights->dtype()), " in small groups");
  }
  const Tensor* bias = nullptr;
  if (run.has_input(b_input)) {
    FOLIO_TRY(bias, run.tensor(b_input, DType::kFloat));
    args->bias = bias->data<float>();
  }
  const Shape image = form.is_planes ? x : channels_first(x);
  FOLIO_TRY(const ConvSizes sizes, conv_sizes(form.attrs, image, w, bias));
  if (form.is_planes && !fits_planes(w.dims(), form.attrs)) {
    return not_implemented("W ", w.to_string(), " with planes side by side");
  }
  args->is_planes = form.is_planes;
  if (scale_input >= 0 && run.has_input(scale_input)) {
    FOLIO_TRY(const Tensor* scale, run.tensor(scale_input, DType::kFloat));
    if (scale->count() != w[0] || is_window_conv(w.dims(), form.attrs.group)) {
      return invalid_argument("scale ", scale->shape().to_string(), " does not fit W ",
                              w.to_string());
    }
    args->scale = scale->data<float>();
  }
  if (const PackedBlob* packed = run.packed(w_input)) {
    if (is_half_w && !form.is_winograd) {
      args->packed_halves = packed->data();
    } else {
      args->packed = reinterpret_cast<const float*>(packed->data());
    }
  }
  args->activation = form.activation;
  return sizes;
}

Status run_nhwc_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& given) {
  NhwcConvArgs args = given;
  const bool is_window = is_window_conv(args.weights->shape().dims(), s.group);
  const int threads = run.parallel().thread_count();
  const bool widens = is_half(args.weights->dtype());
  if (!args.packed && !widens &&
      (is_window || NhwcProduct(s, run.kernels(), args, threads).blocks() < kEnoughBlocks)) {
    FOLIO_RETURN_IF_ERROR(pack_now(run, s, &args));
  }
  if (is_window) return run_window_rows(run, s, args);
  if (takes_dots(s, args)) FOLIO_RETURN_IF_ERROR(turn_filters(run, s, &args));
  const NhwcProduct product(s, run.kernels(), args, threads);
  if (widens && !product.reads_halves() && is_pointwise(s.window) && !args.is_planes) {
    return run_pointwise_halves(run, s, args);
  }
  return run_chunks(run, product, product.chunks(), product.grain());
}

Attributes attributes_of_first(const Attributes& pair) {
  Attributes first;
  for (const AttributeDef& attribute : pair.all()) {
    if (attribute.name.rfind(kFirst, 0) != 0) continue;
    AttributeDef copy = attribute;
    copy.name.erase(0, kFirst.size());
    first.set(std::move(copy));
  }
  return first;
}

void set_attributes_of_first(const Attributes& first, Attributes* pair) {
  for (AttributeDef copy : first.all()) {
    copy.name.insert(0, kFirst);
    pair->set(std::move(copy));
  }
}

Status run_nhwc_conv_pair(OpRun& run, const ConvSizes& first, const NhwcConvArgs& first_given,
                          const ConvSizes& second, const NhwcConvArgs& second_given) {
  NhwcConvArgs first_args = first_given;
  NhwcConvArgs second_args = second_given;
  const uint64_t between = static_cast<uint64_t>(first.out.count());
  if (between / std::max<uint64_t>(1, static_cast<uint64_t>(first.batch)) < kFewestPairFloats) {
    FOLIO_TRY(uint8_t * bytes, run.scratch(between * kFloat));
    first_args.y = reinterpret_cast<float*>(bytes);
    second_args.x = first_args.y;
    FOLIO_RETURN_IF_ERROR(run_nhwc_conv(run, first, first_args));
    return run_nhwc_conv(run, second, second_args);
  }
  if (!first_args.packed) FOLIO_RETURN_IF_ERROR(pack_now(run, first, &first_args));
  if (takes_dots(first, first_args)) FOLIO_RETURN_IF_ERROR(turn_filters(run, first, &first_args));
  if (!second_args.packed) FOLIO_RETURN_IF_ERROR(pack_now(run, second, &second_args));
  const ConvPair pair(run, first, first_args, second, second_args);
  return run_chunks(run, pair, pair.strips(), 1);
}

}  // namespace folio
