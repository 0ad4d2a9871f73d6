// OnnxWriter: an exported model as the bytes of an ONNX ModelProto.
//
// Flow:    the structure is laid out first, with the lengths of all payloads; then structure and
//          payloads are written in the file's order.
// Owns:    nothing; borrows the exported model.
// Threads: one, while saving.
// Errors:  kInvalidArgument when the file would be larger than protobuf reads (2 GiB); what
//          PayloadWriter and NewFile report.
#pragma once

#include <string>

#include "core/save/payload_writer.h"
#include "core/save/proto_rope.h"

namespace folio {

// Protobuf's own limit on a message, and so on an .onnx file.
inline constexpr uint64_t kMaxOnnxBytes = 0x7FFFFFFF;

class OnnxWriter {
 public:
  // `external` says which payloads stand in the file `location` and where there.
  OnnxWriter(const ExportedModel& exported, const PayloadLayout& external, std::string location);

  // Makes the structure; afterwards size() is known.
  void lay_out();
  uint64_t size() const { return model_.size(); }

  Status write(PayloadWriter* payloads, NewFile* file) const;

 private:
  ProtoRope graph(const GraphDef& graph) const;
  ProtoRope node(const NodeDef& node) const;
  ProtoRope attribute(const AttributeDef& attribute) const;
  ProtoRope initializer(const InitializerDef& initializer, size_t payload) const;
  ProtoRope tensor_head(const Tensor& tensor, const std::string& name) const;
  ProtoRope attribute_tensor(const Tensor& tensor) const;
  ProtoRope type(const TypeDef& type) const;
  ProtoRope value(const ValueDef& value) const;

  const ExportedModel& exported_;
  const PayloadLayout& external_;
  const std::string location_;
  ProtoRope model_;
};

}  // namespace folio
