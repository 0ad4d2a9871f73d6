// What the tables of slots are made of: operands of so many elements for each of n, and tolerances.
#pragma once

#include "tests/kernels/kernel_slots.h"

namespace folio {

template <int64_t kTimes, int64_t kMore = 0>
int64_t count_of(int64_t n) {
  return kTimes * n + kMore;
}
template <int64_t kRows>
int64_t panels_of(int64_t n) {  // F32P16 of [kRows, n]
  return (n + 15) / 16 * 16 * kRows;
}
template <int64_t kRows>
int64_t byte_panels_of(int64_t n) {  // S8P16K4 of [kRows, n]
  return (n + 15) / 16 * ((kRows + 3) / 4 * 64 + 64);
}
inline constexpr int64_t kBlock = 32;
inline int64_t rounded_row_of(int64_t n) {
  return folio_block_row_bytes((n + kBlock - 1) / kBlock, kBlock, 4);
}

template <int64_t kTimes = 1, int64_t kMore = 0>
constexpr Operand floats() {
  return {Holds::kFloats, count_of<kTimes, kMore>, May::kStandAtElements};
}
template <int64_t kTimes = 1, int64_t kMore = 0>
constexpr Operand floats_anywhere() {
  return {Holds::kFloats, count_of<kTimes, kMore>, May::kStandAnywhere};
}
template <int64_t kTimes = 1, int64_t kMore = 0>
constexpr Operand bytes() {
  return {Holds::kBytes, count_of<kTimes, kMore>, May::kStandAnywhere};
}
template <int64_t kTimes = 1, int64_t kMore = 0>
constexpr Operand ints() {  // results: bytes that stand at multiples of 4
  return {Holds::kBytes, count_of<4 * kTimes, 4 * kMore>, May::kStandAt64};
}
template <int64_t kRows>
constexpr Operand panels() {
  return {Holds::kFloats, panels_of<kRows>, May::kStandAt64};
}
template <int64_t kRows>
constexpr Operand byte_panels() {
  return {Holds::kBytes, byte_panels_of<kRows>, May::kStandAt64};
}
// Three taps over 8 channels, F32P16 of [24, 8 n].
constexpr Operand grouped_panels() {
  return {Holds::kFloats, [](int64_t n) { return (8 * n + 15) / 16 * 384; }, May::kStandAt64};
}
template <int64_t kTimes = 1>
constexpr Operand halves() {
  return {Holds::kHalves, count_of<kTimes>, May::kStandAnywhere};
}
template <int64_t kRows>
constexpr Operand half_panels() {
  return {Holds::kHalves, panels_of<kRows>, May::kStandAnywhere};
}

inline int64_t count_of_pairs(int64_t n) { return folio_bf16p16_rows(n) * FOLIO_F32P16_COLUMNS; }
constexpr Operand paired_rows() { return {Holds::kHalves, count_of_pairs, May::kStandAnywhere}; }
inline constexpr double kUnit = 0x1p-24;
inline double none(int64_t) { return 0; }
template <int64_t kUlp>
double ulps(int64_t) {
  return kUlp;
}

#define FOLIO_SLOT(member) #member, offsetof(FolioKernels, member)

// Of a part of the slots, in a file of its own.
void add_winograd_slots(std::vector<Slot>* list);
void add_winograd_byte_slots(std::vector<Slot>* list);

}  // namespace folio
