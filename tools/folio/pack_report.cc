#include "tools/folio/pack_report.h"

#include "tools/folio/cli.h"
#include "tools/folio/table.h"

namespace folio_cli {

std::string size_text(uint64_t bytes) {
  const auto number = static_cast<double>(bytes);
  if (bytes < 10 << 10) return std::to_string(bytes) + " bytes";
  if (bytes < 10 << 20) return number_text("%.1f KB", number / (1 << 10));
  return number_text("%.1f MB", number / (1 << 20));
}

std::string written_text(const std::string& target, const FolioPackResult& result) {
  std::string text = one_line(target) + ": " + std::to_string(result.written_blob_count) +
                     " weights packed, " + size_text(result.written_blob_bytes);
  if (result.found_blob_count > 0) {
    text += ", " + std::to_string(result.found_blob_count) + " were there";
  }
  return text;
}

void add_written(const FolioPackResult& result, nlohmann::ordered_json* json) {
  (*json)["written_blob_count"] = result.written_blob_count;
  (*json)["written_blob_bytes"] = result.written_blob_bytes;
  (*json)["found_blob_count"] = result.found_blob_count;
}

}  // namespace folio_cli
