#include "core/prepack/pack_library.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/base/checked_math.h"
#include "core/base/log.h"
#include "core/os/fork.h"

namespace folio {
namespace {

int64_t now_ns() {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

bool matches(const FileMemo& memo, const FileIdentity& file, PackTrust trust) {
  if (trust == PackTrust::kVerify) return false;
  if (trust == PackTrust::kBound) return memo.is_settled() && memo.file == file;
  return saturated_sub(memo.hashed_at_ns, memo.file.mtime_ns) > FileMemo::kRacyNs &&
         memo.file.size == file.size && memo.file.mtime_ns == file.mtime_ns;
}

// Digests of a file that was written a moment ago would never be believed.
void wait_until_settled(const FileIdentity& file) {
  const int64_t age = saturated_sub(now_ns(), std::max(file.mtime_ns, file.ctime_ns));
  if (age < 0 || age > FileMemo::kRacyNs) return;  // times of another clock: waiting would not help
  std::this_thread::sleep_for(std::chrono::nanoseconds(FileMemo::kRacyNs + 1'000'000 - age));
}

}  // namespace

std::string default_digest_cache() {
  // An environment that somebody else made is not to be followed.
  const char* folder = secure_getenv("XDG_CACHE_HOME");
  if (folder && *folder == '/') return cat(folder, "/folio");
  folder = secure_getenv("HOME");
  return folder && *folder == '/' ? cat(folder, "/.cache/folio") : "";
}

Result<Ref<PackLibrary>> PackLibrary::open(const PackOptions& options) {
  auto library = make_ref<PackLibrary>();
  library->options_ = options;
  library->generation_ = fork_generation();
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
  if (options.record) library->recorded_ = options.record->memos();
  return library;
}

PackLibrary::~PackLibrary() { report(); }

// Once: when all is done, or when nobody needs the rest.
void PackLibrary::report() {
  if (!options_.report) return;
  const auto tell = std::move(options_.report);
  options_.report = nullptr;
  tell(stats_);
}

void PackLibrary::ignore(const std::string& path, const Status& why) {
  ++stats_.ignored_files;
  stats_.ignored.push_back(cat(path, ": ", why.message()));
  log(LogLevel::kWarning, cat("pack ignored: ", why.message()));
}

void PackLibrary::add_file(const std::string& path, BlobPlace place) {
  auto file = PackFile::open(path, place, options_.checksum);
  if (file.is_ok() && file.value()->is_only_copy()) {
    ignore(path, invalid_argument("'", path, "' holds the only copy of a model's weights and is ",
                                  "no cache"));
  } else if (file.is_ok()) {
    files_.push_back(std::move(file).take());
  } else if (file.status().code() != Code::kNoSuchFile || !options_.may_lack_sidecar) {
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
  stats_.hit_bytes += bytes;
  return std::move(blob).take();
}

Ref<const PackedBlob> PackLibrary::find(const PackKey& key, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t misfits = stats_.misfits;
  const uint64_t damaged = stats_.damaged;
  Ref<const PackedBlob> blob;
  for (size_t i = 0; !blob && i < files_.size(); ++i) blob = take(files_[i], key, bytes);
  for (size_t i = 0; !blob && i < stores_.size(); ++i) {
    const Ref<PackFile> file = stores_[i]->find(key);
    if (file) blob = take(file, key, bytes);
  }
  // What is the same for several levels of kernels is written once.
  const PackEntry* own = !blob && writer_ ? writer_->find(key) : nullptr;
  if (own && own->bytes == bytes) {
    auto mapped = writer_->blob(*own, place());
    if (mapped.is_ok()) {
      blob = std::move(mapped).take();
      ++stats_.hits;
      ++stats_.own_hits;
      stats_.hit_bytes += bytes;
    }
  }
  // One outcome is counted; several files may each have had a bad blob.
  const bool is_damaged = stats_.damaged > damaged;
  const bool is_misfit = stats_.misfits > misfits;
  stats_.damaged = damaged + (!blob && is_damaged);
  stats_.misfits = misfits + (!blob && !is_damaged && is_misfit);
  if (!blob && !is_damaged && !is_misfit) ++stats_.misses;
  return blob;
}

const ContentId* PackLibrary::find_in(const std::vector<FileMemo>& memos,
                                      const FileIdentity& identity, uint64_t offset,
                                      uint64_t bytes) const {
  for (const FileMemo& memo : memos) {
    if (!matches(memo, identity, options_.trust)) continue;
    if (const ContentId* digest = memo.find(offset, bytes)) return digest;
  }
  return nullptr;
}

const ContentId* PackLibrary::remembered(const FileIdentity& identity, uint64_t offset,
                                         uint64_t bytes) {
  const ContentId* digest = find_in(recorded_, identity, offset, bytes);
  for (size_t i = 0; !digest && i < files_.size(); ++i) {
    digest = find_in(files_[i]->index().memos, identity, offset, bytes);
  }
  for (size_t i = 0; !digest && i < stores_.size(); ++i) {
    if (stores_[i]->index()) digest = find_in(stores_[i]->index()->memos, identity, offset, bytes);
  }
  if (digest) {
    stats_.memo_bytes += bytes;
    return digest;
  }
  if (digests_ && digests_->index()) {
    digest = find_in(digests_->index()->memos, identity, offset, bytes);
  }
  if (digest) stats_.cached_bytes += bytes;
  return digest;
}

FileMemo& PackLibrary::memo_of(const FileIdentity& identity) {
  const auto it = std::find_if(hashed_.begin(), hashed_.end(),
                               [&](const FileMemo& memo) { return memo.file == identity; });
  if (it != hashed_.end()) return *it;
  // Whoever asked for a file wants one that spares others the hashing.
  if (!options_.output.empty()) wait_until_settled(identity);
  hashed_.push_back({identity, now_ns(), {}});
  return hashed_.back();
}

void PackLibrary::open_digests() {
  if (options_.digest_cache.empty() || options_.trust == PackTrust::kVerify) return;
  auto opened = PackStore::open(options_.digest_cache, PackChecksum::kOff, /*create=*/true);
  if (opened.is_ok()) {
    digests_ = std::move(opened).take();
  } else {
    ignore(options_.digest_cache, opened.status());
  }
  options_.digest_cache.clear();  // once a load
}

const ContentId* PackLibrary::declared(const FileIdentity& identity, uint64_t offset,
                                       uint64_t bytes) {
  const bool writes = writer_ || options_.record || (writable_ && !gave_up_);
  if (!options_.declared || writes || options_.trust == PackTrust::kVerify) return nullptr;
  const bool by_inode = options_.trust == PackTrust::kBound;
  const ContentId* digest = options_.declared->find(identity, by_inode, offset, bytes);
  if (digest) stats_.declared_bytes += bytes;
  return digest;
}

std::optional<PackLibrary::Digest> PackLibrary::known(uint64_t offset, uint64_t bytes,
                                                      FileMemo* memo) {
  if (const ContentId* known = memo->find(offset, bytes)) return Digest{*known};
  // What is written now keeps the digests that others had: a pack file serves alone.
  if (const ContentId* known = remembered(memo->file, offset, bytes)) {
    const ContentId found = *known;
    if (options_.trust == PackTrust::kBound) memo->add(offset, bytes, found);
    return Digest{found};
  }
  if (const ContentId* told = declared(memo->file, offset, bytes)) return Digest{*told, true};
  return std::nullopt;
}

std::optional<PackLibrary::Digest> PackLibrary::known_digest(const ByteSource& source,
                                                             uint64_t offset, uint64_t bytes) {
  const FileIdentity* identity = source.identity();
  if (!identity) return std::nullopt;
  const std::lock_guard<std::mutex> lock(mutex_);
  open_digests();
  return known(offset, bytes, &memo_of(*identity));
}

PackLibrary::Digest PackLibrary::digest(const ByteSource& source, uint64_t offset, Bytes bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_digests();
  const FileIdentity* identity = source.identity();
  if (!identity) {
    stats_.hashed_bytes += bytes.size();
    return {hash_bytes(bytes)};
  }
  FileMemo& memo = memo_of(*identity);
  if (const std::optional<Digest> told = known(offset, bytes.size(), &memo)) return *told;
  const ContentId digest = hash_bytes(bytes);
  stats_.hashed_bytes += bytes.size();
  memo.add(offset, bytes.size(), digest);
  return {digest};
}

Status PackLibrary::start_store_writer() {
  if (writer_ || gave_up_ || !writable_) return Status::ok();
  auto created = PackWriter::create(writable_->new_pack_path(), options_.producer);
  if (created.is_ok()) {
    writer_ = std::move(created).take();
    return Status::ok();
  }
  if (options_.must_store) return std::move(created).take_status();
  gave_up_ = true;  // a store that only can be read
  log(LogLevel::kInfo, cat("nothing is added to the store: ", created.status().message()));
  return Status::ok();
}

Result<Ref<const PackedBlob>> PackLibrary::write(const PackWriter::Label& label, uint64_t bytes,
                                                 const PackWriter::Fill& fill) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FOLIO_RETURN_IF_ERROR(start_store_writer());
  if (!writer_) return Ref<const PackedBlob>();
  Status filled = Status::ok();
  const PackWriter::Fill checked = [&](uint8_t* blob) {
    filled = fill(blob);
    return filled.is_ok() ? Status::ok() : error(Code::kFail, "not filled");
  };
  auto blob = writer_->add(label, bytes, checked, place());
  if (!filled.is_ok()) return filled;
  if (blob.is_ok()) {
    ++stats_.written_blobs;
    stats_.written_bytes += bytes;
    return blob;
  }
  if (!options_.output.empty() || options_.must_store) return blob;
  writer_ = nullptr;
  gave_up_ = true;
  log(LogLevel::kWarning, cat("nothing is added to the store: ", blob.status().message()));
  return Ref<const PackedBlob>();
}

Status PackLibrary::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto is_empty = [](const FileMemo& memo) { return memo.spans.empty(); };
  hashed_.erase(std::remove_if(hashed_.begin(), hashed_.end(), is_empty), hashed_.end());
  if (options_.record) options_.record->add(std::move(notes_), hashed_);
  notes_.clear();
  if (digests_ && stats_.hashed_bytes > 0 && !options_.is_read_only) {
    const Status kept = digests_->remember(hashed_);
    if (!kept.is_ok()) log(LogLevel::kInfo, cat("no digests are kept: ", kept.message()));
  }
  Status status = finish_files();
  report();
  return status;
}

Status PackLibrary::finish_files() {
  Status status = Status::ok();
  if (writer_) {
    const std::unique_ptr<PackWriter> writer = std::move(writer_);
    for (const FileMemo& memo : hashed_) writer->add_memo(memo);
    auto size = writer->finish();
    status = size.is_ok() ? Status::ok() : std::move(size).take_status();
    if (!options_.output.empty()) return status;
    if (status.is_ok()) status = writable_->add(writer->path(), options_.store_limit);
    if (options_.must_store) return status;
  } else if (stats_.hashed_bytes > 0 && writable_ && !gave_up_) {
    status = writable_->remember(hashed_);
  }
  if (!status.is_ok()) {
    log(LogLevel::kWarning, cat("nothing is added to the store: ", status.message()));
  }
  return Status::ok();
}

}  // namespace folio
