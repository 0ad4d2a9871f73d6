#include "tools/folio/side_process.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tools/folio/child_process.h"
#include "tools/folio/cli.h"

namespace folio_cli {

namespace {

// How the process ended, if not well.
std::string bad_end(int status, uint32_t timeout_seconds) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM) {
      return "not done after " + std::to_string(timeout_seconds) + " s";
    }
    return std::string("crashed: ") + strsignal(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "the process ended with exit code " + std::to_string(code);
}

}  // namespace

SideSaid run_side(const std::vector<std::string>& arguments, uint32_t timeout_seconds) {
  ChildProcess child(arguments[0], arguments);
  std::string text = child.read_all();
  const std::string end = bad_end(child.end(), timeout_seconds);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');  // a library may have printed something before
  SideSaid side;
  side.said = nlohmann::json::parse(line == std::string::npos ? text : text.substr(line + 1),
                                    nullptr, false);
  if (!side.said.is_object() || !end.empty()) {
    side.stage = side.said.is_object() ? "end of the process" : "";
    side.error = end.empty() ? "the process said nothing" : end;
    side.exit_code = kExitCannotRun;
    side.said = nlohmann::json::object();
  } else if (side.said.contains("error")) {
    side.stage = side.said["stage"].get<std::string>();
    side.error = side.said["error"].get<std::string>();
    side.exit_code = side.said["exit_code"].get<int>();
  }
  return side;
}

double median_of(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const size_t middle = numbers.size() / 2;
  return numbers.size() % 2 != 0 ? numbers[middle] : (numbers[middle - 1] + numbers[middle]) / 2;
}

}  // namespace folio_cli
