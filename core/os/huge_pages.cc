#include "core/os/huge_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/checked_math.h"

namespace folio {
namespace {

uint8_t* as_bytes(void* mapped) {
  return mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
}

}  // namespace

uint8_t* map_behind_huge_page(size_t bytes, size_t phase, int protection) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  bytes = align_up(bytes, page);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  uint8_t* const wide = as_bytes(mmap(nullptr, bytes + kHugePage, protection, kFlags, -1, 0));
  if (!wide) return nullptr;
  // What is before that place and behind the end goes back at once.
  const size_t before =
      (kHugePage + phase % kHugePage - reinterpret_cast<uintptr_t>(wide) % kHugePage) % kHugePage;
  if (before > 0) munmap(wide, before);
  munmap(wide + before + bytes, kHugePage - before);
  return wide + before;
}

uint8_t* map_file(int fd, uint64_t offset, size_t bytes) {
  const auto at = static_cast<off_t>(offset);
  if (bytes >= kHugePage) {
    if (uint8_t* const place = map_behind_huge_page(bytes, offset % kHugePage, PROT_NONE)) {
      void* const mapped = mmap(place, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, at);
      if (mapped != MAP_FAILED) return static_cast<uint8_t*>(mapped);
      const int number = errno;
      munmap(place, bytes);
      errno = number;
      return nullptr;
    }
  }
  return as_bytes(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, at));
}

}  // namespace folio
