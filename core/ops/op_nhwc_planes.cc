#include "core/ops/op_nhwc_planes.h"

#include "core/ops/op_move.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kMostFilters = 4;        // of more, vectors of filters are full enough
constexpr int64_t kBlockFloats = 1 << 12;  // of a filter's results that are not in their places yet
constexpr int64_t kGrainWork = 1 << 17;    // multiply-adds of one chunk

int64_t block_lines(const Window& w) {
  return std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, w.out[2]), 1, w.out[1]);
}

FolioPlaneF32 plane_args(const ConvSizes& s) {
  const Window& w = s.window;
  FolioPlaneF32 args{};
  args.pixels = w.out[2];
  args.planes = s.c_in;
  args.x_plane = w.in_count();
  args.x_lines = w.in[1];
  args.x_pixels = w.in[2];
  args.rows = w.kernel[1];
  args.columns = w.kernel[2];
  args.line_step = w.stride[1];
  args.pixel_step = w.stride[2];
  args.row_step = w.dilation[1];
  args.column_step = w.dilation[2];
  args.left = w.pad_begin[2];
  return args;
}

}  // namespace

bool fits_few_planes(const ConvSizes& s, const NhwcConvArgs& args) {
  const Window& w = s.window;
  const bool is_flat = w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.pad_begin[0] == 0;
  return args.is_planes && !args.scale && !is_half(args.weights->dtype()) &&
         s.c_out <= kMostFilters && is_flat && w.stride[2] <= 2 && w.in[1] > 0 && w.in[2] > 0;
}

Status run_few_planes(OpRun& run, const ConvSizes& s, const NhwcConvArgs& given) {
  const FolioKernels& kernels = run.kernels();
  const Window& w = s.window;
  FolioPlaneF32 whole = plane_args(s);
  const bool is_finished = !given.z && given.activation.set_in_kernel(&whole);
  const int64_t most = block_lines(w);
  const int64_t blocks = (w.out[1] + most - 1) / most;
  ThreadScratch scratch;
  const auto floats = static_cast<size_t>(s.c_out > 1 ? most * w.out[2] : 0);
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, floats * sizeof(float), &scratch));
  const int64_t work = std::max<int64_t>(1, most * w.out[2] * s.c_out * s.k());
  const int64_t grain = std::max<int64_t>(1, kGrainWork / work);
  run.parallel().for_range(s.batch * blocks, grain, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t line = i % blocks * most;
      FolioPlaneF32 args = whole;
      args.lines = std::min(most, w.out[1] - line);
      args.top = w.pad_begin[1] - line * w.stride[1];
      args.x = given.x + i / blocks * s.c_in * w.in_count();
      const int64_t at = (i / blocks * w.out_count() + line * w.out[2]) * s.c_out;
      const int64_t pixels = args.lines * w.out[2];
      args.y = s.c_out > 1 ? reinterpret_cast<float*>(block.data()) : given.y + at;
      for (int64_t filter = 0; filter < s.c_out; ++filter) {
        args.w = given.turned + filter * s.k();
        args.bias = given.bias ? given.bias[filter] : 0.0F;
        kernels.filter_plane_f32(&args);
        if (s.c_out > 1) put_apart(pixels, args.y, s.c_out, given.y + at + filter);
      }
      if (is_finished) continue;
      const int64_t n = pixels * s.c_out;
      float* const y = given.y + at;
      if (given.z) kernels.binary_f32[kFolioAdd](n, y, 1, given.z + at, 1, y);
      given.activation.apply(kernels, n, y);
    }
  });
  return Status::ok();
}

}  // namespace folio
