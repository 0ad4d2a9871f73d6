/* depthwise_u8 over 32 channels at a time: four taps interleaved are what a product of four bytes
 * takes. Vectors q = 0..3 hold channels 16 l + 4 q .. + 3 in lane l of 128 bits, and so do weights,
 * offsets and scales; bytes come out in order. Windows of 3 x 3 interleave a column of three taps,
 * the middle one twice, once for all pixels that it is under. Of 8 lanes only.
 *
 * The including file includes before: byte_results.inl; and defines: dot4 as for gemm_bytes.inl;
 * takes_weights(w, count), whether dot4<0> takes all of so many vectors. */

constexpr int64_t kChannels = 32;
constexpr int64_t kMostGroups = FOLIO_MAX_BYTE_TAPS / 4;

typedef struct Lanes {
  VI part[4];
} Lanes;

/* From four vectors in the order of channels; and back to it. */
VFN Lanes to_lanes(const VI* x) {
  return {{_mm256_permute2x128_si256(x[0], x[2], 0x20), _mm256_permute2x128_si256(x[0], x[2], 0x31),
           _mm256_permute2x128_si256(x[1], x[3], 0x20),
           _mm256_permute2x128_si256(x[1], x[3], 0x31)}};
}
VFN void from_lanes(const Lanes* x, VI* to) {
  to[0] = _mm256_permute2x128_si256(x->part[0], x->part[1], 0x20);
  to[1] = _mm256_permute2x128_si256(x->part[2], x->part[3], 0x20);
  to[2] = _mm256_permute2x128_si256(x->part[0], x->part[1], 0x31);
  to[3] = _mm256_permute2x128_si256(x->part[2], x->part[3], 0x31);
}

/* How results are stored: any, or those of all 32 channels as words or bytes that are plain. */
typedef enum Store { kAnyResult, kWholeWords, kPlainBytes } Store;

typedef struct Channels {
  const FolioDepthwiseU8* args;
  int64_t first, count;
  Store store;
  VI fours;                   /* words that are channels whole */
  VI rest;                    /* the word that is channels in part */
  Lanes weights[kMostGroups]; /* of four taps, or of a column, of one set after the other */
  Lanes offset;
  V scale[4]; /* to plain bytes */
  VI zero;    /* words */
  Results results;
} Channels;

/* All but plain bytes. */
static __attribute__((noinline)) void store_rare(const Channels* c, const Lanes* sums, int64_t at) {
  const FolioDepthwiseU8* args = c->args;
  VI words[4];
  from_lanes(sums, words);
  if (c->store == kWholeWords) {
    float* y = (float*)args->y + at;
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) v_store(y + v * kLanes, as_words(&c->results, v, words[v]));
    return;
  }
  const int64_t size = args->sums.to == kFolioToByte ? 1 : 4;
  finish_row(&c->results, words, nullptr, (char*)args->y + at * size);
}

VFN void store_lanes(const Channels* c, const Lanes* sums, int64_t pixel) {
  const FolioDepthwiseU8* args = c->args;
  const int64_t at = pixel * args->y_row_stride + c->first;
  if (c->store != kPlainBytes) {
    const Lanes kept = *sums; /* so that only here they are in memory */
    return store_rare(c, &kept, at);
  }
  VI code[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) code[q] = vi_nearest(v_mul(v_from_int(sums->part[q]), c->scale[q]));
  vi_store((char*)args->y + at, pack_plain(code, c->zero, args->sums.lo < 0));
}

VFN Lanes interleave(VI a, VI b, VI c, VI d) {
  const VI low01 = _mm256_unpacklo_epi8(a, b);
  const VI high01 = _mm256_unpackhi_epi8(a, b);
  const VI low23 = _mm256_unpacklo_epi8(c, d);
  const VI high23 = _mm256_unpackhi_epi8(c, d);
  return {{_mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
           _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)}};
}

/* The channels of `c` at p. */
VFN VI load_channels(const Channels* c, const uint8_t* p) {
  p += c->first;
  const VI x = _mm256_maskload_epi32((const int*)(const void*)p, c->fours);
  if (c->count % 4 == 0) return x;
  uint32_t rest = 0;
  for (int64_t j = c->count / 4 * 4; j < c->count; ++j) rest |= (uint32_t)p[j] << j % 4 * 8;
  return vi_or(x, vi_and(vi_set1((int)rest), c->rest));
}

/* Any window. */
template <int kAnyWeights>
static void run_taps(const Channels* c) {
  const FolioDepthwiseU8* args = c->args;
  const int64_t taps = args->sets * args->rows * args->columns;
  for (int64_t i = 0; i < args->lines * args->pixels; ++i) {
    const int64_t first = i / args->pixels * args->x_line_stride + i % args->pixels * args->step;
    const uint8_t* const* row = args->x + first;
    int64_t column = 0;
    int64_t r = 0;
    Lanes sums = c->offset;
    for (int64_t t = 0; t < taps; t += 4) {
      VI x[4];
#pragma GCC unroll 4
      for (int64_t at = 0; at < 4; ++at) {
        x[at] = vi_set1(0);
        if (t + at >= taps) continue;
        const uint8_t* p = row[column * args->dilation];
        x[at] = load_channels(c, p);
        if (++column < args->columns) continue;
        column = 0;
        row = ++r % args->rows == 0 ? args->x + first : row + args->x_row_stride;
      }
      const Lanes four = interleave(x[0], x[1], x[2], x[3]);
      const Lanes* w = &c->weights[t / 4];
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) dot4<kAnyWeights>(&sums.part[q], four.part[q], w->part[q]);
    }
    store_lanes(c, &sums, i);
  }
}

/* The three taps of a column, the middle one twice. */
VFN Lanes load_column(const Channels* c, const uint8_t* const* column) {
  const int64_t step = c->args->x_row_stride;
  const VI middle = load_channels(c, column[step]);
  return interleave(load_channels(c, column[0]), middle, load_channels(c, column[2 * step]),
                    middle);
}

/* kPixels pixels, of kSets sets of weights for the same taps. Of two, which share what is loaded of
 * weights, each is one column ahead. */
template <int kAnyWeights, int kSets, int kPixels>
VFN void add_columns(const Channels* c, const Lanes* const (&x)[kPixels + 2], int64_t pixel) {
  Lanes sums[kPixels];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    VI sum[kPixels];
#pragma GCC unroll 2
    for (int i = 0; i < kPixels; ++i) sum[i] = c->offset.part[q];
#pragma GCC unroll 6
    for (int w = 0; w < 3 * kSets; ++w) {
      const VI weights = c->weights[w].part[q];
#pragma GCC unroll 2
      for (int i = 0; i < kPixels; ++i) {
        dot4<kAnyWeights>(&sum[i], x[i + w % 3]->part[q], weights);
      }
    }
#pragma GCC unroll 2
    for (int i = 0; i < kPixels; ++i) sums[i].part[q] = sum[i];
  }
#pragma GCC unroll 2
  for (int i = 0; i < kPixels; ++i) store_lanes(c, &sums[i], pixel + i);
}

/* Windows of 3 x 3 side by side: a pixel brings one column. */
template <int kAnyWeights, int kSets>
static void run_columns(const Channels* c) {
  const FolioDepthwiseU8* args = c->args;
  int64_t pixel = 0;
  for (int64_t l = 0; l < args->lines; ++l) {
    const uint8_t* const* column = args->x + l * args->x_line_stride;
    const int64_t end = pixel + args->pixels;
    Lanes x0 = load_column(c, column);
    Lanes x1 = load_column(c, column + 1);
    for (; end - pixel >= 4; pixel += 4, column += 4) {
      const Lanes x2 = load_column(c, column + 2);
      const Lanes x3 = load_column(c, column + 3);
      add_columns<kAnyWeights, kSets, 2>(c, {&x0, &x1, &x2, &x3}, pixel);
      x0 = load_column(c, column + 4);
      x1 = load_column(c, column + 5);
      add_columns<kAnyWeights, kSets, 2>(c, {&x2, &x3, &x0, &x1}, pixel + 2);
    }
    for (; pixel < end; ++pixel, ++column) {
      const Lanes x2 = load_column(c, column + 2);
      add_columns<kAnyWeights, kSets, 1>(c, {&x0, &x1, &x2}, pixel);
      x0 = x1;
      x1 = x2;
    }
  }
}

/* Every second window: a pixel brings two. */
template <int kAnyWeights, int kSets>
static void run_second_columns(const Channels* c) {
  const FolioDepthwiseU8* args = c->args;
  int64_t pixel = 0;
  for (int64_t l = 0; l < args->lines; ++l) {
    const uint8_t* const* column = args->x + l * args->x_line_stride;
    Lanes x0 = load_column(c, column);
    for (int64_t i = 0; i < args->pixels; ++i, ++pixel, column += 2) {
      const Lanes x1 = load_column(c, column + 1);
      const Lanes x2 = load_column(c, column + 2);
      add_columns<kAnyWeights, kSets, 1>(c, {&x0, &x1, &x2}, pixel);
      x0 = x2;
    }
  }
}

template <int kAnyWeights>
static void run_three(const Channels* c) {
  const int one = c->args->sets == 1;
  if (c->args->step == 1) {
    one ? run_columns<kAnyWeights, 1>(c) : run_columns<kAnyWeights, 2>(c);
  } else {
    one ? run_second_columns<kAnyWeights, 1>(c) : run_second_columns<kAnyWeights, 2>(c);
  }
}

/* Byte `from` of each word of x, as byte `to`. */
VFN VI pick_byte(VI x, int from, int to) {
  const VI byte = vi_and(_mm256_srl_epi32(x, _mm_cvtsi32_si128(8 * from)), vi_set1(0xff));
  return _mm256_sll_epi32(byte, _mm_cvtsi32_si128(8 * to));
}

/* Of a column's weights: the middle one becomes two, the second of which stands after the last. So
 * few columns have products of two neighbours that leave 16 bits: those with weights of one sign
 * that are more than 256 together. */
VFN VI halve_middle(VI column) {
  const VI first = vi_shift_right_signed(vi_shift_left(column, 24), 24);
  const VI middle = vi_shift_right_signed(vi_shift_left(column, 16), 24);
  const VI zero = vi_set1(0);
  const VI least = vi_sub(vi_set1(-128), _mm256_min_epi32(first, zero));
  const VI most = vi_sub(vi_set1(128), vi_max(first, zero));
  const VI beside_first = _mm256_min_epi32(vi_max(middle, least), most);
  const VI rest = vi_sub(middle, beside_first);
  const VI others = vi_and(column, vi_set1(0xff00ff));
  const VI second = vi_shift_left(vi_and(beside_first, vi_set1(0xff)), 8);
  return vi_or(vi_or(others, second), vi_shift_left(rest, 24));
}

/* From taps in the order of rows, four by four, to columns of three, nine taps after nine. */
static void order_by_columns(Lanes* weights, int sets) {
  Lanes columns[6];
  for (int q = 0; q < 4; ++q) {
    for (int c = 0; c < 3 * sets; ++c) {
      VI column = vi_set1(0);
      for (int r = 0; r < 3; ++r) {
        const int t = c / 3 * 9 + 3 * r + c % 3;
        column = vi_or(column, pick_byte(weights[t / 4].part[q], t % 4, r));
      }
      columns[c].part[q] = column;
    }
  }
  for (int c = 0; c < 3 * sets; ++c) {
    for (int q = 0; q < 4; ++q) weights[c].part[q] = halve_middle(columns[c].part[q]);
  }
}

static Store store_of(const Channels* c) {
  if (c->count != kChannels) return kAnyResult;
  if (c->args->sums.to != kFolioToByte) return kWholeWords;
  return c->results.is_plain ? kPlainBytes : kAnyResult;
}

/* Weights, offsets and scales; how many groups the weights are. */
static int64_t begin_channels(Channels* c, int64_t groups, int is_three) {
  const FolioDepthwiseU8* args = c->args;
  const int64_t panel = groups * FOLIO_S8P16K4_GROUP;
  const char* b = (const char*)args->b + c->first / 16 * panel;
  const int two = c->count > 16;
  for (int64_t g = 0; g < groups; ++g, b += FOLIO_S8P16K4_GROUP) {
    const VI w[4] = {vi_load(b), vi_load(b + 32), two ? vi_load(b + panel) : vi_set1(0),
                     two ? vi_load(b + panel + 32) : vi_set1(0)};
    c->weights[g] = to_lanes(w);
  }
  begin_results(&args->sums, c->first, c->count, 4, &c->results);
  c->offset = to_lanes(c->results.offset);
  VI scale[4];
  for (int v = 0; v < 4; ++v) scale[v] = vi_from_bits(c->results.scale[v]);
  const Lanes scales = to_lanes(scale);
  for (int q = 0; q < 4; ++q) c->scale[q] = v_from_bits(scales.part[q]);
  c->zero = vi_set1_words(args->sums.zero);
  c->store = store_of(c);
  c->fours = v_first(c->count / 4);
  c->rest = _mm256_andnot_si256(c->fours, v_first((c->count + 3) / 4));
  if (!is_three) return groups;
  order_by_columns(c->weights, (int)args->sets);
  return 3 * args->sets;
}

static void FOLIO_LEVEL(depthwise_u8)(const FolioDepthwiseU8* args) {
  if (args->lines == 0 || args->pixels == 0) return;
  const int64_t groups = (args->sets * args->rows * args->columns + 3) / 4;
  const int is_three = args->rows == 3 && args->columns == 3 && args->dilation == 1 &&
                       args->step >= 1 && args->step <= 2 && args->sets >= 1 && args->sets <= 2;
  Channels c = {};
  c.args = args;
  for (int64_t first = 0; first < args->channels; first += kChannels) {
    const int64_t left = args->channels - first;
    c.first = first;
    c.count = left < kChannels ? left : kChannels;
    if (left == 16 && first > 0) { /* some are computed twice */
      c.first = first - 16;
      c.count = kChannels;
    }
    const int64_t vectors = 4 * begin_channels(&c, groups, is_three);
    if (takes_weights(c.weights[0].part, vectors)) {
      is_three ? run_three<0>(&c) : run_taps<0>(&c);
    } else {
      is_three ? run_three<1>(&c) : run_taps<1>(&c);
    }
  }
}
