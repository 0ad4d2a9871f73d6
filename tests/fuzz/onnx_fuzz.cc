// Fuzzes load_model_def with .onnx bytes that have no files beside them.
//
// An input is the file. Whatever loads is walked, so that a sanitizer sees every payload byte that
// a kernel could read.
#include <cstdlib>

#include "core/formats/load.h"
#include "tests/fuzz/model_walk.h"

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
