// FileBinding: which other file a model's file belongs with, as an entry of the model's metadata.
//
// Flow:    whoever writes both files writes the entry; whoever opens the model compares.
// Bytes:   "NAME SIZE DIGEST", the digest in 32 hexadecimal digits.
// Owns:    plain values.
// Errors:  parse: kInvalidGraph naming the entry and what was found.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace folio {

struct FileBinding {
  using Digest = std::array<uint8_t, 16>;

  std::string name;  // beside the model, no folder
  uint64_t size = 0;
  Digest digest = {};

  std::string to_text() const;
  // `key` is the entry's. A file has `least` bytes or more.
  static Result<FileBinding> parse(const char* key, const std::string& text, uint64_t least);
};

std::string hex_text(const FileBinding::Digest& digest);

}  // namespace folio
