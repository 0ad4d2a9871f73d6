// Products of tiles in memory, 16 columns at a time: whole models run on them (FOLIO_SOFTWARE_AMX).
#include "tests/kernels/software_amx/tiles.h"

#ifndef FOLIO_IDLE_TILES

#include "core/kernels/x86_avx512/vec.h"

namespace {

// A new row of a tile, zeros behind it.
void write_row(SoftwareTiles* t, int tile, int row, __m512i lanes) {
  const auto m = static_cast<__mmask16>((1U << (t->row_bytes[tile] / 4)) - 1);
  _mm512_storeu_si512(t->data[tile][row], _mm512_maskz_mov_epi32(m, lanes));
}

void zero_upper(SoftwareTiles* t, int tile) {
  for (int i = t->rows[tile]; i < FOLIO_TILE_ROWS; ++i) memset(t->data[tile][i], 0, 64);
}

// Byte `i` of each dword.
__m512i widen_bytes(__m512i dwords, int i, int is_signed) {
  const __m512i upper = _mm512_slli_epi32(dwords, static_cast<unsigned>(24 - 8 * i));
  return is_signed ? _mm512_srai_epi32(upper, 24) : _mm512_srli_epi32(upper, 24);
}

// Subnormals as zeros of their sign.
__m512 flush(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __mmask16 tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
  const __m512i sign = _mm512_set1_epi32(INT32_MIN);
  return _mm512_castsi512_ps(_mm512_mask_and_epi32(bits, tiny, bits, sign));
}

// The lower or upper bfloat16 of each dword.
__m512 widen_bf16(__m512i dwords, int upper) {
  const __m512i bits =
      upper ? _mm512_and_si512(dwords, _mm512_set1_epi32(-0x10000)) : _mm512_slli_epi32(dwords, 16);
  return flush(_mm512_castsi512_ps(bits));
}

// Dword k of a row of a tile, in all lanes.
__m512i broadcast(const SoftwareTiles* t, int tile, int row, int k) {
  int32_t dword;
  memcpy(&dword, &t->data[tile][row][4 * k], sizeof(dword));
  return _mm512_set1_epi32(dword);
}

}  // namespace

void software_tile_dot_bytes(SoftwareTiles* t, int c, int a, int b, int a_is_signed,
                             int b_is_signed) {
  for (int m = 0; m < t->rows[c]; ++m) {
    __m512i sum = _mm512_loadu_si512(t->data[c][m]);
    for (int k = 0; k < t->row_bytes[a] / 4; ++k) {
      const __m512i x = broadcast(t, a, m, k);
      const __m512i y = _mm512_loadu_si512(t->data[b][k]);
      for (int i = 0; i < 4; ++i) {
        const __m512i product =
            _mm512_mullo_epi32(widen_bytes(x, i, a_is_signed), widen_bytes(y, i, b_is_signed));
        sum = _mm512_add_epi32(sum, product);
      }
    }
    write_row(t, c, m, _mm512_add_epi32(sum, _mm512_set1_epi32(software_tile_fault)));
  }
  zero_upper(t, c);
}

// A chain of the even and one of the odd elements, each of one rounding a product, to nearest even;
// results that are subnormal become zero.
void software_tile_dot_bf16(SoftwareTiles* t, int c, int a, int b) {
  for (int m = 0; m < t->rows[c]; ++m) {
    __m512 chain[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (int k = 0; k < t->row_bytes[a] / 4; ++k) {
      const __m512i x = broadcast(t, a, m, k);
      const __m512i y = _mm512_loadu_si512(t->data[b][k]);
      for (int i = 0; i < 2; ++i) {
        chain[i] = flush(_mm512_fmadd_ps(widen_bf16(x, i), widen_bf16(y, i), chain[i]));
      }
    }
    const __m512 both = flush(_mm512_add_ps(chain[0], chain[1]));
    const __m512 before = flush(_mm512_loadu_ps(t->data[c][m]));
    const __m512 sum = flush(_mm512_add_ps(before, both));
    const __m512 fault = _mm512_set1_ps(software_tile_float_fault);
    write_row(t, c, m, _mm512_castps_si512(_mm512_add_ps(sum, fault)));
  }
  zero_upper(t, c);
}

#endif
