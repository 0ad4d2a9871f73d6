#include "core/ops/op_depthwise.h"

#include "core/base/checked_math.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

// Where things lie in the copy: phases [s0][s1][s2], each [size0][size1][size2].
struct Phases {
  int64_t size[kSpatial];
  int64_t phase_count = 1;
  int64_t out_row = 0;  // elements computed, from the first output to the last
  int64_t total = 0;    // elements of all phases

  int64_t phase_size() const { return size[0] * size[1] * size[2]; }
};

// False when a size does not fit into int64.
bool make_phases(const Window& w, Phases* phases) {
  int64_t phase_size = 1;
  for (int d = 0; d < kSpatial; ++d) {
    int64_t reach = 0;
    if (!checked_mul(w.kernel[d] - 1, w.dilation[d], &reach)) return false;
    if (!checked_add(w.out[d], reach / w.stride[d], &phases->size[d])) return false;
    if (!checked_mul(phase_size, phases->size[d], &phase_size)) return false;
    if (!checked_mul(phases->phase_count, w.stride[d], &phases->phase_count)) return false;
  }
  phases->out_row = ((w.out[0] - 1) * phases->size[1] + w.out[1] - 1) * phases->size[2] + w.out[2];
  return checked_mul(phase_size, phases->phase_count, &phases->total);
}

std::vector<int64_t> tap_offsets(const Window& w, const Phases& phases) {
  std::vector<int64_t> offsets;
  offsets.reserve(static_cast<size_t>(w.kernel_count()));
  int64_t tap[kSpatial];
  for (tap[0] = 0; tap[0] < w.kernel[0]; ++tap[0]) {
    for (tap[1] = 0; tap[1] < w.kernel[1]; ++tap[1]) {
      for (tap[2] = 0; tap[2] < w.kernel[2]; ++tap[2]) {
        int64_t phase = 0;
        int64_t at = 0;
        for (int d = 0; d < kSpatial; ++d) {
          const int64_t reach = tap[d] * w.dilation[d];
          phase = phase * w.stride[d] + reach % w.stride[d];
          at = at * phases.size[d] + reach / w.stride[d];
        }
        offsets.push_back(phase * phases.phase_size() + at);
      }
    }
  }
  return offsets;
}

void copy_plane(const Window& w, const Phases& phases, const float* x, float* dst) {
  const int64_t row = phases.size[2];
  for (int64_t phase = 0; phase < phases.phase_count; ++phase) {
    const int64_t shift[kSpatial] = {phase / (w.stride[1] * w.stride[2]),
                                     phase / w.stride[2] % w.stride[1], phase % w.stride[2]};
    for (int64_t i = 0; i < phases.size[0]; ++i) {
      const int64_t depth = i * w.stride[0] + shift[0] - w.pad_begin[0];
      for (int64_t j = 0; j < phases.size[1]; ++j, dst += row) {
        const int64_t line = j * w.stride[1] + shift[1] - w.pad_begin[1];
        if (depth < 0 || depth >= w.in[0] || line < 0 || line >= w.in[1]) {
          std::fill_n(dst, row, 0.0F);
        } else {
          copy_strided_row(row, x + (depth * w.in[1] + line) * w.in[2], w.in[2],
                           shift[2] - w.pad_begin[2], w.stride[2], dst);
        }
      }
    }
  }
}

void copy_out(const Window& w, const Phases& phases, const float* row, float* y) {
  for (int64_t i = 0; i < w.out[0]; ++i) {
    for (int64_t j = 0; j < w.out[1]; ++j, y += w.out[2]) {
      std::memcpy(y, row + (i * phases.size[1] + j) * phases.size[2],
                  static_cast<size_t>(w.out[2]) * sizeof(float));
    }
  }
}

// About so many outputs of a plane's filter are a chunk of work, and so many are a part of a plane.
constexpr int64_t kGrainOutputs = 1 << 13;
constexpr int64_t kPartOutputs = 1 << 15;

}  // namespace

FolioPlaneF32 plane_args(const ConvSizes& s) {
  const Window& w = s.window;
  FolioPlaneF32 args{};
  args.planes = s.c_in;
  args.x_plane = w.in_count();
  args.pixels = w.out[2];
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

bool has_near_taps(const Window& w, int first) {
  constexpr int64_t kFar = 1 << 20;  // no sum of positions is near the end of int64
  for (int d = first; d < kSpatial; ++d) {
    if (w.in[d] < 1 || w.kernel[d] < 1 || w.kernel[d] > kFar || w.dilation[d] > kFar ||
        w.stride[d] > kFar || w.pad_begin[d] > kFar) {
      return false;
    }
  }
  return true;
}

bool fits_filter_plane(const Window& w) {
  return w.in[0] == 1 && w.out[0] == 1 && w.kernel[0] == 1 && w.pad_begin[0] == 0 &&
         w.stride[2] <= 2 && has_near_taps(w, 1);
}

Status run_plane_filters(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                         const float* bias, const ConvFinish& finish, float* y) {
  const FolioKernels& kernels = run.kernels();
  const Window& window = s.window;
  FolioPlaneF32 whole = plane_args(s);
  const bool is_finished = !finish.z && finish.activation.set_in_kernel(&whole);
  const int64_t most = std::max<int64_t>(1, kPartOutputs / std::max<int64_t>(1, window.out[2]));
  const int64_t parts = (window.out[1] + most - 1) / most;
  const int64_t chunk_outputs = std::max<int64_t>(1, std::min(most, window.out[1]) * window.out[2]);
  const int64_t grain = std::max<int64_t>(1, kGrainOutputs / chunk_outputs);
  run.parallel().for_range(s.out[0] * s.out[1] * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      const int64_t plane = chunk / parts;
      const int64_t channel = plane % s.out[1];
      const int64_t line = window.out[1] * (chunk % parts) / parts;
      FolioPlaneF32 args = whole;
      args.lines = window.out[1] * (chunk % parts + 1) / parts - line;
      args.top = window.pad_begin[1] - line * window.stride[1];
      args.x = x + plane / s.c_out * window.in_count();
      args.w = w + channel * s.k();
      args.bias = bias ? bias[channel] : 0.0F;
      const int64_t at = plane * window.out_count() + line * window.out[2];
      args.y = y + at;
      kernels.filter_plane_f32(&args);
      if (!is_finished) finish.apply(kernels, at, args.lines * window.out[2], y);
    }
  });
  return Status::ok();
}

bool fits_depthwise(const ConvSizes& s) {
  constexpr int64_t kMostFloats = 1 << 18;  // of the copies of a group: they stay in L2
  Phases phases;
  if (s.c_in < 1 || !make_phases(s.window, &phases)) return false;
  if (s.c_in > 1 && phases.total > kMostFloats / s.c_in) return false;
  return phases.total / 4 <= s.window.in_count() + s.window.out_count() + 1024;
}

Status run_depthwise(OpRun& run, const ConvSizes& s, const float* x, const float* w,
                     const float* bias, float* y) {
  const Window& window = s.window;
  Phases phases;
  make_phases(window, &phases);
  std::vector<int64_t> offsets = tap_offsets(window, phases);
  const int64_t taps = s.k();
  const auto of_one = static_cast<int64_t>(offsets.size());
  for (int64_t t = of_one; t < taps; ++t) {
    offsets.push_back(offsets[static_cast<size_t>(t - of_one)] + phases.total);
  }
  const size_t in_bytes = align_up(static_cast<size_t>(phases.total * s.c_in) * sizeof(float), 64);
  const size_t out_bytes = static_cast<size_t>(phases.out_row) * sizeof(float);
  ThreadScratch scratch;
  FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, in_bytes + out_bytes, &scratch));
  const bool in_place = phases.size[1] == window.out[1] && phases.size[2] == window.out[2];
  // By group, so that its planes are copied once for all output channels that read them.
  run.parallel().for_range(s.batch * s.group, 1, [&](int64_t begin, int64_t end) {
    const ThreadScratch::Block block(scratch);
    auto* copy = reinterpret_cast<float*>(block.data());
    auto* row = reinterpret_cast<float*>(block.data() + in_bytes);
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t c = 0; c < s.c_in; ++c) {
        copy_plane(window, phases, x + (group * s.c_in + c) * window.in_count(),
                   copy + c * phases.total);
      }
      for (int64_t i = 0; i < s.c_out; ++i) {
        const int64_t channel = group % s.group * s.c_out + i;
        float* out = y + (group * s.c_out + i) * window.out_count();
        run.kernels().shifted_sum_f32(phases.out_row, taps, w + channel * taps, offsets.data(),
                                      copy, bias ? bias[channel] : 0.0F, in_place ? out : row);
        if (!in_place) copy_out(window, phases, row, out);
      }
    }
  });
  return Status::ok();
}

}  // namespace folio
