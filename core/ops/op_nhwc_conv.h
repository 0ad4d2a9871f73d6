// Convolution of floats with channels last.
//
// Math:    Y [pixels, M] = X [pixels, K] * W [K, M], K = taps * C/g, tap by tap: the rows of A are
//          pixels, whose pieces, one for each tap, are read where they lie in x.
// Method:  1x1 without stride or border: x is A. Few channels: the taps of one row of the window
//          are one piece (they are neighbours in x; dilated ones of a line are pieces each), a line
//          of pixels at a time; an image of few channels may have them first, where K is channel by
//          channel. Outside of the image pieces are zeros. So few filters that most of a panel
//          would be empty: sums of neighbours in the pieces (the slot dots_f32). A filter over one
//          channel each (depthwise): rows of the slot depthwise_f32.
// Weights: packed before; else some columns at a time, which all pixels meet while they are in the
//          cache: bit-identical. float16 and bfloat16 (not of depthwise filters), packed or not,
//          are widened so.
// Memory:  a thread has pointers and border pieces of a tile of pixels, and those columns.
// Splits:  by shape only; bit-identical for any number of threads.
#pragma once

#include "core/ops/op_activation.h"
#include "core/ops/op_conv.h"
#include "core/ops/op_nhwc_weights.h"

namespace folio {

// Inputs of a Conv behind x, weights and bias: z, scale, and the image of which it writes channels.
// x and z may be some channels of an image (op_nhwc_channels.h).
inline constexpr int kConvZ = 3;
inline constexpr int kConvScale = 4;
inline constexpr int kConvInto = 5;

// Whether run_nhwc_conv() can write y where z is.
bool adds_in_place(Span<const int64_t> w, int64_t group);
// Whether it can leave room between the pixels of y for what others write there.
bool leaves_room(Span<const int64_t> w, int64_t group);

// An attribute of 1: x is [N, C, spatial...], and is read as it lies.
inline constexpr std::string_view kPlanesAttribute = "planes";
// Whether weights [M, C, kernel...] take such an image: few channels, and rows of taps side by
// side.
bool fits_planes(Span<const int64_t> w, const ConvAttrs& attrs);

// What the attributes of Conv and FusedConv say.
struct NhwcConvForm {
  ConvAttrs attrs;
  Activation activation;
  bool is_planes = false;
  bool is_winograd = false;        // computes so (op_winograd.h)
  bool packs_transformed = false;  // and has its weights packed so
  bool has_half_w = false;
  int64_t x_at = -1;  // the first of the channels of x that it reads; -1: all of them
  int64_t first_channel() const { return x_at < 0 ? 0 : x_at; }
};
Result<NhwcConvForm> parse_nhwc_conv(const Attributes& attrs);

// Asks for W packed so, if it is a constant that fits.
Status request_nhwc_conv(OpBuild& build, int w_input, const NhwcConvForm& form);

// y = activation(scale * (W x) + bias + z) + behind
struct NhwcConvArgs {
  const float* x = nullptr;
  const Tensor* weights = nullptr;
  const float* packed = nullptr;           // as nhwc_conv_request() has it, or null
  const uint8_t* packed_halves = nullptr;  // the same of halves, or null
  const float* transformed = nullptr;      // as winograd_request() has it, or null
  const float* turned = nullptr;  // [M, K] of few filters, or null: run_nhwc_conv() sets it
  const float* scale = nullptr;   // of each channel, or null: ones; not of depthwise filters
  const float* bias = nullptr;    // may be null
  const float* z = nullptr;       // as y; may be null, as may
  const float* behind = nullptr;  // this, which has the steps of z; not of planes
  bool is_planes = false;
  Activation activation;
  float* y = nullptr;
  // Floats from a pixel to the next; 0: of its channels.
  int64_t x_step = 0;
  int64_t z_step = 0;
  int64_t y_step = 0;

  int64_t x_pixel(const ConvSizes& s) const { return x_step > 0 ? x_step : s.group * s.c_in; }
  int64_t z_pixel(const ConvSizes& s) const { return z_step > 0 ? z_step : s.group * s.c_out; }
  int64_t y_pixel(const ConvSizes& s) const { return y_step > 0 ? y_step : s.group * s.c_out; }
};

// y[i] += z[i] of `pixels` pixels of n floats.
void add_pixels(const FolioKernels& kernels, int64_t pixels, int64_t n, const float* z,
                int64_t z_step, float* y, int64_t y_step);

// What every form has: weights, packed, scale (input -1: none) and bias, checked against x as it
// lies; of args->x the steps only.
Result<ConvSizes> read_nhwc_conv(const OpRun& run, const NhwcConvForm& form, const Shape& x,
                                 int w_input, int b_input, int scale_input, NhwcConvArgs* args);

Status run_nhwc_conv(OpRun& run, const ConvSizes& s, const NhwcConvArgs& args);

// What has to be there before some lines of it are computed: packed weights. In scratch of the run.
Status prepare_nhwc_conv(OpRun& run, const ConvSizes& s, NhwcConvArgs* args);

}  // namespace folio
