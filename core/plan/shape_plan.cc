#include "core/plan/shape_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

#include "core/base/checked_math.h"

namespace folio {
namespace {

constexpr size_t kAlignment = 64;  // one cache line: no two values share one
constexpr size_t kMaxPlans = 16;   // signatures kept; a server sees few lengths at a time
constexpr uint64_t kMaxArenaValue = uint64_t{1}
                                    << 40;  // larger claims go to the heap and fail there

size_t bytes_of(const PlannedSlot& slot, const std::vector<int64_t>& values) {
  uint64_t count = 1;
  for (const Dim dim : slot.dims) {
    const int64_t value = dim.is_value() ? dim.value : values[static_cast<size_t>(dim.symbol)];
    if (value < 0 || !checked_mul(count, static_cast<uint64_t>(value), &count)) return kNoOffset;
  }
  uint64_t bytes = 0;
  if (!dtype_bytes(slot.dtype, count, &bytes) || bytes > kMaxArenaValue) return kNoOffset;
  return bytes;
}

// From here on the time of the greedy packing, which is quadratic, would be felt in every run of a
// new signature.
constexpr size_t kMaxGreedySlots = 4096;

size_t room_of(size_t bytes) { return align_up(std::max<size_t>(bytes, 1), kAlignment); }

// Free ranges by offset; neighbours are joined.
class FreeRanges {
 public:
  // The smallest that fits, else the end of what was used so far.
  size_t take(size_t need) {
    auto best = ranges_.end();
    for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
      if (it->second >= need && (best == ranges_.end() || it->second < best->second)) best = it;
    }
    if (best == ranges_.end()) {
      const size_t at = end_;
      end_ += need;
      return at;
    }
    const auto [at, size] = *best;
    ranges_.erase(best);
    if (size > need) ranges_.emplace(at + need, size - need);
    return at;
  }
  void give(size_t at, size_t size) {
    auto [it, added] = ranges_.emplace(at, size);
    if (const auto next = std::next(it); next != ranges_.end() && at + size == next->first) {
      it->second += next->second;
      ranges_.erase(next);
    }
    if (it == ranges_.begin()) return;
    const auto before = std::prev(it);
    if (before->first + before->second != at) return;
    before->second += it->second;
    ranges_.erase(it);
  }
  size_t end() const { return end_; }

 private:
  std::map<size_t, size_t> ranges_;
  size_t end_ = 0;
};

// When a place is needed.
struct Life {
  int32_t first_step = 0;
  int32_t last_step = 0;
};

// In the order of time, as an allocator would: no worse than a heap, and fast.
size_t pack_in_order(const std::vector<Life>& slots, const std::vector<size_t>& bytes,
                     std::vector<size_t>* offsets) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (bytes[i] != kNoOffset) starts.push_back(i);
  }
  std::vector<size_t> ends = starts;
  std::stable_sort(starts.begin(), starts.end(),
                   [&](size_t a, size_t b) { return slots[a].first_step < slots[b].first_step; });
  std::stable_sort(ends.begin(), ends.end(),
                   [&](size_t a, size_t b) { return slots[a].last_step < slots[b].last_step; });
  FreeRanges free;
  size_t ended = 0;
  for (const size_t i : starts) {
    while (slots[ends[ended]].last_step < slots[i].first_step) {
      const size_t dead = ends[ended++];
      free.give((*offsets)[dead], room_of(bytes[dead]));
    }
    (*offsets)[i] = free.take(room_of(bytes[i]));
  }
  return free.end();
}

size_t pack_apart(const std::vector<Life>& slots, const std::vector<size_t>& bytes,
                  std::vector<size_t>* offsets) {
  offsets->assign(slots.size(), kNoOffset);
  if (slots.size() > kMaxGreedySlots) return pack_in_order(slots, bytes, offsets);
  // Greedy by size (Pisarchyk and Lee 2020, "Efficient memory management for deep neural net
  // inference"): largest first, each at the lowest offset free over its whole lifetime.
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<size_t> placed;  // by ascending offset
  size_t total = 0;
  for (const size_t i : order) {
    if (bytes[i] == kNoOffset) continue;
    const size_t need = room_of(bytes[i]);
    size_t at = 0;
    for (const size_t j : placed) {
      const bool together =
          slots[i].first_step <= slots[j].last_step && slots[j].first_step <= slots[i].last_step;
      if (!together) continue;
      if (at + need <= (*offsets)[j]) break;
      at = std::max(at, (*offsets)[j] + room_of(bytes[j]));
    }
    (*offsets)[i] = at;
    total = std::max(total, at + need);
    const auto by_offset = [&](size_t a, size_t b) { return (*offsets)[a] < (*offsets)[b]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i, by_offset), i);
  }
  return total;
}

// A slot and those that overwrite it, one after the other, live as one: the first of them.
struct Lives {
  std::vector<Life> lives;
  std::vector<size_t> needs;  // kNoOffset: it has no place, or that of another
  std::vector<size_t> first;  // by slot: whose place it has
};

Lives join_overwriting(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes) {
  Lives joined{std::vector<Life>(slots.size()), bytes, std::vector<size_t>(slots.size())};
  for (size_t i = 0; i < slots.size(); ++i) {
    joined.first[i] = i;
    joined.lives[i] = {slots[i].first_step, slots[i].last_step};
    if (slots[i].overwrites < 0 || bytes[i] == kNoOffset) continue;
    const auto from = static_cast<size_t>(slots[i].overwrites);
    if (bytes[from] != bytes[i]) continue;
    joined.first[i] = joined.first[from];
    Life& life = joined.lives[joined.first[i]];
    life.last_step = std::max(life.last_step, slots[i].last_step);
    joined.needs[i] = kNoOffset;
  }
  return joined;
}

}  // namespace

size_t pack_lifetimes(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes,
                      std::vector<size_t>* offsets) {
  const Lives joined = join_overwriting(slots, bytes);
  const size_t total = pack_apart(joined.lives, joined.needs, offsets);
  for (size_t i = 0; i < slots.size(); ++i) (*offsets)[i] = (*offsets)[joined.first[i]];
  return total;
}

size_t live_bytes_max(const std::vector<PlannedSlot>& slots, const std::vector<size_t>& bytes) {
  const Lives joined = join_overwriting(slots, bytes);
  std::map<int32_t, std::pair<size_t, size_t>> changes;  // by step: begins there, ended before
  for (size_t i = 0; i < slots.size(); ++i) {
    if (joined.needs[i] == kNoOffset) continue;
    const size_t room = room_of(joined.needs[i]);
    changes[joined.lives[i].first_step].first += room;
    changes[joined.lives[i].last_step + 1].second += room;
  }
  size_t now = 0;
  size_t most = 0;
  for (const auto& [step, change] : changes) {
    now = now - change.second + change.first;
    most = std::max(most, now);
  }
  return most;
}

void ShapePlanner::reset(const DimTable* dims, std::vector<PlannedSlot> slots,
                         std::vector<int32_t> symbols, int32_t slot_count) {
  dims_ = dims;
  slots_ = std::move(slots);
  symbols_ = std::move(symbols);
  places_.assign(dims_ ? dims_->size() : 0, -1);
  for (size_t i = 0; i < symbols_.size(); ++i) {
    places_[static_cast<size_t>(symbols_[i])] = static_cast<int32_t>(i);
  }
  slot_count_ = slot_count;
}

std::shared_ptr<const ShapePlan> ShapePlanner::plan_for(const std::vector<int64_t>& signature) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < recent_.size(); ++i) {
      if (recent_[i]->signature != signature) continue;
      std::rotate(recent_.begin(), recent_.begin() + static_cast<ptrdiff_t>(i),
                  recent_.begin() + static_cast<ptrdiff_t>(i) + 1);
      return recent_.front();
    }
  }
  auto plan = make(signature);
  const std::lock_guard<std::mutex> lock(mutex_);
  recent_.insert(recent_.begin(), plan);
  if (recent_.size() > kMaxPlans) recent_.pop_back();
  return plan;
}

ArenaSizes ShapePlanner::arena_sizes() const {
  std::shared_ptr<const ShapePlan> plan;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (recent_.empty()) return {};
    plan = recent_.front();
  }
  std::vector<size_t> bytes;
  for (const PlannedSlot& slot : slots_) {
    const auto at = static_cast<size_t>(slot.slot);
    bytes.push_back(plan->offsets[at] == kNoOffset ? kNoOffset : plan->bytes[at]);
  }
  return {plan->arena_bytes, live_bytes_max(slots_, bytes)};
}

std::shared_ptr<const ShapePlan> ShapePlanner::make(const std::vector<int64_t>& signature) const {
  auto plan = std::make_shared<ShapePlan>();
  plan->signature = signature;
  plan->offsets.assign(static_cast<size_t>(slot_count_), kNoOffset);
  plan->bytes.assign(static_cast<size_t>(slot_count_), 0);
  if (!dims_) return plan;
  std::vector<int64_t> values(dims_->size(), -1);
  for (size_t i = 0; i < symbols_.size(); ++i) {
    values[static_cast<size_t>(symbols_[i])] = signature[i];
  }
  dims_->evaluate(&values);
  std::vector<size_t> bytes;
  for (const PlannedSlot& slot : slots_) bytes.push_back(bytes_of(slot, values));
  std::vector<size_t> offsets;
  plan->arena_bytes = pack_lifetimes(slots_, bytes, &offsets);
  for (size_t i = 0; i < slots_.size(); ++i) {
    const auto slot = static_cast<size_t>(slots_[i].slot);
    plan->offsets[slot] = offsets[i];
    plan->bytes[slot] = bytes[i] == kNoOffset ? 0 : bytes[i];
  }
  return plan;
}

}  // namespace folio
