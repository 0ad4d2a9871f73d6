// Shape: concrete dims with fixed capacity, so that no run allocates one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

// ONNX sets no limit on rank; tensors of rank above 16 are refused by name at load and at run.
inline constexpr int kMaxRank = 16;

std::string dims_text(Span<const int64_t> dims);  // "[2,3]"

class Shape {
 public:
  Shape() {}  // NOLINT: a scalar; dims beyond the rank are never read, so nobody sets them
  Shape(const Shape& other) { *this = other; }
  // Only what there is: a step of a run copies shapes some ten times, most of few dims.
  Shape& operator=(const Shape& other) {
    rank_ = other.rank_;
    for (int i = 0; i < rank_; ++i) dims_[i] = other.dims_[i];
    return *this;
  }
  Shape(std::initializer_list<int64_t> dims) {
    for (const int64_t d : dims) push_back(d);
  }
  // `dims` must hold at most kMaxRank entries; see shape_from for unchecked input.
  explicit Shape(Span<const int64_t> dims) {
    for (const int64_t d : dims) push_back(d);
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }
  Span<const int64_t> dims() const { return {dims_, static_cast<size_t>(rank_)}; }

  void push_back(int64_t dim) {
    if (rank_ < kMaxRank) dims_[rank_++] = dim;
  }
  void insert(int at, int64_t dim);
  void erase(int at);

  // Product of dims [from, to). Only for shapes already checked: no overflow test.
  int64_t product(int from, int to) const;
  int64_t count() const { return product(0, rank_); }

  bool operator==(const Shape& other) const;

  std::string to_string() const { return dims_text(dims()); }

 private:
  int rank_ = 0;
  int64_t dims_[kMaxRank];
};

// Checks rank <= kMaxRank, every dim >= 0, and that the element count fits int64.
Result<Shape> shape_from(Span<const int64_t> dims);

// Element count of possibly hostile dims; false when a dim is negative or the product overflows.
[[nodiscard]] bool checked_count(Span<const int64_t> dims, uint64_t* out_count);

// Maps axis in [-rank, rank) to [0, rank); kInvalidArgument otherwise.
Result<int> normalize_axis(int64_t axis, int rank);

// NumPy / ONNX multidirectional broadcasting of two shapes.
Result<Shape> broadcast(const Shape& a, const Shape& b);

}  // namespace folio
