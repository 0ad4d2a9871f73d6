#include "core/base/buffer.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/base/checked_math.h"

namespace folio {
namespace {

constexpr size_t kAlignment = 64;  // one cache line, one zmm register

// Up to this size malloc has a fast path, which aligned_alloc passes by: it is aligned here. With
// the slack (malloc aligns to 16) it is glibc's largest cached size.
constexpr size_t kSmall = 960;
constexpr size_t kSlack = kAlignment - 16;

std::atomic<AllocationHook> g_hook{nullptr};
std::atomic<uint64_t> g_live{0};
std::atomic<uint64_t> g_peak{0};

void count_allocation(size_t bytes) {
  const uint64_t live = g_live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t peak = g_peak.load(std::memory_order_relaxed);
  while (live > peak && !g_peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}

class HeapBuffer final : public Buffer {
 public:
  HeapBuffer(void* block, uint8_t* data, size_t bytes)
      : Buffer(Kind::kHeap, data, bytes), block_(block) {}
  ~HeapBuffer() override {
    g_live.fetch_sub(bytes_, std::memory_order_relaxed);
    std::free(block_);
  }

 private:
  void* block_;  // what was allocated: data_ or a little before
};

class StringBuffer final : public Buffer {
 public:
  explicit StringBuffer(size_t count) : Buffer(Kind::kHeap, nullptr, 0), strings_(count) {
    data_ = reinterpret_cast<uint8_t*>(strings_.data());
    bytes_ = count * sizeof(std::string);
  }

 private:
  std::vector<std::string> strings_;
};

class ViewBuffer final : public Buffer {
 public:
  ViewBuffer(Kind kind, uint8_t* data, size_t bytes, Ref<RefCounted> keeper)
      : Buffer(kind, data, bytes), keeper_(std::move(keeper)) {}

 private:
  Ref<RefCounted> keeper_;
};

}  // namespace

Result<Ref<Buffer>> allocate_buffer(size_t bytes) {
  if (bytes > SIZE_MAX / 2 || !allocation_allowed(bytes)) {
    return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  }
  const size_t rounded = align_up(bytes == 0 ? 1 : bytes, kAlignment);
  const bool small = rounded <= kSmall;
  void* block = small ? std::malloc(rounded + kSlack) : std::aligned_alloc(kAlignment, rounded);
  if (!block) return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  void* data = block;
  size_t space = rounded + kSlack;
  if (small) std::align(kAlignment, rounded, data, space);
  count_allocation(bytes);
  return Ref<Buffer>(make_ref<HeapBuffer>(block, static_cast<uint8_t*>(data), bytes));
}

Result<Ref<Buffer>> allocate_strings(size_t count) {
  if (count > SIZE_MAX / 2 / sizeof(std::string) ||
      !allocation_allowed(count * sizeof(std::string))) {
    return error(Code::kOutOfMemory, "cannot allocate ", count, " strings");
  }
  return Ref<Buffer>(make_ref<StringBuffer>(count));
}

Ref<Buffer> view_buffer(Buffer::Kind kind, const void* data, size_t bytes, Ref<RefCounted> keeper) {
  // Constness is given up here once; kConstant buffers are never written (the mapping is
  // PROT_READ, so a kernel that tried would fault).
  auto* raw = static_cast<uint8_t*>(const_cast<void*>(data));
  return make_ref<ViewBuffer>(kind, raw, bytes, std::move(keeper));
}

void set_allocation_hook(AllocationHook hook) { g_hook.store(hook); }
bool allocation_allowed(size_t bytes) {
  const AllocationHook hook = g_hook.load(std::memory_order_relaxed);
  return !hook || hook(bytes);
}
uint64_t buffer_bytes_live() { return g_live.load(std::memory_order_relaxed); }
uint64_t buffer_bytes_peak() { return g_peak.load(std::memory_order_relaxed); }

}  // namespace folio
