// FileLock: processes (and threads) exclude each other by a lock file; freed by the kernel when its
// holder dies.
#pragma once

#include <string>

#include "core/base/status.h"

namespace folio {

class FileLock {
 public:
  // Waits for the lock; the file is made when it is missing and stays.
  static Result<FileLock> wait(const std::string& path);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace folio
