// What libFuzzer asks for another input, for the targets that read .onnx files: a changed model
// (tests/support/model_mutator.h); libFuzzer's own changes where the bytes are no model, and now
// and then.
#include <cstring>
#include <exception>

#include "tests/support/model_mutator.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

size_t put(const std::string& bytes, uint8_t* data, size_t max_size) {
  if (bytes.empty() || bytes.size() > max_size) return 0;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

std::string_view view(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  try {
    const std::string changed =
        folio::testing::change_model(view(data, size), seed, LLVMFuzzerMutate);
    const size_t bytes = put(changed, data, max_size);
    if (bytes > 0) return bytes;
  } catch (const std::exception&) {
    // no protobuf message
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other,
                                            size_t other_size, uint8_t* out, size_t max_size,
                                            unsigned int seed) {
  try {
    return put(folio::testing::cross_models(view(data, size), view(other, other_size), seed), out,
               max_size);
  } catch (const std::exception&) {
    return 0;
  }
}
