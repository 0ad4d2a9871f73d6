// External data: tensors whose bytes stand in a file beside the model.
//
// Flow:    tensor_reader collects the entries of TensorProto.external_data, then asks here for the
//          bytes.
// Owns:    one Ref per external file, so that all tensors of a file share its mapping; the tensors
//          hold their own.
// Threads: one thread while loading.
// Errors:  kInvalidGraph for entries that make no sense and for files that are too short;
//          what ByteSource::open_sibling says (it guards the folder) for the rest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/base/byte_source.h"
#include "core/base/status.h"

namespace folio {

struct ExternalLocation {
  std::string path;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

// Takes one key and value. `checksum` and unknown keys (ORT writes `prepacked_0` and so on) are
// ignored.
Status add_external_entry(const std::string& key, const std::string& value,
                          ExternalLocation* location);

struct ExternalPayload {
  Ref<ByteSource> source;
  uint64_t offset = 0;
  Bytes bytes;
};

class ExternalFiles {
 public:
  // The `bytes` bytes of a tensor at `location`, opened relative to `model`.
  Result<ExternalPayload> find(const ByteSource& model, const ExternalLocation& location,
                               uint64_t bytes);

 private:
  std::map<std::string, Ref<ByteSource>> files_;
};

}  // namespace folio
