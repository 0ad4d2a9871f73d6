// The loops of reductions: elements read as T and joined, whatever the axes.
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

template <typename T>
struct Joins {
  // x[i * stride + j], i < rows, j < n, joined to acc[i] (rows) or acc[j] (columns).
  void (*rows)(int64_t rows, int64_t n, const T* x, int64_t stride, T* acc) = nullptr;
  void (*columns)(int64_t rows, int64_t n, const T* x, int64_t stride, T* acc) = nullptr;
  // Columns of results.
  void (*merge)(int64_t rows, int64_t n, const T* x, int64_t stride, T* acc) = nullptr;
  T start{};
};

// to[i] = element at + i of `from`, i < n, as a T.
using StageFn = void (*)(const FolioKernels& kernels, const void* from, int64_t at, int64_t n,
                         void* to);

template <typename T>
struct ReduceJob {
  const FolioKernels& kernels;
  const ReducePlan& plan;
  Joins<T> joins;
  const void* x = nullptr;
  StageFn stage = nullptr;    // null: x is of T
  const T* shifts = nullptr;  // of each output: exp(x - shift) is joined; null: x
};

// acc[o] = joins.start and all elements of output o.
template <typename T>
void reduce_elements(Parallel& parallel, const ReduceJob<T>& job, T* acc);

extern template void reduce_elements(Parallel&, const ReduceJob<float>&, float*);
extern template void reduce_elements(Parallel&, const ReduceJob<double>&, double*);
extern template void reduce_elements(Parallel&, const ReduceJob<uint8_t>&, uint8_t*);
extern template void reduce_elements(Parallel&, const ReduceJob<int32_t>&, int32_t*);
extern template void reduce_elements(Parallel&, const ReduceJob<int64_t>&, int64_t*);

// Extremes start at -inf and inf, or the type's bounds; integers wrap. Bytes have extremes alone.
template <typename T>
Joins<T> kernel_joins(const FolioKernels& kernels, FolioReduce how);

template <>
Joins<float> kernel_joins(const FolioKernels& kernels, FolioReduce how);
template <>
Joins<double> kernel_joins(const FolioKernels& kernels, FolioReduce how);
template <>
Joins<uint8_t> kernel_joins(const FolioKernels& kernels, FolioReduce how);
template <>
Joins<int32_t> kernel_joins(const FolioKernels& kernels, FolioReduce how);
template <>
Joins<int64_t> kernel_joins(const FolioKernels& kernels, FolioReduce how);

}  // namespace folio
