// OneNode: a Case as a model of one node, to be loaded and run as any other.
//
// Errors:  statuses of loading and running; nothing here fails a test.
#pragma once

#include <string>
#include <vector>

#include "core/session/session.h"
#include "tests/properties/draw.h"

namespace folio::properties {

struct OneNode {
  std::string bytes;
  std::vector<NamedValue> inputs;
  std::vector<std::string> outputs;
};

// Inputs that the case has as constants are initializers.
OneNode model_of(const Case& drawn);

// Loads it and runs it once, in one thread.
Status run_one(const OneNode& model, std::vector<Value>* outputs);

}  // namespace folio::properties
