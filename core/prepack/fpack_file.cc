#include "core/prepack/fpack_file.h"

#include <cstddef>
#include <cstring>

#include "core/os/mapped_file.h"

namespace folio {
namespace {

using fpack_format::Header;

// The header of a file that is whole, as far as its sizes and checksums tell.
Result<Header> read_header(const ByteSource& source) {
  const Bytes bytes = source.bytes();
  const auto refuse = [&](const auto&... what) {
    return invalid_graph("pack file '", source.name(), "' ", what...);
  };
  if (bytes.size() < fpack_format::kHeaderBytes) return refuse("is shorter than its header");
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, fpack_format::kMagic, sizeof(header.magic)) != 0) {
    return refuse("is no pack file");
  }
  if (header.version != fpack_format::kVersion) {
    return refuse("has version ", header.version, ", expected ", fpack_format::kVersion);
  }
  if (header.header_checksum !=
      checksum_bytes(bytes.subspan(0, offsetof(Header, header_checksum)))) {
    return refuse("has a damaged header");
  }
  if (header.file_bytes != bytes.size()) {
    return refuse("has ", bytes.size(), " bytes, expected ", header.file_bytes);
  }
  if (header.index_offset % 64 != 0 || header.index_bytes > bytes.size() ||
      header.index_offset > bytes.size() - header.index_bytes) {
    return refuse("has an index outside of it");
  }
  return header;
}

}  // namespace

Result<PackSummary> read_pack_summary(const ByteSource& source) {
  FOLIO_TRY(const Header header, read_header(source));
  const auto* start = reinterpret_cast<const uint8_t*>(&header);
  return PackSummary{header.file_bytes, (header.flags & fpack_format::kOnlyCopy) != 0,
                     hash_bytes({start, sizeof(header)})};
}

Result<Ref<PackFile>> PackFile::open(const std::string& path, BlobPlace place,
                                     PackChecksum checksum) {
  auto file = make_ref<PackFile>();
  FOLIO_TRY(file->source_, open_trusted_file(path));
  FOLIO_TRY(const Header header, read_header(*file->source_));
  // Checked and decoded in a copy: what is mapped may change under our eyes.
  const Bytes mapped = file->source_->bytes().subspan(header.index_offset, header.index_bytes);
  FOLIO_TRY(const Ref<Buffer> copy, allocate_buffer(mapped.size()));
  if (!mapped.empty()) std::memcpy(copy->data(), mapped.data(), mapped.size());
  const Bytes index{copy->data(), mapped.size()};
  if (checksum_bytes(index) != header.index_checksum) {
    return invalid_graph("pack file '", path, "' has a damaged index");
  }
  auto decoded = decode_index(index, header.index_offset);
  if (!decoded.is_ok()) return std::move(decoded).take_status().with_context(path);
  file->index_ = std::move(decoded).take();
  file->place_ = place;
  file->is_only_copy_ = (header.flags & fpack_format::kOnlyCopy) != 0;
  file->checksum_ = checksum;
  const size_t count = file->index_.entries.size();
  file->checked_ = std::make_unique<std::atomic<bool>[]>(count);
  if (checksum == PackChecksum::kOpen) FOLIO_RETURN_IF_ERROR(file->check_blobs());
  return file;
}

bool PackFile::is_intact(const PackEntry& entry) const {
  return checksum_bytes(source_->bytes().subspan(entry.offset, entry.bytes)) == entry.checksum;
}

Status PackFile::damage_of(const PackEntry& entry) const {
  return invalid_graph("pack file '", path(), "': a blob of '", index_.names[entry.name],
                       "' is damaged");
}

Status PackFile::check_blobs() const {
  for (const PackEntry& entry : index_.entries) {
    if (!is_intact(entry)) return damage_of(entry);
  }
  return Status::ok();
}

Result<Ref<const PackedBlob>> PackFile::blob(const PackEntry& entry) {
  if (checksum_ == PackChecksum::kFirstUse) {
    std::atomic<bool>& checked = checked_[static_cast<size_t>(&entry - index_.entries.data())];
    if (!checked.load(std::memory_order_relaxed)) {
      if (!is_intact(entry)) return damage_of(entry);
      checked.store(true, std::memory_order_relaxed);
    }
  }
  const uint8_t* data = source_->bytes().data() + entry.offset;
  Ref<Buffer> view = view_buffer(Buffer::Kind::kConstant, data, entry.bytes, source_);
  return Ref<const PackedBlob>(make_ref<PackedBlob>(std::move(view), entry.bytes, place_, source_));
}

}  // namespace folio
