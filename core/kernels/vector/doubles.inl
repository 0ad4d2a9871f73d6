/* exp, log, tanh, sigmoid and whole numbers of doubles; see kernels.h for accuracy.
 *
 * Coefficients: interpolation at Chebyshev's nodes in 80 digits, rounded to double (November 2026).
 * All branches are selects, and ends of rows take the same instructions under a mask. */

VFN VD vd_abs(VD x) {
  return vd_from_bits(vi_and(vi_from_doubles(x), vi_set1_64(0x7fffffffffffffff)));
}
VFN VD vd_minus_abs(VD x) { return vd_from_bits(vi_or(vi_from_doubles(x), vi_set1_64(INT64_MIN))); }

/* (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2, relative to e^r: 2^-61. */
VFN VD vd_exp_tail(VD r) {
  VD p = vd_set1(0x1.1f7315649f2d7p-29);
  p = vd_fma(p, r, vd_set1(0x1.af4e092e1705bp-26));
  p = vd_fma(p, r, vd_set1(0x1.27e4db5bb725ap-22));
  p = vd_fma(p, r, vd_set1(0x1.71de02225a2f3p-19));
  p = vd_fma(p, r, vd_set1(0x1.a01a01a6db488p-16));
  p = vd_fma(p, r, vd_set1(0x1.a01a01abeccc3p-13));
  p = vd_fma(p, r, vd_set1(0x1.6c16c16c162cfp-10));
  p = vd_fma(p, r, vd_set1(0x1.11111111100d3p-7));
  p = vd_fma(p, r, vd_set1(0x1.5555555555556p-5));
  p = vd_fma(p, r, vd_set1(0x1.5555555555557p-3));
  return vd_fma(p, r, vd_set1(0x1.0000000000000p-1));
}

/* x = n ln(2) + r, n whole, ln(2) in two parts; the low bits of what is returned are n + bias. */
VFN VI vd_exp_reduce(VD x, double bias, VD* r) {
  const VD magic = vd_set1(0x1.8p52 + bias);
  const VD moved = vd_fma(x, vd_set1(0x1.71547652b82fep+0), magic);
  const VD n = vd_sub(moved, magic);
  const VD first = vd_fma(n, vd_set1(-0x1.62e42fefa39efp-1), x);
  *r = vd_fma(n, vd_set1(-0x1.abc9e3b39803fp-56), first);
  return vi_from_doubles(moved);
}

/* Of x in [-746, 710], where results are 0 and inf, or NaN. 2^n is two factors, so that what is
 * smaller than normal is rounded once. */
VFN VD vd_exp_bounded(VD x) {
  VD r;
  const VI biased = vd_exp_reduce(x, 2 * 1023, &r);
  const VD p = vd_add(vd_fma(vd_mul(r, r), vd_exp_tail(r), r), vd_set1(1.0));
  const VI half = vi_shift_right64(biased, 1);
  const VD first = vd_from_bits(vi_shift_left64(half, 52));
  const VD second = vd_from_bits(vi_shift_left64(vi_sub64(biased, half), 52));
  return vd_mul(vd_mul(p, first), second);
}

VFN VD vd_exp(VD x) { return vd_exp_bounded(vd_min(vd_set1(710.0), vd_max(vd_set1(-746.0), x))); }

/* x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f), z = s^2:
 * log(1 + f) = 2 atanh(s) = 2 s + s z p(z), relative 2^-57.5, and 2 s = f - f^2 / 2 + s f^2 / 2: f,
 * which is exact, less what is smaller. */
VFN VD vd_natural_log(VD x) {
  const VD least = vd_set1(0x1p-1022);
  const VD normal = vd_select_lt(x, least, vd_mul(x, vd_set1(0x1p54)), x);
  const VI root = vi_set1_64(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
  const VI shifted = vi_sub64(vi_from_doubles(normal), root);
  /* e + 1023 as the low bits of a double. */
  const VI biased = vi_shift_right64(vi_add64(shifted, vi_set1_64(0x3ff0000000000000)), 52);
  const VD raised = vd_from_bits(vi_or(biased, vi_set1_64(0x4330000000000000)));
  const VD e =
      vd_sub(raised, vd_select_lt(x, least, vd_set1(0x1p52 + 1023 + 54), vd_set1(0x1p52 + 1023)));
  const VI mantissa = vi_add64(vi_and(shifted, vi_set1_64(0x000fffffffffffff)), root);
  const VD f = vd_sub(vd_from_bits(mantissa), vd_set1(1.0));
  const VD s = vd_div(f, vd_add(f, vd_set1(2.0)));
  const VD z = vd_mul(s, s);
  VD p = vd_set1(0x1.2b5888923b9b5p-3);
  p = vd_fma(p, z, vd_set1(0x1.39fe5b636d6b3p-3));
  p = vd_fma(p, z, vd_set1(0x1.7462b4d1bf4b4p-3));
  p = vd_fma(p, z, vd_set1(0x1.c71c62e4f889ap-3));
  p = vd_fma(p, z, vd_set1(0x1.2492492df1b31p-2));
  p = vd_fma(p, z, vd_set1(0x1.99999999952dep-2));
  p = vd_fma(p, z, vd_set1(0x1.5555555555558p-1));
  const VD half_square = vd_mul(vd_mul(f, f), vd_set1(0.5));
  const VD low = vd_fma(e, vd_set1(0x1.ef35793c76730p-45), /* ln(2), and what its 42 bits lack */
                        vd_mul(s, vd_fma(z, p, half_square)));
  const VD tail = vd_sub(half_square, low);
  VD y = vd_fma(e, vd_set1(0x1.62e42fefa3800p-1), vd_sub(f, tail));
  const VD inf = vd_set1(__builtin_inf());
  y = vd_select_lt(x, inf, y, x); /* inf and NaN */
  y = vd_select_lt(x, vd_zero(), vd_set1(__builtin_nan("")), y);
  return vd_select_eq(x, vd_zero(), vd_set1(-__builtin_inf()), y);
}

/* tanh(x) = E / (E + 2), E = e^2x - 1 = 2^n (e^r - 1) + (2^n - 1). What the sums lose is brought
 * back by the derivatives: 1 / (E + 2) is (1 - tanh(x)) / 2. From 19.1 on the result rounds to 1.
 */
VFN VD vd_tanh(VD x) {
  const VD a = vd_min(vd_set1(22.0), vd_abs(x));
  const VD one = vd_set1(1.0);
  const VD two = vd_set1(2.0);
  VD r;
  const VI biased = vd_exp_reduce(vd_add(a, a), 1023, &r);
  const VD power = vd_from_bits(vi_shift_left64(biased, 52));
  const VD power_less_one = vd_sub(power, one);
  const VD rest = vd_mul(vd_mul(r, r), vd_exp_tail(r));
  const VD grown = vd_add(r, rest);
  const VD less_one = vd_fma(power, grown, power_less_one);
  VD less_one_lost = vd_fma(power, grown, vd_sub(power_less_one, less_one));
  less_one_lost = vd_fma(power, vd_sub(rest, vd_sub(grown, r)), less_one_lost);
  const VD sum = vd_add(less_one, two);
  const VD sum_lost = vd_sub(vd_min(less_one, two), vd_sub(sum, vd_max(less_one, two)));
  const VD q = vd_div(less_one, sum);
  const VD left = vd_sub(one, q);
  const VD by_half = vd_sub(vd_mul(less_one_lost, left), vd_mul(q, sum_lost));
  const VD y = vd_fma(vd_mul(vd_set1(0.5), left), by_half, q);
  return vd_from_bits(vi_or(vi_from_doubles(y), vi_and(vi_from_doubles(x), vi_set1_64(INT64_MIN))));
}

/* With e = exp(-|x|): 1 / (1 + e), or e / (1 + e) below 0, corrected by what the sum loses. */
VFN VD vd_sigmoid(VD x) {
  const VD one = vd_set1(1.0);
  const VD e = vd_exp_bounded(vd_max(vd_set1(-746.0), vd_minus_abs(x)));
  const VD sum = vd_add(e, one);
  const VD q = vd_div(vd_select_lt(x, vd_zero(), e, one), sum);
  const VD lost = vd_mul(q, vd_sub(e, vd_sub(sum, one)));
  return vd_sub(q, vd_mul(lost, vd_select_lt(x, vd_zero(), vd_sub(one, q), q)));
}

template <VD (*kFunction)(VD)>
static void map_doubles(int64_t n, const double* x, double* y) {
  int64_t i = 0;
  for (; i + kDoubles <= n; i += kDoubles) vd_store(y + i, kFunction(vd_load(x + i)));
  if (i == n) return;
  const VM m = v_first(2 * (n - i));
  const VD result = kFunction((VD)v_load_masked((const float*)(x + i), m));
  v_store_masked((float*)(y + i), m, (V)result);
}

static void fill_doubles(FolioKernels* table) {
  table->unary_f64[kFolioExpF64] = map_doubles<vd_exp>;
  table->unary_f64[kFolioLogF64] = map_doubles<vd_natural_log>;
  table->unary_f64[kFolioTanhF64] = map_doubles<vd_tanh>;
  table->unary_f64[kFolioSigmoidF64] = map_doubles<vd_sigmoid>;
  table->unary_f64[kFolioFloorF64] = map_doubles<vd_floor>;
  table->unary_f64[kFolioCeilF64] = map_doubles<vd_ceil>;
  table->unary_f64[kFolioRoundF64] = map_doubles<vd_round>;
}
