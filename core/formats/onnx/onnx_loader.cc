#include "core/formats/onnx/onnx_loader.h"

#include <utility>

#include "core/formats/onnx/graph_reader.h"
#include "core/formats/onnx/load_context.h"
#include "core/formats/onnx/onnx_fields.h"
#include "core/formats/onnx/tensor_reader.h"

namespace folio {
namespace {

Status read_model_graph(LoadContext& context, WireReader& reader, bool* has_graph,
                        ModelDef* model) {
  Bytes graph;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&graph));
  *has_graph = true;
  FOLIO_RETURN_IF_ERROR(read_graph(context, graph, 0, &model->graph));
  WireReader texts = context.reader(graph, "GraphProto");
  return texts.each_field([&](uint32_t field) -> Status {
    return field == GraphFields::kDocString ? texts.read_text(&model->graph_doc_string)
                                            : texts.skip();
  });
}

Status read_metadata(LoadContext& context, WireReader& reader, ModelDef* model) {
  Bytes entry;
  std::string key;
  std::string value;
  FOLIO_RETURN_IF_ERROR(reader.read_bytes(&entry));
  FOLIO_RETURN_IF_ERROR(read_entry(context, entry, &key, &value));
  model->metadata.emplace_back(std::move(key), utf8_repaired(value));
  return Status::ok();
}

Status read_model_field(LoadContext& context, WireReader& reader, uint32_t field, bool* has_graph,
                        ModelDef* model) {
  Bytes message;
  switch (field) {
    case ModelFields::kIrVersion:
      return reader.read_int(&model->ir_version);
    case ModelFields::kProducerName:
      return reader.read_text(&model->producer_name);
    case ModelFields::kProducerVersion:
      return reader.read_text(&model->producer_version);
    case ModelFields::kDomain:
      return reader.read_name("domain", &model->domain);
    case ModelFields::kModelVersion:
      return reader.read_int(&model->model_version);
    case ModelFields::kDocString:
      return reader.read_text(&model->doc_string);
    case ModelFields::kGraph:
      return read_model_graph(context, reader, has_graph, model);
    case ModelFields::kOpsetImport:
      FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
      return read_opset(context, message, &model->opsets.emplace_back());
    case ModelFields::kMetadataProps:
      return read_metadata(context, reader, model);
    case ModelFields::kFunctions:
      FOLIO_RETURN_IF_ERROR(reader.read_bytes(&message));
      return read_function(context, message, &model->functions.emplace_back());
    default:
      return reader.skip();
  }
}

Status check_versions(ModelDef* model) {
  if (model->ir_version < 1) {
    return invalid_graph("ir_version is ", model->ir_version, ", expected 1 to ", kMaxIrVersion);
  }
  if (model->ir_version > kMaxIrVersion) {
    return not_implemented("ir_version is ", model->ir_version, ", supported are 1 to ",
                           kMaxIrVersion);
  }
  for (const OpsetImport& opset : model->opsets) {
    if (opset.version < 1) {
      return invalid_graph("opset_import of domain ", quoted(opset.domain), " has version ",
                           opset.version, ", expected 1 or more");
    }
  }
  if (!model->opsets.empty()) return Status::ok();
  // Models before IR version 3 could leave the imports out.
  if (model->ir_version >= 3) return invalid_graph("the model imports no operator set");
  model->opsets.push_back(OpsetImport{"", 1});
  return Status::ok();
}

Status read_model(LoadContext& context, ModelDef* model) {
  constexpr const char* kNotAModel = "not an ONNX or ORT-format model";
  const Bytes bytes = context.source->bytes();
  if (bytes.empty()) return error(Code::kNoModel, kNotAModel, ": it is empty");
  bool has_graph = false;
  WireReader reader = context.reader(bytes, "ModelProto");
  Status read = reader.each_field(
      [&](uint32_t field) { return read_model_field(context, reader, field, &has_graph, model); });
  if (!read.is_ok()) {
    // ONNX has no magic number: bytes that break before they showed anything of a model are
    // something else, later they are a damaged model.
    const bool foreign =
        read.code() == Code::kInvalidProtobuf && model->ir_version == 0 && !has_graph;
    return foreign ? error(Code::kNoModel, kNotAModel, ": ", read.message()) : read;
  }
  if (!has_graph) {
    const Code code = model->ir_version == 0 ? Code::kNoModel : Code::kInvalidProtobuf;
    return error(code, kNotAModel, ": it has no graph");
  }
  return check_versions(model);
}

}  // namespace

Result<ModelDef> load_onnx(Ref<ByteSource> source, const LoadOptions& options) {
  LoadContext context{source, options};
  ModelDef model;
  model.format = "onnx";
  Status read = read_model(context, &model);
  if (!read.is_ok()) return std::move(read).with_context(source->name());
  return model;
}

}  // namespace folio
