// Buffer: who keeps the bytes behind a tensor alive.
//
// Flow:    mappings, heap blocks, arenas and the caller's memory all look alike to kernels.
// Owns:    the bytes, by subclass. `escapes()` says whether a tensor may outlive its run as it is.
// Threads: the count is atomic; bytes are written only while one party holds the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/ref.h"
#include "core/base/status.h"

namespace folio {

class Buffer : public RefCounted {
 public:
  enum class Kind : uint8_t {
    kHeap,      // ours alone: a tensor over it may leave the run
    kArena,     // dies with the run: must be copied to leave it
    kConstant,  // read-only: a mapping or an initializer; may leave a program, not be written
    kBorrowed,  // the caller's memory
  };

  Kind kind() const { return kind_; }
  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 protected:
  Buffer(Kind kind, uint8_t* data, size_t bytes) : kind_(kind), data_(data), bytes_(bytes) {}
  Kind kind_;
  uint8_t* data_;
  size_t bytes_;
};

// A fresh 64-byte aligned block (uninitialised). kOutOfMemory when there is none.
Result<Ref<Buffer>> allocate_buffer(size_t bytes);

// `count` empty std::string objects, destroyed with the buffer.
Result<Ref<Buffer>> allocate_strings(size_t count);

// A view of [data, data + bytes) kept alive by `keeper` (a mapping, another buffer, or null for
// memory that outlives everything).
Ref<Buffer> view_buffer(Buffer::Kind kind, const void* data, size_t bytes, Ref<RefCounted> keeper);

// Tests make the n-th allocation fail through this hook: it sees every size that allocate_buffer
// is asked for and returns false to refuse. Null (the default) allows all.
using AllocationHook = bool (*)(size_t bytes);
void set_allocation_hook(AllocationHook hook);

// For buffers that are not made by allocate_buffer (of arenas): asks the hook, and counts them with
// the others.
bool allocation_allowed(size_t bytes);
void count_buffer(size_t bytes);
void uncount_buffer(size_t bytes);

// Bytes that buffers hold now and held at most, in this process, without views and arenas. For
// reports.
uint64_t buffer_bytes_live();
uint64_t buffer_bytes_peak();

}  // namespace folio
