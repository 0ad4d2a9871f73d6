// PackRequest: what an operator asks for: a layout, its size, and how to fill it.
//
// Flow:    OpDef::make -> OpBuild::request_pack -> plan/ asks the PackedCache.
// Owns:    plain numbers; `fill` is a function without state.
#pragma once

#include <cstdint>

#include "core/base/tensor.h"
#include "core/prepack/layout.h"

namespace folio {

struct PackRequest {
  Layout layout = Layout::kF32P16;
  uint16_t version = 0;
  // The matrix inside the source tensor: B[p, j] at element p * row_stride + j * col_stride.
  int64_t k = 0;
  int64_t n = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 0;
  // Convolutions: each row p of B is one of `taps` elements side by side in the source, taps
  // outermost (p = tap * k / taps + c at c * row_stride + tap), and columns stand in groups of n /
  // groups, each with panels of its own.
  int64_t taps = 1;
  int64_t groups = 1;
  uint64_t bytes = 0;  // of the blob
  // Writes exactly `bytes` bytes at `blob`. The source may be unaligned.
  Status (*fill)(const PackRequest& request, const void* context, const Tensor& source,
                 uint8_t* blob) = nullptr;
  // Whether this source has the layout; null: any source has it. What `fill` and `check` refuse
  // with kNotImplemented stays as it is, without a word. It is asked before a source is hashed.
  Status (*check)(const PackRequest& request, const Tensor& source) = nullptr;
  // Worth pages of a file that all processes share, not memory of this one's own.
  bool in_files_only = false;
  const void* context = nullptr;  // the kernel table; outlives the process's programs
  // Where there is the blob, the operator reads nothing of the source but type and shape: the bytes
  // of a computed constant are freed then.
  bool replaces_source = false;
};

}  // namespace folio
