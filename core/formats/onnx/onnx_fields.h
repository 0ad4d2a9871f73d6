// Field numbers of the messages in onnx.proto (IR versions 1 to 13) that Folio reads, one struct
// per message. Fields missing here (doc strings, annotations, training, device configurations) are
// skipped like unknown ones.
#pragma once

#include <cstdint>

namespace folio {

struct ModelFields {  // ModelProto
  enum : uint32_t {
    kIrVersion = 1,
    kProducerName = 2,
    kProducerVersion = 3,
    kDomain = 4,
    kModelVersion = 5,
    kDocString = 6,
    kGraph = 7,
    kOpsetImport = 8,
    kMetadataProps = 14,
    kFunctions = 25,
  };
};

struct OpsetFields {  // OperatorSetIdProto
  enum : uint32_t { kDomain = 1, kVersion = 2 };
};

struct EntryFields {  // StringStringEntryProto
  enum : uint32_t { kKey = 1, kValue = 2 };
};

struct GraphFields {  // GraphProto
  enum : uint32_t {
    kNode = 1,
    kName = 2,
    kInitializer = 5,
    kDocString = 10,
    kInput = 11,
    kOutput = 12,
    kValueInfo = 13,
    kSparseInitializer = 15,
  };
};

struct NodeFields {  // NodeProto
  enum : uint32_t {
    kInput = 1,
    kOutput = 2,
    kName = 3,
    kOpType = 4,
    kAttribute = 5,
    kDomain = 7,
    kOverload = 8,
  };
};

struct AttributeFields {  // AttributeProto
  enum : uint32_t {
    kName = 1,
    kF = 2,
    kI = 3,
    kS = 4,
    kT = 5,
    kG = 6,
    kFloats = 7,
    kInts = 8,
    kStrings = 9,
    kTensors = 10,
    kGraphs = 11,
    kTp = 14,
    kTypeProtos = 15,
    kType = 20,
    kRefAttrName = 21,
    kSparseTensor = 22,
    kSparseTensors = 23,
  };
};

struct TensorFields {  // TensorProto
  enum : uint32_t {
    kDims = 1,
    kDataType = 2,
    kSegment = 3,
    kFloatData = 4,
    kInt32Data = 5,
    kStringData = 6,
    kInt64Data = 7,
    kName = 8,
    kRawData = 9,
    kDoubleData = 10,
    kUint64Data = 11,
    kExternalData = 13,
    kDataLocation = 14,
  };
  enum : int64_t { kLocationDefault = 0, kLocationExternal = 1 };  // TensorProto.DataLocation
};

struct SparseTensorFields {  // SparseTensorProto
  enum : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
};

struct ValueInfoFields {  // ValueInfoProto
  enum : uint32_t { kName = 1, kType = 2 };
};

struct TypeFields {  // TypeProto
  enum : uint32_t {
    kTensor = 1,
    kSequence = 4,
    kMap = 5,
    kOpaque = 7,
    kSparseTensor = 8,
    kOptional = 9,
  };
};

struct TensorTypeFields {  // TypeProto.Tensor, TypeProto.SparseTensor
  enum : uint32_t { kElemType = 1, kShape = 2 };
};

struct ElementTypeFields {  // TypeProto.Sequence, TypeProto.Optional
  enum : uint32_t { kElemType = 1 };
};

struct MapTypeFields {  // TypeProto.Map
  enum : uint32_t { kKeyType = 1, kValueType = 2 };
};

struct ShapeFields {  // TensorShapeProto
  enum : uint32_t { kDim = 1 };
};

struct DimFields {  // TensorShapeProto.Dimension
  enum : uint32_t { kDimValue = 1, kDimParam = 2 };
};

struct FunctionFields {  // FunctionProto
  enum : uint32_t {
    kName = 1,
    kInput = 4,
    kOutput = 5,
    kAttribute = 6,
    kNode = 7,
    kOpsetImport = 9,
    kDomain = 10,
    kAttributeProto = 11,
    kOverload = 13,
  };
};

}  // namespace folio
