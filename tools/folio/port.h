// What a model says of an input or output, whoever read the model.
//
// Flow:    folio::ValueInfo or ONNX Runtime's type info -> Port -> random_inputs, test_layout.
// Errors:  none of its own.
#pragma once

#include <string>
#include <vector>

#include "folio/folio.hpp"

namespace folio_cli {

struct Port {
  std::string name;
  folio::ValueKind kind = FOLIO_KIND_UNKNOWN;
  folio::ElementType type = FOLIO_UNDEFINED;     // of a tensor
  folio::ElementType element = FOLIO_UNDEFINED;  // of the tensors of a sequence
  folio::Dims dims;                              // -1: not fixed
  std::vector<std::string> symbolic_dims;        // as many; "": fixed, or without a name
};

inline Port port_of(const folio::ValueInfo& info) {
  const folio::ElementType element = info.element.empty() ? FOLIO_UNDEFINED : info.element[0].type;
  return {info.name, info.kind, info.type, element, info.dims, info.symbolic_dims};
}

inline std::vector<Port> ports_of(const std::vector<folio::ValueInfo>& infos) {
  std::vector<Port> ports;
  for (const folio::ValueInfo& info : infos) ports.push_back(port_of(info));
  return ports;
}

}  // namespace folio_cli
