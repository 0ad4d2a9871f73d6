#include "core/kernels/vector/sum_scales.inl"

/* add_b8 in vectors: y = round(a * p + (b * q + r)) + zero. */
typedef struct ByteSum {
  V p, q, r;
  V low, high; /* of the rounded sum */
  VI zero, zero_words;
  int a_signed, b_signed, y_signed;
  int is_small; /* all sums are within int32 */
} ByteSum;

VFN ByteSum make_byte_sum(const FolioByteScale* a, const FolioByteScale* b,
                          const FolioByteScale* to) {
  const SumScales scales = sum_scales(a, b, to);
  const int32_t low = to->is_signed ? -128 : 0;
  ByteSum s;
  s.p = v_set1(scales.p);
  s.q = v_set1(scales.q);
  s.r = v_set1(scales.r);
  s.low = v_set1((float)(low - to->zero));
  s.high = v_set1((float)(low + 255 - to->zero));
  s.zero = vi_set1(to->zero);
  s.zero_words = vi_set1_words(to->zero);
  s.a_signed = a->is_signed;
  s.b_signed = b->is_signed;
  s.y_signed = to->is_signed;
  s.is_small = scales.most < 0x1p30f;
  return s;
}

VFN V add_codes(const ByteSum* s, VI a, VI b) {
  return v_fma(v_from_int(a), s->p, v_fma(v_from_int(b), s->q, s->r));
}

VFN void add_vector(const ByteSum* s, const uint8_t* a, const uint8_t* b, uint8_t* y) {
  V ratio = add_codes(s, s->a_signed ? vi_load_s8(a) : vi_load_u8(a),
                      s->b_signed ? vi_load_s8(b) : vi_load_u8(b));
  ratio = v_select(v_is_nan(ratio), v_zero(), ratio);
  ratio = v_min(v_max(ratio, s->low), s->high);
  vi_store_b8(y, vi_add(vi_nearest(ratio), s->zero));
}
