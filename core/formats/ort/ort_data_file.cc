#include "core/formats/ort/ort_data_file.h"

#include <charconv>
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

std::string hex(const std::array<uint8_t, 16>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, std::array<uint8_t, 16>* out) {
  if (text.size() != 2 * out->size()) return false;
  for (size_t i = 0; i < out->size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*out)[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

}  // namespace

std::string OrtDataBinding::to_text() const { return cat(name, " ", size, " ", hex(digest)); }

OrtDataFile::Header OrtDataFile::header(const OrtDataBinding& binding) {
  Header out = {};
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  std::memcpy(out.data() + kVersionAt, &kVersion, sizeof kVersion);
  std::memcpy(out.data() + kSizeAt, &binding.size, sizeof binding.size);
  std::memcpy(out.data() + kDigestAt, binding.digest.data(), binding.digest.size());
  return out;
}

Result<OrtDataBinding> OrtDataFile::parse_binding(const std::string& text) {
  OrtDataBinding out;
  const size_t last = text.rfind(' ');
  const size_t middle = last == std::string::npos || last == 0 ? last : text.rfind(' ', last - 1);
  bool fits = last != std::string::npos && middle != std::string::npos && middle > 0;
  if (fits) {
    out.name = text.substr(0, middle);
    const char* const end = text.data() + last;
    const auto [rest, problem] = std::from_chars(text.data() + middle + 1, end, out.size);
    fits = problem == std::errc() && rest == end && out.size >= kHeaderBytes &&
           read_hex(std::string_view(text).substr(last + 1), &out.digest) &&
           out.name.find('/') == std::string::npos;
  }
  if (fits) return out;
  return invalid_graph("metadata entry '", kOrtDataFileKey, "' is '",
                       utf8_shortened(utf8_repaired(text.substr(0, 200)), 200),
                       "', expected NAME SIZE DIGEST");
}

Result<Ref<ByteSource>> OrtDataFile::open(const ByteSource& model, const OrtDataBinding& binding) {
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
  std::array<uint8_t, 16> found = {};
  std::memcpy(found.data(), bytes.data() + kDigestAt, found.size());
  return invalid_graph("data file '", shown, "' belongs to another model: its digest is ",
                       hex(found), ", the model expects ", hex(binding.digest));
}

}  // namespace folio
