#include "core/os/file_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "core/os/huge_pages.h"

namespace folio {
namespace {

constexpr uint64_t kPage = 4096;

// Kernel 6.5; its number is the same on every architecture.
constexpr long kCachestatCall = 451;
struct CachestatRange {
  uint64_t offset;
  uint64_t bytes;
};
struct Cachestat {
  uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

uint64_t page_count(const FileRange& range) { return (range.count + kPage - 1) / kPage; }

}  // namespace

Bytes pages_around(const MappedFile& file, const FileRange& range) {
  const uint64_t begin = range.offset / kPage * kPage;
  return {file.bytes().data() + begin, static_cast<size_t>(range.offset + range.count - begin)};
}

bool advise_pages(const MappedFile& file, const FileRange& range, int advice) {
  const Bytes pages = pages_around(file, range);
  return madvise(const_cast<uint8_t*>(pages.data()), pages.size(), advice) == 0;
}

std::optional<uint64_t> pages_cached(const MappedFile& file, const FileRange& range) {
  const std::optional<uint64_t> pages = internal::pages_by_cachestat(file, range);
  return pages ? pages : internal::pages_by_mincore(file, range);
}

namespace internal {

std::optional<uint64_t> pages_by_cachestat(const MappedFile& file, const FileRange& range) {
  CachestatRange asked{range.offset, range.count};
  Cachestat found = {};
  if (syscall(kCachestatCall, file.descriptor(), &asked, &found, 0) != 0) return std::nullopt;
  return found.cached;
}

std::optional<uint64_t> pages_by_mincore(const MappedFile& file, const FileRange& range) {
  struct stat s = {};
  if (fstat(file.descriptor(), &s) != 0) return std::nullopt;
  if (s.st_uid != geteuid() && geteuid() != 0) return std::nullopt;
  const Bytes around = pages_around(file, range);
  std::vector<unsigned char> pages((around.size() + kPage - 1) / kPage);
  auto* const start = const_cast<uint8_t*>(around.data());
  if (mincore(start, around.size(), pages.data()) != 0) return std::nullopt;
  return static_cast<uint64_t>(std::count_if(pages.begin(), pages.end(),
                                             [](unsigned char page) { return (page & 1) != 0; }));
}

}  // namespace internal

ColdReader::ColdReader(const MappedFile& file, const std::vector<FileRange>& wanted)
    : file_(file), blocks_((file.bytes().size() + kHugePage - 1) / kHugePage) {
  if (!look_at(wanted) || !want_huge_pages()) way_ = Way::kAskedFor;
}

FileRange ColdReader::range_of(uint64_t block) const {
  const uint64_t offset = block * kHugePage;
  return {offset, std::min<uint64_t>(kHugePage, file_.bytes().size() - offset)};
}

// What there is of each block of which half is wanted; false where the kernel does not say.
bool ColdReader::look_at(const std::vector<FileRange>& wanted) {
  std::vector<uint64_t> bytes(blocks_.size());
  for (const FileRange& range : wanted) {
    const uint64_t end = std::min<uint64_t>(range.offset + range.count, file_.bytes().size());
    for (uint64_t at = range.offset; at < end;) {
      const uint64_t block = at / kHugePage;
      const uint64_t next = std::min(end, (block + 1) * kHugePage);
      bytes[block] += next - at;
      at = next;
    }
  }
  for (uint64_t block = 0; block < blocks_.size(); ++block) {
    const FileRange all = range_of(block);
    if (bytes[block] < all.count / 2) continue;
    const std::optional<uint64_t> cached = pages_cached(file_, all);
    if (!cached) return false;
    const uint64_t pages = page_count(all);
    const Block less = *cached < pages / 2 ? Block::kMissing : Block::kInPart;
    blocks_[block] = *cached >= pages ? Block::kThere : less;
  }
  return true;
}

// Of the blocks that are missing; false where there are none. Pages that other processes have
// mapped stay as they are.
bool ColdReader::want_huge_pages() {
  for (uint64_t block = 0; block < blocks_.size(); ++block) {
    if (blocks_[block] != Block::kMissing) continue;
    FileRange run = range_of(block);
    while (block + 1 < blocks_.size() && blocks_[block + 1] == Block::kMissing) {
      run.count += range_of(++block).count;
    }
    if (!advise_pages(file_, run, MADV_HUGEPAGE)) return false;
    advise_pages(file_, run, MADV_DONTNEED);
    (void)posix_fadvise(file_.descriptor(), static_cast<off_t>(run.offset),
                        static_cast<off_t>(run.count), POSIX_FADV_DONTNEED);
  }
  return true;
}

// Whether a fault in the block has read all of it: kernels before 5.18 read 128 KiB.
bool ColdReader::reads_all_of(uint64_t block) {
  const FileRange all = range_of(block);
  if (!advise_pages(file_, {all.offset, 1}, MADV_POPULATE_READ)) return false;
  const std::optional<uint64_t> cached = pages_cached(file_, all);
  return cached && *cached >= page_count(all);
}

// All of it at once: whoever needs it waits, if at all, for less than if it asked.
void ColdReader::ask_for(const FileRange& piece) { advise_pages(file_, piece, MADV_WILLNEED); }

void ColdReader::read(const FileRange& piece) {
  const uint64_t end = piece.offset + piece.count;
  for (uint64_t block = piece.offset / kHugePage; block * kHugePage < end; ++block) {
    if (way_ == Way::kAskedFor) return ask_for(piece);
    const FileRange all = range_of(block);
    if (blocks_[block] == Block::kInPart) {
      const uint64_t from = std::max(piece.offset, all.offset);
      ask_for({from, std::min(end, all.offset + all.count) - from});
    } else if (blocks_[block] == Block::kMissing) {
      if (way_ == Way::kNotKnown) {
        way_ = reads_all_of(block) ? Way::kByFaults : Way::kAskedFor;
        if (way_ == Way::kAskedFor) continue;
      }
      advise_pages(file_, all, MADV_POPULATE_READ);
      blocks_[block] = Block::kThere;
    }
  }
}

}  // namespace folio
