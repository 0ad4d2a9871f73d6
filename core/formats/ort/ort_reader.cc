// The model, its graphs and nodes; see ort_reader.h.
#include "core/formats/ort/ort_reader.h"

#include <algorithm>

#include "core/base/checked_math.h"
#include "core/base/utf8.h"
#include "core/formats/ort/ort_data_file.h"

namespace folio {
namespace {

// Memory that names, attributes and small tensors may take: a constant for small files, and a
// multiple of larger ones. ORT writes each distinct name once and refers to it with 4 bytes, so a
// file of nothing but uses of names of 200 bytes takes some 60 times its size.
constexpr uint64_t kStructureBytes = uint64_t{256} << 20;
constexpr uint64_t kStructureBytesPerFileByte = 64;

// "ai.onnx" and "" are one domain; inside Folio it is "".
void normalize_domain(std::string* domain) {
  if (*domain == "ai.onnx") domain->clear();
}

}  // namespace

OrtReader::OrtReader(Ref<ByteSource> source, const LoadOptions& options)
    : source_(std::move(source)),
      options_(options),
      dense_{options.max_dense_bytes, 0},
      // A file is below 2^31 bytes: no overflow.
      structure_limit_bytes_(kStructureBytes +
                             kStructureBytesPerFileByte * source_->bytes().size()) {}

Status OrtReader::spend(uint64_t bytes) {
  if (!range_inside(structure_bytes_, bytes, structure_limit_bytes_)) {
    return invalid_graph("names, attributes and small tensors take more than ",
                         structure_limit_bytes_, " bytes; the whole file has ",
                         source_->bytes().size());
  }
  structure_bytes_ += bytes;
  return Status::ok();
}

Status OrtReader::read_bytes(const flatbuffers::String* bytes, std::string* out) {
  out->clear();
  if (!bytes) return Status::ok();
  FOLIO_RETURN_IF_ERROR(spend(sizeof(std::string) + bytes->size()));
  out->assign(bytes->data(), bytes->size());
  return Status::ok();
}

Status OrtReader::read_text(const flatbuffers::String* text, std::string* out) {
  FOLIO_RETURN_IF_ERROR(read_bytes(text, out));
  if (!utf8_valid(*out)) *out = utf8_repaired(*out);
  return Status::ok();
}

Status OrtReader::read_name(const flatbuffers::String* name, const char* what, std::string* out) {
  if (name && name->size() > kMaxNameBytes) {
    return invalid_graph(what, " has ", name->size(), " bytes, at most ", kMaxNameBytes,
                         " are allowed");
  }
  FOLIO_RETURN_IF_ERROR(read_bytes(name, out));
  if (!utf8_valid(*out)) return invalid_graph(what, " is not valid UTF-8");
  return Status::ok();
}

Status OrtReader::read_names(const Strings* names, const char* what,
                             std::vector<std::string>* out) {
  return each_entry(names, what, [&](const flatbuffers::String& name) {
    return read_name(&name, what, &out->emplace_back());
  });
}

Status OrtReader::read_import(const ort_schema::OperatorSetId& id, OpsetImport* out) {
  if (!id.domain()) return invalid_graph("an opset_import entry has no domain");
  FOLIO_RETURN_IF_ERROR(read_name(id.domain(), "opset_import domain", &out->domain));
  normalize_domain(&out->domain);
  out->version = id.version();
  if (out->version >= 1) return Status::ok();
  return invalid_graph("opset_import of domain ", shown_name(out->domain), " has version ",
                       out->version, ", expected 1 or more");
}

Status OrtReader::read_metadata(const ort_schema::Model& model, ModelDef* out) {
  return each_entry(model.metadata_props(), "metadata_props entry",
                    [&](const ort_schema::StringStringEntry& entry) {
                      auto& [key, value] = out->metadata.emplace_back();
                      FOLIO_RETURN_IF_ERROR(read_name(entry.key(), "metadata_props key", &key));
                      return read_bytes(entry.value(), &value);
                    });
}

// The entry is the file's own business: it leaves the metadata that users see.
Status OrtReader::open_data_file(ModelDef* out) {
  const auto entry = std::find_if(out->metadata.begin(), out->metadata.end(),
                                  [](const auto& e) { return e.first == kOrtDataFileKey; });
  if (entry == out->metadata.end()) return Status::ok();
  FOLIO_TRY(const FileBinding binding, OrtDataFile::parse_binding(entry->second));
  out->metadata.erase(entry);
  FOLIO_TRY(data_file_, OrtDataFile::open(*source_, binding));
  return Status::ok();
}

Status OrtReader::read_model(const ort_schema::Model& model, ModelDef* out) {
  out->ir_version = model.ir_version();
  out->model_version = model.model_version();
  FOLIO_RETURN_IF_ERROR(read_text(model.producer_name(), &out->producer_name));
  FOLIO_RETURN_IF_ERROR(read_text(model.producer_version(), &out->producer_version));
  FOLIO_RETURN_IF_ERROR(read_text(model.domain(), &out->domain));
  FOLIO_RETURN_IF_ERROR(read_text(model.doc_string(), &out->doc_string));
  FOLIO_RETURN_IF_ERROR(read_text(model.graph_doc_string(), &out->graph_doc_string));
  FOLIO_RETURN_IF_ERROR(read_metadata(model, out));
  FOLIO_RETURN_IF_ERROR(open_data_file(out));
  const auto import = [&](const ort_schema::OperatorSetId& id) {
    return read_import(id, &out->opsets.emplace_back());
  };
  FOLIO_RETURN_IF_ERROR(each_entry(model.opset_import(), "opset_import entry", import));
  if (out->opsets.empty()) return invalid_graph("the model imports no operator set");
  if (!model.graph()) return invalid_graph("the model has no graph");
  return read_graph(*model.graph(), 0, &out->graph);
}

Status OrtReader::read_graph(const ort_schema::Graph& graph, int depth, GraphDef* out) {
  if (depth > kMaxSubgraphDepth) {
    return invalid_graph("subgraphs nest deeper than ", kMaxSubgraphDepth, " levels");
  }
  FOLIO_RETURN_IF_ERROR(read_values(graph, depth, out));
  FOLIO_RETURN_IF_ERROR(read_initializers(graph, out));
  return each_entry(graph.nodes(), "node", [&](const ort_schema::Node& node) {
    if (++node_count_ > options_.max_nodes) {
      return invalid_graph("the model has more than ", options_.max_nodes, " nodes");
    }
    return read_node(node, depth, &out->nodes.emplace_back());
  });
}

Status OrtReader::read_initializers(const ort_schema::Graph& graph, GraphDef* out) {
  const auto checked = [](Status read, const InitializerDef& initializer) {
    if (read.is_ok() && initializer.name.empty()) {
      read = invalid_graph("an initializer has no name");
    }
    return read;
  };
  const auto dense = [&](const ort_schema::Tensor& tensor) {
    InitializerDef& initializer = out->initializers.emplace_back();
    return checked(read_tensor(tensor, &initializer), initializer);
  };
  const auto sparse = [&](const ort_schema::SparseTensor& tensor) {
    InitializerDef& initializer = out->initializers.emplace_back();
    return checked(read_sparse(tensor, &initializer), initializer);
  };
  FOLIO_RETURN_IF_ERROR(each_entry(graph.initializers(), "initializer", dense));
  return each_entry(graph.sparse_initializers(), "sparse initializer", sparse);
}

Status OrtReader::read_node(const ort_schema::Node& node, int depth, NodeDef* out) {
  Status read = read_node_fields(node, depth, out);
  if (read.is_ok()) return read;
  return std::move(read).with_context(
      cat("node ", shown_name(node.name()), " (", shown_name(node.op_type()), ")"));
}

// Node.index, edges, input_arg_counts and implicit_inputs say again what the names say.
Status OrtReader::read_node_fields(const ort_schema::Node& node, int depth, NodeDef* out) {
  FOLIO_RETURN_IF_ERROR(read_name(node.name(), "node name", &out->name));
  FOLIO_RETURN_IF_ERROR(read_name(node.domain(), "node domain", &out->domain));
  normalize_domain(&out->domain);
  FOLIO_RETURN_IF_ERROR(read_name(node.op_type(), "op_type", &out->op_type));
  if (out->op_type.empty()) return invalid_graph("the node has no op_type");
  out->since_version = node.since_version();
  if (out->since_version < 0) {
    return invalid_graph("since_version is ", out->since_version, ", expected 0 or more");
  }
  FOLIO_RETURN_IF_ERROR(read_names(node.inputs(), "input name", &out->inputs));
  FOLIO_RETURN_IF_ERROR(read_names(node.outputs(), "output name", &out->outputs));
  return each_entry(node.attributes(), "attribute", [&](const ort_schema::Attribute& attribute) {
    return read_attribute(attribute, depth, &out->attributes.emplace_back());
  });
}

std::string shown_name(std::string_view name) {
  constexpr size_t kShownBytes = 200;
  return "'" + utf8_shortened(utf8_repaired(name.substr(0, 2 * kShownBytes)), kShownBytes) + "'";
}

std::string shown_name(const flatbuffers::String* name) {
  return shown_name(name ? std::string_view(name->data(), name->size()) : std::string_view());
}

}  // namespace folio
