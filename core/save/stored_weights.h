// write_stored_model: an exported model as an .onnx whose weights stand in another file that is
// there already (folio pack --replace).
//
// Does:    a weight that stands there as it is becomes ordinary external data, which every runtime
//          reads. One that stands there in a kernel's layout becomes a node folio.Unpack
//          (ops/op_unpack.h) over its bytes: a runtime that does not know it refuses the model
//          instead of reading wrong numbers. All others stay in the model.
// Owns:    nothing; the exported model is changed.
// Threads: one.
// Errors:  kInvalidArgument when the file would be larger than protobuf reads; those of NewFile.
#pragma once

#include <optional>

#include "core/ops/op_unpack.h"
#include "core/save/payload_writer.h"

namespace folio {

struct StoredWeight {
  uint64_t offset = 0;
  std::optional<PackedWeight> packed;  // form and checksum; dtype and shape as the model says
};

struct StoredWeights {
  std::string location;                               // the file, beside the model
  std::vector<std::optional<StoredWeight>> payloads;  // by payload; none: stays in the model
  std::pair<std::string, std::string> metadata;       // says which file it is
};

// Writes the whole file; finishing and naming it is the caller's.
Status write_stored_model(ExportedModel* exported, const StoredWeights& stored,
                          const Evaluator& evaluator, NewFile* file);

// Calls `visit` with the graph and, in the order of their nodes, all graphs inside of it.
void each_graph(GraphDef* graph, const std::function<void(GraphDef*)>& visit);

}  // namespace folio
