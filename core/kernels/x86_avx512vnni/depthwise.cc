// Filters of one channel each over 64 channels at a time: four taps interleaved are what a dot
// product takes. Vectors q = 0..3 hold channels 16 l + 4 q .. + 3 in lane l of 128 bits, and so do
// weights, offsets and scales; bytes come out in order.
#include "core/kernels/x86_avx512vnni/x86_avx512vnni.h"

constexpr int64_t kBlock = 64;
constexpr int64_t kMaxGroups = FOLIO_MAX_BYTE_TAPS / 4;

typedef struct Lanes {
  __m512i part[4];
} Lanes;

/* Lane l of part q from lane q of part l; its own inverse. */
VFN Lanes swap_lanes(Lanes x) {
  const __m512i a = _mm512_shuffle_i32x4(x.part[0], x.part[1], 0x44);
  const __m512i b = _mm512_shuffle_i32x4(x.part[2], x.part[3], 0x44);
  const __m512i c = _mm512_shuffle_i32x4(x.part[0], x.part[1], 0xee);
  const __m512i d = _mm512_shuffle_i32x4(x.part[2], x.part[3], 0xee);
  Lanes y;
  y.part[0] = _mm512_shuffle_i32x4(a, b, 0x88);
  y.part[1] = _mm512_shuffle_i32x4(a, b, 0xdd);
  y.part[2] = _mm512_shuffle_i32x4(c, d, 0x88);
  y.part[3] = _mm512_shuffle_i32x4(c, d, 0xdd);
  return y;
}

/* 64 values of 32 bits from p on, 0 where there are no more. */
VFN Lanes load_lanes(const void* p, int64_t count) {
  Lanes x;
  for (int l = 0; l < 4; ++l) {
    const int64_t left = count - l * kColumns;
    x.part[l] = left > 0 ? _mm512_maskz_loadu_epi32(first_lanes(left), (const char*)p + l * 64)
                         : _mm512_setzero_si512();
  }
  return swap_lanes(x);
}

typedef struct Block {
  const FolioDepthwiseU8* args;
  int64_t channel, count;
  Lanes weights[kMaxGroups];
  Lanes offset;
  Codes codes; /* to bytes */
} Block;

VFN void store_block(const Block* block, Lanes sums, int64_t pixel) {
  const FolioDepthwiseU8* args = block->args;
  const FolioSums* s = &args->sums;
  const int64_t at = pixel * args->y_row_stride + block->channel;
  if (s->to == kFolioToByte) {
    __m512i code[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      code[q] = round_code(&block->codes, sums.part[q], block->codes.scale[q]);
    }
    _mm512_mask_storeu_epi8((char*)args->y + at, block->codes.mask,
                            pack_codes(&block->codes, code));
    return;
  }
  sums = swap_lanes(sums);
  for (int64_t l = 0; l < 4 && l * kColumns < block->count; ++l) {
    const PanelSums p = load_panel(s, block->channel + l * kColumns, block->count - l * kColumns);
    store_words(s, &p, sums.part[l], (char*)args->y + (at + l * kColumns) * 4);
  }
}

/* Of kGroups times four taps; 0: any number. */
template <int kGroups>
static void run_block(const Block* block) {
  const FolioDepthwiseU8* args = block->args;
  const int64_t taps = args->tap_count;
  const int64_t groups = kGroups > 0 ? kGroups : (taps + 3) / 4;
  const __mmask64 mask = ~UINT64_C(0) >> (kBlock - block->count);
  const __m512i zero = _mm512_setzero_si512();
  for (int64_t i = 0; i < args->pixels; ++i) {
    const uint8_t* const* tap = args->taps + i * taps;
    Lanes sums = block->offset;
#pragma GCC unroll 4
    for (int64_t g = 0; g < groups; ++g) {
      __m512i x[4];
#pragma GCC unroll 4
      for (int64_t t = 0; t < 4; ++t) {
        x[t] = 4 * g + t < taps ? _mm512_maskz_loadu_epi8(mask, tap[4 * g + t] + block->channel)
                                : zero;
      }
      const __m512i low01 = _mm512_unpacklo_epi8(x[0], x[1]);
      const __m512i high01 = _mm512_unpackhi_epi8(x[0], x[1]);
      const __m512i low23 = _mm512_unpacklo_epi8(x[2], x[3]);
      const __m512i high23 = _mm512_unpackhi_epi8(x[2], x[3]);
      const Lanes* w = &block->weights[g];
      dot4(&sums.part[0], _mm512_unpacklo_epi16(low01, low23), w->part[0]);
      dot4(&sums.part[1], _mm512_unpackhi_epi16(low01, low23), w->part[1]);
      dot4(&sums.part[2], _mm512_unpacklo_epi16(high01, high23), w->part[2]);
      dot4(&sums.part[3], _mm512_unpackhi_epi16(high01, high23), w->part[3]);
    }
    store_block(block, sums, i);
  }
}

/* Offsets and scales; without offsets the sums begin at 0. */
VFN void begin_block(Block* block) {
  const FolioSums* s = &block->args->sums;
  const __m512i zero = _mm512_setzero_si512();
  block->offset = {{zero, zero, zero, zero}};
  if (s->offset) block->offset = load_lanes(s->offset + block->channel, block->count);
  if (s->to != kFolioToByte) return;
  block->codes = make_codes(s, block->channel, block->count);
  const Lanes scale = load_lanes(s->scale + block->channel, block->count);
  for (int q = 0; q < 4; ++q) block->codes.scale[q] = _mm512_castsi512_ps(scale.part[q]);
}

static void depthwise_u8__x86_avx512vnni(const FolioDepthwiseU8* args) {
  const int64_t groups = (args->tap_count + 3) / 4;
  const int64_t panel = groups * FOLIO_S8P16K4_GROUP;
  Block block = {};
  block.args = args;
  for (block.channel = 0; block.channel < args->channels; block.channel += kBlock) {
    const int64_t left = args->channels - block.channel;
    block.count = left < kBlock ? left : kBlock;
    const char* b = (const char*)args->b + block.channel / kColumns * panel;
    begin_block(&block);
    for (int64_t g = 0; g < groups; ++g) {
      Lanes w;
      for (int64_t l = 0; l < 4; ++l) {
        w.part[l] = l * kColumns < block.count
                        ? _mm512_load_si512(b + l * panel + g * FOLIO_S8P16K4_GROUP)
                        : _mm512_setzero_si512();
      }
      block.weights[g] = swap_lanes(w);
    }
    if (groups == 3) {
      run_block<3>(&block);
    } else {
      run_block<0>(&block);
    }
  }
}

void folio_fill_depthwise__x86_avx512vnni(FolioKernels* table) {
  table->depthwise_u8 = depthwise_u8__x86_avx512vnni;
}
