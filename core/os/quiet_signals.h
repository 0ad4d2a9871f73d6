// QuietSignals: threads that are started while one lives have the host's signals blocked.
//
// The host's signals are for the host's threads. Those that a thread raises by what it does stay
// open: blocked, the kernel would end the process without asking any handler (the SIGBUS guard's,
// a virtual machine's).
#pragma once

#include <signal.h>

namespace folio {

class QuietSignals {
 public:
  QuietSignals() {
    sigset_t most;
    sigfillset(&most);
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&most, own);
    pthread_sigmask(SIG_SETMASK, &most, &before_);
  }
  ~QuietSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  QuietSignals(const QuietSignals&) = delete;
  QuietSignals& operator=(const QuietSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace folio
