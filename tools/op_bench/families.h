// The cases of op_bench, by family of kernels; among them all rows of the table that Folio's design
// began with (one-node models of ONNX Runtime).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/op_bench/one_node.h"

namespace op_bench {

// Models with large weights are made when they are run, not all at once.
struct NamedCase {
  std::string name;
  std::function<OpCase()> make;
};

std::vector<NamedCase> all_cases();

}  // namespace op_bench
