// FileWatch: whether the files of a model are still what was opened.
//
// Flow:    ModelFile adds the model's file and each external data file it opens, sessions the pack
//          files of the blobs they use, each before a run can read it -> checked when loading ends
//          and around each run.
// Owns:    counts of the files.
// Threads: any.
// Errors:  kModelChanged, naming the file. What is lost for good (is_damaged) is an error even
//          where changes are only warned of.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "core/base/byte_source.h"
#include "core/session/options.h"

namespace folio {

class FileWatch final : public RefCounted {
 public:
  // How long a result of asking the file system is good for at most.
  static constexpr int64_t kIntervalNs = 100'000'000;

  using Files = std::vector<Ref<const ByteSource>>;

  // One that is there already is not looked at twice.
  void add(const Ref<const ByteSource>& file);
  Files files() const;

  // Asks for each file, now.
  Status check_now() const;

  // For runs: asks for each file, but not again within kIntervalNs, less a tick of the clock, of a
  // time when all was well and while no fault was turned away. kWarn: one line in the log, ever.
  Status check(OnFileChange on_change);

 private:
  // Unless there are more files by now than the `count` that were asked.
  void set_good_until(int64_t time_ns, size_t count);

  Files files_;
  std::atomic<int64_t> good_until_ns_{0};
  std::atomic<uint64_t> faults_seen_{0};
  std::atomic<bool> warned_{false};
};

}  // namespace folio
