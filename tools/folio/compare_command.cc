// folio compare: Folio and another runtime, or another configuration of Folio, side by side.
//
// Flow:    models -> for each, in rounds, one process per side in turns (folio compare-side) ->
//          medians over the rounds; outputs of the first round are compared.
// Owns:    memory files for the outputs; the children write into them.
// Threads: one.
// Errors:  what one side cannot load or run is a line of the report. What would stop every model,
//          such as a library that is not there, ends the command.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tools/folio/cli.h"
#include "tools/folio/compare.h"
#include "tools/folio/compare_report.h"
#include "tools/folio/feeds.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/side_process.h"
#include "tools/folio/test_layout.h"
#include "tools/folio/wire.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;

// ---- One side ---------------------------------------------------------------------------------

// Memory that a child writes and we read; it has no name, so that nothing is left behind.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("folio-outputs", 0)) {
    if (file_ < 0) {
      throw CliError(kExitCannotRun, std::string("cannot make a memory file: ") + strerror(errno));
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return file_; }

  std::string read() const {
    std::string bytes(static_cast<size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0)), '\0');
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t got = pread(file_, &bytes[done], bytes.size() - done, static_cast<off_t>(done));
      if (got <= 0) throw CliError(kExitCannotRun, "cannot read outputs");
      done += static_cast<size_t>(got);
    }
    return bytes;
  }

 private:
  int file_;
};

std::vector<std::string> arguments_of(const CompareCommand& command, const ComparedModel& model,
                                      const Side& side) {
  std::vector<std::string> arguments = {executable_path(), "compare-side"};
  const auto add = [&arguments](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  arguments.insert(arguments.end(), side.options.begin(), side.options.end());
  add("--warmup", std::to_string(command.warmup));
  add("--iterations", std::to_string(command.iterations));
  add("--timeout", std::to_string(command.timeout_seconds));
  add("--threads", std::to_string(command.session.threads));
  add("--seed", std::to_string(command.input.seed));
  for (const std::string& dim : command.input.dims) add("--dim", dim);
  for (const std::string& range : command.input.ranges) add("--range", range);
  for (const std::string& file : command.inputs) add("--input", file);
  if (!model.data_set.empty()) add("--data-set", model.data_set);
  add("--", model.path.string());
  return arguments;
}

std::vector<std::string> strings_in(const nlohmann::json& object, const char* key) {
  std::vector<std::string> strings;
  if (!object.contains(key)) return strings;
  for (const auto& text : object[key]) strings.push_back(text.get<std::string>());
  return strings;
}

// Adds one round to `side`.
void measure_once(const CompareCommand& command, const ComparedModel& model, bool wants_outputs,
                  Side* side) {
  std::vector<std::string> arguments = arguments_of(command, model, *side);
  const MemoryFile file;
  if (wants_outputs) {
    const std::string descriptor = std::to_string(file.descriptor());
    arguments.insert(arguments.begin() + 2, {"--outputs", descriptor});
  }
  const SideSaid one = run_side(arguments, command.timeout_seconds);
  const nlohmann::json& said = one.said;
  if (said.contains("version")) side->version = said["version"].get<std::string>();
  for (const Metric& metric : kMetrics) {
    if (said.contains(metric.key)) {
      side->samples[metric.key].push_back(said[metric.key].get<double>());
    }
  }
  if (said.contains("pack")) side->pack = said["pack"];
  side->free_dims = strings_in(said, "free_dims");
  side->output_names = strings_in(said, "output_names");
  if (!one.error.empty()) {
    side->stage = one.stage;
    side->error = one.error;
    side->exit_code = one.exit_code;
    const bool is_usage = side->exit_code == kExitUsage;
    if (is_usage || side->stage == "start") {  // every model would say so
      throw CliError(is_usage ? kExitUsage : kExitCannotRun, side->error);
    }
    return;
  }
  if (wants_outputs) side->outputs = unpack_values(file.read());
}

// ---- One model --------------------------------------------------------------------------------

std::array<Side, 2> make_sides(const CommonOptions& common, const CompareCommand& command,
                               bool strict) {
  std::array<Side, 2> sides;
  const auto add_config = [](const std::vector<std::string>& config, Side* side) {
    for (const std::string& entry : config) {
      side->options.insert(side->options.end(), {"--config", entry});
    }
  };
  const auto add_library = [](const std::string& library, Side* side) {
    if (!library.empty()) side->options.insert(side->options.end(), {"--library", library});
  };
  sides[0].label = "Folio";
  sides[0].backend = "folio";
  add_library(common.library, &sides[0]);
  add_config(command.session.config, &sides[0]);
  const bool is_ort = command.against == "ort";
  sides[1].label = is_ort ? "ORT" : "other";
  sides[1].backend = command.against;
  if (is_ort) {
    sides[1].options = {"--ort", command.ort};
  } else {
    add_library(command.against_library.empty() ? common.library : command.against_library,
                &sides[1]);
  }
  add_config(command.against_config, &sides[1]);
  for (Side& side : sides) {
    if (strict) side.options.push_back("--strict-names");
  }
  return sides;
}

void compare_outputs(const CompareCommand& command, Comparison* c) {
  const auto& [mine, other] = c->sides;
  if (mine.outputs.size() != other.outputs.size()) {
    c->verdict = Verdict::kDiffer;
    c->reasons.push_back(std::to_string(mine.outputs.size()) + " outputs, " + other.label +
                         " has " + std::to_string(other.outputs.size()));
    return;
  }
  const Tolerances tolerances(c->model.path.parent_path(), command.rtol, command.atol);
  for (size_t i = 0; i < mine.outputs.size(); ++i) {
    const std::string& name = mine.output_names.at(i);
    ComparedOutput output = {name, describe(other.outputs[i]), {}};
    output.distance = distance(name, mine.outputs[i], other.outputs[i], tolerances.of(name));
    if (!output.distance.difference.empty()) {
      c->verdict = Verdict::kDiffer;
      c->reasons.push_back(output.distance.difference);
    }
    c->outputs.push_back(std::move(output));
  }
}

void note_failures(Comparison* c) {
  const bool is_unsupported = c->sides[0].exit_code == kExitUnsupported;
  c->verdict = is_unsupported ? Verdict::kUnsupported : Verdict::kFailed;
  for (const Side& side : c->sides) {
    if (side.error.empty()) continue;
    const std::string stage = side.stage.empty() ? "" : side.stage + ": ";
    c->reasons.push_back(side.label + ": " + stage + side.error);
  }
}

class Progress {
 public:
  explicit Progress(size_t models) : models_(models), is_tty_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(size_t model, const std::string& name, uint32_t round, uint32_t rounds) const {
    if (!is_tty_) return;
    std::fprintf(stderr, "\r\033[K%zu of %zu, round %u of %u: %s", model + 1, models_, round + 1,
                 rounds, one_line(name).c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (is_tty_) std::fputs("\r\033[K", stderr);
  }

 private:
  size_t models_;
  bool is_tty_;
};

Comparison compare_model(const CommonOptions& common, const CompareCommand& command,
                         const std::vector<ComparedModel>& models, size_t index,
                         const Progress& progress) {
  Comparison c;
  c.model = models[index];
  c.sides = make_sides(common, command, models.size() == 1);
  bool failed = false;
  for (uint32_t round = 0; round < command.rounds && !failed; ++round) {
    progress.show(index, c.model.name, round, command.rounds);
    for (size_t turn = 0; turn < 2; ++turn) {
      // Who goes first has the colder machine: in turns.
      Side& side = c.sides[(turn + round) % 2];
      measure_once(command, c.model, round == 0, &side);
      failed = failed || !side.error.empty();
    }
  }
  if (failed) {
    note_failures(&c);
  } else {
    compare_outputs(command, &c);
  }
  for (Side& side : c.sides) side.outputs.clear();
  return c;
}

// ---- All models -------------------------------------------------------------------------------

std::string data_set_beside(const fs::path& model, const CompareCommand& command) {
  const fs::path set = model.parent_path() / "test_data_set_0";
  std::error_code error;
  const bool may = !command.made_up && command.inputs.empty();
  return may && fs::is_directory(set, error) ? set.string() : "";
}

std::vector<ComparedModel> find_models(const CompareCommand& command) {
  std::vector<ComparedModel> models;
  for (const std::string& given : command.models) {
    std::error_code error;
    if (!fs::is_directory(given, error)) {
      models.push_back({given, given, data_set_beside(given, command)});
      continue;
    }
    const fs::path folder = fs::canonical(given, error).filename();
    for (const fs::path& model : models_below(given)) {
      fs::path name = model.lexically_relative(given);
      if (!name.has_parent_path()) name = folder / name;
      const bool is_plain = name.filename() == "model.onnx";
      models.push_back({model, is_plain ? name.parent_path().string() : name.string(),
                        data_set_beside(model, command)});
    }
  }
  return models;
}

void check_usage(const CompareCommand& command) {
  if (command.against == "ort" && command.ort.empty()) {
    throw CliError(kExitUsage,
                   "compare needs ONNX Runtime's library: --ort LIB, or FOLIO_ORT_LIBRARY; or "
                   "--against folio");
  }
  if (command.against == "ort" && !command.against_library.empty()) {
    throw CliError(kExitUsage, "--against-library needs --against folio");
  }
  for (const std::string& entry : command.against_config) {
    split_assignment("--against-config", entry, SplitAt::kFirst);
  }
  // Bad options are refused before the first process: measuring may take an hour.
  const fs::path folder = fs::path(command.plot).parent_path();
  std::error_code error;
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    throw CliError(kExitUsage, "--plot " + command.plot + ": " + folder.string() + " is no folder");
  }
  const InputFiles files(command.inputs);
  const RandomInputs made_up(command.input);
}

ExitCode exit_code_of(const std::vector<Comparison>& all) {
  const auto has = [&all](Verdict verdict) {
    return std::any_of(all.begin(), all.end(),
                       [verdict](const Comparison& c) { return c.verdict == verdict; });
  };
  if (has(Verdict::kDiffer)) return kExitTestFailed;
  if (has(Verdict::kFailed)) return kExitCannotRun;
  return has(Verdict::kUnsupported) ? kExitUnsupported : kExitOk;
}

}  // namespace

int run_compare(const CommonOptions& common, const CompareCommand& command) {
  check_usage(command);
  const std::vector<ComparedModel> models = find_models(command);
  if (models.empty()) throw CliError(kExitUsage, "no model.onnx or model.ort found");
  if (models.size() > 1 && !command.inputs.empty()) {
    throw CliError(kExitUsage,
                   "--input is for one model, and " + std::to_string(models.size()) + " are given");
  }
  std::vector<Comparison> all;
  const Progress progress(models.size());
  for (size_t i = 0; i < models.size(); ++i) {
    all.push_back(compare_model(common, command, models, i, progress));
    if (!command.json) continue;
    progress.clear();
    print_comparison_json(command, all.back());
  }
  progress.clear();
  if (!command.json) print_comparisons(command, all);
  if (!command.plot.empty()) plot_comparisons(command, all);
  return exit_code_of(all);
}

}  // namespace folio_cli
