/* tan, the inverse functions of sin, cos and tan, and the hyperbolic ones; see kernels.h for
 * accuracy, math.inl for how coefficients were fitted.
 *
 * Those whose results are differences of large numbers are computed in double (pow.inl has the
 * logarithm and the power), half a vector at a time. */

/* (tan r - r) / r^3 on |r| <= pi / 4, t = r^2, relative to tan: 2^-29.5. */
VFN V v_tan_tail(V t) {
  V p = v_set1(0x1.1f07cap-8f);
  p = v_fma(p, t, v_set1(0x1.642a98p-14f));
  p = v_fma(p, t, v_set1(0x1.631be4p-7f));
  p = v_fma(p, t, v_set1(0x1.5cb318p-6f));
  p = v_fma(p, t, v_set1(0x1.badad8p-5f));
  p = v_fma(p, t, v_set1(0x1.110d9ap-3f));
  return v_fma(p, t, v_set1(0x1.55556p-2f));
}

/* |x| <= FOLIO_PERIODIC_MAX: tan(r + low) = y + rest; in odd quarters -1 / (y + rest), a quotient
 * corrected by what it leaves of 1. */
VFN V v_tan(V x) {
  V n, low;
  const V r = v_quarter_turns(x, &n, &low);
  const V t = v_mul(r, r);
  const V cube = v_mul(v_mul(r, t), v_tan_tail(t));
  const V plain = v_add(r, cube);
  /* The derivative is 1 + tan^2. */
  const V moved = v_fma(low, v_mul(plain, plain), v_add(cube, low));
  const V y = v_add(r, moved);
  const V rest = v_add(v_sub(r, y), moved);
  const V one = v_set1(1.0f);
  V q = v_reciprocal_near(y);
  q = v_fma(v_fnma(q, y, one), q, q);
  q = v_fma(v_fnma(q, rest, v_fnma(q, y, one)), q, q);
  const VM is_odd = v_lt(v_zero(), v_from_int(vi_and(vi_truncate(n), vi_set1(1))));
  return v_select(v_lt(v_abs(x), v_set1(0x1p-13f)), x, v_select(is_odd, v_neg(q), y));
}

/* (atan(t) - t) / t^3 on [0, 1], z = t^2, relative to atan: 2^-28.5. Beyond 1 it
 * is pi / 2 - atan(1 / a). */
VFN V v_atan(V x) {
  const V one = v_set1(1.0f);
  const V a = v_abs(x);
  const VM far = v_lt(one, a);
  const V t = v_div(v_select(far, v_set1(-1.0f), a), v_select(far, a, one));
  const V z = v_mul(t, t);
  V p = v_set1(-0x1.d5581ap-10f);
  p = v_fma(p, z, v_set1(0x1.652948p-7f));
  p = v_fma(p, z, v_set1(-0x1.fe581cp-6f));
  p = v_fma(p, z, v_set1(0x1.da8a34p-5f));
  p = v_fma(p, z, v_set1(-0x1.5820f8p-4f));
  p = v_fma(p, z, v_set1(0x1.c092dep-4f));
  p = v_fma(p, z, v_set1(-0x1.2420fap-3f));
  p = v_fma(p, z, v_set1(0x1.9991eap-3f));
  p = v_fma(p, z, v_set1(-0x1.55553ep-2f));
  const V tail = v_fma(v_mul(t, z), p, v_select(far, v_set1(-0x1.777a5cp-25f), v_zero()));
  /* What pi / 2 + t rounds away. */
  const V quarter = v_select(far, v_set1(0x1.921fb6p+0f), v_zero());
  const V head = v_add(quarter, t);
  const V lost = v_sub(t, v_sub(head, quarter));
  return v_with_sign_of(v_add(head, v_add(lost, tail)), x);
}

/* The angle of |x| from the sine's side: s + *tail = asin(s'), where s' = |x| up to 1/2 and beyond
 * it sqrt((1 - |x|) / 2), half of the angle to the cosine's side. NaN beyond 1.
 * (asin(s) - s) / s^3 on [0, 1/2], z = s^2, relative to asin: 2^-27.6. */
VFN V v_arc(V x, VM* far, V* tail) {
  const V half = v_set1(0.5f);
  const V a = v_abs(x);
  *far = v_lt(half, a);
  const V z = v_select(*far, v_fnma(a, half, half), v_mul(a, a));
  const V root = v_sqrt(z);
  /* What the root leaves of z; at 0 that is 0 and must not meet 1 / 0. */
  const V twice = v_max(v_set1(0x1p-60f), v_add(root, root));
  const V left = v_mul(v_fnma(root, root, z), v_reciprocal_near(twice));
  const V s = v_select(*far, root, a);
  V p = v_set1(0x1.595c6p-5f);
  p = v_fma(p, z, v_set1(0x1.8c3e5p-6f));
  p = v_fma(p, z, v_set1(0x1.747bb8p-5f));
  p = v_fma(p, z, v_set1(0x1.330204p-4f));
  p = v_fma(p, z, v_set1(0x1.5555c8p-3f));
  *tail = v_fma(v_mul(s, z), p, v_select(*far, left, v_zero()));
  return s;
}

/* high + low + times * (s + tail) with what the first sum rounds away; `times` is a power of two
 * (its sign may be either), and |times * s| <= high or high = 0. */
VFN V v_from_quarter(V high, V low, V times, V s, V tail) {
  const V head = v_fma(times, s, high);
  const V lost = v_fma(times, s, v_sub(high, head));
  return v_add(head, v_add(lost, v_fma(times, tail, low)));
}

VFN V v_asin(V x) {
  VM far;
  V tail;
  const V s = v_arc(x, &far, &tail);
  const V high = v_select(far, v_set1(0x1.921fb6p+0f), v_zero());
  const V low = v_select(far, v_set1(-0x1.777a5cp-25f), v_zero());
  const V times = v_select(far, v_set1(-2.0f), v_set1(1.0f));
  return v_with_sign_of(v_from_quarter(high, low, times, s, tail), x);
}

/* pi / 2 -+ asin(|x|) near 0; beyond, twice the half angle, for x < 0 what that leaves of pi. */
VFN V v_acos(V x) {
  VM far;
  V tail;
  const V s = v_arc(x, &far, &tail);
  const VM is_below = v_lt(x, v_zero());
  const V turns = v_select(is_below, v_set1(2.0f), v_zero()); /* quarters, where far */
  const V quarters = v_select(far, turns, v_set1(1.0f));
  const V sign = v_select(is_below, v_set1(-1.0f), v_set1(1.0f));
  const V times = v_select(far, v_add(sign, sign), v_neg(sign));
  return v_from_quarter(v_mul(quarters, v_set1(0x1.921fb6p+0f)),
                        v_mul(quarters, v_set1(-0x1.777a5cp-25f)), times, s, tail);
}

template <VD (*kFunction)(VD)>
VFN V v_in_double(V x) {
  return v_from_doubles(kFunction(vd_low(x)), kFunction(vd_high(x)));
}

VFN VD vd_log(VD x) { return vd_mul(vd_log2(x), vd_set1(0x1.62e42fefa39efp-1)); }
/* exp(x), x >= 0 or NaN; beyond 110 some number that is infinity in float. */
VFN VD vd_exp_upwards(VD x) {
  return vd_exp2(vd_min(vd_set1(160.0), vd_mul(x, vd_set1(0x1.71547652b82fep+0))));
}

VFN VD vd_sinh(VD a) {
  const VD e = vd_exp_upwards(a);
  return vd_mul(vd_set1(0.5), vd_sub(e, vd_div(vd_set1(1.0), e)));
}
VFN VD vd_cosh(VD a) {
  const VD e = vd_exp_upwards(a);
  return vd_mul(vd_set1(0.5), vd_add(e, vd_div(vd_set1(1.0), e)));
}
VFN VD vd_asinh(VD a) {
  const VD one = vd_set1(1.0);
  return vd_log(vd_add(a, vd_sqrt(vd_fma(a, a, one))));
}
VFN VD vd_acosh(VD a) {
  const VD minus_one = vd_set1(-1.0);
  return vd_log(vd_add(a, vd_sqrt(vd_fma(a, a, minus_one))));
}
VFN VD vd_atanh(VD a) {
  const VD one = vd_set1(1.0);
  return vd_mul(vd_set1(0.5), vd_log(vd_div(vd_add(one, a), vd_sub(one, a))));
}

/* Up to 2^-7 as a series, since e^x and e^-x cancel: x + x^3 / 6 lacks x^5 / 120, 2^-34.9 of x. */
VFN V v_sinh(V x) {
  const V a = v_abs(x);
  const V series = v_fma(v_mul(v_mul(x, x), x), v_set1(0x1.555556p-3f), x);
  const V y = v_with_sign_of(v_in_double<vd_sinh>(a), x);
  return v_select(v_lt(a, v_set1(0x1p-7f)), series, y);
}
VFN V v_cosh(V x) { return v_in_double<vd_cosh>(v_abs(x)); }

/* The logarithm in double knows neither infinities nor NaN: those stay as they are. So do the
 * smallest, whose cubes do not count. */
VFN V v_asinh(V x) {
  const V a = v_abs(x);
  const V y = v_with_sign_of(v_in_double<vd_asinh>(a), x);
  return v_select(v_lt(a, v_set1(__builtin_inff())), v_select(v_lt(a, v_set1(0x1p-13f)), x, y), x);
}
VFN V v_acosh(V x) {
  const V y = v_select(v_lt(x, v_set1(1.0f)), v_set1(__builtin_nanf("")), v_in_double<vd_acosh>(x));
  return v_select(v_lt(x, v_set1(__builtin_inff())), y, x);
}
VFN V v_atanh(V x) {
  const V a = v_abs(x);
  const V one = v_set1(1.0f);
  const V inside = v_with_sign_of(v_in_double<vd_atanh>(a), x);
  const V y = v_select(v_lt(a, v_set1(0x1p-13f)), x, inside);
  const V end = v_select(v_eq(a, one), v_set1(__builtin_inff()), v_set1(__builtin_nanf("")));
  return v_select(v_lt(a, one), y, v_select(v_is_nan(x), x, v_with_sign_of(end, x)));
}

/* The C library's tanf is off by 1.4 ulp. */
static float tan_of_large(float x) { return (float)tan((double)x); }

static void fill_trig(FolioKernels* table) {
  FolioUnaryF32* unary = table->unary_f32;
  unary[kFolioTan] = map1<v_periodic<v_tan, tan_of_large>>;
  unary[kFolioAsin] = map1<v_asin>;
  unary[kFolioAcos] = map1<v_acos>;
  unary[kFolioAtan] = map1<v_atan>;
  unary[kFolioSinh] = map1<v_sinh>;
  unary[kFolioCosh] = map1<v_cosh>;
  unary[kFolioAsinh] = map1<v_asinh>;
  unary[kFolioAcosh] = map1<v_acosh>;
  unary[kFolioAtanh] = map1<v_atanh>;
}
