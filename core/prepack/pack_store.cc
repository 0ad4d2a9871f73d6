#include "core/prepack/pack_store.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include "core/base/log.h"
#include "core/os/file_lock.h"
#include "core/os/mapped_file.h"
#include "core/prepack/fpack_writer.h"

namespace folio {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".fpack";
constexpr std::string_view kIndexName = "index.fpack";
constexpr std::string_view kLockName = "lock";
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kOwnDigits = 16;

// A name of a pack in its folder, and nothing else.
bool is_pack_name(std::string_view name) {
  return name.size() > kSuffix.size() && name.ends_with(kSuffix) && name != kIndexName &&
         name.front() != '.' && name.find('/') == std::string_view::npos;
}

// Of packs that stores write themselves: no other file is theirs to remove.
bool is_own_name(std::string_view name) {
  return name.size() == kOwnDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of(kDigits) == kOwnDigits;
}

// Of their temporaries (core/os/new_file.h): a dot, the name and numbers.
bool is_own_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) return false;
  const size_t end = name.find(kSuffix);
  if (end == std::string_view::npos) return false;
  const std::string_view of = name.substr(1, end + kSuffix.size() - 1);
  return of == kIndexName || is_own_name(of);
}

// 32 bytes each: what is remembered of files that have gone must not grow for ever.
constexpr size_t kMaxSpans = 64 << 10;

// Blobs, names and digests of one more pack.
void merge(const PackIndex& from, const std::string& name, uint64_t file_bytes, PackIndex* into) {
  const auto pack = static_cast<uint32_t>(into->packs.size());
  const auto first_name = static_cast<uint32_t>(into->names.size());
  into->packs.push_back({name, file_bytes});
  into->names.insert(into->names.end(), from.names.begin(), from.names.end());
  std::vector<PackEntry> all = into->entries;
  for (PackEntry entry : from.entries) {
    if (into->find(entry.key)) continue;
    entry.pack = pack;
    entry.name += first_name;
    all.push_back(entry);
  }
  std::sort(all.begin(), all.end(),
            [](const PackEntry& a, const PackEntry& b) { return a.key < b.key; });
  into->entries = std::move(all);
  merge_memos(from.memos, &into->memos);
  limit_memos(kMaxSpans, &into->memos);
}

struct Found {
  std::string name;
  uint64_t bytes = 0;
  fs::file_time_type time;
};

// The packs of a folder, newest first; names of leftovers in `others`.
std::vector<Found> list_packs(const std::string& folder, std::vector<std::string>* others) {
  std::vector<Found> packs;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (is_pack_name(name)) {
      packs.push_back({name, it->file_size(ignored), it->last_write_time(ignored)});
    } else if (others && is_own_temporary(name)) {
      others->push_back(name);
    }
  }
  std::sort(packs.begin(), packs.end(), [](const Found& a, const Found& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
  return packs;
}

}  // namespace

Result<Ref<PackStore>> PackStore::open(const std::string& folder, PackChecksum checksum,
                                       bool create) {
  if (folder.empty() || folder.find('\0') != std::string::npos) {
    return invalid_argument("'", folder, "' is no folder for a pack store");
  }
  if (create) {
    std::error_code code;
    if (fs::create_directories(folder, code) && !code) {
      fs::permissions(folder, fs::perms::owner_all, code);
    }
  }
  FOLIO_RETURN_IF_ERROR(check_trusted_folder(folder));
  auto store = make_ref<PackStore>();
  store->folder_ = folder;
  store->checksum_ = checksum;
  store->reload();
  return store;
}

Status PackStore::check_is_store() const {
  std::error_code code;
  for (const std::string_view name : {kIndexName, kLockName}) {
    if (fs::exists(cat(folder_, '/', name), code)) return Status::ok();
  }
  return invalid_argument("'", folder_, "' is no pack store: it has no ", kIndexName);
}

void PackStore::reload() {
  index_ = nullptr;
  const std::string path = cat(folder_, '/', kIndexName);
  auto opened = PackFile::open(path, BlobPlace::kStore);
  if (opened.is_ok()) {
    index_ = std::move(opened).take();
  } else if (opened.status().code() != Code::kNoSuchFile) {
    log(LogLevel::kWarning, cat("pack store ignored: ", opened.status().message()));
  }
}

Ref<PackFile> PackStore::find(const PackKey& key) {
  const PackEntry* entry = index_ ? index_->index().find(key) : nullptr;
  if (!entry || index_->index().packs.empty()) return nullptr;
  const std::string& name = index_->index().packs[entry->pack].name;
  if (!is_pack_name(name)) return nullptr;
  const auto [it, fresh] = open_.try_emplace(name);
  if (fresh) {
    auto opened = PackFile::open(cat(folder_, '/', name), BlobPlace::kStore, checksum_);
    if (opened.is_ok()) {
      it->second = std::move(opened).take();
    } else {
      log(LogLevel::kInfo, cat("pack ignored: ", opened.status().message()));
    }
  }
  return it->second;
}

std::string PackStore::new_pack_path() const {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  IdHasher name;
  name.add(static_cast<uint64_t>(now));
  name.add(static_cast<uint64_t>(getpid()));
  name.add(reinterpret_cast<uintptr_t>(this));
  std::string hex;
  for (uint64_t rest = name.id().low; hex.size() < kOwnDigits; rest >>= 4) {
    hex += kDigits[rest & 15];
  }
  return cat(folder_, '/', hex, kSuffix);
}

Status PackStore::add(const std::string& path, uint64_t limit) {
  auto locked = FileLock::wait(cat(folder_, '/', kLockName));
  if (!locked.is_ok()) {
    std::error_code code;
    fs::remove(path, code);  // without the index nobody finds it
    return std::move(locked).take_status();
  }
  const FileLock lock = std::move(locked).take();
  reload();
  auto added = PackFile::open(path, BlobPlace::kStore);
  if (!added.is_ok()) return std::move(added).take_status();
  const PackIndex& fresh = added.value()->index();
  PackIndex merged;
  if (index_) merged = index_->index();
  const bool is_known =
      std::all_of(fresh.entries.begin(), fresh.entries.end(), [&](const PackEntry& entry) {
        const PackEntry* known = merged.find(entry.key);
        std::error_code code;
        return known && fs::exists(cat(folder_, '/', merged.packs[known->pack].name), code);
      });
  if (is_known && !fresh.entries.empty()) {
    // Another process was faster; its pack serves as well.
    std::error_code code;
    fs::remove(path, code);
    return Status::ok();
  }
  merge(fresh, fs::path(path).filename().string(), added.value()->file_bytes(), &merged);
  uint64_t total = 0;
  for (const PackIndex::Pack& pack : merged.packs) total += is_own_name(pack.name) ? pack.bytes : 0;
  if (limit > 0 && total > limit) {
    Report report;
    return rebuild(limit, Blobs::kAssumed, &report);
  }
  merged.writer = fresh.writer;
  FOLIO_RETURN_IF_ERROR(PackWriter::write_index(cat(folder_, '/', kIndexName), merged));
  reload();
  return Status::ok();
}

Status PackStore::remember(const std::vector<FileMemo>& memos) {
  FOLIO_TRY(const FileLock lock, FileLock::wait(cat(folder_, '/', kLockName)));
  reload();
  PackIndex merged;
  if (index_) merged = index_->index();
  merge_memos(memos, &merged.memos);
  limit_memos(kMaxSpans, &merged.memos);
  FOLIO_RETURN_IF_ERROR(PackWriter::write_index(cat(folder_, '/', kIndexName), merged));
  reload();
  return Status::ok();
}

bool PackStore::Report::add(const Status& state) {
  const bool is_damaged = state.code() == Code::kInvalidGraph;
  (is_damaged ? damaged : ignored).emplace_back(state.message());
  return is_damaged;
}

Status PackStore::rebuild(uint64_t limit, Blobs blobs, Report* report) {
  std::vector<std::string> leftovers;
  PackIndex merged;
  const auto remove = [&](const std::string& name, uint64_t bytes) {
    std::error_code code;
    if (!fs::remove(cat(folder_, '/', name), code)) return;
    ++report->removed;
    report->removed_bytes += bytes;
  };
  uint64_t own_bytes = 0;
  for (const Found& pack : list_packs(folder_, &leftovers)) {
    const bool is_own = is_own_name(pack.name);
    auto opened = PackFile::open(cat(folder_, '/', pack.name), BlobPlace::kStore);
    if (opened.is_ok() && opened.value()->is_only_copy()) continue;  // somebody's model: no cache
    const Status state = !opened.is_ok()             ? opened.status()
                         : blobs == Blobs::kCompared ? opened.value()->check_blobs()
                                                     : Status::ok();
    if (!state.is_ok()) {
      if (report->add(state) && is_own) remove(pack.name, pack.bytes);
      continue;
    }
    if (is_own && limit > 0 && own_bytes + pack.bytes > limit) {
      remove(pack.name, pack.bytes);
      continue;
    }
    merge(opened.value()->index(), pack.name, opened.value()->file_bytes(), &merged);
    merged.writer = opened.value()->index().writer;
    ++report->packs;
    report->bytes += pack.bytes;
    if (is_own) own_bytes += pack.bytes;
  }
  // Whoever still writes a temporary finds it gone and gives up its pack: nothing is lost.
  for (const std::string& name : leftovers) remove(name, 0);
  report->blobs = merged.entries.size();
  FOLIO_RETURN_IF_ERROR(PackWriter::write_index(cat(folder_, '/', kIndexName), merged));
  reload();
  return Status::ok();
}

Result<PackStore::Report> PackStore::collect(uint64_t limit) {
  FOLIO_TRY(const FileLock lock, FileLock::wait(cat(folder_, '/', kLockName)));
  Report report;
  FOLIO_RETURN_IF_ERROR(rebuild(limit, Blobs::kCompared, &report));
  return report;
}

Result<PackStore::Report> PackStore::verify() {
  Report report;
  for (const Found& pack : list_packs(folder_, nullptr)) {
    ++report.packs;
    report.bytes += pack.bytes;
    const std::string path = cat(folder_, '/', pack.name);
    auto opened = PackFile::open(path, BlobPlace::kStore);
    if (!opened.is_ok()) {
      report.add(opened.status());
      continue;
    }
    const PackFile& file = *opened.value();
    for (const PackEntry& entry : file.index().entries) {
      ++report.blobs;
      if (!file.is_intact(entry)) report.add(file.damage_of(entry));
    }
  }
  return report;
}

}  // namespace folio
