// Where the time of runs goes: read from the trace that the library records, beside what the
// machine can do.
//
// Flow:    bench records a session's runs -> read_profile -> text, JSON.
// Units:   milliseconds, unless a name says otherwise.
// Errors:  CliError.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/folio/machine_peaks.h"
#include "tools/folio/node_work.h"
#include "tools/folio/table.h"

namespace folio_cli {

// A node, or all nodes of an operator.
struct ProfileRow {
  std::string name;  // of the node
  std::string op_type;
  size_t nodes = 0;
  double calls = 0;        // a run
  std::vector<double> ms;  // by run, without that of nodes within it; sorted
  Work work;               // of a run
  // How long that takes at the machine's peaks; 0: nothing of the kind.
  double float_ms = 0;
  double byte_ms = 0;
  double read_ms = 0;
  std::string read_name;  // the slowest level that it reads from

  double min_ms() const { return ms.empty() ? 0.0 : ms.front(); }
  double p50_ms() const;
  // Which peak is nearest, "" none, and how much of it, 1 being all, the best run reached. It may
  // be more: what a node reads may come from a nearer cache than one that would hold all of it.
  double peak_share() const;
  std::string nearest_peak(const MachinePeaks& peaks) const;
};

struct RunProfile {
  MachinePeaks peaks;
  size_t runs = 0;
  std::vector<double> run_ms;      // sorted
  std::vector<double> outside_ms;  // of the run and of no node; sorted
  std::vector<ProfileRow> nodes;   // by time, longest first
  std::vector<ProfileRow> operators;
};

// Of the trace's runs but the first `skipped` ones.
RunProfile read_profile(const std::string& trace, size_t skipped, const MachinePeaks& peaks);

// Tables of all operators and of the `top` longest nodes.
std::string profile_text(const RunProfile& profile, size_t top);
nlohmann::ordered_json profile_json(const RunProfile& profile);

}  // namespace folio_cli
