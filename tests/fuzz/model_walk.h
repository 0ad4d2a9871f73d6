// What the fuzz targets of the model formats share: a source over the fuzzer's bytes, and a walk
// over all that was loaded, so that a sanitizer sees every payload byte that a kernel could read.
#pragma once

#include <cstring>
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
  // Words at a time and nothing asked of the tensor in the loop: it is slow in a fuzzer's build,
  // and an output may have millions of bytes.
  const uint8_t* bytes = tensor.raw();
  const size_t size = tensor.bytes();
  size_t at = 0;
  for (size_t word = 0; size - at >= sizeof(word); at += sizeof(word)) {
    std::memcpy(&word, bytes + at, sizeof(word));
    sum += word;
  }
  for (; at < size; ++at) sum += bytes[at];
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
