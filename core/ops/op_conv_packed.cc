#include "core/ops/op_conv_packed.h"

#include "core/base/checked_math.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kRowStep = 14;             // rows of the widest kernel's tile
constexpr int64_t kTileRows = 168;           // what the product packs of A at once
constexpr int64_t kTileFloats = 320 * 1024;  // of X: with a block of W it stays in L2
constexpr int64_t kEnoughChunks = 4;         // below that, channels are split as well
constexpr int64_t kLeastColumns = 128;       // fewer channels do not repay the gathering

// A part of one output row: pixels [column, column + count) of output line (depth, line).
struct Segment {
  int64_t depth, line, column, count;
};

// Of one tile, each with a pixel at least; on the stack, as pool threads must not allocate.
struct Segments {
  Segment list[kTileRows];
  int64_t count = 0;

  const Segment* begin() const { return list; }
  const Segment* end() const { return list + count; }
};

void list_segments(const Window& w, int64_t pixel, int64_t count, Segments* out) {
  out->count = 0;
  while (count > 0) {
    const int64_t row = pixel / w.out[2];
    const int64_t column = pixel % w.out[2];
    const int64_t n = std::min(count, w.out[2] - column);
    out->list[out->count++] = {row / w.out[1], row % w.out[1], column, n};
    pixel += n;
    count -= n;
  }
}

struct Plan {
  int64_t tile = 0;     // pixels
  int64_t tiles = 0;    // of an image
  int64_t columns = 0;  // output channels of a chunk, a multiple of 16 but in the last
  int64_t blocks = 0;   // of output channels
  bool in_place = false;

  size_t x_bytes(int64_t k) const {
    return in_place ? 0 : align_up(static_cast<size_t>(k * tile) * sizeof(float), 64);
  }
  size_t y_bytes() const {
    return align_up(static_cast<size_t>(tile * columns) * sizeof(float), 64);
  }
};

Plan make_plan(const ConvSizes& s) {
  Plan plan;
  const int64_t pixels = s.window.out_count();
  const int64_t most = std::clamp(kTileFloats / std::max<int64_t>(s.k(), 1) / kRowStep * kRowStep,
                                  kRowStep, kTileRows);
  plan.tiles = (pixels + most - 1) / most;
  const int64_t even = (pixels + plan.tiles - 1) / plan.tiles;
  plan.tile = plan.tiles == 1 ? pixels : (even + kRowStep - 1) / kRowStep * kRowStep;
  plan.tiles = (pixels + plan.tile - 1) / plan.tile;
  plan.columns = s.c_out;
  if (s.batch * s.group * plan.tiles < kEnoughChunks && s.c_out > kLeastColumns) {
    const int64_t half = (s.c_out / 2 + kPanel - 1) / kPanel * kPanel;
    plan.columns = std::max(half, kLeastColumns);
  }
  plan.blocks = (s.c_out + plan.columns - 1) / plan.columns;
  plan.in_place = is_pointwise(s.window);
  return plan;
}

class PackedConv {
 public:
  PackedConv(const ConvSizes& s, const FolioKernels& kernels)
      : s_(s), kernels_(kernels), plan_(make_plan(s)) {}

  const float* x = nullptr;
  const float* packed = nullptr;
  const float* bias = nullptr;
  Activation activation;
  float* y = nullptr;

  int64_t chunks() const { return s_.batch * s_.group * plan_.tiles * plan_.blocks; }
  size_t scratch_bytes() const {
    return plan_.x_bytes(s_.k()) + plan_.y_bytes() + kernels_.gemm_f32_scratch_bytes;
  }

  void compute(int64_t chunk, uint8_t* scratch, Segments* segments) const {
    const int64_t tile = chunk / plan_.blocks;
    const int64_t image_group = tile / plan_.tiles;
    const int64_t group = image_group % s_.group;
    const int64_t pixel = tile % plan_.tiles * plan_.tile;
    const int64_t column = chunk % plan_.blocks * plan_.columns;
    const int64_t pixels = s_.window.out_count();
    FolioGemmF32 args{};
    args.m = std::min(plan_.tile, pixels - pixel);
    args.n = std::min(plan_.columns, s_.c_out - column);
    args.k = s_.k();
    const float* image = x + image_group * s_.c_in * s_.window.in_count();
    args.a_row_stride = 1;
    if (plan_.in_place) {
      args.a = image + pixel;
      args.a_col_stride = pixels;
    } else {
      auto* rows = reinterpret_cast<float*>(scratch);
      list_segments(s_.window, pixel, args.m, segments);
      gather(image, *segments, args.m, rows);
      args.a = rows;
      args.a_col_stride = args.m;
    }
    const int64_t channel = group * s_.c_out + column;
    args.b = packed + channel * args.k;
    auto* result = reinterpret_cast<float*>(scratch + plan_.x_bytes(args.k));
    args.c = result;
    args.c_row_stride = args.n;
    args.col_bias = bias ? bias + channel : nullptr;
    args.alpha = 1.0F;
    activation.set_in_gemm(&args);
    args.scratch = scratch + plan_.x_bytes(args.k) + plan_.y_bytes();
    kernels_.gemm_f32(&args);
    kernels_.transpose_b32(args.m, args.n, result, args.n,
                           y + (image_group * s_.c_out + column) * pixels + pixel, pixels);
  }

 private:
  // dst [K, pixels of the segments].
  void gather(const float* image, const Segments& segments, int64_t pixels, float* dst) const {
    const Window& w = s_.window;
    int64_t tap[kSpatial];
    for (int64_t c = 0; c < s_.c_in; ++c, image += w.in_count()) {
      for (tap[0] = 0; tap[0] < w.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < w.kernel[1]; ++tap[1]) {
          for (tap[2] = 0; tap[2] < w.kernel[2]; ++tap[2], dst += pixels) {
            gather_row(image, segments, tap, dst);
          }
        }
      }
    }
  }

  void gather_row(const float* plane, const Segments& segments, const int64_t tap[],
                  float* dst) const {
    const Window& w = s_.window;
    const int64_t shift = tap[2] * w.dilation[2] - w.pad_begin[2];
    for (const Segment& segment : segments) {
      const int64_t d = segment.depth * w.stride[0] + tap[0] * w.dilation[0] - w.pad_begin[0];
      const int64_t h = segment.line * w.stride[1] + tap[1] * w.dilation[1] - w.pad_begin[1];
      if (d < 0 || d >= w.in[0] || h < 0 || h >= w.in[1]) {
        std::fill_n(dst, segment.count, 0.0F);
      } else {
        copy_strided_row(segment.count, plane + (d * w.in[1] + h) * w.in[2], w.in[2],
                         segment.column * w.stride[2] + shift, w.stride[2], dst);
      }
      dst += segment.count;
    }
  }

  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const Plan plan_;
};

}  // namespace

void request_packed_conv(OpBuild& build, int64_t group) {
  const Initializer* w = build.initializer(1);
  if (!w || w->dtype != DType::kFloat || w->shape.rank() < 3 || w->shape[0] < 1) return;
  const int64_t channels = w->shape[0];
  // Fewer channels would leave most of a panel empty; a group must begin with a panel.
  if (channels < kPanel || (group > 1 && channels / group % kPanel != 0)) return;
  uint64_t count = 0;
  if (!checked_count(w->shape.dims(), &count)) return;
  const int64_t k = static_cast<int64_t>(count) / channels;
  request_f32p16(build, 1, k, channels, 1, k, /*replaces_source=*/true);
}

Status run_packed_conv(OpRun& run, const ConvSizes& s, const float* x, const float* packed,
                       const float* bias, const Activation& activation, float* y) {
  PackedConv conv(s, run.kernels());
  conv.x = x;
  conv.packed = packed;
  conv.bias = bias;
  conv.activation = activation;
  conv.y = y;
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, conv.scratch_bytes(), &scratch));
  run.parallel().for_range(conv.chunks(), 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    Segments segments;
    for (int64_t chunk = begin; chunk < end; ++chunk) conv.compute(chunk, block.data(), &segments);
  });
  return Status::ok();
}

}  // namespace folio
