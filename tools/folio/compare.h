// Compares what a run gave with what was expected.
//
// Rules:   |got - expected| <= atol + rtol * |expected| per element; NaN equals NaN; infinities and
//          strings exactly; same type, shape, kind. Containers part by part.
// Threads: any.
// Errors:  none.
#pragma once

#include <string>

#include "tools/folio/host_value.h"

namespace folio_cli {

struct Tolerance {
  double rtol = 1e-3;  // ONNX's defaults for its backend tests
  double atol = 1e-7;
};

// "" if they agree, else one line that begins with `name`.
std::string difference(const std::string& name, const HostValue& got, const HostValue& expected,
                       const Tolerance& tolerance);

}  // namespace folio_cli
