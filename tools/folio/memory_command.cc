// folio memory: what a model costs in 1, 2 ... N processes that all have it open.
//
// Flow:    starts itself as `folio bench --hold`, one process after the other; when a process says
//          SESSION_READY, reads the PSS of all that run.
// Owns:    the child processes; their input pipe is their life line.
// PSS:     shared pages count for each process by its share, so that the sum over processes is what
//          they take of the machine.

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "tools/folio/bar_plot.h"
#include "tools/folio/child_process.h"
#include "tools/folio/cli.h"
#include "tools/folio/print_json.h"
#include "tools/folio/process_memory.h"
#include "tools/folio/table.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

[[noreturn]] void fail(const std::string& message) { throw CliError(kExitCannotRun, message); }

// A child that holds the model open until its input ends.
class Holder {
 public:
  Holder(const std::string& executable, const std::vector<std::string>& arguments)
      : child_(executable, arguments) {}

  // What it prints of itself before SESSION_READY. Its own message is on standard error already.
  nlohmann::json wait_ready() {
    const std::string first = child_.read_line();
    const std::string second = child_.read_line();
    if (second != "SESSION_READY") {
      throw error_of_child(child_.end());
    }
    return nlohmann::json::parse(first, nullptr, false);
  }

  ProcessMemory memory() const { return read_process_memory(std::to_string(child_.pid())); }
  long page_tables() const { return read_status(std::to_string(child_.pid()), "VmPTE"); }

 private:
  ChildProcess child_;
};

struct Row {
  uint32_t processes = 0;
  ProcessMemory sum;
  long page_tables = 0;
  long one_more_pss = 0;
  double load_ms = 0;  // of the last process
  double first_run_ms = 0;
};

std::vector<std::string> bench_arguments(const std::string& executable, const CommonOptions& common,
                                         const MemoryCommand& command) {
  std::vector<std::string> arguments = {executable, "bench", "--json",       "--hold",
                                        "--warmup", "0",     "--iterations", "1"};
  const auto add = [&arguments](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  add("--sessions", std::to_string(command.sessions));
  add("--threads", std::to_string(command.session.threads));
  add("--seed", std::to_string(command.input.seed));
  if (!common.library.empty()) add("--library", common.library);
  for (const std::string& entry : command.session.config) add("--config", entry);
  for (const std::string& dim : command.input.dims) add("--dim", dim);
  for (const std::string& range : command.input.ranges) add("--range", range);
  arguments.push_back("--");
  arguments.push_back(command.model);
  return arguments;
}

double number_in(const nlohmann::json& object, const char* key) {
  const bool found = object.is_object() && object.contains(key) && object[key].is_number();
  return found ? object[key].get<double>() : 0;
}

std::vector<Row> measure(const CommonOptions& common, const MemoryCommand& command) {
  const std::string executable = executable_path();
  const std::vector<std::string> arguments = bench_arguments(executable, common, command);
  std::vector<std::unique_ptr<Holder>> holders;
  std::vector<Row> rows;
  const bool is_tty = isatty(STDERR_FILENO) != 0;
  for (uint32_t i = 1; i <= command.processes; ++i) {
    if (is_tty) std::fprintf(stderr, "\rprocess %u of %u", i, command.processes);
    holders.push_back(std::make_unique<Holder>(executable, arguments));
    const nlohmann::json said = holders.back()->wait_ready();
    Row row;
    row.processes = i;
    for (const auto& holder : holders) {
      row.sum.add(holder->memory());
      row.page_tables += holder->page_tables();
    }
    if (row.sum.pss < 0) fail("the kernel does not say the PSS of processes");
    row.one_more_pss = row.sum.pss - (rows.empty() ? 0 : rows.back().sum.pss);
    row.load_ms = number_in(said, "load_ms");
    row.first_run_ms = number_in(said, "first_run_ms");
    rows.push_back(row);
  }
  if (is_tty) std::fputs("\r\033[K", stderr);
  return rows;
}

nlohmann::ordered_json row_json(const Row& row) {
  return {{"processes", row.processes},
          {"rss", row.sum.rss},
          {"pss", row.sum.pss},
          {"pss_anon", row.sum.pss_anon},
          {"pss_file", row.sum.pss_file},
          {"private_clean", row.sum.private_clean},
          {"private_dirty", row.sum.private_dirty},
          {"shared_clean", row.sum.shared_clean},
          {"shared_dirty", row.sum.shared_dirty},
          {"anon", row.sum.anon},
          {"vm_pte", row.page_tables},
          {"one_more_pss", row.one_more_pss},
          {"load_ms", row.load_ms},
          {"first_run_ms", row.first_run_ms}};
}

double megabytes(long kib) { return static_cast<double>(std::max(kib, 0L)) / 1024; }

void print_table(const MemoryCommand& command, const std::vector<Row>& rows) {
  const auto mb = [](long kib) { return number_text("%.1f", megabytes(kib)); };
  std::printf("%s, %u session%s per process, each run once; MB, sums over the processes\n\n",
              one_line(command.model).c_str(), command.sessions, command.sessions == 1 ? "" : "s");
  Table table({{"processes"},
               {"RSS"},
               {"PSS"},
               {"PSS anon"},
               {"PSS file"},
               {"private dirty"},
               {"shared clean"},
               {"page tables"},
               {"one more PSS"},
               {"load ms"},
               {"first run ms"}});
  for (const Row& row : rows) {
    table.add({std::to_string(row.processes), mb(row.sum.rss), mb(row.sum.pss),
               mb(row.sum.pss_anon), mb(row.sum.pss_file), mb(row.sum.private_dirty),
               mb(row.sum.shared_clean), mb(row.page_tables),
               number_text("%.1f", static_cast<double>(row.one_more_pss) / 1024),
               number_text("%.1f", row.load_ms), number_text("%.1f", row.first_run_ms)});
  }
  std::printf("%s", table.text().c_str());
}

void write_plot(const MemoryCommand& command, const std::vector<Row>& rows) {
  BarPlot plot;
  plot.title = std::filesystem::path(command.model).filename().string() +
               ": memory of all processes together (PSS)";
  plot.x_title = "processes";
  plot.y_title = "MB";
  plot.series = {"private to the processes (anonymous)", "page cache, shared (files)"};
  for (const Row& row : rows) {
    plot.bars.push_back(
        {std::to_string(row.processes),
         {megabytes(row.sum.pss_anon), megabytes(row.sum.pss - std::max(row.sum.pss_anon, 0L))}});
  }
  write_file(command.plot, to_svg(plot));
}

}  // namespace

int run_memory(const CommonOptions& common, const MemoryCommand& command) {
  if (command.modes) return run_memory_modes(common, command);
  const std::vector<Row> rows = measure(common, command);
  if (!command.plot.empty()) write_plot(command, rows);
  if (!command.json) {
    print_table(command, rows);
    return kExitOk;
  }
  nlohmann::ordered_json json = {{"model", command.model}, {"sessions", command.sessions}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) json["rows"].push_back(row_json(row));
  print_json(json, JsonForm::kIndented);
  return kExitOk;
}

}  // namespace folio_cli
