// What a node has to compute and to move, by its operator and the shapes that a profile names: the
// one place where a count of operations comes from.
//
// Flow:    profile.cc reads a node of a trace -> NodeShapes -> work_of -> rates.
// Errors:  none: what is not known, or does not fit, is 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/folio/element_type.h"

namespace folio_cli {

struct SeenShape {
  FolioElementType type = FOLIO_UNDEFINED;  // undefined: there was no tensor
  std::vector<int64_t> dims;

  double count() const;
  double bytes() const;
};

struct NodeShapes {
  std::string op_type;
  std::vector<SeenShape> inputs;
  std::vector<SeenShape> outputs;
  nlohmann::json attributes;  // an object
};

struct Work {
  // Multiplications and additions of products (2 for each pair) and nothing else: what an
  // element-wise function, a softmax or a norm computes is not counted. Attention counts all pairs
  // of rows, masked or not.
  double operations = 0;
  bool of_bytes = false;     // the products are of bytes
  bool is_winograd = false;  // `operations` are those of the direct convolution
  double bytes = 0;          // of inputs and outputs, each once; 0 for views
};

Work work_of(const NodeShapes& node);

}  // namespace folio_cli
