// PackedCache: keeps at most one packed copy of each constant weight in the process.
//
// Flow:    plan/ asks here with a key known before packing; kernels read the blob.
// Owns:    nothing by default: entries are weak, the programs that use a blob keep it alive. A
//          cache in hold mode keeps every blob until it is cleared or destroyed.
// Threads: any method from any thread. Two misses on one key pack once; the second caller waits.
// Errors:  kOutOfMemory, or what `fill` returns; a failed pack leaves no entry.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>

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
  };

  explicit PackedCache(Keep keep = Keep::kWeak);
  ~PackedCache();
  PackedCache(const PackedCache&) = delete;
  PackedCache& operator=(const PackedCache&) = delete;

  // The process's own, shared by all sessions that name no other.
  static PackedCache& process();

  // The blob for `key`, packing `source` (only read during the call) when it is absent.
  Result<Ref<const PackedBlob>> get_or_pack(const PackKey& key, const Tensor& source,
                                            const PackRequest& request);

  // Numbers of one instant. live_* count what programs or hold mode keep alive.
  Stats stats() const;

  // Hold mode: lets go of all blobs; those in use live on.
  void clear();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace folio
