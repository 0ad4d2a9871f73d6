// Graphs, nodes and functions of an ONNX file.
//
// Flow:    onnx_loader reads the main graph and functions; attribute_reader comes back for
//          subgraphs.
// Threads: one thread.
// Errors:  kInvalidGraph above the limits on nesting and nodes; contexts name graph, node and
//          attribute.
#pragma once

#include "core/formats/onnx/load_context.h"
#include "core/model/model_def.h"

namespace folio {

// Adds to `out`, so that a graph given in pieces is merged. `depth`: 0 for the main graph.
Status read_graph(LoadContext& context, Bytes message, int depth, GraphDef* out);

Status read_function(LoadContext& context, Bytes message, FunctionDef* out);

// An OperatorSetIdProto.
Status read_opset(LoadContext& context, Bytes message, OpsetImport* out);

}  // namespace folio
