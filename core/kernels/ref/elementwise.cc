// Unary and binary maps over f32, by libm where the C library has the function.
//
// The functions built from others (sigmoid, gelu, ...) are computed in double: that makes them
// right to half an ulp almost everywhere, so that ISA levels can be held to few ulp against them.
#include <math.h>

#include "core/kernels/ref/ref.h"

static float reciprocal(float x) { return 1.0f / x; }
static float relu(float x) { return x < 0.0f ? 0.0f : x; }
static float negate(float x) { return -x; }
static float sigmoid(float x) { return static_cast<float>(1.0 / (1.0 + exp(-double{x}))); }

// glibc's functions of floats are off by up to 2.5 ulp.
template <double (*kFunction)(double)>
static float narrowed(float x) {
  return static_cast<float>(kFunction(double{x}));
}

static double sigmoid_f64(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

static float gelu_erf(float x) {
  const double inv_sqrt2 = 0.70710678118654752;
  // erfc keeps the digits of the small left tail.
  return static_cast<float>(0.5 * x * erfc(-x * inv_sqrt2));
}

static float gelu_tanh(float x) {
  const double sqrt_2_over_pi = 0.79788456080286536;
  const double wide = x;
  return static_cast<float>(0.5 * wide *
                            (1.0 + tanh(sqrt_2_over_pi * (wide + 0.044715 * wide * wide * wide))));
}

static float silu(float x) { return static_cast<float>(x / (1.0 + exp(-double{x}))); }

static float softplus(float x) {
  const double wide = x;
  return static_cast<float>((wide > 0 ? wide : 0) + log1p(exp(-fabs(wide)))) + (x != x ? x : 0);
}

static float hard_swish(float x) {
  float gate = x * (1.0f / 6.0f) + 0.5f;
  gate = gate < 0.0f ? 0.0f : gate;
  gate = gate > 1.0f ? 1.0f : gate;
  return x * gate;
}

static float sign(float x) { return x != x ? x : static_cast<float>((x > 0) - (x < 0)); }
static float softsign(float x) { return static_cast<float>(x / (1.0 + fabs(double{x}))); }
static float mish(float x) {
  const double wide = x;
  return static_cast<float>(x * tanh((x > 0 ? wide : 0) + log1p(exp(-fabs(wide)))));
}

static float leaky_relu(float x, float p, float) { return x < 0 ? p * x : x; }
static float thresholded_relu(float x, float p, float) { return x > p ? x : 0; }
static float affine(float x, float p, float q) { return p * x + q; }
static float hard_sigmoid(float x, float p, float q) {
  const float v = p * x + q;
  return v < 0 ? 0 : v > 1 ? 1 : v;
}
static float shrink(float x, float p, float q) { return x < -p ? x + q : x > p ? x - q : 0; }
static float elu(float x, float p, float) {
  return x < 0 ? static_cast<float>(p * expm1(double{x})) : x;
}
static float selu(float x, float p, float q) {
  return x <= 0 ? static_cast<float>(double{q} * p * expm1(double{x})) : q * x;
}
static float celu(float x, float p, float) {
  return x < 0 ? static_cast<float>(p * expm1(double{x} / p)) : x;
}

static float prelu(float a, float b) { return a < 0 ? b * a : a; }
static float add(float a, float b) { return a + b; }
static float sub(float a, float b) { return a - b; }
static float mul(float a, float b) { return a * b; }
static float div(float a, float b) { return a / b; }
static float min(float a, float b) { return a != a || a < b ? a : b; }
static float max(float a, float b) { return a != a || a > b ? a : b; }

template <float (*kFunction)(float)>
static void map1(int64_t n, const float* x, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = kFunction(x[i]);
}

template <double (*kFunction)(double)>
static void map1_f64(int64_t n, const double* x, double* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = kFunction(x[i]);
}

template <float (*kFunction)(float, float, float)>
static void shaped(int64_t n, const float* x, float p, float q, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = kFunction(x[i], p, q);
}

template <float (*kFunction)(float, float)>
static void map2(int64_t n, const float* a, int64_t a_step, const float* b, int64_t b_step,
                 float* y) {
  // A repeated operand is read once: it may be the first element of y.
  const float a0 = n > 0 && a_step == 0 ? *a : 0.0f;
  const float b0 = n > 0 && b_step == 0 ? *b : 0.0f;
  for (int64_t i = 0; i < n; ++i) {
    y[i] = kFunction(a_step == 0 ? a0 : a[i], b_step == 0 ? b0 : b[i]);
  }
}

static void clip_f32__ref(int64_t n, const float* x, float lo, float hi, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i];
    v = v < lo ? lo : v;
    y[i] = v > hi ? hi : v;
  }
}

void fill_elementwise__ref(FolioKernels* table) {
  FolioUnaryF32* unary = table->unary_f32;
  unary[kFolioExp] = map1<expf>;
  unary[kFolioLog] = map1<logf>;
  unary[kFolioTanh] = map1<narrowed<tanh>>;
  unary[kFolioSigmoid] = map1<sigmoid>;
  unary[kFolioErf] = map1<erff>;
  unary[kFolioRelu] = map1<relu>;
  unary[kFolioSqrt] = map1<sqrtf>;
  unary[kFolioAbs] = map1<fabsf>;
  unary[kFolioNeg] = map1<negate>;
  unary[kFolioReciprocal] = map1<reciprocal>;
  unary[kFolioFloor] = map1<floorf>;
  unary[kFolioCeil] = map1<ceilf>;
  unary[kFolioRound] = map1<rintf>;  // no rounding mode but to nearest, ties to even, is ever set
  unary[kFolioSin] = map1<sinf>;
  unary[kFolioCos] = map1<cosf>;
  unary[kFolioGeluErf] = map1<gelu_erf>;
  unary[kFolioGeluTanh] = map1<gelu_tanh>;
  unary[kFolioSilu] = map1<silu>;
  unary[kFolioSoftplus] = map1<softplus>;
  unary[kFolioHardSwish] = map1<hard_swish>;
  unary[kFolioSign] = map1<sign>;
  unary[kFolioSoftsign] = map1<softsign>;
  unary[kFolioMish] = map1<mish>;
  unary[kFolioTan] = map1<narrowed<tan>>;
  unary[kFolioAsin] = map1<narrowed<asin>>;
  unary[kFolioAcos] = map1<narrowed<acos>>;
  unary[kFolioAtan] = map1<narrowed<atan>>;
  unary[kFolioSinh] = map1<narrowed<sinh>>;
  unary[kFolioCosh] = map1<narrowed<cosh>>;
  unary[kFolioAsinh] = map1<narrowed<asinh>>;
  unary[kFolioAcosh] = map1<narrowed<acosh>>;
  unary[kFolioAtanh] = map1<narrowed<atanh>>;

  table->unary_f64[kFolioExpF64] = map1_f64<exp>;
  table->unary_f64[kFolioLogF64] = map1_f64<log>;
  table->unary_f64[kFolioTanhF64] = map1_f64<tanh>;
  table->unary_f64[kFolioSigmoidF64] = map1_f64<sigmoid_f64>;
  table->unary_f64[kFolioFloorF64] = map1_f64<floor>;
  table->unary_f64[kFolioCeilF64] = map1_f64<ceil>;
  table->unary_f64[kFolioRoundF64] = map1_f64<rint>;

  FolioShapedF32* of_two = table->shaped_f32;
  of_two[kFolioLeakyRelu] = shaped<leaky_relu>;
  of_two[kFolioThresholdedRelu] = shaped<thresholded_relu>;
  of_two[kFolioHardSigmoid] = shaped<hard_sigmoid>;
  of_two[kFolioAffine] = shaped<affine>;
  of_two[kFolioShrink] = shaped<shrink>;
  of_two[kFolioElu] = shaped<elu>;
  of_two[kFolioSelu] = shaped<selu>;
  of_two[kFolioCelu] = shaped<celu>;

  FolioBinaryF32* binary = table->binary_f32;
  binary[kFolioAdd] = map2<add>;
  binary[kFolioSub] = map2<sub>;
  binary[kFolioMul] = map2<mul>;
  binary[kFolioDiv] = map2<div>;
  binary[kFolioMin] = map2<min>;
  binary[kFolioMax] = map2<max>;
  binary[kFolioPow] = map2<powf>;
  binary[kFolioPRelu] = map2<prelu>;
  table->clip_f32 = clip_f32__ref;
}
