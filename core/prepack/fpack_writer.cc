#include "core/prepack/fpack_writer.h"

#include <cstddef>
#include <cstring>

#include "core/base/checked_math.h"
#include "core/os/mapped_file.h"

namespace folio {
namespace {

using fpack_format::Header;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPageAlignedFrom = 64 << 10;
// Large folios need 2 MiB alignment; smaller blobs would lose more disk than that is worth.
constexpr uint64_t kHuge = 2 << 20;
constexpr uint64_t kHugeAlignedFrom = 32 << 20;
// Kept for the next blob: fresh pages cost time. More is given back, since computing the next
// weight may take two tensors itself.
constexpr uint64_t kKeptScratch = 4 << 20;

// Where a model's weights stand nowhere else, its size on the disk counts.
constexpr uint64_t kOnlyCopyHugeAlignedFrom = 64 * kHuge;

uint64_t alignment_of(uint64_t bytes, bool is_only_copy) {
  const uint64_t huge_from = is_only_copy ? kOnlyCopyHugeAlignedFrom : kHugeAlignedFrom;
  return bytes >= huge_from ? kHuge : bytes >= kPageAlignedFrom ? kPage : kBlobAlignment;
}

uint64_t aligned_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// An error for a file that is not to be lost: a pack file that holds the only copy of weights, or
// what is neither a pack file nor called so, as a model. What cannot be read is nothing.
Status check_replaceable(const std::string& path) {
  const auto existing = open_mapped_file(path);
  if (!existing.is_ok() || existing.value()->bytes().empty()) return Status::ok();
  const Bytes bytes = existing.value()->bytes();
  constexpr size_t kMagic = sizeof(fpack_format::kMagic);
  const bool is_pack =
      bytes.size() >= kMagic && std::memcmp(bytes.data(), fpack_format::kMagic, kMagic) == 0;
  if (!is_pack && !path.ends_with(".fpack")) {
    return invalid_argument("'", path, "' is no pack file and is not replaced by one");
  }
  const auto summary = read_pack_summary(*existing.value());
  if (!summary.is_ok() || !summary.value().is_only_copy) return Status::ok();
  return invalid_argument("'", path, "' holds the only copy of a model's weights and is not ",
                          "replaced; if no model needs it any more, remove it");
}

}  // namespace

Result<std::unique_ptr<PackWriter>> PackWriter::create(const std::string& path,
                                                       std::string writer) {
  FOLIO_RETURN_IF_ERROR(check_replaceable(path));
  FOLIO_TRY(std::unique_ptr<NewFile> file, NewFile::create(path));
  FOLIO_RETURN_IF_ERROR(file->pad_until(fpack_format::kHeaderBytes));
  auto made = std::unique_ptr<PackWriter>(new PackWriter(std::move(file)));
  made->index_.writer = std::move(writer);
  return made;
}

uint32_t PackWriter::name_index(const std::string& name) {
  const auto [it, fresh] = names_.try_emplace(name, static_cast<uint32_t>(index_.names.size()));
  if (fresh) index_.names.push_back(name);
  return it->second;
}

Result<Ref<const PackedBlob>> PackWriter::add(const Label& label, uint64_t bytes, const Fill& fill,
                                              BlobPlace place) {
  // A mapping of its own. Of malloc's memory, freed blocks would stay behind small ones: no new
  // blob would fit between them, and the process would hold as much as it has written.
  Ref<Arena> made = std::move(scratch_);
  if (!made || made->bytes() < bytes) {
    made = nullptr;
    FOLIO_TRY(made, Arena::create(bytes));
  }
  FOLIO_RETURN_IF_ERROR(fill(made->data()));
  if (made->bytes() <= kKeptScratch) scratch_ = made;
  return add(label, Bytes{made->data(), bytes}, place);
}

Result<Ref<const PackedBlob>> PackWriter::add(const Label& label, Bytes bytes, BlobPlace place) {
  PackEntry entry;
  entry.key = label.key;
  entry.offset = aligned_up(file_->size(), alignment_of(bytes.size(), is_only_copy_));
  entry.bytes = bytes.size();
  entry.checksum = checksum_bytes(bytes);
  entry.layout = label.layout;
  entry.version = label.version;
  FOLIO_RETURN_IF_ERROR(file_->pad_until(entry.offset));
  FOLIO_RETURN_IF_ERROR(file_->reserve(entry.bytes));
  FOLIO_RETURN_IF_ERROR(file_->write(bytes));
  FOLIO_TRY(Ref<const PackedBlob> made, blob(entry, place));
  entry.name = name_index(label.name);
  blob_bytes_ += entry.bytes;
  entries_[entry.key] = entry;
  return made;
}

Result<Ref<const PackedBlob>> PackWriter::blob(const PackEntry& entry, BlobPlace place) const {
  FOLIO_TRY(Ref<Buffer> mapped, file_->map(entry.offset, entry.bytes));
  return Ref<const PackedBlob>(
      make_ref<PackedBlob>(std::move(mapped), entry.bytes, place, file_->mapped()));
}

const PackEntry* PackWriter::find(const PackKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<uint64_t> PackWriter::finish() {
  FOLIO_TRY(const uint64_t size, seal());
  FOLIO_RETURN_IF_ERROR(publish());
  return size;
}

Status PackWriter::write_index(const std::string& path, const PackIndex& index) {
  FOLIO_TRY(const std::unique_ptr<PackWriter> writer, create(path, index.writer));
  writer->index_ = index;
  auto size = writer->finish();
  return size.is_ok() ? Status::ok() : std::move(size).take_status();
}

Result<uint64_t> PackWriter::seal() {
  for (const auto& [key, entry] : entries_) index_.entries.push_back(entry);
  const std::vector<uint8_t> index = encode_index(index_);
  Header header = {};
  std::memcpy(header.magic, fpack_format::kMagic, sizeof(header.magic));
  header.version = fpack_format::kVersion;
  if (is_only_copy_) header.flags |= fpack_format::kOnlyCopy;
  header.index_offset = aligned_up(file_->size(), kPage);
  header.index_bytes = index.size();
  header.index_checksum = checksum_bytes({index.data(), index.size()});
  header.file_bytes = header.index_offset + header.index_bytes;
  const auto* start = reinterpret_cast<const uint8_t*>(&header);
  header.header_checksum = checksum_bytes({start, offsetof(Header, header_checksum)});
  FOLIO_RETURN_IF_ERROR(file_->pad_until(header.index_offset));
  FOLIO_RETURN_IF_ERROR(file_->write({index.data(), index.size()}));
  FOLIO_RETURN_IF_ERROR(file_->write_at(0, {start, sizeof(header)}));
  FOLIO_RETURN_IF_ERROR(file_->finish());
  return header.file_bytes;
}

Status PackWriter::publish() { return file_->publish(NewFile::Mode::kReadOnly); }

}  // namespace folio
