#include "core/prepack/pack_binding.h"

#include <charconv>

#include "core/base/utf8.h"

namespace folio {
namespace {

constexpr size_t kIdDigits = 32;

std::string hex(const ContentId& id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint64_t part : {id.high, id.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) out += kDigits[part >> shift & 15];
  }
  return out;
}

template <typename T>
bool read_number(std::string_view text, int base, T* out) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, *out, base);
  return problem == std::errc() && rest == end;
}

}  // namespace

std::string PackBinding::to_text() const { return cat(name, ' ', bytes, ' ', hex(id)); }

Result<PackBinding> PackBinding::parse(const std::string& text) {
  PackBinding out;
  const std::string_view all = text;
  const size_t last = all.rfind(' ');
  const size_t middle = last == std::string::npos || last == 0 ? last : all.rfind(' ', last - 1);
  bool fits = last != std::string::npos && middle != std::string::npos && middle > 0;
  if (fits) {
    out.name = all.substr(0, middle);
    const std::string_view id = all.substr(last + 1);
    fits = out.name.find('/') == std::string::npos && id.size() == kIdDigits &&
           read_number(all.substr(middle + 1, last - middle - 1), 10, &out.bytes) &&
           read_number(id.substr(0, kIdDigits / 2), 16, &out.id.high) &&
           read_number(id.substr(kIdDigits / 2), 16, &out.id.low);
  }
  if (fits) return out;
  return invalid_graph("metadata entry '", kKey, "' is '",
                       utf8_shortened(utf8_repaired(text.substr(0, 200)), 200),
                       "', expected NAME SIZE ID");
}

Status PackBinding::check(const ByteSource& file) const {
  FOLIO_TRY(const PackSummary found, read_pack_summary(file));
  if (found.id == id && found.bytes == bytes) return Status::ok();
  return invalid_graph("pack file '", file.name(), "' is another one than the model was written ",
                       "with: its id is ", hex(found.id), " (", found.bytes,
                       " bytes), the model expects ", hex(id), " (", bytes, " bytes)");
}

}  // namespace folio
