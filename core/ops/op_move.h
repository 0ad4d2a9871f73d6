// What operators share that move elements without looking at them: dispatch on the element's size,
// copies that accept unaligned sources, axes, and packed 2- and 4-bit elements.
//
// Errors:  kNotImplemented for element types that cannot be moved one by one (below 8 bits), which
//          operators that take them handle with unpack_bits / pack_bits.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/ops/op.h"

namespace folio {

// 128 bits that need no more than 8-byte alignment (complex128).
struct Bits128 {
  uint64_t half[2];
};

template <typename T>
struct MoveTag {
  using type = T;
};

// Calls body(MoveTag<T>) -> Status, T being an unsigned integer of the element's size or a string.
template <typename Body>
Status dispatch_move(DType dtype, Body&& body) {
  if (dtype == DType::kString) return body(MoveTag<std::string>{});
  switch (dtype_bits(dtype)) {
    case 8:
      return body(MoveTag<uint8_t>{});
    case 16:
      return body(MoveTag<uint16_t>{});
    case 32:
      return body(MoveTag<uint32_t>{});
    case 64:
      return body(MoveTag<uint64_t>{});
    case 128:
      return body(MoveTag<Bits128>{});
    default:
      return not_implemented("elements of type ", dtype_name(dtype), " are not supported here");
  }
}

// Copies n elements that do not overlap. `from` may be unaligned unless T is a string.
template <typename T>
void move_run(T* to, const T* from, int64_t n) {
  if (n <= 0) return;
  if constexpr (std::is_same_v<T, std::string>) {
    std::copy_n(from, n, to);
  } else {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  }
}

// `count` runs of `bytes` that do not overlap, `to_step` and `from_step` bytes apart.
void move_byte_runs(uint8_t* to, int64_t to_step, const uint8_t* from, int64_t from_step,
                    int64_t bytes, int64_t count);

// y[i] = x[2 * i], i < n, of 32 bits each at any address. Nothing behind the last one is read.
void pick_every_second(int64_t n, const void* x, void* y);

// y[i * stride] = x[i], i < n.
void put_apart(int64_t n, const float* x, int64_t stride, float* y);

// `count` runs of n elements; steps between them are in elements.
template <typename T>
void move_runs(T* to, int64_t to_step, const T* from, int64_t from_step, int64_t n, int64_t count) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if constexpr (std::is_same_v<T, std::string>) {
    for (int64_t i = 0; i < count; ++i) move_run(to + i * to_step, from + i * from_step, n);
  } else {
    move_byte_runs(reinterpret_cast<uint8_t*>(to), to_step * kSize,
                   reinterpret_cast<const uint8_t*>(from), from_step * kSize, n * kSize, count);
  }
}

// n copies of one element, by copies of copies: a plain loop writes one at a time, but for bytes.
template <typename T>
void fill_run(T* to, int64_t n, const T& fill) {
  constexpr int64_t kFirst = 32;
  if constexpr (std::is_same_v<T, std::string> || sizeof(T) == 1) {
    std::fill_n(to, n, fill);
  } else {
    std::fill_n(to, std::min(n, kFirst), fill);
    for (int64_t done = kFirst; done < n;) {
      const int64_t more = std::min({done, n - done, int64_t{1024}});
      std::memcpy(to + done, to, static_cast<size_t>(more) * sizeof(T));
      done += more;
    }
  }
}

// One element, by value.
template <typename T>
void move_one(T* to, const T* from) {
  if constexpr (std::is_same_v<T, std::string>) {
    *to = *from;
  } else {
    std::memcpy(to, from, sizeof(T));
  }
}

// Where element i of a possibly unaligned array stands, without forming a misaligned T&.
template <typename T>
const T* element_at(const void* base, int64_t i) {
  return reinterpret_cast<const T*>(static_cast<const uint8_t*>(base) +
                                    i * static_cast<int64_t>(sizeof(T)));
}

// Refuses what move_element cannot move.
inline Status check_whole_bytes(const Tensor& tensor) {
  if (!dtype_is_subbyte(tensor.dtype())) return Status::ok();
  return not_implemented("elements of type ", dtype_name(tensor.dtype()),
                         " are not supported here");
}

// to[to_at] = from[from_at]; both are of one type of whole bytes.
inline void move_element(const Tensor& from, int64_t from_at, Tensor* to, int64_t to_at) {
  if (from.is_string()) {
    to->data_mut<std::string>()[to_at] = from.data<std::string>()[from_at];
    return;
  }
  const int64_t size = dtype_bits(from.dtype()) / 8;
  std::memcpy(to->raw_mut() + to_at * size, from.raw() + from_at * size, static_cast<size_t>(size));
}

// Elements below 8 bits, one a byte (not sign-extended), and back.
void unpack_bits(const Tensor& from, uint8_t* to);
void pack_bits(const uint8_t* from, Tensor* to);

// Axes in [-rank, rank), each at most once.
Result<std::vector<int>> normalize_axes(Span<const int64_t> axes, int rank);

// Row-major strides in elements.
void row_strides(const Shape& shape, int64_t* strides);

// An index in [-size, size) as one in [0, size); false when it is outside.
inline bool wrap_index(int64_t* index, int64_t size) {
  if (*index < -size || *index >= size) return false;
  if (*index < 0) *index += size;
  return true;
}

// A copy of a whole tensor as output i (fresh memory).
Status copy_to_output(OpRun& run, int i, const Tensor& source);

// Output `to` is of the type of input `from`, contents included.
void infer_same(OpInfer& infer, int from, int to);

// Attribute `axis` where leaving it out means all elements, flattened.
Result<std::optional<int64_t>> optional_axis(const Attributes& attrs);

// Output 0 has some of the entries of input 0 along `axis`, or some of its elements without one.
Status infer_selection(OpInfer& infer);

// Elements worth a task of their own.
inline constexpr int64_t kMoveGrain = 32768;
inline int64_t rows_per_task(int64_t row_elements) {
  return std::max<int64_t>(1, kMoveGrain / std::max<int64_t>(1, row_elements));
}
// The size of the fewest parts of at most `most` that `all` is cut into evenly, in steps.
inline int64_t even_part(int64_t all, int64_t most, int64_t step = 1) {
  const int64_t parts = std::max<int64_t>(1, (all + most - 1) / most);
  const int64_t each = (all + parts - 1) / parts;
  return std::min(all, (each + step - 1) / step * step);
}

}  // namespace folio
