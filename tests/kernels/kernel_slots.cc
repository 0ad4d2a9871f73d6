#include "tests/kernels/kernel_slots.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tests/kernels/kernel_operands.h"
#include "tests/kernels/kernel_tester.h"

namespace folio {
namespace {

void add_element_slots(std::vector<Slot>* list) {
  for (int i = 0; i < kFolioUnaryCount; ++i) {
    const bool is_gelu = i == kFolioGeluErf || i == kFolioGeluTanh || i == kFolioHardSwish;
    list->push_back({"unary " + std::to_string(i),
                     offsetof(FolioKernels, unary_f32) + static_cast<size_t>(i) * sizeof(void*),
                     {floats()},
                     {floats()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       k.unary_f32[part](n, p.f(0), p.to_f(0));
                     },
                     is_gelu ? Agrees::kNear : Agrees::kUlp,
                     // Two times the 4 ulp of the least exact, or 2^-22 |x|.
                     is_gelu ? +[](int64_t) { return 0x1p-21; } : ulps<8>,
                     Among::kAll,
                     i});
  }
  for (int i = 0; i < kFolioShapedCount; ++i) {
    list->push_back({"shaped " + std::to_string(i),
                     offsetof(FolioKernels, shaped_f32) + static_cast<size_t>(i) * sizeof(void*),
                     {floats()},
                     {floats()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       k.shaped_f32[part](n, p.f(0), 0.75F, 0.25F, p.to_f(0));
                     },
                     Agrees::kUlp,
                     i >= kFolioElu ? ulps<8> : none,
                     Among::kAll,
                     i});
  }
  for (int i = 0; i < kFolioBinaryCount; ++i) {
    list->push_back({"binary " + std::to_string(i),
                     offsetof(FolioKernels, binary_f32) + static_cast<size_t>(i) * sizeof(void*),
                     {floats(), floats()},
                     {floats()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       k.binary_f32[part](n, p.f(0), 1, p.f(1), 1, p.to_f(0));
                     },
                     Agrees::kUlp,
                     i == kFolioPow ? ulps<2> : none,
                     Among::kAll,
                     i});
  }
  list->push_back({FOLIO_SLOT(clip_f32),
                   {floats()},
                   {floats()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.clip_f32(n, p.f(0), -0.25F, 0.5F, p.to_f(0));
                   },
                   Agrees::kBits,
                   none});
}

template <auto kMember>
void reduce(const FolioKernels& k, int64_t n, const Pointers& p, int) {
  *p.to_f(0) = (k.*kMember)(n, p.f(0));
}
template <auto kMember>
void map_row(const FolioKernels& k, int64_t n, const Pointers& p, int) {
  (k.*kMember)(n, p.f(0), p.to_f(0));
}

double sum_bound(int64_t n) { return 2 * static_cast<double>(n) * kUnit * static_cast<double>(n); }
// As in rows_test.cc; 1 / sqrt(eps) = 32 bounds inv_std.
double norm_bound(int64_t n) { return 2 * 64 * static_cast<double>(n + 8) * kUnit * 32; }
constexpr float kEps = 0x1p-10F;

template <typename T, int64_t kTimes, int64_t kMore = 0>
constexpr Operand numbers() {
  if (std::is_same_v<T, float>) return floats<kTimes, kMore>();
  if (std::is_same_v<T, double>) {
    return {Holds::kDoubles, count_of<kTimes, kMore>, May::kStandAtEights};
  }
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  return {Holds::kBytes, count_of<kBytes * kTimes, kBytes * kMore>,
          kBytes == 8 ? May::kStandAtEights : May::kStandAtElements};
}
template <typename T>
double joined_bound(int64_t n) {
  return sum_bound(n + 1) * (std::is_same_v<T, double> ? 0x1p-29 : 1);
}

// Three rows, or columns of three, joined to what one input holds.
template <typename T, auto kRows, auto kColumns>
void add_reductions(const std::string& type, size_t rows, size_t columns, std::vector<Slot>* list) {
  for (int i = 0; i < kFolioReduceCount; ++i) {
    const bool is_exact = i == kFolioReduceMax || i == kFolioReduceMin;
    const auto at = static_cast<size_t>(i) * sizeof(void*);
    const Agrees agrees = std::is_floating_point_v<T> ? Agrees::kNear : Agrees::kBytes;
    list->push_back({"reduce_rows_" + type + ' ' + std::to_string(i),
                     rows + at,
                     {numbers<T, 3>(), numbers<T, 0, 3>()},
                     {numbers<T, 0, 3>()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       std::memcpy(p.out[0], p.in[1], 3 * sizeof(T));
                       (k.*kRows)[part](3, n, p.of<T>(0), n, p.to<T>(0));
                     },
                     agrees,
                     is_exact ? none : joined_bound<T>,
                     Among::kAll,
                     i});
    list->push_back({"reduce_columns_" + type + ' ' + std::to_string(i),
                     columns + at,
                     {numbers<T, 3>(), numbers<T, 1>()},
                     {numbers<T, 1>()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       if (n > 0) {
                         std::memcpy(p.out[0], p.in[1], sizeof(T) * static_cast<size_t>(n));
                       }
                       (k.*kColumns)[part](3, n, p.of<T>(0), n, p.to<T>(0));
                     },
                     agrees,
                     is_exact ? none : [](int64_t) { return joined_bound<T>(3); },
                     Among::kAll,
                     i});
  }
}

#define FOLIO_REDUCTIONS(type, name)                                                             \
  add_reductions<type, &FolioKernels::reduce_rows_##name, &FolioKernels::reduce_columns_##name>( \
      #name, offsetof(FolioKernels, reduce_rows_##name),                                         \
      offsetof(FolioKernels, reduce_columns_##name), list)

void add_reduction_slots(std::vector<Slot>* list) {
  FOLIO_REDUCTIONS(float, f32);
  FOLIO_REDUCTIONS(double, f64);
  FOLIO_REDUCTIONS(int32_t, s32);
  FOLIO_REDUCTIONS(int64_t, s64);
}

// Rows of n, and n columns of 3.
template <auto kRows, auto kColumns>
void add_softmax(const std::string& name, size_t rows, size_t columns, double (*bound)(int64_t),
                 std::vector<Slot>* list) {
  list->push_back({name,
                   rows,
                   {floats<3>()},
                   {floats<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     (k.*kRows)(3, n, p.f(0), p.to_f(0));
                   },
                   Agrees::kNear,
                   bound});
  list->push_back({name + "_columns",
                   columns,
                   {floats<3>()},
                   {floats<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     (k.*kColumns)(3, n, p.f(0), n, p.to_f(0), n);
                   },
                   Agrees::kNear,
                   bound});
}

void add_row_slots(std::vector<Slot>* list) {
  const auto add_reduction = [&](const char* name, size_t offset, auto call,
                                 double (*bound)(int64_t)) {
    list->push_back({name, offset, {floats()}, {floats<0, 1>()}, call, Agrees::kNear, bound});
  };
  add_reduction(FOLIO_SLOT(sum_f32), reduce<&FolioKernels::sum_f32>, sum_bound);
  add_reduction(FOLIO_SLOT(sum_squares_f32), reduce<&FolioKernels::sum_squares_f32>, sum_bound);
  add_reduction(FOLIO_SLOT(max_f32), reduce<&FolioKernels::max_f32>, none);
  add_reduction(FOLIO_SLOT(min_f32), reduce<&FolioKernels::min_f32>, none);
  list->push_back({FOLIO_SLOT(dot_f32),
                   {floats(), floats()},
                   {floats<0, 1>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     *p.to_f(0) = k.dot_f32(n, p.f(0), p.f(1));
                   },
                   Agrees::kNear,
                   sum_bound});
  const auto exp_bound = [](int64_t n) { return 2 * static_cast<double>(n + 29) * kUnit; };
  const auto log_bound = [](int64_t n) { return 2 * static_cast<double>(n + 89) * kUnit; };
  add_softmax<&FolioKernels::softmax_f32, &FolioKernels::softmax_columns_f32>(
      "softmax_f32", offsetof(FolioKernels, softmax_f32),
      offsetof(FolioKernels, softmax_columns_f32), exp_bound, list);
  add_softmax<&FolioKernels::log_softmax_f32, &FolioKernels::log_softmax_columns_f32>(
      "log_softmax_f32", offsetof(FolioKernels, log_softmax_f32),
      offsetof(FolioKernels, log_softmax_columns_f32), log_bound, list);
  list->push_back({FOLIO_SLOT(layer_norm_f32),
                   {floats(), floats(), floats()},
                   {floats(), floats<0, 1>(), floats<0, 1>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.layer_norm_f32(n, p.f(0), p.f(1), p.f(2), kEps, p.to_f(0), p.to_f(1),
                                      p.to_f(2));
                   },
                   Agrees::kNear,
                   norm_bound});
  list->push_back({FOLIO_SLOT(rms_norm_f32),
                   {floats(), floats()},
                   {floats(), floats<0, 1>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.rms_norm_f32(n, p.f(0), p.f(1), kEps, p.to_f(0), p.to_f(1));
                   },
                   Agrees::kNear,
                   norm_bound});
}

template <auto kSlot>
Slot transpose_slot(const char* name, size_t offset, const Operand& three) {
  const auto call = [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
    (k.*kSlot)(3, n, p.in[0], n, p.out[0], 3);
  };
  return {name, offset, {three}, {three}, call, Agrees::kBytes, none};
}

void add_moving_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(f16_to_f32),
                   {halves()},
                   {floats()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.f16_to_f32(n, p.in[0], p.to_f(0));
                   },
                   Agrees::kBits,
                   none});
  list->push_back({FOLIO_SLOT(f32_to_f16),
                   {floats()},
                   {halves()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.f32_to_f16(n, p.f(0), p.out[0]);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(bf16_to_f32),
                   {halves()},
                   {floats()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.bf16_to_f32(n, p.in[0], p.to_f(0));
                   },
                   Agrees::kBits,
                   none});
  list->push_back({FOLIO_SLOT(f32_to_bf16),
                   {floats()},
                   {halves()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.f32_to_bf16(n, p.f(0), p.out[0]);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back(transpose_slot<&FolioKernels::transpose_b32>(FOLIO_SLOT(transpose_b32),
                                                               floats_anywhere<3>()));
  list->push_back(
      transpose_slot<&FolioKernels::transpose_b16>(FOLIO_SLOT(transpose_b16), halves<3>()));
  list->push_back(
      transpose_slot<&FolioKernels::transpose_b8>(FOLIO_SLOT(transpose_b8), bytes<3>()));
  list->push_back({FOLIO_SLOT(pack_f32p16),
                   {floats_anywhere<3>()},
                   {panels<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.pack_f32p16(3, n, p.in[0], n, 1, p.to_f(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(unpack_f32p16),
                   {panels<3>()},
                   {floats_anywhere<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.unpack_f32p16(3, n, p.f(0), p.out[0], n, 1);
                   },
                   Agrees::kBytes,
                   none});
}

// Any halves, made less than 2; a row more, which fills up pairs.
void call_gemv_b16(const FolioKernels& k, int64_t n, const Pointers& p, int) {
  std::vector<uint16_t> panels(static_cast<size_t>(panels_of<8>(n)));
  if (!panels.empty()) std::memcpy(panels.data(), p.in[1], 2 * panels.size());
  for (uint16_t& half : panels) half = static_cast<uint16_t>(half & 0xbfffU);
  FolioGemmF32 a{};
  a.m = 2, a.n = n, a.k = 7;
  a.a = p.f(0), a.a_row_stride = 7, a.a_col_stride = 1;
  a.c_row_stride = n, a.alpha = 1;
  for (const int is_bfloat16 : {0, 1}) {
    a.c = p.to_f(static_cast<size_t>(is_bfloat16));
    k.gemv_b16(&a, panels.data(), is_bfloat16);
  }
}

// Five rows, which are made into panels.
void call_gemm_f64(const FolioKernels& k, int64_t n, const Pointers& p, int) {
  alignas(64) static uint8_t scratch[1 << 15];
  FolioGemmF64 a{};
  a.m = 5, a.n = n, a.k = 7;
  a.a = p.of<double>(0), a.a_row_stride = 7, a.a_col_stride = 1;
  a.b = p.of<double>(1), a.b_row_stride = n, a.b_col_stride = 1;
  a.c = p.to<double>(0), a.c_row_stride = n, a.alpha = 0.75, a.scratch = scratch;
  ASSERT_LE(folio_gemm_f64_scratch(&a), int64_t{sizeof scratch});
  k.gemm_f64(&a);
}

void add_double_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(gemm_f64),
                   {numbers<double, 0, 35>(), numbers<double, 7>()},
                   {numbers<double, 5>()},
                   call_gemm_f64,
                   Agrees::kNear,
                   [](int64_t) { return 2 * 8 * 0x1p-53 * 7; }});
  for (int i = 0; i < kFolioUnaryF64Count; ++i) {
    list->push_back({"unary_f64 " + std::to_string(i),
                     offsetof(FolioKernels, unary_f64) + static_cast<size_t>(i) * sizeof(void*),
                     {numbers<double, 1>()},
                     {numbers<double, 1>()},
                     [](const FolioKernels& k, int64_t n, const Pointers& p, int part) {
                       k.unary_f64[part](n, p.of<double>(0), p.to<double>(0));
                     },
                     // Two times 2 ulp of up to 128, the logarithm of what is smaller than normal.
                     Agrees::kNear,
                     [](int64_t) { return 4 * 0x1p-46; },
                     Among::kAll,
                     i});
  }
}

void add_product_slots(std::vector<Slot>* list) {
  // (k + 3) 2^-24 sum |A| |B|, twice.
  const auto bound = [](int64_t) { return 2 * 10 * kUnit * 7; };
  list->push_back({FOLIO_SLOT(gemm_f32),
                   {floats<0, 35>(), panels<7>()},
                   {floats<5>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioGemmF32 a{};
                     a.m = 5, a.n = n, a.k = 7;
                     a.a = p.f(0), a.a_row_stride = 7, a.a_col_stride = 1;
                     a.b = p.f(1), a.c = p.to_f(0), a.c_row_stride = n, a.alpha = 1;
                     k.gemm_f32(&a);
                   },
                   Agrees::kNear,
                   bound});
  list->push_back({FOLIO_SLOT(dots_f32),
                   {floats<7>(), floats<0, 21>()},
                   {floats<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioGemmF32 a{};
                     a.m = n, a.n = 3, a.k = 7;
                     a.a = p.f(0), a.a_row_stride = 7, a.a_col_stride = 1;
                     a.b = p.f(1), a.c = p.to_f(0), a.c_row_stride = 3, a.alpha = 1;
                     k.dots_f32(&a);
                   },
                   Agrees::kNear,
                   bound});
  list->push_back({FOLIO_SLOT(gemm_plain_f32),
                   {floats<0, 49>(), floats_anywhere<7>()},
                   {floats<7>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioGemmF32 a{};
                     a.m = 7, a.n = n, a.k = 7;
                     a.a = p.f(0), a.a_row_stride = 7, a.a_col_stride = 1;
                     a.c = p.to_f(0), a.c_row_stride = n, a.alpha = 1;
                     k.gemm_plain_f32(&a, p.in[1], n);
                   },
                   Agrees::kNear,
                   bound});
  list->push_back({FOLIO_SLOT(gemv_b16),
                   {floats<0, 14>(), half_panels<8>()},
                   {floats<2>(), floats<2>()},
                   call_gemv_b16,
                   Agrees::kNear,
                   [](int64_t) { return 4 * 10 * kUnit * 7; }});
  list->push_back({FOLIO_SLOT(bf16p16_to_f32),
                   {paired_rows()},
                   {floats<FOLIO_F32P16_COLUMNS>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.bf16p16_to_f32(n, p.in[0], p.to_f(0));
                   },
                   Agrees::kBits,
                   none});
  list->push_back({FOLIO_SLOT(shifted_sum_f32),
                   {floats<0, 3>(), floats<1, 5>()},
                   {floats()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const int64_t offsets[] = {0, 5, 2};
                     k.shifted_sum_f32(n, 3, p.f(0), offsets, p.f(1), 0.5F, p.to_f(0));
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 4 * kUnit * 4; }});
}

// Two pixels side by side, under three taps each.
FolioWindowF32 window_of(int64_t n, const Pointers& p, std::array<const float*, 3>* x) {
  FolioWindowF32 a{};
  for (int64_t t = 0; t < 3; ++t) (*x)[static_cast<size_t>(t)] = p.f(0) + t * n;
  a.lines = 1, a.pixels = 2, a.channels = n, a.taps = 3;
  a.x = x->data(), a.x_line = 0, a.x_step = n;
  a.scale = 0.5F;
  a.y = p.to_f(0), a.y_line = 0, a.y_step = n;
  return a;
}

// Two lines of n pixels under three taps, of one row and of two.
template <auto kSlot>
void call_lines(const FolioKernels& k, int64_t n, const Pointers& p, int) {
  const int64_t counts[] = {1, 2};
  const int64_t rows[] = {0, n, 2 * n};
  FolioLinesF32 a{};
  a.planes = 1, a.lines = 2, a.pixels = n, a.counts = counts, a.rows = rows, a.x_pixels = n;
  a.taps = 3, a.pixel_step = 1, a.tap_step = 1, a.left = 1;
  const std::vector<float> by(static_cast<size_t>(n + 2), 3.0F);
  std::vector<float> joined(static_cast<size_t>(folio_lines_floats(&a)));
  a.by_lines = by.data(), a.by_pixels = by.data() + 2;
  a.x = p.f(0), a.joined = joined.data(), a.y = p.to_f(0);
  (k.*kSlot)(&a);
}

void add_window_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(depthwise_f32),
                   {floats<4>(), floats<3>(), floats()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     std::array<const float*, 3> x;
                     FolioWindowF32 a = window_of(n, p, &x);
                     const float* const w[] = {p.f(1), p.f(1) + n, p.f(1) + 2 * n};
                     a.w = w, a.bias = p.f(2);
                     k.depthwise_f32(&a);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 6 * kUnit * 4; }});
  // 8 n channels in groups of 8.
  list->push_back({FOLIO_SLOT(grouped_f32),
                   {floats<32>(), grouped_panels(), floats<8>()},
                   {floats<16>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     std::array<const float*, 3> x;
                     FolioWindowF32 a = window_of(8 * n, p, &x);
                     const int64_t tap = n == 0 ? 0 : 128;  // of no channels w is null
                     const float* const w[] = {p.f(1), p.f(1) + tap, p.f(1) + 2 * tap};
                     a.w = w, a.bias = p.f(2), a.group = 8, a.w_panel = 384;
                     k.grouped_f32(&a);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 27 * kUnit * 25; }});
  list->push_back({FOLIO_SLOT(max_window_f32),
                   {floats<4>()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     std::array<const float*, 3> x;
                     const FolioWindowF32 a = window_of(n, p, &x);
                     k.max_window_f32(&a);
                   },
                   Agrees::kNear,
                   none});
  list->push_back({FOLIO_SLOT(sum_window_f32),
                   {floats<4>()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     std::array<const float*, 3> x;
                     const FolioWindowF32 a = window_of(n, p, &x);
                     k.sum_window_f32(&a);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 4 * kUnit * 3; }});
  // Two lines of n pixels, under two rows of three taps of two planes.
  list->push_back({FOLIO_SLOT(filter_plane_f32),
                   {floats<4>(), floats<0, 12>()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioPlaneF32 a{};
                     a.planes = 2, a.x_plane = 2 * n;
                     a.lines = 2, a.pixels = n, a.x_lines = 2, a.x_pixels = n;
                     a.rows = 2, a.columns = 3, a.line_step = 1, a.pixel_step = 1;
                     a.row_step = 1, a.column_step = 1, a.top = 1, a.left = 1;
                     a.x = p.f(0), a.w = p.f(1), a.bias = 0.5F, a.y = p.to_f(0);
                     k.filter_plane_f32(&a);
                   },
                   Agrees::kNear,
                   [](int64_t) { return 2 * 13 * kUnit * 13; }});
}

void add_line_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(max_lines_f32),
                   {floats<3>()},
                   {floats<2>()},
                   call_lines<&FolioKernels::max_lines_f32>,
                   Agrees::kNear,
                   none});
  list->push_back({FOLIO_SLOT(sum_lines_f32),
                   {floats<3>()},
                   {floats<2>()},
                   call_lines<&FolioKernels::sum_lines_f32>,
                   Agrees::kNear,
                   [](int64_t) { return 2 * 6 * kUnit * 6; }});
}

FolioPackS8 byte_matrix(int64_t n, const void* bytes) {
  FolioPackS8 a{};
  a.k = 5, a.n = n, a.bytes = bytes, a.inner = 5, a.row_stride = n, a.col_stride = 1;
  return a;
}

constexpr FolioByteScale kFrom = {0.031F, 12, 0};
constexpr FolioByteScale kTo = {0.004F, 7, 0};

void add_byte_matrix_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(pack_s8p16k4),
                   {bytes<5>()},
                   {byte_panels<5>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const FolioPackS8 a = byte_matrix(n, p.in[0]);
                     k.pack_s8p16k4(&a, p.out[0]);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(unpack_s8p16k4),
                   {byte_panels<5>()},
                   {bytes<5>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const FolioPackS8 a = byte_matrix(n, nullptr);
                     k.unpack_s8p16k4(&a, p.in[0], p.out[0]);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(gemm_u8),
                   {bytes<0, 15>(), byte_panels<5>()},
                   {ints<3>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioGemmU8 a{};
                     a.m = 3, a.n = n, a.k = 5, a.a = p.b(0), a.a_row_stride = 5, a.b = p.in[1];
                     a.c = p.out[0], a.c_row_stride = n;
                     k.gemm_u8(&a);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(depthwise_u8),
                   {bytes<4>(), byte_panels<3>()},
                   {ints<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const uint8_t* x[4];
                     for (int64_t i = 0; i < 4; ++i) x[i] = p.b(0) + i * n;
                     FolioDepthwiseU8 a{};
                     a.lines = 1, a.pixels = 2, a.channels = n, a.sets = 1, a.rows = 1;
                     a.columns = 3, a.step = 1, a.dilation = 1, a.x = x, a.b = p.in[1];
                     a.y = p.out[0], a.y_row_stride = n;
                     k.depthwise_u8(&a);
                   },
                   Agrees::kBytes,
                   none});
}

void add_byte_row_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(sum_u8),
                   {bytes()},
                   {ints<0, 1>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const int32_t sum = k.sum_u8(n, p.b(0));
                     std::memcpy(p.out[0], &sum, sizeof sum);
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(quantize_f32),
                   {floats()},
                   {bytes()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.quantize_f32(n, p.f(0), &kTo, p.to_b(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(dequantize_b8),
                   {bytes()},
                   {floats()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.dequantize_b8(n, p.b(0), &kFrom, p.to_f(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(add_b8),
                   {bytes(), bytes()},
                   {bytes()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.add_b8(n, p.b(0), &kFrom, p.b(1), &kTo, &kFrom, p.to_b(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(mul_b8),
                   {bytes(), bytes()},
                   {bytes()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.mul_b8(n, p.b(0), &kFrom, p.b(1), &kTo, &kFrom, p.to_b(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(map_b8),
                   {bytes<0, 256>(), bytes()},
                   {bytes()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.map_b8(p.b(0), n, p.b(1), p.to_b(0));
                   },
                   Agrees::kBytes,
                   none});
  list->push_back({FOLIO_SLOT(max_b8),
                   {bytes(), bytes()},
                   {bytes()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const uint8_t* const rows[] = {p.b(0), p.b(1)};
                     k.max_b8(n, 2, rows, 1, p.to_b(0));
                   },
                   Agrees::kBytes,
                   none});
}

FolioBlockWeights block_weights(int64_t n, const Pointers& p) {
  return {n, kBlock, kBlock, 4, p.in[0], p.in[1], nullptr, nullptr, 0, nullptr};
}

void add_block_slots(std::vector<Slot>* list) {
  list->push_back({FOLIO_SLOT(block_dots_f32),
                   {bytes<16>(), floats_anywhere(), floats<0, 2 * kBlock>()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     FolioBlockDotsF32 a{};
                     a.w = block_weights(n, p);
                     a.m = 2, a.a = p.f(2), a.a_row_stride = kBlock;
                     a.y = p.to_f(0), a.y_row_stride = n;
                     k.block_dots_f32(&a);
                   },
                   // (k + 3) 2^-24 sum |A| |W|, |W| <= 8, twice.
                   Agrees::kNear,
                   [](int64_t) { return 2 * 35 * kUnit * 32 * 8; }});
  list->push_back({FOLIO_SLOT(block_dots_s8),
                   {bytes<16>(), floats_anywhere()},
                   {floats<2>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     constexpr size_t kRowBytes = 256;  // as folio_block_row_bytes has it
                     alignas(64) static uint8_t rows[2 * kRowBytes];
                     alignas(64) static uint8_t scratch[1 << 18];
                     const std::vector<float> x = random_floats(2 * kBlock, 5);
                     for (size_t i = 0; i < 2; ++i) {
                       ref_kernels().block_round_f32(kBlock, kBlock, 4, x.data() + i * kBlock,
                                                     rows + i * kRowBytes);
                     }
                     FolioBlockDotsS8 a{};
                     a.w = block_weights(n, p);
                     a.m = 2, a.a = rows, a.scratch = scratch;
                     a.y = p.to_f(0), a.y_row_stride = n;
                     ASSERT_EQ(folio_block_row_bytes(1, kBlock, 4), int64_t{kRowBytes});
                     ASSERT_LE(folio_block_scratch_bytes(1, kBlock, 4, 1, 1),
                               int64_t{sizeof scratch});
                     k.block_dots_s8(&a);
                   },
                   Agrees::kBits,
                   none});
  list->push_back({FOLIO_SLOT(block_round_f32),
                   {floats()},
                   {{Holds::kBytes, rounded_row_of, May::kStandAt64}},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     k.block_round_f32(n, kBlock, 4, p.f(0), p.out[0]);
                   },
                   Agrees::kBytes,
                   none,
                   Among::kFinite});
  list->push_back({FOLIO_SLOT(block_widen_f32p16),
                   {bytes<16>(), floats_anywhere()},
                   {panels<kBlock>()},
                   [](const FolioKernels& k, int64_t n, const Pointers& p, int) {
                     const FolioBlockWeights w = block_weights(n, p);
                     k.block_widen_f32p16(&w, 0, w.k, p.to_f(0));
                   },
                   Agrees::kBits,
                   none});
}

}  // namespace

std::vector<Slot> slots() {
  std::vector<Slot> list;
  add_element_slots(&list);
  add_reduction_slots(&list);
  add_row_slots(&list);
  add_moving_slots(&list);
  add_product_slots(&list);
  add_double_slots(&list);
  add_window_slots(&list);
  add_line_slots(&list);
  add_winograd_slots(&list);
  add_winograd_byte_slots(&list);
  add_byte_matrix_slots(&list);
  add_byte_row_slots(&list);
  add_block_slots(&list);
  return list;
}

void PrintTo(const Slot& slot, std::ostream* out) { *out << slot.name; }

}  // namespace folio
