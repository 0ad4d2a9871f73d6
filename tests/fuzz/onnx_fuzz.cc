// Fuzzes load_model_def with .onnx bytes that have no files beside them.
//
// An input is the file. Whatever loads is walked, so that a sanitizer sees every payload byte that
// a kernel could read.
#include <cstdlib>

#include "core/formats/load.h"

namespace folio {
namespace {

// The fuzzer's bytes as they are, so that reads past their end are seen.
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

size_t walk_tensor(const Tensor& tensor) {
  size_t sum = 0;
  if (tensor.is_string()) {
    for (const std::string& text : tensor.span<std::string>()) sum += text.size();
    return sum;
  }
  for (size_t i = 0; i < tensor.bytes(); ++i) sum += tensor.raw()[i];
  return sum;
}

size_t walk_graph(const GraphDef& graph) {
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

}  // namespace
}  // namespace folio

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace folio;
  LoadOptions options;
  options.format = ModelFormat::kOnnx;
  options.max_dense_bytes = 1 << 20;  // the limit itself is a unit test; here it only costs time
  const Result<ModelDef> model = load_model_def(make_ref<FuzzSource>(Bytes(data, size)), options);
  if (model.is_ok() == !model.status().message().empty()) std::abort();
  // The volatile keeps the walk from being optimised away.
  volatile size_t sum = model.is_ok() ? walk_graph(model.value().graph) : 0;
  (void)sum;
  return 0;
}
