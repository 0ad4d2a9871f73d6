// PackFile: an open pack file (`.fpack`): blobs in the page cache, found by key.
//
//   page 0      header: magic, version, sizes, checksums of itself and of the index
//   blobs       64-byte aligned; from 64 KiB page-aligned; from 32 MiB 2 MiB-aligned
//   index       flatbuffers (fpack_schema.fbs), at the end
//
// Flow:    PackLibrary opens it; fpack_writer.cc writes it. Byte by byte: docs/packs.md.
// Owns:    the mapping, by count with every blob given out; the index as a private copy.
// Threads: any.
// Errors:  open: kNoSuchFile, kIo, kInvalidArgument (not to be trusted: see open_trusted_file),
//          kInvalidGraph (no pack file, another version, damaged).
#pragma once

#include <atomic>
#include <memory>

#include "core/prepack/fpack_index.h"
#include "core/prepack/packed_blob.h"

namespace folio {

// When blobs are compared with their checksums. The index always is.
enum class PackChecksum : uint8_t { kOff, kFirstUse, kOpen };

namespace fpack_format {
inline constexpr char kMagic[8] = {'F', 'O', 'L', 'I', 'O', 'P', 'K', '\n'};
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kHeaderBytes = 4096;
// Flags. The weights of some model stand here and nowhere else (folio pack --replace): no cache.
inline constexpr uint32_t kOnlyCopy = 1;
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t flags;
  uint64_t file_bytes;
  uint64_t index_offset;
  uint64_t index_bytes;
  uint64_t index_checksum;   // XXH3-64 of the index
  uint64_t header_checksum;  // XXH3-64 of all before it
};
}  // namespace fpack_format

// What the header of a pack file says; the errors of PackFile::open as far as they show there.
struct PackSummary {
  uint64_t bytes = 0;
  bool is_only_copy = false;
  // Of all that is in it: the header has the checksum of the index, which has those of the blobs.
  ContentId id;
};
Result<PackSummary> read_pack_summary(const ByteSource& source);

class PackFile : public RefCounted {
 public:
  static Result<Ref<PackFile>> open(const std::string& path, BlobPlace place,
                                    PackChecksum checksum = PackChecksum::kOff);

  const PackIndex& index() const { return index_; }
  const Ref<ByteSource>& source() const { return source_; }
  const std::string& path() const { return source_->name(); }
  uint64_t file_bytes() const { return source_->bytes().size(); }
  bool is_only_copy() const { return is_only_copy_; }

  // A view of a blob of this file's index; kInvalidGraph when its bytes are not those written.
  Result<Ref<const PackedBlob>> blob(const PackEntry& entry);
  // Whether the bytes of a blob have their checksum, and what to say if not.
  bool is_intact(const PackEntry& entry) const;
  Status damage_of(const PackEntry& entry) const;
  // kInvalidGraph for the first blob that has not.
  Status check_blobs() const;

 private:
  Ref<ByteSource> source_;
  PackIndex index_;
  BlobPlace place_ = BlobPlace::kSidecar;
  bool is_only_copy_ = false;
  PackChecksum checksum_ = PackChecksum::kOff;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by entry
};

}  // namespace folio
