#include "core/prepack/declared_digests.h"

#include <algorithm>
#include <tuple>

#include "core/base/checked_math.h"

namespace folio {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// From the moment of the time that the saving sets to that of giving the file its name, which
// moves the inode's: a rounded-down second and two system calls.
constexpr int64_t kSavedWithin = 3 * kSecond;

constexpr char kVersion = '1';
constexpr size_t kNumber = 16;
constexpr size_t kHead = 1 + 2 * kNumber;
constexpr size_t kEntry = 1 + 4 * kNumber;

void put(uint64_t number, std::string* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int shift = 60; shift >= 0; shift -= 4) *text += kDigits[number >> shift & 15];
}

// False for anything but lower-case hexadecimal digits.
bool take(std::string_view* text, uint64_t* number) {
  *number = 0;
  for (const char c : text->substr(0, kNumber)) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return false;
    *number = *number << 4 | static_cast<uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  text->remove_prefix(kNumber);
  return true;
}

}  // namespace

std::string DeclaredDigests::placeholder(size_t count) {
  std::string text = "~ digests are put in here ~";
  text.resize(kHead + count * kEntry, '~');
  return text;
}

void DeclaredDigests::add(File file, uint64_t offset, uint64_t bytes, const ContentId& digest) {
  entries_.push_back({file, {offset, bytes, digest}});
}

std::string DeclaredDigests::to_text(size_t count) const {
  std::string text(1, kVersion);
  for (const uint64_t size : sizes_) put(size, &text);
  for (const Entry& entry : entries_) {
    text += static_cast<char>('0' + static_cast<int>(entry.file));
    put(entry.span.offset, &text);
    put(entry.span.bytes, &text);
    put(entry.span.digest.high, &text);
    put(entry.span.digest.low, &text);
  }
  text.resize(kHead + count * kEntry, '0');
  return text;
}

std::optional<DeclaredDigests> DeclaredDigests::parse(std::string_view text) {
  if (text.size() < kHead || text[0] != kVersion || (text.size() - kHead) % kEntry != 0) {
    return std::nullopt;
  }
  DeclaredDigests out;
  out.signature_ = signature(text);
  text.remove_prefix(1);
  for (uint64_t& size : out.sizes_) {
    if (!take(&text, &size)) return std::nullopt;
  }
  while (!text.empty()) {
    Entry entry;
    if (text[0] != '0' && text[0] != '1') return std::nullopt;
    entry.file = text[0] == '0' ? File::kModel : File::kData;
    text.remove_prefix(1);
    FileMemo::Span& span = entry.span;
    for (uint64_t* number : {&span.offset, &span.bytes, &span.digest.high, &span.digest.low}) {
      if (!take(&text, number)) return std::nullopt;
    }
    if (span.bytes > 0) out.entries_.push_back(entry);
  }
  std::sort(out.entries_.begin(), out.entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.file, a.span.offset, a.span.bytes) <
           std::tie(b.file, b.span.offset, b.span.bytes);
  });
  return out;
}

int64_t DeclaredDigests::signature(std::string_view text) {
  const Bytes bytes{reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  // Never 0, which file systems with whole seconds give.
  return 1 + static_cast<int64_t>(hash_bytes(bytes).low % static_cast<uint64_t>(kSecond - 1));
}

const ContentId* DeclaredDigests::find(const FileIdentity& file, bool by_inode, uint64_t offset,
                                       uint64_t bytes) const {
  if (file.mtime_ns % kSecond != signature_) return nullptr;
  const int64_t since = saturated_sub(file.ctime_ns, file.mtime_ns);
  if (by_inode && (since < 0 || since > kSavedWithin)) {
    return nullptr;
  }
  for (const File which : {File::kModel, File::kData}) {
    if (sizes_[static_cast<size_t>(which)] != file.size) continue;
    const auto less = [](const Entry& a, const Entry& b) {
      return std::tie(a.file, a.span.offset, a.span.bytes) <
             std::tie(b.file, b.span.offset, b.span.bytes);
    };
    const Entry wanted{which, {offset, bytes, {}}};
    const auto it = std::lower_bound(entries_.begin(), entries_.end(), wanted, less);
    if (it != entries_.end() && !less(wanted, *it)) return &it->span.digest;
  }
  return nullptr;
}

}  // namespace folio
