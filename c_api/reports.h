// Memory reports and metrics as text: what the numbers of the core mean to people and to scrapers.
//
// Flow:    entries ask for a report of a model, a session or the process; it is a snapshot.
// Threads: any.
// Errors:  none; what the system does not tell is 0 or left out.
#pragma once

#include <memory>
#include <string>

#include "c_api/handles.h"

namespace folio {

std::unique_ptr<FolioMemoryReport> report_model(const ModelState& model);
std::unique_ptr<FolioMemoryReport> report_session(const SessionState& session);
std::unique_ptr<FolioMemoryReport> report_process();

// Prometheus' text format.
std::string metrics_text(const FolioMetrics& metrics);

}  // namespace folio
