// PackLibrary: the pack files that one load may use, in their order, and the one that it writes.
//
//   sidecar (MODEL.fpack, or a file the caller named)  ->  stores, in the order of their list
//
// Flow:    session/ opens one per program; plan/ asks it for blobs by key and for digests of the
//          model's bytes. A pack file that is missing, stale, foreign, damaged or not to be trusted
//          is left out with one line in the log; it never fails a load.
// Owns:    the open pack files, and the unfinished one.
// Threads: one load at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/prepack/fpack_writer.h"
#include "core/prepack/pack_store.h"

namespace folio {

// What makes a digest of a model file's bytes believed without reading them.
enum class PackTrust : uint8_t {
  kBound,   // size, times, device and inode are those it was taken of
  kStat,    // size and mtime are: for images whose inodes change when they are copied
  kVerify,  // nothing: the bytes are hashed at each load
};

struct PackOptions {
  std::string sidecar;              // path; empty: none
  std::vector<std::string> stores;  // folders; the last one is written to where possible
  uint64_t store_limit = 0;         // bytes that a store may grow to; 0: no limit
  PackTrust trust = PackTrust::kBound;
  PackChecksum checksum = PackChecksum::kOff;
  std::string output;         // a pack file to write now (folio pack); empty: none
  bool is_read_only = false;  // stores are not added to
  std::string producer;       // stands in the files written

  bool is_used() const { return !sidecar.empty() || !stores.empty() || !output.empty(); }
};

class PackLibrary : public RefCounted {
 public:
  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;        // no file has the key
    uint64_t misfits = 0;       // one has it with another size
    uint64_t damaged = 0;       // one has it, its bytes are not those written
    uint64_t hashed_bytes = 0;  // of the model, because no memo served
    uint64_t written_blobs = 0;
    uint64_t written_bytes = 0;
    std::vector<std::string> ignored;  // "path: why"
  };

  // Opens what `options` names and can be used. Fails only when `output` cannot be written.
  static Result<Ref<PackLibrary>> open(const PackOptions& options);

  // The blob of this key and size; null when no file has it.
  Ref<const PackedBlob> find(const PackKey& key, uint64_t bytes);

  // The digest of bytes at an offset of a source: from a memo, else hashed now.
  ContentId digest(const ByteSource& source, uint64_t offset, Bytes bytes);

  // Makes a blob: in the file that is written if there is one, else null (the caller packs on the
  // heap). Errors are those of `fill`; a file that cannot be written is given up.
  Result<Ref<const PackedBlob>> write(const PackWriter::Label& label, uint64_t bytes,
                                      const PackWriter::Fill& fill);
  // Nothing to look in and nothing to write.
  bool is_empty() const { return files_.empty() && stores_.empty() && !writer_; }

  // Finishes what is written. An error only for PackOptions::output.
  Status finish();

  const Stats& stats() const { return stats_; }
  // Files that gave a blob: whoever runs with it wants to know when they change.
  const std::vector<Ref<ByteSource>>& sources() const { return sources_; }

 private:
  void add_file(const std::string& path, BlobPlace place);
  void ignore(const std::string& path, const Status& why);
  bool start_store_writer();
  FileMemo& memo_of(const FileIdentity& identity);
  const ContentId* remembered(const FileIdentity& identity, uint64_t offset, uint64_t bytes) const;
  Ref<const PackedBlob> take(const Ref<PackFile>& file, const PackKey& key, uint64_t bytes);

  PackOptions options_;
  std::vector<Ref<PackFile>> files_;
  std::vector<Ref<PackStore>> stores_;
  Ref<PackStore> writable_;
  std::unique_ptr<PackWriter> writer_;
  bool gave_up_ = false;
  std::vector<FileMemo> hashed_;  // digests taken by this load
  Stats stats_;
  std::vector<Ref<ByteSource>> sources_;
};

}  // namespace folio
