// AtomicFile: a file that appears under its name whole, or not at all.
//
// Flow:    create -> write ... -> publish. Until publish nothing stands under the name; after it
//          the whole content does, on disk (fsync), whatever happens to the process or machine.
// Owns:    an unnamed file (O_TMPFILE) in the target's folder; where the file system has none, a
//          hidden temporary under flock, so that one which can be locked is an orphan: create
//          removes those of its own target.
// Threads: one at a time.
// Errors:  kIo with the path and errno's text; kNoSuchFile when the folder is missing. After an
//          error the file can only be dropped.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/buffer.h"
#include "core/base/span.h"
#include "core/base/status.h"

namespace folio {

class AtomicFile {
 public:
  // Nothing that stands under `path` is touched before publish.
  static Result<AtomicFile> create(const std::string& path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  // Takes disk space, so that a full disk is an error here and no SIGBUS later.
  Status reserve(uint64_t offset, uint64_t bytes);
  Status write(uint64_t offset, Bytes bytes);

  // What was written, as other processes will see it: shared and read-only. Lives on its own.
  Result<Ref<Buffer>> map(uint64_t offset, uint64_t bytes) const;

  // Puts the file under its name with mode 0444, replacing what was there.
  Status publish();

  const std::string& path() const { return path_; }

 private:
  AtomicFile() = default;
  Status link_named();
  Status failed(const char* call) const;

  std::string path_;
  std::string name_;       // of the target in its folder
  std::string temporary_;  // name of the temporary in the folder; empty: the file has none
  int folder_ = -1;
  int fd_ = -1;
};

// Tests: called with the name of each system call that AtomicFile is about to make; a result other
// than 0 is the errno with which that call is made to fail. Null (the default) lets all through.
using FileFaultHook = int (*)(const char* call);
void set_file_fault_hook(FileFaultHook hook);

}  // namespace folio
