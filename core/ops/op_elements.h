// Moving elements of any type: what operators that only rearrange share.
//
// Types:  everything of whole bytes, and strings. Sub-byte types are refused by name.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "core/ops/op.h"

namespace folio {

inline Status check_whole_bytes(const Tensor& tensor) {
  if (!dtype_is_subbyte(tensor.dtype())) return Status::ok();
  return not_implemented("moving elements of ", dtype_name(tensor.dtype()));
}

// Copies `count` elements between two tensors of one type.
inline void move_elements(const Tensor& from, int64_t from_at, Tensor* to, int64_t to_at,
                          int64_t count) {
  if (from.is_string()) {
    std::copy_n(from.data<std::string>() + from_at, count, to->data_mut<std::string>() + to_at);
    return;
  }
  const int64_t size = dtype_bits(from.dtype()) / 8;
  std::memcpy(to->raw_mut() + to_at * size, from.raw() + from_at * size,
              static_cast<size_t>(count * size));
}

// Writes one element, the first of `value`, `count` times.
inline void fill_elements(const Tensor& value, Tensor* to, int64_t to_at, int64_t count) {
  if (count <= 0) return;
  move_elements(value, 0, to, to_at, 1);
  // Doubling: memcpy of what is there already.
  for (int64_t done = 1; done < count;) {
    const int64_t step = std::min(done, count - done);
    move_elements(*to, to_at, to, to_at + done, step);
    done += step;
  }
}

}  // namespace folio
