// OrtFileWriter: an exported model as the bytes of an .ort file, version 6 of the format.
//
// Flow:    build() makes the structure as one flatbuffer in memory, in which large constants have
//          no bytes yet; write() puts it into the file, behind it each payload, 64-byte aligned,
//          and has patched the references to them before.
// Owns:    the structure; borrows the exported model.
// Threads: one, while saving.
// Errors:  kNotImplemented for what the format cannot say (optional types, types as attributes),
//          naming the node or value; kInvalidArgument above 2 GiB.
// ONNX Runtime: wants a type for every value and the resolver of type parameters. Where an operator
//          is not in our table of definitions, the file says version 4, for which ONNX Runtime
//          makes the resolver itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/save/payload_writer.h"

namespace folio {

// Offsets of a flatbuffer have 32 bits, one of them the sign.
inline constexpr uint64_t kMaxOrtBytes = 0x7FFFFFFE;

class OrtFileWriter {
 public:
  // `external` says which payloads stand in a data file and where there; `binding` is the metadata
  // entry that names it ("": none).
  OrtFileWriter(const ExportedModel& exported, const PayloadLayout& external, std::string binding);
  ~OrtFileWriter();

  Status build(const PayloadWriter& payloads);
  // Bytes of the whole file.
  uint64_t size() const;
  Status write(PayloadWriter* payloads, NewFile* file);

 private:
  class Structure;
  std::unique_ptr<Structure> structure_;
};

}  // namespace folio
