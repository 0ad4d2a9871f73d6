// PackLibrary: the pack files that one load may use, in their order, and the one that it writes.
//
//   sidecar (MODEL.fpack, or a file the caller named)  ->  stores, in the order of their list
//
// Flow:    session/ opens one per program; plan/ asks it for blobs by key and for digests of the
//          model's bytes. A pack file that is missing, stale, foreign, damaged or not to be trusted
//          is left out with one line in the log; it never fails a load.
// Owns:    the open pack files, and the unfinished one.
// Threads: any; one at a time is inside, for as long as hashing or packing one weight takes. In a
//          child of fork it must not be used: generation().
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/prepack/declared_digests.h"
#include "core/prepack/pack_counts.h"
#include "core/prepack/pack_record.h"
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
  bool may_lack_sidecar = false;    // nobody asked for it by name: there may be none
  std::vector<std::string> stores;  // folders; the last one is written to where possible
  uint64_t store_limit = 0;         // bytes that a store may grow to; 0: no limit
  PackTrust trust = PackTrust::kBound;
  PackChecksum checksum = PackChecksum::kOff;
  std::string output;         // a pack file to write now (folio pack); empty: none
  bool is_read_only = false;  // stores are not added to
  bool must_store = false;    // a store that cannot be added to is an error (folio pack)
  std::string producer;       // stands in the files written
  // A PackedCache's: blobs that the load gets are noted there.
  std::shared_ptr<PackRecord> record;
  // What the model's file says of itself; null: nothing.
  std::shared_ptr<const DeclaredDigests> declared;
  // Is told what the load did, when it is over.
  std::function<void(const PackCounts&)> report;
  // folio.digest_cache: a folder where digests of model files are remembered for this user; empty:
  // none. Only looked into when a digest is wanted that nothing else tells.
  std::string digest_cache;

  bool is_used() const {
    return !sidecar.empty() || !stores.empty() || !output.empty() || record != nullptr;
  }
};

// Where digests are remembered unless the user says where: $XDG_CACHE_HOME/folio, ~/.cache/folio;
// empty: neither is there.
std::string default_digest_cache();

class PackLibrary : public RefCounted {
 public:
  struct Stats : PackCounts {
    uint64_t own_hits = 0;             // of the hits: written by this library before
    std::vector<std::string> ignored;  // "path: why"
  };

  ~PackLibrary() override;

  // Opens what `options` names and can be used. Fails only when `output` cannot be written.
  static Result<Ref<PackLibrary>> open(const PackOptions& options);

  // The blob of this key and size; null when no file has it.
  Ref<const PackedBlob> find(const PackKey& key, uint64_t bytes);

  // The digest of bytes at an offset of a source: from a memo, else hashed now. A load that writes
  // nothing may also take the model file's word for it: then a blob that exists under a name made
  // from it may be used, and none made.
  struct Digest {
    ContentId id;
    bool is_declared = false;
  };
  Digest digest(const ByteSource& source, uint64_t offset, Bytes bytes);

  // The same if it can be told without reading the bytes.
  std::optional<Digest> known_digest(const ByteSource& source, uint64_t offset, uint64_t bytes);

  // Makes a blob: in the file that is written if there is one, else null (the caller packs on the
  // heap). Errors are those of `fill`; a file that cannot be written is given up, or with
  // `must_store` an error.
  Result<Ref<const PackedBlob>> write(const PackWriter::Label& label, uint64_t bytes,
                                      const PackWriter::Fill& fill);
  // Nothing to look in and nothing to write.
  bool is_empty() const {
    return files_.empty() && stores_.empty() && !writer_ && !options_.record;
  }

  // Whether the blob of this place, a name that holds in this process, is to be noted.
  bool wants(const PackKey& place) const { return options_.record && !options_.record->has(place); }
  void note(PackRecord::Note note) { notes_.push_back(std::move(note)); }

  // Finishes what is written, and hands over what was noted. An error only for PackOptions::output
  // and with `must_store`.
  Status finish();

  // Of the process that opened it (core/os/fork.h).
  uint32_t generation() const { return generation_; }

  // When nobody else is inside.
  const Stats& stats() const { return stats_; }

 private:
  void add_file(const std::string& path, BlobPlace place);
  void ignore(const std::string& path, const Status& why);
  Status start_store_writer();
  // Where what is written stands.
  BlobPlace place() const {
    return options_.output.empty() ? BlobPlace::kStore : BlobPlace::kSidecar;
  }
  FileMemo& memo_of(const FileIdentity& identity);
  const ContentId* remembered(const FileIdentity& identity, uint64_t offset, uint64_t bytes);
  const ContentId* find_in(const std::vector<FileMemo>& memos, const FileIdentity& identity,
                           uint64_t offset, uint64_t bytes) const;
  const ContentId* declared(const FileIdentity& identity, uint64_t offset, uint64_t bytes);
  // With the lock held; `memo`: of the file.
  std::optional<Digest> known(uint64_t offset, uint64_t bytes, FileMemo* memo);
  Status finish_files();
  void report();
  void open_digests();
  Ref<const PackedBlob> take(const Ref<PackFile>& file, const PackKey& key, uint64_t bytes);

  mutable std::mutex mutex_;
  uint32_t generation_ = 0;
  PackOptions options_;
  std::vector<Ref<PackFile>> files_;
  std::vector<Ref<PackStore>> stores_;
  Ref<PackStore> writable_;
  std::unique_ptr<PackWriter> writer_;
  bool gave_up_ = false;
  std::vector<FileMemo> hashed_;  // digests taken by this load, or told
  std::vector<FileMemo> recorded_;
  Ref<PackStore> digests_;  // of options_.digest_cache
  std::vector<PackRecord::Note> notes_;
  Stats stats_;
};

}  // namespace folio
