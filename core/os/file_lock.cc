#include "core/os/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <thread>

namespace folio {

Result<FileLock> FileLock::wait(const std::string& path, std::chrono::milliseconds longest) {
  constexpr std::chrono::milliseconds kPause{2};  // less than the lock is held for
  const auto give_up = std::chrono::steady_clock::now() + longest;
  const auto failed = [&] {
    const char* text = strerrordesc_np(errno);
    return error(Code::kIo, "cannot lock '", path, "': ", text ? text : "unknown error");
  };
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return failed();
  FileLock lock(fd);
  // Not LOCK_EX alone, which has no end.
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed();
    if (std::chrono::steady_clock::now() >= give_up) {
      return error(Code::kIo, "cannot lock '", path, "': others have held it for ", longest.count(),
                   " ms");
    }
    std::this_thread::sleep_for(kPause);
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace folio
