// ConvTranspose with channels last, and an activation.
//
// Source: as core/ops/conv_transpose.cc (ONNX operator spec, ConvTranspose); made by the pass
//         channels_last only, of one group and one or two spatial dims.
// Shapes: x [N, spatial..., C], w [C, M, kernel...], b [M] -> y [N, out..., M], or channels of an
//         image, which is the last input but for the first who writes it (op_nhwc_channels.h)
// Math:   y[o] = activation(b + sum over taps t of (W_t x[i])), where
//         i * stride + t * dilation = o + pad.
//         Lines of x [pixels, C] times W [C, taps * M] are what each pixel gives through each tap;
//         an output pixel is the sum of what reaches it, in the order of taps. Output pixels that
//         are a stride apart read neighbours: they are lines of the slot depthwise_f32, of weights
//         that are 1.
// Types:  float.
// Method: some channels of y at a time, and of wide images some columns, so that the products of a
//         few lines stay in L2: those that the next output line reaches are kept.
// Weights: [channels of y that are computed together][taps][channel] as columns of F32P16.
// Splits: by those parts and runs of output lines; bit-identical for any number of threads.
#include <algorithm>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/ops/op_activation.h"
#include "core/ops/op_broadcast.h"
#include "core/ops/op_conv_transpose.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_registry.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr int64_t kColumns = 256;             // of one pixel's products, about
constexpr int64_t kProductFloats = 64 << 10;  // of some lines: 256 KiB
constexpr size_t kFloat = sizeof(float);

// How many of M channels of y are computed together.
int64_t channels_together(int64_t taps, int64_t channels) {
  const int64_t panels = std::max<int64_t>(1, kColumns / taps / kPanel);
  return std::min(channels, panels * kPanel);
}

Status fill(const PackRequest& r, const void*, const Tensor& source, uint8_t* blob) {
  const int64_t channels = r.n / r.taps;
  const int64_t together = channels_together(r.taps, channels);
  auto* panel = reinterpret_cast<float*>(blob);
  for (int64_t first = 0; first < channels; first += together) {
    const int64_t block = std::min(together, channels - first);
    for (int64_t j = 0; j < r.taps * block; j += kPanel, panel += r.k * kPanel) {
      const int64_t columns = std::min(kPanel, r.taps * block - j);
      int64_t at[kPanel];
      for (int64_t i = 0; i < columns; ++i) {
        at[i] = (first + (j + i) % block) * r.taps + (j + i) / block;
      }
      std::memset(panel, 0, static_cast<size_t>(r.k * kPanel) * kFloat);
      for (int64_t p = 0; p < r.k; ++p) {
        const uint8_t* const row = source.raw() + static_cast<size_t>(p * r.n) * kFloat;
        for (int64_t i = 0; i < columns; ++i) {
          std::memcpy(panel + p * kPanel + i, row + static_cast<size_t>(at[i]) * kFloat, kFloat);
        }
      }
    }
  }
  return Status::ok();
}

Result<PackRequest> panels_request(Span<const int64_t> w) {
  uint64_t taps = 0;
  uint64_t columns = 0;
  if (!checked_count(w.subspan(2), &taps) || !checked_count(w.subspan(1), &columns) ||
      columns > uint64_t{1} << 40) {
    return invalid_argument("W has more elements than can be counted");
  }
  PackRequest request;
  set_panels_of(DType::kFloat, &request);
  request.k = w[0];
  request.n = static_cast<int64_t>(columns);
  request.row_stride = request.n;
  request.col_stride = 1;
  request.taps = static_cast<int64_t>(taps);
  const int64_t together = channels_together(request.taps, w[1]);
  const int64_t padded = w[1] / together * panel_columns(request.taps * together) +
                         panel_columns(request.taps * (w[1] % together));
  if (!checked_mul(static_cast<uint64_t>(padded) * kFloat, static_cast<uint64_t>(w[0]),
                   &request.bytes)) {
    return invalid_argument("W has more elements than can be counted");
  }
  request.fill = fill;
  request.replaces_source = true;  // run() reads W's shape alone then
  return request;
}

// Along one axis: the input lines that an output line reaches are [first(o), last(o)], and those of
// them that the image has count.
struct Axis {
  int64_t in, out, kernel, stride, dilation, pad;

  int64_t reach() const { return (kernel - 1) * dilation / stride + 1; }
  int64_t first(int64_t o) const {
    const int64_t from = o + pad - (kernel - 1) * dilation;
    return from <= 0 ? 0 : (from + stride - 1) / stride;
  }
  int64_t last(int64_t o) const { return std::min(in - 1, (o + pad) / stride); }
  // The input line that reaches o through this tap, or -1.
  int64_t line_of(int64_t o, int64_t tap) const {
    const int64_t at = o + pad - tap * dilation;
    return at < 0 || at % stride != 0 || at / stride >= in ? -1 : at / stride;
  }
};

Axis axis_of(const Window& w, int i) {
  return {w.in[i], w.out[i], w.kernel[i], w.stride[i], w.dilation[i], w.pad_begin[i]};
}

struct Args {
  const float* x;
  const float* packed;
  const float* bias;  // may be null
  float* y;
  int64_t y_pixel;  // floats to the next one
};

class Transposer {
 public:
  // `end`: the function that the sums' kernel applies.
  Transposer(const FolioKernels& kernels, const ConvSizes& s, const Args& args,
             const FolioWindowF32& end)
      : kernels_(kernels),
        s_(s),
        args_(args),
        end_(end),
        h_(axis_of(s.window, 1)),
        w_(axis_of(s.window, 2)),
        taps_(s.window.kernel_count()),
        together_(channels_together(taps_, s.c_out)),
        blocks_((s.c_out + together_ - 1) / together_) {
    const int64_t most = std::max<int64_t>(kProductFloats / (taps_ * together_), 16);
    // Pixels of x that a part is made of, and the columns of y that follow.
    const int64_t wide = std::max<int64_t>(most / h_.reach(), 8 * w_.reach());
    parts_ = std::max<int64_t>(1, (w_.in + wide - 1) / wide);
    part_out_ = (w_.out + parts_ - 1) / parts_;
    part_in_ = std::min(w_.in, (part_out_ - 1) / w_.stride + w_.reach() + 1);
    lines_ = std::max<int64_t>(most / std::max<int64_t>(part_in_, 1) - h_.reach() + 1, 1);
    lines_ = std::min(lines_, std::max<int64_t>(h_.in, 1));
    precision_ = product_precision(kernels, s.window.in_count(), taps_ * together_, s.c_in);
  }

  size_t scratch_bytes() const {
    return product_bytes() + gemm_bytes() + 2 * static_cast<size_t>(taps_) * sizeof(const float*) +
           static_cast<size_t>(together_) * kFloat;
  }

  void run(OpRun& run, ThreadScratch& scratch) const {
    const int threads = run.parallel().thread_count();
    const int64_t whole = s_.batch * blocks_ * parts_;
    const double macs = static_cast<double>(s_.batch * s_.window.in_count() * taps_) *
                        static_cast<double>(s_.c_in * s_.c_out);
    const int64_t wanted = thread_parts(macs / kThreadMacs, threads);
    // Each run of lines computes anew what the one before has, of as many lines as one reaches.
    const int64_t most_runs = std::max<int64_t>(1, h_.in / (4 * h_.reach()));
    const int64_t runs = std::clamp<int64_t>((wanted + whole - 1) / whole, 1, most_runs);
    const int64_t all = whole * runs;
    const int64_t grain = (all + wanted - 1) / wanted;
    run.parallel().for_range(all, grain, [&](int64_t begin, int64_t end) {
      const ThreadScratch::Block block(scratch);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t r = i % runs;
        const int64_t unit = i / runs;
        Part part;
        part.column = unit % parts_ * part_out_;
        part.columns = std::min(part_out_, w_.out - part.column);
        part.image = unit / parts_ % s_.batch;
        part.channel = unit / parts_ / s_.batch * together_;
        part.channels = std::min(together_, s_.c_out - part.channel);
        place(&part, block.data());
        if (part.columns > 0) walk(part, h_.out * r / runs, h_.out * (r + 1) / runs);
      }
    });
  }

 private:
  // A multiple of 64.
  size_t product_bytes() const {
    const int64_t pixels = (lines_ + h_.reach()) * part_in_;
    return align_up(static_cast<size_t>(pixels * taps_ * together_) * kFloat, 64);
  }

  // Of the kernel itself.
  size_t gemm_bytes() const {
    return folio_multiplies_parts(&kernels_, precision_) ? FOLIO_GEMM_SCRATCH : 0;
  }

  struct Part {
    int64_t image;
    int64_t channel, channels;    // of y
    int64_t column, columns;      // of y
    int64_t in_column, in_width;  // of x: what reaches them
    float* products;              // [lines][in_width][taps][channels]
    uint8_t* gemm;                // scratch, or null
    float* ones;
    const float** x;
    const float** w;
  };

  void place(Part* part, uint8_t* scratch) const {
    part->in_column = std::min(w_.first(part->column), w_.in);
    const int64_t last = w_.last(part->column + std::max<int64_t>(part->columns, 1) - 1);
    part->in_width = std::max<int64_t>(0, last + 1 - part->in_column);
    part->gemm = gemm_bytes() > 0 ? scratch + product_bytes() : nullptr;
    part->x = reinterpret_cast<const float**>(scratch + product_bytes() + gemm_bytes());
    part->w = part->x + taps_;
    part->products = reinterpret_cast<float*>(scratch);
    part->ones = reinterpret_cast<float*>(part->w + taps_);
    std::fill_n(part->ones, together_, 1.0F);
    std::fill_n(part->w, taps_, part->ones);
  }

  // Output lines [begin, end), in the order in which input lines reach them.
  void walk(const Part& part, int64_t begin, int64_t end) const {
    const int64_t line_floats = part.in_width * taps_ * part.channels;
    const int64_t stop = h_.last(end - 1) + 1;
    int64_t done = h_.first(begin);
    int64_t base = done;  // of the products
    for (int64_t o = begin; o < end; ++o) {
      while (done <= h_.last(o)) {
        const int64_t kept = std::clamp<int64_t>(h_.first(o), base, done);
        std::memmove(part.products, part.products + (kept - base) * line_floats,
                     static_cast<size_t>((done - kept) * line_floats) * kFloat);
        base = kept;
        const int64_t lines = std::min(lines_, stop - done);
        multiply(part, done, lines, part.products + (done - base) * line_floats);
        done += lines;
      }
      gather(part, o, base);
    }
  }

  void multiply(const Part& part, int64_t line, int64_t lines, float* products) const {
    const bool is_whole = part.in_width == w_.in;
    FolioGemmF32 gemm{};
    gemm.m = is_whole ? lines * w_.in : part.in_width;
    gemm.n = taps_ * part.channels;
    gemm.k = s_.c_in;
    gemm.a_row_stride = s_.c_in;
    gemm.a_col_stride = 1;
    gemm.b = args_.packed + part.channel / together_ * panel_columns(taps_ * together_) * s_.c_in;
    gemm.c_row_stride = gemm.n;
    gemm.alpha = 1.0F;
    gemm.precision = precision_;
    gemm.scratch = part.gemm;
    if (gemm.m == 0) return;
    for (int64_t i = 0; i < (is_whole ? 1 : lines); ++i) {
      const int64_t pixel = (part.image * h_.in + line + i) * w_.in + part.in_column;
      gemm.a = args_.x + pixel * s_.c_in;
      gemm.c = products + i * gemm.m * gemm.n;
      kernels_.gemm_f32(&gemm);
    }
  }

  // Line o of y, where the products begin with those of line `base`.
  void gather(const Part& part, int64_t o, int64_t base) const {
    const int64_t row = taps_ * part.channels;
    for (int64_t phase = 0; phase < std::min(w_.stride, part.columns); ++phase) {
      const int64_t pixels = (part.columns - phase + w_.stride - 1) / w_.stride;
      for (int64_t i = 0; i < pixels;) {
        int64_t taps = 0;
        const int64_t column = part.column + phase + i * w_.stride;
        const int64_t alike = columns_alike(column, pixels - i);
        for (int64_t u = 0; u < h_.kernel; ++u) {
          const int64_t line = h_.line_of(o, u);
          for (int64_t v = 0; line >= 0 && v < w_.kernel; ++v) {
            const int64_t from = w_.line_of(column, v);
            if (from < 0) continue;
            part.x[taps++] = part.products +
                             ((line - base) * part.in_width + from - part.in_column) * row +
                             (u * w_.kernel + v) * part.channels;
          }
        }
        FolioWindowF32 args = end_;
        args.lines = 1;
        args.pixels = alike;
        args.channels = part.channels;
        args.taps = taps;
        args.x = part.x;
        args.x_step = row;
        args.w = part.w;
        args.bias = args_.bias ? args_.bias + part.channel : nullptr;
        const int64_t pixel = (part.image * h_.out + o) * w_.out + column;
        args.y = args_.y + pixel * args_.y_pixel + part.channel;
        args.y_step = w_.stride * args_.y_pixel;
        kernels_.depthwise_f32(&args);
        i += alike;
      }
    }
  }

  // How many of `most` output columns, a stride apart, from this one on are reached through the
  // same taps.
  int64_t columns_alike(int64_t column, int64_t most) const {
    for (int64_t v = 0; v < w_.kernel; ++v) {
      const int64_t at = column + w_.pad - v * w_.dilation;
      if (at % w_.stride != 0) continue;
      const int64_t from = at / w_.stride;  // grows by one with each
      if (from < 0) most = std::min(most, -from);
      if (from >= 0 && from < w_.in) most = std::min(most, w_.in - from);
    }
    return most;
  }

  const FolioKernels& kernels_;
  const ConvSizes& s_;
  const Args& args_;
  const FolioWindowF32& end_;
  Axis h_, w_;
  int64_t taps_;
  int64_t together_;  // channels of y
  int64_t blocks_;
  int64_t parts_ = 1;
  int64_t part_out_ = 0;  // columns of y
  int64_t part_in_ = 0;   // columns of x at most
  int64_t lines_ = 1;     // of x that are multiplied at once
  int32_t precision_ = 0;
};

class NhwcConvTranspose final : public OpKernel {
 public:
  TransposeAttrs attrs;
  Activation activation;
  JoinPlace place;

  Status run(OpRun& run) const override {
    FOLIO_TRY(const Tensor* x, run.tensor(0, DType::kFloat));
    FOLIO_TRY(const Tensor* w, run.tensor(1, DType::kFloat));
    FOLIO_TRY(const Tensor* b, run.optional_tensor(2, DType::kFloat));
    if (x->rank() < 3) return invalid_argument("X ", x->shape().to_string(), " is too flat");
    const Shape image = channels_first(x->shape());
    FOLIO_TRY(const ConvSizes s, transpose_sizes(attrs, image, w->shape(), b));
    if (s.group != 1 || s.window.rank > 2) {
      return not_implemented("W ", w->shape().to_string(), " in ", s.group, " groups");
    }
    const Shape out = channels_last(s.out);
    FOLIO_TRY(const PlacedOutput placed, place_output(run, place, kTransposeInto, out));
    if (out.count() == 0) return Status::ok();
    Args args;
    args.x = x->data<float>();
    args.bias = b ? b->data<float>() : nullptr;
    args.y = placed.y;
    args.y_pixel = placed.y_step > 0 ? placed.y_step : s.c_out;
    FOLIO_TRY(args.packed, panels(run, *w));
    FolioWindowF32 end_of_sums{};
    const bool is_finished = activation.set_in_kernel(&end_of_sums);
    const Transposer transposer(run.kernels(), s, args, end_of_sums);
    ThreadScratch scratch;
    FOLIO_RETURN_IF_ERROR(ThreadScratch::make(run, transposer.scratch_bytes(), &scratch));
    transposer.run(run, scratch);
    if (is_finished) return Status::ok();
    const int64_t pixels = out.count() / s.c_out;
    run.parallel().for_range(pixels, rows_per_task(s.c_out), [&](int64_t begin, int64_t end) {
      activation.apply_rows(run.kernels(), end - begin, s.c_out, args.y + begin * args.y_pixel,
                            args.y_pixel);
    });
    return Status::ok();
  }

 private:
  static Result<const float*> panels(OpRun& run, const Tensor& w) {
    if (const PackedBlob* blob = run.packed(1)) return reinterpret_cast<const float*>(blob->data());
    FOLIO_TRY(const PackRequest request, panels_request(w.shape().dims()));
    FOLIO_TRY(uint8_t * bytes, run.scratch(request.bytes));
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, w, bytes));
    return reinterpret_cast<const float*>(bytes);
  }
};

Result<std::unique_ptr<OpKernel>> make(OpBuild& build) {
  auto kernel = std::make_unique<NhwcConvTranspose>();
  FOLIO_TRY(kernel->attrs, parse_conv_transpose(build.attrs()));
  FOLIO_TRY(const std::vector<float> parameters, build.attrs().get_floats("activation_params"));
  FOLIO_TRY(kernel->activation, parse_fused_activation(build.attrs(), parameters));
  FOLIO_TRY(kernel->place, parse_join_place(build.attrs()));
  if (build.has_input(kTransposeInto)) build.writes_into(kTransposeInto);
  const Initializer* w = build.initializer(1);
  if (w && w->dtype == DType::kFloat && w->shape.rank() >= 3 && w->shape.count() > 0) {
    FOLIO_TRY(const PackRequest request, panels_request(w->shape.dims()));
    build.request_pack(1, request);
  }
  return std::unique_ptr<OpKernel>(std::move(kernel));
}

}  // namespace

[[gnu::cold]] void register_nhwc_conv_transpose(OpRegistry& registry) {
  OpDef def;
  def.domain = kNhwcDomain;
  def.type = "ConvTranspose";
  def.min_inputs = 2;
  def.max_inputs = kTransposeInto + 1;
  def.infer = [](OpInfer& infer) { return infer_conv_transpose(infer, /*channels_last=*/true); };
  def.make = make;
  def.unaligned_inputs = 1U << 1;  // W is only ever packed
  registry.add(def);
}

}  // namespace folio
