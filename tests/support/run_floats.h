// A run with made-up inputs, for tests that compare the bits of several sessions.
#pragma once

#include <functional>
#include <vector>

#include "core/session/session.h"

namespace folio {

// From -1/3 to 1/3, of more bits than bfloat16 holds.
std::vector<float> floats_of_many_bits(int64_t count, int step);

// The floats of each output; fill(count) gives those of each input, whose shape is static. Nothing,
// and a failure, where the run fails.
std::vector<std::vector<float>> run_floats(Session& session,
                                           const std::function<std::vector<float>(int64_t)>& fill);

}  // namespace folio
