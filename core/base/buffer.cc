#include "core/base/buffer.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/base/checked_math.h"

namespace folio {
namespace {

constexpr size_t kAlignment = 64;  // one cache line, one zmm register

// Up to this size bytes and keeper are one block, which malloc has a fast path for (aligned_alloc
// has none): models hold hundreds of scalars. With both it is glibc's largest cached size.
constexpr size_t kSmall = 896;
constexpr size_t kSlack = kAlignment - alignof(std::max_align_t);

std::atomic<AllocationHook> g_hook{nullptr};
std::atomic<uint64_t> g_live{0};
std::atomic<uint64_t> g_peak{0};

class HeapBuffer final : public Buffer {
 public:
  HeapBuffer(uint8_t* data, size_t bytes) : Buffer(Kind::kHeap, data, bytes) {}
  ~HeapBuffer() override {
    uncount_buffer(bytes_);
    std::free(data_);
  }
};

// The bytes stand behind the object, in its block.
class SmallBuffer final : public Buffer {
 public:
  struct Room {
    size_t bytes;
  };
  static void* operator new(size_t object, Room behind) noexcept {
    return std::malloc(object + kSlack + align_up(behind.bytes, kAlignment));
  }
  static void operator delete(void* block) noexcept { std::free(block); }
  static void operator delete(void* block, Room) noexcept { std::free(block); }

  explicit SmallBuffer(size_t bytes) : Buffer(Kind::kHeap, nullptr, bytes) {
    const auto behind = reinterpret_cast<uintptr_t>(this + 1);
    data_ = reinterpret_cast<uint8_t*>(this + 1) + (align_up(behind, kAlignment) - behind);
  }
  ~SmallBuffer() override { uncount_buffer(bytes_); }
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
  Ref<Buffer> made;
  if (bytes <= kSmall) {
    made = Ref<Buffer>(new (SmallBuffer::Room{bytes}) SmallBuffer(bytes));
  } else if (void* data = std::aligned_alloc(kAlignment, align_up(bytes, kAlignment))) {
    made = make_ref<HeapBuffer>(static_cast<uint8_t*>(data), bytes);
  }
  if (!made) return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  count_buffer(bytes);
  return made;
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

void count_buffer(size_t bytes) {
  const uint64_t live = g_live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t peak = g_peak.load(std::memory_order_relaxed);
  while (live > peak && !g_peak.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
}
void uncount_buffer(size_t bytes) { g_live.fetch_sub(bytes, std::memory_order_relaxed); }
uint64_t buffer_bytes_live() { return g_live.load(std::memory_order_relaxed); }
uint64_t buffer_bytes_peak() { return g_peak.load(std::memory_order_relaxed); }

}  // namespace folio
