// Weights of small integers in blocks times rows of 8-bit integers.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

#include "core/kernels/x86_avx512/vec.h"

#if !defined(__AVX512VNNI__)
#error "compile this folder with the flags of its isa.cmake"
#endif

constexpr int kTileRows = 6;
constexpr int kTilePanels = 2;

#include "core/kernels/vector/block_rows.inl"
#include "core/kernels/x86_avx512vnni/turn_columns.inl"

/* ---- one row */

/* Lanes of 128 bits: those of a, then of b, two and two added. */
VFN VI fold(VI a, VI b) {
  return vi_add(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

template <int kBits>
VFN void add_dots(VI* dots, VI bytes, const VI* x) {
  dot4(dots, low_codes<kBits>(bytes), x[0]);
  if (kBits == 4) dot4(dots, high_codes(bytes), x[1]);
}

/* dots[j] += the sums over the quads of the bytes [at, end) of column j. */
template <int kBits>
VFN void dot_bytes(const Columns& c, const Shape& s, const int8_t* x, int64_t at, int64_t end,
                   VI* dots) {
  for (; at < end; at += 64) {
    const __mmask64 m = s.bytes - at < 64 ? (1ull << (s.bytes - at)) - 1 : ~0ull;
    VI of_x[2] = {vi_load(x + at), {}};
    if (kBits == 4) of_x[1] = vi_load(x + s.plane + at);
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) {
      add_dots<kBits>(&dots[j], _mm512_maskz_loadu_epi8(m, c.codes + j * c.bytes + at), of_x);
    }
  }
}

/* The same of 32 bytes, 8 of them in each lane of 128 bits. */
template <int kBits>
VFN void dot_eights(const Columns& c, const Shape& s, const int8_t* x, int64_t at, VI* dots) {
  const int64_t left = s.bytes - at;
  const __mmask8 m = (__mmask8)(left < 32 ? 0x55 & ((1 << left / 4) - 1) : 0x55);
  VI of_x[2] = {_mm512_maskz_expandloadu_epi64(0x55, x + at), {}};
  if (kBits == 4) of_x[1] = _mm512_maskz_expandloadu_epi64(0x55, x + s.plane + at);
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) {
    const uint8_t* from = c.codes + j * c.bytes + at;
    add_dots<kBits>(&dots[j], _mm512_maskz_expandloadu_epi64(m, from), of_x);
  }
}

/* dots[j]: of column j the sums over quads of the blocks from b on, one of four in each lane of 128
 * bits. kBlob: bytes of a block, 64 for that and more. */
template <int kBits, int kBlob>
VFN void dot_groups(const Columns& c, const Shape& s, const int8_t* x, int64_t b, VI* dots) {
  constexpr int kSteps = kBlob == 32 ? 2 : kBlob == 64 ? 4 : 1;
  const int64_t length = kBlob == 64 ? s.blob : 64;
  VI part[kSteps][kAcross];
#pragma GCC unroll 4
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 4
    for (int j = 0; j < kAcross; ++j) part[step][j] = _mm512_setzero_si512();
    const int64_t at = b * s.blob + step * length;
    if (kBlob == 8) {
      dot_eights<kBits>(c, s, x, at, part[step]);
    } else if (at < s.bytes) {
      dot_bytes<kBits>(c, s, x, at, at + length, part[step]);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kAcross; ++j) {
    if constexpr (kSteps == 1) dots[j] = part[0][j];
    if constexpr (kSteps == 2) dots[j] = fold(part[0][j], part[1][j]);
    if constexpr (kSteps == 4) {
      dots[j] = fold(fold(part[0][j], part[1][j]), fold(part[2][j], part[3][j]));
    }
  }
}

/* [block][column] of four blocks of four columns, from the sums of their quads. */
VFN VI sum_quads(const VI* dots) {
  const VI ab =
      vi_add(_mm512_unpacklo_epi32(dots[0], dots[1]), _mm512_unpackhi_epi32(dots[0], dots[1]));
  const VI cd =
      vi_add(_mm512_unpacklo_epi32(dots[2], dots[3]), _mm512_unpackhi_epi32(dots[2], dots[3]));
  return vi_add(_mm512_unpacklo_epi64(ab, cd), _mm512_unpackhi_epi64(ab, cd));
}

/* The same of numbers of which each column has one a block; `step`: bytes between columns. */
VFN V load_groups(const void* p, int64_t step, __mmask8 m) {
  const VI turn = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const char* from = (const char*)p;
  V all = _mm512_castps128_ps512(_mm_maskz_loadu_ps(m, from));
  all = _mm512_insertf32x4(all, _mm_maskz_loadu_ps(m, from + step), 1);
  all = _mm512_insertf32x4(all, _mm_maskz_loadu_ps(m, from + 2 * step), 2);
  all = _mm512_insertf32x4(all, _mm_maskz_loadu_ps(m, from + 3 * step), 3);
  return _mm512_permutexvar_ps(turn, all);
}

/* sum + four blocks of four columns, from block b on. */
template <int kBits, int kBlob>
VFN V add_groups(const Columns& c, const Shape& s, const Row& a, int64_t b, V sum) {
  const VI each = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const int64_t left = s.blocks - b;
  const __mmask8 m = (__mmask8)(left < 4 ? (1 << left) - 1 : 15);
  VI dots[kAcross];
  dot_groups<kBits, kBlob>(c, s, a.codes, b, dots);
  const __m128i four = _mm_load_si128((const __m128i*)(a.middles + b));
  const VI middles = _mm512_permutexvar_epi32(each, _mm512_castsi128_si512(four));
  V exact;
  if (c.zeros) {
    const V zeros = load_groups(c.zeros + b, 4 * c.blocks, m);
    exact = v_fma(v_mul(zeros, v_set1(1.0f / (1 << (kBits - 1)))), v_from_int(middles),
                  v_from_int(sum_quads(dots)));
  } else {
    exact = v_from_int(vi_add(sum_quads(dots), middles));
  }
  const V a_scale = _mm512_permutexvar_ps(each, _mm512_castps128_ps512(_mm_load_ps(a.scales + b)));
  const V scale = load_groups(c.scales + 4 * b, 4 * c.blocks, m);
  return v_fma(exact, v_mul(scale, a_scale), sum);
}

template <int kBits, int kBlob>
VFN __m128 dot_columns(const Columns& c, const Shape& s, const Row& a) {
  V sum = v_zero();
  for (int64_t b = 0; b < s.blocks; b += 4) {
    fetch_next(c, s, b);
    sum = add_groups<kBits, kBlob>(c, s, a, b, sum);
  }
  const __m256 two = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
  return _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1));
}

/* ---- many rows */

/* Every third of some rows: the two after it are found by one more register, taken once or twice.
 * Compilers left to themselves take a register for each row and run out of them. */
template <int kRows>
struct Thirds {
  static constexpr int kCount = (kRows + 2) / 3;

  [[gnu::always_inline]] void set(const int8_t* first, int64_t row) {
#pragma GCC unroll 3
    for (int i = 0; i < kCount; ++i) base[i] = first + 3 * i * row;
  }
  [[gnu::always_inline]] void add(int64_t bytes) {
#pragma GCC unroll 3
    for (int i = 0; i < kCount; ++i) {
      base[i] += bytes;
      __asm__("" : "+r"(base[i]));
    }
  }

  const int8_t* base[kCount];
};

template <int kRows, int kPanels>
VFN void dot_quad(const uint8_t* const* codes, int64_t at, const Thirds<kRows>& a, int64_t offset,
                  int64_t row, VI (*sum)[kPanels]) {
  VI w[kPanels];
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) w[c] = vi_load(codes[c] + at);
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    int32_t quad;
    __builtin_memcpy(&quad, a.base[i / 3] + i % 3 * row + offset, 4);
    const VI x = vi_set1(quad);
#pragma GCC unroll 2
    for (int c = 0; c < kPanels; ++c) dot4(&sum[i][c], w[c], x);
  }
}

template <int kBits, int kRows, int kPanels>
VFN void dot_block(int64_t blob, int64_t row, const int8_t* const* planes,
                   const uint8_t* const* first, VI (*sum)[kPanels]) {
  constexpr int64_t kQuad = 64 * (8 / kBits);
  const uint8_t* codes[kPanels];
#pragma GCC unroll 2
  for (int c = 0; c < kPanels; ++c) codes[c] = first[c];
  Thirds<kRows> low, high;
  low.set(planes[0], row);
  high.set(planes[1], row);
  for (int64_t left = blob; left > 0; left -= 8) {
#pragma GCC unroll 2
    for (int64_t q = 0; q < 2; ++q) {
      dot_quad<kRows, kPanels>(codes, q * kQuad, low, 4 * q, row, sum);
      if (kBits == 4) dot_quad<kRows, kPanels>(codes, q * kQuad + 64, high, 4 * q, row, sum);
    }
    low.add(8);
    if (kBits == 4) high.add(8);
#pragma GCC unroll 2
    for (int c = 0; c < kPanels; ++c) codes[c] += 2 * kQuad;
  }
}

void block_dots_s8__x86_avx512vnni(const FolioBlockDotsS8* args) { block_dots_s8(args); }

void folio_fill_blocks__x86_avx512vnni(FolioKernels* table) {
  table->block_dots_s8 = block_dots_s8__x86_avx512vnni;
}
