// A model's protobuf bytes as a tree of fields that can be changed one at a time.
//
// Flow:    bytes -> read_fields -> Fields, changed by somebody -> write_fields -> bytes.
// Owns:    a field its bytes and the fields inside of it.
// Errors:  read_fields throws protozero's exceptions for what is no protobuf message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/types.hpp>

namespace folio::testing {

// Messages of onnx.proto. kNone: not a message, or none whose inside is known.
enum class MessageKind : uint8_t {
  kNone,
  kModel,
  kOpset,
  kGraph,
  kFunction,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kTensorType,
  kElementType,
  kMapType,
  kShape,
  kDim,
};

struct Field;
using Fields = std::vector<Field>;

struct Field {
  uint32_t tag = 0;
  protozero::pbf_wire_type wire = protozero::pbf_wire_type::unknown;
  uint64_t number = 0;  // of a varint, fixed32 or fixed64: its bits
  std::string bytes;    // of a length-delimited field that is no known message
  MessageKind inside = MessageKind::kNone;
  Fields fields;  // of a message of kind `inside`
};

Field number_field(uint32_t tag, protozero::pbf_wire_type wire, uint64_t number);

// Packed numbers of attributes and dims become a field each, which means the same. What stands
// deeper than 50 messages stays bytes.
Fields read_fields(std::string_view bytes, MessageKind kind, int depth = 0);

std::string write_fields(const Fields& fields);

}  // namespace folio::testing
