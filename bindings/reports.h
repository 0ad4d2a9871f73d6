// Reports in shapes that cross to Java and C#: numbers as one list, texts joined, in a fixed order.
//
// Flow:    folio.i's %extend calls these; the hand-written layers read the lists by place. A new
//          number goes to the end of its list.
// Owns:    nothing.
// Threads: as the facade.
// Errors:  throws folio::Error.
#ifndef FOLIO_BINDINGS_REPORTS_H_
#define FOLIO_BINDINGS_REPORTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bridge.h"

namespace folio::bridge {

// C's counters are unsigned; Java has no such type, and none of them gets near 2^63.
template <typename... Counts>
Dims counts(Counts... values) {
  return Dims{static_cast<std::int64_t>(values)...};
}

inline Dims metrics(const Metrics& m) {
  Dims result = counts(m.run_count, m.error_count, m.cancelled_count, m.in_flight_count,
                       m.session_count, m.latency_sum_us);
  for (const std::uint64_t bucket : m.latency_buckets) {
    result.push_back(static_cast<std::int64_t>(bucket));
  }
  return result;
}

inline Dims summary(const MemoryReport& report) {
  const MemorySummary s = report.summary();
  return counts(s.mapped_bytes, s.resident_bytes, s.pss_bytes, s.private_bytes,
                s.packed_sidecar_bytes, s.packed_store_bytes, s.packed_heap_bytes, s.constant_bytes,
                s.saved_file_bytes, s.saved_packed_bytes, s.arena_bytes, s.process_rss_bytes,
                s.process_pss_bytes, s.process_anonymous_bytes, s.process_page_table_bytes);
}

// Name and kind of each entry.
inline std::string entry_texts(const MemoryReport& report) {
  std::vector<std::string> texts;
  for (const MemoryReport::Entry& entry : report.entries()) {
    texts.push_back(entry.name);
    texts.push_back(entry.kind);
  }
  return join(texts);
}

// Four numbers of each entry.
inline Dims entry_numbers(const MemoryReport& report) {
  Dims result;
  for (const MemoryReport::Entry& entry : report.entries()) {
    const Dims numbers =
        counts(entry.bytes, entry.resident_bytes, entry.pss_bytes, entry.is_private ? 1 : 0);
    result.insert(result.end(), numbers.begin(), numbers.end());
  }
  return result;
}

inline Dims pack_cache_stats(const PackCacheStats& s) {
  return counts(s.blob_count, s.blob_bytes, s.hit_count, s.miss_count, s.found_count, s.found_bytes,
                s.packed_count, s.packed_bytes, s.written_count, s.written_bytes, s.absent_count,
                s.misfit_count, s.damaged_count, s.ignored_file_count, s.hashed_bytes, s.memo_bytes,
                s.declared_bytes, s.cached_bytes, s.heap_blob_count, s.heap_blob_bytes,
                s.sidecar_blob_count, s.sidecar_blob_bytes, s.store_blob_count, s.store_blob_bytes,
                s.recorded_count, s.recorded_bytes);
}

inline Dims pack_result(const PackResult& r) {
  return counts(r.written_blob_count, r.written_blob_bytes, r.found_blob_count,
                r.missing_blob_count, r.raw_blob_count, r.raw_blob_bytes);
}

inline void set_save(SaveOptions& options, std::string optimize, std::string format,
                     std::string external_file, std::int64_t external_min_bytes) {
  if (external_min_bytes < 0) {
    throw Error(FOLIO_INVALID_ARGUMENT, "the smallest size of external initializers is negative: " +
                                            std::to_string(external_min_bytes));
  }
  options.optimize = std::move(optimize);
  options.format = std::move(format);
  options.external_file = std::move(external_file);
  options.external_min_bytes = static_cast<std::uint64_t>(external_min_bytes);
}

inline Dims save_info(const FolioSaveInfo& i) {
  return counts(i.file_bytes, i.data_bytes, i.node_count, i.initializer_count, i.initializer_bytes);
}

// Empty texts ask for the default.
inline Dims pack_model(const Model& model, const SessionOptions& session, const char* path,
                       std::int64_t path_bytes, const char* store, std::int64_t store_bytes,
                       const char* levels, std::int64_t level_bytes, bool check, bool replace) {
  PackOptions options;
  options.path = text_of(path, path_bytes);
  options.store = text_of(store, store_bytes);
  options.levels = text_of(levels, level_bytes);
  options.check = check;
  options.replace = replace;
  return pack_result(pack(model, session, options));
}

inline std::string pack_file(const char* path, std::int64_t path_bytes, bool verify) {
  return pack_file_json(text_of(path, path_bytes), verify);
}

inline std::string pack_store(const char* path, std::int64_t path_bytes, int action,
                              std::int64_t limit_bytes) {
  if (limit_bytes < 0) throw Error(FOLIO_INVALID_ARGUMENT, "the limit is negative");
  return pack_store_json(text_of(path, path_bytes), static_cast<FolioPackStoreAction>(action),
                         static_cast<std::uint64_t>(limit_bytes));
}

inline std::string info_texts(const Model& model) {
  const FolioModelInfo i = model.info();
  return join({i.format, i.path, i.producer_name, i.producer_version, i.domain, i.description,
               i.graph_name});
}

inline Dims info_numbers(const Model& model) {
  const FolioModelInfo i = model.info();
  return counts(i.model_version, i.ir_version, i.node_count, i.initializer_count,
                i.initializer_bytes, i.file_bytes);
}

// Five texts of each.
inline std::string unsupported_operators(const Model& model) {
  std::vector<std::string> texts;
  for (const UnsupportedOperator& op : model.unsupported_operators()) {
    for (const std::string& text :
         {op.domain, op.op_type, std::to_string(op.opset_version), op.node_name, op.reason}) {
      texts.push_back(text);
    }
  }
  return join(texts);
}

// Pairs of a name and a number.
template <typename Number>
std::string numbered(const std::vector<std::pair<std::string, Number>>& pairs) {
  std::vector<std::string> texts;
  for (const auto& [name, number] : pairs) {
    texts.push_back(name);
    texts.push_back(std::to_string(number));
  }
  return join(texts);
}

inline std::string cpu_texts() {
  const FolioCpuInfo cpu = cpu_info();
  return join({cpu.level, cpu.features, cpu.brand, std::to_string(cpu.logical_cpu_count),
               std::to_string(cpu.default_thread_count)});
}

// `dims` has the dims of all inputs, `dim_counts` how many each has.
inline void prepare_shapes(Session& session, const std::vector<std::string>& names,
                           const long long* dims, std::int64_t dim_count,
                           const long long* dim_counts, std::int64_t count) {
  std::vector<std::pair<std::string, Dims>> shapes;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (dim_counts[i] < 0 || dim_counts[i] > dim_count - at ||
        static_cast<size_t>(count) != names.size()) {
      throw Error(FOLIO_INVALID_ARGUMENT, "as many names as shapes are needed");
    }
    shapes.emplace_back(names[static_cast<size_t>(i)], dims_of(dims + at, dim_counts[i]));
    at += dim_counts[i];
  }
  session.prepare_shapes(shapes);
}

}  // namespace folio::bridge

#endif  // FOLIO_BINDINGS_REPORTS_H_
