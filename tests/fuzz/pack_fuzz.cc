// Fuzzes decode_index: what a pack file says of its blobs, behind checksums that whoever wrote the
// file has right.
//
// What is taken must lie inside the file, be found by its key, and be the same once written again.
#include <cstdlib>

#include "core/prepack/fpack_index.h"

namespace folio {
namespace {

constexpr uint64_t kBlobEnd = 1 << 20;

void expect(bool holds) {
  if (!holds) std::abort();
}

void check_blob(const PackIndex& index, const PackEntry& entry) {
  uint64_t end = kBlobEnd;
  if (!index.packs.empty()) {
    expect(entry.pack < index.packs.size());
    end = index.packs[entry.pack].bytes;
  }
  expect(entry.bytes > 0 && entry.bytes <= end && entry.offset <= end - entry.bytes);
  expect(entry.offset % 64 == 0);
  expect(entry.name < index.names.size());
  expect(index.find(entry.key) == &entry);
}

void check_memo(const FileMemo& memo) {
  for (const FileMemo::Span& span : memo.spans) {
    const ContentId* digest = memo.find(span.offset, span.bytes);
    expect(digest != nullptr && *digest == span.digest);
  }
}

void check_same(const PackIndex& a, const PackIndex& b) {
  expect(a.writer == b.writer && a.names == b.names);
  expect(a.entries.size() == b.entries.size() && a.packs.size() == b.packs.size());
  expect(a.memos.size() == b.memos.size());
  for (size_t i = 0; i < a.entries.size(); ++i) {
    expect(a.entries[i].key == b.entries[i].key && a.entries[i].offset == b.entries[i].offset);
  }
}

}  // namespace
}  // namespace folio

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace folio;
  const Result<PackIndex> decoded = decode_index(Bytes(data, size), kBlobEnd);
  if (decoded.is_ok() == !decoded.status().message().empty()) std::abort();
  if (!decoded.is_ok()) return 0;
  const PackIndex& index = decoded.value();
  for (const PackEntry& entry : index.entries) check_blob(index, entry);
  for (const FileMemo& memo : index.memos) check_memo(memo);
  std::vector<FileMemo> memos;
  merge_memos(index.memos, &memos);
  for (const FileMemo& memo : memos) check_memo(memo);
  limit_memos(16, &memos);
  const std::vector<uint8_t> again = encode_index(index);
  const Result<PackIndex> same = decode_index(Bytes(again.data(), again.size()), kBlobEnd);
  expect(same.is_ok());
  check_same(index, same.value());
  return 0;
}
