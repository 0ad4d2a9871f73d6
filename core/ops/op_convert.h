// Numbers as numbers of another type, as Cast gives them.
//
// Math:    float to integer truncates; out of range, 8- and 16-bit results keep the low bits of the
//          32-bit one, wider ones saturate, NaN is 0. Double to a 16-bit
//          format goes through float. To bool: not 0.
// Threads: shares the elements among the run's.
#pragma once

#include "core/ops/op.h"
#include "core/ops/op_dispatch.h"

namespace folio {

using NumberTypes = TypeList<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t,
                             uint8_t, uint16_t, uint32_t, uint64_t, bool>;

// n elements of a type of NumberTypes to one of them. x may be unaligned; y must not overlap it.
void convert_numbers(OpRun& run, DType from, const uint8_t* x, DType to, uint8_t* y, int64_t n);

}  // namespace folio
