// Tensors and sparse tensors of an ONNX file.
//
// Flow:    graph_reader (initializers) and attribute_reader call these.
// Owns:    payloads that stand in a file as the kernels want them (raw_data, float_data and
//          double_data in one piece, external data) become views that keep the file alive;
//          those below kSmallTensorBytes, and all other encodings, become heap tensors.
// Threads: one thread.
// Errors:  kInvalidGraph when dims, type and payload do not agree: the message names the tensor,
//          dims, expected and found bytes. kModelChanged when the file changed between counting
//          elements and decoding them.
#pragma once

#include "core/base/span.h"
#include "core/base/status.h"
#include "core/formats/onnx/load_context.h"
#include "core/model/model_def.h"

namespace folio {

// A TensorProto. `out->source` is null when the tensor is on the heap.
Status read_tensor(LoadContext& context, Bytes message, InitializerDef* out);

// A SparseTensorProto, made dense on the heap; its name is that of its values. Indices must be
// inside the dims, ascending and unique.
Status read_sparse_tensor(LoadContext& context, Bytes message, InitializerDef* out);

// A StringStringEntryProto. A key is a name, a value any bytes.
Status read_entry(LoadContext& context, Bytes message, std::string* key, std::string* value);

}  // namespace folio
