// find_or_make: one packed constant, from wherever it is to be had first.
//
//   this process, by place  ->  this process, by content  ->  pack files  ->  written into the pack
//   file that this load makes, if it makes one  ->  made in memory
//
// Threads: any.
// Errors:  those of `fill` and `make`, kOutOfMemory, and those of a pack file that the caller asked
//          to write.
#pragma once

#include <functional>
#include <string>

#include "core/prepack/pack_library.h"
#include "core/prepack/packed_cache.h"

namespace folio {

struct WantedBlob {
  PackKey place;  // of the source, in this process
  // Of the source, anywhere; asked for if there is a library. Declared: the model file's word alone
  // stands for it (PackLibrary::Digest).
  struct Content {
    PackKey key;
    bool is_declared = false;
  };
  std::function<Content(PackLibrary&)> content;
  bool is_placed = true;  // false: `place` and `content` are the same
  Layout layout = Layout::kRaw;
  uint16_t version = 0;
  std::string name;  // of the weight, for people
  uint64_t bytes = 0;
  bool was_looked_for = false;  // no pack file has it
  bool may_wait = true;         // for a thread that makes the same; otherwise null is given
  bool in_files_only = false;   // without a pack file there is none
  // Asked before the source is hashed, if it is there: kNotImplemented where it has no such form,
  // which `fill` says, too. None: any has it.
  std::function<Status()> check = {};
  PackWriter::Fill fill;         // writes it
  PackedCache::Maker make = {};  // in memory; none: a buffer that `fill` writes
};

// Whether that is what became of it.
inline bool is_refused(const WantedBlob& wanted, const Status& status) {
  return (wanted.check || wanted.in_files_only) && status.code() == Code::kNotImplemented;
}

Result<Ref<const PackedBlob>> find_or_make(PackedCache& cache, PackLibrary* library,
                                           const WantedBlob& wanted);

// Only what is there: of the process, or in a pack file. Null: nowhere.
Result<Ref<const PackedBlob>> find_blob(PackedCache& cache, PackLibrary& library,
                                        const PackKey& place, const WantedBlob::Content& content,
                                        uint64_t bytes);

}  // namespace folio
