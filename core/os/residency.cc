#include "core/os/residency.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/log.h"
#include "core/os/mapped_file.h"
#include "core/os/quiet_signals.h"
#include "core/os/throwing.h"

namespace folio {
namespace {

constexpr uint64_t kPage = 4096;
// What one system call is asked for: between two of them a Residency can be ended.
constexpr uint64_t kPiece = uint64_t{4} << 20;
constexpr uint64_t kReadPiece = uint64_t{1} << 20;
// Populating keeps the lock of the address space, which a run that allocates waits for.
constexpr uint64_t kPopulatePiece = uint64_t{1} << 20;
// Evidence: so many samples of this size, spread evenly.
constexpr uint64_t kSamples = 16;
constexpr uint64_t kSampleBytes = uint64_t{256} << 10;
// A file of fewer bytes is read by a handful of faults before a thread has started.
constexpr uint64_t kWorthAThread = uint64_t{4} << 20;
// Fewer bytes' page tables are filled by faults as fast as beside a run.
constexpr uint64_t kWorthPopulating = uint64_t{16} << 20;
// From here on the page cache "has it": a few pages that are missing come by themselves.
constexpr double kWarm = 0.95;

const MappedFile* mapping_of(const WantedFile& wanted) {
  const MappedFile* const file = as_mapped_file(*wanted.file);
  return file && file->descriptor() >= 0 ? file : nullptr;
}

uint64_t total_bytes(const std::vector<FileRange>& ranges) {
  uint64_t sum = 0;
  for (const FileRange& range : ranges) sum += range.count;
  return sum;
}

// The sample that begins `at` bytes into the ranges, as if they stood one behind the other.
FileRange sample_at(const std::vector<FileRange>& ranges, uint64_t at) {
  for (const FileRange& range : ranges) {
    if (at < range.count) {
      const uint64_t begin = (range.offset + at) / kPage * kPage;
      return {begin, std::min(kSampleBytes, range.offset + range.count - begin)};
    }
    at -= range.count;
  }
  return {};
}

std::optional<double> cached_share(const MappedFile& file, const std::vector<FileRange>& ranges) {
  const uint64_t total = total_bytes(ranges);
  uint64_t looked = 0;
  uint64_t cached = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    const FileRange sample = sample_at(ranges, total / kSamples * i);
    if (sample.count == 0) continue;
    const std::optional<uint64_t> pages = pages_cached(file, sample);
    if (!pages) return std::nullopt;
    const uint64_t all = (sample.count + kPage - 1) / kPage;
    looked += all;
    cached += std::min(*pages, all);
  }
  if (looked == 0) return std::nullopt;
  return static_cast<double>(cached) / static_cast<double>(looked);
}

// Only the page tables lack: no fault of a run has to fill them. A page that is gone is an error of
// this call, not SIGBUS; and before Linux 5.14 there is no such call.
void populate(const MappedFile& file, const FileRange& piece) {
  advise_pages(file, piece, MADV_POPULATE_READ);
}

// MemAvailable: what the kernel thinks a new program could have.
std::optional<uint64_t> spare_memory() {
  const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  char text[512] = {};
  const ssize_t got = read(fd, text, sizeof text - 1);
  close(fd);
  const char* const line = got > 0 ? std::strstr(text, "MemAvailable:") : nullptr;
  if (!line) return std::nullopt;
  return std::strtoull(line + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
}

// For network and FUSE file systems. Not FileLoading::kRead: a private copy is shared with nobody.
// Not MADV_WILLNEED or POSIX_FADV_WILLNEED: FUSE drops read-ahead when its queue is full and cuts
// it to 128 KiB; POSIX_FADV_SEQUENTIAL only widens the window of faults. A plain read cannot be
// dropped, is sent in the largest requests that the file system has, and fills the same page cache.
void read_through(const MappedFile& file, const FileRange& piece, std::vector<uint8_t>* scratch) {
  scratch->resize(kReadPiece);
  for (uint64_t done = 0; done < piece.count;) {
    const uint64_t part = std::min(piece.count - done, kReadPiece);
    const ssize_t got =
        pread(file.descriptor(), scratch->data(), part, static_cast<off_t>(piece.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;  // shorter than it was, or gone: the runs will say so
    done += static_cast<uint64_t>(got);
  }
}

// False when it is refused, with the reason in the log.
bool lock_pages(const MappedFile& file, const FileRange& range, uint64_t wanted_bytes) {
  const Bytes pages = pages_around(file, range);
  if (mlock(pages.data(), pages.size()) == 0) return true;
  const int number = errno;
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string allowed =
      limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : cat(limit.rlim_cur, " bytes");
  log(LogLevel::kWarning, cat("'", file.name(), "': ", wanted_bytes,
                              " bytes cannot be locked in memory (", strerrordesc_np(number),
                              "); RLIMIT_MEMLOCK is ", allowed, ". They are used without a lock."));
  return false;
}

}  // namespace

FileSystem file_system_of(uint64_t magic) {
  switch (magic) {
    case 0x01021994:  // tmpfs
    case 0x858458F6:  // ramfs
    case 0x958458F6:  // hugetlbfs
      return FileSystem::kMemory;
    case 0x65735546:  // FUSE
      return FileSystem::kFuse;
    case 0x6969:      // NFS
    case 0xFF534D42:  // CIFS
    case 0xFE534D42:  // SMB2 and later
    case 0x517B:      // SMB
    case 0x01021997:  // 9p
    case 0x00C36400:  // Ceph
    case 0x01161970:  // GFS2
    case 0x5346414F:  // AFS
    case 0x6B414653:  // kAFS
    case 0x73757245:  // Coda
    case 0x7461636F:  // OCFS2
    case 0x0BD00BD0:  // Lustre
    case 0x47504653:  // GPFS
    case 0x564C:      // NCP
      return FileSystem::kNetwork;
    default:
      return FileSystem::kLocal;
  }
}

ResidencyAction decide_residency(ResidencyMode mode, const ResidencyEvidence& evidence) {
  if (evidence.wanted_bytes == 0) return ResidencyAction::kLeave;
  if (mode == ResidencyMode::kLock) return ResidencyAction::kLock;
  const bool is_warm =
      evidence.file_system == FileSystem::kMemory || (evidence.cached && *evidence.cached >= kWarm);
  if (mode == ResidencyMode::kCache && evidence.wanted_bytes < kWorthAThread) {
    return ResidencyAction::kLeave;
  }
  if (is_warm) {
    if (mode == ResidencyMode::kPrefetch) return ResidencyAction::kPopulate;
    const bool is_worth_it = evidence.wanted_bytes >= kWorthPopulating;
    return is_worth_it ? ResidencyAction::kPopulateAtRun : ResidencyAction::kLeave;
  }
  const bool is_remote =
      evidence.file_system == FileSystem::kNetwork || evidence.file_system == FileSystem::kFuse;
  if (mode == ResidencyMode::kCache) {
    // Reading what cannot stay would only cost; so would reading what may be there already, but for
    // file systems where a page at a time is slower by far.
    const bool too_large = evidence.spare && evidence.wanted_bytes > *evidence.spare;
    if (too_large || (!evidence.cached && !is_remote)) return ResidencyAction::kLeave;
  }
  return is_remote ? ResidencyAction::kReadThrough : ResidencyAction::kReadAhead;
}

ResidencyEvidence residency_evidence(const WantedFile& wanted) {
  ResidencyEvidence evidence;
  const MappedFile* const file = mapping_of(wanted);
  if (!file) {
    evidence.file_system = FileSystem::kMemory;
    return evidence;
  }
  evidence.wanted_bytes = total_bytes(wanted.ranges);
  struct statfs s = {};
  if (fstatfs(file->descriptor(), &s) == 0) {
    // f_type is signed and CIFS's number has the highest of its 32 bits set.
    evidence.file_system = file_system_of(static_cast<uint32_t>(s.f_type));
  }
  if (evidence.file_system != FileSystem::kMemory && evidence.wanted_bytes >= kWorthAThread) {
    evidence.cached = cached_share(*file, wanted.ranges);
    if (evidence.cached && *evidence.cached < kWarm) evidence.spare = spare_memory();
  }
  return evidence;
}

ResidencyPlan plan_residency(ResidencyMode mode, std::vector<WantedFile> files) {
  ResidencyPlan plan;
  for (WantedFile& file : files) {
    const ResidencyAction action = decide_residency(mode, residency_evidence(file));
    if (action == ResidencyAction::kLeave) continue;
    const bool is_later = action == ResidencyAction::kPopulateAtRun;
    (is_later ? plan.at_first_run : plan.now).push_back({std::move(file), action});
  }
  return plan;
}

std::unique_ptr<Residency> Residency::start(std::vector<ResidencyTask> tasks) {
  for (ResidencyTask& task : tasks) {
    if (task.action != ResidencyAction::kReadThrough) continue;  // the order of first use
    std::sort(task.wanted.ranges.begin(), task.wanted.ranges.end(),
              [](const FileRange& a, const FileRange& b) { return a.offset < b.offset; });
  }
  if (tasks.empty()) return nullptr;
  std::unique_ptr<Residency> started(new Residency(std::move(tasks)));
  const QuietSignals quiet;
  started->process_ = getpid();
  if (pthread_create(&started->thread_, nullptr, entry, started.get()) != 0) {
    started->joined_ = true;
    return nullptr;
  }
  pthread_setname_np(started->thread_, "folio-pages");
  return started;
}

Residency::~Residency() {
  stop_.store(true, std::memory_order_relaxed);
  wait();
}

void Residency::wait() {
  if (joined_ || process_ != getpid()) return;
  pthread_join(thread_, nullptr);
  joined_ = true;
}

void* Residency::entry(void* self) {
  auto* const residency = static_cast<Residency*>(self);
  if (!is_ready_to_throw()) return nullptr;
  try {
    for (const ResidencyTask& task : residency->tasks_) residency->work(task);
  } catch (...) {  // no memory: whoever needs the pages reads them
  }
  return nullptr;
}

void Residency::work(const ResidencyTask& task) {
  const MappedFile* const mapping = mapping_of(task.wanted);
  if (!mapping || task.action == ResidencyAction::kLeave) return;
  const MappedFile& file = *mapping;
  const uint64_t size = file.bytes().size();
  const uint64_t wanted = total_bytes(task.wanted.ranges);
  const bool populates =
      task.action == ResidencyAction::kPopulate || task.action == ResidencyAction::kPopulateAtRun;
  const uint64_t most = populates ? kPopulatePiece : kPiece;
  std::optional<ColdReader> cold;
  if (task.action == ResidencyAction::kReadAhead || task.action == ResidencyAction::kLock) {
    cold.emplace(file, task.wanted.ranges);
  }
  std::vector<uint8_t> scratch;
  for (const FileRange& range : task.wanted.ranges) {
    if (range.offset >= size) continue;
    const uint64_t count = std::min(range.count, size - range.offset);
    for (uint64_t done = 0; done < count; done += most) {
      if (stop_.load(std::memory_order_relaxed) || file.is_damaged()) return;
      const FileRange piece{range.offset + done, std::min(most, count - done)};
      if (cold) cold->read(piece);
      if (task.action == ResidencyAction::kLock) {
        if (!lock_pages(file, piece, wanted)) return;
      } else if (task.action == ResidencyAction::kReadThrough) {
        read_through(file, piece, &scratch);
      } else if (populates) {
        populate(file, piece);
      }
    }
  }
}

}  // namespace folio
