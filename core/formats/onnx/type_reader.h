// Types of an ONNX file: TypeProto and ValueInfoProto.
//
// Flow:    graph_reader and attribute_reader call these.
// Threads: one thread.
// Errors:  kInvalidGraph for unknown element types, ranks above kMaxRank and types nested deeper
//          than kMaxTypeDepth. Opaque types become TypeInfo::Kind::kUnknown; negative dims, with
//          which some exporters say "any", kUnknown dims.
#pragma once

#include "core/formats/onnx/load_context.h"
#include "core/model/model_def.h"

namespace folio {

Status read_type(LoadContext& context, Bytes message, TypeDef* out);
Status read_value_info(LoadContext& context, Bytes message, ValueDef* out);

}  // namespace folio
