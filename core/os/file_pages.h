// Pages of mapped files: how many are in the page cache, and reading those that are not.
//
// Flow:    os/residency decides what is to be read, in which order; a ColdReader reads it.
// Pages:   the kernel reads what was asked for (MADV_WILLNEED, POSIX_FADV_WILLNEED, readahead) as
//          pages of 4 KiB, or nearly; they stay so while they are in the page cache, for all
//          processes, and weights in them are read up to 1.4 times as slowly as in huge pages. A
//          fault in a mapping that wants huge pages reads one, and asks for the next.
// Threads: a ColdReader belongs to one; the functions: any.
// Errors:  none reach the caller: what could not be read is read by who needs it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/os/mapped_file.h"

namespace folio {

struct FileRange {
  uint64_t offset = 0;
  uint64_t count = 0;
};

// Whole pages of the mapping around a range that is within the file.
Bytes pages_around(const MappedFile& file, const FileRange& range);

// madvise(2) of these; whether the kernel took it.
bool advise_pages(const MappedFile& file, const FileRange& range, int advice);

// Pages of a range in the page cache; none where the kernel does not say.
std::optional<uint64_t> pages_cached(const MappedFile& file, const FileRange& range);

namespace internal {
// cachestat: kernel 6.5. mincore: about one's own files only; for others it says "all".
std::optional<uint64_t> pages_by_cachestat(const MappedFile& file, const FileRange& range);
std::optional<uint64_t> pages_by_mincore(const MappedFile& file, const FileRange& range);
}  // namespace internal

// Reads a file of which most is not in the page cache.
class ColdReader {
 public:
  // `wanted`: all that will be read. Of blocks of 2 MiB that are mostly wanted and mostly missing,
  // the pages that are there, as where a graph stands between its weights, are forgotten: then
  // the block can be read as one.
  ColdReader(const MappedFile& file, const std::vector<FileRange>& wanted);

  // A part of what is wanted. Where the system has huge pages of this file it is there after that,
  // else it has been asked for.
  void read(const FileRange& piece);

 private:
  enum class Way : uint8_t {
    kNotKnown,  // whether a fault reads a huge page is seen at the first one
    kByFaults,
    kAskedFor,
  };
  enum class Block : uint8_t {
    kInPart,  // wanted, or there
    kThere,
    kMissing,
  };

  FileRange range_of(uint64_t block) const;
  bool look_at(const std::vector<FileRange>& wanted);
  bool want_huge_pages();
  bool reads_all_of(uint64_t block);
  void ask_for(const FileRange& piece);

  const MappedFile& file_;
  Way way_ = Way::kNotKnown;
  std::vector<Block> blocks_;  // of the file
};

}  // namespace folio
