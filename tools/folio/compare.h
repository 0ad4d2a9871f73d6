// Compares what a run gave with what was expected.
//
// Rules:   |got - expected| <= atol + rtol * |expected| per element; NaN equals NaN; infinities and
//          strings exactly; same type, shape, kind. Containers part by part.
// Threads: any.
// Errors:  none.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "tools/folio/element_type.h"
#include "tools/folio/host_value.h"

namespace folio_cli {

// Of |got - expected|: atol + rtol * |expected|. What is not given is ONNX's for its backend tests,
// but nothing of integers: an index beside the right one is a wrong index, however large.
struct Tolerance {
  std::optional<double> rtol;
  std::optional<double> atol;

  double of(FolioElementType type, double magnitude) const {
    const bool is_exact = is_integer(type);
    return atol.value_or(is_exact ? 0 : 1e-7) + rtol.value_or(is_exact ? 0 : 1e-3) * magnitude;
  }
};

// "" if they agree, else one line that begins with `name`.
std::string difference(const std::string& name, const HostValue& got, const HostValue& expected,
                       const Tolerance& tolerance);

// How far two values are apart, tolerated or not.
struct Distance {
  size_t elements = 0;
  size_t beyond = 0;        // elements that the tolerance does not cover
  double magnitude = 0;     // largest |expected| that is finite
  double absolute = 0;      // largest |got - expected|; infinite: only one of the two is finite
  std::string absolute_at;  // "[0,3]"; of a part of a container "(1)[0,3]"; "": nowhere
  double relative = 0;      // largest |got - expected| / |expected| where expected is not 0
  std::string relative_at;
  // Of both as vectors of real numbers; NaN: one of them is 0, not finite or no number.
  double cosine = std::numeric_limits<double>::quiet_NaN();
  // Rows (along the last dim, of two numbers or more), and those whose largest number is in the
  // same place.
  size_t rows = 0;
  size_t same_top = 0;
  std::string difference;  // as difference() has it; "" if they agree
};
Distance distance(const std::string& name, const HostValue& got, const HostValue& expected,
                  const Tolerance& tolerance);

}  // namespace folio_cli
