// folio test: runs models in the ONNX test layout against their reference outputs.
//
// Flow:    find_tests -> one child process each (a crash is one failed test, not the end of all) ->
//          lines in the order of the folders.
// Threads: the command never loads the library itself, so that fork is safe; unless --in-process.

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/compare.h"
#include "tools/folio/print_json.h"
#include "tools/folio/tensor_pb.h"
#include "tools/folio/test_layout.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;

enum class Verdict : char { kPass = 'P', kFail = 'F', kUnsupported = 'U' };

struct Result {
  Verdict verdict = Verdict::kFail;
  std::string reason;
};

const char* verdict_name(Verdict verdict) {
  if (verdict == Verdict::kPass) return "PASS";
  return verdict == Verdict::kFail ? "FAIL" : "UNSUPPORTED";
}

std::vector<fs::path> find_tests(const std::vector<std::string>& folders) {
  std::vector<fs::path> tests;
  for (const std::string& folder : folders) {
    for (const fs::path& model : models_below(folder)) {
      if (data_sets(model.parent_path()).empty()) {
        std::fprintf(stderr, "folio: %s has no test_data_set_0 beside it: not a test\n",
                     model.c_str());
      } else {
        tests.push_back(model);
      }
    }
  }
  return tests;
}

// ---- One test ---------------------------------------------------------------------------------

// "" or the first difference.
std::string run_set(folio::Session& session, const fs::path& set, const Tolerances& tolerances) {
  const std::vector<NamedValue> given = read_inputs(set, ports_of(session.inputs()));
  std::vector<folio::Value> values;
  std::vector<folio::Input> inputs;
  for (const NamedValue& input : given) values.push_back(to_value(input.value));
  for (size_t i = 0; i < given.size(); ++i) inputs.emplace_back(given[i].name, values[i]);
  const std::vector<folio::Value> outputs = session.run(inputs);
  const std::vector<folio::ValueInfo> infos = session.outputs();
  size_t compared = 0;
  for (size_t i = 0; i < infos.size(); ++i) {
    const fs::path path = data_file(set, "output", i);
    if (!fs::exists(path)) continue;
    const HostValue expected = read_value(path, port_of(infos[i]));
    const std::string text =
        difference(infos[i].name, from_value(outputs[i]), expected, tolerances.of(infos[i].name));
    if (!text.empty()) return text;
    ++compared;
  }
  return compared == 0 ? "no output_<i>.pb to compare with" : "";
}

Result run_model(const fs::path& model, const TestCommand& command) {
  try {
    const Tolerances tolerances(model.parent_path(), command.rtol, command.atol);
    folio::Session session(model.string(), make_session_options(command.session));
    for (const fs::path& set : data_sets(model.parent_path())) {
      const std::string text = run_set(session, set, tolerances);
      if (!text.empty()) return {Verdict::kFail, set.filename().string() + ": " + text};
    }
    return {Verdict::kPass, ""};
  } catch (const folio::Error& error) {
    const bool unsupported = exit_code_of(error) == kExitUnsupported;
    const std::string code = unsupported ? "" : folio::error_name(error.code()) + ": ";
    return {unsupported ? Verdict::kUnsupported : Verdict::kFail, code + error.what()};
  } catch (const CliError& error) {
    if (error.exit_code() == kExitUsage) throw;
    return {Verdict::kFail, error.what()};
  } catch (const std::exception& error) {
    return {Verdict::kFail, error.what()};
  }
}

// ---- Children ---------------------------------------------------------------------------------

struct Child {
  pid_t pid = -1;
  int pipe = -1;
  std::string text;  // the verdict's letter, then the reason
};

// Then comes the exit code as a digit: something that would stop every test.
constexpr char kFatal = '!';

[[noreturn]] void be_child(int pipe, const fs::path& model, const CommonOptions& common,
                           const TestCommand& command) {
  alarm(command.timeout_seconds);
  std::string text;
  try {
    load_library(common);
    const Result result = run_model(model, command);
    text = static_cast<char>(result.verdict) + result.reason;
  } catch (const CliError& error) {
    text = kFatal + std::to_string(error.exit_code()) + error.what();
  } catch (const std::exception& error) {
    text = kFatal + std::to_string(kExitCannotRun) + error.what();
  }
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = write(pipe, text.data() + done, text.size() - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  close(pipe);
  std::exit(0);  // with the library's own end, where leaks and hangs show
}

Child start_child(const fs::path& model, const CommonOptions& common, const TestCommand& command) {
  int ends[2];
  if (pipe(ends) != 0) {
    throw CliError(kExitCannotRun, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::fflush(nullptr);
  Child child;
  child.pid = fork();
  if (child.pid == 0) {
    close(ends[0]);
    be_child(ends[1], model, common, command);
  }
  close(ends[1]);
  child.pipe = ends[0];
  if (child.pid < 0) {
    close(ends[0]);
    throw CliError(kExitCannotRun, std::string("cannot start a process: ") + std::strerror(errno));
  }
  return child;
}

// Reads what the child has to say; true at its end.
bool read_some(Child* child) {
  char chunk[4096];
  const ssize_t got = read(child->pipe, chunk, sizeof chunk);
  if (got > 0) child->text.append(chunk, static_cast<size_t>(got));
  return got <= 0 && errno != EINTR;
}

Result end_of(Child* child, uint32_t timeout_seconds) {
  close(child->pipe);
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    if (number == SIGALRM) {
      return {Verdict::kFail, "not done after " + std::to_string(timeout_seconds) + " s"};
    }
    const char* when = child->text.empty() ? "" : " at the end of the process";
    return {Verdict::kFail, std::string("crashed") + when + ": " + strsignal(number)};
  }
  const int code = WEXITSTATUS(status);
  if (code != 0 || child->text.empty()) {
    return {Verdict::kFail, "the process ended with exit code " + std::to_string(code)};
  }
  const char letter = child->text[0];
  if (letter == kFatal) {
    throw CliError(static_cast<ExitCode>(child->text[1] - '0'), child->text.substr(2));
  }
  return {static_cast<Verdict>(letter), child->text.substr(1)};
}

// ---- All tests --------------------------------------------------------------------------------

class Report {
 public:
  Report(const std::vector<fs::path>& models, bool json)
      : models_(models), json_(json), is_tty_(isatty(STDERR_FILENO) != 0) {}

  // In the order of the models.
  void add(const Result& result) {
    const std::string path = one_line(models_[next_].string());
    const std::string reason = one_line(result.reason);
    ++counts_[result.verdict];
    if (json_) {
      list_.push_back(
          {{"path", path}, {"result", verdict_name(result.verdict)}, {"reason", reason}});
    } else {
      clear_progress();
      std::printf("%s %s%s%s\n", verdict_name(result.verdict), path.c_str(),
                  reason.empty() ? "" : " ", reason.c_str());
      std::fflush(stdout);
    }
    ++next_;
    if (is_tty_ && next_ < models_.size()) {
      std::fprintf(stderr, "\r%zu of %zu", next_, models_.size());
      std::fflush(stderr);
    }
  }

  int finish() {
    clear_progress();
    const int passed = counts_[Verdict::kPass];
    const int failed = counts_[Verdict::kFail];
    const int unsupported = counts_[Verdict::kUnsupported];
    if (json_) {
      const nlohmann::json report = {
          {"tests", list_}, {"passed", passed}, {"failed", failed}, {"unsupported", unsupported}};
      print_json(report, JsonForm::kIndented);
    } else {
      std::printf("%d passed, %d failed, %d unsupported\n", passed, failed, unsupported);
    }
    if (failed != 0) return kExitTestFailed;
    return unsupported != 0 ? kExitUnsupported : kExitOk;
  }

 private:
  void clear_progress() const {
    if (is_tty_) std::fputs("\r\033[K", stderr);
  }

  const std::vector<fs::path>& models_;
  bool json_;
  bool is_tty_;
  size_t next_ = 0;
  std::map<Verdict, int> counts_;
  nlohmann::json list_ = nlohmann::json::array();
};

void run_in_children(const std::vector<fs::path>& models, const CommonOptions& common,
                     const TestCommand& command, Report* report) {
  std::map<size_t, Child> running;
  std::map<size_t, Result> done;
  size_t started = 0;
  size_t reported = 0;
  while (reported < models.size()) {
    while (started < models.size() && running.size() < command.jobs) {
      running[started] = start_child(models[started], common, command);
      ++started;
    }
    std::vector<pollfd> waits;
    std::vector<size_t> indices;
    for (const auto& [index, child] : running) {
      waits.push_back({child.pipe, POLLIN, 0});
      indices.push_back(index);
    }
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      throw CliError(kExitCannotRun, std::string("cannot wait: ") + std::strerror(errno));
    }
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents == 0 || !read_some(&running[indices[i]])) continue;
      done[indices[i]] = end_of(&running[indices[i]], command.timeout_seconds);
      running.erase(indices[i]);
    }
    for (; done.count(reported) != 0; ++reported) report->add(done[reported]);
  }
}

}  // namespace

int run_test(const CommonOptions& common, const TestCommand& command) {
  const std::vector<fs::path> models = find_tests(command.folders);
  if (models.empty()) {  // nothing was tested: a wrong path must not pass for success
    throw CliError(kExitUsage, "no test found: no model.onnx or model.ort with test data");
  }
  Report report(models, command.json);
  if (command.in_process) {
    load_library(common);
    for (const fs::path& model : models) report.add(run_model(model, command));
  } else {
    run_in_children(models, common, command, &report);
  }
  return report.finish();
}

}  // namespace folio_cli
