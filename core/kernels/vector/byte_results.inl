/* What becomes of sums of products of bytes, 8 at a time: see FolioSums. Of 8 lanes only. */

#include "core/kernels/vector/byte_sum.inl"

constexpr int kMostVectors = 8;

/* What FolioSums says of the columns from `column` on, in vectors of 8. */
typedef struct Results {
  const FolioSums* s;
  int64_t column, count; /* columns */
  VI offset[kMostVectors], b_zero[kMostVectors];
  V scale[kMostVectors], bias[kMostVectors];
  V low, high;  /* of a scaled sum, to bytes */
  ByteSum add;  /* to sums of bytes */
  int is_plain; /* to bytes: all of int8 or uint8, no number beyond int32 on the way */
} Results;

static void begin_results(const FolioSums* s, int64_t column, int64_t count, int64_t vectors,
                          Results* r) {
  constexpr float kBelowOne = 0x1.fffffep-1f;
  const int has_scale = s->to != kFolioToInt32;
  int small = 1; /* every sum times its scale stays in int32 */
  r->s = s;
  r->column = column;
  r->count = count;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t j = column + v * kLanes;
    const int64_t left = count - v * kLanes;
    const VM mask = v_first(left < 0 ? 0 : left < kLanes ? left : kLanes);
    VI offset = s->offset ? _mm256_maskload_epi32(s->offset + j, mask) : vi_set1(0);
    if (s->column_sum) {
      const VI sums = _mm256_maskload_epi32(s->column_sum + j, mask);
      offset = vi_sub(offset, _mm256_mullo_epi32(vi_set1(s->a_zero), sums));
    }
    r->offset[v] = offset;
    if (s->row_sum) r->b_zero[v] = _mm256_maskload_epi32(s->b_zero + j, mask);
    r->scale[v] = has_scale ? v_load_masked(s->scale + j, mask) : v_zero();
    r->bias[v] = has_scale && s->bias ? v_load_masked(s->bias + j, mask) : v_zero();
    const V size = v_max(r->scale[v], v_sub(v_zero(), r->scale[v]));
    if (v_any(v_either(v_is_nan(size), v_lt(v_set1(kBelowOne), size)))) small = 0;
  }
  r->is_plain = 0;
  if (s->to != kFolioToByte) return;
  r->low = v_set1((float)(s->lo - s->zero));
  r->high = v_set1((float)(s->hi - s->zero));
  r->is_plain = small && s->hi - s->lo == 255;
  if (!s->add) return;
  r->add = make_byte_sum(&s->add->a, &s->add->b, &s->add->to);
  r->is_plain = r->is_plain && r->add.is_small;
}

/* 8 scaled sums as codes. */
VFN VI round_codes(const Results* r, V value) {
  value = v_select(v_is_nan(value), v_zero(), value);
  value = v_min(v_max(value, r->low), r->high);
  return vi_add(vi_nearest(value), vi_set1(r->s->zero));
}

/* The codes of a + b, one of which is `code`. */
VFN VI add_to_codes(const Results* r, VI code, const uint8_t* addend) {
  const ByteSum* add = &r->add;
  const VI other = add->a_signed ? vi_load_s8(addend) : vi_load_u8(addend);
  V ratio = r->s->add->addend_is_a ? add_codes(add, other, code) : add_codes(add, code, other);
  ratio = v_select(v_is_nan(ratio), v_zero(), ratio);
  ratio = v_min(v_max(ratio, add->low), add->high);
  return vi_add(vi_nearest(ratio), add->zero);
}

/* Bytes of each lane: four of code[0], ..., four of code[3], plus `zero` (words). Where results are
 * plain: what leaves 16 bits stays at their ends, far beyond any byte. */
VFN VI pack_plain(const VI* code, VI zero, int is_signed) {
  const VI low = _mm256_adds_epi16(_mm256_packs_epi32(code[0], code[1]), zero);
  const VI high = _mm256_adds_epi16(_mm256_packs_epi32(code[2], code[3]), zero);
  return is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
}

/* The codes of a + b without the zero point, where results are plain. */
VFN VI add_plain_codes(const Results* r, V value, const uint8_t* addend) {
  const ByteSum* add = &r->add;
  const V rounded = v_min(v_max(v_round(value), r->low), r->high);
  const V code = v_add(rounded, v_set1((float)r->s->zero));
  const V other = v_from_int(add->a_signed ? vi_load_s8(addend) : vi_load_u8(addend));
  const V a = r->s->add->addend_is_a ? other : code;
  const V b = r->s->add->addend_is_a ? code : other;
  return vi_nearest(v_fma(a, add->p, v_fma(b, add->q, add->r)));
}

/* Sums of vector v as int32, or as floats. */
VFN V as_words(const Results* r, int64_t v, VI sum) {
  if (r->s->to == kFolioToInt32) return v_from_bits(sum);
  const V value = v_mul(v_from_int(sum), r->scale[v]);
  return r->s->bias ? v_add(value, r->bias[v]) : value;
}

/* Vector v of one row. `to`: where it goes, `addend`: its bytes, if there are any. */
VFN void finish_vector(const Results* r, int64_t v, VI sum, const uint8_t* addend, char* to) {
  const FolioSums* s = r->s;
  const int64_t left = r->count - v * kLanes;
  if (s->to == kFolioToByte) {
    uint8_t bytes[kLanes] = {};
    const auto count = (size_t)(left < kLanes ? left : kLanes);
    VI code = round_codes(r, v_mul(v_from_int(sum), r->scale[v]));
    if (s->add) {
      __builtin_memcpy(bytes, addend, count);
      code = add_to_codes(r, code, bytes);
    }
    vi_store_b8(bytes, code);
    __builtin_memcpy(to, bytes, count);
    return;
  }
  const V value = as_words(r, v, sum);
  if (left >= kLanes) {
    v_store((float*)(void*)to, value);
  } else {
    v_store_masked((float*)(void*)to, v_first(left), value);
  }
}

/* One row of all columns; `c` and `addend` are where its first column is. */
static __attribute__((noinline)) void finish_row(const Results* r, const VI* sums,
                                                 const uint8_t* addend, char* c) {
  const int64_t size = r->s->to == kFolioToByte ? 1 : 4;
  for (int64_t v = 0; v * kLanes < r->count; ++v) {
    const int64_t at = v * kLanes;
    finish_vector(r, v, sums[v], addend ? addend + at : nullptr, c + at * size);
  }
}
