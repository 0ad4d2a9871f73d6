// PackBinding: which pack file the weights of a model stand in, where they stand nowhere else
// (folio pack --replace).
//
// Flow:    session/replace_weights writes it into the model's metadata; ModelFile checks, when it
//          opens the model, that the pack file beside it is that one.
// Bytes:   "NAME SIZE ID", the id in 32 hexadecimal digits.
// Owns:    plain values.
// Errors:  kInvalidGraph naming the file, what was expected and found.
#pragma once

#include <string>

#include "core/prepack/fpack_file.h"

namespace folio {

struct PackBinding {
  static constexpr const char* kKey = "folio.pack_file";

  std::string name;  // beside the model, no folder
  uint64_t bytes = 0;
  ContentId id;

  std::string to_text() const;
  static Result<PackBinding> parse(const std::string& text);

  // Whether `file` is that one.
  Status check(const ByteSource& file) const;
};

}  // namespace folio
