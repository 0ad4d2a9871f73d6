#include "core/prepack/pack_library.h"

#include <algorithm>
#include <chrono>

#include "core/base/log.h"

namespace folio {
namespace {

// A file may be written twice within the granularity of its times; what was hashed so soon after
// a write could have been written again unnoticed (git's "racy" rule).
constexpr int64_t kRacyNs = 100'000'000;

int64_t now_ns() {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

bool is_settled(const FileMemo& memo, PackTrust trust) {
  const int64_t changed = trust == PackTrust::kStat
                              ? memo.file.mtime_ns
                              : std::max(memo.file.mtime_ns, memo.file.ctime_ns);
  return memo.hashed_at_ns - changed > kRacyNs;
}

bool matches(const FileMemo& memo, const FileIdentity& file, PackTrust trust) {
  if (trust == PackTrust::kVerify || !is_settled(memo, trust)) return false;
  if (trust == PackTrust::kBound) return memo.file == file;
  return memo.file.size == file.size && memo.file.mtime_ns == file.mtime_ns;
}

}  // namespace

Result<Ref<PackLibrary>> PackLibrary::open(const PackOptions& options) {
  auto library = make_ref<PackLibrary>();
  library->options_ = options;
  if (!options.sidecar.empty()) library->add_file(options.sidecar, BlobPlace::kSidecar);
  for (const std::string& folder : options.stores) {
    const bool is_last = &folder == &options.stores.back() && !options.is_read_only;
    auto store = PackStore::open(folder, options.checksum, /*create=*/is_last);
    if (store.is_ok()) {
      library->stores_.push_back(std::move(store).take());
      if (is_last) library->writable_ = library->stores_.back();
    } else {
      library->ignore(folder, store.status());
    }
  }
  if (!options.output.empty()) {
    FOLIO_TRY(library->writer_, PackWriter::create(options.output, options.producer));
  }
  return library;
}

void PackLibrary::ignore(const std::string& path, const Status& why) {
  stats_.ignored.push_back(cat(path, ": ", why.message()));
  log(LogLevel::kWarning, cat("pack ignored: ", why.message()));
}

void PackLibrary::add_file(const std::string& path, BlobPlace place) {
  auto file = PackFile::open(path, place, options_.checksum);
  if (file.is_ok()) {
    files_.push_back(std::move(file).take());
  } else if (file.status().code() != Code::kNoSuchFile) {
    ignore(path, file.status());
  }
}

Ref<const PackedBlob> PackLibrary::take(const Ref<PackFile>& file, const PackKey& key,
                                        uint64_t bytes) {
  const PackEntry* entry = file->index().find(key);
  if (!entry) return nullptr;
  if (entry->bytes != bytes) {
    ++stats_.misfits;
    return nullptr;
  }
  auto blob = file->blob(*entry);
  if (!blob.is_ok()) {
    ++stats_.damaged;
    log(LogLevel::kWarning, cat("pack ignored: ", blob.status().message()));
    return nullptr;
  }
  ++stats_.hits;
  if (std::find(sources_.begin(), sources_.end(), file->source()) == sources_.end()) {
    sources_.push_back(file->source());
  }
  return std::move(blob).take();
}

Ref<const PackedBlob> PackLibrary::find(const PackKey& key, uint64_t bytes) {
  for (const Ref<PackFile>& file : files_) {
    if (Ref<const PackedBlob> blob = take(file, key, bytes)) return blob;
  }
  for (const Ref<PackStore>& store : stores_) {
    const Ref<PackFile> file = store->find(key);
    if (!file) continue;
    if (Ref<const PackedBlob> blob = take(file, key, bytes)) return blob;
  }
  ++stats_.misses;
  return nullptr;
}

const ContentId* PackLibrary::remembered(const FileIdentity& identity, uint64_t offset,
                                         uint64_t bytes) const {
  const auto look = [&](const std::vector<FileMemo>& memos) -> const ContentId* {
    for (const FileMemo& memo : memos) {
      if (!matches(memo, identity, options_.trust)) continue;
      if (const ContentId* digest = memo.find(offset, bytes)) return digest;
    }
    return nullptr;
  };
  for (const Ref<PackFile>& file : files_) {
    if (const ContentId* digest = look(file->index().memos)) return digest;
  }
  for (const Ref<PackStore>& store : stores_) {
    if (!store->index()) continue;
    if (const ContentId* digest = look(store->index()->memos)) return digest;
  }
  return nullptr;
}

FileMemo& PackLibrary::memo_of(const FileIdentity& identity) {
  const auto it = std::find_if(hashed_.begin(), hashed_.end(),
                               [&](const FileMemo& memo) { return memo.file == identity; });
  if (it != hashed_.end()) return *it;
  hashed_.push_back({identity, now_ns(), {}});
  return hashed_.back();
}

ContentId PackLibrary::digest(const ByteSource& source, uint64_t offset, Bytes bytes) {
  const FileIdentity* identity = source.identity();
  if (!identity) {
    stats_.hashed_bytes += bytes.size();
    return hash_bytes(bytes);
  }
  FileMemo& memo = memo_of(*identity);
  if (const ContentId* known = memo.find(offset, bytes.size())) return *known;
  // What is written now keeps the digests that others had: a pack file serves alone.
  if (const ContentId* known = remembered(*identity, offset, bytes.size())) {
    const ContentId found = *known;
    if (options_.trust == PackTrust::kBound) memo.add(offset, bytes.size(), found);
    return found;
  }
  const ContentId digest = hash_bytes(bytes);
  stats_.hashed_bytes += bytes.size();
  memo.add(offset, bytes.size(), digest);
  return digest;
}

bool PackLibrary::start_store_writer() {
  if (writer_ || gave_up_ || !writable_) return writer_ != nullptr;
  auto created = PackWriter::create(writable_->new_pack_path(), options_.producer);
  if (created.is_ok()) {
    writer_ = std::move(created).take();
  } else {
    gave_up_ = true;  // a store that only can be read
    log(LogLevel::kInfo, cat("nothing is added to the store: ", created.status().message()));
  }
  return writer_ != nullptr;
}

Result<Ref<const PackedBlob>> PackLibrary::write(const PackWriter::Label& label, uint64_t bytes,
                                                 const PackWriter::Fill& fill) {
  if (!start_store_writer()) return Ref<const PackedBlob>();
  Status filled = Status::ok();
  const PackWriter::Fill checked = [&](uint8_t* blob) {
    filled = fill(blob);
    return filled.is_ok() ? Status::ok() : error(Code::kFail, "not filled");
  };
  const bool is_output = !options_.output.empty();
  auto blob =
      writer_->add(label, bytes, checked, is_output ? BlobPlace::kSidecar : BlobPlace::kStore);
  if (!filled.is_ok()) return filled;
  if (blob.is_ok()) {
    ++stats_.written_blobs;
    stats_.written_bytes += bytes;
    return blob;
  }
  if (is_output) return blob;
  writer_ = nullptr;
  gave_up_ = true;
  log(LogLevel::kWarning, cat("nothing is added to the store: ", blob.status().message()));
  return Ref<const PackedBlob>();
}

Status PackLibrary::finish() {
  const auto is_empty = [](const FileMemo& memo) { return memo.spans.empty(); };
  hashed_.erase(std::remove_if(hashed_.begin(), hashed_.end(), is_empty), hashed_.end());
  Status status = Status::ok();
  if (writer_) {
    const std::unique_ptr<PackWriter> writer = std::move(writer_);
    for (const FileMemo& memo : hashed_) writer->add_memo(memo);
    auto size = writer->finish();
    if (!options_.output.empty()) {
      return size.is_ok() ? Status::ok() : std::move(size).take_status();
    }
    status = size.is_ok() ? writable_->add(writer->path(), options_.store_limit)
                          : std::move(size).take_status();
  } else if (stats_.hashed_bytes > 0 && writable_ && !gave_up_) {
    status = writable_->remember(hashed_);
  }
  if (!status.is_ok()) {
    log(LogLevel::kWarning, cat("nothing is added to the store: ", status.message()));
  }
  return Status::ok();
}

}  // namespace folio
