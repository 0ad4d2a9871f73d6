// OrtDataFile: where an .ort model above 2 GB keeps its large initializers.
//
// Flow:    core/save writes MODEL.ort.data and an entry of the model's metadata that names it; the
//          loader opens it and takes the tensors' bytes from it. Only Folio knows such files.
// Bytes:   a header of kHeaderBytes (zeros after its fields), then the tensors where their
//          external_data_offset says. Little-endian.
// Binding: the entry holds the file's name, its size and a digest of its tensors, the header the
//          same two: a file of another model, of an earlier saving, or one cut short is refused
//          without reading it. The digest itself is not computed again.
// Errors:  kInvalidGraph naming the file, what was expected and found; what open_sibling says.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/byte_source.h"
#include "core/base/file_binding.h"

namespace folio {

// Of the metadata entry.
inline constexpr const char* kOrtDataFileKey = "folio.data_file";

class OrtDataFile {
 public:
  static constexpr uint64_t kHeaderBytes = 4096;
  using Header = std::array<uint8_t, kHeaderBytes>;

  static Header header(const FileBinding& binding);
  static Result<FileBinding> parse_binding(const std::string& text);
  // Opens the file beside `model` that `binding` names.
  static Result<Ref<ByteSource>> open(const ByteSource& model, const FileBinding& binding);
};

}  // namespace folio
