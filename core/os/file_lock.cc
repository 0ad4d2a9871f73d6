#include "core/os/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

namespace folio {

Result<FileLock> FileLock::wait(const std::string& path) {
  const auto failed = [&] {
    const char* text = strerrordesc_np(errno);
    return error(Code::kIo, "cannot lock '", path, "': ", text ? text : "unknown error");
  };
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return failed();
  FileLock lock(fd);
  while (flock(fd, LOCK_EX) != 0) {
    if (errno != EINTR) return failed();
  }
  return lock;
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace folio
