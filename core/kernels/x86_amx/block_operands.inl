/* Operands of products with weights in blocks in the order of tiles: rows once for all columns,
 * columns a flight at a time. See blocks.inl, which includes this; the words for tiles come before.
 */

namespace {

/* A flight: products of two tiles of columns and two of rows, of four blocks of a chain. */
constexpr int64_t kSide = 2;
constexpr int64_t kUnits = kSide * kSide;
constexpr int64_t kFlight = 4;
constexpr int64_t kChains = 4;            /* of block_weights.h */
constexpr int64_t kPanel = kSide * kTile; /* columns */
constexpr int64_t kGroup = kSide * kTile; /* rows */

/* D of unit j and block f of a flight stand at f * kNear + j * kFar or, in every second flight, at
 * f * kFar + j * kNear: they are read j by j and written f by f, so that each takes the place that
 * was read just before, and 17 KiB are enough. Strides of 4096 + 832 keep what is read away from
 * what was just written, modulo 4096: 128 x 3072 x 3072 takes 3.30 ms, with 4096 + 256 3.51. */
constexpr int64_t kNear = kTileBytes;
constexpr int64_t kFar = 4 * kNear + 832;
constexpr int64_t kSumsBytes = 3 * (kNear + kFar) + kNear;
static_assert(kUnits == kFlight, "both orders take the same places");
static_assert(kTile == kLanes && kNear == 1024, "a tile of sums");
static_assert(kPanel <= FOLIO_BLOCK_COLUMNS && FOLIO_BLOCK_ROWS % kGroup == 0, "scratch is enough");

/* What is multiplied with weights: rounded rows, which are bytes with scales, or floats, each as so
 * many bfloat16 numbers. */
template <int kParts_, int kBytes_>
struct Way {
  static constexpr int kParts = kParts_; /* of a float: 3; 0: rounded rows */
  static constexpr int kBytes = kBytes_; /* of a block of 16 columns; 0: of pieces, Cut has them */
  /* From a piece of 16 rows to the next. */
  static constexpr int64_t kRowBytes = kParts > 0 ? kParts* kTileBytes : kBytes;
};

/* How a block is cut for tiles. */
struct Cut {
  Cut(const FolioBlockWeights& w, int parts)
      : piece(w.block < (parts > 0 ? 32 : 64) ? w.block
              : parts > 0                     ? 32
                                              : 64),
        pieces(w.block / piece),
        row(piece * (parts > 0 ? 2 : 1)),
        bytes(pieces * row * kTile),
        row_bytes(parts > 0 ? pieces * parts * kTileBytes : bytes),
        scale_bytes(parts > 0 ? 0 : kTile * (int64_t)sizeof(float)),
        blob_shift(__builtin_ctzll((unsigned long long)(w.block * w.bits / 8))),
        piece_shift(__builtin_ctzll((unsigned long long)(piece * w.bits / 8))) {}

  int64_t piece;               /* elements */
  int64_t pieces;              /* of a block */
  int64_t row;                 /* bytes of a piece of a column */
  int64_t bytes;               /* of a block of 16 columns */
  int64_t row_bytes;           /* of a block of 16 rows */
  int64_t scale_bytes;         /* of their scales */
  int blob_shift, piece_shift; /* of the bytes that a column has of a block and of a piece: 2^ */
};

/* Where what a call needs stands in its scratch. `rows`: of a batch. */
struct Places {
  Places(const Shape& s, const Cut& cut, int64_t rows_, void* scratch)
      : chains((float*)scratch),
        scales(chains + kChains * kPanel * rows_),
        codes((uint8_t*)(scales + 2 * kPanel * s.padded)),
        rows(codes + kSide * kFlight * cut.bytes),
        row_tile(s.padded * (cut.row_bytes + cut.scale_bytes)) {}
  /* For multiply_weights(): all of 32 columns, [place][tile][piece][column][element], and rows. */
  Places(const Shape& s, const Cut& cut, void* scratch)
      : chains(nullptr),
        scales(nullptr),
        codes((uint8_t*)scratch),
        rows(codes + kSide * s.padded * cut.bytes),
        row_tile(s.padded * cut.row_bytes) {}

  /* Of 16 rows, of each chain, then block: elements in the order of tiles. Then likewise scales,
   * of rounded rows. */
  uint8_t* row_codes(int64_t tile) const { return rows + tile * row_tile; }
  float* row_scales(const Shape& s, const Cut& cut, int64_t tile) const {
    return (float*)(row_codes(tile) + s.padded * cut.row_bytes);
  }

  float* chains;  /* [chain][group of rows][unit][column][row] */
  float* scales;  /* twice [chain][block][column] */
  uint8_t* codes; /* a flight of columns: [block][tile][piece][column][element] */
  uint8_t* rows;
  int64_t row_tile; /* bytes of 16 rows */
};

/* Number of block b, in its chain's order. */
VFN int64_t place_of(const Shape& s, int64_t b) {
  return b % kChains * (s.padded / kChains) + b / kChains;
}

/* ---- rows, once for all columns */

/* A dword of each of 16 rows, from byte `at` of a plane of a block on. */
VFN void put_dwords(const Cut& cut, VI x, int64_t plane, int64_t at, uint8_t* block) {
  const int64_t size = (int64_t)1 << cut.piece_shift;
  const int64_t line = plane * (size >> 2) + ((at & (size - 1)) >> 2);
  vi_store(block + (at >> cut.piece_shift) * cut.row * kTile + FOLIO_TILE_BYTES * line, x);
}

/* Four numbers of each of 16 rows, from `at` of a plane of a block on, as parts: in pairs as
 * unpack_block() leaves those of columns. */
template <int kBits, int kParts>
VFN void put_floats(const Cut& cut, const VI* x, int64_t plane, int64_t at, Range* range,
                    uint8_t* block) {
  const int64_t size = (int64_t)1 << cut.piece_shift;
  const int64_t quad = (at & (size - 1)) >> 2;
  char* to = (char*)block + (at >> cut.piece_shift) * kParts * kTileBytes;
  if constexpr (kBits == 4) { /* all at place 0 or 1 of two bytes, then all at 2 or 3 */
    char* const low = to + FOLIO_TILE_BYTES * (plane * (size >> 2) + quad);
    char* const high = low + FOLIO_TILE_BYTES * (size >> 1);
    split_line<kParts, JoinRows>(v_from_bits(x[0]), v_from_bits(x[2]), range, low);
    split_line<kParts, JoinRows>(v_from_bits(x[1]), v_from_bits(x[3]), range, high);
  } else {
    to += FOLIO_TILE_BYTES * 2 * quad;
    split_line<kParts, JoinRows>(v_from_bits(x[0]), v_from_bits(x[1]), range, to);
    split_line<kParts, JoinRows>(v_from_bits(x[2]), v_from_bits(x[3]), range,
                                 to + FOLIO_TILE_BYTES);
  }
}

/* Up to 16 rows, the last one again for those that are not there. */
template <int kBits>
void arrange_rows(const Shape& s, const Cut& cut, const Row& a, int64_t count, uint8_t* codes,
                  float* scales) {
  VI x[kLanes];
  for (int64_t plane = 0; plane < 8 / kBits; ++plane) {
    for (int64_t at = 0; at < s.bytes; at += 4 * kLanes) {
      turn_columns(a.codes + plane * s.plane, s.row, count, at / 4, s.plane / 4, x);
      for (int64_t i = 0; i < kLanes; ++i) {
        const int64_t byte = at + 4 * i;
        if (byte >= s.bytes) break;
        const int64_t b = byte >> cut.blob_shift;
        put_dwords(cut, x[i], plane, byte - (b << cut.blob_shift),
                   codes + place_of(s, b) * cut.row_bytes);
      }
    }
  }
  for (int64_t b = s.blocks; b < s.padded; ++b) {
    __builtin_memset(codes + place_of(s, b) * cut.row_bytes, 0, (size_t)cut.row_bytes);
  }
  for (int64_t b = 0; b < s.padded; b += kLanes) {
    turn_columns(a.scales, s.row, count, b, s.padded, x);
    for (int64_t i = 0; i < kLanes; ++i) vi_store(scales + place_of(s, b + i) * kTile, x[i]);
  }
}

/* The same of floats; a bit for each row with a number that parts cannot hold. */
template <int kBits, int kParts>
uint32_t arrange_floats(const Shape& s, const Cut& cut, const FolioBlockDotsF32* args, int64_t row,
                        int64_t count, uint8_t* to) {
  const float* a = args->a + row * args->a_row_stride;
  Range range = no_range();
  VI x[kLanes];
  for (int64_t plane = 0; plane < 8 / kBits; ++plane) {
    for (int64_t at = 0; at < s.bytes; at += kLanes) {
      turn_columns(a + plane * s.bytes, args->a_row_stride * (int64_t)sizeof(float), count, at,
                   s.bytes, x);
      for (int64_t i = 0; i < kLanes && at + i < s.bytes; i += 4) {
        const int64_t b = (at + i) >> cut.blob_shift;
        put_floats<kBits, kParts>(cut, x + i, plane, at + i - (b << cut.blob_shift), &range,
                                  to + place_of(s, b) * cut.row_bytes);
      }
    }
  }
  for (int64_t b = s.blocks; b < s.padded; ++b) {
    __builtin_memset(to + place_of(s, b) * cut.row_bytes, 0, (size_t)cut.row_bytes);
  }
  const uint32_t words = ~exact_words(range);
  uint32_t bad = 0;
  for (int64_t i = 0; i < count; ++i) bad |= (words >> 2 * i & 3 ? UINT32_C(1) : 0) << i;
  return bad;
}

/* ---- columns, a flight at a time */

/* bfloat16 of -15 to 16. */
constexpr uint16_t kHalvesOf[32] = {0xC170, 0xC160, 0xC150, 0xC140, 0xC130, 0xC120, 0xC110, 0xC100,
                                    0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80, 0x0000,
                                    0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0, 0x4100,
                                    0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x4180};

/* A block of a column of 4 bits, less its zero, as bfloat16: of its words the lowest places, then
 * the next ones and so on. vpermw takes 4 or 5 bits of a place and leaves the others alone. */
VFN void unpack_halves_32(const uint8_t* from, VI table, uint8_t* to) {
  const VI places =
      _mm512_set_epi64(0x000C000C000C000C, 0x000C000C000C000C, 0x0008000800080008,
                       0x0008000800080008, 0x0004000400040004, 0x0004000400040004, 0, 0);
  const VI words = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i*)from));
  vi_store(to, _mm512_permutexvar_epi16(_mm512_srlv_epi16(words, places), table));
}
VFN void unpack_halves_16(const uint8_t* from, VI table, uint8_t* to) {
  const __m256i places =
      _mm256_set_epi64x(0x000C000C000C000C, 0x0008000800080008, 0x0004000400040004, 0);
  const __m256i words = _mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i*)from));
  _mm256_storeu_si256((__m256i*)to, _mm256_permutexvar_epi16(_mm256_srlv_epi16(words, places),
                                                             _mm512_castsi512_si256(table)));
}

/* Of 16 pairs of codes of 8 bits those that are there, in their order. */
VFN void unpack_halves_8(const uint8_t* from, VM m, VI zero, uint8_t* to) {
  const VI pairs = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, from));
  const VI low = vi_from_bits(v_from_int(vi_sub(vi_and(pairs, vi_set1(0xFF)), zero)));
  const VI high = vi_from_bits(v_from_int(vi_sub(vi_shift_right(pairs, 8), zero)));
  _mm512_mask_storeu_epi32(to, m, vi_or(vi_shift_right(low, 16), high));
}

/* 64 codes of 4 bits less their zero, the low places first. */
VFN void unpack_bytes_4(const uint8_t* from, VI zero, uint8_t* to) {
  const VI places = _mm512_set_epi64(0x0004000400040004, 0x0004000400040004, 0x0004000400040004,
                                     0x0004000400040004, 0, 0, 0, 0);
  const VI words = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)from));
  const VI codes = vi_and(_mm512_srlv_epi16(words, places), vi_set1(0x0F0F0F0F));
  vi_store(to, _mm512_sub_epi8(codes, zero));
}

/* kCount codes of 8 bits less their zero. */
template <int kCount>
VFN void unpack_bytes_8(const uint8_t* from, VI zero, uint8_t* to) {
  const __mmask64 m = ~0ull >> (64 - kCount);
  _mm512_mask_storeu_epi8(to, m, _mm512_sub_epi8(_mm512_maskz_loadu_epi8(m, from), zero));
}

/* What unpacking needs to know of a zero. */
template <int kBits, bool kHalves>
VFN VI zero_of(int zero) {
  if (kHalves && kBits == 4) {
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)(kHalvesOf + 15 - zero)));
  }
  return kHalves ? vi_set1(zero) : _mm512_set1_epi8((char)zero);
}

/* A block of a column. kBytes as in Way. */
template <int kBits, bool kHalves, int kBytes>
VFN void unpack_block(const Cut& cut, const uint8_t* from, VI zero, uint8_t* to) {
  if constexpr (kHalves && kBits == 4 && kBytes == kNear / 2) {
    unpack_halves_16(from, zero, to);
  } else {
    constexpr int64_t kMost = kHalves ? 32 : 64; /* elements of a piece */
    const int64_t pieces = kBytes ? 1 : cut.pieces;
    for (int64_t i = 0; i < pieces; ++i, from += kMost * kBits / 8, to += kNear) {
      if constexpr (kHalves && kBits == 4) {
        unpack_halves_32(from, zero, to);
      } else if constexpr (kHalves) {
        unpack_halves_8(from, kBytes == kNear / 2 ? 0xFF : 0xFFFF, zero, to);
      } else if constexpr (kBits == 4) {
        unpack_bytes_4(from, zero, to);
      } else {
        unpack_bytes_8<kBytes ? kBytes / kTile : 64>(from, zero, to);
      }
    }
  }
}

/* `count` <= kPanel columns, from `first` on. */
struct Side {
  const FolioBlockWeights* w;
  int64_t first;
  int64_t count;
};

/* Fetches into L2 a part of the next columns, as far on as flight `place` is in these. Every fourth
 * line: the CPU fetches those between. */
VFN void fetch_next(const Shape& s, const Side& panel, int64_t place) {
  const FolioBlockWeights& w = *panel.w;
  const int64_t column = panel.first + kPanel;
  const int64_t codes = kPanel * s.bytes * kFlight / s.padded;
  const int64_t scales = kPanel * 4 * s.blocks * kFlight / s.padded;
  const char* from = (const char*)w.codes + column * s.bytes + place / kFlight * codes;
  for (int64_t at = 0; at < codes; at += 256) _mm_prefetch(from + at, _MM_HINT_T1);
  from = (const char*)w.scales + column * 4 * s.blocks + place / kFlight * scales;
  for (int64_t at = 0; at < scales; at += 256) _mm_prefetch(from + at, _MM_HINT_T1);
}

/* kBlocks blocks of a chain from its block `at` on, the last column again for those that are not
 * there. */
template <int kBits, typename W, bool kZeros, int kBlocks>
VFN void unpack_columns(const Shape& s, const Cut& cut, const Side& panel, int64_t b, uint8_t* to) {
  const FolioBlockWeights& w = *panel.w;
  const uint8_t* codes = (const uint8_t*)w.codes + panel.first * s.bytes + b * s.blob;
  const float* zeros = kZeros ? w.zeros + panel.first * s.blocks + b : nullptr;
  const int64_t row = W::kBytes ? W::kBytes / kTile : cut.row;
  const int64_t bytes = W::kBytes ? W::kBytes : cut.bytes;
  const int64_t step = kChains * s.blob;
  VI zero = zero_of<kBits, (W::kParts > 0)>(1 << (kBits - 1));
  for (int64_t side = 0; side < kSide; ++side) {
    uint8_t* column = to + side * bytes;
    for (int64_t j = 0; j < kTile; ++j, column += row) {
#pragma GCC unroll 4
      for (int64_t f = 0; f < kBlocks; ++f) {
        if (kZeros) zero = zero_of<kBits, (W::kParts > 0)>((int)zeros[f * kChains]);
        unpack_block<kBits, (W::kParts > 0), W::kBytes>(cut, codes + f * step, zero,
                                                        column + f * kSide * bytes);
      }
      const bool more = side * kTile + j + 1 < panel.count;
      codes += more ? s.bytes : 0;
      if (kZeros) zeros += more ? s.blocks : 0;
    }
  }
}

/* ---- columns as the weights themselves, rounded to bfloat16 */

/* What 16 codes stand for, `codes` less their zero, as a table for unpack_halves, twice. kSmall: no
 * weight is rounded to infinity. */
template <bool kSmall>
VFN VI weights_of_codes(V codes, float scale) {
  const V w = v_mul(codes, v_set1(scale));
  return kSmall ? v_to_words(w, w) : round_words(w, w);
}

/* Whether scales of 4 blocks are below 2^120, so that 16 times as much is finite, rounded too. */
VFN bool are_small(const char* scales) {
  const __m128i size =
      _mm_and_si128(_mm_loadu_si128((const __m128i*)scales), _mm_set1_epi32(0x7fffffff));
  return _mm_cmplt_epu32_mask(size, _mm_set1_epi32((127 + 120) << 23)) == 0xF;
}

/* Pairs of 16 codes of 8 bits, in their order, `m` of them. */
VFN void unpack_weights_8(const uint8_t* from, VM m, float zero, float scale, uint8_t* to) {
  const VI pairs = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, from));
  const V low = v_sub(v_from_int(vi_and(pairs, vi_set1(0xFF))), v_set1(zero));
  const V high = v_sub(v_from_int(vi_shift_right(pairs, 8)), v_set1(zero));
  const VI words = round_words(v_mul(low, v_set1(scale)), v_mul(high, v_set1(scale)));
  _mm512_mask_storeu_epi32(to, m, join_words(words));
}

/* A block of a column; kShort: of 32, which is one whole piece. */
template <int kBits, bool kShort, bool kSmall>
VFN void unpack_weights(const Cut& cut, const uint8_t* from, V codes, float zero, float scale,
                        uint8_t* to) {
  constexpr int64_t kMost = 32; /* elements of a piece */
  const VI table = kBits == 4 ? weights_of_codes<kSmall>(codes, scale) : vi_set1(0);
  const int64_t pieces = kShort ? 1 : cut.pieces;
  for (int64_t i = 0; i < pieces; ++i, from += kMost * kBits / 8, to += kNear) {
    if constexpr (kBits == 8) {
      unpack_weights_8(from, !kShort && cut.piece < kMost ? 0xFF : 0xFFFF, zero, scale, to);
    } else if (!kShort && cut.piece < kMost) {
      unpack_halves_16(from, table, to);
    } else {
      unpack_halves_32(from, table, to);
    }
  }
}

/* kBlocks blocks of a column from b on, a multiple of four; the same of the next panel is fetched
 * into L2. */
template <int kBits, bool kShort, bool kZeros, int kBlocks, bool kSmall>
VFN void unpack_some(const Shape& s, const Cut& cut, const FolioBlockWeights& w, int64_t column,
                     int64_t b, uint8_t* tile) {
  const V all = _mm512_set_ps(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const uint8_t* from = (const uint8_t*)w.codes + column * s.bytes + b * s.blob;
  const char* scales = (const char*)w.scales + (column * s.blocks + b) * 4;
  const float* zeros = kZeros ? w.zeros + column * s.blocks + b : nullptr;
  for (int64_t at = 0; at < kFlight * s.blob; at += 64) {
    _mm_prefetch((const char*)from + kPanel * s.bytes + at, _MM_HINT_T1);
  }
  if (b % kLanes == 0) _mm_prefetch(scales + kPanel * s.blocks * 4, _MM_HINT_T1);
  const int64_t chain = s.padded / kChains * kSide * cut.bytes;
  float zero = (float)(1 << (kBits - 1));
  V codes = v_sub(all, v_set1(zero));
#pragma GCC unroll 4
  for (int64_t f = 0; f < kBlocks; ++f) {
    if (kZeros) {
      zero = zeros[f];
      codes = v_sub(all, v_set1(zero));
    }
    float scale;
    __builtin_memcpy(&scale, scales + 4 * f, sizeof(float));
    unpack_weights<kBits, kShort, kSmall>(cut, from + f * s.blob, codes, zero, scale,
                                          tile + f * chain);
  }
}

template <int kBits, bool kShort, bool kZeros>
VFN void unpack_column(const Shape& s, const Cut& cut, const FolioBlockWeights& w, int64_t column,
                       int64_t b, uint8_t* tile) {
  switch (s.blocks - b) {
    case 1:
      return unpack_some<kBits, kShort, kZeros, 1, false>(s, cut, w, column, b, tile);
    case 2:
      return unpack_some<kBits, kShort, kZeros, 2, false>(s, cut, w, column, b, tile);
    case 3:
      return unpack_some<kBits, kShort, kZeros, 3, false>(s, cut, w, column, b, tile);
    default:
      break;
  }
  if (kBits == 4 && are_small((const char*)w.scales + (column * s.blocks + b) * 4)) {
    unpack_some<kBits, kShort, kZeros, kFlight, true>(s, cut, w, column, b, tile);
  } else {
    unpack_some<kBits, kShort, kZeros, kFlight, false>(s, cut, w, column, b, tile);
  }
}

template <int kBits, bool kShort, bool kZeros>
void unpack_blocks(const Shape& s, const Cut& cut, const Side& panel, uint8_t* to) {
  static_assert(kFlight == kChains, "blocks of a flight are one of each chain");
  for (int64_t b = 0; b < s.blocks; b += kFlight) {
    uint8_t* const place = to + b / kChains * kSide * cut.bytes;
    for (int64_t j = 0; j < kPanel; ++j) { /* the last one again for those that are not there */
      const int64_t column = panel.first + (j < panel.count ? j : panel.count - 1);
      unpack_column<kBits, kShort, kZeros>(s, cut, *panel.w, column, b,
                                           place + j / kTile * cut.bytes + j % kTile * cut.row);
    }
  }
}

/* All blocks of a panel. Beyond the last there are zeros, as rows have. */
template <int kBits, bool kZeros>
void unpack_panel(const Shape& s, const Cut& cut, const Side& panel, uint8_t* to) {
  for (int64_t b = s.blocks; b < s.padded; ++b) {
    __builtin_memset(to + place_of(s, b) * kSide * cut.bytes, 0, (size_t)(kSide * cut.bytes));
  }
  if (cut.bytes == kNear) {
    unpack_blocks<kBits, true, kZeros>(s, cut, panel, to);
  } else {
    unpack_blocks<kBits, false, kZeros>(s, cut, panel, to);
  }
}

/* Beyond the last block there are zeros, which are finite: rows have zeros there, too. */
template <int kBits, typename W, bool kZeros>
void unpack_flight(const Shape& s, const Cut& cut, const Side& panel, int64_t chain, int64_t at,
                   uint8_t* to) {
  const int64_t b = at * kChains + chain;
  const int64_t left = (s.blocks - b + kChains - 1) / kChains;
  fetch_next(s, panel, chain * (s.padded / kChains) + at);
  if (left >= kFlight) {
    unpack_columns<kBits, W, kZeros, kFlight>(s, cut, panel, b, to);
    return;
  }
  __builtin_memset(to, 0, (size_t)(kFlight * kSide * cut.bytes));
  for (int64_t f = 0; f < left; ++f) {
    unpack_columns<kBits, W, kZeros, 1>(s, cut, panel, b + f * kChains, to + f * kSide * cut.bytes);
  }
}

void arrange_scales(const Shape& s, const Side& panel, float* scales) {
  for (int64_t side = 0; side < kPanel; side += kTile) {
    const int64_t skip = side < panel.count ? side : 0; /* what is not there may be anything */
    const int64_t left = panel.count - skip;
    const char* from = (const char*)panel.w->scales + 4 * (panel.first + skip) * s.blocks;
    VI x[kLanes];
    for (int64_t b = 0; b < s.padded; b += kLanes) {
      turn_columns(from, 4 * s.blocks, left < kTile ? left : kTile, b, s.blocks, x);
      for (int64_t i = 0; i < kLanes; ++i) {
        vi_store(scales + place_of(s, b + i) * kPanel + side, x[i]);
      }
    }
  }
}

}  // namespace
