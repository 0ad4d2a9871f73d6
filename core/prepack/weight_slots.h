// WeightSlots: the packed weights of one program, some of them there, some still to come.
//
//   plan/ adds a slot per weight: with its blob (found, or made by the load), or with a job
//   -> run/ reads each slot once per step; where there is no blob yet the operator computes from
//      the weight as the model has it, to the same bits
//   -> the idle worker (core/os/idle_worker.h) packs, the last slot first
//   -> on a machine without idle time a run that finds a slot empty again and again packs itself
//
// Owns:    the blobs, and what is needed to make those still to come.
// Threads: any. A slot is filled once; nobody waits for the idle worker but wait().
// Errors:  none reach a run: a weight that cannot be packed stays as it is, with a line in the log.
// Fork:    the child fills its slots itself; what a thread of the parent had begun is begun anew.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "core/os/idle_worker.h"
#include "core/prepack/wanted_blob.h"

namespace folio {

class WeightSlots;

class WeightSlot {
 public:
  // The blob, or null: then the operator takes the weight itself.
  const PackedBlob* get() {
    const PackedBlob* blob = blob_.load(std::memory_order_acquire);
    return blob || !may_fill_itself_ ? blob : get_or_pack();
  }
  // The same without packing anything.
  const PackedBlob* peek() const { return blob_.load(std::memory_order_acquire); }

 private:
  friend class WeightSlots;
  const PackedBlob* get_or_pack();

  std::atomic<const PackedBlob*> blob_{nullptr};
  // Who packs: 0 nobody yet, else 1 + the generation of processes (core/os/fork.h) of who does.
  std::atomic<uint32_t> claim_{0};
  std::atomic<bool> is_done_{false};  // filled, or given up
  std::atomic<int> unpacked_uses_{0};
  bool may_fill_itself_ = false;
  WeightSlots* owner_ = nullptr;
  std::optional<WantedBlob> job_;  // read by whoever has the claim
  Ref<const PackedBlob> kept_;
};

class WeightSlots final : public IdleTask {
 public:
  // So often runs take a weight as it is and leave packing to the worker. An early run is faster
  // so: fresh memory for the blob costs more than packing into scratch that is there.
  static constexpr int kPatience = 4;

  // `cache` outlives the slots; `library` may be null.
  WeightSlots(PackedCache& cache, Ref<PackLibrary> library)
      : cache_(cache), library_(std::move(library)) {}
  ~WeightSlots() override;

  // While the program is made, by one thread. Slots stay where they are.
  WeightSlot* add(Ref<const PackedBlob> blob);
  // What the job's functions read stays readable, in any thread.
  WeightSlot* add(WantedBlob job);

  // From here on slots are filled. `done` is called once, by some thread, when all are; not in a
  // child of fork. `given` is told of each blob before a run can find it, by the thread that fills
  // the slot. Without start() slots stay as they are.
  using Done = std::function<void(PackLibrary* library)>;
  using Given = std::function<void(const PackedBlob& blob)>;
  void start(Done done, Given given = nullptr);
  // Instead of start(), when nothing is to be packed: the library is let go.
  void leave() { library_ = nullptr; }
  // Nobody needs the rest any more. Slots that are being filled may still be filled.
  void abandon();

  // All there, and what there was to write is written.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // In a child of fork nobody packs until it is asked for.
  void keep_going();

  // Packs in this thread, beside the idle worker, until all is done: true. False at `deadline`, or
  // when `go_on`, asked between weights with how much is done, says so.
  using GoOn = std::function<bool(size_t done, size_t total)>;
  bool wait(std::chrono::steady_clock::time_point deadline, const GoOn& go_on);

  // The blobs that are there now.
  std::vector<Ref<const PackedBlob>> blobs() const;
  size_t size() const { return slots_.size(); }
  size_t open_count() const;

  bool step() override;  // of the idle worker

 private:
  friend class WeightSlot;
  enum class Who : uint8_t { kRun, kWorker };

  bool claim(WeightSlot* slot) const;
  void fill(WeightSlot* slot, Who who) noexcept;
  // Gives the slot its blob, or lets it stay as it is; false: another thread makes the blob.
  bool find_or_leave(WeightSlot* slot, Who who);
  // Packs an unclaimed slot, from the back or the front; false when there is none.
  bool fill_one(bool from_back);
  bool finish();

  PackedCache& cache_;
  Ref<PackLibrary> library_;  // until all is done: it has whole indexes of pack files
  std::deque<WeightSlot> slots_;
  Done done_;
  Given given_;
  std::atomic<uint32_t> finish_claim_{0};
  std::atomic<bool> is_done_{true};
  std::atomic<bool> is_abandoned_{false};
};

}  // namespace folio
