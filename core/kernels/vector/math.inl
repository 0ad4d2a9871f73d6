/* exp, log, tanh, sigmoid, erf and what is made of them, on one vector; see kernels.h for accuracy.
 *
 * Coefficients: minimax in the stated weight, rounded to f32 from the lowest degree up with the
 * rest fitted again (tools/kernel_bench/fit.py, November 2026). Coefficients are f32 throughout, so
 * the bound of a function is the fit's error plus the roundings of the last two steps. */

/* (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2, relative to e^r: 2^-28.2. kSign = -1: of -r. */
template <int kSign = 1>
VFN V v_exp_tail(V r) {
  V p = v_set1(0x1.6a4744p-10f);
  p = v_fma(p, r, v_set1(kSign * 0x1.1239a2p-7f));
  p = v_fma(p, r, v_set1(0x1.5558b6p-5f));
  p = v_fma(p, r, v_set1(kSign * 0x1.555492p-3f));
  return v_fma(p, r, v_set1(0x1.fffffcp-2f));
}

/* x = n ln(2) + r, n integral. ln(2) in two parts: the first product cancels exactly under fma. */
VFN V v_exp_reduce(V x, V* n) {
  *n = v_round(v_mul(x, v_set1(0x1.715476p+0f)));
  const V r = v_fnma(*n, v_set1(0x1.62e43p-1f), x);
  return v_fnma(*n, v_set1(-0x1.05c61p-29f), r);
}

VFN V v_abs(V x) { return v_from_bits(vi_and(vi_from_bits(x), vi_set1(0x7fffffff))); }

/* Of x below 89 or NaN. Below -104 the result rounds to 0. That is put there instead of computed: a CPU
 * takes 30 times as long to round away a number that is smaller than normal, and masks make many. */
VFN V v_exp_bounded(V x) {
  V n;
  const V r = v_exp_reduce(x, &n);
  const V p = v_add(v_fma(v_mul(r, r), v_exp_tail(r), r), v_set1(1.0f));
  if (!kScalesAtOnce && !v_any(v_lt(v_set1(87.0f), v_abs(x)))) return v_scale2_normal(p, n);
  return v_scale2_unless(v_lt(x, v_set1(-104.0f)), p, n);
}

/* Beyond 89 the result is inf all the same; a NaN passes as the second operand. */
VFN V v_exp(V x) { return v_exp_bounded(v_min(v_set1(89.0f), x)); }

/* x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)):
 * log(1 + f) = f - f^2 / 2 + f^3 p(f), relative 2^-30.3; plus e ln(2) in two parts. */
VFN V v_log(V x) {
  const VM tiny = v_lt(x, v_set1(0x1p-126f));
  const V normal = v_select(tiny, v_mul(x, v_set1(0x1p23f)), x);
  const VI shifted = vi_sub(vi_from_bits(normal), vi_from_bits(v_set1(0x1.6a09e6p-1f)));
  V e = v_from_int(vi_shift_right_signed(shifted, 23));
  e = v_sub(e, v_select(tiny, v_set1(23.0f), v_zero()));
  const VI mantissa =
      vi_add(vi_and(shifted, vi_set1(0x007fffff)), vi_from_bits(v_set1(0x1.6a09e6p-1f)));
  const V f = v_sub(v_from_bits(mantissa), v_set1(1.0f));
  V p = v_set1(0x1.1484e8p-4f);
  p = v_fma(p, f, v_set1(-0x1.de1004p-4f));
  p = v_fma(p, f, v_set1(0x1.e6c03ep-4f));
  p = v_fma(p, f, v_set1(-0x1.fc26acp-4f));
  p = v_fma(p, f, v_set1(0x1.233b78p-3f));
  p = v_fma(p, f, v_set1(-0x1.555c4ep-3f));
  p = v_fma(p, f, v_set1(0x1.99a478p-3f));
  p = v_fma(p, f, v_set1(-0x1.000006p-2f));
  p = v_fma(p, f, v_set1(0x1.555548p-2f));
  const V f2 = v_mul(f, f);
  V tail = v_fma(v_mul(f2, f), p, v_mul(e, v_set1(-0x1.05c61p-29f)));
  tail = v_fma(f2, v_set1(-0.5f), tail);
  V y = v_fma(e, v_set1(0x1.62e43p-1f), v_add(f, tail));
  const V inf = v_set1(__builtin_inff());
  y = v_select(v_eq(x, inf), inf, y);
  y = v_select(v_eq(x, v_zero()), v_set1(-__builtin_inff()), y);
  y = v_select(v_lt(x, v_zero()), v_set1(__builtin_nanf("")), y);
  return v_select(v_is_nan(x), x, y);
}

VFN V v_neg(V x) { return v_from_bits(vi_xor(vi_from_bits(x), vi_set1(INT32_MIN))); }
VFN V v_with_sign_of(V magnitude, V x) {
  return v_from_bits(vi_or(vi_from_bits(magnitude), vi_and(vi_from_bits(x), vi_set1(INT32_MIN))));
}

/* a / (b + c) for 0 <= a <= b + c <= 2^60, b a constant, with what rounding b + c loses: the first
 * quotient is corrected by what it leaves of a, a - q b - q c. */
VFN V v_div_by_sum(V a, V b, V c) {
  const V y = v_reciprocal_near(v_add(b, c));
  const V q = v_mul(a, y);
  return v_fma(v_fnma(q, c, v_fnma(q, b, a)), y, q);
}

/* e^x - 1 without cancellation, |x| < 87: x = n ln(2) + r, e^x - 1 = 2^n (e^r - 1) + (2^n - 1). */
VFN V v_exp_less_one(V x) {
  V n;
  const V r = v_exp_reduce(x, &n);
  const V power = v_scale2_normal(v_set1(1.0f), n);
  const V grown = v_fma(v_mul(r, r), v_exp_tail(r), r);
  return v_fma(power, grown, v_sub(power, v_set1(1.0f)));
}

/* tanh(x) = (e^2x - 1) / (e^2x + 1). From 9.02 on the result rounds to 1; of 20 it is computed as 1,
 * too. */
VFN V v_tanh(V x) {
  const V a = v_min(v_set1(20.0f), v_abs(x));
  const V less_one = v_exp_less_one(v_add(a, a));
  return v_with_sign_of(v_div_by_sum(less_one, v_set1(2.0f), less_one), x);
}

/* exp(-|x|); from 30 on as of 30, which added to 1 is lost all the same. */
VFN V v_exp_beside_one(V x) {
  const VI bits = vi_from_bits(v_min(v_set1(30.0f), x));
  return v_exp_bounded(v_from_bits(vi_or(bits, vi_set1(INT32_MIN))));
}

/* exp(-x) for x in [-87, 87], where nothing is smaller than normal, or the nearer end, or NaN:
 * -x = n ln(2) + r, and adding 1.5 2^23 rounds to n. */
VFN V v_exp_of_minus(V x) {
  const V bound = v_set1(87.0f);
  x = v_max(v_neg(bound), v_min(bound, x));
  const V magic = v_set1(0x1.8p23f);
  const V n = v_sub(v_fma(x, v_set1(-0x1.715476p+0f), magic), magic);
  const V minus_r = v_fma(n, v_set1(-0x1.05c61p-29f), v_fma(n, v_set1(0x1.62e43p-1f), x));
  const V tail = v_exp_tail<-1>(minus_r);
  const V p = v_sub(v_set1(1.0f), v_fnma(v_mul(minus_r, minus_r), tail, minus_r));
  return v_scale2_normal(p, n);
}

/* 1 / (1 + e) for e in [0, 2^126], with what 1 + e loses. */
VFN V v_reciprocal_of_one_and(V e) {
  const V one = v_set1(1.0f);
  const V near = v_reciprocal_near(v_add(one, e));
  return v_fma(v_fnma(near, e, v_sub(one, near)), near, near);
}

/* x / (1 + exp(-u)), u as v_exp_of_minus() takes it. */
VFN V v_gated(V x, V u) {
  const V e = v_exp_of_minus(u);
  if (kDividesAtOnce) return v_div(x, v_add(v_set1(1.0f), e));
  return v_mul(x, v_reciprocal_of_one_and(e));
}

/* 1 / (1 + exp(-x)); below -87, where exp(-x) would leave the range, that is exp(x). */
VFN V v_sigmoid(V x) {
  const V y = v_reciprocal_of_one_and(v_exp_of_minus(x));
  const VM low = v_lt(x, v_set1(-87.0f));
  return v_any(low) ? v_select(low, v_exp(x), y) : y;
}

/* Column i: coefficients of erf(i / 2 + t), 0 <= t < 1/2, of degree 0 to 7, relative 2^-25; for
 * i = 0 of erf(t) - t, whose leading coefficient rounds to a smaller part of erf(t): 2^-26.3. */
static const float kErfTable[8][8] = {
    {0x0.0p+0f, 0x1.0a7ef6p-1f, 0x1.af767ap-1f, 0x1.eea556p-1f, 0x1.fd9ae2p-1f, 0x1.ffcaa8p-1f, 0x1.fffd1ap-1f, 0x1.ffffe8p-1f},
    {0x1.06ebaap-3f, 0x1.c1ef98p-1f, 0x1.a912a0p-2f, 0x1.e7200ep-4f, 0x1.5289b8p-6f, 0x1.1e3c82p-9f, 0x1.2d50bap-13f, 0x1.800c72p-35f},
    {-0x1.494cbap-19f, -0x1.c1e2dcp-2f, -0x1.a92786p-2f, -0x1.6d2452p-3f, -0x1.517ebap-5f, -0x1.7073aep-8f, -0x1.251588p-11f, 0x1.41ebc4p-13f},
    {-0x1.8114a8p-2f, -0x1.2d2cf2p-3f, 0x1.1d59dap-3f, 0x1.199ebcp-3f, 0x1.7dc182p-5f, 0x1.56e926p-7f, 0x1.454eb2p-9f, -0x1.095de6p-9f},
    {-0x1.91bd26p-11f, 0x1.7db89ap-3f, 0x1.05d5a2p-4f, -0x1.332dfep-5f, -0x1.9d7fd2p-6f, -0x1.531f48p-6f, -0x1.5edc26p-7f, 0x1.809afcp-7f},
    {0x1.de0480p-4f, -0x1.9322b0p-10f, -0x1.c25846p-5f, -0x1.24c792p-5f, -0x1.beb6a8p-7f, 0x1.542db0p-5f, 0x1.e083d0p-6f, -0x1.1aed80p-5f},
    {-0x1.3909d6p-7f, -0x1.4ca4e4p-5f, -0x1.98750ap-7f, 0x1.9988eep-5f, 0x1.3b4204p-5f, -0x1.bcdfd4p-5f, -0x1.56c10cp-5f, 0x1.9bdeaap-5f},
    {-0x1.14d218p-6f, 0x1.01cf7ap-7f, 0x1.35e142p-6f, -0x1.7f762ap-6f, -0x1.822856p-6f, 0x1.ecb78ep-6f, 0x1.85126ap-6f, -0x1.d6d0bap-6f},
};

/* A polynomial per half unit. From 3.92 on the result rounds to 1, so the last interval is enough.
 */
VFN V v_erf(V x) {
  const V a = v_min(v_set1(0x1.fffffep+1f), v_abs(x));
  const V twice = v_floor(v_add(a, a));
  const VI index = vi_truncate(twice);
  const V t = v_fnma(twice, v_set1(0.5f), a);
  V p = v_lookup8(kErfTable[7], index);
  p = v_fma(p, t, v_lookup8(kErfTable[6], index));
  p = v_fma(p, t, v_lookup8(kErfTable[5], index));
  p = v_fma(p, t, v_lookup8(kErfTable[4], index));
  p = v_fma(p, t, v_lookup8(kErfTable[3], index));
  p = v_fma(p, t, v_lookup8(kErfTable[2], index));
  p = v_fma(p, t, v_lookup8(kErfTable[1], index));
  p = v_fma(p, t, v_select(v_lt(a, v_set1(0.5f)), t, v_lookup8(kErfTable[0], index)));
  /* erf(3.9375) is 1 - 2^-25.4: it rounds to 1, which the fit may miss by an ulp. */
  const V bounded = v_select(v_lt(v_set1(3.9375f), a), v_set1(1.0f), v_min(v_set1(1.0f), p));
  return v_with_sign_of(bounded, x);
}

/* (sin r - r) / r^3 and (cos r - 1 + r^2 / 2) / r^4 on |r| <= pi / 4, t = r^2, relative to sin and
 * cos: 2^-27.9 and 2^-33. */
VFN V v_sin_tail(V t) {
  const V p = v_fma(v_set1(-0x1.9953p-13f), t, v_set1(0x1.110776p-7f));
  return v_fma(p, t, v_set1(-0x1.555546p-3f));
}
VFN V v_cos_tail(V t) {
  const V p = v_fma(v_set1(0x1.99e904p-16f), t, v_set1(-0x1.6c0c2ap-10f));
  return v_fma(p, t, v_set1(0x1.55554ap-5f));
}

/* r of x = n pi / 2 + r + low, |x| <= FOLIO_PERIODIC_MAX: pi / 2 in three parts, of which the first
 * product cancels exactly under fma; `low` is what r loses. */
#define FOLIO_PERIODIC_MAX 0x1p17f
VFN V v_quarter_turns(V x, V* n_out, V* low) {
  const V n = v_round(v_mul(x, v_set1(0x1.45f306p-1f)));
  *n_out = n;
  const V first = v_fnma(n, v_set1(0x1.921fb6p+0f), x);
  /* The second product and the difference in full (Dekker 1971; Knuth's sum of two), since near a
   * multiple of pi / 2 nothing else is left. */
  const V middle = v_set1(-0x1.777a5cp-25f);
  const V product = v_mul(n, middle);
  const V product_low = v_fma(n, middle, v_neg(product));
  const V r = v_sub(first, product);
  const V taken = v_sub(r, first);
  const V lost = v_sub(v_sub(first, v_sub(r, taken)), v_add(product, taken));
  *low = v_fnma(n, v_set1(-0x1.ee59dap-50f), v_sub(lost, product_low));
  return r;
}

/* sin(x + quarters * pi / 2). */
VFN V v_sin_of(V x, int quarters) {
  V n, low;
  const V r = v_quarter_turns(x, &n, &low);
  const V t = v_mul(r, r);
  const V sine = v_add(r, v_fma(v_mul(r, t), v_sin_tail(t), low));
  const V one = v_set1(1.0f);
  const V head = v_fnma(t, v_set1(0.5f), one); /* 1 - t / 2, and what it loses */
  V rest = v_fnma(t, v_set1(0.5f), v_sub(one, head));
  rest = v_fnma(r, low, v_fma(v_mul(t, t), v_cos_tail(t), rest));
  const VI quadrant = vi_add(vi_truncate(n), vi_set1(quarters));
  const VM is_odd = v_lt(v_zero(), v_from_int(vi_and(quadrant, vi_set1(1))));
  const V y = v_select(is_odd, v_add(head, rest), sine);
  return v_from_bits(vi_xor(vi_from_bits(y), vi_shift_left(vi_and(quadrant, vi_set1(2)), 30)));
}

/* The smallest stay as they are, -0 too. */
VFN V v_sin(V x) { return v_select(v_lt(v_abs(x), v_set1(0x1p-13f)), x, v_sin_of(x, 0)); }
VFN V v_cos(V x) { return v_sin_of(x, 1); }

VFN V v_relu(V x) { return v_max(v_zero(), x); }
VFN V v_clip(V x, V lo, V hi) { return v_min(hi, v_max(lo, x)); }

/* FolioActivation of an epilogue. */
VFN V v_activate(V x, int32_t activation, float lo, float hi) {
  if (activation == kFolioActRelu) return v_relu(x);
  if (activation == kFolioActClip) return v_clip(x, v_set1(lo), v_set1(hi));
  if (activation == kFolioActLeakyRelu) {
    return v_select(v_lt(x, v_zero()), v_mul(x, v_set1(lo)), x);
  }
  return x;
}
VFN V v_reciprocal(V x) { return v_div(v_set1(1.0f), x); }

VFN V v_gelu_erf(V x) {
  const V half = v_mul(x, v_set1(0.5f));
  return v_fma(half, v_erf(v_mul(x, v_set1(0x1.6a09e6p-1f))), half);
}

/* (1 + tanh(u)) / 2 = sigmoid(2u). Below 2^-126 that is 0, as 12 below 0 would already make numbers
 * which are smaller than normal (see v_exp). */
VFN V v_gelu_tanh(V x) {
  const V cube = v_mul(v_mul(x, x), x);
  const V u2 = v_mul(v_fma(cube, v_set1(0.044715f), x), v_set1(1.5957691216f));
  const V lowest = v_set1(-87.0f);
  return v_select(v_lt(u2, lowest), v_mul(x, v_zero()), v_gated(x, u2));
}

/* From -87 down that is x exp(x), as in v_sigmoid. */
VFN V v_silu(V x) {
  const V y = v_gated(x, x);
  const VM low = v_lt(x, v_set1(-87.0f));
  return v_any(low) ? v_select(low, v_mul(x, v_exp(x)), y) : y;
}

/* max(x, 0) + log(1 + e), e = exp(-|x|). u = 1 + e rounds: log(1 + e) = log(u) + (e - (u - 1)) / u.
 */
VFN V v_softplus(V x) {
  const V e = v_exp_beside_one(x);
  const V u = v_add(e, v_set1(1.0f));
  const V lost = v_sub(e, v_sub(u, v_set1(1.0f)));
  return v_add(v_max(v_zero(), x), v_add(v_log(u), v_div_fast(lost, u)));
}

VFN V v_hard_swish(V x) {
  V gate = v_add(v_mul(x, v_set1(1.0f / 6.0f)), v_set1(0.5f));
  gate = v_min(v_set1(1.0f), v_max(v_zero(), gate));
  return v_mul(x, gate);
}

/* NaN compares with nothing, and stays. */
VFN V v_sign(V x) {
  const V one = v_select(v_eq(x, v_zero()), v_zero(), v_with_sign_of(v_set1(1.0f), x));
  return v_select(v_is_nan(x), x, one);
}

VFN V v_softsign(V x) { return v_div(x, v_add(v_set1(1.0f), v_abs(x))); }

/* With e = exp(x): tanh(log(1 + e)) = ((1 + e)^2 - 1) / ((1 + e)^2 + 1) = s / (s + 2), s = e (e + 2);
 * from 30 on that rounds to 1. */
VFN V v_mish(V x) {
  const V e = v_exp_bounded(v_min(v_set1(30.0f), x));
  const V s = v_mul(e, v_add(e, v_set1(2.0f)));
  return v_mul(x, v_div(s, v_add(s, v_set1(2.0f))));
}

VFN V v_leaky_relu(V x, V p, V q) {
  (void)q;
  return v_select(v_lt(x, v_zero()), v_mul(p, x), x);
}
VFN V v_prelu(V x, V slope) { return v_leaky_relu(x, slope, slope); }
VFN V v_thresholded_relu(V x, V p, V q) {
  (void)q;
  return v_select(v_lt(p, x), x, v_zero());
}
VFN V v_affine(V x, V p, V q) { return v_add(v_mul(p, x), q); }
VFN V v_hard_sigmoid(V x, V p, V q) { return v_clip(v_affine(x, p, q), v_zero(), v_set1(1.0f)); }
VFN V v_shrink(V x, V p, V q) {
  const V above = v_select(v_lt(p, x), v_sub(x, q), v_zero());
  return v_select(v_lt(x, v_neg(p)), v_add(x, q), above);
}

/* exp(x) - 1 for x <= 0 or NaN. From -25 on that rounds to -1. x itself where its square does not
 * count, -0 too. */
VFN V v_less_one(V x) {
  const V y = v_exp_less_one(v_max(v_set1(-25.0f), x));
  return v_select(v_lt(v_set1(-0x1p-26f), x), x, y);
}

VFN V v_elu(V x, V p, V q) {
  (void)q;
  return v_select(v_lt(x, v_zero()), v_mul(p, v_less_one(v_min(v_zero(), x))), x);
}
VFN V v_selu(V x, V p, V q) {
  const V below = v_mul(p, v_less_one(v_min(v_zero(), x)));
  return v_mul(q, v_select(v_lt(v_zero(), x), x, below));
}
VFN V v_celu(V x, V p, V q) {
  (void)q;
  return v_select(v_lt(x, v_zero()), v_mul(p, v_less_one(v_min(v_zero(), v_div(x, p)))), x);
}
