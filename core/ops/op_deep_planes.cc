#include "core/ops/op_deep_planes.h"

#include <algorithm>

#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// Of more, vectors of filters, or of channels, are full enough; by both AVX2 and AVX-512.
constexpr int64_t kMostFilters = 5;
constexpr int64_t kMostChannels = 8;
constexpr int64_t kBlockFloats = 1 << 12;  // of a filter's results that are being summed

class DeepPlanes {
 public:
  DeepPlanes(const ConvSizes& s, const FolioKernels& kernels, const float* x, const float* bias,
             const ConvFinish& finish, float* y)
      : s_(s), kernels_(kernels), x_(x), bias_(bias), finish_(finish), y_(y) {}

  int64_t lines() const {
    return std::clamp<int64_t>(kBlockFloats / s_.window.out[2], 1, s_.window.out[1]);
  }
  int64_t blocks() const { return (s_.window.out[1] + lines() - 1) / lines(); }  // of a plane
  int64_t chunks() const { return s_.batch * s_.window.out[0] * blocks(); }
  size_t scratch_bytes() const {
    return static_cast<size_t>(lines() * s_.window.out[2]) * sizeof(float);
  }

  // Of each filter the taps of one depth stand together, for all channels.
  void take_weights(const float* w, float* packed) {
    const Window& v = s_.window;
    const int64_t plane = v.kernel[1] * v.kernel[2];
    weights_ = packed;
    for (int64_t m = 0; m < s_.c_out; ++m) {
      for (int64_t t = 0; t < v.kernel[0]; ++t) {
        for (int64_t c = 0; c < s_.c_in; ++c, packed += plane) {
          std::copy_n(w + ((m * s_.c_in + c) * v.kernel[0] + t) * plane, plane, packed);
        }
      }
    }
  }

  void compute(int64_t chunk, float* part) const {
    const Window& v = s_.window;
    const int64_t depth = chunk / blocks() % v.out[0];
    const int64_t image = chunk / blocks() / v.out[0];
    const int64_t line = chunk % blocks() * lines();
    FolioPlaneF32 args = plane_args(s_);
    args.lines = std::min(lines(), v.out[1] - line);
    args.top = v.pad_begin[1] - line * v.stride[1];
    const int64_t count = args.lines * v.out[2];
    const WindowTaps taps = taps_inside(v, 0, depth);
    const int64_t plane = v.in[1] * v.in[2];
    const int64_t size = s_.c_in * v.kernel[1] * v.kernel[2];  // weights of a depth
    for (int64_t m = 0; m < s_.c_out; ++m) {
      const int64_t at =
          ((image * s_.c_out + m) * v.out[0] + depth) * v.out[1] * v.out[2] + line * v.out[2];
      float* const to = y_ + at;
      args.bias = bias_ ? bias_[m] : 0.0F;
      args.y = to;
      if (taps.from == taps.to) std::fill_n(to, count, args.bias);
      for (int64_t t = taps.from; t < taps.to; ++t) {
        const int64_t from = taps.first + t * v.dilation[0];
        args.x = x_ + image * s_.c_in * v.in_count() + from * plane;
        args.w = weights_ + (m * v.kernel[0] + t) * size;
        kernels_.filter_plane_f32(&args);
        if (t > taps.from) kernels_.binary_f32[kFolioAdd](count, to, 1, part, 1, to);
        args.bias = 0.0F;
        args.y = part;
      }
      finish_.apply(kernels_, at, count, y_);
    }
  }

 private:
  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const float* x_;
  const float* bias_;
  const ConvFinish& finish_;
  float* y_;
  const float* weights_ = nullptr;
};

}  // namespace

bool are_deep_planes(Span<const int64_t> w, const ConvAttrs& attrs) {
  return w.size() == 5 && attrs.group == 1 && w[0] >= 1 && w[0] <= kMostFilters && w[1] >= 1 &&
         w[1] <= kMostChannels && w[2] > 1 && w[3] * w[4] > 1 &&
         at_or(attrs.window.strides, 2, 1) == 1;
}

bool fits_deep_planes(const ConvSizes& s) {
  const Window& v = s.window;
  return v.rank == kSpatial && s.group == 1 && s.c_out <= kMostFilters && s.c_in > 0 &&
         s.c_in <= kMostChannels && v.kernel[0] > 1 && v.stride[2] == 1 && v.out[2] >= kDeepLine &&
         has_near_taps(v, 0);
}

Status run_deep_planes(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                       const float* bias, const ConvFinish& finish, float* y) {
  DeepPlanes planes(s, run.kernels(), x, bias, finish, y);
  FOLIO_TRY(uint8_t * packed, run.scratch(static_cast<size_t>(s.c_out * s.k()) * sizeof(float)));
  planes.take_weights(w, reinterpret_cast<float*>(packed));
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, planes.scratch_bytes(), &scratch));
  run.parallel().for_range(planes.chunks(), 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      planes.compute(chunk, reinterpret_cast<float*>(block.data()));
    }
  });
  return Status::ok();
}

}  // namespace folio
