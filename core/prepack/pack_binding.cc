#include "core/prepack/pack_binding.h"

namespace folio {
namespace {

// Most significant byte first.
FileBinding::Digest digest_of(const ContentId& id) {
  FileBinding::Digest out = {};
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t part = i < out.size() / 2 ? id.high : id.low;
    out[i] = static_cast<uint8_t>(part >> (56 - i % 8 * 8));
  }
  return out;
}

}  // namespace

PackBinding PackBinding::of(std::string name, const PackSummary& pack) {
  return {{std::move(name), pack.bytes, digest_of(pack.id)}};
}

Result<PackBinding> PackBinding::parse(const std::string& text) {
  FOLIO_TRY(FileBinding file, FileBinding::parse(kKey, text, /*least=*/0));
  return PackBinding{std::move(file)};
}

Status PackBinding::check(const ByteSource& found) const {
  FOLIO_TRY(const PackSummary pack, read_pack_summary(found));
  const FileBinding::Digest id = digest_of(pack.id);
  if (id == file.digest && pack.bytes == file.size) return Status::ok();
  return invalid_graph("pack file '", found.name(), "' is another one than the model was written ",
                       "with: its id is ", hex_text(id), " (", pack.bytes,
                       " bytes), the model expects ", hex_text(file.digest), " (", file.size,
                       " bytes)");
}

}  // namespace folio
