#include "tools/folio/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/folio/cli.h"

extern char** environ;  // POSIX declares it nowhere

namespace folio_cli {

namespace {

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

}  // namespace

ChildProcess::ChildProcess(const std::string& executable,
                           const std::vector<std::string>& arguments) {
  int input[2];
  int output[2];
  if (pipe2(input, O_CLOEXEC) != 0) fail(std::string("cannot make a pipe: ") + strerror(errno));
  if (pipe2(output, O_CLOEXEC) != 0) {
    close(input[0]);
    close(input[1]);
    fail(std::string("cannot make a pipe: ") + strerror(errno));
  }
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // posix_spawn does not write to them
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  const int error = posix_spawn(&pid_, executable.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(input[0]);
  close(output[1]);
  input_ = input[1];
  output_ = fdopen(output[0], "r");
  if (error != 0) {
    pid_ = -1;
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
