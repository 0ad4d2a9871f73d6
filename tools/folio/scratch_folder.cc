#include "tools/folio/scratch_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/folio/cli.h"

namespace folio_cli {

namespace {

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

// While it lives, signals wait.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Where temporary folders go, whether it is there or not: std::filesystem::temp_directory_path has
// other variables too, and of one that is wrong it names none.
std::string parent_folder() {
  const char* const named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

[[noreturn]] void refuse(const std::string& parent, int error) {
  throw CliError(kExitCannotRun, "cannot make a temporary folder in '" + parent +
                                     "': " + std::strerror(error) +
                                     "; set TMPDIR to a folder that can be written to");
}

// Signals stay blocked here, and a terminal's go to another session.
[[noreturn]] void be_guard(const std::string& path, int life_line) {
  setsid();
  // Whoever reads the command's output must not wait for the guard; and its own copy of the other
  // end would never end.
  dup2(life_line, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  remove_folder(path);
  _exit(0);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const SignalsBlocked until_it_is_guarded;
  const std::string parent = parent_folder();
  std::string name = parent + "/folio-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) refuse(parent, errno);
  path_ = name;
  start_guard();
}

ScratchFolder::~ScratchFolder() {
  remove_folder(path_);
  if (life_line_ >= 0) close(life_line_);
  if (guard_ <= 0) return;
  while (waitpid(guard_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void ScratchFolder::start_guard() {
  int ends[2];
  // Children inherit the life line: the guard waits for their end, too, as they write here.
  if (pipe(ends) != 0) return;
  guard_ = fork();
  if (guard_ == 0) be_guard(path_, ends[0]);
  close(ends[0]);
  life_line_ = ends[1];
}

}  // namespace folio_cli
