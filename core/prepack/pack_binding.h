// PackBinding: which pack file the weights of a model stand in, where they stand nowhere else
// (folio pack --replace).
//
// Flow:    session/replace_weights writes it into the model's metadata; ModelFile checks, when it
//          opens the model, that the pack file beside it is that one.
// Bytes:   as core/base/file_binding.h; the digest is the pack file's id.
// Owns:    plain values.
// Errors:  kInvalidGraph naming the file, what was expected and found.
#pragma once

#include <string>

#include "core/base/file_binding.h"
#include "core/prepack/fpack_file.h"

namespace folio {

struct PackBinding {
  static constexpr const char* kKey = "folio.pack_file";

  FileBinding file;

  static PackBinding of(std::string name, const PackSummary& pack);
  static Result<PackBinding> parse(const std::string& text);

  // Whether `found` is that one.
  Status check(const ByteSource& found) const;
};

}  // namespace folio
