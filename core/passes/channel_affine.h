// y = x * scale + shift, one of each per channel: what BatchNormalization of constants is.
//
// Owns:    plain numbers, in double.
#pragma once

#include <optional>
#include <vector>

#include "core/passes/pattern.h"

namespace folio {

struct ChannelAffine {
  std::vector<double> scale;
  std::vector<double> shift;

  // As floats.
  bool is_finite() const;
  bool scales() const;
};

// A float constant of `count` elements, or of one for all of them.
std::optional<std::vector<double>> channel_numbers(const Pattern& pattern, ValueId value,
                                                   int64_t count);

// Of a BatchNormalization over `channels` that learns nothing and whose parameters are constants.
std::optional<ChannelAffine> affine_of_normalization(const Pattern& pattern, const Node& node,
                                                     int64_t channels);

// A constant of these numbers; kNone where there is no memory for them.
ValueId add_floats(Pattern* pattern, std::string name, const Shape& shape,
                   const std::vector<double>& values);

}  // namespace folio
