// What the subcommands of `folio` share: exit codes, errors, the library, options of several.
//
// Flow:    main.cc parses, then calls one run_... below. Each prints its result on standard output.
// Threads: one thread.
// Errors:  CliError and folio::Error; main prints them as one line `folio: ...`.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "folio/folio.hpp"

namespace folio_cli {

enum ExitCode : int {
  kExitOk = 0,
  kExitTestFailed = 1,
  kExitUsage = 2,
  kExitCannotRun = 3,
  kExitUnsupported = 4,
};

class CliError : public std::runtime_error {
 public:
  // `message`: "" if a process that we started has said it.
  CliError(ExitCode exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  ExitCode exit_code() const { return exit_code_; }

 private:
  ExitCode exit_code_;
};

// The exit code that fits an error of the library.
ExitCode exit_code_of(const folio::Error& error);

// Of a call whose arguments all come from the command line: what the library calls an invalid
// argument is a usage error.
template <typename Call>
auto with_usage_errors(Call&& call) {
  try {
    return call();
  } catch (const folio::Error& error) {
    if (error.code() != FOLIO_INVALID_ARGUMENT) throw;
    throw CliError(kExitUsage, error.what());
  }
}

// `text` with every control character replaced by a space: what is printed stays one line.
std::string one_line(const std::string& text);

// One line on standard error, as for every error of the command; what was printed comes before it.
void say_error(const std::string& message);

// "a, b".
std::string list_text(const std::vector<std::string>& names);

// Without the blanks at both ends.
std::string trimmed(const std::string& text);

// "NAME=VALUE" split at the last '=' (names may contain one, values of options do not), or, for
// config entries and files, at the first.
enum class SplitAt { kFirst, kLast };
std::pair<std::string, std::string> split_assignment(const std::string& option,
                                                     const std::string& text, SplitAt at);

// A whole number of at least `min`; `option` is for the message.
int64_t parse_count(const std::string& option, const std::string& text, int64_t min);
double parse_number(const std::string& option, const std::string& text);

// Options of all commands.
struct CommonOptions {
  std::string library;  // "": beside the executable, then where the dynamic linker looks
};

// Options of the commands that compile a model.
struct SessionSettings {
  std::vector<std::string> config;  // KEY=VALUE
  uint32_t threads = 0;             // 0: the library's choice
};

// Loads libfolio and makes folio.hpp use it. The library stays loaded until the process ends.
void load_library(const CommonOptions& common);
std::string library_path(const CommonOptions& common);  // what load_library tries first
std::string executable_path();
// A library as dlopen wants it: a file of that name here goes before the dynamic linker's.
std::string file_or_name(const std::string& library);

// What folio inspect prints of a pack file.
int inspect_pack_file(const std::string& path, bool json);

folio::SessionOptions make_session_options(const SessionSettings& settings);

// How random inputs are made; see random_inputs.h.
struct InputOptions {
  std::vector<std::string> dims;    // NAME=N
  std::vector<std::string> ranges;  // NAME=LO:HI
  uint64_t seed = 1;
};

struct RunCommand {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE
  std::string output_dir;
  bool json = false;
  InputOptions input;
  SessionSettings session;
};
int run_run(const CommonOptions& common, const RunCommand& command);

struct TestCommand {
  std::vector<std::string> folders;
  double rtol = -1;  // negative: data.json's, else ONNX's
  double atol = -1;
  uint32_t jobs = 1;
  uint32_t timeout_seconds = 300;
  bool in_process = false;
  bool json = false;
  SessionSettings session;
};
int run_test(const CommonOptions& common, const TestCommand& command);

struct BenchCommand {
  std::string model;
  std::vector<std::string> inputs;  // NAME=FILE
  uint32_t warmup = 3;
  uint32_t iterations = 20;
  double seconds = 0;  // above 0: instead of iterations
  uint32_t sessions = 1;
  uint32_t sample_us = 3000;
  bool json = false;
  bool profile = false;
  uint32_t top = 20;  // nodes of the profile's table
  std::string trace;  // file for the trace of the runs; "": none
  bool hold = false;
  int64_t hold_ms = -1;
  InputOptions input;
  SessionSettings session;
};
int run_bench(const CommonOptions& common, const BenchCommand& command);

struct MemoryCommand {
  std::string model;
  uint32_t processes = 4;
  uint32_t sessions = 1;
  bool modes = false;   // the table of load modes instead
  uint32_t rounds = 5;  // of that table
  std::string ort;      // ONNX Runtime's library, for rows of its own there; "": none
  std::string plot;
  bool json = false;
  InputOptions input;
  SessionSettings session;
};
int run_memory_modes(const CommonOptions& common, const MemoryCommand& command);
int run_memory(const CommonOptions& common, const MemoryCommand& command);

struct CompareCommand {
  std::vector<std::string> models;  // files and folders
  std::vector<std::string> inputs;  // NAME=FILE
  std::string against = "ort";      // or "folio"
  std::string ort;                  // ONNX Runtime's library
  std::string against_library;      // libfolio of the other side; "": the same
  std::vector<std::string> against_config;
  uint32_t rounds = 3;
  uint32_t warmup = 3;
  uint32_t iterations = 20;
  uint32_t timeout_seconds = 600;
  double rtol = -1;  // negative: data.json's, else ONNX's
  double atol = -1;
  bool made_up = false;
  std::string plot;  // file for a picture of the ratios; "": none
  bool json = false;
  InputOptions input;
  SessionSettings session;
};
int run_compare(const CommonOptions& common, const CompareCommand& command);

// One process of compare: measures one side once.
struct CompareSideCommand {
  std::string model;
  std::string ort;                  // "": Folio
  std::vector<std::string> inputs;  // NAME=FILE
  std::string data_set;             // "": inputs without a file are made up
  int outputs = -1;                 // file descriptor for the outputs; -1: not wanted
  uint32_t warmup = 3;
  uint32_t iterations = 20;
  uint32_t timeout_seconds = 600;
  uint32_t sample_us = 3000;  // how often the peak is looked at, as folio bench has it
  bool strict_names = false;  // --dim and --range must name something that the model has
  InputOptions input;
  SessionSettings session;
};
int run_compare_side(const CommonOptions& common, const CompareSideCommand& command);

struct InspectCommand {
  std::string model;
  bool json = false;
};
int run_inspect(const CommonOptions& common, const InspectCommand& command);

struct PackCommand {
  std::vector<std::string> models;
  std::string output;
  std::string store;
  std::string levels;
  bool check = false;
  bool replace = false;  // `output` is a model
  bool json = false;
  std::vector<std::string> dims;  // NAME=N: sessions will fix these
  SessionSettings session;
};
int run_pack(const CommonOptions& common, const PackCommand& command);

struct StoreCommand {
  std::string action;  // ls, verify, gc
  std::string folder;
  std::string limit;  // bytes, or a number with K, M or G
  bool json = false;
};
int run_store(const CommonOptions& common, const StoreCommand& command);

struct ConvertCommand {
  std::string model;
  std::string output;
  std::string optimize = "all";
  std::string format;         // "": by the output's name
  std::string external_file;  // "": inside
  uint64_t external_min_bytes = 0;
  bool pack = false;
  bool json = false;
};
int run_convert(const CommonOptions& common, const ConvertCommand& command);

struct DoctorCommand {
  bool json = false;
};
int run_doctor(const CommonOptions& common, const DoctorCommand& command);

}  // namespace folio_cli
