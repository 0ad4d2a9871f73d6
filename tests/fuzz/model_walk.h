// What the fuzz targets of the model formats share: a source over the fuzzer's bytes, and a walk
// over all that was loaded, so that a sanitizer sees every payload byte that a kernel could read.
#pragma once

#include <string>

#include "core/base/byte_source.h"
#include "core/model/model_def.h"

namespace folio {

// The fuzzer's bytes as they are, so that reads past their end are seen; no files beside them.
class FuzzSource final : public ByteSource {
 public:
  explicit FuzzSource(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes() const override { return bytes_; }
  const std::string& name() const override { return name_; }
  Result<Ref<ByteSource>> open_sibling(const std::string& location) const override {
    return error(Code::kNoSuchFile, "no file '", location, "'");
  }

 private:
  Bytes bytes_;
  std::string name_ = "fuzz";
};

inline size_t walk_tensor(const Tensor& tensor) {
  size_t sum = 0;
  if (tensor.is_string()) {
    for (const std::string& text : tensor.span<std::string>()) sum += text.size();
    return sum;
  }
  for (size_t i = 0; i < tensor.bytes(); ++i) sum += tensor.raw()[i];
  return sum;
}

inline size_t walk_graph(const GraphDef& graph) {
  size_t sum = 0;
  for (const InitializerDef& initializer : graph.initializers) {
    sum += walk_tensor(initializer.tensor);
  }
  for (const NodeDef& node : graph.nodes) {
    for (const AttributeDef& attribute : node.attributes) {
      for (const Tensor& tensor : attribute.tensors) sum += walk_tensor(tensor);
      for (const auto& subgraph : attribute.graphs) sum += walk_graph(*subgraph);
    }
  }
  return sum;
}

}  // namespace folio
