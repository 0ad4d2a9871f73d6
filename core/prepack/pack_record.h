// PackRecord: what the sessions of one cache packed or found, to be written as one pack file.
//
// Flow:    a PackedCache in record mode has one. Each load notes its blobs in its PackLibrary,
//          which hands them over when the load is done and the model's files are still as they
//          were. C API PackCacheWrite -> write.
// Owns:    the blobs, by count, until clear or collect.
// Threads: any method from any thread.
// Errors:  write: kIo, kNoSuchFile, kModelChanged where a noted blob's own file has changed;
//          nothing stands under the name then.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/prepack/fpack_writer.h"

namespace folio {

class PackRecord {
 public:
  struct Note {
    PackKey place;  // under which the cache has the blob, in this process
    PackWriter::Label label;
    Ref<const PackedBlob> blob;
  };
  struct Size {
    uint64_t blobs = 0;
    uint64_t bytes = 0;
  };

  // A blob of this place was noted, and is what it was: its content is known.
  bool has(const PackKey& place) const;
  void add(std::vector<Note> notes, const std::vector<FileMemo>& memos);
  // Digests that loads took of their models' files, or were told.
  std::vector<FileMemo> memos() const;

  // Each blob once, however many models have it.
  Size size() const;
  Result<Size> write(const std::string& path, const std::string& producer) const;

  // Lets go of what nobody else holds.
  void collect();
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<PackKey, Note> notes_;  // by place
  std::vector<FileMemo> memos_;
};

}  // namespace folio
