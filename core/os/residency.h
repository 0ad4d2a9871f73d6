// Residency: what is done, when a program is ready, about file pages that its runs will read.
//
// Flow:    session/ knows which bytes of which files a program reads, in the order of first use ->
//          evidence (file system, share in the page cache) -> decide_residency, a pure function ->
//          Residency does it on a thread of its own, so that no open waits for weights. Page tables
//          of what the page cache has are filled beside the first run, not by opening.
// Owns:    a Residency keeps its files open and its thread; the destructor ends it within one
// piece. Threads: one caller at a time; different objects are independent. Errors:  none reach the
// caller: reading ahead is advice. A lock that is refused is one warning.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/byte_source.h"
#include "core/os/file_pages.h"

namespace folio {

enum class FileSystem : uint8_t {
  kLocal,    // disks, and what is not known: mapping and read-ahead work
  kMemory,   // tmpfs, ramfs, hugetlbfs: the file is its pages
  kNetwork,  // NFS, CIFS, SMB2, 9p, Ceph, GFS2, AFS, OCFS2, Lustre, GPFS
  kFuse,
};

// By statfs's f_type. overlayfs counts as local: it is read through the layers below.
FileSystem file_system_of(uint64_t magic);

enum class ResidencyMode : uint8_t {
  kCache,     // as the evidence says
  kPrefetch,  // everything is read ahead
  kLock,      // and stays: mlock
};

enum class ResidencyAction : uint8_t {
  kLeave,          // pages come as they are touched
  kPopulate,       // MADV_POPULATE_READ: in the page cache already, only the page tables lack
  kPopulateAtRun,  // the same beside the first run: a program that never runs has no page tables
  kReadAhead,      // by a ColdReader, piece after piece, in the order of first use
  kReadThrough,    // plain reads in the order of the file: see read_through
  kLock,
};

// What is none is not known.
struct ResidencyEvidence {
  FileSystem file_system = FileSystem::kLocal;
  uint64_t wanted_bytes = 0;
  std::optional<double> cached;   // share of the wanted bytes in the page cache
  std::optional<uint64_t> spare;  // memory that pages may take without pushing others out
};

ResidencyAction decide_residency(ResidencyMode mode, const ResidencyEvidence& evidence);

// What a program reads of one file, in the order of first use.
struct WantedFile {
  Ref<const ByteSource> file;
  std::vector<FileRange> ranges;
};

// Looks at samples only, so that it costs microseconds however large the file is. For a source that
// is no mapped file: memory, which is always there.
ResidencyEvidence residency_evidence(const WantedFile& wanted);

struct ResidencyTask {
  WantedFile wanted;
  ResidencyAction action;
};

// What there is to do, when.
struct ResidencyPlan {
  std::vector<ResidencyTask> now;
  std::vector<ResidencyTask> at_first_run;
};
ResidencyPlan plan_residency(ResidencyMode mode, std::vector<WantedFile> files);

class Residency {
 public:
  // Null when there is nothing to do, or no thread to do it.
  static std::unique_ptr<Residency> start(std::vector<ResidencyTask> tasks);
  ~Residency();
  Residency(const Residency&) = delete;
  Residency& operator=(const Residency&) = delete;

  void wait();  // until all is done; for tests and measurements

 private:
  explicit Residency(std::vector<ResidencyTask> tasks) : tasks_(std::move(tasks)) {}
  static void* entry(void* self);
  void work(const ResidencyTask& task);

  std::vector<ResidencyTask> tasks_;
  std::atomic<bool> stop_{false};
  pthread_t thread_ = {};
  pid_t process_ = 0;  // of the thread: a forked child has it not
  bool joined_ = false;
};

}  // namespace folio
