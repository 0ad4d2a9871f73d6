// What the C# wrappers need: errors as codes and bytes, and results of any length as one block.
//
// Flow:    the managed side registers on_error once; csharp.i's typemaps call the rest.
// Owns:    nothing. A block is malloc'ed here and freed by the managed side through free(3).
// Threads: any; on_error remembers the error for the calling thread.
// Errors:  none of these throw, except std::bad_alloc.
#ifndef FOLIO_BINDINGS_CSHARP_SUPPORT_H_
#define FOLIO_BINDINGS_CSHARP_SUPPORT_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "bindings/bridge.h"

namespace folio::bridge {

using ErrorFunction = void (*)(int code, const char* message, std::int64_t bytes);
inline ErrorFunction on_error = nullptr;

inline void throw_csharp(int code, const char* message) {
  on_error(code, message, static_cast<std::int64_t>(std::strlen(message)));
}

// The number of elements, then the elements.
inline void* block_of(const void* data, size_t count, size_t element_bytes) {
  const auto header = static_cast<std::int64_t>(count);
  auto* block = static_cast<char*>(std::malloc(sizeof header + count * element_bytes));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &header, sizeof header);
  if (count != 0) std::memcpy(block + sizeof header, data, count * element_bytes);
  return block;
}

inline void* to_block(const std::string& text) { return block_of(text.data(), text.size(), 1); }
inline void* to_block(const Dims& dims) {
  return block_of(dims.data(), dims.size(), sizeof(std::int64_t));
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_CSHARP_SUPPORT_H_
