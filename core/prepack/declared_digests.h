// DeclaredDigests: what a model file that Folio saved says of the contents of its large weights, so
// that a load need not read them to name them.
//
// Text:    the metadata entry kKey: "1", the sizes of the model file and of its data file (0:
// none),
//          then per weight: which of the two files, offset, bytes, digest (content_id.h). All
//          numbers are hexadecimal of fixed width, so that the text has its length before anything
//          is known: it is put in when the rest of the file has been written.
// Binding: the text alone proves nothing: a tool may have changed the weights and kept the entry.
//          So the saved files' times of modification have nanoseconds that are a hash of the text:
//          whoever writes to a file afterwards sets another time. Where inodes count
//          (folio.pack_trust = bound), the inode's own time must also be that of the saving.
// Use:     to find blobs that exist under these names. Nothing is written, remembered or shared
//          under a declared name: a model that lies, lies to itself alone.
// Owns:    numbers. Threads: plain values.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/prepack/fpack_index.h"

namespace folio {

class DeclaredDigests {
 public:
  static constexpr const char* kKey = "folio.content_id";
  // Smaller weights are read and hashed: that costs less than the text.
  static constexpr uint64_t kFrom = 64 << 10;

  enum class File : uint8_t { kModel, kData };

  // As long as the text of `count` weights, and not a text.
  static std::string placeholder(size_t count);

  void add(File file, uint64_t offset, uint64_t bytes, const ContentId& digest);
  void set_size(File file, uint64_t bytes) { sizes_[static_cast<size_t>(file)] = bytes; }
  // With entries that say nothing up to `count`.
  std::string to_text(size_t count) const;
  static std::optional<DeclaredDigests> parse(std::string_view text);

  // Nanoseconds of the second in which a file with this text was saved.
  static int64_t signature(std::string_view text);

  // The digest, if the text still holds for the file that has this identity.
  const ContentId* find(const FileIdentity& file, bool by_inode, uint64_t offset,
                        uint64_t bytes) const;

 private:
  struct Entry {
    File file = File::kModel;
    FileMemo::Span span;
  };

  std::array<uint64_t, 2> sizes_ = {};
  std::vector<Entry> entries_;  // parsed: ascending by file, offset, bytes
  int64_t signature_ = 0;       // parsed
};

}  // namespace folio
