// folio bench: what a model costs to load and to run, in time and memory.
//
// Flow:    start of the library -> loads -> inputs (not timed) -> first runs -> warm-up -> timed
// runs. JSON:    one object on one line, whose fields are named and measured as ONNX Runtime's
// bench does
//          it, so that the two can be put side by side. Memory in KiB, times in ms.
// Threads: one, and during the loads another that watches the peak of anonymous memory.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "tools/folio/cli.h"
#include "tools/folio/feeds.h"
#include "tools/folio/host_value.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/process_memory.h"
#include "tools/folio/progress_line.h"
#include "tools/folio/run_profile.h"
#include "tools/folio/scratch_folder.h"
#include "tools/folio/table.h"
#include "tools/folio/tensor_pb.h"
#include "tools/folio/timing.h"

namespace folio_cli {

namespace {

struct Faults {
  long minor = 0;
  long major = 0;
};
Faults faults_now() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_minflt, usage.ru_majflt};
}

struct BenchResult {
  double init_ms = 0;
  double load_ms = 0;
  double load_cpu_ms = 0;
  double first_load_ms = 0;
  double first_run_ms = 0;
  double pack_wait_ms = 0;     // until what was left after the first runs was packed
  std::vector<double> run_ms;  // sorted
  size_t out_count = 0;
  double out_sum = 0;
  double out_abs = 0;
  ProcessMemory at_init, at_first, at_load, at_run;
  long peak_rss_load = 0;
  long peak_anon_load = 0;
  long peak_rss = 0;
  long vm_pte = 0;
  Faults load_faults;  // counts of the phase
  Faults run_faults;
  nlohmann::ordered_json pack;  // pack_use_json
  uint64_t arena_bytes = 0;
  uint64_t planned_bytes = 0;  // arena of a run of the first session
  uint64_t live_bytes = 0;     // below which no arena can be
  std::string arithmetic;
  uint32_t threads = 0;
  std::optional<RunProfile> profile;
};

std::vector<std::string> output_names_of(const folio::Session& session) {
  std::vector<std::string> names;
  for (const folio::ValueInfo& info : session.outputs()) names.push_back(info.name);
  return names;
}

struct Bench {
  folio::Session session;
  std::vector<folio::Value> outputs;

  double timed_run(const Feeds& feeds, const std::vector<std::string>& output_names) {
    const double start = wall_ms();
    outputs.clear();
    outputs = session.run(feeds.inputs, output_names);
    return wall_ms() - start;
  }
};

// The processes of folio memory hold.
ProgressLine::On progress_of(const BenchCommand& command) {
  return command.hold ? ProgressLine::On::kNothing : ProgressLine::On::kTerminal;
}

// `trace`: what the first session's trace begins with; "": it makes none.
std::vector<Bench> load(const BenchCommand& command, const std::string& trace,
                        BenchResult* result) {
  folio::SessionOptions options = make_session_options(command.session);
  folio::SessionOptions of_first = make_session_options(command.session);
  if (!trace.empty()) of_first.profile(trace);
  std::vector<Bench> benches;
  ProgressLine line("loading " + command.model, progress_of(command));
  const auto show = [&](const std::string&, double fraction) {
    return line.show((static_cast<double>(benches.size()) + fraction) / command.sessions);
  };
  if (line.is_watched()) {  // else the library calls nothing while it is measured
    options.progress(show);
    of_first.progress(show);
  }
  benches.reserve(command.sessions);
  reset_peak_rss();
  PeakAnon peak(command.sample_us);
  const Faults before = faults_now();
  const double start = wall_ms();
  const double cpu_start = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
  for (uint32_t i = 0; i < command.sessions; ++i) {
    benches.push_back({folio::Session(command.model, i == 0 ? of_first : options), {}});
    if (i != 0) continue;
    result->first_load_ms = wall_ms() - start;
    if (command.sessions > 1) result->at_first = read_process_memory("self");
  }
  result->load_ms = wall_ms() - start;
  result->load_cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
  const Faults after = faults_now();
  result->load_faults = {after.minor - before.minor, after.major - before.major};
  peak.stop();
  result->peak_rss_load = read_status("self", "VmHWM");
  result->at_load = read_process_memory("self");
  peak.note(result->at_load.anon);
  result->peak_anon_load = peak.peak();
  return benches;
}

void sum_output(const Bench& bench, BenchResult* result) {
  if (bench.outputs.empty() || bench.outputs[0].empty()) return;
  const folio::Value& output = bench.outputs[0];
  if (output.kind() != FOLIO_KIND_TENSOR) return;
  result->out_count = output.element_count();
  if (output.type() != FOLIO_FLOAT) return;
  const float* elements = output.as<float>();
  for (size_t i = 0; i < result->out_count; ++i) {
    result->out_sum += elements[i];
    result->out_abs += std::fabs(static_cast<double>(elements[i]));
  }
}

void wait_packed(std::vector<Bench>* benches, BenchResult* result) {
  const double start = wall_ms();
  for (Bench& bench : *benches) bench.session.wait_packed();
  result->pack_wait_ms = wall_ms() - start;
}

void run_all(const BenchCommand& command, const FeedSource& source, std::vector<Bench>* benches,
             BenchResult* result) {
  // All sessions are of one model: the same inputs and outputs.
  const Feeds feeds = source.make(benches->front().session);
  const std::vector<std::string> names = output_names_of(benches->front().session);
  ProgressLine line("running " + command.model, progress_of(command));
  for (Bench& bench : *benches) {
    const double ms = bench.timed_run(feeds, names);
    if (&bench == &benches->front()) result->first_run_ms = ms;
    line.show(0);
  }
  wait_packed(benches, result);
  Bench& first = benches->front();
  for (uint32_t i = 0; i < command.warmup; ++i) first.timed_run(feeds, names);
  const double start = wall_ms();
  const auto fraction_done = [&]() -> double {
    const auto count = static_cast<double>(result->run_ms.size());
    if (command.seconds <= 0) return count / command.iterations;
    return count == 0 ? 0 : (wall_ms() - start) / (command.seconds * 1e3);
  };
  for (double done = 0; (done = fraction_done()) < 1; line.show(done)) {
    result->run_ms.push_back(first.timed_run(feeds, names));
  }
  sum_output(first, result);
  std::sort(result->run_ms.begin(), result->run_ms.end());
}

nlohmann::json parsed(const folio::MemoryReport& report) {
  return nlohmann::json::parse(report.json(), nullptr, false);
}

// What the library says of itself after the runs.
void ask_library(const Bench& bench, BenchResult* result) {
  result->pack = pack_use_json(bench.session);
  const folio::MemoryReport process = folio::Env().memory_report();
  for (const auto& entry : process.entries()) {
    if (entry.kind == "arena") result->arena_bytes += entry.bytes;
  }
  const folio::MemoryReport session = bench.session.memory_report();
  // Keys in --config and FOLIO_CONFIG count too, so that only the session knows.
  result->threads = folio::cpu_info().default_thread_count;
  const auto report = parsed(session);
  if (report.is_object()) {
    result->arithmetic = report.value("arithmetic", "");
    result->threads = report.value("threads", result->threads);
    const auto arena = report.value("arena", nlohmann::json::object());
    result->planned_bytes = arena.value("planned_bytes", uint64_t{0});
    result->live_bytes = arena.value("live_bytes", uint64_t{0});
  }
}

// The trace of the first session, which ends here; what it says of the timed runs.
void read_trace(const BenchCommand& command, Bench* bench, BenchResult* result) {
  const std::string trace = read_text(bench->session.end_profiling());
  if (!command.trace.empty()) write_file(command.trace, trace);
  if (!command.profile) return;
  const MachinePeaks peaks = measure_peaks(folio::cpu_info().level, result->threads);
  result->profile = read_profile(trace, command.warmup + 1, peaks);
  // Of a run as it was recorded: writing it down takes as long again where nodes are tiny.
  if (!result->profile->run_ms.empty()) result->run_ms = result->profile->run_ms;
}

// ---- Output -----------------------------------------------------------------------------------

nlohmann::ordered_json memory_json(const ProcessMemory& memory) {
  return {{"rss", memory.rss},
          {"pss", memory.pss},
          {"private_clean", memory.private_clean},
          {"private_dirty", memory.private_dirty},
          {"shared_clean", memory.shared_clean},
          {"shared_dirty", memory.shared_dirty},
          {"anon", memory.anon},
          {"file_huge", memory.file_huge}};
}

nlohmann::ordered_json to_json(const BenchCommand& command, const BenchResult& r) {
  nlohmann::ordered_json json;
  json["backend"] = "folio";
  json["version"] = folio::version_string();
  json["model"] = command.model;
  json["threads"] = r.threads;
  json["sessions"] = command.sessions;
  json["init_ms"] = rounded(r.init_ms);
  json["load_ms"] = rounded(r.load_ms);
  json["load_cpu_ms"] = rounded(r.load_cpu_ms);
  json["first_load_ms"] = rounded(r.first_load_ms);
  if (!r.run_ms.empty()) {
    json["first_run_ms"] = rounded(r.first_run_ms);
    json["pack_wait_ms"] = rounded(r.pack_wait_ms);
    json["ready_ms"] = rounded(r.init_ms + r.first_load_ms + r.first_run_ms);
    json["run_min_ms"] = rounded(r.run_ms.front());
    json["run_p50_ms"] = rounded(percentile(r.run_ms, 5));
    json["run_p90_ms"] = rounded(percentile(r.run_ms, 9));
    json["run_count"] = r.run_ms.size();
    json["out_count"] = r.out_count;
    json["out_sum"] = r.out_sum;  // null: not finite
    json["out_abs"] = r.out_abs;
  }
  json["mem_init"] = memory_json(r.at_init);
  if (command.sessions > 1) json["mem_first"] = memory_json(r.at_first);
  json["mem_load"] = memory_json(r.at_load);
  json["mem_run"] = memory_json(r.at_run);
  json["peak_rss_load"] = r.peak_rss_load;
  json["peak_anon_load"] = r.peak_anon_load;
  json["peak_rss"] = r.peak_rss;
  json["minflt_load"] = r.load_faults.minor;
  json["majflt_load"] = r.load_faults.major;
  json["minflt_run"] = r.run_faults.minor;
  json["majflt_run"] = r.run_faults.major;
  json["pack"] = r.pack;
  json["arena_bytes"] = r.arena_bytes;
  json["arena_planned_bytes"] = r.planned_bytes;
  json["arena_live_bytes"] = r.live_bytes;
  json["vm_pte"] = r.vm_pte;
  json["arithmetic"] = r.arithmetic;
  if (r.profile) json["profile"] = profile_json(*r.profile);
  return json;
}

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

std::string kib_text(long kib) {
  return kib < 0 ? "?" : number_text("%.1f", static_cast<double>(kib) / 1024);
}

void print_table(const BenchCommand& command, const BenchResult& r) {
  std::printf("%s, Folio %s, %u thread%s, %s\n\n", one_line(command.model).c_str(),
              folio::version_string().c_str(), r.threads, r.threads == 1 ? "" : "s",
              r.arithmetic.c_str());
  using Align = Table::Align;
  Table times({{"", Align::kLeft}, {"ms", Align::kRight}});
  const auto add = [&times](const std::string& name, double ms) {
    times.add({name, number_text("%.3f", ms)});
  };
  add("library start", r.init_ms);
  if (command.sessions == 1) {
    add("load", r.load_ms);
  } else {
    add("load, first session", r.first_load_ms);
    add("load, all " + std::to_string(command.sessions) + " sessions", r.load_ms);
  }
  if (!r.run_ms.empty()) {
    add("first run", r.first_run_ms);
    add("packed after", r.pack_wait_ms);
    const std::string count = " of " + std::to_string(r.run_ms.size()) + " runs";
    add("fastest" + count, r.run_ms.front());
    add("p50", percentile(r.run_ms, 5));
    add("p90", percentile(r.run_ms, 9));
  }
  std::printf("%s\n", times.text().c_str());

  Table memory({{"MB", Align::kLeft}, {"RSS"}, {"PSS"}, {"anonymous"}, {"private dirty"}});
  const auto add_memory = [&memory](const char* name, const ProcessMemory& m) {
    memory.add(
        {name, kib_text(m.rss), kib_text(m.pss), kib_text(m.anon), kib_text(m.private_dirty)});
  };
  add_memory("library started", r.at_init);
  add_memory("loaded", r.at_load);
  if (!r.run_ms.empty()) add_memory("after runs", r.at_run);
  std::printf("%s\n", memory.text().c_str());
  const ProcessMemory& last = r.run_ms.empty() ? r.at_load : r.at_run;
  if (last.file_huge >= 0) {
    std::printf("pages of files: %s MB, of which %s MB huge\n",
                kib_text(last.rss - last.anon).c_str(), kib_text(last.file_huge).c_str());
  }
  std::printf("peak while loading: %s MB RSS, %s MB anonymous; arenas %.1f MB; page tables %s MB\n",
              kib_text(r.peak_rss_load).c_str(), kib_text(r.peak_anon_load).c_str(),
              megabytes(r.arena_bytes), kib_text(r.vm_pte).c_str());
  if (r.planned_bytes > 0) {
    std::printf("arena of a run: %.2f MB planned, %.2f MB needed at once (%.1f %% more)\n",
                megabytes(r.planned_bytes), megabytes(r.live_bytes),
                100 * (megabytes(r.planned_bytes) / megabytes(r.live_bytes) - 1));
  }
  std::printf("%s\n", pack_use_text(r.pack).c_str());
  if (r.profile) std::printf("\n%s", profile_text(*r.profile, command.top).c_str());
}

void hold(const BenchCommand& command) {
  if (!command.hold && command.hold_ms < 0) return;
  std::printf("SESSION_READY\n");
  std::fflush(stdout);
  if (command.hold) {
    while (std::getchar() != EOF) {
    }
  } else {
    std::this_thread::sleep_for(std::chrono::milliseconds(command.hold_ms));
  }
}

}  // namespace

int run_bench(const CommonOptions& common, const BenchCommand& command) {
  const FeedSource source(command.inputs, command.input);  // refuses bad options before the load
  const bool runs = command.iterations > 0 || command.seconds > 0;
  std::optional<ScratchFolder> traces;
  if (command.profile || !command.trace.empty()) {
    if (!runs) throw CliError(kExitUsage, "--profile and --trace need timed runs");
    traces.emplace();
  }
  BenchResult result;
  const double start = wall_ms();
  load_library(common);
  result.init_ms = wall_ms() - start;
  result.at_init = read_process_memory("self");
  std::vector<Bench> benches = load(command, traces ? traces->file("trace") : "", &result);
  const Faults before = faults_now();
  if (runs) {
    run_all(command, source, &benches, &result);
  } else {
    wait_packed(&benches, &result);
  }
  const Faults after = faults_now();
  result.run_faults = {after.minor - before.minor, after.major - before.major};
  result.at_run = read_process_memory("self");
  result.peak_rss = read_status("self", "VmHWM");
  result.vm_pte = read_status("self", "VmPTE");
  ask_library(benches.front(), &result);
  if (traces) read_trace(command, &benches.front(), &result);
  if (command.json) {
    print_json(to_json(command, result), JsonForm::kOneLine);
  } else {
    print_table(command, result);
  }
  std::fflush(stdout);
  hold(command);
  return kExitOk;
}

}  // namespace folio_cli
