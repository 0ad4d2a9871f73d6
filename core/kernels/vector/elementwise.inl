/* Unary and binary maps. Every element takes the same instructions, in the tail under a mask, so a
 * result does not depend on where in the row its element stands. */

template <V (*kFunction)(V)>
static void map1(int64_t n, const float* x, float* y) {
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const V a = kFunction(v_load(x + i));
    const V b = kFunction(v_load(x + i + kLanes));
    v_store(y + i, a);
    v_store(y + i + kLanes, b);
  }
  for (; i < n; i += kLanes) {
    const VM m = v_first(n - i < kLanes ? n - i : kLanes);
    v_store_masked(y + i, m, kFunction(v_load_masked(x + i, m)));
  }
}

template <V (*kFunction)(V, V, V)>
static void map_shaped(int64_t n, const float* x, float p, float q, float* y) {
  const V vp = v_set1(p);
  const V vq = v_set1(q);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    const V a = kFunction(v_load(x + i), vp, vq);
    const V b = kFunction(v_load(x + i + kLanes), vp, vq);
    v_store(y + i, a);
    v_store(y + i + kLanes, b);
  }
  for (; i < n; i += kLanes) {
    const VM m = v_first(n - i < kLanes ? n - i : kLanes);
    v_store_masked(y + i, m, kFunction(v_load_masked(x + i, m), vp, vq));
  }
}

template <V (*kFunction)(V, V), int kAStep, int kBStep>
VFN void map2_steps(int64_t n, const float* a, const float* b, float* y) {
  /* A repeated operand is read once: it may be the first element of y. */
  const V a0 = kAStep ? v_zero() : v_set1(*a);
  const V b0 = kBStep ? v_zero() : v_set1(*b);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    v_store(y + i, kFunction(kAStep ? v_load(a + i) : a0, kBStep ? v_load(b + i) : b0));
  }
  if (i < n) {
    const VM m = v_first(n - i);
    v_store_masked(
        y + i, m,
        kFunction(kAStep ? v_load_masked(a + i, m) : a0, kBStep ? v_load_masked(b + i, m) : b0));
  }
}

template <V (*kFunction)(V, V)>
static void map2(int64_t n, const float* a, int64_t a_step, const float* b, int64_t b_step,
                 float* y) {
  if (n == 0) return;
  if (a_step && b_step) {
    map2_steps<kFunction, 1, 1>(n, a, b, y);
  } else if (a_step) {
    map2_steps<kFunction, 1, 0>(n, a, b, y);
  } else if (b_step) {
    map2_steps<kFunction, 0, 1>(n, a, b, y);
  } else {
    map2_steps<kFunction, 0, 0>(n, a, b, y);
  }
}

static void FOLIO_LEVEL(clip_f32)(int64_t n, const float* x, float lo, float hi, float* y) {
  const V low = v_set1(lo);
  const V high = v_set1(hi);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) v_store(y + i, v_clip(v_load(x + i), low, high));
  if (i < n) {
    const VM m = v_first(n - i);
    v_store_masked(y + i, m, v_clip(v_load_masked(x + i, m), low, high));
  }
}

/* Large arguments and infinities are rare and need care: the C library's, one by one. */
template <V (*kFunction)(V), float (*kOfLarge)(float)>
VFN V v_periodic(V x) {
  const V y = kFunction(x);
  if (!v_any(v_lt(v_set1(FOLIO_PERIODIC_MAX), v_abs(x)))) return y;
  float from[kLanes];
  float to[kLanes];
  v_store(from, x);
  v_store(to, y);
  for (int64_t i = 0; i < kLanes; ++i) {
    if (from[i] > FOLIO_PERIODIC_MAX || from[i] < -FOLIO_PERIODIC_MAX) to[i] = kOfLarge(from[i]);
  }
  return v_load(to);
}

static void fill_elementwise(FolioKernels* table) {
  FolioUnaryF32* unary = table->unary_f32;
  unary[kFolioExp] = map1<v_exp>;
  unary[kFolioLog] = map1<v_log>;
  unary[kFolioTanh] = map1<v_tanh>;
  unary[kFolioSigmoid] = map1<v_sigmoid>;
  unary[kFolioErf] = map1<v_erf>;
  unary[kFolioRelu] = map1<v_relu>;
  unary[kFolioSqrt] = map1<v_sqrt>;
  unary[kFolioAbs] = map1<v_abs>;
  unary[kFolioNeg] = map1<v_neg>;
  unary[kFolioReciprocal] = map1<v_reciprocal>;
  unary[kFolioFloor] = map1<v_floor>;
  unary[kFolioCeil] = map1<v_ceil>;
  unary[kFolioRound] = map1<v_round>;
  unary[kFolioSin] = map1<v_periodic<v_sin, sinf>>;
  unary[kFolioCos] = map1<v_periodic<v_cos, cosf>>;
  unary[kFolioGeluErf] = map1<v_gelu_erf>;
  unary[kFolioGeluTanh] = map1<v_gelu_tanh>;
  unary[kFolioSilu] = map1<v_silu>;
  unary[kFolioSoftplus] = map1<v_softplus>;
  unary[kFolioHardSwish] = map1<v_hard_swish>;
  unary[kFolioSign] = map1<v_sign>;
  unary[kFolioSoftsign] = map1<v_softsign>;
  unary[kFolioMish] = map1<v_mish>;

  FolioShapedF32* shaped = table->shaped_f32;
  shaped[kFolioLeakyRelu] = map_shaped<v_leaky_relu>;
  shaped[kFolioThresholdedRelu] = map_shaped<v_thresholded_relu>;
  shaped[kFolioHardSigmoid] = map_shaped<v_hard_sigmoid>;
  shaped[kFolioAffine] = map_shaped<v_affine>;
  shaped[kFolioShrink] = map_shaped<v_shrink>;
  shaped[kFolioElu] = map_shaped<v_elu>;
  shaped[kFolioSelu] = map_shaped<v_selu>;
  shaped[kFolioCelu] = map_shaped<v_celu>;

  FolioBinaryF32* binary = table->binary_f32;
  binary[kFolioAdd] = map2<v_add>;
  binary[kFolioSub] = map2<v_sub>;
  binary[kFolioMul] = map2<v_mul>;
  binary[kFolioDiv] = map2<v_div>;
  binary[kFolioMin] = map2<v_pick_min>;
  binary[kFolioMax] = map2<v_pick_max>;
  binary[kFolioPRelu] = map2<v_prelu>;
  table->clip_f32 = FOLIO_LEVEL(clip_f32);
}
