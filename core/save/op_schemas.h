// op_schemas: which versions of an operator's definition there are, and the type parameters of its
// inputs and outputs, as ONNX and ONNX Runtime define them.
//
// Flow:    ort_writer needs both: a node of an .ort file names the version that defined its
//          operator, and the file says which inputs and outputs carry each type parameter.
// Owns:    a table of literals.
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace folio {

struct OpSchema {
  int since = 0;
  // Per formal input and output: its type parameter, or its own name where its type is fixed.
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  bool variadic_input = false;  // the last one
  bool variadic_output = false;
};

// The definition in force at `version` of the domain; false when the table does not have it.
bool find_op_schema(std::string_view domain, std::string_view type, int version, OpSchema* out);

}  // namespace folio
