#include "tools/folio/compare_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tools/folio/dot_plot.h"
#include "tools/folio/pack_report.h"
#include "tools/folio/print_json.h"
#include "tools/folio/side_process.h"
#include "tools/folio/table.h"
#include "tools/folio/tensor_pb.h"

namespace folio_cli {

namespace {

using Json = nlohmann::ordered_json;

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

// The largest difference to the largest value.
double scaled(const ComparedOutput& output) {
  const Distance& d = output.distance;
  return d.absolute == 0 ? 0 : d.absolute / d.magnitude;
}

// The output that is furthest off, by its own magnitude; nullptr: no numbers.
const ComparedOutput* worst_of(const Comparison& c) {
  const ComparedOutput* result = nullptr;
  for (const ComparedOutput& output : c.outputs) {
    if (result == nullptr || scaled(output) > scaled(*result)) result = &output;
  }
  return result;
}

// JSON has no numbers for what is not finite.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json side_json(const Side& side) {
  Json json = {{"backend", side.backend}, {"version", side.version}};
  for (const Metric& metric : kMetrics) json[metric.key] = finite(side.median(metric.key));
  json["samples"] = side.samples;
  json["pack"] = side.pack;
  json["stage"] = side.error.empty() ? Json(nullptr) : Json(side.stage);
  json["error"] = side.error.empty() ? Json(nullptr) : Json(side.error);
  return json;
}

std::string inputs_text(const CompareCommand& command, const ComparedModel& model) {
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
  for (const ComparedOutput& output : c.outputs) {
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
    for (const ComparedOutput& output : c.outputs) {
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

// The mean that treats 2 and 1/2 alike; NaN: of nothing.
double geometric_mean(const std::vector<Comparison>& all, const char* key) {
  double sum = 0;
  size_t count = 0;
  for (const Comparison& c : all) {
    const double ratio = c.ratio(key);
    if (!(ratio > 0)) continue;
    sum += std::log(ratio);
    ++count;
  }
  return count == 0 ? std::nan("") : std::exp(sum / static_cast<double>(count));
}

std::string mean_text(const std::vector<Comparison>& all, const char* key) {
  return or_dash("%.2f", geometric_mean(all, key));
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
    const ComparedOutput* worst = worst_of(c);
    const auto value = [&c](size_t metric) { return metric_text(c.sides[0], kMetrics[metric]); };
    const auto ratio = [&c](const char* key) { return or_dash("%.2f", c.ratio(key)); };
    table.add({one_line(c.model.name),
               worst == nullptr ? "-" : number_text("%.2g", worst->distance.absolute),
               worst == nullptr ? "-" : or_dash("%.2g", scaled(*worst)),
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

// What people ask first: how long a run takes, how long it takes to be there, what it costs.
constexpr std::array<const char*, 3> kPlotted = {"run_p50_ms", "load_ms", "anon_run"};

DotPlot::Row plot_row(const Comparison& c) {
  DotPlot::Row row = {one_line(c.model.name), {}};
  const bool has_run = c.verdict == Verdict::kAgree || c.verdict == Verdict::kDiffer;
  if (!has_run) row.label += std::string(" (") + verdict_name(c.verdict) + ")";
  for (const char* key : kPlotted) row.values.push_back(c.ratio(key));
  return row;
}

// For people who know nothing of the table.
std::string other_name(const Side& side) {
  return side.backend == "ort" ? "ONNX Runtime" : "the other Folio";
}

std::string plot_title(const CompareCommand& command, const std::array<Side, 2>& sides) {
  const uint32_t threads = command.session.threads;
  const std::string with = threads == 0   ? ""
                           : threads == 1 ? ", 1 thread"
                                          : ", " + std::to_string(threads) + " threads";
  return "Folio " + sides[0].version + " beside " + other_name(sides[1]) + " " + sides[1].version +
         with;
}

}  // namespace

double Side::median(const std::string& key) const {
  const auto found = samples.find(key);
  return found == samples.end() ? std::nan("") : median_of(found->second);
}

double Comparison::ratio(const std::string& key) const {
  const double other = sides[1].median(key);
  return other > 0 ? sides[0].median(key) / other : std::nan("");
}

void print_comparison_json(const CompareCommand& command, const Comparison& comparison) {
  print_json(to_json(command, comparison), JsonForm::kOneLine);
  std::fflush(stdout);
}

void print_comparisons(const CompareCommand& command, const std::vector<Comparison>& all) {
  if (all.size() == 1) {
    print_one(command, all[0]);
  } else {
    print_many(all);
  }
}

void plot_comparisons(const CompareCommand& command, const std::vector<Comparison>& all) {
  DotPlot plot;
  plot.title = plot_title(command, all.back().sides);
  plot.x_title = "share of " + other_name(all.back().sides[1]) + "'s: less is better";
  plot.series = {"run, p50", "load", "anonymous memory after runs"};
  for (const Comparison& c : all) plot.rows.push_back(plot_row(c));
  const auto is_less = [](const DotPlot::Row& a, const DotPlot::Row& b) {
    if (std::isnan(a.values[0]) || std::isnan(b.values[0]))
      return !std::isnan(a.values[0]) && std::isnan(b.values[0]);
    return a.values[0] < b.values[0];
  };
  std::stable_sort(plot.rows.begin(), plot.rows.end(), is_less);
  if (all.size() > 1) {
    plot.mean.label = "geometric mean";
    for (const char* key : kPlotted) plot.mean.values.push_back(geometric_mean(all, key));
  }
  write_file(command.plot, to_svg(plot));
}

}  // namespace folio_cli
