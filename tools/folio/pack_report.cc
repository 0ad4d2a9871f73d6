#include "tools/folio/pack_report.h"

#include "tools/folio/cli.h"
#include "tools/folio/table.h"

namespace folio_cli {

namespace {

// Where packed weights are: none, memory, file.
std::string source_of(const folio::Session& session) {
  std::string source = "none";
  const folio::MemoryReport report = session.memory_report();
  for (const auto& entry : report.entries()) {
    if (entry.kind == "packed" && entry.bytes != 0) source = entry.is_private ? "memory" : "file";
  }
  return source;
}

}  // namespace

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

nlohmann::ordered_json pack_use_json(const folio::Session& session) {
  const folio::PackCacheStats packs = folio::PackCache::shared_stats();
  return {{"hits", packs.hit_count},
          {"misses", packs.miss_count},
          {"source", source_of(session)},
          {"found", packs.found_count},
          {"packed", packs.packed_count},
          {"packed_bytes", packs.packed_bytes},
          {"written", packs.written_count},
          {"absent", packs.absent_count},
          {"misfit", packs.misfit_count},
          {"damaged", packs.damaged_count},
          {"ignored_files", packs.ignored_file_count},
          {"hashed_bytes", packs.hashed_bytes},
          {"memo_bytes", packs.memo_bytes},
          {"declared_bytes", packs.declared_bytes},
          {"cached_bytes", packs.cached_bytes},
          {"heap_bytes", packs.heap_blob_bytes},
          {"sidecar_bytes", packs.sidecar_blob_bytes},
          {"store_bytes", packs.store_blob_bytes}};
}

std::string pack_use_text(const nlohmann::json& use) {
  const auto count = [&use](const char* key) { return use.value(key, uint64_t{0}); };
  std::string source = use.value("source", "none");
  if (is_from_file(use)) {
    const bool is_sidecar = count("sidecar_bytes") != 0;
    const bool is_store = count("store_bytes") != 0;
    source = is_sidecar && is_store ? "a pack file and a store"
             : is_store             ? "a store"
                                    : "a pack file";
  }
  return "packed weights: " + std::to_string(count("packed") + count("written")) + " made, " +
         std::to_string(count("found") + count("hits")) + " found, from: " + source;
}

bool is_from_file(const nlohmann::json& use) {
  return use.is_object() && use.value("source", "none") == "file";
}

}  // namespace folio_cli
