#include "tools/folio/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "tools/folio/cli.h"

namespace folio_cli {

namespace {

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

// Both ends closed on exec.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail(std::string("cannot make a pipe: ") + strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int take(int end) { return std::exchange(ends[end], -1); }
};

// After fork: only what a signal handler might call.
[[noreturn]] void become(const char* executable, char* const* argv, pid_t parent, const Pipe& input,
                         const Pipe& output, const Pipe& refusal) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitCannotRun);  // it was gone before the line above
  dup2(input.ends[0], STDIN_FILENO);
  dup2(output.ends[1], STDOUT_FILENO);
  execv(executable, argv);
  const int error = errno;
  const ssize_t ignored = write(refusal.ends[1], &error, sizeof error);
  static_cast<void>(ignored);
  _exit(kExitCannotRun);
}

}  // namespace

ChildProcess::ChildProcess(const std::string& executable,
                           const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // execv does not write to them
  }
  argv.push_back(nullptr);
  Pipe input;
  Pipe output;
  Pipe refusal;  // why exec failed; ends without a word when it did not
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) become(executable.c_str(), argv.data(), parent, input, output, refusal);
  int error = pid_ < 0 ? errno : 0;
  close(refusal.take(1));
  if (pid_ > 0 && read(refusal.ends[0], &error, sizeof error) != sizeof error) error = 0;
  input_ = input.take(1);
  output_ = fdopen(output.take(0), "r");
  close(input.take(0));
  close(output.take(1));
  if (error != 0) {
    end();
    fail("cannot start " + executable + ": " + std::strerror(error));
  }
}

std::string ChildProcess::read_line() {
  std::string line;
  for (int c; (c = std::fgetc(output_)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

std::string ChildProcess::read_all() {
  std::string text;
  for (int c; (c = std::fgetc(output_)) != EOF;) text += static_cast<char>(c);
  return text;
}

CliError error_of_child(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return {kExitCannotRun, std::string("a process was ended by a signal: ") + strsignal(number)};
  }
  const int code = WEXITSTATUS(status);
  const bool is_kept = code == kExitUnsupported || code == kExitUsage;
  return {is_kept ? static_cast<ExitCode>(code) : kExitCannotRun,
          code == kExitOk ? "a process ended before it had the model open" : ""};
}

int ChildProcess::end() {
  if (input_ >= 0) close(input_);
  if (output_ != nullptr) std::fclose(output_);
  input_ = -1;
  output_ = nullptr;
  int status = 0;
  if (pid_ > 0) {
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  pid_ = -1;
  return status;
}

}  // namespace folio_cli
