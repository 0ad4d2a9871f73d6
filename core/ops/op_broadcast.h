// Broadcasting of two inputs: how rows of the output step through both, and what shape inference
// makes of it.
//
// Flow:    plan_broadcast() merges dims that broadcast alike, so that a row is as long as can be;
//          for_broadcast_rows() walks the rows, for_broadcast_pieces() joins short ones.
//          infer_broadcast() does the same for symbolic dims.
// Owns:    plain values.
// Errors:  shapes that do not broadcast: kInvalidArgument at run, kInvalidGraph at inference.
#pragma once

#include <algorithm>

#include "core/ops/op.h"
#include "core/ops/op_dispatch.h"

namespace folio {

// Work items of this many elements are worth a thread (about 10 microseconds of a cheap kernel).
inline constexpr int64_t kElementGrain = 16384;

struct BroadcastPlan {
  Shape out;
  // A row: `row` consecutive outputs, a and b stepping by 0 or 1.
  int64_t row = 1;
  int64_t a_step = 0;
  int64_t b_step = 0;
  // The dims outside a row, outermost first, and for each the strides of a and b in elements.
  int64_t rows = 1;
  Shape dims;
  Shape a_strides;
  Shape b_strides;

  // Elements of a row from which on rows are not joined.
  int64_t shortest_alone() const;
};

Result<BroadcastPlan> plan_broadcast(const Shape& a, const Shape& b);

// Calls body(a_offset, b_offset, row, rows) for up to `most` rows that are neighbours in the
// innermost of plan.dims; make_body() makes the body of a thread.
template <typename MakeBody>
void for_broadcast_runs(Parallel& parallel, const BroadcastPlan& plan, int64_t most,
                        const MakeBody& make_body) {
  const int64_t grain = std::max<int64_t>(1, kElementGrain / plan.row);
  parallel.for_range(plan.rows, grain, [&](int64_t begin, int64_t end) {
    auto body = make_body();
    const int last = plan.dims.rank() - 1;
    int64_t index[kMaxRank];
    int64_t a = 0;
    int64_t b = 0;
    int64_t rest = begin;
    for (int d = plan.dims.rank() - 1; d >= 0; --d) {
      index[d] = rest % plan.dims[d];
      rest /= plan.dims[d];
      a += index[d] * plan.a_strides[d];
      b += index[d] * plan.b_strides[d];
    }
    for (int64_t r = begin, rows = 0; r < end; r += rows) {
      rows = std::min({most, plan.dims[last] - index[last], end - r});
      body(a, b, r, rows);
      int64_t step = rows;
      for (int d = last; d >= 0; --d, step = 1) {
        a += plan.a_strides[d] * step;
        b += plan.b_strides[d] * step;
        if ((index[d] += step) < plan.dims[d]) break;
        a -= plan.a_strides[d] * plan.dims[d];
        b -= plan.b_strides[d] * plan.dims[d];
        index[d] = 0;
      }
    }
  });
}

// Calls body(a_offset, b_offset, out_offset, count) for pieces of rows that cover the output.
template <typename Body>
void for_broadcast_rows(Parallel& parallel, const BroadcastPlan& plan, Body&& body) {
  if (plan.rows == 0 || plan.row == 0) return;
  if (plan.rows == 1) {
    parallel.for_range(plan.row, kElementGrain, [&](int64_t begin, int64_t end) {
      body(begin * plan.a_step, begin * plan.b_step, begin, end - begin);
    });
    return;
  }
  for_broadcast_runs(parallel, plan, 1, [&] {
    return [&](int64_t a, int64_t b, int64_t r, int64_t) { body(a, b, r * plan.row, plan.row); };
  });
}

inline constexpr int64_t kShortRow = 16;      // elements: a call for each costs more than a copy
inline constexpr int64_t kRepeatedRow = 128;  // the same where one copy serves all
inline constexpr int64_t kJoinedElements = 512;

// One operand of short rows that are joined: itself where those are neighbours, else a copy.
class JoinedRows {
 public:
  // `data`: elements of `size` bytes, 1, 2, 4 or 8; rows begin `stride` elements from each other.
  JoinedRows(const uint8_t* data, int64_t size, int64_t step, int64_t stride)
      : data_(data), size_(size), step_(step), stride_(stride) {}

  // Strings are no bytes that could be copied.
  static bool takes(int64_t size) { return size <= 8; }

  struct Piece {
    const uint8_t* data;
    int64_t step;  // 0 or 1
  };
  // `count` rows of `row` elements, the first of which is at element `at`; as long as this lives
  // and until it is asked again.
  Piece join(int64_t at, int64_t row, int64_t count);

 private:
  const uint8_t* data_;
  int64_t size_, step_, stride_;
  int64_t held_ = -1;  // the first element of what memory_ has
  int64_t held_rows_ = 0;
  alignas(64) uint8_t memory_[kJoinedElements * 8];
};

// Calls body(a, a_step, b, b_step, out_offset, count) for pieces that cover the output; a and b: of
// elements of these sizes. Short rows are joined.
template <typename Body>
void for_broadcast_pieces(Parallel& parallel, const BroadcastPlan& plan, const uint8_t* a,
                          int64_t a_size, const uint8_t* b, int64_t b_size, const Body& body) {
  const bool are_joined = JoinedRows::takes(a_size) && JoinedRows::takes(b_size);
  if (!are_joined || plan.rows <= 1 || plan.row == 0 || plan.row >= plan.shortest_alone()) {
    for_broadcast_rows(parallel, plan, [&](int64_t a_at, int64_t b_at, int64_t at, int64_t count) {
      body(a + a_at * a_size, plan.a_step, b + b_at * b_size, plan.b_step, at, count);
    });
    return;
  }
  const int last = plan.dims.rank() - 1;
  for_broadcast_runs(parallel, plan, kJoinedElements / plan.row, [&] {
    return [&, left = JoinedRows(a, a_size, plan.a_step, plan.a_strides[last]),
            right = JoinedRows(b, b_size, plan.b_step, plan.b_strides[last])](
               int64_t a_at, int64_t b_at, int64_t r, int64_t rows) mutable {
      const JoinedRows::Piece of_a = left.join(a_at, plan.row, rows);
      const JoinedRows::Piece of_b = right.join(b_at, plan.row, rows);
      body(of_a.data, of_a.step, of_b.data, of_b.step, r * plan.row, rows * plan.row);
    };
  });
}

// One row of a binary operator; a_step and b_step are 0 or 1.
using BinaryRow = void (*)(int64_t n, const void* a, int64_t a_step, const void* b, int64_t b_step,
                           void* y);

// y[i] = f(a[i], b[i]) in the types' compute types. y may be a or b, of elements of one size: no
// element depends on another, which a compiler that vectorizes is told.
template <typename A, typename B, typename Y, typename F>
void binary_row(int64_t n, const void* av, int64_t a_step, const void* bv, int64_t b_step,
                void* yv) {
  const A* a = static_cast<const A*>(av);
  const B* b = static_cast<const B*>(bv);
  Y* y = static_cast<Y*>(yv);
  using CA = Compute<A>;
  using CB = Compute<B>;
  const F f{};
  if (a_step == 1 && b_step == 1) {
    FOLIO_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<Y>(f(static_cast<CA>(a[i]), static_cast<CB>(b[i])));
    }
  } else if (a_step == 1) {
    const CB second = n > 0 ? static_cast<CB>(*b) : CB{};
    FOLIO_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(static_cast<CA>(a[i]), second));
  } else if (b_step == 1) {
    const CA first = n > 0 ? static_cast<CA>(*a) : CA{};
    FOLIO_IVDEP
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<Y>(f(first, static_cast<CB>(b[i])));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      y[i] = static_cast<Y>(f(static_cast<CA>(*a), static_cast<CB>(*b)));
    }
  }
}

// Computes a whole broadcast output by rows of elements of the given sizes.
void run_binary_rows(OpRun& run, const BroadcastPlan& plan, BinaryRow row, const Tensor& a,
                     const Tensor& b, Tensor* y);

// The same by a kernel's slot, of floats; of float16 or bfloat16, widened and rounded a piece at a
// time.
void run_binary_f32(OpRun& run, FolioBinaryF32 kernel, const BroadcastPlan& plan, const Tensor& a,
                    const Tensor& b, Tensor* y);

// ---------------------------------------------------------------- opset < 7

// Before opset 7 only input 1 broadcasts, and only when the attribute `broadcast` is 1: its dims
// then stand at `axis` of input 0's (default: at the end).
struct LegacyBroadcast {
  enum class Mode { kNumpy, kEqual, kAxis };
  Mode mode = Mode::kNumpy;
  bool has_axis = false;
  int64_t axis = 0;

  static Result<LegacyBroadcast> parse(const Attributes& attributes, int version);
  // b's shape padded with ones so that numpy's rule means the same.
  Result<Shape> second(const Shape& a, const Shape& b) const;
};

// ---------------------------------------------------------------- inference

// The broadcast of two symbolic shapes; kInvalidGraph when numbers contradict each other.
Result<Dims> infer_broadcast(DimTable& table, const Dims& a, const Dims& b);

// Dims of output 0 from inputs 0 and 1 (or all inputs), with the legacy rule below opset 7; absent
// when an input's rank is unknown.
Result<std::optional<Dims>> infer_binary_dims(OpInfer& infer);
Result<std::optional<Dims>> infer_variadic_dims(OpInfer& infer);

// The first known element type among the inputs; kInvalidGraph when two known ones differ.
Result<DType> infer_common_dtype(const OpInfer& infer);

}  // namespace folio
