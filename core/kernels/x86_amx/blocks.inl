/* Weights of small integers in blocks times many rows of 8-bit integers, in tiles. The including
 * file gives the words for tiles before.
 *
 * A product of tiles makes D of block_weights.h of one block for 16 columns and 16 rows, columns
 * first: weights are its left operand, where the codes of a column stand together as they do in
 * memory, rows of A its right one. D is a whole number below 2^24, which a float holds. Then
 *
 *   sum[column] = fma(D[column], scale[column] * a_scale, sum[column])
 *
 * is done for 16 rows at a time: the chains of block_weights.h, with the same bits as at every
 * level. Up to 128 rows are put in the order of tiles; then 32 columns after the other are
 * unpacked, four blocks of a chain at a time into L1, for products with all of these rows.
 *
 * What it costs (Xeon with AMX at 3.3 GHz, 2026-11, a block of 32 for 16 x 16): 32 operations of
 * floats, which with tiles in use take a cycle each instead of half a one, as if one of their two
 * ports were gone (shuffles and additions of integers do not suffer), and 16 more if D has to be
 * converted. 16 cycles of a product, and 16 of a store of a tile, can be done meanwhile; so 12 ns
 * is the least that was seen, with all operands in L1, and 18 if D is converted. Therefore blocks
 * of up to 32 codes of 4 bits are multiplied as bfloat16, which holds such integers and gives D as
 * floats: half as deep a tile, but that is as deep as the block. Longer blocks are bytes, and so
 * are codes of 8 bits, which take longer to unpack as bfloat16 than that gains; with zeros their
 * differences need 9 bits, and they are bfloat16.
 *
 * Here it is 14 to 15.5 ns when nothing else is done, with rows from L2, and 19 among the rest,
 * with 1.8 to 3 for unpacking with 128 rows. What more would stand in L1 at the same time is paid
 * twice: unpacking the next columns between the products of these, into a second buffer, took 23.6
 * ns instead of 20.3 one after the other, and eight blocks instead of four in a flight 27 instead
 * of 15. So did fetching rows into L1 ahead (19 instead of 15.7), and two loads of tiles for each
 * product, for chains that stay in registers over eight blocks (31).
 *
 * A store of a tile waits for its product, 52 cycles, and what is behind it with it; so a tile is
 * stored when its turn comes again, four products later (7.0 ns a product with its loads and
 * stores, without sums, instead of 11.1), and read a flight later. */

#include "core/kernels/x86_amx/x86_amx.h"
#include "core/kernels/x86_avx512/vec.h"
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/vector/block_panels.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

namespace {

/* Fewer rows fill less than half of what is multiplied at a time: the level below is faster (16
 * rows x 4096 x 4096, blocks of 32: 281 GOP/s, here 263). */
constexpr int64_t kFewRows = 16;

/* A flight: products of two tiles of columns and two of rows, of four blocks of a chain. */
constexpr int64_t kSide = 2;
constexpr int64_t kUnits = kSide * kSide;
constexpr int64_t kFlight = 4;
constexpr int64_t kChains = 4; /* of block_weights.h */
constexpr int64_t kTile = FOLIO_TILE_ROWS;
constexpr int64_t kPanel = kSide * kTile; /* columns */
constexpr int64_t kGroup = kSide * kTile; /* rows */

/* D of unit j and block f of a flight stand at f * kNear + j * kFar or, in every second flight, at
 * f * kFar + j * kNear: they are read j by j and written f by f, so that each takes the place that
 * was read just before, and 17 KiB are enough. Strides of 4096 + 832 keep what is read away from
 * what was just written, modulo 4096: 128 x 3072 x 3072 takes 3.30 ms, with 4096 + 256 3.51. */
constexpr int64_t kNear = kTile * FOLIO_TILE_BYTES;
constexpr int64_t kFar = 4 * kNear + 832;
constexpr int64_t kSumsBytes = 3 * (kNear + kFar) + kNear;
static_assert(kUnits == kFlight, "both orders take the same places");
static_assert(kTile == kLanes && kNear == 1024, "a tile of sums");
static_assert(kPanel <= FOLIO_BLOCK_COLUMNS && FOLIO_BLOCK_ROWS % kGroup == 0, "scratch is enough");

/* How a block is cut for tiles. */
struct Cut {
  explicit Cut(const FolioBlockWeights& w)
      : halves(w.bits == 4 ? w.block <= 32 : w.zeros != nullptr),
        part(w.block < (halves ? 32 : 64) ? w.block
             : halves                     ? 32
                                          : 64),
        parts(w.block / part),
        row(part * (halves ? 2 : 1)),
        bytes(w.block / part * row * kTile),
        blob_shift(__builtin_ctzll((unsigned long long)(w.block * w.bits / 8))),
        part_shift(__builtin_ctzll((unsigned long long)(part * w.bits / 8))) {}

  bool halves;                /* bfloat16, otherwise bytes */
  int64_t part;               /* elements */
  int64_t parts;              /* of a block */
  int64_t row;                /* bytes of a part of a column */
  int64_t bytes;              /* of a block of 16 columns, or rows */
  int blob_shift, part_shift; /* of the bytes that a column has of a block and of a part: 2^ */
};

/* Where what a call needs stands in its scratch. */
struct Places {
  Places(const Shape& s, const Cut& cut, void* scratch)
      : chains((float*)scratch),
        scales(chains + kChains * kPanel * FOLIO_BLOCK_ROWS),
        codes((uint8_t*)(scales + 2 * kPanel * s.padded)),
        rows(codes + kSide * kFlight * cut.bytes),
        row_tile(s.padded * (cut.bytes + kTile * (int64_t)sizeof(float))) {}

  /* Of 16 rows, of each chain, then block: elements in the order of tiles. Then likewise scales. */
  uint8_t* row_codes(int64_t tile) const { return rows + tile * row_tile; }
  float* row_scales(const Shape& s, const Cut& cut, int64_t tile) const {
    return (float*)(row_codes(tile) + s.padded * cut.bytes);
  }

  float* chains;  /* [chain][group of rows][unit][column][row] */
  float* scales;  /* twice [chain][block][column] */
  uint8_t* codes; /* a flight of columns: [block][tile][part][column][element] */
  uint8_t* rows;
  int64_t row_tile; /* bytes of 16 rows */
};

/* Number of block b, in its chain's order. */
VFN int64_t place_of(const Shape& s, int64_t b) {
  return b % kChains * (s.padded / kChains) + b / kChains;
}

/* ---- rows, once for all columns */

/* Bytes kLow and kHigh of each dword as bfloat16. */
template <int kLow, int kHigh>
VFN VI pair_of(VI x) {
  const VI low = vi_shift_right_signed(vi_shift_left(x, 24 - 8 * kLow), 24);
  const VI high = vi_shift_right_signed(vi_shift_left(x, 24 - 8 * kHigh), 24);
  const VI low_bits = vi_shift_right(vi_from_bits(v_from_int(low)), 16);
  return vi_or(low_bits, vi_from_bits(v_from_int(high))); /* whose low half is 0 */
}

/* A dword of each of 16 rows, from byte `at` of a plane of a block on. Pairs stand as
 * unpack_halves() leaves those of columns. */
template <int kBits>
VFN void put_dwords(const Cut& cut, VI x, int64_t plane, int64_t at, uint8_t* block) {
  const int64_t part = (int64_t)1 << cut.part_shift;
  uint8_t* to = block + (at >> cut.part_shift) * cut.row * kTile;
  const int64_t d = (at & (part - 1)) >> 2;
  if (!cut.halves) {
    vi_store(to + FOLIO_TILE_BYTES * (plane * (part >> 2) + d), x);
  } else if (kBits == 4) {
    vi_store(to + FOLIO_TILE_BYTES * (plane * (part >> 2) + d), pair_of<0, 2>(x));
    vi_store(to + FOLIO_TILE_BYTES * ((plane + 2) * (part >> 2) + d), pair_of<1, 3>(x));
  } else {
    vi_store(to + FOLIO_TILE_BYTES * (2 * d), pair_of<0, 1>(x));
    vi_store(to + FOLIO_TILE_BYTES * (2 * d + 1), pair_of<2, 3>(x));
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
        put_dwords<kBits>(cut, x[i], plane, byte - (b << cut.blob_shift),
                          codes + place_of(s, b) * cut.bytes);
      }
    }
  }
  for (int64_t b = s.blocks; b < s.padded; ++b) {
    __builtin_memset(codes + place_of(s, b) * cut.bytes, 0, (size_t)cut.bytes);
  }
  for (int64_t b = 0; b < s.padded; b += kLanes) {
    turn_columns(a.scales, s.row, count, b, s.padded, x);
    for (int64_t i = 0; i < kLanes; ++i) vi_store(scales + place_of(s, b + i) * kTile, x[i]);
  }
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

/* A block of a column. kBytes as in next_unit(). */
template <int kBits, bool kHalves, int kBytes>
VFN void unpack_block(const Cut& cut, const uint8_t* from, VI zero, uint8_t* to) {
  if constexpr (kHalves && kBits == 4) {
    if (kBytes == kNear) {
      unpack_halves_32(from, zero, to);
    } else {
      unpack_halves_16(from, zero, to);
    }
  } else if constexpr (kHalves) {
    for (int64_t part = 0; part < cut.parts; ++part, from += cut.part, to += cut.row * kTile) {
      unpack_halves_8(from, kBytes == kNear / 2 ? 0xFF : 0xFFFF, zero, to);
    }
  } else {
    const int64_t parts = kBytes ? 1 : cut.parts;
    for (int64_t part = 0; part < parts; ++part, from += 64 * kBits / 8, to += kNear) {
      if constexpr (kBits == 4) {
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
template <int kBits, bool kHalves, int kBytes, bool kZeros, int kBlocks>
VFN void unpack_columns(const Shape& s, const Cut& cut, const Side& panel, int64_t b, uint8_t* to) {
  const FolioBlockWeights& w = *panel.w;
  const uint8_t* codes = (const uint8_t*)w.codes + panel.first * s.bytes + b * s.blob;
  const float* zeros = kZeros ? w.zeros + panel.first * s.blocks + b : nullptr;
  const int64_t row = kBytes ? kBytes / kTile : cut.row;
  const int64_t bytes = kBytes ? kBytes : cut.bytes;
  const int64_t step = kChains * s.blob;
  VI zero = zero_of<kBits, kHalves>(1 << (kBits - 1));
  for (int64_t side = 0; side < kSide; ++side) {
    uint8_t* column = to + side * bytes;
    for (int64_t j = 0; j < kTile; ++j, column += row) {
#pragma GCC unroll 4
      for (int64_t f = 0; f < kBlocks; ++f) {
        if (kZeros) zero = zero_of<kBits, kHalves>((int)zeros[f * kChains]);
        unpack_block<kBits, kHalves, kBytes>(cut, codes + f * step, zero,
                                             column + f * kSide * bytes);
      }
      const bool more = side * kTile + j + 1 < panel.count;
      codes += more ? s.bytes : 0;
      if (kZeros) zeros += more ? s.blocks : 0;
    }
  }
}

/* Beyond the last block there are zeros, which are finite: rows have zeros there, too. */
template <int kBits, bool kHalves, int kBytes, bool kZeros>
void unpack_flight(const Shape& s, const Cut& cut, const Side& panel, int64_t chain, int64_t at,
                   uint8_t* to) {
  const int64_t b = at * kChains + chain;
  const int64_t left = (s.blocks - b + kChains - 1) / kChains;
  fetch_next(s, panel, chain * (s.padded / kChains) + at);
  if (left >= kFlight) {
    unpack_columns<kBits, kHalves, kBytes, kZeros, kFlight>(s, cut, panel, b, to);
    return;
  }
  __builtin_memset(to, 0, (size_t)(kFlight * kSide * cut.bytes));
  for (int64_t f = 0; f < left; ++f) {
    unpack_columns<kBits, kHalves, kBytes, kZeros, 1>(s, cut, panel, b + f * kChains,
                                                      to + f * kSide * cut.bytes);
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

/* ---- products and sums */

TileShapes shapes_of(const Cut& cut) {
  TileShapes shapes = {};
  shapes.palette = 1;
  for (int i = 0; i < FOLIO_TILE_COUNT; ++i) {
    const bool is_columns = i == 4 || i == 5;
    const bool is_rows = i >= 6;
    shapes.rows[i] = (uint8_t)(is_rows ? cut.row / 4 : kTile);
    shapes.row_bytes[i] = (uint16_t)(is_columns ? cut.row : FOLIO_TILE_BYTES);
  }
  return shapes;
}

/* What a flight multiplies. */
struct Next {
  const uint8_t* columns; /* codes of Places */
  const uint8_t* rows[kSide];
  int64_t bytes; /* of a block of a tile */
};

/* What the flight before it is multiplied by and added to. */
struct Sums {
  const float* scales;            /* [block][kPanel] */
  const float* row_scales[kSide]; /* [block][kTile] */
  float* chains;                  /* [unit][kTile][kTile] */
};

template <bool kHalves, int kC, int kA, int kB>
VFN void multiply() {
  if constexpr (kHalves) {
    tile_dot_bf16<kC, kA, kB>();
  } else {
    tile_dot_ss<kC, kA, kB>();
  }
}

/* Stores what tile kJ holds, unit kJ of a block before, and makes that of block kF. kBytes: bytes
 * of a block of a tile, or 0: of whole tiles, next.bytes. Tiles of one part are loaded a unit
 * ahead: 15.2 instead of 15.7 ns a product. */
template <bool kHalves, int kBytes, int kF, int kJ>
VFN void next_unit(const Next& next, uint8_t* before) {
  const int64_t bytes = kBytes ? kBytes : next.bytes;
  const uint8_t* columns = next.columns + (kF * kSide + kJ / kSide) * bytes;
  const uint8_t* rows = next.rows[kJ % kSide] + kF * bytes;
  tile_store<kJ>(before, FOLIO_TILE_BYTES);
  tile_zero<kJ>();
  if constexpr (kBytes != 0) {
    constexpr int kRow = kBytes / kTile;
    if (kF == 0 && kJ == 0) {
      tile_load<4>(columns, kRow);
      tile_load<6>(rows, FOLIO_TILE_BYTES);
    }
    multiply<kHalves, kJ, 4 + kJ / 2, 6 + kJ % 2>();
    if (kJ == 0) tile_load<7>(next.rows[1] + kF * bytes, FOLIO_TILE_BYTES);
    if (kJ == 1) tile_load<5>(columns + bytes, kRow);
    if (kF + 1 < kFlight && kJ == 3) {
      tile_load<4>(columns + bytes, kRow);
      tile_load<6>(next.rows[0] + (kF + 1) * bytes, FOLIO_TILE_BYTES);
    }
  } else {
    for (int64_t part = 0; part < bytes; part += 2 * kNear) {
      tile_load<4>(columns + part, FOLIO_TILE_BYTES);
      tile_load<6>(rows + part, FOLIO_TILE_BYTES);
      multiply<kHalves, kJ, 4, 6>();
      tile_load<5>(columns + part + kNear, FOLIO_TILE_BYTES);
      tile_load<7>(rows + part + kNear, FOLIO_TILE_BYTES);
      multiply<kHalves, kJ, 5, 7>();
    }
  }
}

/* chain[column] continued by a block. */
template <bool kHalves>
VFN void add_block(const uint8_t* sums, const float* scales, const float* row_scales,
                   V (&chain)[kTile]) {
  const V row_scale = v_load(row_scales);
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) {
    const uint8_t* sum = sums + i * FOLIO_TILE_BYTES;
    const V exact = kHalves ? v_load((const float*)sum) : v_from_int(vi_load(sum));
    chain[i] = v_fma(exact, v_mul(row_scale, v_set1(scales[i])), chain[i]);
  }
}

/* Block kQ of a flight, and unit kQ of the one before it. kOfBlock, kOfUnit: how far what is read
 * stands apart; what is written stands the other way. All offsets are constants: a few instructions
 * more for addresses cost 2 of 17 ns a product. */
template <bool kHalves, int kBytes, int64_t kOfBlock, int64_t kOfUnit, int kQ>
VFN void fly_quarter(const Next& next, const Sums& sums, uint8_t* d) {
  const float* scales = sums.scales + kQ / kSide * kTile;
  const float* row_scales = sums.row_scales[kQ % kSide];
  float* chains = sums.chains + kQ * kTile * kTile;
  const uint8_t* from = d + kQ * kOfUnit;
  /* In the first quarter the tiles still hold the last blocks of the flight before. */
  constexpr int64_t kTo = kQ == 0 ? (kFlight - 1) * kOfBlock : (kQ - 1) * kOfUnit;
  constexpr int64_t kStep = kQ == 0 ? kOfUnit : kOfBlock;
  V chain[kTile];
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) chain[i] = v_load(chains + i * kTile);
  add_block<kHalves>(from, scales, row_scales, chain);
  next_unit<kHalves, kBytes, kQ, 0>(next, d + kTo);
  add_block<kHalves>(from + kOfBlock, scales + kPanel, row_scales + kTile, chain);
  next_unit<kHalves, kBytes, kQ, 1>(next, d + kTo + kStep);
  add_block<kHalves>(from + 2 * kOfBlock, scales + 2 * kPanel, row_scales + 2 * kTile, chain);
  next_unit<kHalves, kBytes, kQ, 2>(next, d + kTo + 2 * kStep);
  add_block<kHalves>(from + 3 * kOfBlock, scales + 3 * kPanel, row_scales + 3 * kTile, chain);
  next_unit<kHalves, kBytes, kQ, 3>(next, d + kTo + 3 * kStep);
#pragma GCC unroll 16
  for (int i = 0; i < kTile; ++i) v_store(chains + i * kTile, chain[i]);
}

/* The products of a flight while the sums of the one before are added to their chains. */
template <bool kHalves, int kBytes, int64_t kOfBlock, int64_t kOfUnit>
__attribute__((noinline)) void fly(const Next& given_next, const Sums& given_sums, uint8_t* d) {
  const Next next = given_next;
  const Sums sums = given_sums;
  fly_quarter<kHalves, kBytes, kOfBlock, kOfUnit, 0>(next, sums, d);
  fly_quarter<kHalves, kBytes, kOfBlock, kOfUnit, 1>(next, sums, d);
  fly_quarter<kHalves, kBytes, kOfBlock, kOfUnit, 2>(next, sums, d);
  fly_quarter<kHalves, kBytes, kOfBlock, kOfUnit, 3>(next, sums, d);
}

/* Rows of A that are multiplied with all columns before the next ones are arranged. */
struct Batch {
  int64_t first;
  int64_t count;
  int64_t groups() const { return (count + kGroup - 1) / kGroup; }
};

/* sums = the four chains of kUnits units, `chain_floats` apart, which are as they begin then. */
void add_chains(float* chains, int64_t chain_floats, float* sums) {
  for (int64_t i = 0; i < kUnits * kTile; ++i, chains += kTile) {
    const V even = v_add(v_load(chains), v_load(chains + 2 * chain_floats));
    const V odd = v_add(v_load(chains + chain_floats), v_load(chains + 3 * chain_floats));
    v_store(sums + i * kTile, v_add(even, odd));
    for (int64_t chain = 0; chain < kChains; ++chain) {
      v_store(chains + chain * chain_floats, v_zero());
    }
  }
}

/* y of a unit: rows and columns that are there. */
void finish_unit(const FolioBlockDotsS8* args, const float* sums, int64_t row, int64_t rows,
                 int64_t n, int64_t columns) {
  VI turned[kLanes];
  turn_columns(sums, FOLIO_TILE_BYTES, kTile, 0, kTile, turned);
  const VM m = v_first(columns < kTile ? columns : kTile);
  const V bias = args->bias ? v_load_masked(args->bias + n, m) : v_zero();
  for (int64_t i = 0; i < kTile && i < rows; ++i) {
    V y = v_from_bits(turned[i]);
    if (args->bias) y = v_add(y, bias);
    v_store_masked(args->y + (row + i) * args->y_row_stride + n, m, y);
  }
}

/* Sums of all units of a group before the first of them is read again: a load waits for a store
 * that it overlaps. */
void finish_panel(const FolioBlockDotsS8* args, const Batch& batch, const Side& panel,
                  float* chains) {
  alignas(64) float sums[kUnits * kTile * kTile];
  const int64_t chain_floats = batch.groups() * kGroup * kPanel;
  for (int64_t g = 0; g < batch.groups(); ++g) {
    add_chains(chains + g * kGroup * kPanel, chain_floats, sums);
    for (int64_t j = 0; j < kUnits; ++j) {
      const int64_t row = g * kGroup + j % kSide * kTile;
      const int64_t column = j / kSide * kTile;
      if (row >= batch.count || column >= panel.count) continue;
      finish_unit(args, sums + j * kTile * kTile, batch.first + row, batch.count - row,
                  panel.first + column, panel.count - column);
    }
  }
}

/* Flights one after the other, each with the sums of the one before it. */
template <bool kHalves, int kBytes>
struct Flights {
  void fly_next(const Next& next, const Sums& then) {
    if (odd) {
      fly<kHalves, kBytes, kFar, kNear>(next, sums, d);
    } else {
      fly<kHalves, kBytes, kNear, kFar>(next, sums, d);
    }
    odd = !odd;
    sums = then;
  }

  Sums sums;
  uint8_t* d; /* kSumsBytes */
  bool odd;
};

/* All columns with a batch of rows. */
template <int kBits, bool kHalves, int kBytes>
void multiply_batch(const FolioBlockDotsS8* args, const Shape& s, const Cut& cut,
                    const Places& places, const Batch& batch) {
  alignas(64) uint8_t d[kSumsBytes] = {};
  const int64_t groups = batch.groups();
  const int64_t of_chain = s.padded / kChains;
  __builtin_memset(places.chains, 0, sizeof(float) * (size_t)(kChains * groups * kGroup * kPanel));
  Side panel = {&args->w, 0, 0};
  Next next = {places.codes, {}, cut.bytes};
  /* The first flight adds D = 0 with scales of 0. */
  const float* zeros = places.chains + (kChains - 1) * groups * kGroup * kPanel;
  Flights<kHalves, kBytes> flights = {{zeros, {zeros, zeros}, places.chains}, d, false};
  for (int64_t n = 0; n < args->w.n; n += kPanel) {
    const Side before = panel;
    const int64_t left = args->w.n - n;
    panel = {&args->w, n, left < kPanel ? left : kPanel};
    float* scales = places.scales + n / kPanel % 2 * kPanel * s.padded;
    arrange_scales(s, panel, scales);
    for (int64_t chain = 0; chain < kChains; ++chain) {
      for (int64_t at = 0; at < of_chain; at += kFlight) {
        const int64_t place = chain * of_chain + at;
        if (args->w.zeros) {
          unpack_flight<kBits, kHalves, kBytes, true>(s, cut, panel, chain, at, places.codes);
        } else {
          unpack_flight<kBits, kHalves, kBytes, false>(s, cut, panel, chain, at, places.codes);
        }
        for (int64_t g = 0; g < groups; ++g) {
          Sums sums = {scales + place * kPanel, {}, nullptr};
          sums.chains = places.chains + (chain * groups + g) * kGroup * kPanel;
          for (int64_t side = 0; side < kSide; ++side) {
            const int64_t tile = g * kSide + side;
            const int64_t last = (batch.count - 1) / kTile;
            const int64_t of = tile < last ? tile : last;
            next.rows[side] = places.row_codes(of) + place * cut.bytes;
            sums.row_scales[side] = places.row_scales(s, cut, of) + place * kTile;
          }
          flights.fly_next(next, sums);
          if (place == 0 && g == 0 && n > 0) finish_panel(args, batch, before, places.chains);
        }
      }
    }
  }
  flights.fly_next(next, flights.sums);
  finish_panel(args, batch, panel, places.chains);
}

template <int kBits>
void multiply_batch(const FolioBlockDotsS8* args, const Shape& s, const Cut& cut,
                    const Places& places, const Batch& batch) {
  if (cut.halves && kBits == 4) {
    if (cut.bytes == kNear) {
      multiply_batch<kBits, true, kNear>(args, s, cut, places, batch);
    } else {
      multiply_batch<kBits, true, kNear / 2>(args, s, cut, places, batch);
    }
  } else if (cut.halves) {
    if (cut.parts > 1) {
      multiply_batch<8, true, 0>(args, s, cut, places, batch);
    } else if (cut.bytes == kNear) {
      multiply_batch<8, true, kNear>(args, s, cut, places, batch);
    } else {
      multiply_batch<8, true, kNear / 2>(args, s, cut, places, batch);
    }
  } else if (cut.bytes > kNear) {
    multiply_batch<kBits, false, 0>(args, s, cut, places, batch);
  } else if (cut.bytes == kNear) {
    multiply_batch<kBits, false, kNear>(args, s, cut, places, batch);
  } else if (cut.bytes == kNear / 2) {
    multiply_batch<8, false, kNear / 2>(args, s, cut, places, batch);
  } else {
    multiply_batch<8, false, kNear / 4>(args, s, cut, places, batch);
  }
}

/* Rows of a batch: L2 holds them beside all else. */
int64_t rows_of_batch(const Shape& s, const Cut& cut) {
  constexpr int64_t kBatchBytes = 5 << 18;
  const int64_t groups = kBatchBytes / (s.padded * cut.bytes * kSide);
  const int64_t rows = groups < 1 ? kGroup : groups * kGroup;
  return rows < FOLIO_BLOCK_ROWS ? rows : FOLIO_BLOCK_ROWS;
}

template <int kBits>
void multiply_tiles(const FolioBlockDotsS8* args) {
  const Shape s(args->w);
  const Cut cut(args->w);
  const Places places(s, cut, args->scratch);
  const TileShapes shapes = shapes_of(cut);
  tiles_configure(&shapes);
  const int64_t rows = rows_of_batch(s, cut);
  for (int64_t row = 0; row < args->m; row += rows) {
    const int64_t left = args->m - row;
    const Batch batch = {row, left < rows ? left : rows};
    for (int64_t i = 0; i < batch.count; i += kTile) {
      const int64_t some = batch.count - i;
      arrange_rows<kBits>(s, cut, Row(s, kBits, (const char*)args->a + (row + i) * s.row),
                          some < kTile ? some : kTile, places.row_codes(i / kTile),
                          places.row_scales(s, cut, i / kTile));
    }
    multiply_batch<kBits>(args, s, cut, places, batch);
  }
  tiles_release();
}

}  // namespace

static void FOLIO_TILE_LEVEL(block_dots_s8)(const FolioBlockDotsS8* args) {
  if (args->m <= kFewRows) {
    block_dots_s8__x86_avx512vnni(args);
  } else if (args->w.bits == 4) {
    multiply_tiles<4>(args);
  } else {
    multiply_tiles<8>(args);
  }
}

void FOLIO_TILE_LEVEL(folio_fill_blocks)(FolioKernels* table) {
  table->block_dots_s8 = FOLIO_TILE_LEVEL(block_dots_s8);
}
