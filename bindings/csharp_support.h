// What the C# wrappers need: errors as codes and bytes, and results of any length as one block.
//
// Flow:    the managed side registers on_error once; csharp.i's typemaps call the rest.
// Owns:    nothing. A block is malloc'ed here and freed by the managed side through free(3).
// Threads: any; on_error remembers the error for the calling thread.
// Errors:  none of these throw, except std::bad_alloc. The managed side's functions catch what the
//          user's code throws.
#ifndef FOLIO_BINDINGS_CSHARP_SUPPORT_H_
#define FOLIO_BINDINGS_CSHARP_SUPPORT_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
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

// Functions of the managed side, and the handle that they get back.
using ProgressFunction = int (*)(void* user, const char* stage, double fraction);
using LogFunction = void (*)(void* user, int level, const char* message);

inline std::function<bool(const std::string&, double)> progress_of(void* function, void* user) {
  return [call = reinterpret_cast<ProgressFunction>(function), user](const std::string& stage,
                                                                     double fraction) {
    return call(user, stage.c_str(), fraction) == 0;
  };
}

// `release` is called with `user` when the log is no longer written to, also if this throws.
inline std::function<void(LogLevel, const std::string&)> log_of(void* function, void* release,
                                                                void* user) {
  if (function == nullptr) return nullptr;
  const std::shared_ptr<void> kept(user, reinterpret_cast<FolioReleaseFunction>(release));
  return [call = reinterpret_cast<LogFunction>(function), kept](LogLevel level,
                                                                const std::string& message) {
    call(kept.get(), static_cast<int>(level), message.c_str());
  };
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_CSHARP_SUPPORT_H_
