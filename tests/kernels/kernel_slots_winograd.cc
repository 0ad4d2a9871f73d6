#include <cstring>

#include "tests/kernels/kernel_operands.h"

namespace folio {
namespace {

// Channels up to whole panels of 16, so many bytes of each.
template <int64_t kBytes>
int64_t whole_panels(int64_t n) {
  return (n + 15) / 16 * 16 * kBytes;
}

}  // namespace

void add_winograd_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(winograd_filter_f32),
                   {floats<144>()},
                   {floats<36 * 16>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const FolioWinogradFilter a = {n, p.f(0), 16 * n, p.to_f(0), 16 * n, 0};
                     k.winograd_filter_f32(&a);
                   },
                   Agrees::kBits,
                   none});
  // The largest sum of magnitudes of a row of B is 5.7, of A 8.6. Which of infinities and NaN comes
  // out depends on the order.
  list->push_back({FOLIO_SLOT(winograd_input_f32),
                   {floats<36>()},
                   {floats<36>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const float* x[36];
                     for (int64_t i = 0; i < 36; ++i) x[i] = p.f(0) + i * n;
                     const FolioWinogradInput a = {1, n, x, p.to_f(0), n, n, 0};
                     k.winograd_input_f32(&a);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 8 * kUnit * 5.7 * 5.7; },
                   Among::kFinite});
  list->push_back({FOLIO_SLOT(winograd_output_f32),
                   {floats<36>()},
                   {floats<16>(), ints<0, 1>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     int64_t pixels[16];
                     for (int64_t i = 0; i < 16; ++i) pixels[i] = i;
                     FolioWinogradOutput a{};
                     a.tiles = 1, a.channels = n, a.m = p.f(0), a.plane_stride = n;
                     a.row_stride = a.y_step = n, a.pixels = pixels, a.y = p.to_f(0);
                     const int32_t is_finite = k.winograd_output_f32(&a);
                     std::memcpy(p.out[1], &is_finite, sizeof is_finite);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 10 * kUnit * 8.6 * 8.6; },
                   Among::kFinite});
}

void add_winograd_byte_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(winograd_input_u8),
                   {{Holds::kBytes, whole_panels<36>, May::kStandAnywhere}},
                   {{Holds::kBytes, whole_panels<36 * 2>, May::kStandAt64}},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const int64_t channels = whole_panels<1>(n);
                     const uint8_t* x[36];
                     for (int64_t i = 0; i < 36; ++i) x[i] = p.b(0) + i * channels;
                     const FolioWinogradInputU8 a = {1,        channels, x, p.to<int16_t>(0),
                                                     channels, channels};
                     k.winograd_input_u8(&a);
                   },
                   Agrees::kBytes,
                   none});
  // 3 rows of 16 words.
  list->push_back({FOLIO_SLOT(gemm_s16),
                   {{Holds::kBytes, count_of<0, 3 * 32>, May::kStandAt64},
                    {Holds::kBytes, whole_panels<32>, May::kStandAt64}},
                   {{Holds::kBytes, whole_panels<3 * 4>, May::kStandAt64}},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioGemmS16 a{};
                     a.m = 3, a.n = n, a.k = 16, a.a = p.of<int16_t>(0), a.a_row_stride = 16;
                     a.b = p.in[1], a.c = p.to<int32_t>(0), a.c_row_stride = whole_panels<1>(n);
                     k.gemm_s16(&a);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(winograd_output_u8),
                   {{Holds::kBytes, whole_panels<36 * 4>, May::kStandAt64}},
                   {ints<16>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     int64_t pixels[16];
                     for (int64_t i = 0; i < 16; ++i) pixels[i] = i;
                     FolioWinogradOutputU8 a{};
                     a.tiles = 1, a.channels = n, a.m = p.of<int32_t>(0), a.pixels = pixels;
                     a.plane_stride = a.row_stride = whole_panels<1>(n);
                     a.y = p.out[0], a.y_step = n;
                     k.winograd_output_u8(&a);
                   },
                   Agrees::kBytes,
                   none});
}

}  // namespace folio
