// OrtLibrary: ONNX Runtime, opened at run time, as the oracle of the property test.
//
// Owns:    an environment and session options of one thread; the library stays loaded.
// Errors:  as texts: what ONNX Runtime said.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"
#include "tools/folio/ort_api.h"

namespace folio::properties {

struct OrtOutcome {
  std::string error;  // "": the outputs are there
  std::vector<Value> outputs;
};

class OrtLibrary {
 public:
  // Fails the test and gives null when the file is not ONNX Runtime.
  static std::unique_ptr<OrtLibrary> open(const std::string& path);
  ~OrtLibrary();

  std::string version() const { return version_; }
  // Models loaded from now on are not optimized.
  void disable_optimizations();
  // Loads the model and runs it once. Output i is given the memory of input in_place[i], if there
  // is such an entry and it is not negative: some operators insist.
  OrtOutcome run(const std::string& model, const std::vector<NamedValue>& inputs,
                 const std::vector<std::string>& outputs,
                 const std::vector<int>& in_place = {}) const;
  // Whether its products of unsigned and signed bytes saturate: added in 16 bits, two at a time,
  // where the CPU cannot add four.
  bool saturates_bytes() const;

 private:
  struct Run;

  OrtLibrary(const OrtApi* api, std::string version) : api_(api), version_(std::move(version)) {}

  const OrtApi* api_;
  std::string version_;
  OrtHandle* env_ = nullptr;
  OrtHandle* options_ = nullptr;
  OrtHandle* memory_ = nullptr;
  OrtHandle* allocator_ = nullptr;  // ONNX Runtime's own
};

}  // namespace folio::properties
