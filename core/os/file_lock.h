// FileLock: processes (and threads) exclude each other by a lock file; freed by the kernel when its
// holder dies.
#pragma once

#include <chrono>
#include <string>

#include "core/base/status.h"

namespace folio {

class FileLock {
 public:
  // Those who lock hold it for moments: who holds it longer may be stopped, or no part of Folio.
  static constexpr std::chrono::milliseconds kLongest{5000};

  // Waits for the lock; the file is made when it is missing and stays. kIo when others hold it
  // longer than `longest`.
  static Result<FileLock> wait(const std::string& path,
                               std::chrono::milliseconds longest = kLongest);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace folio
