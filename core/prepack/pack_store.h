// PackStore: a folder of pack files that processes share.
//
//   DIR/index.fpack  every blob of every pack, without the blobs; replaced by rename
//   DIR/lock         held while the index is replaced
//   DIR/*.fpack      immutable pack files; the store's own have names of 16 hexadecimal digits
//
// Flow:    PackLibrary looks a key up in the index and opens the pack that has it; after a load
//          that packed something it adds a pack. A store is a cache: packs may vanish at any time.
// Owns:    on disk what has the names that it gives: whatever else stands in the folder is read if
//          it is a pack file that may be, and never removed. Open packs are shared by count.
// Threads: one load at a time; processes exclude each other by flock.
// Errors:  open: kInvalidArgument for a folder that is not to be trusted, kNoSuchFile, kIo.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/prepack/fpack_file.h"

namespace folio {

class PackStore : public RefCounted {
 public:
  // `create`: makes the folder (mode 0700) when it is missing.
  static Result<Ref<PackStore>> open(const std::string& folder, PackChecksum checksum, bool create);

  const std::string& folder() const { return folder_; }
  // Null when there is none yet, or none that can be used.
  const PackIndex* index() const { return index_ ? &index_->index() : nullptr; }

  // The pack that has `key`; null: none, or it has gone.
  Ref<PackFile> find(const PackKey& key);

  // Where the next pack is to be written: a name that nobody else takes.
  std::string new_pack_path() const;
  // Puts the pack at `path` into the index, or removes it again when all its blobs are there
  // already. The oldest packs go when the store is larger than `limit` (0: none).
  Status add(const std::string& path, uint64_t limit);

  // Digests taken by a load that packed nothing.
  Status remember(const std::vector<FileMemo>& memos);

  struct Report {
    // Whether a pack is damaged that is in a state other than OK: an error of the system, or
    // another owner, says nothing of what is in the file.
    bool add(const Status& state);

    uint64_t packs = 0;
    uint64_t bytes = 0;
    uint64_t blobs = 0;
    uint64_t removed = 0;  // packs and leftovers
    uint64_t removed_bytes = 0;
    std::vector<std::string> damaged;  // "path: why"
    std::vector<std::string> ignored;  // the same: could not be read, or is not to be trusted
  };
  // Compares every blob with its checksum.
  Result<Report> verify();
  // Removes leftovers, packs of its own that are damaged (every blob is compared with its checksum)
  // and, above `limit`, the oldest of them; rebuilds the index. What cannot be read stays.
  Result<Report> collect(uint64_t limit);

  // Whether a store has been in this folder: kInvalidArgument that says so if not.
  Status check_is_store() const;

 private:
  enum class Blobs : uint8_t { kAssumed, kCompared };
  void reload();
  Status rebuild(uint64_t limit, Blobs blobs, Report* report);

  std::string folder_;
  PackChecksum checksum_ = PackChecksum::kOff;
  Ref<PackFile> index_;
  std::map<std::string, Ref<PackFile>> open_;
};

}  // namespace folio
