// Field numbers of onnx.proto, and the one message that many others hold.
//
// Flow:    used by onnx_tensor.cc and onnx_model.cc, and by tests that write bad fields.
// Owns:    nothing.
// Threads: any.
// Errors:  none.
#pragma once

#include <cstdint>
#include <string_view>

#include "tools/make_model/proto_writer.h"

namespace model_writer {

// Names are MessageField; the numbers are those of onnx.proto (IR version 3 to 13).
namespace field {

inline constexpr uint32_t kModelIrVersion = 1;
inline constexpr uint32_t kModelProducerName = 2;
inline constexpr uint32_t kModelProducerVersion = 3;
inline constexpr uint32_t kModelDomain = 4;
inline constexpr uint32_t kModelVersion = 5;
inline constexpr uint32_t kModelDoc = 6;
inline constexpr uint32_t kModelGraph = 7;
inline constexpr uint32_t kModelOpsetImport = 8;
inline constexpr uint32_t kModelMetadata = 14;
inline constexpr uint32_t kModelFunctions = 25;

inline constexpr uint32_t kEntryKey = 1;
inline constexpr uint32_t kEntryValue = 2;

inline constexpr uint32_t kOpsetDomain = 1;
inline constexpr uint32_t kOpsetVersion = 2;

inline constexpr uint32_t kGraphNode = 1;
inline constexpr uint32_t kGraphName = 2;
inline constexpr uint32_t kGraphInitializer = 5;
inline constexpr uint32_t kGraphDoc = 10;
inline constexpr uint32_t kGraphInput = 11;
inline constexpr uint32_t kGraphOutput = 12;
inline constexpr uint32_t kGraphValueInfo = 13;
inline constexpr uint32_t kGraphSparseInitializer = 15;

inline constexpr uint32_t kValueName = 1;
inline constexpr uint32_t kValueType = 2;
inline constexpr uint32_t kValueDoc = 3;

inline constexpr uint32_t kNodeInput = 1;
inline constexpr uint32_t kNodeOutput = 2;
inline constexpr uint32_t kNodeName = 3;
inline constexpr uint32_t kNodeOpType = 4;
inline constexpr uint32_t kNodeAttribute = 5;
inline constexpr uint32_t kNodeDoc = 6;
inline constexpr uint32_t kNodeDomain = 7;
inline constexpr uint32_t kNodeOverload = 8;

inline constexpr uint32_t kAttributeName = 1;
inline constexpr uint32_t kAttributeFloat = 2;
inline constexpr uint32_t kAttributeInt = 3;
inline constexpr uint32_t kAttributeString = 4;
inline constexpr uint32_t kAttributeTensor = 5;
inline constexpr uint32_t kAttributeGraph = 6;
inline constexpr uint32_t kAttributeFloats = 7;
inline constexpr uint32_t kAttributeInts = 8;
inline constexpr uint32_t kAttributeStrings = 9;
inline constexpr uint32_t kAttributeTensors = 10;
inline constexpr uint32_t kAttributeGraphs = 11;
inline constexpr uint32_t kAttributeDoc = 13;
inline constexpr uint32_t kAttributeTypeProto = 14;
inline constexpr uint32_t kAttributeTypeProtos = 15;
inline constexpr uint32_t kAttributeType = 20;
inline constexpr uint32_t kAttributeRefName = 21;
inline constexpr uint32_t kAttributeSparse = 22;
inline constexpr uint32_t kAttributeSparses = 23;

inline constexpr uint32_t kTensorDims = 1;
inline constexpr uint32_t kTensorType = 2;
inline constexpr uint32_t kTensorFloatData = 4;
inline constexpr uint32_t kTensorInt32Data = 5;
inline constexpr uint32_t kTensorStringData = 6;
inline constexpr uint32_t kTensorInt64Data = 7;
inline constexpr uint32_t kTensorName = 8;
inline constexpr uint32_t kTensorRawData = 9;
inline constexpr uint32_t kTensorDoubleData = 10;
inline constexpr uint32_t kTensorUint64Data = 11;
inline constexpr uint32_t kTensorDoc = 12;
inline constexpr uint32_t kTensorExternalData = 13;
inline constexpr uint32_t kTensorDataLocation = 14;

inline constexpr uint32_t kSparseValues = 1;
inline constexpr uint32_t kSparseIndices = 2;
inline constexpr uint32_t kSparseDims = 3;

inline constexpr uint32_t kTypeTensor = 1;
inline constexpr uint32_t kTypeSequence = 4;
inline constexpr uint32_t kTypeMap = 5;
inline constexpr uint32_t kTypeSparseTensor = 8;
inline constexpr uint32_t kTypeOptional = 9;
inline constexpr uint32_t kTypeTensorElement = 1;
inline constexpr uint32_t kTypeTensorShape = 2;
inline constexpr uint32_t kTypeNestedElement = 1;
inline constexpr uint32_t kTypeMapKey = 1;
inline constexpr uint32_t kTypeMapValue = 2;

inline constexpr uint32_t kShapeDim = 1;
inline constexpr uint32_t kDimValue = 1;
inline constexpr uint32_t kDimParam = 2;

inline constexpr uint32_t kFunctionName = 1;
inline constexpr uint32_t kFunctionInput = 4;
inline constexpr uint32_t kFunctionOutput = 5;
inline constexpr uint32_t kFunctionAttribute = 6;
inline constexpr uint32_t kFunctionNode = 7;
inline constexpr uint32_t kFunctionDoc = 8;
inline constexpr uint32_t kFunctionOpsetImport = 9;
inline constexpr uint32_t kFunctionDomain = 10;
inline constexpr uint32_t kFunctionAttributeProto = 11;
inline constexpr uint32_t kFunctionValueInfo = 12;
inline constexpr uint32_t kFunctionOverload = 13;

}  // namespace field

// TensorProto.DataLocation.
inline constexpr int64_t kDataLocationExternal = 1;

// A StringStringEntryProto.
inline ProtoMessage entry_message(std::string_view key, std::string_view value) {
  ProtoMessage entry;
  entry.put_bytes(field::kEntryKey, key);
  entry.put_bytes(field::kEntryValue, value);
  return entry;
}

}  // namespace model_writer
