#include "c_api/reports.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "core/base/utf8.h"
#include "core/kernels/select.h"
#include "core/os/arena.h"
#include "core/os/cpu_features.h"
#include "core/os/mapped_file.h"
#include "core/os/memory_source.h"
#include "core/os/memory_stats.h"

namespace folio {
namespace {

using Entry = FolioMemoryReport::Entry;

Entry entry_of(const ByteSource& source) {
  const Bytes bytes = source.bytes();
  Entry entry{utf8_repaired(source.name()), "memory", bytes.size(), 0, false};
  const MappedFile* file = as_mapped_file(source);
  if (file && file->loading() == FileLoading::kMap) {
    entry.kind = "mapping";
    const AddressRange range{bytes.data(), bytes.size()};
    const auto stats = read_range_stats({&range, 1});
    if (stats.is_ok()) entry.resident_bytes = std::min(stats.value().rss * 1024, entry.bytes);
  } else if (file) {
    entry.is_private = true;
  } else if (const auto* memory = dynamic_cast<const MemorySource*>(&source.origin())) {
    entry.is_private = memory->is_copy();
  }
  return entry;
}

// What a program and the programs of its subgraphs hold, each thing once.
struct Holdings {
  std::set<const uint8_t*> seen_sources;
  std::vector<const ByteSource*> sources;
  std::set<const PackedBlob*> blobs;
  std::set<const uint8_t*> seen_constants;
  uint64_t packed_bytes[kBlobPlaces] = {};
  uint64_t constant_bytes = 0;

  void add_source(const ByteSource& source) {
    if (seen_sources.insert(source.bytes().data()).second) sources.push_back(&source);
  }
  void add_sources(const Program& program) {
    for (const Ref<Initializer>& keeper : program.keepers) {
      if (keeper->source) add_source(*keeper->source);
    }
    for (const Step& step : program.steps) {
      for (const Subprogram& sub : step.subprograms) add_sources(*sub.program);
    }
  }
  bool in_source(const uint8_t* data) const {
    return std::any_of(sources.begin(), sources.end(), [&](const ByteSource* source) {
      const Bytes bytes = source->bytes();
      return data >= bytes.data() && data < bytes.data() + bytes.size();
    });
  }
  void add_blob(const PackedBlob& blob) {
    if (!blobs.insert(&blob).second) return;
    packed_bytes[static_cast<int>(blob.place())] += blob.bytes();
    seen_constants.insert(blob.data());  // a constant that is a blob counts as one
  }
  void add_rest(const Program& program) {
    if (program.is_root) {
      for (const Ref<const PackedBlob>& blob : program.weights->blobs()) add_blob(*blob);
    }
    for (const Ref<const PackedBlob>& blob : program.blobs) add_blob(*blob);
    for (const Value& value : program.constants) {
      const Tensor& tensor = value.tensor();
      if (in_source(tensor.raw()) || !seen_constants.insert(tensor.raw()).second) continue;
      constant_bytes += tensor.bytes();
    }
    for (const Step& step : program.steps) {
      for (const Subprogram& sub : step.subprograms) add_rest(*sub.program);
    }
  }
};

// Packed weights by the place they live in: memory of this process, or pages of pack files.
void add_packed(const uint64_t (&bytes)[kBlobPlaces], std::vector<Entry>* entries) {
  entries->push_back(
      {"packed weights", "packed", bytes[static_cast<int>(BlobPlace::kHeap)], 0, true});
  const std::pair<const char*, BlobPlace> files[] = {
      {"packed weights, sidecar", BlobPlace::kSidecar},
      {"packed weights, store", BlobPlace::kStore}};
  for (const auto& [name, place] : files) {
    const uint64_t found = bytes[static_cast<int>(place)];
    if (found > 0) entries->push_back({name, "packed", found, 0, false});
  }
}

struct Sums {
  uint64_t bytes = 0;
  uint64_t private_bytes = 0;
  explicit Sums(const std::vector<Entry>& entries) {
    for (const Entry& entry : entries) {
      bytes += entry.bytes;
      if (entry.is_private) private_bytes += entry.bytes;
    }
  }
};

using ProcessRows = std::vector<std::pair<const char*, uint64_t>>;

ProcessRows process_rows() {
  const auto found = read_memory_stats();
  if (!found.is_ok()) return {};
  const MemoryStats& stats = found.value();
  return {{"rss_kib", stats.rss},
          {"pss_kib", stats.pss},
          {"pss_anon_kib", stats.pss_anon},
          {"pss_file_kib", stats.pss_file},
          {"private_clean_kib", stats.private_clean},
          {"private_dirty_kib", stats.private_dirty},
          {"shared_clean_kib", stats.shared_clean},
          {"shared_dirty_kib", stats.shared_dirty},
          {"swap_kib", stats.swap},
          {"peak_rss_kib", stats.vm_hwm}};
}

std::string to_json(const std::vector<Entry>& entries, const ProcessRows& process) {
  const Sums sums(entries);
  std::string out = "{\"entries\": [";
  for (const Entry& entry : entries) {
    if (&entry != &entries.front()) out += ", ";
    out += cat("{\"name\": ", json_string(entry.name), ", \"kind\": \"", entry.kind,
               "\", \"bytes\": ", entry.bytes, ", \"resident_bytes\": ", entry.resident_bytes,
               ", \"is_private\": ", entry.is_private ? "true" : "false", "}");
  }
  out += cat("], \"bytes\": ", sums.bytes, ", \"private_bytes\": ", sums.private_bytes,
             ", \"kernels\": \"", kernel_level_name(cpu_bits()), "\"");
  if (!process.empty()) {
    out += ", \"process\": {";
    for (const auto& row : process) {
      out += cat(&row == &process.front() ? "\"" : ", \"", row.first, "\": ", row.second);
    }
    out += "}";
  }
  return out + "}";
}

std::string to_text(const std::vector<Entry>& entries, const ProcessRows& process) {
  const auto line = [](const char* bytes, const char* resident, const char* kind,
                       const std::string& name) {
    char columns[128];
    std::snprintf(columns, sizeof columns, "%16s %16s  %-18s ", bytes, resident, kind);
    return columns + name + "\n";
  };
  std::string out = line("bytes", "resident", "kind", "name");
  for (const Entry& entry : entries) {
    const bool is_mapping = std::string_view(entry.kind) == "mapping";
    const std::string kind = cat(entry.kind, entry.is_private ? ", private" : "");
    out += line(std::to_string(entry.bytes).c_str(),
                is_mapping ? std::to_string(entry.resident_bytes).c_str() : "-", kind.c_str(),
                entry.name);
  }
  const Sums sums(entries);
  out += line(std::to_string(sums.bytes).c_str(), "", "sum", "");
  out += line(std::to_string(sums.private_bytes).c_str(), "", "sum, private", "");
  for (const auto& [name, number] : process) {
    out += line(std::to_string(number).c_str(), "", "process", name);
  }
  return out;
}

std::unique_ptr<FolioMemoryReport> make_report(std::vector<Entry> entries,
                                               const ProcessRows& process) {
  auto report = std::make_unique<FolioMemoryReport>();
  report->json = to_json(entries, process);
  report->text = to_text(entries, process);
  report->entries = std::move(entries);
  return report;
}

// A bound of the histogram in seconds, exactly: "0.00001", "0.5", "10".
std::string seconds(uint64_t microseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(microseconds) / 1e6);
  return text;
}

}  // namespace

std::string json_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += cat('\\', c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::unique_ptr<FolioMemoryReport> report_model(const ModelState& model) {
  return make_report({entry_of(model.source())}, {});
}

std::unique_ptr<FolioMemoryReport> report_session(const SessionState& session) {
  Holdings holdings;
  holdings.add_source(session.model()->source());
  holdings.add_sources(session.session().program());
  holdings.add_rest(session.session().program());
  std::vector<Entry> entries;
  for (const ByteSource* source : holdings.sources) entries.push_back(entry_of(*source));
  add_packed(holdings.packed_bytes, &entries);
  entries.push_back({"constants", "constant", holdings.constant_bytes, 0, true});
  return make_report(std::move(entries), {});
}

std::unique_ptr<FolioMemoryReport> report_process() {
  const RegistryStats files = registry_stats();
  const ArenaPool::Stats arenas = ArenaPool::process().stats();
  const PackedCache::Stats packed = PackedCache::process().stats();
  // Buffers hold packed weights and read files as well. The numbers are of slightly different
  // instants, so that the difference may be below nothing for a moment.
  const uint64_t buffers = buffer_bytes_live();
  const uint64_t counted =
      packed.place_bytes[static_cast<int>(BlobPlace::kHeap)] + files.read_bytes;
  std::vector<Entry> entries;
  entries.push_back({"mapped files", "mapping", files.mapped_bytes, 0, false});
  entries.push_back({"files read into memory", "memory", files.read_bytes, 0, true});
  add_packed(packed.place_bytes, &entries);
  entries.push_back({"arenas in use", "arena", arenas.leased_bytes, 0, true});
  entries.push_back({"idle arenas", "arena", arenas.idle_bytes, 0, true});
  entries.push_back(
      {"tensors and copies", "buffer", buffers > counted ? buffers - counted : 0, 0, true});
  return make_report(std::move(entries), process_rows());
}

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
