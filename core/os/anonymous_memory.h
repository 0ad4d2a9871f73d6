// Anonymous memory in mappings of its own: its pages go back to the system when it is freed.
//
// Flow:    arenas, blocks of runs, weights packed in memory and files that are read come from here.
// Pages:   from 2 MiB on a mapping begins at a multiple of 2 MiB, and the system is told that it
//          may back the whole huge pages in it so (madvise(2), MADV_HUGEPAGE): one fault instead of
//          512, fewer walks of page tables. What is behind the last whole one has pages of 4 KiB,
//          so that no byte more than asked for (to a page) ever takes memory. Where
//          /sys/kernel/mm/transparent_hugepage/enabled is "never", or the process has
//          PR_SET_THP_DISABLE, nothing changes.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/buffer.h"
#include "core/os/huge_pages.h"

namespace folio {

// `bytes` > 0, rounded up to pages; zeros. Null: there is none.
uint8_t* map_anonymous(size_t bytes);
void unmap_anonymous(uint8_t* data, size_t bytes);

// As allocate_buffer(), from kHugePage on in a mapping of its own. kOutOfMemory.
Result<Ref<Buffer>> allocate_large_buffer(size_t bytes);

}  // namespace folio
