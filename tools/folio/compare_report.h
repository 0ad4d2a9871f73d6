// What folio compare found: numbers of both sides in one or more rounds, how far their outputs are
// apart, and the ways to show it.
//
// Threads: one.
// Errors:  CliError where a picture cannot be written.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/folio/cli.h"
#include "tools/folio/compare.h"
#include "tools/folio/host_value.h"

namespace folio_cli {

struct Metric {
  const char* key;
  const char* title;
  bool is_kib;
};
inline constexpr std::array<Metric, 9> kMetrics = {
    {{"init_ms", "library start, ms", false},
     {"load_ms", "load, ms", false},
     {"first_run_ms", "first run, ms", false},
     {"run_p50_ms", "p50, ms", false},
     {"run_min_ms", "fastest run, ms", false},
     {"anon_init", "anonymous, started, MB", true},
     {"anon_load", "anonymous, loaded, MB", true},
     {"anon_run", "anonymous, after runs, MB", true},
     {"peak_anon_load", "peak while loading, MB", true}}};

struct ComparedModel {
  std::filesystem::path path;
  std::string name;      // short, for tables
  std::string data_set;  // "": inputs are made up
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

  // NaN: there is none.
  double median(const std::string& key) const;
};

struct ComparedOutput {
  std::string name;
  std::string what;  // type and shape
  Distance distance;
};

enum class Verdict { kAgree, kDiffer, kFailed, kUnsupported };

struct Comparison {
  ComparedModel model;
  std::array<Side, 2> sides;  // Folio and the other one
  std::vector<ComparedOutput> outputs;
  Verdict verdict = Verdict::kAgree;
  std::vector<std::string> reasons;

  // Of Folio's median to the other's; NaN: one of them has none.
  double ratio(const std::string& key) const;
};

// One line of JSON on standard output.
void print_comparison_json(const CompareCommand& command, const Comparison& comparison);
// Tables on standard output: of one model all there is, of several a row each.
void print_comparisons(const CompareCommand& command, const std::vector<Comparison>& all);
// Shares of the other side's time and memory, a row of dots for each model, as an SVG file.
void plot_comparisons(const CompareCommand& command, const std::vector<Comparison>& all);

}  // namespace folio_cli
