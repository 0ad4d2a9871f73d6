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
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/folio/cli.h"
#include "tools/folio/compare.h"
#include "tools/folio/feeds.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/side_process.h"
#include "tools/folio/table.h"
#include "tools/folio/test_layout.h"
#include "tools/folio/timing.h"
#include "tools/folio/wire.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Metric {
  const char* key;
  const char* title;
  bool is_kib;
};
constexpr std::array<Metric, 9> kMetrics = {{{"init_ms", "library start, ms", false},
                                             {"load_ms", "load, ms", false},
                                             {"first_run_ms", "first run, ms", false},
                                             {"run_p50_ms", "p50, ms", false},
                                             {"run_min_ms", "fastest run, ms", false},
                                             {"anon_init", "anonymous, started, MB", true},
                                             {"anon_load", "anonymous, loaded, MB", true},
                                             {"anon_run", "anonymous, after runs, MB", true},
                                             {"peak_anon_load", "peak while loading, MB", true}}};

struct Model {
  fs::path path;
  std::string name;      // short, for tables
  std::string data_set;  // "": inputs are made up
};

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

struct Side {
  std::string label;    // for people
  std::string backend;  // for programs
  std::vector<std::string> options;
  std::string version;
  std::map<std::string, std::vector<double>> samples;  // of each metric, one per round
  nlohmann::json pack;                                 // of the last round; null: has no packs
  std::vector<std::string> free_dims;
  std::vector<std::string> output_names;
  std::vector<HostValue> outputs;
  std::string stage;  // where it failed
  std::string error;  // "": it did not
  int exit_code = kExitOk;

  double median(const std::string& key) const {
    const auto found = samples.find(key);
    if (found == samples.end()) return std::nan("");
    return median_of(found->second);
  }
};

std::vector<std::string> arguments_of(const CompareCommand& command, const Model& model,
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
void measure_once(const CompareCommand& command, const Model& model, bool wants_outputs,
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

struct Output {
  std::string name;
  std::string what;  // type and shape
  Distance distance;
};

enum class Verdict { kAgree, kDiffer, kFailed, kUnsupported };

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAgree:
      return "agree";
    case Verdict::kDiffer:
      return "differ";
    case Verdict::kFailed:
      return "failed";
    default:
      return "unsupported";
  }
}

struct Comparison {
  Model model;
  std::array<Side, 2> sides;  // Folio and the other one
  std::vector<Output> outputs;
  Verdict verdict = Verdict::kAgree;
  std::vector<std::string> reasons;

  double ratio(const std::string& key) const {
    const double other = sides[1].median(key);
    return other > 0 ? sides[0].median(key) / other : std::nan("");
  }

  // The output that is furthest off, by its own magnitude; nullptr: no numbers.
  const Output* worst() const {
    const Output* result = nullptr;
    for (const Output& output : outputs) {
      if (result == nullptr || scaled(output) > scaled(*result)) result = &output;
    }
    return result;
  }

  // The largest difference to the largest value.
  static double scaled(const Output& output) {
    const Distance& d = output.distance;
    return d.absolute == 0 ? 0 : d.absolute / d.magnitude;
  }
};

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
    Output output = {name, describe(other.outputs[i]), {}};
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
                         const std::vector<Model>& models, size_t index, const Progress& progress) {
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

// ---- Output -----------------------------------------------------------------------------------

// JSON has no numbers for what is not finite.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json side_json(const Side& side) {
  Json json = {{"backend", side.backend}, {"version", side.version}};
  for (const Metric& metric : kMetrics) json[metric.key] = finite(side.median(metric.key));
  json["pack"] = side.pack;
  json["stage"] = side.error.empty() ? Json(nullptr) : Json(side.stage);
  json["error"] = side.error.empty() ? Json(nullptr) : Json(side.error);
  return json;
}

std::string inputs_text(const CompareCommand& command, const Model& model) {
  if (!model.data_set.empty()) return model.data_set;
  return command.inputs.empty() ? "made up" : list_text(command.inputs);
}

Json to_json(const CompareCommand& command, const Comparison& c) {
  Json json = {{"model", c.model.path.string()},
               {"result", verdict_name(c.verdict)},
               {"reasons", c.reasons},
               {"inputs", inputs_text(command, c.model)},
               {"free_dims", c.sides[0].free_dims},
               {"threads", command.session.threads},
               {"rounds", command.rounds},
               {"iterations", command.iterations}};
  json["folio"] = side_json(c.sides[0]);
  json["against"] = side_json(c.sides[1]);
  for (const Metric& metric : kMetrics) json["ratio"][metric.key] = finite(c.ratio(metric.key));
  json["outputs"] = Json::array();
  for (const Output& output : c.outputs) {
    const Distance& d = output.distance;
    json["outputs"].push_back({{"name", output.name},
                               {"type", output.what},
                               {"elements", d.elements},
                               {"beyond", d.beyond},
                               {"absolute", finite(d.absolute)},
                               {"absolute_at", d.absolute_at},
                               {"relative", finite(d.relative)},
                               {"relative_at", d.relative_at},
                               {"magnitude", d.magnitude},
                               {"cosine", finite(d.cosine)},
                               {"rows", d.rows},
                               {"same_top", d.same_top},
                               {"difference", d.difference}});
  }
  return json;
}

std::string or_dash(const char* format, double value) {
  return std::isnan(value) ? "-" : number_text(format, value);
}

std::string same_top_text(const Distance& d) {
  return d.rows == 0 ? "-" : std::to_string(d.same_top) + " of " + std::to_string(d.rows);
}

std::string metric_text(const Side& side, const Metric& metric) {
  const double value = side.median(metric.key);
  return metric.is_kib ? or_dash("%.1f", value / 1024) : or_dash("%.3f", value);
}

// What a reader must know of the numbers; each begins with a name if there are several models.
void print_notes(const Comparison& c, const std::string& prefix) {
  for (const std::string& reason : c.reasons) {
    std::printf("%s%s\n", prefix.c_str(), one_line(reason).c_str());
  }
  if (!c.sides[0].free_dims.empty()) {
    std::printf("%sfree dimensions, taken as 1 (see --dim): %s\n", prefix.c_str(),
                one_line(list_text(c.sides[0].free_dims)).c_str());
  }
}

void print_pack_use(const Side& side, const std::string& prefix) {
  if (side.pack.is_null()) return;
  std::printf("%s%s: %s\n", prefix.c_str(), side.label.c_str(), pack_use_text(side.pack).c_str());
}

void print_one(const CompareCommand& command, const Comparison& c) {
  using Align = Table::Align;
  const uint32_t threads = command.session.threads;
  std::printf("%s, threads: %s, rounds: %u, inputs: %s\n\n", one_line(c.model.name).c_str(),
              threads == 0 ? "each side's choice" : std::to_string(threads).c_str(), command.rounds,
              one_line(inputs_text(command, c.model)).c_str());
  Table table({{"", Align::kLeft},
               {c.sides[0].label + " " + c.sides[0].version},
               {c.sides[1].label + " " + c.sides[1].version},
               {"ratio"}});
  for (const Metric& metric : kMetrics) {
    table.add({metric.title, metric_text(c.sides[0], metric), metric_text(c.sides[1], metric),
               or_dash("%.2f", c.ratio(metric.key))});
  }
  std::printf("%s\n", table.text().c_str());
  for (const Side& side : c.sides) print_pack_use(side, "");
  if (!c.sides[0].pack.is_null()) std::printf("\n");
  if (!c.outputs.empty()) {
    Table outputs({{"output", Align::kLeft},
                   {"", Align::kLeft},
                   {"difference"},
                   {"at", Align::kLeft},
                   {"relative"},
                   {"at", Align::kLeft},
                   {"largest value"},
                   {"cosine"},
                   {"same top"},
                   {"beyond tolerance"}});
    for (const Output& output : c.outputs) {
      const Distance& d = output.distance;
      outputs.add({one_line(output.name), output.what, number_text("%.3g", d.absolute),
                   d.absolute_at, number_text("%.3g", d.relative), d.relative_at,
                   number_text("%.4g", d.magnitude), or_dash("%.6f", d.cosine), same_top_text(d),
                   std::to_string(d.beyond) + " of " + std::to_string(d.elements)});
    }
    std::printf("%s\n", outputs.text().c_str());
  }
  print_notes(c, "");
  std::printf("%s\n", verdict_name(c.verdict));
}

// The mean that treats 2 and 1/2 alike.
std::string mean_text(const std::vector<Comparison>& all, const char* key) {
  double sum = 0;
  size_t count = 0;
  for (const Comparison& c : all) {
    const double ratio = c.ratio(key);
    if (!(ratio > 0)) continue;
    sum += std::log(ratio);
    ++count;
  }
  return count == 0 ? "-" : number_text("%.2f", std::exp(sum / static_cast<double>(count)));
}

void print_many(const std::vector<Comparison>& all) {
  using Align = Table::Align;
  Table table({{"model", Align::kLeft},
               {"difference"},
               {"of largest"},
               {"cosine"},
               {"same top"},
               {"p50 ms"},
               {"ratio"},
               {"load ms"},
               {"ratio"},
               {"anon MB"},
               {"ratio"},
               {"peak ratio"},
               {"", Align::kLeft}});
  for (const Comparison& c : all) {
    const Output* worst = c.worst();
    const auto value = [&c](size_t metric) { return metric_text(c.sides[0], kMetrics[metric]); };
    const auto ratio = [&c](const char* key) { return or_dash("%.2f", c.ratio(key)); };
    table.add({one_line(c.model.name),
               worst == nullptr ? "-" : number_text("%.2g", worst->distance.absolute),
               worst == nullptr ? "-" : or_dash("%.2g", Comparison::scaled(*worst)),
               worst == nullptr ? "-" : or_dash("%.6f", worst->distance.cosine),
               worst == nullptr ? "-" : same_top_text(worst->distance), value(3),
               ratio("run_p50_ms"), value(1), ratio("load_ms"), value(6), ratio("anon_run"),
               ratio("peak_anon_load"), verdict_name(c.verdict)});
  }
  table.add({"geometric mean", "", "", "", "", "", mean_text(all, "run_p50_ms"), "",
             mean_text(all, "load_ms"), "", mean_text(all, "anon_run"),
             mean_text(all, "peak_anon_load"), ""});
  std::printf("%s\n", table.text().c_str());
  for (const Comparison& c : all) {
    const std::string prefix = one_line(c.model.name) + ": ";
    print_notes(c, prefix);
    for (const Side& side : c.sides) {
      // Packing in memory is what every load does, and no news.
      if (is_from_file(side.pack)) print_pack_use(side, prefix);
    }
  }
}

// ---- All models -------------------------------------------------------------------------------

std::string data_set_beside(const fs::path& model, const CompareCommand& command) {
  const fs::path set = model.parent_path() / "test_data_set_0";
  std::error_code error;
  const bool may = !command.made_up && command.inputs.empty();
  return may && fs::is_directory(set, error) ? set.string() : "";
}

std::vector<Model> find_models(const CompareCommand& command) {
  std::vector<Model> models;
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
  // Bad options are refused before the first process.
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
  const std::vector<Model> models = find_models(command);
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
    print_json(to_json(command, all.back()), JsonForm::kOneLine);
    std::fflush(stdout);
  }
  progress.clear();
  if (!command.json && all.size() == 1) print_one(command, all[0]);
  if (!command.json && all.size() > 1) print_many(all);
  return exit_code_of(all);
}

}  // namespace folio_cli
