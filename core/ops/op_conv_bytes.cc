#include "core/ops/op_conv_bytes.h"

#include "core/ops/op_conv_byte_weights.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_quantized.h"
#include "core/ops/op_scratch.h"
#include "core/ops/op_winograd_bytes.h"

namespace folio {
namespace {

constexpr int64_t kPanel = 16;
constexpr int64_t kRowStep = 12;                  // rows of the widest kernel's tile
constexpr int64_t kSideBySide = 4 * kPanel;       // columns of the widest kernel's tile
constexpr int64_t kTileRows = 384;                // pixels of a tile at most
constexpr int64_t kWholeRows = 96;                // whole tiles of 12 and of 32 rows
constexpr int64_t kTileBytes = 28 * 1024;         // gathered, to stay in L1
constexpr int64_t kOwnPixels = 84;                // of a thread, that repay to read all weights
constexpr int64_t kMostEven = 8;                  // of more tiles a thread, one is nothing
constexpr int64_t kShortRun = 32;                 // bytes that are copied at once
constexpr int64_t kLinePixels = 128;              // of a line of the depthwise kernel
constexpr int64_t kLinesWork = 32 * 1024;         // outputs of one of its calls, about
constexpr int64_t kLinesPixels = 512;             // and pixels at most
constexpr int64_t kSharedMacs = 4 * kThreadMacs;  // of bytes, that repay to wake a thread

// How the kernel finds the bytes under the taps of a pixel.
enum class Rows {
  kInPlace,  // a pixel after the other
  kPieces,   // by a pointer for each tap
  kGathered  // copied: taps of few channels or of no whole groups of four
};

Rows rows_of(const ConvSizes& s) {
  if (is_pointwise(s.window) && s.group == 1) return Rows::kInPlace;
  return fits_pieces(s.c_in) ? Rows::kPieces : Rows::kGathered;
}

// Threads have the same part of the pixels of each image, where that is large: what they read is
// what they wrote. Else tiles that all fit one call are cut for them to share, as far as that
// repays: between columns that the kernel does not multiply side by side, which costs nothing but
// for copied pixels; what is left between pixels, where a tile's rows are rounded up.
ConvTiling make_plan(const ConvSizes& s, int threads) {
  const int64_t fitting = kTileBytes / std::max<int64_t>(s.k(), 1);
  const int64_t step = fitting < kWholeRows ? kRowStep : kWholeRows;
  const int64_t gathered = std::clamp(fitting / step * step, 4 * kRowStep, kTileRows);
  const int64_t most = rows_of(s) == Rows::kGathered ? gathered : kTileRows;
  const int64_t pixels = s.window.out_count();
  const int64_t repeats = s.batch * s.group;
  ConvTiling plan = make_tiling(pixels, most, kRowStep, repeats, s.c_out);
  const double macs = static_cast<double>(repeats * pixels) * static_cast<double>(s.k() * s.c_out);
  const int64_t shares = thread_parts(macs / static_cast<double>(kSharedMacs), threads);
  const auto parts = [](int64_t all, int64_t each) { return (all + each - 1) / each; };
  const int64_t rows = repeats * plan.tiles;
  const int64_t own = std::min<int64_t>(threads, shares);
  const int64_t even = parts(plan.tiles, own) * own;
  if (own > 1 && repeats == 1 && rows_of(s) != Rows::kGathered && plan.tiles <= kMostEven * own &&
      pixels / even >= kOwnPixels) {
    plan.tile = parts(pixels, even);
    plan.tiles = parts(pixels, plan.tile);
    plan.columns = s.c_out;
    plan.blocks = 1;
    return plan;
  }
  if (rows * plan.blocks >= shares || rows * plan.blocks == 0) return plan;
  const int64_t blocks = rows_of(s) == Rows::kGathered ? 1 : parts(shares, rows);
  plan.columns = parts(parts(s.c_out, blocks), kSideBySide) * kSideBySide;
  plan.blocks = parts(s.c_out, plan.columns);
  if (rows * plan.blocks >= shares) return plan;
  const int64_t tiles = parts(shares, repeats * plan.blocks);
  plan.tile = parts(parts(pixels, tiles), kRowStep) * kRowStep;
  plan.tiles = parts(pixels, plan.tile);
  return plan;
}

// to[i] = from + i * step
void list_pixels(const uint8_t* from, int64_t step, int64_t count, const uint8_t** to) {
#pragma GCC unroll 4
  for (int64_t i = 0; i < count; ++i, from += step) to[i] = from;
}

class ByteConvolution {
 public:
  // `whole`: before groups were joined, of which the last one of `s` may have fewer.
  ByteConvolution(const ConvSizes& whole, const ConvSizes& s, const ByteConv& conv,
                  const FolioKernels& kernels, int threads)
      : s_(s),
        conv_(conv),
        kernels_(kernels),
        rows_(rows_of(s)),
        plan_(make_plan(s, threads)),
        image_channels_(whole.group * whole.c_in),
        channels_(whole.group * whole.c_out) {}

  const uint8_t* x = nullptr;  // [N, pixels, C] unsigned, or signed:
  bool flips = false;          // signs of a tile's pixels at a time; in place
  uint8_t x_zero = 0;
  ByteConvWeights weights;
  const uint8_t* border = nullptr;      // a pixel of zero points
  const int32_t* pixel_sums = nullptr;  // [N, pixels, groups] of x; with zero points and pieces

  int64_t channels() const { return channels_; }
  int64_t element() const { return conv_.sums.to == kFolioToByte ? 1 : 4; }

  // ------------------------------------------------------------ products

  int64_t chunks() const { return s_.batch * s_.group * plan_.tiles * plan_.blocks; }
  bool has_pieces() const { return rows_ == Rows::kPieces; }
  bool is_in_place() const { return rows_ == Rows::kInPlace; }
  size_t rows_bytes() const {
    const auto tile = static_cast<size_t>(plan_.tile);
    if (is_in_place()) return flips ? align_up(tile * static_cast<size_t>(s_.c_in), 64) : 0;
    const auto taps = static_cast<size_t>(s_.window.kernel_count());
    if (has_pieces()) return align_up(tile * taps * sizeof(void*), 64);
    return align_up(tile * static_cast<size_t>(row_bytes()) + kShortRun, 64);
  }
  size_t sums_bytes() const {
    return weights.zero ? align_up(static_cast<size_t>(plan_.tile) * 4, 64) : 0;
  }
  size_t result_bytes() const {
    return conv_.channels_last ? 0 : static_cast<size_t>(plan_.tile * plan_.columns * element());
  }
  size_t scratch_bytes() const { return rows_bytes() + sums_bytes() + result_bytes(); }

  void compute(int64_t chunk, uint8_t* scratch) const {
    const int64_t tile = chunk / plan_.blocks;
    const int64_t image = tile / plan_.tiles / s_.group;
    const int64_t group = tile / plan_.tiles % s_.group;
    const int64_t pixel = tile % plan_.tiles * plan_.tile;
    const int64_t column = chunk % plan_.blocks * plan_.columns;
    const int64_t pixels = s_.window.out_count();
    const int64_t channel = group * s_.c_out + column;
    FolioGemmU8 args{};
    const int64_t c = image_channels_;
    const int64_t c_in = std::min(s_.c_in, c - group * s_.c_in);
    args.m = std::min(plan_.tile, pixels - pixel);
    args.n = std::min({plan_.columns, s_.c_out - column, channels_ - channel});
    args.k = has_pieces() ? c_in * s_.window.kernel_count() : row_bytes();
    const uint8_t* from = x + image * s_.window.in_count() * c + group * s_.c_in;
    args.a_row_stride = args.k;
    args.a = scratch;
    if (flips) {
      flip_signs(args.m * c, from + pixel * c, scratch);
    } else if (is_in_place()) {
      args.a = from + pixel * c;
    } else if (has_pieces()) {
      auto* pieces = reinterpret_cast<const uint8_t**>(scratch);
      for_rows(pixel, args.m, [&](int64_t row, int64_t first, int64_t i, int64_t n) {
        list_line(from, row, first, n, args.m, pieces + i);
      });
      args.a_rows = pieces;
      args.a_run = c_in;
    } else {
      gather(from, pixel, args.m, scratch);
    }
    args.b = weights.panels + group * weights.group_stride + column / kPanel * panel_bytes(s_.k());
    const int64_t at = (image * pixels + pixel) * channels() + channel;
    args.sums = sums_at(channel);
    if (conv_.sums.add && conv_.channels_last) {
      args.sums.add = conv_.sums.add;
      args.sums.addend += at;
      args.sums.addend_row_stride = channels();
    }
    if (weights.zero) {
      auto* row_sums = reinterpret_cast<int32_t*>(scratch + rows_bytes());
      sum_rows(args, pixel, image * s_.window.in_count() * s_.group + group, row_sums);
      args.sums.row_sum = row_sums;
      args.sums.b_zero = weights.zero + channel;
    }
    uint8_t* result = scratch + rows_bytes() + sums_bytes();
    args.c = conv_.channels_last ? y_at(at) : result;
    args.c_row_stride = conv_.channels_last ? channels() : args.n;
    kernels_.gemm_u8(&args);
    if (conv_.channels_last) return;
    turn(args.m, args.n, result, y_at((image * channels() + channel) * pixels + pixel));
  }

  // ------------------------------------------------------------ one channel each

  int64_t segments() const { return (s_.window.out[2] + kLinePixels - 1) / kLinePixels; }
  int64_t line_pixels() const { return std::min(s_.window.out[2], kLinePixels); }
  // Lines of a plane that are computed together: as many each time.
  int64_t lines_together() const {
    const int64_t pixels = line_pixels();
    const int64_t most = std::min(kLinesWork / channels(), kLinesPixels) / pixels;
    if (segments() > 1 || most < 1) return 1;
    const int64_t calls = (s_.window.out[1] + most - 1) / most;
    return (s_.window.out[1] + calls - 1) / std::max<int64_t>(calls, 1);
  }
  int64_t line_chunks() const {
    const int64_t together = lines_together();
    const int64_t rows = (s_.window.out[1] + together - 1) / together;
    return s_.batch * s_.window.out[0] * rows * segments();
  }
  size_t taps_bytes() const {
    const int64_t taps = lines_together() * line_pixels() * s_.window.kernel_count();
    return static_cast<size_t>(taps) * sizeof(void*);
  }
  size_t line_bytes() const {
    const int64_t pixels = lines_together() * line_pixels();
    return taps_bytes() +
           (conv_.channels_last ? 0 : static_cast<size_t>(pixels * channels() * element()));
  }

  void compute_lines(int64_t chunk, uint8_t* scratch) const {
    const Window& w = s_.window;
    const int64_t together = lines_together();
    const int64_t column = chunk % segments() * kLinePixels;
    const int64_t rows = (w.out[1] + together - 1) / together;
    const int64_t plane = chunk / segments() / rows;  // over all images
    const int64_t image = plane / w.out[0];
    const int64_t row = chunk / segments() % rows * together;
    FolioDepthwiseU8 args{};
    args.lines = std::min(together, w.out[1] - row);
    args.pixels = std::min(kLinePixels, w.out[2] - column);
    args.channels = channels();
    const uint8_t* from = x + image * w.in_count() * channels();
    list_taps(from, plane % w.out[0], row, column, reinterpret_cast<const uint8_t**>(scratch),
              &args);
    args.b = weights.panels;
    args.sums = sums_at(0);
    args.y_row_stride = channels();
    uint8_t* result = scratch + taps_bytes();
    const int64_t at = (plane * w.out[1] + row) * w.out[2] + column;
    args.y = conv_.channels_last ? y_at(at * channels()) : result;
    kernels_.depthwise_u8(&args);
    if (conv_.channels_last) {
      add_bytes(at * channels(), args.lines * args.pixels * channels());
      return;
    }
    const int64_t pixel = (plane % w.out[0] * w.out[1] + row) * w.out[2] + column;
    turn(args.lines * args.pixels, channels(), result,
         y_at(image * channels() * w.out_count() + pixel));
  }

  // ------------------------------------------------------------ sums with other bytes

  // Elements [at, at + count) of y, if they are to be added to others.
  void add_bytes(int64_t at, int64_t count) const {
    const FolioByteAdd* add = conv_.sums.add;
    if (!add) return;
    auto* y = static_cast<uint8_t*>(y_at(at));
    const uint8_t* addend = conv_.sums.addend + at;
    kernels_.add_b8(count, add->addend_is_a ? addend : y, &add->a, add->addend_is_a ? y : addend,
                    &add->b, &add->to, y);
  }

 private:
  void* y_at(int64_t at) const { return static_cast<uint8_t*>(conv_.y) + at * element(); }

  FolioSums sums_at(int64_t channel) const {
    FolioSums sums = conv_.sums;
    if (weights.offset) sums.offset = weights.offset + channel;
    if (weights.column_sums) sums.column_sum = weights.column_sums + channel;
    sums.a_zero = x_zero;
    sums.add = nullptr;
    if (sums.scale) sums.scale += channel;
    if (sums.bias) sums.bias += channel;
    return sums;
  }

  // [pixels, channels] into planes of y.
  void turn(int64_t pixels, int64_t count, const void* result, void* y) const {
    const auto transpose = element() == 1 ? kernels_.transpose_b8 : kernels_.transpose_b32;
    transpose(pixels, count, result, count, y, s_.window.out_count());
  }

  // Of a row as the kernel reads it. Gathered ones are filled up to whole groups of four, whose
  // weights are 0 in the panels: rows of other lengths take the kernel's slow end for each.
  int64_t row_bytes() const { return rows_ == Rows::kGathered ? (s_.k() + 3) / 4 * 4 : s_.k(); }

  // dst [count, row_bytes()] from output pixel `pixel` on.
  void gather(const uint8_t* image, int64_t pixel, int64_t count, uint8_t* dst) const {
    for_rows(pixel, count, [&](int64_t row, int64_t column, int64_t, int64_t n) {
      const int64_t end = column + n;
      const auto [first, last] = short_columns(image, row);
      while (column < end) {
        if (column < first || column >= last) {
          dst = gather_pixel(image, row, column++, dst);
          continue;
        }
        const int64_t most = std::min(end, last);
        dst = gather_short(image, row, column, most - column, dst);
        column = most;
      }
    });
  }

  // The output pixels [first, second) of a row, in 2-D, whose taps all lie inside of the image with
  // a line of them in kShortRun bytes that may be read and written as a whole: what follows in the
  // gathered rows is written later, and there is room behind the last.
  std::pair<int64_t, int64_t> short_columns(const uint8_t* image, int64_t row) const {
    const Window& w = s_.window;
    const int64_t h = row * w.stride[1] - w.pad_begin[1];
    const int64_t bottom = h + (w.kernel[1] - 1) * w.dilation[1];
    const bool fits = w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.pad_begin[0] == 0 &&
                      w.dilation[2] == 1 && s_.group == 1 && w.kernel[2] * s_.c_in <= kShortRun &&
                      h >= 0 && bottom < w.in[1];
    if (!fits) return {0, 0};
    const int64_t step = w.stride[2];
    const uint8_t* line = image + bottom * w.in[2] * s_.c_in;
    const uint8_t* end = x + s_.batch * w.in_count() * s_.c_in;
    // The last column where a window may begin.
    const int64_t last = std::min(w.in[2] - w.kernel[2], (end - line - kShortRun) / s_.c_in);
    const int64_t first = (w.pad_begin[2] + step - 1) / step;
    if (end - line < kShortRun || last < first * step - w.pad_begin[2]) return {0, 0};
    return {first, (last + w.pad_begin[2]) / step + 1};
  }

  uint8_t* gather_short(const uint8_t* image, int64_t row, int64_t column, int64_t count,
                        uint8_t* dst) const {
    const int64_t run = s_.window.kernel[2] * s_.c_in;
    if (run <= 16) return gather_runs<16>(image, row, column, count, dst);
    if (run <= 24) return gather_runs<24>(image, row, column, count, dst);
    return gather_runs<kShortRun>(image, row, column, count, dst);
  }

  // Lines of taps, kBytes of each.
  template <int kBytes>
  uint8_t* gather_runs(const uint8_t* image, int64_t row, int64_t column, int64_t count,
                       uint8_t* dst) const {
    const Window& w = s_.window;
    const int64_t c = s_.c_in;
    const int64_t v = column * w.stride[2] - w.pad_begin[2];
    const uint8_t* from = image + ((row * w.stride[1] - w.pad_begin[1]) * w.in[2] + v) * c;
    const int64_t line = w.dilation[1] * w.in[2] * c;
    const int64_t run = w.kernel[2] * c;
    const int64_t step = w.stride[2] * c;
    const int64_t taps = w.kernel[1];
    const int64_t whole = row_bytes();
    for (int64_t i = 0; i < count; ++i, from += step, dst += whole) {
      const uint8_t* tap = from;
      uint8_t* to = dst;
      for (int64_t kh = 0; kh < taps; ++kh, tap += line, to += run) std::memcpy(to, tap, kBytes);
      std::memset(to, 0, 4);  // fills up; what is too much is written over like the taps'
    }
    return dst;
  }

  uint8_t* gather_pixel(const uint8_t* image, int64_t row, int64_t column, uint8_t* dst) const {
    const Window& w = s_.window;
    const int64_t c = image_channels_;
    // Taps that are neighbours in the image are one run of bytes.
    const bool joined = w.dilation[2] == 1 && s_.group == 1;
    const int64_t step = joined ? w.kernel[2] : 1;
    const int64_t plane = row / w.out[1];
    const int64_t origin[kSpatial] = {plane * w.stride[0] - w.pad_begin[0],
                                      (row - plane * w.out[1]) * w.stride[1] - w.pad_begin[1],
                                      column * w.stride[2] - w.pad_begin[2]};
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        const int64_t d = origin[0] + kd * w.dilation[0];
        const int64_t h = origin[1] + kh * w.dilation[1];
        const bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
        const uint8_t* line = image + (d * w.in[1] + h) * w.in[2] * c;
        for (int64_t kw = 0; kw < w.kernel[2]; kw += step) {
          const int64_t first = origin[2] + kw * w.dilation[2];
          copy_run(inside ? line : nullptr, first, step, dst);
          dst += step * s_.c_in;
        }
      }
    }
    return fill_up(dst);
  }

  uint8_t* fill_up(uint8_t* dst) const {
    for (int64_t i = s_.k(); i < row_bytes(); ++i) *dst++ = 0;
    return dst;
  }

  // `run` neighbouring pixels from column `first` on; zero points where there are none.
  void copy_run(const uint8_t* line, int64_t first, int64_t run, uint8_t* dst) const {
    const int64_t in = s_.window.in[2];
    const int64_t bytes = s_.c_in;
    const int64_t stride = image_channels_;  // equal to bytes when run > 1
    const int64_t begin = line ? std::clamp<int64_t>(-first, 0, run) : run;
    const int64_t end = line ? std::clamp<int64_t>(in - first, begin, run) : run;
    if (begin > 0) std::memset(dst, x_zero, static_cast<size_t>(begin * bytes));
    if (end > begin) {
      std::memcpy(dst + begin * bytes, line + (first + begin) * stride,
                  static_cast<size_t>((end - begin) * bytes));
    }
    if (run > end) std::memset(dst + end * bytes, x_zero, static_cast<size_t>((run - end) * bytes));
  }

  // For `count` pixels of an output row from `column` on, body(tap, i, n, at) for runs of n of them
  // from i on: the first has the input pixel `at` under the tap and each further one the pixel
  // stride[2] later, or all lie outside and `at` is -1.
  template <typename Body>
  void for_line(int64_t row, int64_t column, int64_t count, const Body& body) const {
    const Window& w = s_.window;
    const int64_t step = w.stride[2];
    const auto pixels = [step](int64_t v) { return step == 1 ? v : (v + step - 1) / step; };
    const int64_t plane = w.out[0] == 1 ? 0 : row / w.out[1];
    const int64_t first_d = plane * w.stride[0] - w.pad_begin[0];
    const int64_t first_h = (row - plane * w.out[1]) * w.stride[1] - w.pad_begin[1];
    int64_t tap = 0;
    for (int64_t kd = 0; kd < w.kernel[0]; ++kd) {
      for (int64_t kh = 0; kh < w.kernel[1]; ++kh) {
        const int64_t d = first_d + kd * w.dilation[0];
        const int64_t h = first_h + kh * w.dilation[1];
        const bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
        const int64_t line = (d * w.in[1] + h) * w.in[2];
        for (int64_t kw = 0; kw < w.kernel[2]; ++kw, ++tap) {
          const int64_t v = column * step - w.pad_begin[2] + kw * w.dilation[2];
          const int64_t left = v < 0 ? pixels(-v) : 0;
          const int64_t right = v < w.in[2] ? pixels(w.in[2] - v) : 0;
          const int64_t begin = inside ? std::min(left, count) : count;
          const int64_t end = std::clamp(right, begin, count);
          if (begin > 0) body(tap, int64_t{0}, begin, int64_t{-1});
          if (end > begin) body(tap, begin, end - begin, line + v + begin * step);
          if (count > end) body(tap, end, count - end, int64_t{-1});
        }
      }
    }
  }

  // Where the channels of each pixel under each tap begin: to[tap * taps_apart + i].
  void list_line(const uint8_t* image, int64_t row, int64_t column, int64_t count,
                 int64_t taps_apart, const uint8_t** to) const {
    const int64_t c = image_channels_;
    const int64_t step = s_.window.stride[2] * c;
    for_line(row, column, count, [&](int64_t tap, int64_t i, int64_t n, int64_t at) {
      list_pixels(at < 0 ? border : image + at * c, at < 0 ? 0 : step, n,
                  to + tap * taps_apart + i);
    });
  }

  // Where the channels under the taps of args->lines from `row` on begin, as the kernel reads them.
  // Rows and columns of taps that neighbours share are listed once.
  void list_taps(const uint8_t* image, int64_t depth, int64_t row, int64_t column,
                 const uint8_t** to, FolioDepthwiseU8* args) const {
    const Window& w = s_.window;
    const bool shares_columns = w.dilation[2] == 1 && w.stride[2] <= w.kernel[2];
    const bool shares_rows = w.kernel[0] == 1 && w.dilation[1] == 1 && w.stride[1] <= w.kernel[1];
    args->sets = weights.parts;
    args->rows = w.kernel[0] * w.kernel[1];
    args->columns = w.kernel[2];
    args->step = shares_columns ? w.stride[2] : w.kernel[2];
    args->dilation = 1;
    args->x = to;
    args->x_row_stride = (args->pixels - 1) * args->step + args->columns;
    args->x_line_stride = args->x_row_stride * (shares_rows ? w.stride[1] : args->rows);
    const int64_t rows_of_all = (args->lines - 1) * args->x_line_stride / args->x_row_stride;
    const int64_t plane = depth * w.stride[0] - w.pad_begin[0];
    const int64_t first = row * w.stride[1] - w.pad_begin[1];
    for (int64_t r = 0; r < rows_of_all + args->rows; ++r, to += args->x_row_stride) {
      int64_t d = plane;
      int64_t h = first + r;
      if (!shares_rows) {
        const int64_t tap = r % args->rows;
        d += tap / w.kernel[1] * w.dilation[0];
        h = first + r / args->rows * w.stride[1] + tap % w.kernel[1] * w.dilation[1];
      }
      const bool inside = d >= 0 && d < w.in[0] && h >= 0 && h < w.in[1];
      list_row(inside ? image + (d * w.in[1] + h) * w.in[2] * channels() : nullptr, column, *args,
               shares_columns, to);
    }
  }

  // One row of taps; `line`: the row of the image, null outside of it.
  void list_row(const uint8_t* line, int64_t column, const FolioDepthwiseU8& args,
                bool shares_columns, const uint8_t** to) const {
    const Window& w = s_.window;
    const int64_t origin = column * w.stride[2] - w.pad_begin[2];
    const int64_t c = channels();
    if (shares_columns || !line) {
      const int64_t count = args.x_row_stride;
      const int64_t begin = line ? std::clamp<int64_t>(-origin, 0, count) : count;
      const int64_t end = std::clamp(w.in[2] - origin, begin, count);
      std::fill_n(to, begin, border);
      const uint8_t* at = begin < end ? line + (origin + begin) * c : nullptr;
      for (int64_t i = begin; i < end; ++i, at += c) to[i] = at;
      std::fill_n(to + end, count - end, border);
      return;
    }
    for (int64_t i = 0; i < args.pixels; ++i) {
      for (int64_t t = 0; t < args.columns; ++t) {
        const int64_t v = origin + i * w.stride[2] + t * w.dilation[2];
        *to++ = v >= 0 && v < w.in[2] ? line + v * c : border;
      }
    }
  }

  // body(row, column, i, n) for runs of output pixels in one row, i counted from `pixel` on.
  template <typename Body>
  void for_rows(int64_t pixel, int64_t count, const Body& body) const {
    const int64_t width = s_.window.out[2];
    int64_t row = pixel / width;
    int64_t column = pixel % width;
    for (int64_t i = 0; i < count; ++row, column = 0) {
      const int64_t n = std::min(width - column, count - i);
      body(row, column, i, n);
      i += n;
    }
  }

  // Of the rows of A; `first`: the sum of the image's and group's first pixel.
  void sum_rows(const FolioGemmU8& args, int64_t pixel, int64_t first, int32_t* sums) const {
    if (!has_pieces()) {
      for (int64_t i = 0; i < args.m; ++i) {
        sums[i] = kernels_.sum_u8(s_.k(), args.a + i * args.a_row_stride);
      }
      return;
    }
    const auto outside = static_cast<int32_t>(s_.c_in * x_zero);
    std::fill_n(sums, args.m, 0);
    const int64_t step = s_.window.stride[2] * s_.group;
    for_rows(pixel, args.m, [&](int64_t row, int64_t column, int64_t begin, int64_t count) {
      for_line(row, column, count, [&](int64_t, int64_t i, int64_t n, int64_t at) {
        for (int64_t j = 0; j < n; ++j) {
          sums[begin + i + j] += at < 0 ? outside : pixel_sums[first + at * s_.group + j * step];
        }
      });
    });
  }

  const ConvSizes& s_;
  const ByteConv& conv_;
  const FolioKernels& kernels_;
  const Rows rows_;
  const ConvTiling plan_;
  const int64_t image_channels_;  // of all groups
  const int64_t channels_;        // of y
};

// x as [N, pixels, C] of unsigned bytes.
Result<const uint8_t*> pixels_first(OpRun& run, const ConvSizes& s, const ByteConv& conv) {
  const uint8_t* codes = conv.x->raw();
  const int64_t count = conv.x->count();
  const int64_t c = s.group * s.c_in;
  const int64_t pixels = s.window.in_count();
  if (!conv.channels_last && c > 1 && pixels > 1) {
    constexpr int64_t kTurned = 64;  // pixels
    const bool is_signed = conv.x->dtype() == DType::kInt8;
    FOLIO_TRY(uint8_t * turned, run.scratch(static_cast<size_t>(count)));
    const int64_t grain = std::max<int64_t>(16, 8 * kElementGrain / c / 16 * 16);
    const int64_t parts = (pixels + grain - 1) / grain;
    run.parallel().for_range(s.batch * parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % parts * grain;
        const int64_t at = i / parts * c * pixels;
        const int64_t last = std::min(first + grain, pixels);
        // Signs are flipped while the turned codes are in the first cache.
        const int64_t step = is_signed ? kTurned : grain;
        for (int64_t p = first; p < last; p += step) {
          const int64_t part = std::min(step, last - p);
          uint8_t* to = turned + at + p * c;
          run.kernels().transpose_b8(c, part, codes + at + p, pixels, to, c);
          if (is_signed) flip_signs(part * c, to, to);
        }
      }
    });
    return static_cast<const uint8_t*>(turned);
  }
  return unsigned_codes(run, codes, count, conv.x->dtype());
}

// Over the channels of a group, [N, pixels, groups]; wrapping sums of them are those of rows.
Result<const int32_t*> sum_pixels(OpRun& run, const ConvSizes& s, const uint8_t* x) {
  const int64_t count = s.batch * s.window.in_count() * s.group;
  FOLIO_TRY(uint8_t * memory, run.scratch(static_cast<size_t>(count) * sizeof(int32_t)));
  auto* sums = reinterpret_cast<int32_t*>(memory);
  const int64_t grain = std::max<int64_t>(1, 8 * kElementGrain / s.c_in);
  run.parallel().for_range(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[i] = run.kernels().sum_u8(s.c_in, x + i * s.c_in);
    }
  });
  return static_cast<const int32_t*>(sums);
}

}  // namespace

Status run_byte_conv(OpRun& run, const ConvSizes& whole, const ByteConv& conv) {
  const int32_t zero = conv.x_zero + (conv.x->dtype() == DType::kInt8 ? 128 : 0);
  const PackedBlob* transformed = conv.is_winograd ? run.packed(conv.w_input) : nullptr;
  if (transformed && !has_weight_zeros(conv, whole.c_out) &&
      winograd_sums_fit(whole.c_in, whole.c_out, transformed->data())) {
    FOLIO_TRY(const uint8_t* x, pixels_first(run, whole, conv));
    return run_winograd_bytes(run, whole, conv, x, static_cast<uint8_t>(zero), transformed->data());
  }
  FOLIO_TRY(const ByteConvWeights weights, prepare_byte_conv_weights(run, whole, conv, zero));
  ConvSizes s = whole;
  s.group = product_groups(s.group, weights.joined);
  s.c_in *= weights.joined;
  s.c_out *= weights.joined;
  if (weights.joined > 1 && weights.parts > 1) {  // each a slice of the filters, of the same pixels
    s.window.kernel[0] = weights.parts;
    s.window.dilation[0] = 0;
  }
  ByteConvolution c(whole, s, conv, run.kernels(), run.parallel().thread_count());
  c.weights = weights;
  c.x_zero = static_cast<uint8_t>(zero);
  const bool depthwise = is_depthwise(s) && !c.weights.zero;
  c.flips = !depthwise && c.is_in_place() && conv.channels_last && conv.x->dtype() == DType::kInt8;
  c.x = conv.x->raw();
  if (!c.flips) {
    FOLIO_TRY(c.x, pixels_first(run, whole, conv));
  }
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(
      ThreadScratch::make(run, depthwise ? c.line_bytes() : c.scratch_bytes(), &scratch));
  if (depthwise || c.has_pieces()) {
    const auto bytes = static_cast<size_t>(whole.group * whole.c_in);
    FOLIO_TRY(uint8_t * border, run.scratch(bytes));
    std::memset(border, c.x_zero, bytes);
    c.border = border;
  }
  if (!depthwise && c.has_pieces() && c.weights.zero) {
    FOLIO_TRY(c.pixel_sums, sum_pixels(run, s, c.x));
  }
  run.parallel().for_range(depthwise ? c.line_chunks() : c.chunks(), 1,
                           [&](int64_t begin, int64_t end) {
                             const ThreadScratch::Block block(scratch);
                             for (int64_t i = begin; i < end; ++i) {
                               if (depthwise) {
                                 c.compute_lines(i, block.data());
                               } else {
                                 c.compute(i, block.data());
                               }
                             }
                           });
  if (conv.sums.add && !conv.channels_last) {
    run.parallel().for_range(s.out.count(), kElementGrain,
                             [&](int64_t begin, int64_t end) { c.add_bytes(begin, end - begin); });
  }
  return Status::ok();
}

}  // namespace folio
