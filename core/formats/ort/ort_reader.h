// OrtReader: from a verified flatbuffer to a ModelDef.
//
// Flow:    ort_loader verifies the bytes and hands over the Model table.
// Owns:    one Ref of the source; counters of the limits.
// Threads: one thread, one model.
// Errors:  kInvalidGraph and kNotImplemented; contexts name graph, node, attribute and tensor.
// Trust:   the verifier has checked that every table, vector and string lies in the file. It does
//          not see null entries of vectors, elements of scalar vectors that are not aligned, or
//          many references to one vector; each_entry, copy_scalars and spend are for these.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/load.h"
#include "core/formats/ort/ort_schema_generated.h"
#include "core/formats/sparse.h"
#include "core/model/model_def.h"

namespace folio {

class OrtReader {
 public:
  // `source` starts at a multiple of 8.
  OrtReader(Ref<ByteSource> source, const LoadOptions& options);

  Status read_model(const ort_schema::Model& model, ModelDef* out);

 private:
  template <typename T>
  using Tables = flatbuffers::Vector<flatbuffers::Offset<T>>;
  using Strings = Tables<flatbuffers::String>;

  // ort_reader.cc. `depth`: 0 for the main graph.
  Status read_import(const ort_schema::OperatorSetId& id, OpsetImport* out);
  Status read_metadata(const ort_schema::Model& model, ModelDef* out);
  Status open_data_file(ModelDef* out);
  Status read_graph(const ort_schema::Graph& graph, int depth, GraphDef* out);
  Status read_initializers(const ort_schema::Graph& graph, GraphDef* out);
  Status read_node(const ort_schema::Node& node, int depth, NodeDef* out);
  Status read_node_fields(const ort_schema::Node& node, int depth, NodeDef* out);

  // ort_attributes.cc
  Status read_attribute(const ort_schema::Attribute& attribute, int depth, AttributeDef* out);
  Status read_attribute_value(const ort_schema::Attribute& attribute, int depth, AttributeDef* out);
  Status read_attribute_tensor(const ort_schema::Tensor* tensor, AttributeDef* out);
  Status read_attribute_graph(const ort_schema::Graph* graph, int depth, AttributeDef* out);

  // ort_types.cc. What a graph's node_args say, and the types of its inputs and outputs.
  Status read_values(const ort_schema::Graph& graph, int depth, GraphDef* out);
  Status read_value(const ort_schema::ValueInfo& info, GraphDef* out);
  Status read_type(const ort_schema::TypeInfo& type, int depth, TypeDef* out);
  Status read_element_type(const ort_schema::TypeInfo* type, int depth, TypeDef* out);
  Status read_tensor_type(const ort_schema::TensorTypeAndShape& type, TypeDef* out);
  Status read_dim(const ort_schema::Dimension& dim, DimDef* out);

  // ort_tensors.cc. `out->source` is null when the payload was copied.
  Status read_tensor(const ort_schema::Tensor& tensor, InitializerDef* out);
  Status read_payload(const ort_schema::Tensor& tensor, InitializerDef* out);
  Status read_strings(const Strings* strings, uint64_t count, const Shape& shape, Tensor* out);
  Status take_payload(const Ref<ByteSource>& source, Bytes payload, DType dtype, const Shape& shape,
                      InitializerDef* out);
  Status read_outside(uint64_t offset, uint64_t bytes, DType dtype, const Shape& shape,
                      InitializerDef* out);
  Status read_dims(const flatbuffers::Vector<int64_t>* dims, std::vector<int64_t>* out);
  Status read_sparse(const ort_schema::SparseTensor& sparse, InitializerDef* out);

  // Strings. A missing one is empty; a name has at most kMaxNameBytes of valid UTF-8; of a text,
  // which is only shown, ill-formed UTF-8 is replaced; bytes are taken as they are.
  Status read_name(const flatbuffers::String* name, const char* what, std::string* out);
  Status read_names(const Strings* names, const char* what, std::vector<std::string>* out);
  Status read_text(const flatbuffers::String* text, std::string* out);
  Status read_bytes(const flatbuffers::String* bytes, std::string* out);

  // Counts memory that the structure takes; refuses a file that unfolds to far more than itself.
  Status spend(uint64_t bytes);

  // visit(const T&) for every entry; a missing vector has none.
  template <typename T, typename Visit>
  Status each_entry(const Tables<T>* entries, const char* what, Visit&& visit) {
    if (!entries) return Status::ok();
    for (uint32_t i = 0; i < entries->size(); ++i) {
      const uint8_t* at = entries->Data() + size_t{i} * sizeof(flatbuffers::uoffset_t);
      if (flatbuffers::ReadScalar<flatbuffers::uoffset_t>(at) == 0) {
        return invalid_graph(what, " ", i, " of ", entries->size(), " is null");
      }
      FOLIO_RETURN_IF_ERROR(visit(*entries->Get(i)));
    }
    return Status::ok();
  }

  template <typename T>
  Status copy_scalars(const flatbuffers::Vector<T>* scalars, std::vector<T>* out) {
    if (!scalars || scalars->size() == 0) return Status::ok();
    FOLIO_RETURN_IF_ERROR(spend(uint64_t{scalars->size()} * sizeof(T)));
    out->resize(scalars->size());
    std::memcpy(out->data(), scalars->Data(), out->size() * sizeof(T));
    return Status::ok();
  }

  Ref<ByteSource> source_;
  Ref<ByteSource> data_file_;  // null: the model has none
  const LoadOptions& options_;
  DenseBudget dense_;
  uint64_t structure_limit_bytes_;
  uint64_t structure_bytes_ = 0;
  size_t node_count_ = 0;  // of the whole model
};

// A name as messages show it: quoted, and not a megabyte of it.
std::string shown_name(const flatbuffers::String* name);
std::string shown_name(std::string_view name);

// ONNX's number, checked. UNDEFINED is allowed: writers leave types of inner values open.
Result<DType> dtype_from(ort_schema::TensorDataType number);

}  // namespace folio
