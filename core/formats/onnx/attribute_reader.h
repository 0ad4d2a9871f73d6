// Attributes of an ONNX node or function: AttributeProto of every type.
//
// Flow:    graph_reader calls it per node; subgraphs go back to graph_reader.
// Threads: one thread.
// Errors:  kInvalidGraph when the declared type is unknown or its tensor, graph or type is
//          missing. Scalars that are not written are zero or empty, as protobuf has it. Where no
//          type is declared (IR version 1 had none), the one field that is filled tells it; none
//          filled stays kUndefined. Values of other types than the declared one are dropped, and
//          so are all values of an attribute with ref_attr_name.
#pragma once

#include "core/formats/onnx/load_context.h"
#include "core/model/model_def.h"

namespace folio {

// `depth` of the graph that the node stands in; the main graph has 0.
Status read_attribute(LoadContext& context, Bytes message, int depth, AttributeDef* out);

}  // namespace folio
