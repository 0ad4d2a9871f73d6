// One routine that moves elements from a strided view of a tensor into a dense one: what Transpose,
// Slice, Expand, Tile, DepthToSpace and their like are, once their strides are worked out.
//
// Math:    out[i0, i1, ...] = source[offset + i0 * strides[0] + i1 * strides[1] + ...]
// Threads: spreads large copies over the run's threads.
// Errors:  none of its own; the caller has checked that every index lies inside the source.
#pragma once

#include "core/ops/op_move.h"

namespace folio {

// Tile and DepthToSpace need two dims for one of the tensor's.
inline constexpr int kMaxStridedRank = 2 * kMaxRank;

struct StridedView {
  int rank = 0;
  int64_t dims[kMaxStridedRank];
  int64_t strides[kMaxStridedRank];  // in elements; 0 repeats, negative runs backwards
  int64_t offset = 0;

  void add(int64_t dim, int64_t stride) {
    dims[rank] = dim;
    strides[rank] = stride;
    ++rank;
  }
};

// Walks the positions of a view in order; N views of equal dims at once.
template <int N>
class Odometer {
 public:
  Odometer(int rank, const int64_t* dims, const int64_t* const (&strides)[N])
      : rank_(rank), dims_(dims) {
    for (int k = 0; k < N; ++k) strides_[k] = strides[k];
  }

  // To the position with this number in row-major order; to 0 even if there is none.
  void seek(int64_t at) {
    for (int k = 0; k < N; ++k) offsets_[k] = 0;
    for (int i = rank_ - 1; i >= 0; --i) {
      index_[i] = 0;
      if (at == 0) continue;
      index_[i] = at % dims_[i];
      at /= dims_[i];
      for (int k = 0; k < N; ++k) offsets_[k] += index_[i] * strides_[k][i];
    }
  }
  void advance() {
    for (int i = rank_ - 1; i >= 0; --i) {
      for (int k = 0; k < N; ++k) offsets_[k] += strides_[k][i];
      if (++index_[i] < dims_[i]) return;
      for (int k = 0; k < N; ++k) offsets_[k] -= dims_[i] * strides_[k][i];
      index_[i] = 0;
    }
  }
  int64_t offset(int k = 0) const { return offsets_[k]; }
  int64_t index(int i) const { return index_[i]; }

 private:
  int rank_;
  const int64_t* dims_;
  const int64_t* strides_[N];
  int64_t index_[kMaxStridedRank] = {};
  int64_t offsets_[N] = {};
};

// Fills `out`, whose element count is the view's, from `source`, which may be unaligned. Takes all
// element types.
Status copy_strided(OpRun& run, StridedView view, const Tensor& source, Tensor* out);

// Strides with which `shape` is read when broadcast to `to` (0 where it repeats).
void broadcast_strides(const Shape& shape, const Shape& to, int64_t* strides);

// The same with `source` broadcast to the shape of `out`.
Status copy_broadcast(OpRun& run, const Tensor& source, Tensor* out);

}  // namespace folio
