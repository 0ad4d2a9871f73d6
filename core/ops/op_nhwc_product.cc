#include "core/ops/op_nhwc_product.h"

#include "core/base/checked_math.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_gemm_half.h"
#include "core/ops/op_half_panels.h"
#include "core/ops/op_move.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr size_t kFloat = sizeof(float);
constexpr int64_t kRowStep = 14;   // rows of the widest kernel's tile
constexpr int64_t kTileRows = 98;  // half of 14 x 14: images of 7 times 2^i are cut evenly
constexpr int64_t kLeastTileRows = 2 * kRowStep;  // of small work that threads share
constexpr int64_t kMostEven = 8;      // of more tiles a thread, one more or less is nothing
constexpr int64_t kDilatedRows = 42;  // more such tiles see no more than some lines of the window
constexpr int64_t kMostPieces = 320 * 1024;  // pointers, or floats of border pieces, of one tile
constexpr int64_t kFewChannels = 32;         // below that, a row of the window is one piece
constexpr int64_t kLeastLineTaps = 4;        // of a piece in parts
constexpr int64_t kMostLineTaps = 8;
constexpr int64_t kLongLine = 32;            // pixels, for parts
constexpr int64_t kLinePixels = 504;         // of a tile, where it is (a part of) a line
constexpr int64_t kMostLines = 8;            // of planes that are copied at once
constexpr int64_t kCopiedFloats = 8 * 1024;  // of them: they stay near
constexpr int64_t kChunkMacs = 1 << 20;
constexpr int64_t kSharedMacs = 4 * kChunkMacs;
// Weights that are packed while they are used: floats that stay in L2, and fewer columns than that
// only if there are no more.
constexpr int64_t kFreshFloats = 160 * 1024;
constexpr int64_t kFreshColumns = 2 * kPanel;
// Weights of 16 bits: floats that are widened at once, in L2 beside the bytes that come next; and
// how many chunks a thread should have, if there are more tiles of pixels than one.
constexpr int64_t kWideFloats = 64 * 1024;
constexpr int64_t kWideChunks = 2;
// Few filters: vectors of neighbours in the lanes of the widest kernel, and what adding those lanes
// takes, in multiply-adds.
constexpr int64_t kDotLanes = 16;
constexpr int64_t kDotEnd = 5;
// An edge of a line, a tile of its own: cycles apart from its products, those of a term of two
// panels; to copy a line with its border: cycles, and floats a cycle.
constexpr int64_t kEdgeCycles = 200;
constexpr int64_t kEdgeTerm = 4;
constexpr int64_t kCopyCycles = 50;
constexpr int64_t kCopyFloats = 8;

// Whether the taps of one row of the window are neighbours in x for all pixels of a line.
bool has_lines(const ConvSizes& s, const NhwcConvArgs& args) {
  return args.is_planes || (!is_pointwise(s.window) && s.group == 1 && s.window.dilation[2] == 1);
}

// Whether the taps of a line stand apart, each with a line of pixels of its own.
bool has_tap_lines(const ConvSizes& s, const NhwcConvArgs& args) {
  const Window& w = s.window;
  return !args.is_planes && !args.turned && s.group == 1 && w.dilation[2] > 1 && w.kernel[2] > 1 &&
         w.kernel[0] == 1 && w.kernel[1] == 1;
}

// Floats of a piece.
int64_t piece_floats(const ConvSizes& s, const NhwcConvArgs& args, bool by_lines) {
  return (args.is_planes ? 1 : s.c_in) * (by_lines ? s.window.kernel[2] : 1);
}

// Whether lines are made into parts as they stand, and few enough that it pays. A line of 112
// pixels of 7 x 7 taps, 3 planes, 64 filters: 6 us of one part, 12 of two, 15 of three, a
// chain 12.5 (of two the whole convolution takes 1.37 ms, 1.7 as chains).
bool takes_line_parts(const ConvSizes& s, const FolioKernels& kernels, int64_t run) {
  return folio_multiplies_parts(&kernels, kFolioHigh) != 0 && kernels.precision != kFolioHighest &&
         run >= kLeastLineTaps && run <= kMostLineTaps && s.k() <= FOLIO_GEMM_ONE_SUM &&
         s.window.out[2] >= kLongLine;
}

// Of a pixel, in multiply-adds: all filters as sums of neighbours in its pieces.
int64_t dots_work(const ConvSizes& s, const NhwcConvArgs& args) {
  const int64_t run = std::max<int64_t>(1, piece_floats(s, args, has_lines(s, args)));
  const int64_t vectors = s.k() / run * ((run + kDotLanes - 1) / kDotLanes);
  return s.c_out * (vectors + kDotEnd) * kDotLanes;
}

}  // namespace

bool takes_dots(const ConvSizes& s, const NhwcConvArgs& args) {
  return s.group == 1 && args.x_step == 0 && s.c_out <= FOLIO_MOST_DOTS &&
         !is_half(args.weights->dtype()) && dots_work(s, args) < s.k() * kPanel * 4 / 5;
}

NhwcProduct::NhwcProduct(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args,
                         int threads)
    : s_(s), kernels_(kernels), args_(args), threads_(threads) {
  const Window& w = s.window;
  const bool has_few = s.c_in < kFewChannels;
  const bool by_rows = has_lines(s, args) && (args.is_planes || args.turned || has_few);
  by_lines_ = by_rows || (has_tap_lines(s, args) && has_few &&
                          folio_multiplies_parts(&kernels, kFolioHighest) == 0);
  in_place_ = !by_lines_ && is_pointwise(w);
  unit_ = args.is_planes ? 1 : s.c_in;
  pixel_ = args.is_planes ? 1 : args.x_pixel(s);
  taps_ = by_rows ? w.kernel[2] : 1;
  run_ = piece_floats(s, args, by_rows);
  pieces_ = s.k() / std::max<int64_t>(run_, 1);
  rows_ = s.batch * w.out_count();
  // Other short pieces are gathered for parts, which takes longer than their products.
  const bool is_gathered = by_lines_ && pieces_ > 1 && run_ < kFewChannels;
  precision_ = is_gathered && !takes_line_parts(s, kernels, run_)
                   ? kFolioChain
                   : product_precision(kernels, w.out_count(), s.c_out, s.k(), Operands::kFloats,
                                       !in_place_);
  as_bfloat16_ = args.packed_halves && reads_panels(kernels, precision_, args.weights->dtype());
  is_packed_ = args.packed || as_bfloat16_;
  const int64_t work =
      std::max<int64_t>(1, args.turned ? dots_work(s, args) : s.k() * panel_columns(s.c_out));
  const double macs = static_cast<double>(rows_) * static_cast<double>(work * s.group);
  // Lines are cut by filters only; other large work is in chunks enough.
  const bool is_shared = by_lines_ || macs < kSharedMacs;
  const int64_t shares = is_shared ? thread_parts(macs / kThreadMacs, threads) : 1;
  make_tiles(shares, work);
  skips_lines_ = !by_lines_ && !in_place_ && !args.turned && w.kernel[0] == 1 &&
                 w.dilation[1] > 1 && !folio_multiplies_parts(&kernels, precision_);
  find_inside();
  // Lines of some channels of an image are copied, with or without a border.
  cuts_lines_ = by_lines_ && args.x_step == 0 && (args.turned || are_edges_cheap());
  if (by_lines_ && is_packed_) {
    const int64_t least = std::max<int64_t>(1, kChunkMacs / (work * tiling_.tile));
    grain_ = std::clamp<int64_t>(tiling_.tiles * tiling_.blocks / shares, 1, least);
  }
  if (!is_packed_) make_blocks();
}

void NhwcProduct::make_tiles(int64_t shares, int64_t work) {
  const ConvSizes& s = s_;
  const Window& w = s.window;
  if (by_lines_) {
    parts_ = std::max<int64_t>(1, (w.out[2] + kLinePixels - 1) / kLinePixels);
    lines_ = lines_together(shares, work);
    if (copies_lines()) {
      tiling_.tile = lines_ * w.out[2];
      tiling_.tiles = s.batch * line_tiles();
    } else {
      tiling_.tile = (w.out[2] + parts_ - 1) / parts_;
      tiling_.tiles = w.out[2] > 0 ? rows_ / w.out[2] * parts_ : 0;
    }
    // Long filters over few pixels (spectrograms): threads share the filters.
    const int64_t blocks = (shares + tiling_.tiles - 1) / std::max<int64_t>(1, tiling_.tiles);
    tiling_.columns =
        args_.turned || blocks <= 1 ? s.c_out : panel_columns((s.c_out + blocks - 1) / blocks);
    tiling_.blocks = (s.c_out + tiling_.columns - 1) / tiling_.columns;
  } else if (folio_multiplies_parts(&kernels_, precision_)) {
    const ProductChunk chunk = parts_chunk(rows_, s.c_out, s.k(), threads_);
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
    const int64_t tiles = (rows_ + most * blocks - 1) / (most * blocks);
    if (shares == 1 || tiles > kMostEven * threads_) {
      tiling_ = make_tiling(rows_, most * blocks, kRowStep, s.group, s.c_out);
      return;
    }
    // As much for one thread as for another, and the same part of each image.
    const int64_t even_tiles = (tiles + threads_ - 1) / threads_ * threads_;
    tiling_ = make_tiling(rows_, (rows_ + even_tiles - 1) / even_tiles, 1, s.group, s.c_out);
  }
}

int64_t NhwcProduct::lines_together(int64_t shares, int64_t work) const {
  const Window& w = s_.window;
  constexpr int64_t kFar = 4 * kCopiedFloats;  // no product below is near the end of int64
  if (!args_.is_planes || args_.turned || parts_ > 1 || rows_ == 0 || w.kernel[0] > 1 ||
      w.in[0] > 1 || gemm_bytes() > 0 || line_floats(w.out[2]) > kFar || w.kernel[1] > kFar ||
      w.dilation[1] > kFar || w.stride[1] > kFar || w.pad_begin[1] > kFar) {
    return 0;
  }
  const auto copied = [&](int64_t lines) {
    return seen_rows(lines) * s_.c_in * line_floats(w.out[2]);
  };
  int64_t most =
      std::min({kMostLines, w.out[1], std::max<int64_t>(1, kChunkMacs / (work * w.out[2]))});
  if (shares > 1) most = std::min(most, std::max<int64_t>(1, s_.batch * w.out[1] / (4 * shares)));
  while (most > 1 && copied(most) > kCopiedFloats) --most;
  if (copied(most) > kFar) return 0;
  const int64_t blocks = (w.out[1] + most - 1) / most;
  return (w.out[1] + blocks - 1) / blocks;
}

int64_t NhwcProduct::seen_rows(int64_t lines) const {
  const Window& w = s_.window;
  return (lines - 1) * w.stride[1] + (w.kernel[1] - 1) * w.dilation[1] + 1;
}

void NhwcProduct::make_blocks() {
  const ConvSizes& s = s_;
  const bool widens = is_half(args_.weights->dtype());
  const bool is_split = folio_multiplies_parts(&kernels_, precision_) != 0;
  const int64_t panels =
      (widens && !is_split ? kWideFloats : kFreshFloats) / std::max<int64_t>(s.k(), 1) / kPanel;
  tiling_.columns = std::min(s.c_out, std::max(panels * kPanel, kFreshColumns));
  tiling_.blocks = (s.c_out + tiling_.columns - 1) / tiling_.columns;
  if (!widens || threads_ == 1) return;
  const int64_t wanted = (kWideChunks * threads_ + blocks() - 1) / blocks();
  row_parts_ = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, tiling_.tiles));
}

size_t NhwcProduct::zero_bytes() const {
  if (copies_lines()) return 0;
  return static_cast<size_t>(by_lines_ ? line_floats(tiling_.tile) : run_) * kFloat;
}

size_t NhwcProduct::panel_bytes() const {
  return is_packed_ ? 0 : static_cast<size_t>(panel_columns(tiling_.columns) * s_.k()) * kFloat;
}

size_t NhwcProduct::gemm_bytes() const {
  return folio_multiplies_parts(&kernels_, precision_) ? FOLIO_GEMM_SCRATCH : 0;
}

size_t NhwcProduct::scratch_bytes() const { return panel_bytes() + apart_at() + apart_bytes(); }

size_t NhwcProduct::apart_at() const {
  return pointer_bytes() + align_up(border_bytes(), 64) + gemm_bytes();
}

size_t NhwcProduct::apart_bytes() const {
  FolioGemmF32 probe{};
  if (args_.y_step == 0 || args_.activation.set_in_kernel(&probe)) return 0;
  return static_cast<size_t>(tiling_.tile * tiling_.columns) * kFloat;
}

size_t NhwcProduct::pointer_bytes() const {
  if (in_place_) return 0;
  const int64_t each = by_lines_ ? 1 : tiling_.tile;
  return align_up(static_cast<size_t>(each * pieces_) * sizeof(float*), 64);
}

size_t NhwcProduct::border_bytes() const {
  if (copies_lines()) {
    return static_cast<size_t>(seen_rows(lines_) * s_.c_in * line_floats(s_.window.out[2])) *
           kFloat;
  }
  return by_lines_
             ? align_up(static_cast<size_t>(line_floats(border_pixels()) * pieces_) * kFloat, 64)
             : 0;
}

void NhwcProduct::compute(int64_t chunk, uint8_t* scratch, const float* zeros) const {
  const int64_t group = chunk / tiling_.blocks % s_.group;
  const int64_t first = chunk % tiling_.blocks * tiling_.columns;
  if (is_packed_) {
    multiply(whole_tile(chunk / blocks()), group, first, packed_at(group, first), scratch, zeros);
    return;
  }
  auto* panels = reinterpret_cast<float*>(scratch);
  fill(group, first, panels);
  const int64_t part = chunk / blocks();
  const int64_t begin = tiling_.tiles * part / row_parts_;
  const int64_t end = tiling_.tiles * (part + 1) / row_parts_;
  Ahead ahead = bytes_of(chunk + threads_);  // others have the chunks between
  for (int64_t tile = begin; tile < end; ++tile) {
    multiply(whole_tile(tile), group, first, panels, scratch + panel_bytes(), zeros, ahead);
    ahead = {};
  }
}

void NhwcProduct::compute_rows(int64_t begin, int64_t end, const float* x, float* y,
                               uint8_t* scratch, const float* zeros) const {
  for (int64_t row = begin; row < end;) {
    const float* const from = x ? x + (row - begin) * s_.c_in : x_at(row);
    const Tile tile = tile_at(row, end, from, y + (row - begin) * args_.y_pixel(s_));
    for (int64_t first = 0; first < s_.c_out; first += tiling_.columns) {
      multiply(tile, 0, first, packed_at(0, first), scratch, zeros);
    }
    row += tile.count;
  }
}

const uint8_t* NhwcProduct::halves_at(int64_t group, int64_t first) const {
  const int64_t rows = panel_rows(args_.weights->dtype(), s_.k());
  return args_.packed_halves + 2 * (group * panel_columns(s_.c_out) + first) * rows;
}

void NhwcProduct::fill(int64_t group, int64_t first, float* panels) const {
  const int64_t columns = std::min(tiling_.columns, s_.c_out - first);
  if (args_.packed_halves) {
    widen_panels(kernels_, args_.weights->dtype(), s_.k(), columns, halves_at(group, first),
                 panels);
    return;
  }
  fill_conv_panels(kernels_, args_.is_planes ? 1 : s_.window.kernel_count(), s_.k(),
                   group * s_.c_out + first, columns, *args_.weights, panels);
}

NhwcProduct::Ahead NhwcProduct::bytes_of(int64_t chunk) const {
  if (!args_.packed_halves || chunk >= chunks()) return {};
  const int64_t first = chunk % tiling_.blocks * tiling_.columns;
  const int64_t columns = panel_columns(std::min(tiling_.columns, s_.c_out - first));
  return {halves_at(chunk / tiling_.blocks % s_.group, first),
          2 * columns * panel_rows(args_.weights->dtype(), s_.k())};
}

int64_t NhwcProduct::first_row(int64_t tile) const {
  const Window& w = s_.window;
  if (!by_lines_) return tile * tiling_.tile;
  if (copies_lines()) {
    return (tile / line_tiles() * w.out[1] + tile % line_tiles() * lines_) * w.out[2];
  }
  return tile / parts_ * w.out[2] + tile % parts_ * tiling_.tile;
}

const float* NhwcProduct::x_at(int64_t row) const {
  return in_place_ ? args_.x + row * args_.x_pixel(s_) : nullptr;
}

NhwcProduct::Tile NhwcProduct::whole_tile(int64_t tile) const {
  const int64_t row = first_row(tile);
  return tile_at(row, rows_, x_at(row), args_.y + row * args_.y_pixel(s_));
}

NhwcProduct::Tile NhwcProduct::tile_at(int64_t row, int64_t end, const float* x, float* y) const {
  const int64_t whole = copies_lines() ? s_.window.out_count() : s_.window.out[2];
  if (by_lines_) end = std::min(end, (row / whole + 1) * whole);
  return {row, std::min(tiling_.tile, end - row), x, y};
}

const float* NhwcProduct::packed_at(int64_t group, int64_t first) const {
  if (as_bfloat16_) return reinterpret_cast<const float*>(halves_at(group, first));
  return args_.packed + (group * panel_columns(s_.c_out) + first) * s_.k();
}

void NhwcProduct::find_inside() {
  const Window& w = s_.window;
  const int64_t room = w.in[2] + w.pad_begin[2] - span(w, 2);
  inside_begin_ = std::min((w.pad_begin[2] + w.stride[2] - 1) / w.stride[2], w.out[2]);
  inside_end_ = std::clamp(room < 0 ? 0 : room / w.stride[2] + 1, inside_begin_, w.out[2]);
}

bool NhwcProduct::are_edges_cheap() const {
  if (parts_ > 1 || folio_multiplies_parts(&kernels_, precision_)) return false;
  const Window& w = s_.window;
  const int64_t edges = (inside_begin_ > 0 ? 1 : 0) + (inside_end_ < w.out[2] ? 1 : 0);
  const int64_t pairs = (s_.c_out + 2 * kPanel - 1) / (2 * kPanel);
  const int64_t copied = kCopyCycles + line_floats(tiling_.tile) / kCopyFloats;
  return edges * (kEdgeCycles + kEdgeTerm * s_.k() * pairs) < pieces_ * copied;
}

int64_t NhwcProduct::border_pixels() const {
  if (!cuts_lines_) return tiling_.tile;
  return std::min(tiling_.tile, std::max(inside_begin_, s_.window.out[2] - inside_end_));
}

int64_t NhwcProduct::together(int64_t row, int64_t left) const {
  if (!cuts_lines_) return left;
  const int64_t at = row % s_.window.out[2];
  const int64_t end = at < inside_begin_ ? inside_begin_
                      : at < inside_end_ ? inside_end_
                                         : at + left;
  return std::min(left, end - at);
}

void NhwcProduct::multiply(const Tile& tile, int64_t group, int64_t first, const float* b,
                           uint8_t* scratch, const float* zeros, const Ahead& ahead) const {
  if (copies_lines()) return multiply_copied(tile, first, b, scratch);
  for (int64_t done = 0; done < tile.count;) {
    const int64_t row = tile.row + done;
    const int64_t count = together(row, tile.count - done);
    const float* const x = in_place_ ? tile.x + done * args_.x_pixel(s_) : nullptr;
    multiply_part({row, count, x, tile.y + done * args_.y_pixel(s_)}, group, first, b, scratch,
                  zeros, ahead);
    done += count;
  }
}

void NhwcProduct::multiply_copied(const Tile& tile, int64_t first, const float* b,
                                  uint8_t* scratch) const {
  const Window& w = s_.window;
  const int64_t lines = tile.count / w.out[2];
  const int64_t rows = seen_rows(lines);
  const int64_t floats = line_floats(w.out[2]);
  auto* const copied = reinterpret_cast<float*>(scratch + pointer_bytes());
  copy_rows(tile.row, rows, copied);
  const auto** const pointers = reinterpret_cast<const float**>(scratch);
  FolioGemmF32 gemm{};
  gemm.a_run = run_;
  gemm.a_lines = pointers;
  gemm.a_row_stride = w.stride[2];
  for (int64_t line = 0; line < lines; ++line) {
    const float** to = pointers;
    for (int64_t plane = 0; plane < s_.c_in; ++plane) {
      for (int64_t r = 0; r < w.kernel[1]; ++r) {
        *to++ = copied + (plane * rows + line * w.stride[1] + r * w.dilation[1]) * floats;
      }
    }
    const int64_t done = line * w.out[2];
    multiply_rows(gemm, {tile.row + done, w.out[2], nullptr, tile.y + done * args_.y_pixel(s_)}, 0,
                  first, b, scratch, {});
  }
}

void NhwcProduct::copy_rows(int64_t row, int64_t rows, float* to) const {
  const Window& w = s_.window;
  const int64_t floats = line_floats(w.out[2]);
  const int64_t first = row / w.out[2] % w.out[1] * w.stride[1] - w.pad_begin[1];
  const int64_t before = std::min(w.pad_begin[2], floats);
  const int64_t count = std::min(floats - before, w.in[2]);
  const float* x = args_.x + row / w.out_count() * w.in_count() * s_.c_in;
  for (int64_t plane = 0; plane < s_.c_in; ++plane, x += w.in_count()) {
    for (int64_t r = first; r < first + rows; ++r, to += floats) {
      if (r < 0 || r >= w.in[1]) {
        std::fill_n(to, floats, 0.0F);
        continue;
      }
      std::fill_n(to, before, 0.0F);
      std::copy_n(x + r * w.in[2], count, to + before);
      std::fill_n(to + before + count, floats - before - count, 0.0F);
    }
  }
}

void NhwcProduct::multiply_part(const Tile& tile, int64_t group, int64_t first, const float* b,
                                uint8_t* scratch, const float* zeros, const Ahead& ahead) const {
  FolioGemmF32 gemm{};
  if (in_place_) {
    gemm.a = tile.x + group * s_.c_in;
    gemm.a_row_stride = args_.x_pixel(s_);
    gemm.a_col_stride = 1;
  } else {
    const auto** pointers = reinterpret_cast<const float**>(scratch);
    gemm.a_run = run_;
    if (by_lines_) {
      point_lines(tile, zeros, pointers, reinterpret_cast<float*>(scratch + pointer_bytes()));
      gemm.a_lines = pointers;
      gemm.a_row_stride = s_.window.stride[2] * unit_;
    } else {
      point(tile.row, tile.count, group * s_.c_in, zeros, pointers);
      gemm.a_rows = pointers;
    }
  }
  multiply_rows(gemm, tile, group, first, b, scratch, ahead);
}

void NhwcProduct::multiply_rows(FolioGemmF32& gemm, const Tile& tile, int64_t group, int64_t first,
                                const float* b, uint8_t* scratch, const Ahead& ahead) const {
  gemm.m = tile.count;
  gemm.n = std::min(tiling_.columns, s_.c_out - first);
  gemm.k = s_.k();
  gemm.b = b;
  gemm.b_is_bfloat16 = as_bfloat16_ ? 1 : 0;
  const int64_t channel = group * s_.c_out + first;
  gemm.c_row_stride = args_.y_pixel(s_);
  gemm.c = tile.y + channel;
  gemm.col_scale = args_.scale ? args_.scale + channel : nullptr;
  gemm.col_bias = args_.bias ? args_.bias + channel : nullptr;
  gemm.addend_row_stride = args_.z_pixel(s_);
  gemm.addend = args_.z ? args_.z + tile.row * gemm.addend_row_stride + channel : nullptr;
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
  const bool finished = args_.activation.set_in_kernel(&gemm);
  float* const y = gemm.c;
  if (!finished && args_.y_step > 0) {
    gemm.c = reinterpret_cast<float*>(scratch + apart_at());
    gemm.c_row_stride = gemm.n;
  }
  if (args_.turned) gemm.b = args_.turned;
  const KernelLines seen = skips_lines_ ? seen_lines(tile.row, gemm.m) : KernelLines{};
  if (seen.count > 0) {
    multiply_lines(gemm, seen);
  } else {
    (args_.turned ? kernels_.dots_f32 : kernels_.gemm_f32)(&gemm);
  }
  if (!finished) {
    args_.activation.apply_rows(kernels_, gemm.m, gemm.n, gemm.c, gemm.c_row_stride);
  }
  const int64_t y_step = args_.y_pixel(s_);
  if (gemm.c != y) move_runs(y, y_step, gemm.c, gemm.n, gemm.n, gemm.m);
  if (!args_.behind) return;
  const int64_t z_step = args_.z_pixel(s_);
  add_pixels(kernels_, gemm.m, gemm.n, args_.behind + tile.row * z_step + channel, z_step, y,
             y_step);
}

NhwcProduct::KernelLines NhwcProduct::seen_lines(int64_t row, int64_t count) const {
  const Window& w = s_.window;
  const int64_t begin = row / w.out[2];
  const int64_t end = (row + count - 1) / w.out[2];
  if (begin / w.out[1] != end / w.out[1]) return {};
  const int64_t above = taps_inside(w, 1, end % w.out[1]).from;
  const int64_t below = taps_inside(w, 1, begin % w.out[1]).to;
  return below - above == w.kernel[1] || below <= above ? KernelLines{}
                                                        : KernelLines{above, below - above};
}

void NhwcProduct::multiply_lines(const FolioGemmF32& whole, const KernelLines& lines) const {
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

template <typename Body>
void NhwcProduct::for_each_line(int64_t at, const Body& body) const {
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

void NhwcProduct::point(int64_t row, int64_t count, int64_t first_channel, const float* zeros,
                        const float** pointers) const {
  const Window& w = s_.window;
  const int64_t step = args_.x_pixel(s_);
  for (int64_t done = 0; done < count;) {
    const int64_t at = row + done;
    const int64_t v = at % w.out[2];
    const int64_t pixels = std::min(w.out[2] - v, count - done);
    const float* x = args_.x + at / w.out_count() * w.in_count() * step + first_channel;
    const float** to = pointers + done;
    for_each_line(at, [&](int64_t line) {
      const float* from = line < 0 ? nullptr : x + line * w.in[2] * step;
      to = point_taps(from, v * w.stride[2] - w.pad_begin[2], pixels, count, zeros, to);
    });
    done += pixels;
  }
}

const float** NhwcProduct::point_taps(const float* line, int64_t column, int64_t pixels,
                                      int64_t count, const float* zeros, const float** to) const {
  const Window& w = s_.window;
  const int64_t step = args_.x_pixel(s_);
  for (int64_t kw = 0; kw < w.kernel[2]; ++kw, to += count) {
    int64_t at = column + kw * w.dilation[2];
    for (int64_t i = 0; i < pixels; ++i, at += w.stride[2]) {
      to[i] = line && at >= 0 && at < w.in[2] ? line + at * step : zeros;
    }
  }
  return to;
}

void NhwcProduct::point_lines(const Tile& tile, const float* zeros, const float** pointers,
                              float* border) const {
  const Window& w = s_.window;
  const float* x = args_.x + tile.row / w.out_count() * w.in_count() * args_.x_pixel(s_);
  const int64_t first = tile.row % w.out[2] * w.stride[2] - w.pad_begin[2];
  const int64_t floats = line_floats(tile.count);
  for (int64_t plane = 0; plane < s_.c_in / unit_; ++plane, x += w.in_count()) {
    for_each_line(tile.row, [&](int64_t line) {
      for (int64_t tap = 0; tap < w.kernel[2]; tap += taps_) {
        const float* from = line < 0 ? nullptr : x + line * w.in[2] * pixel_;
        *pointers = point_line(from, first + tap * w.dilation[2], floats, zeros, border);
        if (*pointers++ == border) border += floats;
      }
    });
  }
}

const float* NhwcProduct::point_line(const float* line, int64_t first, int64_t floats,
                                     const float* zeros, float* border) const {
  const int64_t width = s_.window.in[2];
  const int64_t end = first + floats / unit_;
  const int64_t from = std::clamp<int64_t>(first, 0, width);
  const int64_t to = std::clamp<int64_t>(end, from, width);
  if (!line || from == to) return zeros;
  if (pixel_ == unit_ && from == first && to == end) return line + from * unit_;
  const int64_t before = (from - first) * unit_;
  const int64_t count = (to - from) * unit_;
  std::fill_n(border, before, 0.0F);
  move_runs(border + before, unit_, line + from * pixel_, pixel_, unit_, to - from);
  std::fill_n(border + before + count, floats - before - count, 0.0F);
  return border;
}

int64_t NhwcProduct::line_floats(int64_t pixels) const {
  const Window& w = s_.window;
  return std::max<int64_t>(0, (pixels - 1) * w.stride[2] + taps_) * unit_;
}

}  // namespace folio
