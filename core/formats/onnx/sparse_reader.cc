// Sparse tensors; see tensor_reader.h.
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/onnx/tensor_reader.h"

namespace folio {
namespace {

struct SparseScan {
  InitializerDef values;
  InitializerDef indices;
  bool has_values = false;
  bool has_indices = false;
  std::vector<int64_t> dims;
};

Status read_part(LoadContext& context, WireReader& reader, const char* part, bool* has,
                 InitializerDef* out) {
  if (*has) return invalid_graph("sparse tensor has ", part, " twice");
  *has = true;
  Bytes message;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
  return read_tensor(context, message, out).with_context(cat("sparse tensor ", part));
}

Status scan_sparse(LoadContext& context, Bytes message, SparseScan* scan) {
  WireReader reader = context.reader(message, "SparseTensorProto");
  return reader.each_field([&](uint32_t field) -> Status {
    switch (field) {
      case SparseTensorFields::kValues:
        return read_part(context, reader, "values", &scan->has_values, &scan->values);
      case SparseTensorFields::kIndices:
        return read_part(context, reader, "indices", &scan->has_indices, &scan->indices);
      case SparseTensorFields::kDims:
        return reader.append_ints(&scan->dims, kMaxRank);
      default:
        return reader.skip();
    }
  });
}

Status expand(LoadContext& context, const SparseScan& scan, Tensor* out) {
  if (!scan.has_values || !scan.has_indices) {
    return invalid_graph("a sparse tensor needs values and indices");
  }
  FOLIO_TRY(*out,
            expand_sparse(scan.values.tensor, scan.indices.tensor, scan.dims, &context.dense));
  return Status::ok();
}

}  // namespace

Status read_sparse_tensor(LoadContext& context, Bytes message, InitializerDef* out) {
  SparseScan scan;
  FOLIO_RETURN_IF_ERROR(scan_sparse(context, message, &scan));
  out->name = scan.values.name;
  return expand(context, scan, &out->tensor)
      .with_context(cat("sparse tensor ", quoted(scan.values.name)));
}

}  // namespace folio
