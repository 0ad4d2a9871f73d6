#include "core/ops/op_nhwc_conv.h"

#include "core/base/checked_math.h"
#include "core/ops/op_gemm.h"
#include "core/ops/op_gemm_half.h"
#include "core/ops/op_move.h"
#include "core/ops/op_nhwc_channels.h"
#include "core/ops/op_nhwc_planes.h"
#include "core/ops/op_nhwc_product.h"
#include "core/ops/op_nhwc_window.h"
#include "core/ops/op_scratch.h"

namespace folio {
namespace {

constexpr int64_t kPanel = FOLIO_F32P16_COLUMNS;
constexpr size_t kFloat = sizeof(float);
constexpr int64_t kMostPlanes = 8;    // of an image that is read as it lies
constexpr int64_t kFewestTaps = 3;    // of a row of the window then: they are one piece
constexpr int64_t kEnoughBlocks = 4;  // of columns, to keep all threads at work

}  // namespace

bool adds_in_place(Span<const int64_t> w, int64_t group) {
  uint64_t k = 0;
  return !is_window_conv(w, group) && checked_count(w.subspan(1), &k) && k <= FOLIO_GEMM_ONE_SUM;
}

bool leaves_room(Span<const int64_t> w, int64_t group) {
  // Few filters may be sums of neighbours, or planes, which write all of y.
  return is_window_conv(w, group) || w[0] >= kPanel;
}

bool fits_planes(Span<const int64_t> w, const ConvAttrs& attrs) {
  const AxisNumbers& dilations = attrs.window.dilations;
  return attrs.group == 1 && w[1] <= kMostPlanes && w[w.size() - 1] >= kFewestTaps &&
         (dilations.empty() || dilations[dilations.size() - 1] == 1);
}

void add_pixels(const FolioKernels& kernels, int64_t pixels, int64_t n, const float* z,
                int64_t z_step, float* y, int64_t y_step) {
  const auto add = kernels.binary_f32[kFolioAdd];
  if (y_step == n && z_step == n) return add(pixels * n, y, 1, z, 1, y);
  for (int64_t i = 0; i < pixels; ++i, y += y_step, z += z_step) add(n, y, 1, z, 1, y);
}

namespace {

// All of W for this call. Bits do not depend on whether this was done.
Status pack_now(OpRun& run, const ConvSizes& s, NhwcConvArgs* args) {
  const Tensor& w = *args->weights;
  FOLIO_TRY(const PackRequest request,
            nhwc_conv_request(run.kernels(), w.shape().dims(), s.group, args->is_planes));
  FOLIO_TRY(uint8_t * bytes, run.scratch(request.bytes));
  FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, w, bytes));
  args->packed = reinterpret_cast<const float*>(bytes);
  return Status::ok();
}

// The filters one after the other, for sums of neighbours: they are small.
Status turn_filters(OpRun& run, const ConvSizes& s, NhwcConvArgs* args) {
  uint64_t bytes = 0;
  if (!checked_mul<uint64_t>(static_cast<uint64_t>(s.k()), static_cast<uint64_t>(s.c_out) * kFloat,
                             &bytes)) {
    return invalid_argument("W has more elements than can be counted");
  }
  FOLIO_TRY(uint8_t * turned, run.scratch(bytes));
  run.kernels().transpose_b32(s.k(), s.c_out, args->packed, kPanel, turned, s.k());
  args->turned = reinterpret_cast<const float*>(turned);
  return Status::ok();
}

// 1x1 without stride or border, weights of 16 bits: plain products.
Status run_pointwise_halves(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args) {
  FolioGemmF32 gemm{};
  gemm.m = s.batch * s.window.out_count();
  gemm.n = s.c_out;
  gemm.k = s.c_in;
  gemm.a_row_stride = args.x_pixel(s);
  gemm.a_col_stride = 1;
  gemm.c_row_stride = args.y_pixel(s);
  gemm.addend_row_stride = args.z_pixel(s);
  gemm.alpha = 1.0F;
  gemm.precision = product_precision(run.kernels(), s.window.out_count(), gemm.n, gemm.k);
  const Activation* const function =
      args.activation.set_in_kernel(&gemm) ? nullptr : &args.activation;
  GemmB all;
  all.dtype = args.weights->dtype();
  all.data = args.weights->raw();
  all.row_stride = 1;
  all.col_stride = gemm.k;
  for (int64_t g = 0; g < s.group; ++g) {
    const int64_t channel = g * s.c_out;
    gemm.a = args.x + g * s.c_in;
    gemm.c = args.y + channel;
    gemm.col_scale = args.scale ? args.scale + channel : nullptr;
    gemm.col_bias = args.bias ? args.bias + channel : nullptr;
    gemm.addend = args.z ? args.z + channel : nullptr;
    GemmB b = all.from_column(channel, gemm.k);
    if (args.packed_halves)
      b.packed_halves =
          args.packed_halves + 2 * g * panel_columns(s.c_out) * panel_rows(b.dtype, gemm.k);
    FOLIO_RETURN_IF_ERROR(gemm_halves(run, gemm, b, function));
  }
  if (!args.behind) return Status::ok();
  const int64_t z = args.z_pixel(s);
  const int64_t y = args.y_pixel(s);
  run.parallel().for_range(gemm.m, rows_per_task(y), [&](int64_t begin, int64_t end) {
    add_pixels(run.kernels(), end - begin, s.group * s.c_out, args.behind + begin * z, z,
               args.y + begin * y, y);
  });
  return Status::ok();
}

}  // namespace

Result<NhwcConvForm> parse_nhwc_conv(const Attributes& attrs) {
  NhwcConvForm form;
  FOLIO_TRY(form.attrs, parse_conv(attrs));
  FOLIO_TRY(const std::vector<float> parameters, attrs.get_floats("activation_params"));
  FOLIO_TRY(form.activation, parse_fused_activation(attrs, parameters));
  FOLIO_TRY(const int64_t planes, attrs.get_int(kPlanesAttribute, 0));
  form.is_planes = planes != 0;
  FOLIO_TRY(form.x_at, parse_first_channel(attrs, kXAtAttribute));
  if (form.is_planes && form.x_at >= 0) return invalid_graph("some channels of planes");
  form.has_half_w = has_half_weights(attrs);
  return form;
}

Status request_nhwc_conv(OpBuild& build, int w_input, const NhwcConvForm& form) {
  const Initializer* w = build.initializer(w_input);
  if (!w || !fits_nhwc_conv(w->shape.dims(), form.attrs.group)) return Status::ok();
  const bool is_half_w =
      form.has_half_w && is_half(w->dtype) && !is_window_conv(w->shape.dims(), form.attrs.group);
  if (w->dtype != DType::kFloat && !is_half_w) return Status::ok();
  FOLIO_TRY(PackRequest request, nhwc_conv_request(build.kernels(), w->shape.dims(),
                                                   form.attrs.group, form.is_planes, w->dtype));
  request.replaces_source = true;  // run() reads W's shape alone then
  if (request.bytes > 0) build.request_pack(w_input, request);
  return Status::ok();
}

Result<ConvSizes> read_nhwc_conv(const OpRun& run, const NhwcConvForm& form, const Shape& x,
                                 int w_input, int b_input, int scale_input, NhwcConvArgs* args) {
  FOLIO_TRY(args->weights, weights_input(run, w_input, DType::kFloat, form.has_half_w));
  const Shape& w = args->weights->shape();
  const bool is_half_w = is_half(args->weights->dtype());
  if (is_half_w && is_window_conv(w.dims(), form.attrs.group)) {
    return not_implemented("W of ", dtype_name(args->weights->dtype()), " in small groups");
  }
  const Tensor* bias = nullptr;
  if (run.has_input(b_input)) {
    FOLIO_TRY(bias, run.tensor(b_input, DType::kFloat));
    args->bias = bias->data<float>();
  }
  Shape image = form.is_planes ? x : channels_first(x);
  if (form.x_at >= 0) {
    FOLIO_TRY(const Shape part, channels_of(x, form.x_at, w, form.attrs.group));
    image = channels_first(part);
    args->x_step = x[x.rank() - 1];
  }
  FOLIO_TRY(const ConvSizes sizes, conv_sizes(form.attrs, image, w, bias));
  if (form.is_planes && !fits_planes(w.dims(), form.attrs)) {
    return not_implemented("W ", w.to_string(), " with planes side by side");
  }
  args->is_planes = form.is_planes;
  if (scale_input >= 0 && run.has_input(scale_input)) {
    FOLIO_TRY(const Tensor* scale, run.tensor(scale_input, DType::kFloat));
    if (scale->count() != w[0] || is_window_conv(w.dims(), form.attrs.group)) {
      return invalid_argument("scale ", scale->shape().to_string(), " does not fit W ",
                              w.to_string());
    }
    args->scale = scale->data<float>();
  }
  if (const PackedBlob* packed = run.packed(w_input)) {
    if (form.packs_transformed) {
      args->transformed = reinterpret_cast<const float*>(packed->data());
    } else if (is_half_w) {
      args->packed_halves = packed->data();
    } else {
      args->packed = reinterpret_cast<const float*>(packed->data());
    }
  }
  args->activation = form.activation;
  return sizes;
}

Status run_nhwc_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& given) {
  NhwcConvArgs args = given;
  const bool is_window = is_window_conv(args.weights->shape().dims(), s.group);
  const int threads = run.parallel().thread_count();
  const bool widens = is_half(args.weights->dtype());
  if (!args.packed && !widens &&
      (is_window || NhwcProduct(s, run.kernels(), args, threads).blocks() < kEnoughBlocks)) {
    FOLIO_RETURN_IF_ERROR(pack_now(run, s, &args));
  }
  if (is_window) return run_window_rows(run, s, args);
  const bool has_few = fits_few_planes(s, args);
  if (has_few || takes_dots(s, args)) FOLIO_RETURN_IF_ERROR(turn_filters(run, s, &args));
  if (has_few) return run_few_planes(run, s, args);
  const NhwcProduct product(s, run.kernels(), args, threads);
  if (widens && !product.reads_halves() && is_pointwise(s.window) && !args.is_planes) {
    return run_pointwise_halves(run, s, args);
  }
  return run_nhwc_chunks(run, product, product.chunks(), product.grain());
}

Status prepare_nhwc_conv(OpRun& run, const ConvSizes& s, NhwcConvArgs* args) {
  if (!args->packed) FOLIO_RETURN_IF_ERROR(pack_now(run, s, args));
  return takes_dots(s, *args) ? turn_filters(run, s, args) : Status::ok();
}

}  // namespace folio
