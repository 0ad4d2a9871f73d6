#include "core/session/file_watch.h"

#include <algorithm>

#include "core/base/log.h"
#include "core/os/clock.h"
#include "core/os/fork.h"
#include "core/os/sigbus_guard.h"

namespace folio {
namespace {

// One for all: held for moments, by the idle worker too, and so held across forks.
std::mutex& list_mutex() {
  static std::mutex& only = new_mutex_held_across_fork(ForkOrder::kSession);
  return only;
}

Status check_damage(const FileWatch::Files& files) {
  for (const Ref<const ByteSource>& file : files) FOLIO_RETURN_IF_ERROR(file->check_damage());
  return Status::ok();
}

Status check_unchanged(const FileWatch::Files& files) {
  for (const Ref<const ByteSource>& file : files) FOLIO_RETURN_IF_ERROR(file->check_unchanged());
  return Status::ok();
}

}  // namespace

void FileWatch::add(const Ref<const ByteSource>& file) {
  const std::lock_guard<std::mutex> lock(list_mutex());
  // Two that opened the same bytes by the same name will find the same changes.
  const auto is_same = [&](const Ref<const ByteSource>& known) {
    return known == file || (file->serial() != 0 && known->serial() == file->serial() &&
                             known->name() == file->name());
  };
  if (std::any_of(files_.begin(), files_.end(), is_same)) return;
  files_.push_back(file);
  good_until_ns_.store(0, std::memory_order_relaxed);
}

void FileWatch::set_good_until(int64_t time_ns, size_t count) {
  const std::lock_guard<std::mutex> lock(list_mutex());
  if (files_.size() == count) good_until_ns_.store(time_ns, std::memory_order_relaxed);
}

FileWatch::Files FileWatch::files() const {
  const std::lock_guard<std::mutex> lock(list_mutex());
  return files_;
}

Status FileWatch::check_now() const {
  const Files all = files();
  FOLIO_RETURN_IF_ERROR(check_damage(all));
  return check_unchanged(all);
}

Status FileWatch::check(OnFileChange on_change) {
  // Before the files are looked at: a fault that comes meanwhile is looked at the next time.
  const uint64_t faults = sigbus_guard_faults();
  const int64_t now = monotonic_tick_ns();
  const bool no_faults = faults == faults_seen_.load(std::memory_order_relaxed);
  if (no_faults && now < good_until_ns_.load(std::memory_order_relaxed)) return Status::ok();
  const Files all = files();
  FOLIO_RETURN_IF_ERROR(check_damage(all));
  auto changed = check_unchanged(all);
  if (!changed.is_ok()) {
    if (on_change == OnFileChange::kError) return changed;
    if (!warned_.exchange(true)) {
      log(LogLevel::kWarning, cat(changed.message(), "; runs go on (folio.on_file_change = warn)"));
    }
  }
  faults_seen_.store(faults, std::memory_order_relaxed);
  // A session that only warns must not make another one's error wait.
  // The clock stands still for a tick, of 10 ms at most: nobody who waits for the interval to pass
  // may find it short of that by what the tick had left.
  constexpr int64_t kTickNs = 10'000'000;
  if (changed.is_ok()) set_good_until(now + kIntervalNs - kTickNs, all.size());
  return Status::ok();
}

}  // namespace folio
