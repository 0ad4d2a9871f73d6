#include "tools/folio/run_profile.h"

#include <algorithm>
#include <cstring>

#include "tools/folio/cli.h"
#include "tools/folio/timing.h"

namespace folio_cli {

namespace {

using nlohmann::json;

// ---- Reading --------------------------------------------------------------------------------

constexpr const char* kNameEnd = "_kernel_time";

// A step of a run, as the trace has it.
struct Event {
  std::string name;
  std::string index;
  double begin_us = 0;
  double us = 0;
  double inner_us = 0;  // of what ran within it
  NodeShapes shapes;
};

std::vector<SeenShape> shapes_in(const json& list) {
  std::vector<SeenShape> shapes;
  for (const json& each : list) {
    SeenShape shape;
    if (!each.empty()) {
      shape.type = type_named(each.begin().key());
      shape.dims = each.begin().value().get<std::vector<int64_t>>();
    }
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

Event event_of(const json& said) {
  const json& arguments = said.at("args");
  Event event;
  event.name = said.at("name").get<std::string>();
  const size_t end = event.name.size() - std::min(event.name.size(), std::strlen(kNameEnd));
  if (event.name.compare(end, std::string::npos, kNameEnd) == 0) event.name.resize(end);
  event.index = arguments.at("node_index").get<std::string>();
  event.begin_us = said.at("ts").get<double>();
  event.us = said.at("dur").get<double>();
  event.shapes.op_type = arguments.at("op_name").get<std::string>();
  event.shapes.inputs = shapes_in(arguments.at("input_type_shape"));
  event.shapes.outputs = shapes_in(arguments.at("output_type_shape"));
  event.shapes.attributes = arguments.at("attributes");
  return event;
}

// Steps of subgraphs stand before the step that runs them, and within its time.
void note_inner(std::vector<Event>* run) {
  std::vector<size_t> open;  // not yet within another
  for (size_t i = 0; i < run->size(); ++i) {
    Event& event = (*run)[i];
    while (!open.empty() && (*run)[open.back()].begin_us >= event.begin_us) {
      event.inner_us += (*run)[open.back()].us;
      open.pop_back();
    }
    open.push_back(i);
  }
}

void add(const Work& more, Work* sum) {
  sum->operations += more.operations;
  sum->bytes += more.bytes;
  sum->of_bytes = sum->of_bytes || more.of_bytes;
  sum->is_winograd = sum->is_winograd || more.is_winograd;
}

double over(double work, double rate) { return rate > 0 ? work / rate * 1e-6 : 0.0; }

// A row's level is the slowest of its nodes'.
void add_read(double ms, const std::string& name, const MachinePeaks& peaks, ProfileRow* row) {
  row->read_ms += ms;
  const auto place = [&](const std::string& of) {
    return std::find_if(peaks.reads.begin(), peaks.reads.end(),
                        [&](const ReadPeak& peak) { return peak.name == of; });
  };
  if (row->read_name.empty() || place(row->read_name) < place(name)) row->read_name = name;
}

void add_peak_times(const Work& work, const MachinePeaks& peaks, ProfileRow* row) {
  const double rate = work.of_bytes ? peaks.byte_gops : peaks.float_gflops;
  (work.of_bytes ? row->byte_ms : row->float_ms) += over(work.operations, rate);
  if (work.bytes <= 0) return;
  const ReadPeak& read = peaks.read_of(work.bytes);
  add_read(over(work.bytes, read.gbs), read.name, peaks, row);
}

class Reader {
 public:
  explicit Reader(const MachinePeaks& peaks) { profile_.peaks = peaks; }

  void add_run(std::vector<Event> run, double run_ms) {
    note_inner(&run);
    const size_t number = profile_.runs++;
    profile_.run_ms.push_back(run_ms);
    profile_.outside_ms.push_back(run_ms);
    for (ProfileRow& row : rows_) row.work = {}, row.calls = 0;
    for (ProfileRow& row : rows_) row.float_ms = row.byte_ms = row.read_ms = 0;
    for (const Event& event : run) {
      ProfileRow& row = row_of(event);
      row.ms.resize(number + 1, 0.0);
      const double ms = (event.us - event.inner_us) * 1e-3;
      row.ms[number] += ms;
      profile_.outside_ms.back() -= ms;
      row.calls += 1;
      const Work work = work_of(event.shapes);
      add(work, &row.work);
      add_peak_times(work, profile_.peaks, &row);
    }
  }

  RunProfile finish() {
    std::map<std::string, ProfileRow> operators;
    for (ProfileRow& row : rows_) {
      row.ms.resize(profile_.runs, 0.0);
      ProfileRow& sum = operators.try_emplace(row.op_type).first->second;
      sum.op_type = row.op_type;
      sum.nodes += 1;
      sum.calls += row.calls;
      sum.ms.resize(profile_.runs, 0.0);
      for (size_t i = 0; i < row.ms.size(); ++i) sum.ms[i] += row.ms[i];
      add(row.work, &sum.work);
      sum.float_ms += row.float_ms;
      sum.byte_ms += row.byte_ms;
      if (row.read_ms > 0) add_read(row.read_ms, row.read_name, profile_.peaks, &sum);
    }
    for (auto& [name, row] : operators) profile_.operators.push_back(std::move(row));
    profile_.nodes = std::move(rows_);
    sort_rows(&profile_.nodes);
    sort_rows(&profile_.operators);
    std::sort(profile_.run_ms.begin(), profile_.run_ms.end());
    std::sort(profile_.outside_ms.begin(), profile_.outside_ms.end());
    return std::move(profile_);
  }

 private:
  ProfileRow& row_of(const Event& event) {
    const auto key = event.index + '\n' + event.shapes.op_type + '\n' + event.name;
    const auto [it, is_new] = places_.try_emplace(key, rows_.size());
    if (is_new) {
      rows_.emplace_back();
      rows_.back().name = event.name;
      rows_.back().op_type = event.shapes.op_type;
      rows_.back().nodes = 1;
    }
    return rows_[it->second];
  }

  static void sort_rows(std::vector<ProfileRow>* rows) {
    for (ProfileRow& row : *rows) std::sort(row.ms.begin(), row.ms.end());
    std::stable_sort(rows->begin(), rows->end(), [](const ProfileRow& a, const ProfileRow& b) {
      return a.p50_ms() > b.p50_ms();
    });
  }

  RunProfile profile_;
  std::vector<ProfileRow> rows_;
  std::map<std::string, size_t> places_;
};

// ---- Text -----------------------------------------------------------------------------------

std::string or_nothing(const char* format, double number) {
  return number > 0 ? number_text(format, number) : "";
}

// What is printed of a row behind its names.
std::vector<std::string> cells_of(const ProfileRow& row, const RunProfile& profile) {
  const double whole = percentile(profile.run_ms, 5);
  const double seconds = row.min_ms() * 1e-3;
  const double rate = seconds > 0 ? 1e-9 / seconds : 0;
  const std::string peak = row.nearest_peak(profile.peaks);
  return {number_text("%.0f", row.calls),
          number_text("%.4f", row.p50_ms()),
          number_text("%.4f", row.min_ms()),
          number_text("%.1f", whole > 0 ? 100 * row.p50_ms() / whole : 0.0),
          or_nothing("%.1f", row.work.operations * rate) + (row.work.is_winograd ? "*" : ""),
          or_nothing("%.1f", row.work.bytes * rate),
          peak.empty() ? "" : number_text("%.0f", 100 * row.peak_share()),
          peak};
}

void add_row(std::vector<std::string> names, const ProfileRow& row, const RunProfile& profile,
             Table* table) {
  for (std::string& cell : cells_of(row, profile)) names.push_back(std::move(cell));
  table->add(std::move(names));
}

std::vector<Table::Column> with_numbers(std::vector<Table::Column> columns) {
  for (const char* title : {"calls", "p50 ms", "min ms", "% of run", "GFLOP/s", "GB/s", "%"}) {
    columns.push_back({title});
  }
  columns.push_back({"of peak", Table::Align::kLeft});
  return columns;
}

std::string peaks_line(const RunProfile& profile) {
  const MachinePeaks& peaks = profile.peaks;
  std::string line = "peaks of this machine, measured:";
  if (peaks.float_gflops > 0) {
    line += number_text(" %.1f GFLOP/s ", peaks.float_gflops) + "(" + peaks.float_name + "),";
  }
  if (peaks.byte_gops > 0) {
    line += number_text(" %.1f GOP/s ", peaks.byte_gops) + "(" + peaks.byte_name + "),";
  }
  for (const ReadPeak& read : peaks.reads) {
    line += number_text(" %.1f GB/s ", read.gbs) + "(" + read.name + "),";
  }
  line.back() = '\n';
  return line;
}

// Of a node if `is_node`, else of an operator.
nlohmann::ordered_json row_json(const ProfileRow& row, bool is_node, const RunProfile& profile) {
  const double rate = row.min_ms() > 0 ? 1e-6 / row.min_ms() : 0;
  nlohmann::ordered_json said;
  said["op_type"] = row.op_type;
  if (is_node) {
    said["name"] = row.name;
  } else {
    said["nodes"] = row.nodes;
  }
  said["calls"] = row.calls;
  said["p50_ms"] = rounded(row.p50_ms());
  said["min_ms"] = rounded(row.min_ms());
  said["operations"] = row.work.operations;
  said["bytes"] = row.work.bytes;
  said["gflops"] = row.work.operations * rate;
  said["gbs"] = row.work.bytes * rate;
  said["winograd"] = row.work.is_winograd;
  const std::string peak = row.nearest_peak(profile.peaks);
  said["peak"] = peak.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(peak);
  said["peak_share"] = row.peak_share();
  return said;
}

}  // namespace

// ---- Rows -----------------------------------------------------------------------------------

double ProfileRow::p50_ms() const { return ms.empty() ? 0.0 : percentile(ms, 5); }

double ProfileRow::peak_share() const {
  const double best = min_ms();
  return best > 0 ? std::max(float_ms + byte_ms, read_ms) / best : 0.0;
}

std::string ProfileRow::nearest_peak(const MachinePeaks& peaks) const {
  const double products = float_ms + byte_ms;
  if (std::max(products, read_ms) <= 0 || min_ms() <= 0) return "";
  if (read_ms > products) return read_name;
  return byte_ms > float_ms ? peaks.byte_name : peaks.float_name;
}

// ---- Profiles -------------------------------------------------------------------------------

RunProfile read_profile(const std::string& trace, size_t skipped, const MachinePeaks& peaks) {
  Reader reader(peaks);
  try {
    std::vector<Event> run;
    size_t runs = 0;
    for (const json& said : json::parse(trace)) {
      if (said.at("cat") == "Node") {
        if (runs >= skipped) run.push_back(event_of(said));
      } else if (said.at("name") == "model_run") {
        if (runs++ >= skipped) {
          reader.add_run(std::move(run), said.at("dur").get<double>() * 1e-3);
          run.clear();
        }
      }
    }
  } catch (const json::exception& error) {
    throw CliError(kExitCannotRun,
                   std::string("the library's trace cannot be read: ") + error.what());
  }
  RunProfile profile = reader.finish();
  if (profile.runs == 0) throw CliError(kExitCannotRun, "the library's trace has no run");
  return profile;
}

std::string profile_text(const RunProfile& profile, size_t top) {
  using Align = Table::Align;
  Table operators(with_numbers({{"operator", Align::kLeft}, {"nodes"}}));
  bool is_winograd = false;
  for (const ProfileRow& row : profile.operators) {
    add_row({row.op_type, std::to_string(row.nodes)}, row, profile, &operators);
    is_winograd = is_winograd || row.work.is_winograd;
  }
  std::string text = peaks_line(profile) + "\n" + operators.text();
  text += "p50 of " + std::to_string(profile.runs) + " recorded runs " +
          number_text("%.4f ms, ", percentile(profile.run_ms, 5)) +
          number_text("%.4f ms of it outside of nodes\n", percentile(profile.outside_ms, 5));
  Table nodes(with_numbers({{"node", Align::kLeft}, {"operator", Align::kLeft}}));
  for (size_t i = 0; i < std::min(top, profile.nodes.size()); ++i) {
    const ProfileRow& row = profile.nodes[i];
    add_row({one_line(row.name), row.op_type}, row, profile, &nodes);
  }
  if (top > 0) text += "\n" + nodes.text();
  text += "Rates are those of the fastest runs. GFLOP/s: products only";
  if (is_winograd) {
    text += "; * counted as direct convolutions, of which Winograd's algorithm computes a quarter";
  }
  return text + ".\n";
}

nlohmann::ordered_json profile_json(const RunProfile& profile) {
  const MachinePeaks& peaks = profile.peaks;
  nlohmann::ordered_json said;
  said["runs"] = profile.runs;
  said["run_min_ms"] = rounded(profile.run_ms.front());
  said["run_p50_ms"] = rounded(percentile(profile.run_ms, 5));
  said["outside_p50_ms"] = rounded(percentile(profile.outside_ms, 5));
  said["peaks"] = {{"float_gflops", peaks.float_gflops},
                   {"float_name", peaks.float_name},
                   {"byte_gops", peaks.byte_gops},
                   {"byte_name", peaks.byte_name}};
  for (const ReadPeak& read : peaks.reads) said["peaks"]["read_gbs"][read.name] = read.gbs;
  for (const char* key : {"operators", "nodes"}) {
    said[key] = nlohmann::ordered_json::array();
    const bool is_node = std::strcmp(key, "nodes") == 0;
    for (const ProfileRow& row : is_node ? profile.nodes : profile.operators) {
      said[key].push_back(row_json(row, is_node, profile));
    }
  }
  return said;
}

}  // namespace folio_cli
