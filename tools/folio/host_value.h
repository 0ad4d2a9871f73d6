// A value in the command's own memory: what files hold, and what runs took and gave.
//
// Flow:    tensor_pb, npy, random_inputs -> HostValue -> folio::Value -> run -> HostValue ->
//          compare, npy.
// Errors:  to_value throws folio::Error, checked_count CliError.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "folio/folio.hpp"

namespace folio_cli {

struct HostValue {
  folio::ValueKind kind = FOLIO_KIND_TENSOR;
  folio::ElementType type = FOLIO_UNDEFINED;  // of a tensor; of an empty sequence, if it is known
  folio::Dims dims;                           // of a tensor
  std::vector<std::byte> bytes;               // its elements
  std::vector<std::string> strings;           // its elements, if they are strings
  std::vector<HostValue> parts;  // of a sequence; a map: keys and values; an optional: 0 or 1

  size_t element_count() const;
};

// Product of dims. Throws if one is negative or the bytes do not fit an address space.
size_t checked_count(const folio::Dims& dims, folio::ElementType type);

folio::Value to_value(const HostValue& value);
HostValue from_value(const folio::Value& value);

// "float[1,3,224,224]", "sequence of 3", "map of 2", "optional, empty".
std::string describe(const HostValue& value);
std::string dims_text(const folio::Dims& dims);

}  // namespace folio_cli
