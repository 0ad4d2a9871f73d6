/* The numbers of y = round(a * p + (b * q + r)) + zero, a sum of codes. */
typedef struct SumScales {
  float p, q, r;
  float most; /* of the magnitude of a * p + (b * q + r) */
} SumScales;

VFN SumScales sum_scales(const FolioByteScale* a, const FolioByteScale* b,
                         const FolioByteScale* to) {
  SumScales s;
  s.p = a->scale / to->scale;
  s.q = b->scale / to->scale;
  const float at_zero_a = s.p * (float)a->zero;
  const float at_zero_b = s.q * (float)b->zero;
  s.r = -(at_zero_a + at_zero_b);
  s.most = 256.0f * (__builtin_fabsf(s.p) + __builtin_fabsf(s.q)) + __builtin_fabsf(s.r);
  return s;
}
