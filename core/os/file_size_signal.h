// FileSizeSignal: while one lives, writing beyond the process's limit (ulimit -f) is an error of
// the call, EFBIG, and not the end of the host.
//
// The kernel sends SIGXFSZ to the thread that writes. One that somebody else waits for, pending
// before, stays pending.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace folio {

class FileSizeSignal {
 public:
  FileSizeSignal() {
    sigemptyset(&own_);
    sigaddset(&own_, SIGXFSZ);
    was_pending_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &own_, &before_);
  }
  // errno stays as the call left it.
  ~FileSizeSignal() {
    const int number = errno;
    if (!was_pending_ && is_pending()) {
      const timespec now = {};
      while (sigtimedwait(&own_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  FileSizeSignal(const FileSizeSignal&) = delete;
  FileSizeSignal& operator=(const FileSizeSignal&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t own_;
  sigset_t before_;
  bool was_pending_ = false;
};

}  // namespace folio
