// What the pooling operators share, channels first or last: attributes, window, inference.
//
// Owns:   plain values.
// Errors: kInvalidGraph for attributes, kInvalidArgument for shapes that do not fit.
#pragma once

#include "core/ops/op_window.h"

namespace folio {

enum class PoolKind : uint8_t { kMax, kAverage, kLp };

struct PoolAttrs {
  PoolKind kind = PoolKind::kMax;
  bool global = false;
  bool count_pad = false;
  bool count_beyond = false;  // with count_pad, also what hangs over it: QLinearAveragePool
  bool column_major = false;  // MaxPool storage_order: how Indices count
  int64_t p = 2;
  WindowAttrs window;
};

Result<PoolAttrs> parse_pool(const Attributes& attrs, PoolKind kind, bool global);

// `x` is [N, C, spatial...].
Result<Window> pool_window(const PoolAttrs& attrs, const Shape& x);

// How many taps an average divides by: those inside the image, or inside image and padding (a
// ceil_mode window may hang over the padding too; what hangs over does not count, or all of the
// kernel does).
int64_t pool_divisor(const PoolAttrs& attrs, const Window& w, const WindowTaps taps[]);
// The same along one axis; may be 0.
int64_t pool_divisor(const PoolAttrs& attrs, const Window& w, int axis, const WindowTaps& taps);

// The output's dims, channels first, of x of rank 2 or more.
Result<Dims> pool_out_dims(const Attributes& from, DimTable& table, const Dims& x, bool global);

// Sets output 0, of x's type, and output 1, Indices.
Status infer_pool(OpInfer& infer, bool global, bool channels_last);

}  // namespace folio
