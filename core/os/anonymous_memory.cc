#include "core/os/anonymous_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/checked_math.h"

namespace folio {
namespace {

uint8_t* map_pages(size_t bytes) {
  void* const data =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
}

class MappedBuffer final : public Buffer {
 public:
  MappedBuffer(uint8_t* data, size_t bytes) : Buffer(Kind::kHeap, data, bytes) {
    count_buffer(bytes_);
  }
  ~MappedBuffer() override {
    uncount_buffer(bytes_);
    unmap_anonymous(data_, bytes_);
  }
};

}  // namespace

uint8_t* map_anonymous(size_t bytes) {
  if (bytes < kHugePage) return map_pages(bytes);
  if (bytes > SIZE_MAX / 2) return nullptr;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = align_up(bytes, page);
  // What is before the first multiple and behind the end goes back at once.
  uint8_t* const wide = map_pages(bytes + kHugePage);
  if (!wide) return nullptr;
  const auto at = reinterpret_cast<uintptr_t>(wide);
  const size_t before = align_up(at, kHugePage) - at;
  uint8_t* const data = wide + before;
  if (before > 0) munmap(wide, before);
  munmap(data + bytes, kHugePage - before);
  madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // EINVAL where there are none
  return data;
}

void unmap_anonymous(uint8_t* data, size_t bytes) { munmap(data, bytes); }

Result<Ref<Buffer>> allocate_large_buffer(size_t bytes) {
  if (bytes < kHugePage) return allocate_buffer(bytes);
  uint8_t* const data = allocation_allowed(bytes) ? map_anonymous(bytes) : nullptr;
  if (!data) return error(Code::kOutOfMemory, "cannot allocate ", bytes, " bytes");
  return Ref<Buffer>(make_ref<MappedBuffer>(data, bytes));
}

}  // namespace folio
