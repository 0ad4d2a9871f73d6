// InstanceNormalization and GroupNormalization with channels last, and an activation.
//
// Source: ONNX operator spec, InstanceNormalization 22, GroupNormalization 21; made by the pass
//         channels_last only.
// Shapes: x, y [N, spatial..., C], scale and bias [C]; a group is C / num_groups channels, of an
//         instance one.
// Math:   y = activation((x - mean) / sqrt(variance + epsilon) * scale + bias) over all pixels of a
//         group. Of a block of pixels, which stays in L1, the mean of each channel and the sum of
//         squares about it; blocks and channels are joined as Chan, Golub and LeVeque do ("Updating
//         Formulae", 1979), in double.
// Types:  float.
// Splits: blocks of pixels, by shape only; bit-identical for any number of threads.
#include <cmath>

#include "core/ops/op_activation.h"
#include "core/ops/op_group_norm.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kBlockFloats = 4096;  // of pixels that are looked at together
constexpr int64_t kTileFloats = 512;    // of a row of means that repeats: what a call is worth
constexpr size_t kFloat = sizeof(float);

class NhwcNorm final : public OpKernel {
 public:
  GroupNormAttrs attrs;
  Activation activation;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* scale, run.tensor(1, DType::kFloat));
    FOLIO_TRY(const Tensor* bias, run.tensor(2, DType::kFloat));
    const Shape& shape = x->shape();
    if (shape.rank() < 3) return invalid_argument("X ", shape.to_string(), " is too flat");
    const int64_t channels = shape[shape.rank() - 1];
    FOLIO_RETURN_IF_ERROR(check_channels(attrs, channels));
    FOLIO_RETURN_IF_ERROR(check_parameters(*scale, *bias, channels));
    FOLIO_TRY(Tensor * y, run.output(0, DType::kFloat, shape));
    if (y->count() == 0) return Status::ok();
    Images images;
    images.batch = shape[0];
    images.pixels = shape.product(1, shape.rank() - 1);
    images.channels = channels;
    images.x = x->data<float>();
    images.y = y->data_mut<float>();
    return normalize(run, images, scale->data<float>(), bias->data<float>());
  }

 private:
  struct Images {
    int64_t batch, pixels, channels;
    const float* x;
    float* y;

    int64_t block() const { return std::max<int64_t>(1, kBlockFloats / channels); }
    int64_t blocks() const { return (pixels + block() - 1) / block(); }
    int64_t tile() const { return std::min(block(), std::max<int64_t>(1, kTileFloats / channels)); }
    int64_t count(int64_t b) const { return std::min(block(), pixels - b * block()); }
    int64_t at(int64_t image, int64_t b) const { return (image * pixels + b * block()) * channels; }
  };

  // out[i, c] = x[i, c] - mean[c]; `tile` has room for some rows of means.
  static void centre(const FolioKernels& kernels, const Images& images, int64_t rows,
                     const float* x, const float* mean, float* tile, float* out) {
    const int64_t c = images.channels;
    const int64_t together = images.tile();
    for (int64_t i = 0; i < together; ++i) std::copy_n(mean, c, tile + i * c);
    for (int64_t i = 0; i < rows; i += together) {
      const int64_t n = std::min(together, rows - i) * c;
      kernels.binary_f32[kFolioSub](n, x + i * c, 1, tile, 1, out + i * c);
    }
  }

  Status normalize(OpRun& run, const Images& images, const float* scale, const float* bias) const {
    const FolioKernels& kernels = run.kernels();
    const int64_t c = images.channels;
    const int64_t blocks = images.blocks();
    const auto all = static_cast<size_t>(images.batch * blocks * c);
    const auto each = static_cast<size_t>(images.batch * c);
    FOLIO_TRY(uint8_t * bytes, run.scratch((2 * all + 2 * each) * kFloat));
    auto* const means = reinterpret_cast<float*>(bytes);  // [batch, blocks, C]
    float* const squares = means + all;
    float* const mean = squares + all;  // [batch, C]
    float* const factor = mean + each;
    ThreadScratch scratch;
    const auto floats = static_cast<size_t>((images.block() + images.tile()) * c);
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, floats * kFloat, &scratch));
    const auto for_blocks = [&](auto&& body) {
      run.parallel().for_range(images.batch * blocks, 1, [&](int64_t begin, int64_t end) {
        const ThreadScratch::Block block(scratch);
        auto* const centred = reinterpret_cast<float*>(block.data());
        for (int64_t i = begin; i < end; ++i) {
          body(i, images.count(i % blocks), images.at(i / blocks, i % blocks), centred,
               centred + images.block() * c);
        }
      });
    };
    for_blocks([&](int64_t i, int64_t rows, int64_t at, float* centred, float* tile) {
      float* const of_block = means + i * c;
      std::fill_n(of_block, c, 0.0F);
      kernels.reduce_columns_f32[kFolioReduceSum](rows, c, images.x + at, c, of_block);
      const float share = 1.0F / static_cast<float>(rows);
      for (int64_t j = 0; j < c; ++j) of_block[j] *= share;
      centre(kernels, images, rows, images.x + at, of_block, tile, centred);
      std::fill_n(squares + i * c, c, 0.0F);
      kernels.reduce_columns_f32[kFolioReduceSquares](rows, c, centred, c, squares + i * c);
    });
    FOLIO_TRY(uint8_t * room, run.scratch(static_cast<size_t>(2 * c) * sizeof(double)));
    for (int64_t image = 0; image < images.batch; ++image) {
      join_blocks(images, means + image * blocks * c, squares + image * blocks * c, scale,
                  reinterpret_cast<double*>(room), mean + image * c, factor + image * c);
    }
    for_blocks([&](int64_t i, int64_t rows, int64_t at, float* centred, float* tile) {
      const int64_t first = i / blocks * c;
      centre(kernels, images, rows, images.x + at, mean + first, tile, centred);
      const float* const from = centred;
      const float* const by = factor + first;
      FolioWindowF32 args{};
      args.lines = args.taps = 1;
      args.pixels = rows;
      args.channels = args.x_step = args.y_step = c;
      args.x = &from;
      args.w = &by;
      args.bias = bias;
      args.y = images.y + at;
      const bool finishes = activation.set_in_kernel(&args);
      kernels.depthwise_f32(&args);
      if (!finishes) activation.apply(kernels, rows * c, images.y + at);
    });
    return Status::ok();
  }

  // Of one image, from the moments of its blocks: what is taken from each channel, and what it is
  // multiplied by. `moments`: room for means and squares of all pixels.
  void join_blocks(const Images& images, const float* means, const float* squares,
                   const float* scale, double* moments, float* mean, float* factor) const {
    const int64_t c = images.channels;
    double* const middle = moments;
    double* const spread = moments + c;
    std::fill_n(moments, 2 * c, 0.0);
    double count = 0;
    for (int64_t b = 0; b < images.blocks(); ++b, means += c, squares += c) {
      const auto more = static_cast<double>(images.count(b));
      const double share = more / (count + more);
      for (int64_t j = 0; j < c; ++j) {
        const double apart = means[j] - middle[j];
        spread[j] += squares[j] + apart * apart * count * share;
        middle[j] += apart * share;
      }
      count += more;
    }
    const int64_t together = c / attrs.groups(c);
    for (int64_t first = 0; first < c; first += together) {
      double sum = 0;
      for (int64_t j = first; j < first + together; ++j) sum += middle[j];
      const double of_group = sum / static_cast<double>(together);
      double all = 0;
      for (int64_t j = first; j < first + together; ++j) {
        const double apart = middle[j] - of_group;
        all += spread[j] + apart * apart * count;
      }
      const double variance = all / (count * static_cast<double>(together));
      const double inverse = 1 / std::sqrt(variance + static_cast<double>(attrs.epsilon));
      for (int64_t j = first; j < first + together; ++j) {
        mean[j] = static_cast<float>(of_group);
        factor[j] = static_cast<float>(inverse * static_cast<double>(scale[j]));
      }
    }
  }
};

template <bool kIsInstance>
Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcNorm>();
  FOLIO_TRY(kernel->attrs, parse_group_norm(build.attrs(), kIsInstance));
  FOLIO_TRY(const std::vector<float> parameters, build.attrs().get_floats("activation_params"));
  FOLIO_TRY(kernel->activation, parse_fused_activation(build.attrs(), parameters));
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

template <bool kIsInstance>
OpDef def_of(std::string_view type) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = type;
  def.min_inputs = 3;
  def.max_inputs = 3;
  def.infer = infer_group_norm;
  def.make = make<kIsInstance>;
  return def;
}

}  // namespace

[[gnu::cold]] void register_nhwc_normalization(OpRegistry& registry) {
  registry.add(def_of<true>("InstanceNormalization"));
  registry.add(def_of<false>("GroupNormalization"));
}

}  // namespace folio
