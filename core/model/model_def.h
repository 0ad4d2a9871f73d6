// ModelDef: what a format parser hands over: names instead of ids, nothing verified across nodes.
//
// Flow:    formats/ fill a ModelDef (no format type in it) -> build_model (graph_builder.h) checks
//          names, cycles and nesting, inlines functions, and makes the Model.
// Owns:    structure (names, attributes) as copies; tensor payloads are Tensors whose buffers keep
//          the mapping alive.
// Threads: one thread while loading.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/byte_source.h"
#include "core/base/tensor.h"
#include "core/model/type_info.h"

namespace folio {

struct GraphDef;

// Type as a file spells it: dims may be named.
struct DimDef {
  enum class Kind : uint8_t { kUnknown, kValue, kParam };
  Kind kind = Kind::kUnknown;
  int64_t value = 0;
  std::string param;
};

struct TypeDef {
  TypeInfo::Kind kind = TypeInfo::Kind::kUnknown;
  DType dtype = DType::kUndefined;  // elements, or a map's keys
  bool has_shape = false;
  std::vector<DimDef> dims;
  std::shared_ptr<TypeDef> element;  // sequence, optional: element; map: value
};

struct ValueDef {
  std::string name;
  TypeDef type;
};

struct AttributeDef {
  // ONNX AttributeProto.AttributeType numbers.
  enum class Type : uint8_t {
    kUndefined = 0,
    kFloat = 1,
    kInt = 2,
    kString = 3,
    kTensor = 4,
    kGraph = 5,
    kFloats = 6,
    kInts = 7,
    kStrings = 8,
    kTensors = 9,
    kGraphs = 10,
    kSparseTensor = 11,
    kSparseTensors = 12,
    kTypeProto = 13,
    kTypeProtos = 14,
  };

  AttributeDef();
  AttributeDef(const AttributeDef& other);
  AttributeDef(AttributeDef&& other) noexcept;
  AttributeDef& operator=(const AttributeDef& other);
  AttributeDef& operator=(AttributeDef&& other) noexcept;
  ~AttributeDef();

  std::string name;
  Type type = Type::kUndefined;
  std::string ref_attr_name;         // inside functions: take the caller's attribute
  std::vector<float> floats;         // kFloat: one entry; kFloats
  std::vector<int64_t> ints;         // kInt: one entry; kInts
  std::vector<std::string> strings;  // kString: one entry (any bytes); kStrings
  std::vector<Tensor> tensors;       // kTensor, kSparseTensor (made dense): one entry; ...
  std::vector<std::shared_ptr<GraphDef>> graphs;  // kGraph: one entry; kGraphs
  std::vector<TypeDef> types;                     // kTypeProto: one entry; kTypeProtos
};

struct NodeDef {
  NodeDef();
  NodeDef(const NodeDef& other);
  NodeDef(NodeDef&& other) noexcept;
  NodeDef& operator=(const NodeDef& other);
  NodeDef& operator=(NodeDef&& other) noexcept;
  ~NodeDef();

  std::string name;
  std::string domain;  // "" is ai.onnx ("ai.onnx" is normalised to "" by the parser)
  std::string op_type;
  std::string overload;
  int since_version = 0;  // .ort only: the version that defined the schema; 0 = by opset import
  std::vector<std::string> inputs;   // "" = absent optional
  std::vector<std::string> outputs;  // "" = not wanted
  std::vector<AttributeDef> attributes;
};

struct InitializerDef {
  std::string name;
  Tensor tensor;  // payload in place (view on the source) or decoded on the heap
  // Where the payload stands, when it is a view: for content ids and reports. Null otherwise.
  Ref<ByteSource> source;
  uint64_t offset = 0;
};

struct GraphDef {
  std::string name;
  std::vector<NodeDef> nodes;
  std::vector<ValueDef> inputs;
  std::vector<ValueDef> outputs;
  std::vector<ValueDef> values;  // value_info / node_args: types of any inner values
  std::vector<InitializerDef> initializers;
};

struct OpsetImport {
  std::string domain;
  int64_t version = 0;
};

struct FunctionDef {
  std::string domain;
  std::string name;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> attributes;           // names without defaults
  std::vector<AttributeDef> attribute_defaults;  // attribute_proto
  std::vector<OpsetImport> opsets;
  std::vector<NodeDef> nodes;
};

// What a file says of a model beside its graph.
struct ModelHeader {
  std::string format;  // "onnx" or "ort"
  int64_t ir_version = 0;
  std::vector<OpsetImport> opsets;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  int64_t model_version = 0;
  std::string doc_string;
  std::string graph_doc_string;
  std::vector<std::pair<std::string, std::string>> metadata;
};

struct ModelDef : ModelHeader {
  GraphDef graph;
  std::vector<FunctionDef> functions;
};

// Named limits on hostile structure; each is checked where the thing is counted.
inline constexpr int kMaxSubgraphDepth = 64;
inline constexpr size_t kMaxNodes = 10'000'000;
inline constexpr size_t kMaxNameBytes = 1 << 20;
inline constexpr int kMaxTypeDepth = 16;
// Tensors below this are copied out of the mapping, aligned (design section 3).
inline constexpr size_t kSmallTensorBytes = 4096;

}  // namespace folio
