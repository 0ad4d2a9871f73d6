// Dot products, or squared distances, of the rows of two matrices, in double.
//
// Math:    a.b, or |a|^2 + |b|^2 - 2 a.b; where that is small beside the norms, or no number, the
//          sum of squared differences: equal rows have a distance of 0.
// Memory:  scratch for some rows of b, that live as long as the operator's call.
// Errors:  what OpRun::scratch gives.
#pragma once

#include "core/ops/op.h"

namespace folio {

// out [m, k]: of a [m, n] and b [k, n].
template <typename T>
Status row_products(OpRun& run, int64_t m, const T* a, int64_t k, const float* b, int64_t n,
                    bool distances, double* out);
extern template Status row_products(OpRun&, int64_t, const float*, int64_t, const float*, int64_t,
                                    bool, double*);
extern template Status row_products(OpRun&, int64_t, const double*, int64_t, const float*, int64_t,
                                    bool, double*);

// Rows of a that are worth one call.
inline constexpr int64_t kProductRows = 64;

}  // namespace folio
