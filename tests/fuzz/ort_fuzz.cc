// Fuzzes load_ort. The fuzzer's bytes start at a multiple of 8; byte-aligned ones are copied by
// the loader, which is the same path afterwards.
#include <cstdlib>

#include "core/formats/ort/ort_loader.h"
#include "tests/fuzz/model_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace folio;
  LoadOptions options;
  options.max_dense_bytes = 1 << 20;  // the limit itself is a unit test; here it only costs time
  const Result<ModelDef> model = load_ort(make_ref<FuzzSource>(Bytes(data, size)), options);
  if (model.is_ok() == !model.status().message().empty()) std::abort();
  if (model.is_ok()) {
    const volatile size_t sum = walk_graph(model.value().graph);
    static_cast<void>(sum);
  }
  return 0;
}
