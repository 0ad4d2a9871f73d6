// Pooling of floats with channels last: MaxPool, AveragePool and their Global forms.
//
// Source: as core/ops/pool.cc (ONNX operator spec); made by the pass channels_last only.
// Shapes: x [N, spatial..., C] -> y [N, out..., C].
// Types:  float.
#include "core/ops/op_nhwc.h"
#include "core/ops/op_pool.h"
#include "core/ops/op_real.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kGrainWork = 1 << 15;  // element steps of one chunk

class NhwcPool final : public OpKernel {
 public:
  PoolAttrs attrs;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    if (x->rank() < 2) return invalid_argument("input ", x->shape().to_string(), " is too flat");
    const Shape first = channels_first(x->shape());
    FOLIO_TRY(const Window w, pool_window(attrs, first));
    Shape out{first[0], first[1]};
    w.append_out(&out);
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, channels_last(out)));
    if (y->count() == 0) return Status::ok();
    const auto* from = x->data<float>();
    if (!pools_by_axes(w)) return pool(run, w, first[0], first[1], from, y->data_mut<float>());
    const Window rows = across(w);
    FOLIO_TRY(float* between, scratch_floats(run, first[0] * first[1] * rows.out_count()));
    FOLIO_RETURN_IF_ERROR(pool(run, rows, first[0], first[1], from, between));
    return pool(run, down(w), first[0], first[1], between, y->data_mut<float>());
  }

 private:
  // The largest, or average, of a window is that down its columns of those across its rows: fewer
  // steps where windows are large and overlap. What is between takes no more than x.
  static bool pools_by_axes(const Window& w) {
    if (w.out[2] > w.in[2]) return false;
    const auto whole = static_cast<double>(w.out_count()) * static_cast<double>(w.kernel_count());
    const double steps =
        static_cast<double>(across(w).out_count()) * static_cast<double>(w.kernel[2]) +
        whole / static_cast<double>(w.kernel[2]);
    return 2 * steps < whole;  // memory is passed through twice
  }

  static Window across(Window w) {
    for (const int d : {0, 1}) {
      w.kernel[d] = w.stride[d] = w.dilation[d] = 1;
      w.pad_begin[d] = w.pad_end[d] = 0;
      w.out[d] = w.in[d];
    }
    return w;
  }
  static Window down(Window w) {
    w.kernel[2] = w.stride[2] = w.dilation[2] = 1;
    w.pad_begin[2] = w.pad_end[2] = 0;
    w.in[2] = w.out[2];
    return w;
  }

  Status pool(OpRun& run, const Window& w, int64_t batch, int64_t channels, const float* x,
              float* y) const {
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, NhwcRow::scratch_bytes(w), &scratch));
    const int64_t lines = w.out[0] * w.out[1];
    const int64_t work = std::max<int64_t>(1, w.out[2] * w.kernel_count() * channels);
    const int64_t grain = std::max<int64_t>(1, kGrainWork / work);
    run.parallel().for_range(batch * lines, grain, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      const NhwcRow row(w, channels, nullptr, block.data());
      const int64_t floats = w.out[2] * channels;
      for_each_slice(w, begin, end,
                     [&](int64_t image, int64_t depth, int64_t first, int64_t last, int64_t at) {
                       row.walk(x + image * w.in_count() * channels, depth, first, last,
                                [&](int64_t line, int64_t column, FolioWindowF32& args,
                                    const WindowTaps taps[]) {
                                  args.y = y + (at + line - first) * floats + column * channels;
                                  reduce(run.kernels(), w, taps, &args);
                                });
                     });
    });
    return Status::ok();
  }

  void reduce(const FolioKernels& kernels, const Window& w, const WindowTaps taps[],
              FolioWindowF32* args) const {
    if (attrs.kind == PoolKind::kMax) {
      kernels.max_window_f32(args);
      return;
    }
    // The same for all pixels of a run: all their taps are inside the image, or there is one pixel.
    args->scale = 1.0F / static_cast<float>(pool_divisor(attrs, w, taps));
    kernels.sum_window_f32(args);
  }
};

template <PoolKind kind, bool global>
OpDef def_of(std::string_view type) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = type;
  def.infer = [](OpInfer& infer) { return infer_pool(infer, global, /*channels_last=*/true); };
  def.make = [](OpBuild& build) -> Result<std::unique_ptr<OpKernel>> {
    auto kernel = std::make_unique<NhwcPool>();
    FOLIO_TRY(kernel->attrs, parse_pool(build.attrs(), kind, global));
    return std::unique_ptr<OpKernel>(std::move(kernel));
  };
  return def;
}

}  // namespace

[[gnu::cold]] void register_nhwc_pool(OpRegistry& registry) {
  registry.add(def_of<PoolKind::kMax, false>("MaxPool"));
  registry.add(def_of<PoolKind::kAverage, false>("AveragePool"));
  registry.add(def_of<PoolKind::kMax, true>("GlobalMaxPool"));
  registry.add(def_of<PoolKind::kAverage, true>("GlobalAveragePool"));
}

}  // namespace folio
