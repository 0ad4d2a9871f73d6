/* pow, computed in double, kLanes / 2 lanes at a time: the only rounding that counts is the one to
 * float at the end, half an ulp.
 *
 * Coefficients: minimax in the stated weight, in double (mpmath's chebyfit, November 2026). */

/* log2 of what is above 0 and finite: x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)); f p(f),
 * relative 2^-37.5. Floats smaller than normal are normal as doubles. */
VFN VD vd_log2(VD x) {
  const VI root = vi_set1_64(0x3fe6a09e667f3bcd); /* sqrt(1/2) */
  const VI shifted = vi_sub64(vi_from_doubles(x), root);
  /* e + 1023 as the low bits of a double. */
  const VI biased = vi_shift_right64(vi_add64(shifted, vi_set1_64(0x3ff0000000000000)), 52);
  const VD e = vd_sub(vd_from_bits(vi_or(biased, vi_set1_64(0x4330000000000000))),
                      vd_set1(0x1p52 + 1023));
  const VI mantissa = vi_add64(vi_and(shifted, vi_set1_64(0x000fffffffffffff)), root);
  const VD f = vd_sub(vd_from_bits(mantissa), vd_set1(1.0));
  VD p = vd_set1(-0x1.16c9192143833p-4);
  p = vd_fma(p, f, vd_set1(0x1.0c91c8ec04459p-3));
  p = vd_fma(p, f, vd_set1(-0x1.140c67e94fcdep-3));
  p = vd_fma(p, f, vd_set1(0x1.0b872a83448f7p-3));
  p = vd_fma(p, f, vd_set1(-0x1.23e34ff2dfed7p-3));
  p = vd_fma(p, f, vd_set1(0x1.480da32d9077ap-3));
  p = vd_fma(p, f, vd_set1(-0x1.7186b110dbb40p-3));
  p = vd_fma(p, f, vd_set1(0x1.a61c50cd4bc62p-3));
  p = vd_fma(p, f, vd_set1(-0x1.ec6f47f38905dp-3));
  p = vd_fma(p, f, vd_set1(0x1.2776b48f57946p-2));
  p = vd_fma(p, f, vd_set1(-0x1.7154784e5d08ep-2));
  p = vd_fma(p, f, vd_set1(0x1.ec709de7df48dp-2));
  p = vd_fma(p, f, vd_set1(-0x1.71547651d9376p-1));
  p = vd_fma(p, f, vd_set1(0x1.71547652b5270p+0));
  return vd_fma(f, p, e);
}

/* 2^t for t in [-160, 160]: 2^n p(r), |r| <= 1/2, relative 2^-34.5. */
VFN VD vd_exp2(VD t) {
  /* The low bits of n + 1.5 * 2^52 are those of n. */
  const VD magic = vd_set1(0x1.8p52);
  const VD moved = vd_add(t, magic);
  const VD r = vd_sub(t, vd_sub(moved, magic));
  VD p = vd_set1(0x1.00c0e4e15189cp-16);
  p = vd_fma(p, r, vd_set1(0x1.446c79efd4834p-13));
  p = vd_fma(p, r, vd_set1(0x1.5d877598350dep-10));
  p = vd_fma(p, r, vd_set1(0x1.3b29d8bb0b97ep-7));
  p = vd_fma(p, r, vd_set1(0x1.c6b08da70cce3p-5));
  p = vd_fma(p, r, vd_set1(0x1.ebfbe0aa03df0p-3));
  p = vd_fma(p, r, vd_set1(0x1.62e42fef9cc69p-1));
  p = vd_fma(p, r, vd_set1(0x1.ffffffffa7135p-1));
  return vd_from_bits(vi_add64(vi_from_doubles(p), vi_shift_left64(vi_from_doubles(moved), 52)));
}

/* |x|^y for finite numbers, |x| above 0. */
VFN VD vd_power(VD x, VD y) {
  const VD t = vd_mul(y, vd_log2(x));
  return vd_exp2(vd_min(vd_set1(160.0), vd_max(vd_set1(-160.0), t)));
}

/* Any x and y. Infinities and NaN are rare: the C library's, one by one. */
VFN V v_pow(V x, V y) {
  const V inf = v_set1(__builtin_inff());
  const V zero = v_zero();
  const V a = v_abs(x);
  const V p = v_from_doubles(vd_power(vd_low(a), vd_low(y)), vd_power(vd_high(a), vd_high(y)));
  V of_zero = v_select(v_lt(y, zero), inf, zero);
  V z = v_select(v_eq(a, zero), of_zero, p);
  /* Below 0: whole exponents have a sign, others no result. 0 keeps its sign in odd powers. */
  const V half = v_mul(y, v_set1(0.5f));
  const V of_odd = v_with_sign_of(z, x);
  const V of_whole = v_select(v_eq(v_round(half), half), z, of_odd);
  const V of_part = v_select(v_lt(x, zero), v_set1(__builtin_nanf("")), z);
  z = v_select(v_eq(v_round(y), y), of_whole, of_part);
  z = v_select(v_eq(y, zero), v_set1(1.0f), z);
  const VM is_rare = v_is_nan(v_sub(v_sub(x, x), v_sub(y, y)));
  if (!v_any(is_rare)) return z;
  float from[kLanes], by[kLanes], to[kLanes];
  v_store(from, x);
  v_store(by, y);
  v_store(to, z);
  for (int64_t i = 0; i < kLanes; ++i) {
    if (from[i] - from[i] != 0 || by[i] - by[i] != 0) to[i] = powf(from[i], by[i]);
  }
  return v_load(to);
}

/* x^(twice / 2) by products, for |twice| <= FOLIO_POW_PRODUCTS. In double: few roundings of 2^-53,
 * and what leaves its range is beyond float's. */
#define FOLIO_POW_PRODUCTS 32
VFN VD vd_power_of(VD x, int64_t twice) {
  const int64_t count = twice < 0 ? -twice : twice;
  VD z = vd_set1(1.0);
  if (count & 1) {
    /* As pow has it: -0 is 0, and -inf is inf. */
    const VD inf = vd_set1(__builtin_inf());
    x = vd_add(vd_select_eq(x, vd_sub(vd_set1(0.0), inf), inf, x), vd_set1(0.0));
    z = vd_sqrt(x);
  }
  for (int64_t left = count >> 1; left > 0; left >>= 1) {
    if (left & 1) z = vd_mul(z, x);
    if (left > 1) x = vd_mul(x, x);
  }
  return twice < 0 ? vd_div(vd_set1(1.0), z) : z;
}
VFN V v_power_of(V x, int64_t twice) {
  return v_from_doubles(vd_power_of(vd_low(x), twice), vd_power_of(vd_high(x), twice));
}

static void pow_by(int64_t n, const float* x, int64_t twice, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) v_store(y + i, v_power_of(v_load(x + i), twice));
  if (i < n) {
    const VM m = v_first(n - i);
    v_store_masked(y + i, m, v_power_of(v_load_masked(x + i, m), twice));
  }
}

/* Once: in line, eight copies of it would be most of what all loops over two operands take. */
static __attribute__((noinline)) V pow_called(V x, V y) { return v_pow(x, y); }

static void pow_f32(int64_t n, const float* a, int64_t a_step, const float* b, int64_t b_step,
                    float* y) {
  if (n == 0) return;
  if (!b_step) {
    const float twice = *b * 2.0f;
    const float most = FOLIO_POW_PRODUCTS;
    if (twice >= -most && twice <= most && twice == __builtin_rintf(twice)) {
      if (a_step) return pow_by(n, a, (int64_t)twice, y);
    }
  }
  map2<pow_called>(n, a, a_step, b, b_step, y);
}

static void fill_pow(FolioKernels* table) { table->binary_f32[kFolioPow] = pow_f32; }
