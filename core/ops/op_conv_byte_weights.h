// Weights of convolutions of bytes, as S8P16K4 panels of 16 filters.
//
// Groups:  each has panels of its own. Groups of 8 filters or fewer would leave half of a panel
//          empty: as many as it takes are joined into one that sees the channels of all of them,
//          with weights of 0 where a filter does not.
// Filters over one channel each (is_depthwise()) are one matrix [taps, channels].
#pragma once

#include "core/ops/op_conv_bytes.h"

namespace folio {

inline bool is_depthwise(int64_t c_in, int64_t c_out, int64_t taps) {
  return c_in == 1 && c_out == 1 && taps <= FOLIO_MAX_BYTE_TAPS;
}
inline bool is_depthwise(const ConvSizes& s) {
  return is_depthwise(s.c_in, s.c_out, s.window.kernel_count());
}

// Whether so many bytes under a tap, which the kernel reads where they lie, repay a pointer.
inline bool fits_pieces(int64_t c_in) { return c_in >= 16 && c_in % 4 == 0; }

// The zero point of weights that their packed form is without: 0 of its signed codes.
inline uint8_t packed_zero_point(DType dtype) { return dtype == DType::kUint8 ? 128 : 0; }
// Whether zero points of the weights differ from that.
bool has_weight_zeros(const ByteConv& conv, int64_t channels);

// How many groups one of the product has; 1: they are not joined. The last one may have fewer.
int64_t joined_groups(int64_t group, int64_t c_in, int64_t filters);
// And how many there are.
inline int64_t product_groups(int64_t group, int64_t joined) {
  return (group + joined - 1) / joined;
}

// Weights and what belongs to each output channel, of all groups.
struct ByteConvWeights {
  const uint8_t* panels = nullptr;
  int64_t group_stride = 0;              // bytes
  const int32_t* offset = nullptr;       // or null: 0
  const int32_t* column_sums = nullptr;  // null: the offsets have them
  int32_t* zero = nullptr;               // null: all are 0
  int64_t parts = 1;   // of one channel each, or joined: so many weights for each tap, to be added
  int64_t joined = 1;  // groups that are one group of the product
};

// Packed at load, else here, in scratch of the run.
Result<ByteConvWeights> prepare_byte_conv_weights(OpRun& run, const ConvSizes& s,
                                                  const ByteConv& conv, int32_t x_zero);

}  // namespace folio
