// PackedCache: keeps at most one packed copy of each constant weight in the process.
//
// Flow:    plan/ asks here with a key known before packing; kernels read the blob. A blob may have
//          two keys: where its source stands in this process (nothing is read to know that), and
//          what the source contains (known once it was hashed or a pack file told).
// Owns:    nothing by default: entries are weak, the programs that use a blob keep it alive. A
//          cache in hold mode keeps every blob until it is cleared or destroyed.
// Threads: any method from any thread. Two misses on one key make one blob; the second caller
//          waits. In a child of fork nobody waits for threads of the parent.
// Errors:  kOutOfMemory, or what the maker returns; a failed one leaves no entry.
#pragma once

#include <functional>
#include <memory>

#include "core/prepack/pack_key.h"
#include "core/prepack/packed_blob.h"

namespace folio {

class PackedCache {
 public:
  enum class Keep { kWeak, kHold };

  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t failures = 0;
    uint64_t live_blobs = 0;
    uint64_t live_bytes = 0;
    uint64_t place_blobs[kBlobPlaces] = {};  // of the live ones
    uint64_t place_bytes[kBlobPlaces] = {};
  };

  // Gives a blob of its own, or one that this cache gave out under another key; null: none.
  using Maker = std::function<Result<Ref<const PackedBlob>>()>;

  explicit PackedCache(Keep keep = Keep::kWeak);
  ~PackedCache();
  PackedCache(const PackedCache&) = delete;
  PackedCache& operator=(const PackedCache&) = delete;

  // The process's own, shared by all sessions that name no other.
  static PackedCache& process();

  // The blob for `key`, from `make` when it is absent. `make` may ask this cache for another key.
  // Null when `make` gives null, or, with Wait::kNo, while another thread makes it.
  enum class Wait : uint8_t { kYes, kNo };
  Result<Ref<const PackedBlob>> get_or_make(const PackKey& key, const Maker& make,
                                            Wait wait = Wait::kYes);
  // The blob for `key` if it is there, else null.
  Ref<const PackedBlob> find(const PackKey& key);

  // Numbers of one instant. live_* count what programs or hold mode keep alive; a blob with two
  // keys counts once.
  Stats stats() const;

  // Hold mode: lets go of all blobs; those in use live on.
  void clear();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace folio
