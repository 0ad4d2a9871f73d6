#include "core/ops/op_nhwc_planes.h"

#include "core/ops/op_depthwise.h"
#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMostFilters = 4;        // of more, vectors of filters are full enough
constexpr int64_t kBlockFloats = 1 << 12;  // of a filter's results that are not in their places yet
constexpr int64_t kGrainWork = 1 << 17;    // multiply-adds of one chunk

// Some lines of an image, with what is added and applied. y may be where z is.
class FewPlanes {
 public:
  FewPlanes(const ConvSizes& s, const FolioKernels& kernels, const NhwcConvArgs& args)
      : s_(s), kernels_(kernels), args_(args), whole_(plane_args(s)) {
    is_finished_ = !args.z && args.activation.set_in_kernel(&whole_);
  }

  int64_t blocks() const { return (s_.window.out[1] + lines() - 1) / lines(); }  // of an image
  int64_t lines() const {
    const Window& w = s_.window;
    return std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, w.out[2]), 1, w.out[1]);
  }
  size_t scratch_bytes() const {
    const int64_t filters = (s_.c_out > 1 ? 1 : 0) + (args_.z ? s_.c_out : 0);
    return static_cast<size_t>(filters * lines() * s_.window.out[2]) * sizeof(float);
  }

  void compute(int64_t image, int64_t line, uint8_t* scratch) const {
    const Window& w = s_.window;
    FolioPlaneF32 args = whole_;
    args.lines = std::min(lines(), w.out[1] - line);
    args.top = w.pad_begin[1] - line * w.stride[1];
    args.x = args_.x + image * s_.c_in * w.in_count();
    const int64_t pixels = args.lines * w.out[2];
    const int64_t at = (image * w.out_count() + line * w.out[2]) * s_.c_out;
    auto* const floats = reinterpret_cast<float*>(scratch);
    float* const one = floats + (args_.z ? s_.c_out * pixels : 0);
    float* const all = args_.z ? floats : args_.y + at;
    args.y = s_.c_out > 1 ? one : all;
    for (int64_t filter = 0; filter < s_.c_out; ++filter) {
      args.w = args_.turned + filter * s_.k();
      args.bias = args_.bias ? args_.bias[filter] : 0.0F;
      kernels_.filter_plane_f32(&args);
      if (s_.c_out > 1) put_apart(pixels, one, s_.c_out, all + filter);
    }
    if (is_finished_) return;
    const int64_t n = pixels * s_.c_out;
    float* const y = args_.y + at;
    if (args_.z) kernels_.binary_f32[kFolioAdd](n, all, 1, args_.z + at, 1, y);
    args_.activation.apply(kernels_, n, y);
  }

 private:
  const ConvSizes& s_;
  const FolioKernels& kernels_;
  const NhwcConvArgs& args_;
  FolioPlaneF32 whole_;
  bool is_finished_ = false;  // by the kernel
};

}  // namespace

bool fits_few_planes(const ConvSizes& s, const NhwcConvArgs& args) {
  return args.is_planes && !args.scale && !is_half(args.weights->dtype()) &&
         s.c_out <= kMostFilters && fits_filter_plane(s.window);
}

Status run_few_planes(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  const FewPlanes planes(s, run.kernels(), args);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, planes.scratch_bytes(), &scratch));
  const int64_t work = planes.lines() * s.window.out[2] * s.c_out * s.k();
  const int64_t grain = std::max<int64_t>(1, kGrainWork / std::max<int64_t>(1, work));
  const int64_t blocks = planes.blocks();
  run.parallel().for_range(s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t i = begin; i < end; ++i) {
      planes.compute(i / blocks, i % blocks * planes.lines(), block.data());
    }
  });
  return Status::ok();
}

}  // namespace folio
