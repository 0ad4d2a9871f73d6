// What outputs of Folio and of ONNX Runtime are apart, in words.
#pragma once

#include "tests/properties/ort_library.h"

namespace folio::properties {

// "": the same types, shapes and elements; floats within rounding of sums in another order.
std::string first_difference(const OrtOutcome& folio, const OrtOutcome& ort);

// The first elements, with spaces between.
std::string elements_text(const Tensor& tensor, int64_t most);

}  // namespace folio::properties
