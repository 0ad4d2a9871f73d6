#include "core/prepack/pack_record.h"

#include <set>

namespace folio {

bool PackRecord::has(const PackKey& place) const {
  Ref<const PackedBlob> blob;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = notes_.find(place);
    if (it != notes_.end()) blob = it->second.blob;
  }
  return blob && blob->check_unchanged().is_ok();
}

void PackRecord::add(std::vector<Note> notes, const std::vector<FileMemo>& memos) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // What is noted again takes the place of what stood in a file that has changed. The swapped ones
  // end without the lock.
  for (Note& note : notes) {
    const PackKey place = note.place;
    const auto [it, is_new] = notes_.try_emplace(place, std::move(note));
    if (!is_new) std::swap(it->second, note);
  }
  merge_memos(memos, &memos_);
}

std::vector<FileMemo> PackRecord::memos() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memos_;
}

PackRecord::Size PackRecord::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::set<PackKey> seen;
  Size size;
  for (const auto& [place, note] : notes_) {
    if (!seen.insert(note.label.key).second) continue;
    ++size.blobs;
    size.bytes += note.blob->bytes();
  }
  return size;
}

Result<PackRecord::Size> PackRecord::write(const std::string& path,
                                           const std::string& producer) const {
  // Writing takes long: loads go on meanwhile.
  std::map<PackKey, Note> by_content;
  std::vector<FileMemo> known;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [place, note] : notes_) by_content.try_emplace(note.label.key, note);
    known = memos_;
  }
  FOLIO_TRY(const std::unique_ptr<PackWriter> writer, PackWriter::create(path, producer));
  Size size;
  for (const auto& [key, note] : by_content) {
    const Bytes bytes{note.blob->data(), note.blob->bytes()};
    auto added = writer->add(note.label, bytes, BlobPlace::kSidecar);
    if (!added.is_ok()) return std::move(added).take_status();
    ++size.blobs;
    size.bytes += bytes.size();
  }
  // After the last byte was read: what changes now is no longer ours.
  for (const auto& [key, note] : by_content) {
    FOLIO_RETURN_IF_ERROR(note.blob->check_unchanged());
  }
  for (FileMemo& memo : known) writer->add_memo(std::move(memo));
  auto finished = writer->finish();
  if (!finished.is_ok()) return std::move(finished).take_status();
  return size;
}

void PackRecord::collect() {
  std::vector<Ref<const PackedBlob>> gone;  // blobs end without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = notes_.begin(); it != notes_.end();) {
    if (!it->second.blob->is_unique()) {
      ++it;
      continue;
    }
    gone.push_back(std::move(it->second.blob));
    it = notes_.erase(it);
  }
}

void PackRecord::clear() {
  std::map<PackKey, Note> gone;
  const std::lock_guard<std::mutex> lock(mutex_);
  gone.swap(notes_);
}

}  // namespace folio
