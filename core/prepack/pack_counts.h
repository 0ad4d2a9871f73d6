// PackCounts: what loads found in pack files, what they had to do themselves, and why.
//
// Flow:    PackLibrary counts one load; PackedCache adds up those of its sessions; reports show it.
// Rule:    every lookup ends in exactly one of hits, misses, misfits and damaged.
#pragma once

#include <cstdint>

namespace folio {

struct PackCounts {
  uint64_t hits = 0;  // a pack file had it
  uint64_t hit_bytes = 0;
  uint64_t misses = 0;         // no file has the key
  uint64_t misfits = 0;        // one has it with another size
  uint64_t damaged = 0;        // one has it, its bytes are not those written
  uint64_t ignored_files = 0;  // files and stores that could not be used
  uint64_t written_blobs = 0;
  uint64_t written_bytes = 0;
  // Bytes of model files, by what told their digest.
  uint64_t hashed_bytes = 0;    // nothing did: they were read
  uint64_t memo_bytes = 0;      // a pack file, a store, or an earlier load into the same record
  uint64_t declared_bytes = 0;  // the model file itself
  uint64_t cached_bytes = 0;    // the user's digest cache

  void add(const PackCounts& more) {
    hits += more.hits;
    hit_bytes += more.hit_bytes;
    misses += more.misses;
    misfits += more.misfits;
    damaged += more.damaged;
    ignored_files += more.ignored_files;
    written_blobs += more.written_blobs;
    written_bytes += more.written_bytes;
    hashed_bytes += more.hashed_bytes;
    memo_bytes += more.memo_bytes;
    declared_bytes += more.declared_bytes;
    cached_bytes += more.cached_bytes;
  }
};

}  // namespace folio
