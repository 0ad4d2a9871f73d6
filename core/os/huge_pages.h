// Mappings that huge pages fit into: as far behind a multiple of 2 MiB as what they show.
//
// Flow:    anonymous memory and mapped files come from here.
// Why:     a huge page is one fault and one entry of a page table instead of 512. Reading weights
//          of a mapped file from memory is up to 1.4 times as fast (docs/residency.md).
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

namespace folio {

inline constexpr size_t kHugePage = size_t{2} << 20;

// Anonymous memory of `bytes` > 0, rounded up to pages, that begins `phase` bytes (a multiple of
// the page size) behind a multiple of kHugePage; `protection` as for mmap(2). Null: there is none.
uint8_t* map_behind_huge_page(size_t bytes, size_t phase, int protection);

// Bytes [offset, offset + bytes) of a file, shared and read-only; `offset` is a multiple of the
// page size. From kHugePage on, what the page cache has as huge pages can be mapped so: some file
// systems see to that themselves, overlayfs and older kernels do not. Null: errno says why.
uint8_t* map_file(int fd, uint64_t offset, size_t bytes);

}  // namespace folio
