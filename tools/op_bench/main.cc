// op_bench: one-node models of each family of kernels, run by Folio and, in the same loop, by ONNX
// Runtime. Google Benchmark's options choose the cases and the length.
//
//   op_bench --ort LIB --benchmark_filter=gemm_f32
//
// Figures: medians and minima of single runs in us, through both C APIs, outputs made anew in each;
//          ratios are Folio's to ONNX Runtime's; rates are those of Folio's medians. Outputs that
//          differ are an error of the case. --benchmark_out=FILE writes all as JSON.
// Threads: both sides have `--threads` (1). With more, ONNX Runtime's wait for work spinning and
//          disturb Folio's: folio compare has a process for each side.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>

#include "tools/folio/compare.h"
#include "tools/folio/ort_peer.h"
#include "tools/folio/random_inputs.h"
#include "tools/folio/scratch_folder.h"
#include "tools/folio/tensor_pb.h"
#include "tools/folio/timing.h"
#include "tools/op_bench/families.h"

namespace op_bench {
namespace {

using folio_cli::Peer;

struct Settings {
  folio_cli::CommonOptions common;
  folio_cli::SessionSettings session;
  std::string ort;  // "": Folio alone
  // Of the largest magnitude of an output. Folio's error is that of the formulas in kernels.h; byte
  // products may be one step apart where a sum is half way between two.
  double tolerance = 1e-2;
};

// Both runtimes with a case's model loaded.
class Sides {
 public:
  Sides(const Settings& settings, const OpCase& op_case) : name(op_case.name), work(op_case.work) {
    const std::string path = folder_.file("model.onnx");
    folio_cli::write_file(path, op_case.model);
    folio_cli::InputOptions options;
    options.ranges = op_case.ranges;
    const folio_cli::RandomInputs random(options);
    folio = folio_cli::make_folio_peer(settings.common, settings.session);
    begin(path, random, folio.get());
    if (settings.ort.empty()) return;
    folio_cli::SessionSettings of_ort;
    of_ort.threads = settings.session.threads;
    ort = folio_cli::make_ort_peer(settings.ort, of_ort);
    begin(path, random, ort.get());
  }

  // "": the outputs agree.
  std::string difference(double tolerance) const {
    if (!ort) return "";
    const auto got = folio->outputs();
    const auto expected = ort->outputs();
    if (got.size() != expected.size()) return "another number of outputs";
    for (size_t i = 0; i < got.size(); ++i) {
      const auto found = folio_cli::distance("output", got[i], expected[i], {});
      const double size = std::max(found.magnitude, 1e-30);
      if (found.beyond > 0 && !(found.absolute / size <= tolerance)) return found.difference;
    }
    return "";
  }

  std::string name;
  folio_cli::Work work;
  std::unique_ptr<Peer> folio;
  std::unique_ptr<Peer> ort;

 private:
  static void begin(const std::string& path, const folio_cli::RandomInputs& random, Peer* peer) {
    peer->load(path);
    std::vector<folio_cli::NamedValue> inputs;
    for (const folio_cli::Port& port : peer->inputs()) {
      inputs.push_back({port.name, random.make(port)});
    }
    peer->set_inputs(std::move(inputs));
    for (int i = 0; i < 2; ++i) {
      peer->run();
      peer->settle();
    }
  }

  folio_cli::ScratchFolder folder_;
};

double timed_us(Peer* peer) {
  const double start = folio_cli::wall_ms();
  peer->run();
  return (folio_cli::wall_ms() - start) * 1e3;
}

double sorted_median(std::vector<double>* times) {
  std::sort(times->begin(), times->end());
  return folio_cli::percentile(*times, 5);
}

// In the order in which they are printed.
constexpr const char* kCounters[] = {"us",    "min us",    "ORT us",  "ORT min us",
                                     "ratio", "min ratio", "GFLOP/s", "GB/s"};

void count(const folio_cli::Work& work, std::vector<double> folio, std::vector<double> ort,
           benchmark::State* state) {
  auto& counters = state->counters;
  const double median = sorted_median(&folio);
  counters["us"] = median;
  counters["min us"] = folio.front();
  const bool has_products = work.operations > 0;
  const double done = has_products ? work.operations : work.bytes;
  counters[has_products ? "GFLOP/s" : "GB/s"] = done * 1e-3 / median;
  if (ort.empty()) return;
  const double ort_median = sorted_median(&ort);
  counters["ORT us"] = ort_median;
  counters["ORT min us"] = ort.front();
  counters["ratio"] = median / ort_median;
  counters["min ratio"] = folio.front() / ort.front();
}

// A line for each case, as soon as it is there.
class Lines : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override {
    std::printf("%-56s %6s", "case", "runs");
    for (const char* name : kCounters) std::printf(" %10s", name);
    std::printf("\n");
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      std::printf("%-56s", run.run_name.function_name.c_str());
      if (run.error_occurred) {
        std::printf(" error: %s\n", folio_cli::one_line(run.error_message).c_str());
        continue;
      }
      std::printf(" %6lld", static_cast<long long>(run.iterations));
      for (const char* name : kCounters) {
        const auto found = run.counters.find(name);
        if (found == run.counters.end()) {
          std::printf(" %10s", "");
        } else {
          std::printf(found->second < 10 ? " %10.3f" : " %10.1f",
                      static_cast<double>(found->second));
        }
      }
      std::printf("\n");
    }
    std::fflush(stdout);
  }
};

// Google Benchmark calls a case again and again, longer each time: the sessions of the last one
// stay.
void run_case(const Settings& settings, const NamedCase& named, benchmark::State* state) {
  static std::optional<Sides> sides;
  if (!sides || sides->name != named.name) {
    sides.reset();
    sides.emplace(settings, named.make());
    const std::string difference = sides->difference(settings.tolerance);
    if (!difference.empty()) {
      state->SkipWithError(difference.c_str());
      sides.reset();
      return;
    }
  }
  std::vector<double> folio;
  std::vector<double> ort;
  for (auto iteration : *state) {
    (void)iteration;
    folio.push_back(timed_us(sides->folio.get()));
    if (sides->ort) ort.push_back(timed_us(sides->ort.get()));
    state->SetIterationTime(folio.back() * 1e-6);
  }
  count(sides->work, std::move(folio), std::move(ort), state);
}

void register_cases(const Settings& settings) {
  for (const NamedCase& named : all_cases()) {
    benchmark::RegisterBenchmark(named.name.c_str(),
                                 [settings, named](benchmark::State& state) {
                                   try {
                                     run_case(settings, named, &state);
                                   } catch (const std::exception& error) {
                                     state.SkipWithError(error.what());
                                   }
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace op_bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  op_bench::Settings settings;
  settings.session.threads = 1;
  CLI::App app("Runs one-node models by Folio and by ONNX Runtime in turns.");
  app.add_option("--ort", settings.ort, "ONNX Runtime's library (FOLIO_ORT_LIBRARY); none: without")
      ->envname("FOLIO_ORT_LIBRARY");
  app.add_option("--threads", settings.session.threads, "threads of each side (1)");
  app.add_option("--config", settings.session.config, "KEY=VALUE of Folio's sessions");
  app.add_option("--library", settings.common.library, "libfolio.so.1 to use");
  app.footer(
      "and --benchmark_filter=REGEX, --benchmark_list_tests, --benchmark_min_time=SECONDS ...");
  CLI11_PARSE(app, argc, argv);
  op_bench::register_cases(settings);
  op_bench::Lines lines;
  benchmark::RunSpecifiedBenchmarks(&lines);
  return 0;
}
