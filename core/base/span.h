// Span<T> and Bytes: borrowed views. The call they are passed to is their lifetime unless a
// comment names the keeper.
#pragma once

#include <cstdint>
#include <span>

namespace folio {

template <typename T>
using Span = std::span<T>;
using Bytes = std::span<const uint8_t>;

}  // namespace folio
