// verdict_of: how a child of fork ended.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>

namespace folio {

// Waits for it. Its exit code; minus the signal that ended it.
inline int verdict_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace folio
