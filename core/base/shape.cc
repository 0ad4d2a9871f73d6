#include "core/base/shape.h"

#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"

namespace folio {

void Shape::insert(int at, int64_t dim) {
  if (rank_ >= kMaxRank) return;
  for (int i = rank_; i > at; --i) dims_[i] = dims_[i - 1];
  dims_[at] = dim;
  ++rank_;
}

void Shape::erase(int at) {
  for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  --rank_;
}

int64_t Shape::product(int from, int to) const {
  int64_t total = 1;
  for (int i = from; i < to; ++i) total *= dims_[i];
  return total;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

std::string dims_text(Span<const int64_t> dims) {
  std::string out = "[";
  for (const int64_t dim : dims) {
    if (out.size() > 1) out += ',';
    out += std::to_string(dim);
  }
  return out + "]";
}

bool checked_count(Span<const int64_t> dims, uint64_t* out_count) {
  // A zero dim makes the count zero, but the other dims must still be sane.
  uint64_t count = 1;
  bool has_zero = false;
  for (const int64_t dim : dims) {
    if (dim < 0) return false;
    has_zero |= dim == 0;
    if (dim != 0 && !checked_mul(count, static_cast<uint64_t>(dim), &count)) return false;
  }
  if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return false;
  *out_count = has_zero ? 0 : count;
  return true;
}

Result<Shape> shape_from(Span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return not_implemented("a tensor has ", dims.size(), " dims; at most ", kMaxRank,
                           " are supported");
  }
  uint64_t count = 0;
  if (!checked_count(dims, &count)) {
    std::string text;
    for (const int64_t dim : dims) text += cat(text.empty() ? "" : ",", dim);
    return invalid_argument("dims [", text, "] are negative or overflow");
  }
  return Shape(dims);
}

Result<int> normalize_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return invalid_argument("axis ", axis, " is outside [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    if (da != db && da != 1 && db != 1) {
      return invalid_argument("shapes ", a.to_string(), " and ", b.to_string(),
                              " do not broadcast");
    }
    out.push_back(da == 1 ? db : da);
  }
  uint64_t count = 0;
  if (!checked_count(out.dims(), &count)) {
    return invalid_argument("broadcast shape ", out.to_string(), " overflows");
  }
  return out;
}

}  // namespace folio
