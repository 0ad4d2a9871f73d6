// folio memory --modes: what the ways to load a model cost one process, in time and memory.
//
// Flow:    model, and the file of the other format beside it -> a pack file of each in a temporary
//          store -> rounds: one fresh process per way (folio compare-side), in turns -> medians.
// Owns:    the temporary folder.
// Threads: one.
// Errors:  a way that fails is a line under the table, and the exit code.
// PSS:     pages of files count by this process's share; other processes that have the same files
//          open make it smaller, so none should.

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/folio/bar_plot.h"
#include "tools/folio/child_process.h"
#include "tools/folio/cli.h"
#include "tools/folio/print_json.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/scratch_folder.h"
#include "tools/folio/side_process.h"
#include "tools/folio/table.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint32_t kTimeoutSeconds = 600;
constexpr const char* kSampleUs = "1000";  // the fastest loads take milliseconds

// In the order of the table.
struct Metric {
  const char* key;  // as compare-side says it
  const char* title;
  bool is_kib;
};
constexpr Metric kMetrics[] = {{"load_ms", "load ms", false},
                               {"first_run_ms", "first run ms", false},
                               {"peak_anon_load", "anon peak", true},
                               {"anon_load", "anon loaded", true},
                               {"anon_run", "anon after runs", true},
                               {"pss_file_load", "PSS files loaded", true},
                               {"pss_file_run", "PSS files after runs", true},
                               {"vm_pte_run", "page tables", true}};

// A way to load a file, and what was measured of it.
struct Way {
  std::string runtime;  // Folio or ORT
  fs::path file;
  std::string name;
  std::vector<std::string> options;  // of compare-side
  std::string version;
  std::map<std::string, std::vector<double>> samples;  // of each metric, one per round
  std::string error;                                   // "": none
  int exit_code = kExitOk;

  double median(const char* key) const {
    const auto found = samples.find(key);
    return found == samples.end() ? std::nan("") : median_of(found->second);
  }
};

// The model, and the file of the other format that stands beside it under the same name.
std::vector<fs::path> files_of(const fs::path& model) {
  std::vector<fs::path> files = {model};
  const fs::path other = model.extension() == ".ort" ? ".onnx" : ".ort";
  fs::path sibling = model;
  sibling.replace_extension(other);
  std::error_code error;
  if (fs::is_regular_file(sibling, error)) files.push_back(sibling);
  return files;
}

void add_config(const std::string& entry, std::vector<std::string>* options) {
  options->insert(options->end(), {"--config", entry});
}

std::vector<std::string> folio_options(const CommonOptions& common, const MemoryCommand& command) {
  std::vector<std::string> options;
  if (!common.library.empty()) options.insert(options.end(), {"--library", common.library});
  for (const std::string& entry : command.session.config) add_config(entry, &options);
  add_config("folio.pack_sidecar=off", &options);  // only the row of pack files has one
  return options;
}

// Fills the store, in a process of its own: what packing leaves in memory is not measured.
void pack(const MemoryCommand& command, const fs::path& model, const std::string& store,
          const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {executable_path(), "pack", "--json", "--store", store};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--threads", std::to_string(command.session.threads)});
  arguments.insert(arguments.end(), {"--", model.string()});
  ChildProcess child(arguments[0], arguments);
  child.read_all();
  const int status = child.end();
  if (status != 0) throw error_of_child(status);
}

void add_folio_ways(const CommonOptions& common, const MemoryCommand& command,
                    const fs::path& model, const std::string& store, std::vector<Way>* ways) {
  const std::vector<std::string> options = folio_options(common, command);
  pack(command, model, store, options);
  const std::pair<const char*, std::string> modes[] = {
      {"read", "folio.model_loading=read"},
      {"map", "folio.model_loading=map"},
      {"map + packed", "folio.pack_store=" + store}};
  for (const auto& [name, entry] : modes) {
    Way way{"Folio", model, name, options, "", {}, "", kExitOk};
    add_config(entry, &way.options);
    ways->push_back(std::move(way));
  }
}

void add_ort_ways(const MemoryCommand& command, const fs::path& model, std::vector<Way>* ways) {
  const char* const unpacked = "session.disable_prepacking=1";
  std::vector<std::pair<const char*, std::vector<const char*>>> modes = {
      {"default", {}}, {"prepacking off", {unpacked}}};
  if (model.extension() == ".ort") {
    const char* const map = "session.use_memory_mapped_ort_model=1";
    const char* const in_place = "session.use_ort_model_bytes_for_initializers=1";
    modes.push_back({"map", {map, in_place}});
    modes.push_back({"map, prepacking off", {map, in_place, unpacked}});
  }
  for (const auto& [name, entries] : modes) {
    Way way{"ORT", model, name, {"--ort", command.ort}, "", {}, "", kExitOk};
    for (const char* entry : entries) add_config(entry, &way.options);
    ways->push_back(std::move(way));
  }
}

void measure_once(const MemoryCommand& command, Way* way) {
  std::vector<std::string> arguments = {executable_path(), "compare-side", "--strict-names"};
  const auto add = [&arguments](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  arguments.insert(arguments.end(), way->options.begin(), way->options.end());
  add("--sample-us", kSampleUs);
  add("--warmup", "0");
  add("--iterations", "1");
  add("--timeout", std::to_string(kTimeoutSeconds));
  add("--threads", std::to_string(command.session.threads));
  add("--seed", std::to_string(command.input.seed));
  for (const std::string& dim : command.input.dims) add("--dim", dim);
  for (const std::string& range : command.input.ranges) add("--range", range);
  add("--", way->file.string());
  const SideSaid side = run_side(arguments, kTimeoutSeconds);
  if (side.exit_code == kExitUsage) throw CliError(kExitUsage, side.error);
  if (side.said.contains("version")) way->version = side.said["version"].get<std::string>();
  if (!side.error.empty()) {
    way->error = (side.stage.empty() ? "" : side.stage + ": ") + side.error;
    way->exit_code = side.exit_code;
    way->samples.clear();
    return;
  }
  for (const Metric& metric : kMetrics) {
    way->samples[metric.key].push_back(side.said.at(metric.key).get<double>());
  }
}

void measure(const MemoryCommand& command, std::vector<Way>* ways) {
  const bool is_tty = isatty(STDERR_FILENO) != 0;
  for (uint32_t round = 0; round < command.rounds; ++round) {
    for (size_t turn = 0; turn < ways->size(); ++turn) {
      // Who goes first has the colder machine: in turns.
      Way& way = (*ways)[(turn + round) % ways->size()];
      if (!way.error.empty()) continue;
      if (is_tty) {
        std::fprintf(stderr, "\r\033[Kround %u of %u: %s %s", round + 1, command.rounds,
                     way.runtime.c_str(), way.name.c_str());
      }
      measure_once(command, &way);
    }
  }
  if (is_tty) std::fputs("\r\033[K", stderr);
}

// ---- Output -----------------------------------------------------------------------------------

std::string format_of(const Way& way) { return way.file.extension() == ".ort" ? "ort" : "onnx"; }

Json to_json(const MemoryCommand& command, const std::vector<Way>& ways) {
  Json json = {
      {"model", command.model}, {"rounds", command.rounds}, {"threads", command.session.threads}};
  json["modes"] = Json::array();
  for (const Way& way : ways) {
    Json row = {{"runtime", way.runtime == "ORT" ? "ort" : "folio"},
                {"version", way.version},
                {"file", way.file.string()},
                {"format", format_of(way)},
                {"mode", way.name}};
    for (const Metric& metric : kMetrics) {
      const double value = way.median(metric.key);
      row[metric.key] = std::isnan(value) ? Json(nullptr) : Json(value);
    }
    row["error"] = way.error.empty() ? Json(nullptr) : Json(way.error);
    json["modes"].push_back(std::move(row));
  }
  return json;
}

void print_table(const MemoryCommand& command, const std::vector<Way>& ways) {
  std::printf("%s, rounds: %u, medians; MB of one process\n\n", one_line(command.model).c_str(),
              command.rounds);
  using Align = Table::Align;
  std::vector<Table::Column> columns = {
      {"", Align::kLeft}, {"file", Align::kLeft}, {"mode", Align::kLeft}};
  for (const Metric& metric : kMetrics) columns.push_back({metric.title});
  Table table(columns);
  for (const Way& way : ways) {
    std::vector<std::string> cells = {way.runtime + " " + way.version, format_of(way), way.name};
    for (const Metric& metric : kMetrics) {
      const double value = way.median(metric.key);
      cells.push_back(
          std::isnan(value) ? "-" : number_text("%.1f", metric.is_kib ? value / 1024 : value));
    }
    table.add(std::move(cells));
  }
  std::printf("%s", table.text().c_str());
  for (const Way& way : ways) {
    if (way.error.empty()) continue;
    std::printf("%s %s, %s: %s\n", way.runtime.c_str(), format_of(way).c_str(), way.name.c_str(),
                one_line(way.error).c_str());
  }
}

void write_plot(const MemoryCommand& command, const std::vector<Way>& ways) {
  BarPlot plot;
  plot.title = fs::path(command.model).filename().string() + ": memory of one process after runs";
  plot.x_title = "how the model is loaded";
  plot.y_title = "MB";
  plot.series = {"private to the process (anonymous)", "files (PSS): shared by all who map them"};
  for (const Way& way : ways) {
    if (!way.error.empty()) continue;
    plot.bars.push_back({(way.runtime == "ORT" ? "ORT " : "") + format_of(way) + "\n" + way.name,
                         {way.median("anon_run") / 1024, way.median("pss_file_run") / 1024}});
  }
  write_file(command.plot, to_svg(plot));
}

}  // namespace

int run_memory_modes(const CommonOptions& common, const MemoryCommand& command) {
  const RandomInputs checked(command.input);  // refuses bad options before the first process
  const ScratchFolder folder;
  if (folder.file("").find(':') != std::string::npos) {  // folio.pack_store would be two folders
    throw CliError(kExitCannotRun, "'" + folder.file("") +
                                       "' cannot be a pack store's name, which has no colon; set "
                                       "TMPDIR to a folder without one");
  }
  std::vector<Way> ways;
  const std::vector<fs::path> files = files_of(command.model);
  for (const fs::path& file : files) {
    const std::string store = folder.file(std::to_string(ways.size()));
    add_folio_ways(common, command, file, store, &ways);
  }
  if (!command.ort.empty()) {
    for (const fs::path& file : files) add_ort_ways(command, file, &ways);
  }
  measure(command, &ways);
  if (!command.plot.empty()) write_plot(command, ways);
  if (command.json) {
    print_json(to_json(command, ways), JsonForm::kIndented);
  } else {
    print_table(command, ways);
  }
  for (const Way& way : ways) {
    if (way.exit_code != kExitOk) return way.exit_code;
  }
  return kExitOk;
}

}  // namespace folio_cli
