#include "core/prepack/weight_slots.h"

#include <cstdio>
#include <thread>

#include "core/base/log.h"
#include "core/os/fork.h"

namespace folio {

const PackedBlob* WeightSlot::get_or_pack() {
  if (unpacked_uses_.fetch_add(1, std::memory_order_relaxed) < WeightSlots::kPatience) {
    return nullptr;
  }
  if (!owner_->claim(this)) return peek();
  owner_->fill(this, WeightSlots::Who::kRun);
  // The worker takes what others left, and ends it when this was the last.
  if (!is_done_.load(std::memory_order_relaxed) || owner_->open_count() == 0) owner_->keep_going();
  return peek();
}

WeightSlots::~WeightSlots() {
  // A child of fork has the library as some thread of its parent left it: perhaps in the middle.
  if (library_ && library_->generation() != fork_generation()) library_->add_ref();
}

WeightSlot* WeightSlots::add(Ref<const PackedBlob> blob) {
  WeightSlot& slot = slots_.emplace_back();
  slot.kept_ = std::move(blob);
  slot.blob_.store(slot.kept_.get(), std::memory_order_relaxed);
  slot.is_done_.store(true, std::memory_order_relaxed);
  return &slot;
}

WeightSlot* WeightSlots::add(WantedBlob job) {
  WeightSlot& slot = slots_.emplace_back();
  slot.owner_ = this;
  slot.job_ = std::move(job);
  return &slot;
}

void WeightSlots::start(Done done, Given given) {
  done_ = std::move(done);
  given_ = std::move(given);
  for (WeightSlot& slot : slots_) {
    // Whoever writes a pack file holds its lock while packing: runs must not wait for that.
    slot.may_fill_itself_ = slot.job_ && !library_;
  }
  is_done_.store(false, std::memory_order_release);
  if (!finish()) keep_going();  // where files had everything no thread is needed
}

void WeightSlots::keep_going() { (void)run_when_idle(Ref<IdleTask>(this)); }

void WeightSlots::abandon() {
  if (is_done()) return;
  is_abandoned_.store(true, std::memory_order_relaxed);
  drop_idle_task(this);
}

bool WeightSlots::claim(WeightSlot* slot) const {
  const uint32_t mine = fork_generation() + 1;
  uint32_t seen = slot->claim_.load(std::memory_order_acquire);
  if (seen == mine || slot->is_done_.load(std::memory_order_acquire)) return false;
  return slot->claim_.compare_exchange_strong(seen, mine, std::memory_order_acq_rel);
}

// A claim ends whatever happens, or others would wait for it.
void WeightSlots::fill(WeightSlot* slot, Who who) noexcept {
  try {
    if (!find_or_leave(slot, who)) {  // another program is at the same weight
      slot->claim_.store(0, std::memory_order_release);
      return;
    }
  } catch (...) {  // nothing but memory is short here
    char text[256];
    std::snprintf(text, sizeof text,
                  "weight '%.160s' stays as it is: there was no memory to pack it",
                  slot->job_->name.c_str());
    log(LogLevel::kWarning, text);
  }
  // After this a child of fork knows that nothing of the slot is in between.
  slot->is_done_.store(true, std::memory_order_release);
  slot->job_.reset();
}

bool WeightSlots::find_or_leave(WeightSlot* slot, Who who) {
  // In a child of fork the library is as some thread of the parent left it.
  const bool has_library = library_ && library_->generation() == fork_generation();
  slot->job_->may_wait = who == Who::kWorker;
  auto made = find_or_make(cache_, has_library ? library_.get() : nullptr, *slot->job_);
  if (made.is_ok() && !made.value()) return false;
  if (made.is_ok()) {
    if (given_) given_(*made.value());
    slot->kept_ = std::move(made).take();
    slot->blob_.store(slot->kept_.get(), std::memory_order_release);
  } else if (!is_refused(*slot->job_, made.status())) {
    log(LogLevel::kWarning,
        cat("weight '", slot->job_->name, "' stays as it is: ", made.status().message()));
  }
  return true;
}

bool WeightSlots::fill_one(bool from_back) {
  const size_t count = slots_.size();
  for (size_t i = 0; i < count; ++i) {
    WeightSlot& slot = slots_[from_back ? count - 1 - i : i];
    if (!claim(&slot)) continue;
    fill(&slot, Who::kWorker);
    return true;
  }
  return false;
}

size_t WeightSlots::open_count() const {
  size_t count = 0;
  for (const WeightSlot& slot : slots_) count += !slot.is_done_.load(std::memory_order_acquire);
  return count;
}

// True when all is done; then, or before, by one thread: what is to be done at the end.
bool WeightSlots::finish() {
  if (open_count() > 0) return false;
  const uint32_t mine = fork_generation() + 1;
  uint32_t seen = finish_claim_.load(std::memory_order_acquire);
  if (seen == mine) return is_done();
  if (!finish_claim_.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return false;
  const bool is_ours = !library_ || library_->generation() == fork_generation();
  try {
    if (done_ && is_ours) done_(library_.get());
  } catch (...) {
    log(LogLevel::kWarning, "packed weights were not written: there was no memory to do it");
  }
  if (is_ours) library_ = nullptr;
  is_done_.store(true, std::memory_order_release);
  return true;
}

bool WeightSlots::step() {
  if (is_done() || is_abandoned_.load(std::memory_order_relaxed)) return false;
  if (fill_one(/*from_back=*/true)) return true;
  // What is left is being filled by runs, whose last one comes back here, or all is done.
  finish();
  return false;
}

bool WeightSlots::wait(std::chrono::steady_clock::time_point deadline, const GoOn& go_on) {
  constexpr std::chrono::microseconds kPause{200};
  if (!is_done()) keep_going();
  while (!is_done()) {
    const size_t total = slots_.size();
    if (go_on && !go_on(total - open_count(), total)) return false;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    if (fill_one(/*from_back=*/false) || finish()) continue;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

std::vector<Ref<const PackedBlob>> WeightSlots::blobs() const {
  std::vector<Ref<const PackedBlob>> found;
  for (const WeightSlot& slot : slots_) {
    if (const PackedBlob* blob = slot.peek()) found.emplace_back(const_cast<PackedBlob*>(blob));
  }
  return found;
}

}  // namespace folio
