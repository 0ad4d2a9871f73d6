// load_onnx: a serialized ONNX ModelProto becomes a ModelDef.
//
// Flow:    formats/load.h calls it. wire_reader checks the wire, the *_reader files each take the
//          messages their name says, onnx_loader the ModelProto itself.
// Owns:    nothing; payload views keep the source and its external files alive.
// Threads: any number of loads at once.
// Errors:  as formats/load.h. Unknown fields are skipped; a field given twice takes its last value
//          (ModelProto.graph is merged as protobuf does; a tensor or subgraph given twice where one
//          belongs is an error).
#pragma once

#include "core/formats/load.h"

namespace folio {

// IR versions 1 to this one are read.
inline constexpr int64_t kMaxIrVersion = 13;

Result<ModelDef> load_onnx(Ref<ByteSource> source, const LoadOptions& options);

}  // namespace folio
