// PackedCache: keeps at most one packed copy of each constant weight in the process.
//
// Flow:    plan/ asks here with a key known before packing; kernels read the blob. A blob may have
//          two keys: where its source stands in this process (nothing is read to know that), and
//          what the source contains (known once it was hashed or a pack file told).
// Owns:    nothing by default: entries are weak, the programs that use a blob keep it alive. A
//          cache in hold mode keeps every blob until it is cleared or destroyed; one in record mode
//          those that its PackRecord has.
// Threads: any method from any thread. Two misses on one key make one blob; the second caller
//          waits. In a child of fork nobody waits for threads of the parent.
// Errors:  kOutOfMemory, or what the maker returns; a failed one leaves no entry.
#pragma once

#include <functional>
#include <memory>

#include "core/prepack/pack_counts.h"
#include "core/prepack/pack_record.h"

namespace folio {

class PackedCache {
 public:
  enum class Keep { kWeak, kHold, kRecord };

  struct Stats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t failures = 0;
    uint64_t live_blobs = 0;
    uint64_t live_bytes = 0;
    uint64_t place_blobs[kBlobPlaces] = {};  // of the live ones
    uint64_t place_bytes[kBlobPlaces] = {};
    uint64_t made_blobs = 0;  // of all that ever were: those in memory of this process
    uint64_t made_bytes = 0;
    PackCounts files;  // sums over the loads that are done
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
  // Null when `make` gives null, or, with Wait::kNo, while another thread makes it. A blob whose
  // file has changed is absent, though others may still use it.
  enum class Wait : uint8_t { kYes, kNo };
  Result<Ref<const PackedBlob>> get_or_make(const PackKey& key, const Maker& make,
                                            Wait wait = Wait::kYes);
  // The blob for `key` if it is there now; null also while it is being made.
  Ref<const PackedBlob> find(const PackKey& key);

  // Record mode; null otherwise.
  const std::shared_ptr<PackRecord>& record() const { return record_; }

  // What a load with this cache did with pack files.
  void add(const PackCounts& files);

  // Numbers of one instant. live_* count what programs or hold mode keep alive; a blob with two
  // keys counts once.
  Stats stats() const;

  // Hold and record mode: lets go of all blobs; those in use live on.
  void clear();
  // The same, but only of blobs that no program uses.
  void collect();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::shared_ptr<PackRecord> record_;
};

}  // namespace folio
