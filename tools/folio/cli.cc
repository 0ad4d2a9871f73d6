#include "tools/folio/cli.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "folio/folio_load.h"

namespace folio_cli {

ExitCode exit_code_of(const folio::Error& error) {
  const bool unsupported =
      error.code() == FOLIO_UNSUPPORTED_OPERATOR || error.code() == FOLIO_NOT_IMPLEMENTED;
  return unsupported ? kExitUnsupported : kExitCannotRun;
}

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string trimmed(const std::string& text) {
  const char* const blanks = " \t\r\n";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string one_line(const std::string& text) {
  std::string line = text;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

void say_error(const std::string& message) {
  std::fflush(stdout);
  // Over the line of progress of the process that started this one.
  const char* const start = isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "";
  std::fprintf(stderr, "%sfolio: %s\n", start, one_line(message).c_str());
}

std::pair<std::string, std::string> split_assignment(const std::string& option,
                                                     const std::string& text, SplitAt at) {
  const size_t equals = at == SplitAt::kFirst ? text.find('=') : text.rfind('=');
  if (equals == std::string::npos || equals == 0) {
    throw CliError(kExitUsage, option + " needs NAME=VALUE, got '" + text + "'");
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

int64_t parse_count(const std::string& option, const std::string& text, int64_t min) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || value < min) {
    throw CliError(kExitUsage, option + " needs a whole number of at least " + std::to_string(min) +
                                   ", got '" + text + "'");
  }
  return value;
}

double parse_number(const std::string& option, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value)) {
    throw CliError(kExitUsage, option + " needs a number, got '" + text + "'");
  }
  return value;
}

std::string executable_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string() : path.string();
}

std::string file_or_name(const std::string& library) {
  const bool has_slash = library.find('/') != std::string::npos;
  std::error_code error;
  return has_slash || !std::filesystem::exists(library, error) ? library : "./" + library;
}

std::string library_path(const CommonOptions& common) {
  if (!common.library.empty()) return file_or_name(common.library);
  const std::filesystem::path folder = std::filesystem::path(executable_path()).parent_path();
  // The second is where this build installs; the first, the build folder.
  for (const char* relative : {"../lib", FOLIO_BIN_TO_LIB}) {
    const auto candidate = (folder / relative / "libfolio.so.1").lexically_normal();
    std::error_code error;
    if (std::filesystem::exists(candidate, error)) return candidate.string();
  }
  return "libfolio.so.1";
}

void load_library(const CommonOptions& common) {
  char error[512];
  void* library = nullptr;  // never unloaded: the process ends soon enough
  const FolioApi* table =
      folio_load(library_path(common).c_str(), FOLIO_API_VERSION, &library, error, sizeof error);
  if (table == nullptr) {
    throw CliError(kExitCannotRun, one_line(error) + "; --library names the libfolio.so.1 to use");
  }
  folio::use(table);
}

folio::SessionOptions make_session_options(const SessionSettings& settings) {
  folio::SessionOptions options;
  if (settings.threads != 0) options.threads(settings.threads);
  for (const std::string& entry : settings.config) {
    const auto [key, value] = split_assignment("--config", entry, SplitAt::kFirst);
    try {
      options.config(key, value);
    } catch (const folio::Error& error) {
      throw CliError(kExitUsage, "--config " + entry + ": " + error.what());
    }
  }
  return options;
}

}  // namespace folio_cli
