#include "c_api/reports.h"

#include <cstdio>

namespace folio {
namespace {

// A bound of the histogram in seconds, exactly: "0.00001", "0.5", "10".
std::string seconds(uint64_t microseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(microseconds) / 1e6);
  return text;
}

}  // namespace

std::string metrics_text(const FolioMetrics& metrics) {
  const auto number = [](const char* name, const char* type, const char* help, uint64_t value) {
    return cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name, " ", value,
               "\n");
  };
  std::string out =
      number("folio_runs_total", "counter", "Runs that have ended.", metrics.run_count);
  out += number("folio_run_errors_total", "counter", "Runs that ended in an error.",
                metrics.error_count);
  out += number("folio_runs_cancelled_total", "counter", "Runs cancelled or out of time.",
                metrics.cancelled_count);
  out += number("folio_runs_in_flight", "gauge", "Runs in flight.", metrics.in_flight_count);
  out += number("folio_sessions", "gauge", "Sessions that exist.", metrics.session_count);
  out += "# HELP folio_run_seconds Duration of runs.\n# TYPE folio_run_seconds histogram\n";
  uint64_t below = 0;
  for (size_t i = 0; i < Metrics::kBounds.size(); ++i) {
    below += metrics.latency_buckets[i];
    out += cat("folio_run_seconds_bucket{le=\"", seconds(Metrics::kBounds[i]), "\"} ", below, "\n");
  }
  below += metrics.latency_buckets[Metrics::kBounds.size()];
  out += cat("folio_run_seconds_bucket{le=\"+Inf\"} ", below, "\n");
  out += cat("folio_run_seconds_sum ", seconds(metrics.latency_sum_us), "\n");
  return out + cat("folio_run_seconds_count ", below, "\n");
}

}  // namespace folio
