// Entries: pack files and stores.
#include <algorithm>

#include "c_api/boundary.h"
#include "c_api/entries.h"
#include "c_api/env_config.h"
#include "c_api/handles.h"
#include "c_api/reports.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/session/pack_model.h"
#include "core/session/replace_weights.h"

namespace folio {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Status check_flag(const char* name, int32_t value) {
  if (value == 0 || value == 1) return Status::ok();
  return invalid_argument(name, " is ", value, ", expected 0 or 1");
}

struct Asked : PackModelOptions {
  bool replace = false;  // `path` is the model to write
};

Result<Asked> read_options(const FolioPackOptions* options) {
  Asked result;
  if (!options) return result;
  FolioPackOptions asked = {};
  FOLIO_RETURN_IF_ERROR(read_struct(options, &asked, "FolioPackOptions"));
  FOLIO_RETURN_IF_ERROR(check_flag("check", asked.check));
  FOLIO_RETURN_IF_ERROR(check_flag("replace", asked.replace));
  if (asked.replace == 1 && (asked.check == 1 || asked.store || asked.levels)) {
    return invalid_argument("replace goes with no store, no levels and no check");
  }
  if (asked.path && asked.store) {
    return invalid_argument("a path and a store are given, expected one of them");
  }
  if (asked.path) result.path = asked.path;
  if (asked.store) result.store = asked.store;
  if (asked.levels) result.levels = split(asked.levels, ',');
  result.check = asked.check == 1;
  result.replace = asked.replace == 1;
  return result;
}

// The result of ModelPack.
Result<FolioPackResult> pack(const Ref<ModelFile>& model, SessionOptions session,
                             const Asked& asked) {
  FolioPackResult result = {};
  if (asked.replace) {
    FOLIO_TRY(const ReplaceResult replaced, replace_weights(model, session, asked.path));
    result.written_blob_count = replaced.packed_weights + replaced.raw_weights;
    result.written_blob_bytes = replaced.packed_bytes + replaced.raw_bytes;
    result.raw_blob_count = replaced.raw_weights;
    result.raw_blob_bytes = replaced.raw_bytes;
    return result;
  }
  FOLIO_TRY(const PackModelResult packed, pack_model(model, std::move(session), asked));
  result.written_blob_count = packed.written_blobs;
  result.written_blob_bytes = packed.written_bytes;
  result.found_blob_count = packed.found_blobs;
  result.missing_blob_count = packed.missing_blobs;
  return result;
}

std::string hex_of(const ContentId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t part : {id.high, id.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[part >> shift & 15];
  }
  return text;
}

std::string text_json(std::string_view text) { return json_string(utf8_repaired(text)); }

std::string texts_json(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    out += cat(&text == &texts.front() ? "" : ", ", text_json(text));
  }
  return out + "]";
}

std::string blob_json(const PackIndex& index, const PackEntry& entry) {
  return cat("{\"name\": ", text_json(index.names[entry.name]), ", \"layout\": \"",
             layout_name(entry.layout), "\", \"version\": ", entry.version,
             ", \"bytes\": ", entry.bytes, ", \"offset\": ", entry.offset, ", \"key\": \"",
             hex_of(entry.key), "\"}");
}

std::string file_json(const PackFile& file, bool verify) {
  const PackIndex& index = file.index();
  std::string out = cat("{\"path\": ", text_json(file.path()), ", \"bytes\": ", file.file_bytes(),
                        ", \"is_only_copy\": ", file.is_only_copy() ? "true" : "false",
                        ", \"writer\": ", text_json(index.writer), ", \"blobs\": [");
  std::vector<std::string> damaged;
  for (const PackEntry& entry : index.entries) {
    out += cat(&entry == &index.entries.front() ? "" : ", ", blob_json(index, entry));
    if (verify && !file.is_intact(entry)) damaged.push_back(index.names[entry.name]);
  }
  out += "], \"files\": [";
  for (const FileMemo& memo : index.memos) {
    out += cat(&memo == &index.memos.front() ? "" : ", ", "{\"bytes\": ", memo.file.size,
               ", \"mtime_ns\": ", memo.file.mtime_ns, ", \"digests\": ", memo.spans.size(), "}");
  }
  out += "]";
  if (verify) out += cat(", \"damaged\": ", texts_json(damaged));
  return out + "}";
}

std::string store_json(const PackStore& store, const PackStore::Report* report) {
  std::string out = cat("{\"path\": ", text_json(store.folder()));
  if (report) {
    out += cat(", \"pack_count\": ", report->packs, ", \"bytes\": ", report->bytes,
               ", \"blob_count\": ", report->blobs, ", \"removed_count\": ", report->removed,
               ", \"removed_bytes\": ", report->removed_bytes,
               ", \"damaged\": ", texts_json(report->damaged),
               ", \"ignored\": ", texts_json(report->ignored));
    return out + "}";
  }
  const PackIndex none;
  const PackIndex& index = store.index() ? *store.index() : none;
  uint64_t total = 0;
  std::string packs;
  std::vector<uint64_t> blobs(index.packs.size());
  for (const PackEntry& entry : index.entries) ++blobs[entry.pack];
  for (size_t i = 0; i < index.packs.size(); ++i) {
    total += index.packs[i].bytes;
    packs += cat(i == 0 ? "" : ", ", "{\"name\": ", text_json(index.packs[i].name),
                 ", \"bytes\": ", index.packs[i].bytes, ", \"blob_count\": ", blobs[i], "}");
  }
  return cat(out, ", \"pack_count\": ", index.packs.size(), ", \"bytes\": ", total,
             ", \"blob_count\": ", index.entries.size(), ", \"packs\": [", packs, "]}");
}

uint64_t difference(uint64_t from, uint64_t of) { return from > of ? from - of : 0; }

FolioPackCacheStats stats_of(const PackedCache& cache) {
  const PackedCache::Stats found = cache.stats();
  const PackCounts& files = found.files;
  FolioPackCacheStats stats = {};
  stats.blob_count = found.live_blobs;
  stats.blob_bytes = found.live_bytes;
  stats.hit_count = found.hits;
  stats.miss_count = found.misses;
  stats.found_count = files.hits;
  stats.found_bytes = files.hit_bytes;
  stats.packed_count = found.made_blobs;
  stats.packed_bytes = found.made_bytes;
  stats.written_count = files.written_blobs;
  stats.written_bytes = files.written_bytes;
  // Loads without a pack file to look in count no lookups. A load that goes on is in found.misses
  // already, but not in files.
  stats.absent_count = difference(found.misses, files.hits + files.misfits + files.damaged);
  stats.misfit_count = files.misfits;
  stats.damaged_count = files.damaged;
  stats.ignored_file_count = files.ignored_files;
  stats.hashed_bytes = files.hashed_bytes;
  stats.memo_bytes = files.memo_bytes;
  stats.declared_bytes = files.declared_bytes;
  stats.cached_bytes = files.cached_bytes;
  const auto live = [&](BlobPlace place, uint64_t* blobs, uint64_t* bytes) {
    *blobs = found.place_blobs[static_cast<int>(place)];
    *bytes = found.place_bytes[static_cast<int>(place)];
  };
  live(BlobPlace::kHeap, &stats.heap_blob_count, &stats.heap_blob_bytes);
  live(BlobPlace::kSidecar, &stats.sidecar_blob_count, &stats.sidecar_blob_bytes);
  live(BlobPlace::kStore, &stats.store_blob_count, &stats.store_blob_bytes);
  if (cache.record()) {
    const PackRecord::Size recorded = cache.record()->size();
    stats.recorded_count = recorded.blobs;
    stats.recorded_bytes = recorded.bytes;
  }
  return stats;
}

}  // namespace

namespace entry {

FolioStatus* PackCacheGetStats(const FolioPackCache* cache, FolioPackCacheStats* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(out);
    const FolioPackCacheStats stats = stats_of(cache ? *cache->cache : PackedCache::process());
    return write_struct(out, stats, "FolioPackCacheStats");
  });
}

FolioStatus* PackCacheWrite(const FolioPackCache* cache, const char* path, FolioPackResult* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(cache);
    FOLIO_RETURN_IF_ERROR(check_name(path, "path"));
    if (!cache->cache->record()) {
      return invalid_argument("the cache does not record what it has (FolioPackCacheOptions)");
    }
    FOLIO_TRY(const PackRecord::Size written,
              cache->cache->record()->write(path, cat("folio ", FOLIO_VERSION)));
    if (!out) return Status::ok();
    FolioPackResult result = {};
    result.written_blob_count = written.blobs;
    result.written_blob_bytes = written.bytes;
    return write_struct(out, result, "FolioPackResult");
  });
}

FolioStatus* PackCacheCollect(FolioPackCache* cache, FolioPackCacheCollected* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(cache);
    const PackedCache::Stats before = cache->cache->stats();
    cache->cache->collect();
    const PackedCache::Stats after = cache->cache->stats();
    if (!out) return Status::ok();
    FolioPackCacheCollected result = {};
    result.blob_count = difference(before.live_blobs, after.live_blobs);
    result.blob_bytes = difference(before.live_bytes, after.live_bytes);
    return write_struct(out, result, "FolioPackCacheCollected");
  });
}

FolioStatus* ModelPack(const FolioModel* model, const FolioSessionOptions* options,
                       const FolioPackOptions* pack, FolioPackResult* out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(model);
    FOLIO_TRY(const Asked asked, read_options(pack));
    SessionOptions session = options ? options->options : session_defaults();
    if (session.threads == 0) session.threads = model->state->env()->threads();
    if (options) {
      session.progress =
          progress_for(options->progress, options->progress_user, options->cancel, 0, 1);
    }
    auto packed = folio::pack(model->state->file(), std::move(session), asked);
    if (!packed.is_ok()) return as_load_error(std::move(packed).take_status());
    if (!out) return Status::ok();
    return write_struct(out, packed.value(), "FolioPackResult");
  });
}

FolioStatus* PackFileGetJson(const char* path, int32_t verify, char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(path);
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const Ref<PackFile> file, PackFile::open(path, BlobPlace::kSidecar));
    *out = copy_for_caller(file_json(*file, verify != 0));
    return Status::ok();
  });
}

FolioStatus* PackStoreGetJson(const char* folder, FolioPackStoreAction action, uint64_t limit_bytes,
                              char** out) {
  return guarded([&]() -> Status {
    FOLIO_NOT_NULL(folder);
    FOLIO_NOT_NULL(out);
    FOLIO_TRY(const Ref<PackStore> store, PackStore::open(folder, PackChecksum::kOff, false));
    FOLIO_RETURN_IF_ERROR(store->check_is_store());
    if (action == FOLIO_PACK_STORE_LIST) {
      *out = copy_for_caller(store_json(*store, nullptr));
      return Status::ok();
    }
    if (action != FOLIO_PACK_STORE_VERIFY && action != FOLIO_PACK_STORE_COLLECT) {
      return invalid_argument("action is ", static_cast<int>(action), ", expected 0, 1 or 2");
    }
    const bool verifies = action == FOLIO_PACK_STORE_VERIFY;
    FOLIO_TRY(const PackStore::Report report,
              verifies ? store->verify() : store->collect(limit_bytes));
    *out = copy_for_caller(store_json(*store, &report));
    return Status::ok();
  });
}

}  // namespace entry
}  // namespace folio
