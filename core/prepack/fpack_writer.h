// PackWriter: makes a pack file, one blob after the other.
//
// Flow:    plan/ packs through it when there is a pack file to write: each blob is made in private
//          memory, written, mapped back and its memory freed before the next is made. finish()
//          writes the index and gives the file its name (core/os/new_file.h).
// Owns:    the unfinished file; blobs given out live on without it.
// Threads: one at a time.
// Errors:  kIo (a full disk, no permission), kOutOfMemory; after one only destroying is useful.
//          kInvalidArgument where the name is that of a pack file that holds the only copy of
//          weights, or of another kind of file: such are never replaced.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "core/os/arena.h"
#include "core/os/new_file.h"
#include "core/prepack/fpack_file.h"

namespace folio {

class PackWriter {
 public:
  // What a blob is, beside its bytes. `name`: of the weight, for people.
  struct Label {
    PackKey key;
    Layout layout = Layout::kRaw;
    uint16_t version = 0;
    std::string name;
  };
  using Fill = std::function<Status(uint8_t* blob)>;

  // `writer`: who writes, for people.
  static Result<std::unique_ptr<PackWriter>> create(const std::string& path, std::string writer);

  // The file will be no cache but hold weights that stand nowhere else: it says so, and wastes no
  // more than a sixty-fourth of a large blob for its alignment. Call it first.
  void set_only_copy() { is_only_copy_ = true; }

  // `fill` writes exactly `bytes` (> 0) bytes.
  Result<Ref<const PackedBlob>> add(const Label& label, uint64_t bytes, const Fill& fill,
                                    BlobPlace place);
  // The same of bytes that are there.
  Result<Ref<const PackedBlob>> add(const Label& label, Bytes bytes, BlobPlace place);

  void add_memo(FileMemo memo) { index_.memos.push_back(std::move(memo)); }

  size_t blob_count() const { return entries_.size(); }
  uint64_t blob_bytes() const { return blob_bytes_; }

  // What was written under this key; null: nothing.
  const PackEntry* find(const PackKey& key) const;
  // The same as a blob.
  Result<Ref<const PackedBlob>> blob(const PackEntry& entry, BlobPlace place) const;

  // The file stands under its name afterwards; its size. The same in two steps: after `seal` it is
  // whole and on the disk.
  Result<uint64_t> finish();
  Result<uint64_t> seal();
  Status publish();
  // All of it, once sealed.
  Result<Ref<Buffer>> map() const { return file_->map(0, file_->size()); }
  const std::string& path() const { return file_->path(); }

  // A file that holds an index and no blob: a store's.
  static Status write_index(const std::string& path, const PackIndex& index);

 private:
  explicit PackWriter(std::unique_ptr<NewFile> file) : file_(std::move(file)) {}
  uint32_t name_index(const std::string& name);

  std::unique_ptr<NewFile> file_;
  PackIndex index_;  // entries stay in entries_ until finish
  std::map<PackKey, PackEntry> entries_;
  std::map<std::string, uint32_t> names_;
  uint64_t blob_bytes_ = 0;
  bool is_only_copy_ = false;
  Ref<Arena> scratch_;  // where small blobs are made
};

}  // namespace folio
