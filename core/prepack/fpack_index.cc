#include "core/prepack/fpack_index.h"

#include <algorithm>
#include <tuple>

#include "core/base/checked_math.h"
#include "core/prepack/fpack_schema_generated.h"

namespace folio {
namespace {

// Beyond all use, within all memory: a hostile index cannot ask for more.
constexpr size_t kMaxTables = 1 << 20;
constexpr size_t kMaxDepth = 16;

fpack::Id stored(const ContentId& id) { return {id.high, id.low}; }
ContentId read_id(const fpack::Id& id) { return {id.high(), id.low()}; }

flatbuffers::Offset<fpack::Memo> encode_memo(flatbuffers::FlatBufferBuilder& out,
                                             const FileMemo& memo) {
  std::vector<fpack::Span> spans;
  for (const FileMemo::Span& span : memo.spans) {
    spans.emplace_back(span.offset, span.bytes, stored(span.digest));
  }
  const auto span_vector = out.CreateVectorOfStructs(spans);
  return fpack::CreateMemo(out, memo.file.device, memo.file.inode, memo.file.size,
                           memo.file.mtime_ns, memo.file.ctime_ns, memo.hashed_at_ns, span_vector);
}

// What the verifier does not look at: whether structs stand where such may stand.
template <typename T>
bool is_misplaced(const flatbuffers::Vector<const T*>* structs) {
  return structs && structs->size() > 0 &&
         reinterpret_cast<uintptr_t>(structs->Data()) % alignof(T) != 0;
}

auto order_of(const FileMemo::Span& span) { return std::tie(span.offset, span.bytes); }

Result<FileMemo> decode_memo(const fpack::Memo& stored_memo) {
  FileMemo memo;
  memo.file = {stored_memo.device(), stored_memo.inode(), stored_memo.size(),
               stored_memo.mtime_ns(), stored_memo.ctime_ns()};
  memo.hashed_at_ns = stored_memo.hashed_at_ns();
  if (!stored_memo.spans()) return memo;
  if (is_misplaced(stored_memo.spans())) return invalid_graph("pack index: misplaced digests");
  for (const fpack::Span* span : *stored_memo.spans()) {
    memo.spans.push_back({span->offset(), span->bytes(), read_id(span->digest())});
    const size_t count = memo.spans.size();
    if (count > 1 && !(order_of(memo.spans[count - 2]) < order_of(memo.spans[count - 1]))) {
      return invalid_graph("pack index: digests are not in ascending order");
    }
  }
  return memo;
}

Result<PackEntry> decode_entry(const fpack::Blob& blob, const PackIndex& index, uint64_t blob_end) {
  const auto refuse = [](const char* what) { return invalid_graph("pack index: ", what); };
  PackEntry entry;
  entry.key = read_id(blob.key());
  entry.offset = blob.offset();
  entry.bytes = blob.bytes();
  entry.checksum = blob.checksum();
  entry.pack = blob.pack();
  entry.name = blob.name();
  entry.layout = static_cast<Layout>(blob.layout());
  entry.version = blob.version();
  if (!index.packs.empty()) {
    if (entry.pack >= index.packs.size()) return refuse("a blob names a pack that is not listed");
    blob_end = index.packs[entry.pack].bytes;
  }
  if (entry.bytes == 0 || entry.bytes > blob_end || entry.offset > blob_end - entry.bytes) {
    return refuse("a blob lies outside its file");
  }
  if (entry.offset % 64 != 0) return refuse("a blob is not aligned to 64 bytes");
  if (entry.name >= index.names.size()) return refuse("a blob has no name");
  if (!index.entries.empty() && !(index.entries.back().key < entry.key)) {
    return refuse("keys are not in ascending order");
  }
  return entry;
}

template <typename Vector>
bool has_null(const Vector* vector) {
  if (!vector) return false;
  for (const auto* item : *vector) {
    if (!item) return true;
  }
  return false;
}

std::string text_of(const flatbuffers::String* text) { return text ? text->str() : ""; }

}  // namespace

bool FileMemo::is_settled() const {
  return saturated_sub(hashed_at_ns, std::max(file.mtime_ns, file.ctime_ns)) > kRacyNs;
}

void merge_memos(const std::vector<FileMemo>& from, std::vector<FileMemo>* into) {
  for (const FileMemo& memo : from) {
    const auto is_older_state = [&](const FileMemo& m) {
      return m.file.device == memo.file.device && m.file.inode == memo.file.inode &&
             !(m.file == memo.file) && m.hashed_at_ns < memo.hashed_at_ns;
    };
    into->erase(std::remove_if(into->begin(), into->end(), is_older_state), into->end());
    const auto known = std::find_if(into->begin(), into->end(),
                                    [&](const FileMemo& m) { return m.file == memo.file; });
    if (known == into->end()) {
      into->push_back(memo);
    } else if (known->is_settled() && memo.is_settled()) {
      known->hashed_at_ns = std::max(known->hashed_at_ns, memo.hashed_at_ns);
      for (const FileMemo::Span& span : memo.spans) {
        known->add(span.offset, span.bytes, span.digest);
      }
    } else if (known->hashed_at_ns < memo.hashed_at_ns) {
      *known = memo;  // those known were hashed too soon: a later time must not vouch for them
    }
  }
}

void limit_memos(size_t max_spans, std::vector<FileMemo>* memos) {
  std::sort(memos->begin(), memos->end(),
            [](const FileMemo& a, const FileMemo& b) { return a.hashed_at_ns > b.hashed_at_ns; });
  size_t spans = 0;
  size_t kept = 0;
  while (kept < memos->size() && spans + (*memos)[kept].spans.size() <= max_spans) {
    spans += (*memos)[kept++].spans.size();
  }
  memos->resize(kept);
}

const ContentId* FileMemo::find(uint64_t offset, uint64_t count) const {
  const Span wanted{offset, count, {}};
  const auto less = [](const Span& a, const Span& b) { return order_of(a) < order_of(b); };
  const auto it = std::lower_bound(spans.begin(), spans.end(), wanted, less);
  return it != spans.end() && order_of(*it) == order_of(wanted) ? &it->digest : nullptr;
}

void FileMemo::add(uint64_t offset, uint64_t count, const ContentId& digest) {
  const Span wanted{offset, count, digest};
  const auto less = [](const Span& a, const Span& b) { return order_of(a) < order_of(b); };
  const auto it = std::lower_bound(spans.begin(), spans.end(), wanted, less);
  if (it != spans.end() && order_of(*it) == order_of(wanted)) {
    it->digest = digest;
  } else {
    spans.insert(it, wanted);
  }
}

const PackEntry* PackIndex::find(const PackKey& key) const {
  const auto less = [](const PackEntry& entry, const PackKey& wanted) {
    return entry.key < wanted;
  };
  const auto it = std::lower_bound(entries.begin(), entries.end(), key, less);
  return it != entries.end() && it->key == key ? &*it : nullptr;
}

std::vector<uint8_t> encode_index(const PackIndex& index) {
  flatbuffers::FlatBufferBuilder out;
  std::vector<fpack::Blob> blobs;
  for (const PackEntry& e : index.entries) {
    blobs.emplace_back(stored(e.key), e.offset, e.bytes, e.checksum, e.pack, e.name,
                       static_cast<uint16_t>(e.layout), e.version);
  }
  std::vector<flatbuffers::Offset<fpack::Memo>> memos;
  for (const FileMemo& memo : index.memos) memos.push_back(encode_memo(out, memo));
  std::vector<flatbuffers::Offset<fpack::Pack>> packs;
  for (const PackIndex::Pack& pack : index.packs) {
    packs.push_back(fpack::CreatePackDirect(out, pack.name.c_str(), pack.bytes));
  }
  const auto blob_vector = out.CreateVectorOfStructs(blobs);
  const auto name_vector = out.CreateVectorOfStrings(index.names);
  const auto memo_vector = out.CreateVector(memos);
  const auto pack_vector = out.CreateVector(packs);
  const auto writer = out.CreateString(index.writer);
  out.Finish(fpack::CreateIndex(out, blob_vector, name_vector, memo_vector, pack_vector, writer));
  return {out.GetBufferPointer(), out.GetBufferPointer() + out.GetSize()};
}

Result<PackIndex> decode_index(Bytes bytes, uint64_t blob_end) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<fpack::Index>(nullptr)) {
    return invalid_graph("pack index: not a well-formed flatbuffer");
  }
  const fpack::Index& root = *fpack::GetIndex(bytes.data());
  // The verifier lets null entries in vectors of tables and strings through.
  if (has_null(root.names()) || has_null(root.memos()) || has_null(root.packs())) {
    return invalid_graph("pack index: a list has an empty entry");
  }
  PackIndex index;
  index.writer = text_of(root.writer());
  if (root.names()) {
    for (const flatbuffers::String* name : *root.names()) index.names.push_back(name->str());
  }
  if (root.packs()) {
    for (const fpack::Pack* pack : *root.packs()) {
      index.packs.push_back({text_of(pack->name()), pack->bytes()});
    }
  }
  if (root.memos()) {
    for (const fpack::Memo* memo : *root.memos()) {
      FOLIO_TRY(FileMemo decoded, decode_memo(*memo));
      index.memos.push_back(std::move(decoded));
    }
  }
  if (is_misplaced(root.blobs())) return invalid_graph("pack index: misplaced blobs");
  if (root.blobs()) {
    for (const fpack::Blob* blob : *root.blobs()) {
      FOLIO_TRY(const PackEntry entry, decode_entry(*blob, index, blob_end));
      index.entries.push_back(entry);
    }
  }
  return index;
}

}  // namespace folio
