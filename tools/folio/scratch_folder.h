// A folder for files that go with the process, however it ends.
//
// Owns:    the folder, and a process that removes it with all in it once this one and its children
//          are gone: a signal cannot be handled by code that removes folders, and SIGKILL by none.
// Threads: made before the process has others and before it loads the library, as it forks.
// Errors:  CliError if it cannot be made. Without that process the destructor alone removes it.
#pragma once

#include <sys/types.h>

#include <string>

namespace folio_cli {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  void start_guard();

  std::string path_;
  pid_t guard_ = -1;
  int life_line_ = -1;  // its end is the guard's sign
};

}  // namespace folio_cli
