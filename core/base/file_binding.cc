#include "core/base/file_binding.h"

#include <charconv>

#include "core/base/utf8.h"

namespace folio {
namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, FileBinding::Digest* out) {
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

std::string hex_text(const FileBinding::Digest& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : digest) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string FileBinding::to_text() const { return cat(name, " ", size, " ", hex_text(digest)); }

Result<FileBinding> FileBinding::parse(const char* key, const std::string& text, uint64_t least) {
  FileBinding out;
  const size_t last = text.rfind(' ');
  const size_t middle = last == std::string::npos || last == 0 ? last : text.rfind(' ', last - 1);
  bool fits = last != std::string::npos && middle != std::string::npos && middle > 0;
  if (fits) {
    out.name = text.substr(0, middle);
    const char* const end = text.data() + last;
    const auto [rest, problem] = std::from_chars(text.data() + middle + 1, end, out.size);
    fits = problem == std::errc() && rest == end && out.size >= least &&
           read_hex(std::string_view(text).substr(last + 1), &out.digest) &&
           out.name.find('/') == std::string::npos;
  }
  if (fits) return out;
  return invalid_graph("metadata entry '", key, "' is '",
                       utf8_shortened(utf8_repaired(text.substr(0, 200)), 200),
                       "', expected NAME SIZE DIGEST");
}

}  // namespace folio
