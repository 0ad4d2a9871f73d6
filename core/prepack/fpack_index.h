// PackIndex: what a pack file (or a store) holds, decoded into private memory.
//
// Flow:    fpack_file.cc and pack_store.cc decode the flatbuffers index at the end of a file;
//          fpack_writer.cc encodes it. Format: docs/packs.md.
// Owns:    everything: once decoded, a file that changes cannot move a blob.
// Errors:  decode: kInvalidGraph, for whatever is not a well-formed index; every blob lies inside
//          the file then.
#pragma once

#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/status.h"
#include "core/prepack/layout.h"
#include "core/prepack/pack_key.h"

namespace folio {

struct PackEntry {
  PackKey key;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;
  uint32_t pack = 0;  // stores: which of `packs`
  uint32_t name = 0;  // index into `names`
  Layout layout = Layout::kRaw;
  uint16_t version = 0;
};

// Digests of parts of one file, and the state of the file they were taken of.
struct FileMemo {
  struct Span {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    ContentId digest;
  };
  FileIdentity file;
  int64_t hashed_at_ns = 0;  // CLOCK_REALTIME before the first byte was hashed
  std::vector<Span> spans;   // ascending by offset, then bytes

  const ContentId* find(uint64_t offset, uint64_t bytes) const;
  void add(uint64_t offset, uint64_t bytes, const ContentId& digest);

  // A file may be written twice within the granularity of its times; what was hashed so soon after
  // a write could have been written again unnoticed (git's "racy" rule).
  static constexpr int64_t kRacyNs = 100'000'000;
  bool is_settled() const;
};

// Adds digests to those known of the same state of a file; older states of that file are forgotten.
void merge_memos(const std::vector<FileMemo>& from, std::vector<FileMemo>* into);
// Forgets the oldest ones, so that a file of memos cannot grow for ever.
void limit_memos(size_t max_spans, std::vector<FileMemo>* memos);

struct PackIndex {
  struct Pack {
    std::string name;
    uint64_t bytes = 0;
  };

  std::vector<PackEntry> entries;  // ascending by key
  std::vector<std::string> names;
  std::vector<FileMemo> memos;
  std::vector<Pack> packs;
  std::string writer;

  const PackEntry* find(const PackKey& key) const;
};

[[gnu::cold]] std::vector<uint8_t> encode_index(const PackIndex& index);

// `blob_end`: blobs must end at or before it (pack files; stores: the sizes of their packs).
Result<PackIndex> decode_index(Bytes bytes, uint64_t blob_end);

}  // namespace folio
