// Memory reports: what models, sessions and the process hold, where it is, and what was shared.
//
// Flow:    sessions -> pieces (sources, packed weights, constants; each once, with the number of
//          sessions that use it) -> entries -> the kernel's figures of their ranges -> sums ->
//          text, JSON.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "c_api/reports.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/kernels/select.h"
#include "core/os/arena.h"
#include "core/os/cpu_features.h"
#include "core/os/mapped_file.h"
#include "core/os/memory_source.h"
#include "core/os/memory_stats.h"
#include "core/os/run_blocks.h"

namespace folio {
namespace {

using Entry = FolioMemoryReport::Entry;
using Ranges = std::vector<AddressRange>;

// An entry, and the part of the address space where the kernel is asked about it.
struct Row {
  Entry entry;
  Ranges ranges;
};

Row row(std::string name, const char* kind, uint64_t bytes, bool is_private) {
  return {{std::move(name), kind, bytes, 0, is_private, 0}, {}};
}

Row row_of(const ByteSource& source) {
  const Bytes bytes = source.bytes();
  Row made = row(utf8_repaired(source.name()), "memory", bytes.size(), false);
  const MappedFile* file = as_mapped_file(source);
  if (file && file->loading() == FileLoading::kMap) {
    made.entry.kind = "mapping";
    made.ranges.push_back({bytes.data(), bytes.size()});
  } else if (file) {
    made.entry.is_private = true;
  } else if (const auto* memory = dynamic_cast<const MemorySource*>(&source.origin())) {
    made.entry.is_private = memory->is_copy();
  }
  return made;
}

// ---- What sessions hold

enum class Kind : uint8_t { kSource, kBlob, kConstant };

struct Piece {
  Kind kind = Kind::kSource;
  BlobPlace place = BlobPlace::kHeap;  // of a blob
  uint64_t bytes = 0;
  uint64_t users = 0;  // sessions
};

// By where they begin.
using Pieces = std::map<const uint8_t*, Piece>;

// What a program and those of its subgraphs hold, each thing once.
class Holdings {
 public:
  explicit Holdings(const SessionState& session) {
    add_source(session.model()->source());
    add_sources(session.session().program());
    add_rest(session.session().program());
  }
  const Pieces& pieces() const { return pieces_; }
  const std::vector<const ByteSource*>& sources() const { return sources_; }

 private:
  bool add(const uint8_t* data, Kind kind, uint64_t bytes, BlobPlace place = BlobPlace::kHeap) {
    return pieces_.try_emplace(data, Piece{kind, place, bytes, 1}).second;
  }
  void add_source(const ByteSource& source) {
    const Bytes bytes = source.bytes();
    if (add(bytes.data(), Kind::kSource, bytes.size())) sources_.push_back(&source);
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
    return std::any_of(sources_.begin(), sources_.end(), [&](const ByteSource* source) {
      const Bytes bytes = source->bytes();
      return data >= bytes.data() && data < bytes.data() + bytes.size();
    });
  }
  void add_rest(const Program& program) {
    // Subprograms share the packed weights of their root.
    for (const Ref<const PackedBlob>& blob : program.packed_now()) {
      add(blob->data(), Kind::kBlob, blob->bytes(), blob->place());
    }
    for (const Value& value : program.constants) {  // one that lies in a blob is there already
      const Tensor& tensor = value.tensor();
      if (!in_source(tensor.raw())) add(tensor.raw(), Kind::kConstant, tensor.bytes());
    }
    for (const Step& step : program.steps) {
      for (const Subprogram& sub : step.subprograms) add_rest(*sub.program);
    }
  }

  Pieces pieces_;
  std::vector<const ByteSource*> sources_;
};

// The pieces of all sessions of the process. Sessions that share a program hold the same.
Pieces pieces_of_process() {
  std::map<const Program*, std::pair<Holdings, uint64_t>> programs;
  Pieces all;
  // Under the lock of the list, which keeps the sessions alive; the kernel is asked later.
  each_session([&](const SessionState& session) {
    const Program* const program = &session.session().program();
    const auto found = programs.find(program);
    if (found != programs.end()) {
      ++found->second.second;
    } else {
      programs.emplace(program, std::pair(Holdings(session), 1));
    }
  });
  for (const auto& [program, held] : programs) {
    for (const auto& [data, piece] : held.first.pieces()) {
      Piece& sum =
          all.try_emplace(data, Piece{piece.kind, piece.place, piece.bytes, 0}).first->second;
      sum.users += held.second;
    }
  }
  return all;
}

// ---- Rows

constexpr const char* kPackedNames[kBlobPlaces] = {"packed weights", "packed weights, sidecar",
                                                   "packed weights, store"};

// Packed weights by the place they live in: memory of this process, or pages of pack files. Then
// what was computed.
void add_packed_and_constants(const Pieces& pieces, std::vector<Row>* rows) {
  for (int i = 0; i < kBlobPlaces; ++i) {
    const auto place = static_cast<BlobPlace>(i);
    const bool is_heap = place == BlobPlace::kHeap;
    Row made = row(kPackedNames[i], "packed", 0, is_heap);
    for (const auto& [data, piece] : pieces) {
      if (piece.kind != Kind::kBlob || piece.place != place) continue;
      made.entry.bytes += piece.bytes;
      if (!is_heap) made.ranges.push_back({data, piece.bytes});
    }
    if (is_heap || made.entry.bytes > 0) rows->push_back(std::move(made));
  }
  Row constants = row("constants", "constant", 0, true);
  for (const auto& [data, piece] : pieces) {
    if (piece.kind == Kind::kConstant) constants.entry.bytes += piece.bytes;
  }
  rows->push_back(std::move(constants));
}

bool lies_in(const AddressRange& range, const std::vector<Bytes>& mappings) {
  const auto* const begin = static_cast<const uint8_t*>(range.begin);
  return std::any_of(mappings.begin(), mappings.end(), [&](const Bytes& mapping) {
    return begin >= mapping.data() && begin < mapping.data() + mapping.size();
  });
}

// The mapped files but for the packed weights in them, which have rows of their own.
Row mapped_files(const RegistryStats& files, const std::vector<Row>& packed) {
  Row made = row("mapped files", "mapping", files.mapped_bytes, false);
  for (const Bytes& mapping : files.mappings) {
    made.ranges.push_back({mapping.data(), mapping.size()});
  }
  for (const Row& other : packed) {
    for (const AddressRange& range : other.ranges) {
      if (lies_in(range, files.mappings)) made.entry.bytes -= range.bytes;
    }
  }
  return made;
}

// Asks the kernel about all ranges at once.
void measure(std::vector<Row>* rows) {
  std::vector<Ranges> groups;
  for (const Row& each : *rows) groups.push_back(each.ranges);
  const auto found = read_group_stats(groups);
  if (!found.is_ok()) return;
  for (size_t i = 0; i < rows->size(); ++i) {
    Entry& entry = (*rows)[i].entry;
    entry.resident_bytes = std::min(found.value()[i].rss * 1024, entry.bytes);
    entry.pss_bytes = std::min(found.value()[i].pss * 1024, entry.bytes);
  }
}

// ---- Sums

FolioMemorySummary summary_of(const std::vector<Row>& rows) {
  FolioMemorySummary sum = {};
  for (const Row& each : rows) {
    const Entry& entry = each.entry;
    const std::string_view kind = entry.kind;
    sum.resident_bytes += entry.resident_bytes;
    sum.pss_bytes += entry.pss_bytes;
    if (entry.is_private) sum.private_bytes += entry.bytes;
    if (kind == "mapping" || (kind == "packed" && !entry.is_private)) {
      sum.mapped_bytes += entry.bytes;
    }
    if (kind == "arena") sum.arena_bytes += entry.bytes;
    if (kind == "constant") sum.constant_bytes += entry.bytes;
    if (entry.name == kPackedNames[0]) sum.packed_heap_bytes += entry.bytes;
    if (entry.name == kPackedNames[1]) sum.packed_sidecar_bytes += entry.bytes;
    if (entry.name == kPackedNames[2]) sum.packed_store_bytes += entry.bytes;
  }
  return sum;
}

struct SummaryField {
  const char* name;
  uint64_t FolioMemorySummary::*member;
  bool is_of_process;
};
constexpr SummaryField kSummaryFields[] = {
    {"mapped_bytes", &FolioMemorySummary::mapped_bytes, false},
    {"resident_bytes", &FolioMemorySummary::resident_bytes, false},
    {"pss_bytes", &FolioMemorySummary::pss_bytes, false},
    {"private_bytes", &FolioMemorySummary::private_bytes, false},
    {"packed_sidecar_bytes", &FolioMemorySummary::packed_sidecar_bytes, false},
    {"packed_store_bytes", &FolioMemorySummary::packed_store_bytes, false},
    {"packed_heap_bytes", &FolioMemorySummary::packed_heap_bytes, false},
    {"constant_bytes", &FolioMemorySummary::constant_bytes, false},
    {"saved_file_bytes", &FolioMemorySummary::saved_file_bytes, false},
    {"saved_packed_bytes", &FolioMemorySummary::saved_packed_bytes, false},
    {"arena_bytes", &FolioMemorySummary::arena_bytes, true},
    {"process_rss_bytes", &FolioMemorySummary::process_rss_bytes, true},
    {"process_pss_bytes", &FolioMemorySummary::process_pss_bytes, true},
    {"process_anonymous_bytes", &FolioMemorySummary::process_anonymous_bytes, true},
    {"process_page_table_bytes", &FolioMemorySummary::process_page_table_bytes, true},
};

using ProcessRows = std::vector<std::pair<const char*, uint64_t>>;

// Of a session: what defines its results' bits, its threads, and its memory in the last run.
struct ProgramFacts {
  std::string arithmetic;
  int threads = 0;
  ArenaSizes arena;
};

ProgramFacts facts_of(const Session& session) {
  const Program& program = session.program();
  const FolioPrecision precision = session.options().precision;
  const bool counts = folio_multiplies_parts(&kernels_for(cpu_bits()), precision) != 0;
  return {cat(kernel_level_name(cpu_bits()), program.uses_winograd ? "+winograd" : "",
              !counts || precision == kFolioHighest ? ""
              : precision == kFolioHigh             ? "+high"
                                                    : "+medium"),
          session.thread_count(), program.shapes.arena_sizes()};
}

ProcessRows rows_of(const MemoryStats& stats) {
  return {{"rss_kib", stats.rss},
          {"pss_kib", stats.pss},
          {"pss_anon_kib", stats.pss_anon},
          {"pss_file_kib", stats.pss_file},
          {"private_clean_kib", stats.private_clean},
          {"private_dirty_kib", stats.private_dirty},
          {"shared_clean_kib", stats.shared_clean},
          {"shared_dirty_kib", stats.shared_dirty},
          {"anonymous_kib", stats.anonymous},
          {"swap_kib", stats.swap},
          {"page_tables_kib", stats.vm_pte},
          {"peak_rss_kib", stats.vm_hwm}};
}

// ---- Text

uint64_t sum_bytes(const FolioMemoryReport& report) {
  uint64_t bytes = 0;
  for (const Entry& entry : report.entries) bytes += entry.bytes;
  return bytes;
}

std::string to_json(const FolioMemoryReport& report, const ProcessRows& process,
                    const ProgramFacts* program) {
  std::string out = "{\"entries\": [";
  for (const Entry& entry : report.entries) {
    if (&entry != &report.entries.front()) out += ", ";
    out += cat("{\"name\": ", json_string(entry.name), ", \"kind\": \"", entry.kind,
               "\", \"bytes\": ", entry.bytes, ", \"resident_bytes\": ", entry.resident_bytes,
               ", \"pss_bytes\": ", entry.pss_bytes,
               ", \"is_private\": ", entry.is_private ? "true" : "false", "}");
  }
  out += cat("], \"bytes\": ", sum_bytes(report),
             ", \"private_bytes\": ", report.summary.private_bytes, ", \"summary\": {");
  for (const SummaryField& field : kSummaryFields) {
    if (field.is_of_process && process.empty()) continue;
    out += cat(&field == kSummaryFields ? "\"" : ", \"", field.name,
               "\": ", report.summary.*field.member);
  }
  out += cat("}, \"kernels\": \"", kernel_level_name(cpu_bits()), "\"");
  if (program) {
    out += cat(", \"arithmetic\": \"", program->arithmetic, "\", \"threads\": ", program->threads,
               ", \"arena\": {\"planned_bytes\": ", program->arena.arena_bytes,
               ", \"live_bytes\": ", program->arena.live_bytes_max, "}");
  }
  if (!process.empty()) {
    out += ", \"process\": {";
    for (const auto& each : process) {
      out += cat(&each == &process.front() ? "\"" : ", \"", each.first, "\": ", each.second);
    }
    out += "}";
  }
  return out + "}";
}

std::string to_text(const FolioMemoryReport& report, const ProcessRows& process,
                    const ProgramFacts* program) {
  const auto line = [](const std::string& bytes, const std::string& resident,
                       const std::string& share, const std::string& kind, const std::string& name) {
    char columns[160];
    std::snprintf(columns, sizeof columns, "%16s %16s %16s  %-18s ", bytes.c_str(),
                  resident.c_str(), share.c_str(), kind.c_str());
    return columns + name + "\n";
  };
  std::string out = line("bytes", "resident", "PSS", "kind", "name");
  for (const Entry& entry : report.entries) {
    const std::string_view kind = entry.kind;
    const bool is_file = kind == "mapping" || (kind == "packed" && !entry.is_private);
    out += line(std::to_string(entry.bytes), is_file ? std::to_string(entry.resident_bytes) : "-",
                is_file ? std::to_string(entry.pss_bytes) : "-",
                cat(kind, entry.is_private ? ", private" : ""), entry.name);
  }
  const FolioMemorySummary& sum = report.summary;
  out += line(std::to_string(sum_bytes(report)), std::to_string(sum.resident_bytes),
              std::to_string(sum.pss_bytes), "sum", "");
  out += line(std::to_string(sum.private_bytes), "", "", "sum, private", "");
  out += line(std::to_string(sum.saved_file_bytes), "", "", "saved", "files used by several");
  out += line(std::to_string(sum.saved_packed_bytes), "", "", "saved", "weights used by several");
  for (const auto& [name, number] : process) {
    out += line(std::to_string(number), "", "", "process", name);
  }
  if (program) {
    out += line(std::to_string(program->arena.arena_bytes), "", "", "planned", "arena of a run");
    out += line(std::to_string(program->arena.live_bytes_max), "", "", "planned",
                "needed at once: no arena is smaller");
  }
  return out;
}

std::unique_ptr<FolioMemoryReport> make_report(const std::vector<Row>& rows,
                                               const FolioMemorySummary& summary,
                                               const ProcessRows& process,
                                               const ProgramFacts* program = nullptr) {
  auto report = std::make_unique<FolioMemoryReport>();
  for (const Row& each : rows) report->entries.push_back(each.entry);
  report->summary = summary;
  report->json = to_json(*report, process, program);
  report->text = to_text(*report, process, program);
  return report;
}

}  // namespace

std::unique_ptr<FolioMemoryReport> report_model(const ModelState& model) {
  std::vector<Row> rows = {row_of(model.source())};
  std::set<const uint8_t*> seen = {model.source().bytes().data()};
  const auto files = model.file()->watch().files();  // external data, and packs that are in use
  for (const Ref<const ByteSource>& file : files) {
    const Bytes bytes = file->bytes();  // none: a pack file that is still being written
    if (!bytes.empty() && seen.insert(bytes.data()).second) rows.push_back(row_of(*file));
  }
  measure(&rows);
  return make_report(rows, summary_of(rows), {});
}

std::unique_ptr<FolioMemoryReport> report_session(const SessionState& session) {
  const Holdings holdings(session);
  std::vector<Row> rows;
  for (const ByteSource* source : holdings.sources()) rows.push_back(row_of(*source));
  add_packed_and_constants(holdings.pieces(), &rows);
  measure(&rows);
  FolioMemorySummary sum = summary_of(rows);
  const Pieces all = pieces_of_process();
  for (const auto& [data, piece] : holdings.pieces()) {
    const auto found = all.find(data);
    if (found == all.end() || found->second.users < 2) continue;
    (piece.kind == Kind::kSource ? sum.saved_file_bytes : sum.saved_packed_bytes) += piece.bytes;
  }
  const ProgramFacts facts = facts_of(session.session());
  return make_report(rows, sum, {}, &facts);
}

std::unique_ptr<FolioMemoryReport> report_process() {
  const RegistryStats files = registry_stats();
  const ArenaPool::Stats arenas = ArenaPool::process().stats();
  const Pieces pieces = pieces_of_process();
  std::vector<Row> packed;
  add_packed_and_constants(pieces, &packed);
  std::vector<Row> rows = {mapped_files(files, packed),
                           row("files read into memory", "memory", files.read_bytes, true)};
  // Buffers hold packed weights and constants and read files as well. The numbers are of slightly
  // different instants, so that the difference may be below nothing for a moment.
  const uint64_t buffers = buffer_bytes_live();
  uint64_t counted = files.read_bytes;
  for (Row& each : packed) {
    if (each.entry.is_private) counted += each.entry.bytes;
    rows.push_back(std::move(each));
  }
  rows.push_back(row("arenas in use", "arena", arenas.leased_bytes, true));
  const uint64_t idle = arenas.idle_bytes + BlockPool::process().stats().idle_bytes;
  rows.push_back(row("idle arenas and blocks", "arena", idle, true));
  rows.push_back(
      row("tensors and copies", "buffer", buffers > counted ? buffers - counted : 0, true));
  measure(&rows);
  FolioMemorySummary sum = summary_of(rows);
  for (const auto& [data, piece] : pieces) {
    const uint64_t again = (piece.users - 1) * piece.bytes;
    (piece.kind == Kind::kSource ? sum.saved_file_bytes : sum.saved_packed_bytes) += again;
  }
  const auto stats = read_memory_stats();
  if (!stats.is_ok()) return make_report(rows, sum, {});
  sum.process_rss_bytes = stats.value().rss * 1024;
  sum.process_pss_bytes = stats.value().pss * 1024;
  sum.process_anonymous_bytes = stats.value().anonymous * 1024;
  sum.process_page_table_bytes = stats.value().vm_pte * 1024;
  return make_report(rows, sum, rows_of(stats.value()));
}

}  // namespace folio
