// Another program, with its standard input and output at our end of two pipes.
//
// Owns:    the process and both pipes: what ends last is waited for. The end of its input is its
//          sign that it may end; when we are killed, it is, too.
// Threads: the process's first one, whose end is taken for the process's.
// Errors:  CliError if it cannot be started.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tools/folio/cli.h"

namespace folio_cli {

class ChildProcess {
 public:
  // `arguments` begin with the program's name.
  ChildProcess(const std::string& executable, const std::vector<std::string>& arguments);
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  std::string read_line();  // without its end; "" at the end of the output
  std::string read_all();

  // Closes the pipes and waits; the status of waitpid. Later calls give 0.
  int end();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  std::FILE* output_ = nullptr;
};

// Of a `folio` that ended with this status of waitpid: if with an exit code, it has said why.
CliError error_of_child(int status);

}  // namespace folio_cli
