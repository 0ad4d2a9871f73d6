#include "core/os/anonymous_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/checked_math.h"

namespace folio {
namespace {

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
  constexpr int kReadWrite = PROT_READ | PROT_WRITE;
  if (bytes < kHugePage) {
    void* const data = mmap(nullptr, bytes, kReadWrite, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data == MAP_FAILED ? nullptr : static_cast<uint8_t*>(data);
  }
  uint8_t* const data = map_behind_huge_page(bytes, 0, kReadWrite);
  if (!data) return nullptr;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = align_up(bytes, page) / kHugePage * kHugePage;
  madvise(data, whole, MADV_HUGEPAGE);  // EINVAL where there are none
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
