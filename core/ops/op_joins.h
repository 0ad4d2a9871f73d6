// The loops of reductions: elements read as T and joined in A, whatever the axes.
//
// Flow:    reduce.cc makes a ReducePlan, a Joins (how results grow) and a Staging (how elements
//          become T); reduce_elements() walks the plan, innermost two dims at a time.
// Threads: spreads outputs over the run's threads; each output is computed by one of them.
// Order:   elements of one output are joined in an order that depends on the plan only.
// Errors:  none.
#pragma once

#include <cmath>

#include "core/ops/op_reduce.h"

namespace folio {

template <typename T, typename A>
struct Joins {
  // x[i * stride + j], i < rows, j < n, joined to acc[i] (rows) or acc[j] (columns).
  void (*rows)(int64_t rows, int64_t n, const T* x, int64_t stride, A* acc) = nullptr;
  void (*columns)(int64_t rows, int64_t n, const T* x, int64_t stride, A* acc) = nullptr;
  // Columns of results.
  void (*merge)(int64_t rows, int64_t n, const A* x, int64_t stride, A* acc) = nullptr;
  A start{};
};

// to[i] = element at + i of `from`, i < n, as a T.
using StageFn = void (*)(const FolioKernels& kernels, const void* from, int64_t at, int64_t n,
                         void* to);

template <typename T, typename A>
struct ReduceJob {
  const FolioKernels& kernels;
  const ReducePlan& plan;
  Joins<T, A> joins;
  const void* x = nullptr;
  StageFn stage = nullptr;    // null: x is of T
  const A* shifts = nullptr;  // of each output: exp(x - shift) is joined; null: x
};

// acc[o] = joins.start and all elements of output o.
template <typename T, typename A>
void reduce_elements(Parallel& parallel, const ReduceJob<T, A>& job, A* acc);

extern template void reduce_elements(Parallel&, const ReduceJob<float, float>&, float*);
extern template void reduce_elements(Parallel&, const ReduceJob<double, double>&, double*);
extern template void reduce_elements(Parallel&, const ReduceJob<int32_t, int32_t>&, int32_t*);
extern template void reduce_elements(Parallel&, const ReduceJob<int32_t, int64_t>&, int64_t*);
extern template void reduce_elements(Parallel&, const ReduceJob<int64_t, int64_t>&, int64_t*);

// Of the kernels, for floats; of plain loops. Extremes start at -inf and inf, or the type's bounds.
Joins<float, float> float_joins(const FolioKernels& kernels, FolioReduce how);
Joins<double, double> double_joins(FolioReduce how);
Joins<int32_t, int32_t> int32_joins(FolioReduce how);  // Max and Min
Joins<int32_t, int64_t> wide_joins(FolioReduce how);   // the others, wrapping
Joins<int64_t, int64_t> int64_joins(FolioReduce how);

}  // namespace folio
