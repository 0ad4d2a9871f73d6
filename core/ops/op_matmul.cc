#include "core/ops/op_matmul.h"

#include <algorithm>

namespace folio {

int64_t MatMulGeometry::batch_index(const Shape& operand, int64_t at) const {
  int64_t index = 0;
  int64_t step = 1;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    const int64_t coordinate = at % batch[i];
    at /= batch[i];
    const int own = i - (batch.rank() - operand.rank());
    if (own < 0) continue;
    if (operand[own] != 1) index += coordinate * step;
    step *= operand[own];
  }
  return index;
}

Result<MatMulGeometry> matmul_geometry(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0) return invalid_argument("MatMul of a scalar");
  MatMulGeometry g;
  if (a.rank() > 1) g.m = a[a.rank() - 2];
  if (b.rank() > 1) g.n = b[b.rank() - 1];
  g.k = a[a.rank() - 1];
  const int64_t k_b = b[b.rank() > 1 ? b.rank() - 2 : 0];
  if (g.k != k_b) {
    return invalid_argument("shapes ", a.to_string(), " and ", b.to_string(),
                            " do not match: k is ", g.k, " and ", k_b);
  }
  for (int i = 0; i + 2 < a.rank(); ++i) g.batch_a.push_back(a[i]);
  for (int i = 0; i + 2 < b.rank(); ++i) g.batch_b.push_back(b[i]);
  FOLIO_TRY(g.batch, broadcast(g.batch_a, g.batch_b));
  g.out = g.batch;
  if (a.rank() > 1) g.out.push_back(g.m);
  if (b.rank() > 1) g.out.push_back(g.n);
  // Operands without elements may claim any m and n: scratch of the result's size must not wrap.
  uint64_t count = 0;
  if (!checked_count(g.out.dims(), &count) || count > (uint64_t{1} << 58)) {
    return invalid_argument("the product of ", a.to_string(), " and ", b.to_string(),
                            " is too large");
  }
  return g;
}

Result<std::optional<Dims>> infer_matmul_dims(OpInfer& infer, int input_a, int input_b) {
  const Dims* a = infer.dims_of(input_a);
  const Dims* b = infer.dims_of(input_b);
  if (!a || !b) return std::optional<Dims>();
  return infer_matmul_dims(infer.table(), *a, *b);
}

Result<std::optional<Dims>> infer_matmul_dims(DimTable& table, const std::optional<Dims>& a,
                                              const std::optional<Dims>& b) {
  if (!a || !b) return std::optional<Dims>();
  if (a->empty() || b->empty()) return invalid_graph("MatMul of a scalar");
  const Dim k_a = a->back();
  const Dim k_b = b->size() > 1 ? (*b)[b->size() - 2] : (*b)[0];
  if (k_a.is_value() && k_b.is_value() && !(k_a == k_b)) {
    return invalid_graph("shapes ", dims_to_string(*a), " and ", dims_to_string(*b),
                         " do not match: k is ", k_a.value, " and ", k_b.value);
  }
  const size_t rank_a = a->size() > 2 ? a->size() - 2 : 0;
  const size_t rank_b = b->size() > 2 ? b->size() - 2 : 0;
  const size_t rank = std::max(rank_a, rank_b);
  Dims out;
  for (size_t i = 0; i < rank; ++i) {
    const Dim da = i + rank_a < rank ? Dim::of(1) : (*a)[i + rank_a - rank];
    const Dim db = i + rank_b < rank ? Dim::of(1) : (*b)[i + rank_b - rank];
    out.push_back(table.broadcast(da, db));
  }
  if (a->size() > 1) out.push_back((*a)[a->size() - 2]);
  if (b->size() > 1) out.push_back(b->back());
  return std::optional<Dims>(std::move(out));
}

}  // namespace folio
