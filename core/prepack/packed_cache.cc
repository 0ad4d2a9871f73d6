#include "core/prepack/packed_cache.h"

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "core/os/fork.h"

namespace folio {

// Outlives the cache while blobs do: a dying blob removes its own entry.
struct PackedCache::Shared {
  class Entry;  // a PackedBlob that knows its cache
  struct Known {
    const Entry* entry = nullptr;  // null: being made
    uint32_t generation = 0;       // of the process that does (core/os/fork.h)
  };

  // The blob, if it is there. With the lock held.
  Ref<const PackedBlob> hit(const Known& known);
  // Takes the key from a blob that is no longer what the key says.
  void forget(const PackKey& key, const PackedBlob& blob);

  std::mutex mutex;
  std::condition_variable packed;
  Keep keep = Keep::kWeak;
  std::map<PackKey, Known> entries;
  std::vector<Ref<const PackedBlob>> held;
  Stats stats;
};

// Shares the made blob's bytes and, when that one is an Entry itself, keeps it.
class PackedCache::Shared::Entry final : public PackedBlob {
 public:
  Entry(std::shared_ptr<Shared> shared, const PackKey& key, Ref<const PackedBlob> made)
      : PackedBlob(made->buffer(), made->bytes(), made->place(), made->file()),
        shared_(std::move(shared)),
        key_(key),
        is_alias_(dynamic_cast<const Entry*>(made.get()) != nullptr),
        made_(std::move(made)) {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    if (!is_alias_) ++shared_->stats.misses;
    if (!is_alias_ && place() == BlobPlace::kHeap) {
      ++shared_->stats.made_blobs;
      shared_->stats.made_bytes += bytes();
    }
    count(1);
  }
  ~Entry() override {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    count(-1);
    // A newer blob may have taken the key while this one was dying.
    const auto it = shared_->entries.find(key_);
    if (it != shared_->entries.end() && it->second.entry == this) shared_->entries.erase(it);
  }

 private:
  void count(int sign) const {
    if (is_alias_) return;
    const auto one = static_cast<uint64_t>(sign);  // -1 wraps, as it must
    Stats& totals = shared_->stats;
    totals.live_blobs += one;
    totals.live_bytes += one * bytes();
    totals.place_blobs[static_cast<int>(place())] += one;
    totals.place_bytes[static_cast<int>(place())] += one * bytes();
  }

  std::shared_ptr<Shared> shared_;
  const PackKey key_;
  const bool is_alias_;
  Ref<const PackedBlob> made_;  // dies after this Entry has let go of the lock
};

PackedCache::PackedCache(Keep keep) : shared_(std::make_shared<Shared>()) {
  shared_->keep = keep;
  if (keep == Keep::kRecord) record_ = std::make_shared<PackRecord>();
}

PackedCache::~PackedCache() { clear(); }

PackedCache& PackedCache::process() {
  // Leaked on purpose: programs of a host may outlive static destruction.
  static auto* const cache = [] {
    auto* const made = new PackedCache();
    hold_across_fork(ForkOrder::kPrepack, &made->shared_->mutex);
    return made;
  }();
  return *cache;
}

Ref<const PackedBlob> PackedCache::Shared::hit(const Known& known) {
  if (!known.entry || !known.entry->try_add_ref()) return nullptr;  // or it is dying
  ++stats.hits;
  return Ref<const PackedBlob>::adopt(known.entry);
}

void PackedCache::Shared::forget(const PackKey& key, const PackedBlob& blob) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto it = entries.find(key);
  if (it != entries.end() && it->second.entry == &blob) entries.erase(it);
}

Ref<const PackedBlob> PackedCache::find(const PackKey& key) {
  Ref<const PackedBlob> blob;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    const auto it = shared_->entries.find(key);
    if (it != shared_->entries.end()) blob = shared_->hit(it->second);
  }
  // Asked of the file system, and so without the lock.
  return blob && blob->check_unchanged().is_ok() ? blob : nullptr;
}

Result<Ref<const PackedBlob>> PackedCache::get_or_make(const PackKey& key, const Maker& make,
                                                       Wait wait) {
  Shared& shared = *shared_;
  {
    std::unique_lock<std::mutex> lock(shared.mutex);
    for (;;) {
      const auto [it, is_absent] = shared.entries.try_emplace(key);
      Shared::Known& known = it->second;
      if (Ref<const PackedBlob> blob = shared.hit(known)) {
        lock.unlock();
        if (blob->check_unchanged().is_ok()) return blob;
        shared.forget(key, *blob);  // whoever uses it is told by the file's watch
        blob = nullptr;             // perhaps its end, which takes the lock
        lock.lock();
        continue;
      }
      // Not there, dying, or a thread that made it was lost in a fork: this thread makes it.
      if (is_absent || known.entry || known.generation != fork_generation()) {
        known = {nullptr, fork_generation()};
        break;
      }
      if (wait == Wait::kNo) return Ref<const PackedBlob>();
      shared.packed.wait(lock);
    }
  }
  // Whatever happens, exceptions included, those who wait for this key must be woken.
  struct Promise {
    Shared& shared;
    const PackKey& key;
    bool is_kept = false;
    bool is_none = false;
    ~Promise() {
      {
        const std::lock_guard<std::mutex> lock(shared.mutex);
        if (!is_kept) {
          shared.entries.erase(key);
          shared.stats.failures += !is_none;
        }
      }
      shared.packed.notify_all();
    }
  } promise{shared, key};
  auto result = make();
  promise.is_none =
      result.is_ok() ? !result.value() : result.status().code() == Code::kNotImplemented;
  FOLIO_TRY(Ref<const PackedBlob> made, std::move(result));
  if (!made) return made;
  // Made, and perhaps ended, outside the lock, which its destructor takes.
  const auto blob = make_ref<Shared::Entry>(shared_, key, std::move(made));
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    shared.entries[key].entry = blob.get();  // the key is there: nothing is allocated
    promise.is_kept = true;
    if (shared.keep == Keep::kHold) shared.held.push_back(blob);
  }
  return Ref<const PackedBlob>(blob);
}

void PackedCache::add(const PackCounts& files) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  shared_->stats.files.add(files);
}

PackedCache::Stats PackedCache::stats() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->stats;
}

void PackedCache::clear() {
  if (record_) record_->clear();
  std::vector<Ref<const PackedBlob>> held;
  {
    const std::lock_guard<std::mutex> lock(shared_->mutex);
    held.swap(shared_->held);
  }
  // The blobs die here, outside the lock that their destructors take.
}

void PackedCache::collect() {
  if (record_) record_->collect();
  // A blob under two keys goes in two rounds: the one that keeps the other first.
  for (bool more = true; more;) {
    std::vector<Ref<const PackedBlob>> gone;
    {
      const std::lock_guard<std::mutex> lock(shared_->mutex);
      auto& held = shared_->held;
      const auto used = std::partition(held.begin(), held.end(),
                                       [](const auto& blob) { return !blob->is_unique(); });
      gone.assign(std::make_move_iterator(used), std::make_move_iterator(held.end()));
      held.erase(used, held.end());
    }
    more = !gone.empty();
  }
}

}  // namespace folio
