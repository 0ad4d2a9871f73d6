// ReducePlan: a reduction over any axes as loops over merged dims.
//
// Flow:    plan_reduce() drops dims of 1 and merges neighbours that are both kept or both reduced.
//          The innermost group is either reduced (each output then sums contiguous runs) or kept
//          (rows are then combined element by element); reduce_groups() walks the rest.
// Owns:    plain values.
// Order:   elements of one output are combined in memory order, by one thread: results do not
//          depend on the number of threads.
#pragma once

#include <algorithm>

#include "core/ops/op_broadcast.h"

namespace folio {

// Whether reduced dims stay as 1: keepdims is 1, and no other number, as in ONNX's own shape
// inference and reference.
Result<bool> keeps_dims(const Attributes& attributes);

// An odometer's wheels, outermost first; strides in elements of the input.
struct ReduceLoop {
  int rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};
  int64_t count = 1;

  void push_outer(int64_t dim, int64_t stride);
  // Offset of the index-th position.
  int64_t offset(int64_t index) const;
};

// Positions of a loop in order, from the index-th on.
class ReduceWalk {
 public:
  ReduceWalk(const ReduceLoop& loop, int64_t index, int64_t base)
      : loop_(loop), offset_(base + loop.offset(index)) {
    for (int d = loop.rank - 1; d >= 0; --d) {
      index_[d] = index % loop.dims[d];
      index /= loop.dims[d];
    }
  }
  int64_t offset() const { return offset_; }
  void next() {
    for (int d = loop_.rank - 1; d >= 0; --d) {
      offset_ += loop_.strides[d];
      if (++index_[d] < loop_.dims[d]) break;
      offset_ -= loop_.strides[d] * loop_.dims[d];
      index_[d] = 0;
    }
  }

 private:
  const ReduceLoop& loop_;
  int64_t offset_;
  int64_t index_[kMaxRank] = {};
};

struct ReducePlan {
  Shape out;
  int64_t reduced_count = 1;  // elements that go into one output
  bool inner_reduced = false;
  int64_t inner = 1;  // length of the innermost group
  ReduceLoop kept;    // outside the innermost group
  ReduceLoop reduced;
};

// `reduce[i]`: axis i goes.
ReducePlan plan_reduce(const Shape& shape, const bool* reduce, bool keep_dims);

// Calls body(offset) for each position of `loop`, in order.
template <typename Body>
void for_each_offset(const ReduceLoop& loop, int64_t base, Body&& body) {
  if (loop.count == 1) return body(base);
  if (loop.count == 0) return;
  ReduceWalk walk(loop, 0, base);
  for (int64_t k = 0; k < loop.count; ++k, walk.next()) body(walk.offset());
}

// acc[o] = step.row / step.column over the elements of output o. `shifts` is handed to the step
// for output o, or null.
//   A row(A acc, const T* x, int64_t n, A shift)
//   void column(A* acc, const T* x, int64_t n, const A* shifts)
template <typename T, typename A, typename Step>
void reduce_groups(Parallel& parallel, const ReducePlan& plan, const Step& step, const T* x,
                   const A* shifts, A* acc) {
  const int64_t per_output = std::max<int64_t>(1, plan.reduced_count);
  if (plan.inner_reduced) {
    const int64_t grain = std::max<int64_t>(1, kElementGrain / per_output);
    parallel.for_range(plan.kept.count, grain, [&](int64_t begin, int64_t end) {
      ReduceWalk kept(plan.kept, begin, 0);
      for (int64_t o = begin; o < end; ++o, kept.next()) {
        A total = step.first();
        const A shift = shifts ? shifts[o] : A{};
        for_each_offset(plan.reduced, kept.offset(),
                        [&](int64_t at) { total = step.row(total, x + at, plan.inner, shift); });
        acc[o] = total;
      }
    });
    return;
  }
  // Blocks of columns, so that the accumulators stay in the first cache level.
  constexpr int64_t kBlock = 1024;
  const int64_t blocks = (plan.inner + kBlock - 1) / kBlock;
  const int64_t per_block = per_output * std::min(kBlock, std::max<int64_t>(1, plan.inner));
  const int64_t grain = std::max<int64_t>(1, kElementGrain / std::max<int64_t>(1, per_block));
  parallel.for_range(plan.kept.count * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t o = task / blocks;
      const int64_t from = task % blocks * kBlock;
      const int64_t n = std::min(kBlock, plan.inner - from);
      A* out = acc + o * plan.inner + from;
      const A* shift = shifts ? shifts + o * plan.inner + from : nullptr;
      std::fill_n(out, n, step.first());
      for_each_offset(plan.reduced, plan.kept.offset(o) + from,
                      [&](int64_t at) { step.column(out, x + at, n, shift); });
    }
  });
}

}  // namespace folio
