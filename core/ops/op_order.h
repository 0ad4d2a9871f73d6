// Numbers as whole numbers: in the same order, for operators that sort (TopK, Unique), and as bits.
//
// Math:    NaN stands above all, every NaN alike; -0 is 0.
// Threads: plain functions.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/ops/op_dispatch.h"

namespace folio {

// Unsigned, of an element's size.
template <typename T>
using BitsOf =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

// An element as a whole number that is larger where the element is: NaN above all, -0 as 0.
template <typename T>
auto key_of(T value) {
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    using C = Compute<T>;
    using Key = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
    const Key bits = std::bit_cast<Key>(static_cast<C>(value) + C{0});
    constexpr Key kMost = std::numeric_limits<Key>::max();
    constexpr Key kInf = std::bit_cast<Key>(std::numeric_limits<C>::infinity());
    const Key key = bits ^ ((bits >> (sizeof(Key) * 8 - 1)) & kMost);
    return (bits & kMost) > kInf ? kMost : key;
  } else if constexpr (sizeof(T) < 4) {
    return static_cast<int32_t>(value);
  } else {
    using Key = std::make_signed_t<T>;
    constexpr Key kFlip = std::is_signed_v<T> ? 0 : std::numeric_limits<Key>::min();
    return static_cast<Key>(static_cast<Key>(value) ^ kFlip);
  }
}
template <typename T>
using KeyOf = decltype(key_of(T{}));

}  // namespace folio
