// LoadContext: what the readers of one ONNX file share while it is parsed.
//
// Owns:    one Ref of the source; counters of the limits.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/utf8.h"
#include "core/formats/load.h"
#include "core/formats/onnx/external_data.h"
#include "core/formats/onnx/wire_reader.h"
#include "core/formats/sparse.h"

namespace folio {

struct LoadContext {
  Ref<ByteSource> source;
  const LoadOptions& options;
  ExternalFiles external = {};
  size_t node_count = 0;  // of the whole model
  DenseBudget dense = {options.max_dense_bytes, 0};
  uint32_t steps = 0;

  // `message_name` must be a literal.
  WireReader reader(Bytes message, const char* message_name) const {
    return WireReader(message, source->bytes().data(), message_name);
  }

  // Called per node and tensor; asks the progress callback now and then. `at` lies in the file.
  Status step(Bytes at) {
    constexpr uint32_t kStepsPerCall = 64;  // a call costs more than parsing a node
    if (!options.on_progress || steps++ % kStepsPerCall != 0) return Status::ok();
    const Bytes file = source->bytes();
    if (options.on_progress(static_cast<uint64_t>(at.data() - file.data()), file.size())) {
      return Status::ok();
    }
    return error(Code::kModelLoadCancelled, "loading was cancelled");
  }
};

// A name as messages show it: quoted, and not a megabyte of it.
inline std::string quoted(std::string_view name) { return "'" + utf8_shortened(name, 200) + "'"; }

}  // namespace folio
