// Entries: MemoryReport.
#include "c_api/entries.h"
#include "c_api/handles.h"

namespace folio::entry {

FolioStatus* MemoryReportGetEntryCount(const FolioMemoryReport* report, size_t* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(report);
    FOLIO_NOT_NULL(out);
    *out = report->entries.size();
    return Status::ok();
  });
}

FolioStatus* MemoryReportGetEntry(const FolioMemoryReport* report, size_t index,
                                  FolioMemoryEntry* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(report);
    FOLIO_NOT_NULL(out);
    FOLIO_RETURN_IF_ERROR(check_index(index, report->entries.size(), "entries"));
    const FolioMemoryReport::Entry& found = report->entries[index];
    FolioMemoryEntry entry = {};
    entry.name = found.name.c_str();
    entry.kind = found.kind;
    entry.bytes = found.bytes;
    entry.resident_bytes = found.resident_bytes;
    entry.is_private = found.is_private ? 1 : 0;
    entry.pss_bytes = found.pss_bytes;
    return write_struct(out, entry, "FolioMemoryEntry");
  });
}

FolioStatus* MemoryReportGetSummary(const FolioMemoryReport* report, FolioMemorySummary* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(report);
    FOLIO_NOT_NULL(out);
    return write_struct(out, report->summary, "FolioMemorySummary");
  });
}

FolioStatus* MemoryReportGetJson(const FolioMemoryReport* report, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(report);
    FOLIO_NOT_NULL(out);
    *out = report->json.c_str();
    return Status::ok();
  });
}

FolioStatus* MemoryReportGetText(const FolioMemoryReport* report, const char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(report);
    FOLIO_NOT_NULL(out);
    *out = report->text.c_str();
    return Status::ok();
  });
}

void ReleaseMemoryReport(FolioMemoryReport* report) { delete report; }

}  // namespace folio::entry
