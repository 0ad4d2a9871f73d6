#include "core/prepack/packed_cache.h"

#include <vector>

namespace folio {

// Outlives the cache while blobs do: a dying blob removes its own entry.
struct PackedCache::Shared {
  class Entry;  // a PackedBlob that knows its cache

  std::mutex mutex;
  std::condition_variable packed;
  Keep keep = Keep::kWeak;
  std::map<PackKey, const Entry*> entries;  // null: being packed
  std::vector<Ref<const PackedBlob>> held;
  Stats stats;
};

class PackedCache::Shared::Entry final : public PackedBlob {
 public:
  Entry(std::shared_ptr<Shared> shared, const PackKey& key, Ref<Buffer> buffer, size_t bytes)
      : PackedBlob(std::move(buffer), bytes), shared_(std::move(shared)), key_(key) {}
  ~Entry() override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    --shared_->stats.live_blobs;
    shared_->stats.live_bytes -= bytes();
    // A newer blob may have taken the key while this one was dying.
    const auto it = shared_->entries.find(key_);
    if (it != shared_->entries.end() && it->second == this) shared_->entries.erase(it);
  }

 private:
  std::shared_ptr<Shared> shared_;
  PackKey key_;
};

PackedCache::PackedCache(Keep keep) : shared_(std::make_shared<Shared>()) { shared_->keep = keep; }

PackedCache::~PackedCache() { clear(); }

PackedCache& PackedCache::process() {
  // Leaked on purpose: programs of a host may outlive static destruction.
  static auto* const cache = new PackedCache();
  return *cache;
}

Result<Ref<const PackedBlob>> PackedCache::get_or_pack(const PackKey& key, const Tensor& source,
                                                       const PackRequest& request) {
  Shared& shared = *shared_;
  {
    std::unique_lock<std::mutex> lock(shared.mutex);
    for (;;) {
      const auto [it, absent] = shared.entries.try_emplace(key, nullptr);
      if (absent) break;
      if (it->second && it->second->try_add_ref()) {
        ++shared.stats.hits;
        return Ref<const PackedBlob>::adopt(it->second);
      }
      if (it->second) {
        it->second = nullptr;  // dying: take its place
        break;
      }
      shared.packed.wait(lock);
    }
    ++shared.stats.misses;
  }
  const auto pack = [&]() -> Result<Ref<Buffer>> {
    FOLIO_TRY(Ref<Buffer> buffer, allocate_buffer(request.bytes));
    FOLIO_RETURN_IF_ERROR(request.fill(request, request.context, source, buffer->data()));
    return buffer;
  };
  auto buffer = pack();
  Ref<const PackedBlob> blob;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    if (buffer.is_ok()) {
      const auto entry =
          make_ref<Shared::Entry>(shared_, key, std::move(buffer).take(), request.bytes);
      shared.entries[key] = entry.get();
      ++shared.stats.live_blobs;
      shared.stats.live_bytes += request.bytes;
      blob = Ref<const PackedBlob>(entry.get());
      if (shared.keep == Keep::kHold) shared.held.push_back(blob);
    } else {
      shared.entries.erase(key);
      ++shared.stats.failures;
    }
  }
  shared.packed.notify_all();
  if (!blob) return std::move(buffer).take_status();
  return blob;
}

PackedCache::Stats PackedCache::stats() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->stats;
}

void PackedCache::clear() {
  std::vector<Ref<const PackedBlob>> held;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    held.swap(shared_->held);
  }
  // The blobs die here, outside the lock that their destructors take.
}

}  // namespace folio
