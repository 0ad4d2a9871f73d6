#include "core/formats/ort/ort_data_file.h"

#include <cstring>

#include "core/base/utf8.h"

namespace folio {
namespace {

constexpr char kMagic[8] = {'F', 'O', 'L', 'I', 'O', 'D', 'A', 'T'};
constexpr uint32_t kVersion = 1;
constexpr size_t kVersionAt = 8;
constexpr size_t kSizeAt = 16;
constexpr size_t kDigestAt = 24;
constexpr size_t kFieldsEnd = 40;

}  // namespace

OrtDataFile::Header OrtDataFile::header(const FileBinding& binding) {
  Header out = {};
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  std::memcpy(out.data() + kVersionAt, &kVersion, sizeof kVersion);
  std::memcpy(out.data() + kSizeAt, &binding.size, sizeof binding.size);
  std::memcpy(out.data() + kDigestAt, binding.digest.data(), binding.digest.size());
  return out;
}

Result<FileBinding> OrtDataFile::parse_binding(const std::string& text) {
  return FileBinding::parse(kOrtDataFileKey, text, kHeaderBytes);
}

Result<Ref<ByteSource>> OrtDataFile::open(const ByteSource& model, const FileBinding& binding) {
  FOLIO_TRY(Ref<ByteSource> file, model.open_sibling(binding.name));
  const Bytes bytes = file->bytes();
  const std::string shown = utf8_shortened(binding.name, 200);
  if (bytes.size() != binding.size) {
    return invalid_graph("data file '", shown, "' has ", bytes.size(), " bytes, the model expects ",
                         binding.size);
  }
  const Header expected = header(binding);
  if (std::memcmp(bytes.data(), expected.data(), kFieldsEnd) == 0) return file;
  if (std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return invalid_graph("data file '", shown, "' is none: it does not start with FOLIODAT");
  }
  FileBinding::Digest found = {};
  std::memcpy(found.data(), bytes.data() + kDigestAt, found.size());
  return invalid_graph("data file '", shown, "' belongs to another model: its digest is ",
                       hex_text(found), ", the model expects ", hex_text(binding.digest));
}

}  // namespace folio
