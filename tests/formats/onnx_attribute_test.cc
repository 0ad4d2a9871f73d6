// Attributes, subgraphs and types of .onnx files.
#include <gtest/gtest.h>

#include <chrono>

#include "tests/formats/onnx_case.h"

namespace folio {
namespace {

using A = AttributeFields;
using Type = AttributeDef::Type;

constexpr auto kBad = Code::kInvalidGraph;

PbWriter attribute(Type type) { return attribute_of("a", static_cast<int64_t>(type)); }

AttributeDef load_attribute(const PbWriter& attribute) {
  ModelDef model = load_graph(graph_of_attribute(attribute));
  if (model.graph.nodes.empty() || model.graph.nodes[0].attributes.empty()) return {};
  return std::move(model.graph.nodes[0].attributes[0]);
}

void expect_attribute_error(const PbWriter& attribute, const std::vector<std::string>& parts) {
  expect_graph_error(graph_of_attribute(attribute), kBad, parts);
}

PbWriter tensor_type(DType dtype) {
  PbWriter tensor;
  tensor.varint(TensorTypeFields::kElemType, static_cast<int64_t>(dtype));
  return PbWriter().message(TypeFields::kTensor, tensor);
}

TEST(OnnxAttribute, ScalarsAndLists) {
  const AttributeDef f = load_attribute(attribute(Type::kFloat).float32(A::kF, 1.5F));
  EXPECT_EQ(f.name, "a");
  EXPECT_EQ(f.type, Type::kFloat);
  EXPECT_EQ(f.floats, std::vector<float>({1.5F}));
  const AttributeDef i = load_attribute(attribute(Type::kInt).varint(A::kI, -7));
  EXPECT_EQ(i.ints, std::vector<int64_t>({-7}));
  const AttributeDef s = load_attribute(attribute(Type::kString).bytes(A::kS, "\xFF any"));
  EXPECT_EQ(s.strings, std::vector<std::string>({"\xFF any"}));
  const AttributeDef strings =
      load_attribute(attribute(Type::kStrings).bytes(A::kStrings, "one").bytes(A::kStrings, ""));
  EXPECT_EQ(strings.strings, std::vector<std::string>({"one", ""}));
}

TEST(OnnxAttribute, NumberListsPackedAndNot) {
  const std::vector<int64_t> ints = {1, -2, INT64_MIN, INT64_MAX};
  const std::vector<float> floats = {1.0F, -2.5F};
  EXPECT_EQ(load_attribute(attribute(Type::kInts).packed_varints(A::kInts, ints)).ints, ints);
  EXPECT_EQ(load_attribute(attribute(Type::kFloats).packed_fixed(A::kFloats, floats)).floats,
            floats);
  PbWriter unpacked_ints = attribute(Type::kInts);
  for (const int64_t value : ints) unpacked_ints.varint(A::kInts, value);
  EXPECT_EQ(load_attribute(unpacked_ints).ints, ints);
  PbWriter unpacked_floats = attribute(Type::kFloats);
  for (const float value : floats) unpacked_floats.float32(A::kFloats, value);
  EXPECT_EQ(load_attribute(unpacked_floats).floats, floats);
}

TEST(OnnxAttribute, TensorsAndSparseTensors) {
  const PbWriter tensor = raw_tensor("t", DType::kUint8, {2}, "ab");
  const AttributeDef one = load_attribute(attribute(Type::kTensor).message(A::kT, tensor));
  ASSERT_EQ(one.tensors.size(), 1U);
  EXPECT_EQ(tensor_bytes(one.tensors[0]), "ab");
  PbWriter two = attribute(Type::kTensors).message(A::kTensors, tensor);
  EXPECT_EQ(load_attribute(two.message(A::kTensors, tensor)).tensors.size(), 2U);

  PbWriter sparse;
  sparse.message(SparseTensorFields::kValues, tensor);
  sparse.message(SparseTensorFields::kIndices,
                 tensor_header("", DType::kInt64, {2})
                     .packed_varints<int64_t>(TensorFields::kInt64Data, {0, 2}));
  sparse.varint(SparseTensorFields::kDims, 3);
  const AttributeDef dense =
      load_attribute(attribute(Type::kSparseTensor).message(A::kSparseTensor, sparse));
  ASSERT_EQ(dense.tensors.size(), 1U);
  EXPECT_EQ(tensor_bytes(dense.tensors[0]), std::string("a\0b", 3));
  EXPECT_EQ(load_attribute(attribute(Type::kSparseTensors).message(A::kSparseTensors, sparse))
                .tensors.size(),
            1U);
}

TEST(OnnxAttribute, TypesAndTypeLists) {
  const AttributeDef one =
      load_attribute(attribute(Type::kTypeProto).message(A::kTp, tensor_type(DType::kInt8)));
  ASSERT_EQ(one.types.size(), 1U);
  EXPECT_EQ(one.types[0].dtype, DType::kInt8);
  const AttributeDef many = load_attribute(attribute(Type::kTypeProtos)
                                               .message(A::kTypeProtos, tensor_type(DType::kBool))
                                               .message(A::kTypeProtos, tensor_type(DType::kInt4)));
  ASSERT_EQ(many.types.size(), 2U);
  EXPECT_EQ(many.types[1].dtype, DType::kInt4);
}

TEST(OnnxAttribute, Subgraphs) {
  PbWriter body;
  body.bytes(GraphFields::kName, "body").message(GraphFields::kNode, node_of("Relu", {"x"}, {"y"}));
  body.message(GraphFields::kInitializer, raw_tensor("w", DType::kUint8, {1}, "w"));
  const AttributeDef one = load_attribute(attribute(Type::kGraph).message(A::kG, body));
  ASSERT_EQ(one.graphs.size(), 1U);
  EXPECT_EQ(one.graphs[0]->name, "body");
  EXPECT_EQ(one.graphs[0]->nodes.at(0).op_type, "Relu");
  EXPECT_EQ(one.graphs[0]->initializers.at(0).name, "w");
  PbWriter many = attribute(Type::kGraphs).message(A::kGraphs, body).message(A::kGraphs, body);
  EXPECT_EQ(load_attribute(many).graphs.size(), 2U);
}

TEST(OnnxAttribute, UnwrittenScalarsAreZero) {
  EXPECT_EQ(load_attribute(attribute(Type::kFloat)).floats, std::vector<float>({0.0F}));
  EXPECT_EQ(load_attribute(attribute(Type::kInt)).ints, std::vector<int64_t>({0}));
  EXPECT_EQ(load_attribute(attribute(Type::kString)).strings, std::vector<std::string>({""}));
  EXPECT_TRUE(load_attribute(attribute(Type::kInts)).ints.empty());
}

TEST(OnnxAttribute, UndeclaredTypesAreFoundByTheFilledField) {
  const AttributeDef ints =
      load_attribute(attribute(Type::kUndefined).packed_varints<int64_t>(A::kInts, {3, 4}));
  EXPECT_EQ(ints.type, Type::kInts);
  EXPECT_EQ(ints.ints, std::vector<int64_t>({3, 4}));
  const AttributeDef f = load_attribute(attribute(Type::kUndefined).float32(A::kF, 2.0F));
  EXPECT_EQ(f.type, Type::kFloat);
  EXPECT_EQ(load_attribute(attribute(Type::kUndefined)).type, Type::kUndefined);
  expect_attribute_error(attribute(Type::kUndefined).float32(A::kF, 2.0F).varint(A::kI, 1),
                         {"attribute 'a'", "several types"});
}

TEST(OnnxAttribute, TheDeclaredTypePicksAmongValuesEvenWhenItComesFirst) {
  const AttributeDef picked =
      load_attribute(attribute(Type::kInts).varint(A::kI, 1).varint(A::kInts, 2).float32(A::kF, 3));
  EXPECT_EQ(picked.ints, std::vector<int64_t>({2}));
  EXPECT_TRUE(picked.floats.empty());
}

TEST(OnnxAttribute, ReferencesToTheCallersAttributesHaveNoValue) {
  const AttributeDef ref =
      load_attribute(attribute(Type::kInt).bytes(A::kRefAttrName, "alpha").varint(A::kI, 1));
  EXPECT_EQ(ref.ref_attr_name, "alpha");
  EXPECT_EQ(ref.type, Type::kInt);
  EXPECT_TRUE(ref.ints.empty());
  EXPECT_EQ(load_attribute(attribute(Type::kTensor).bytes(A::kRefAttrName, "value")).type,
            Type::kTensor);
}

TEST(OnnxAttribute, WrongAttributesAreRefused) {
  expect_attribute_error(attribute_of("a", 15), {"node 'Op_0' (Op)", "attribute 'a'", "type 15"});
  expect_attribute_error(attribute_of("a", -1), {"type -1"});
  expect_attribute_error(attribute(Type::kTensor), {"one tensor, but has 0"});
  expect_attribute_error(attribute(Type::kGraph), {"one graph, but has 0"});
  expect_attribute_error(attribute(Type::kTypeProto), {"one type, but has 0"});
  PbWriter twice = attribute(Type::kGraph).message(A::kG, PbWriter()).message(A::kG, PbWriter());
  expect_attribute_error(twice, {"one graph, but has 2"});
}

// `depth` graphs inside one another, the innermost empty.
PbWriter nested_graphs(int depth) {
  PbWriter graph;
  for (int i = 0; i < depth; ++i) {
    graph = graph_of_attribute(attribute(Type::kGraph).message(A::kG, graph));
  }
  return graph;
}

TEST(OnnxAttribute, SubgraphsNestToTheLimitAndNotDeeper) {
  const std::string limit = cat("nest deeper than ", kMaxSubgraphDepth);
  EXPECT_TRUE(load_bytes(model_of(nested_graphs(kMaxSubgraphDepth))).is_ok());
  expect_graph_error(nested_graphs(kMaxSubgraphDepth + 1), kBad, {limit});
  const PbWriter deepest = PbWriter().raw(
      nested_deeply("", {A::kG, NodeFields::kAttribute, GraphFields::kNode}, 10'000));
  const std::string deep = model_of(deepest);
  const auto begin = std::chrono::steady_clock::now();
  expect_error(deep, kBad, {limit});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

// Types.

TypeDef load_type(const PbWriter& type) {
  const PbWriter value =
      PbWriter().bytes(ValueInfoFields::kName, "x").message(ValueInfoFields::kType, type);
  const ModelDef model = load_graph(PbWriter().message(GraphFields::kInput, value));
  return model.graph.inputs.empty() ? TypeDef{} : model.graph.inputs[0].type;
}

PbWriter nested(uint32_t kind, const PbWriter& element) {
  const PbWriter inner = PbWriter().message(ElementTypeFields::kElemType, element);
  return PbWriter().message(kind, inner);
}

TEST(OnnxType, TensorsWithEveryKindOfDim) {
  PbWriter shape;
  shape.message(ShapeFields::kDim, PbWriter().varint(DimFields::kDimValue, 3));
  shape.message(ShapeFields::kDim, PbWriter().bytes(DimFields::kDimParam, "batch"));
  shape.message(ShapeFields::kDim, PbWriter());
  shape.message(ShapeFields::kDim, PbWriter().varint(DimFields::kDimValue, -1));
  shape.message(ShapeFields::kDim, PbWriter().bytes(DimFields::kDimParam, ""));
  shape.message(ShapeFields::kDim, PbWriter().varint(DimFields::kDimValue, 0));
  PbWriter tensor;
  tensor.varint(TensorTypeFields::kElemType, 1).message(TensorTypeFields::kShape, shape);
  const TypeDef type = load_type(PbWriter().message(TypeFields::kTensor, tensor));
  EXPECT_EQ(type.kind, TypeInfo::Kind::kTensor);
  EXPECT_EQ(type.dtype, DType::kFloat);
  ASSERT_TRUE(type.has_shape);
  ASSERT_EQ(type.dims.size(), 6U);
  EXPECT_EQ(type.dims[0].kind, DimDef::Kind::kValue);
  EXPECT_EQ(type.dims[0].value, 3);
  EXPECT_EQ(type.dims[1].kind, DimDef::Kind::kParam);
  EXPECT_EQ(type.dims[1].param, "batch");
  for (const size_t i : {2U, 3U, 4U}) EXPECT_EQ(type.dims[i].kind, DimDef::Kind::kUnknown) << i;
  EXPECT_EQ(type.dims[5].kind, DimDef::Kind::kValue);
  EXPECT_EQ(type.dims[5].value, 0);
}

TEST(OnnxType, AnEmptyShapeIsAScalarAndNoShapeIsUnknownRank) {
  EXPECT_FALSE(load_type(tensor_type(DType::kFloat)).has_shape);
  PbWriter scalar;
  scalar.varint(TensorTypeFields::kElemType, 1).message(TensorTypeFields::kShape, PbWriter());
  const TypeDef type = load_type(PbWriter().message(TypeFields::kTensor, scalar));
  EXPECT_TRUE(type.has_shape);
  EXPECT_TRUE(type.dims.empty());
}

TEST(OnnxType, Containers) {
  const TypeDef sequence = load_type(nested(TypeFields::kSequence, tensor_type(DType::kInt64)));
  EXPECT_EQ(sequence.kind, TypeInfo::Kind::kSequence);
  EXPECT_EQ(sequence.element->dtype, DType::kInt64);
  const TypeDef optional =
      load_type(nested(TypeFields::kOptional, nested(TypeFields::kSequence, PbWriter())));
  EXPECT_EQ(optional.kind, TypeInfo::Kind::kOptional);
  EXPECT_EQ(optional.element->kind, TypeInfo::Kind::kSequence);
  PbWriter map;
  map.varint(MapTypeFields::kKeyType, static_cast<int64_t>(DType::kString));
  map.message(MapTypeFields::kValueType, tensor_type(DType::kDouble));
  const TypeDef mapped = load_type(PbWriter().message(TypeFields::kMap, map));
  EXPECT_EQ(mapped.kind, TypeInfo::Kind::kMap);
  EXPECT_EQ(mapped.dtype, DType::kString);
  EXPECT_EQ(mapped.element->dtype, DType::kDouble);
  PbWriter sparse;
  sparse.varint(TensorTypeFields::kElemType, 1);
  EXPECT_EQ(load_type(PbWriter().message(TypeFields::kSparseTensor, sparse)).kind,
            TypeInfo::Kind::kSparseTensor);
  EXPECT_EQ(load_type(PbWriter().message(TypeFields::kOpaque, PbWriter())).kind,
            TypeInfo::Kind::kUnknown);
}

TEST(OnnxType, TheLastMemberOfTheOneofCounts) {
  PbWriter type = nested(TypeFields::kSequence, tensor_type(DType::kInt64));
  const TypeDef last = load_type(type.raw(tensor_type(DType::kBool).str()));
  EXPECT_EQ(last.kind, TypeInfo::Kind::kTensor);
  EXPECT_EQ(last.dtype, DType::kBool);
  EXPECT_FALSE(last.element);
}

void expect_type_error(const PbWriter& type, Code code, const std::vector<std::string>& parts) {
  const PbWriter value =
      PbWriter().bytes(ValueInfoFields::kName, "x").message(ValueInfoFields::kType, type);
  expect_graph_error(PbWriter().message(GraphFields::kValueInfo, value), code, parts);
}

TEST(OnnxType, NestsToTheLimitAndNotDeeper) {
  const auto sequences = [](int levels) {
    PbWriter type = tensor_type(DType::kFloat);
    for (int i = 1; i < levels; ++i) type = nested(TypeFields::kSequence, type);
    return type;
  };
  const std::string limit = cat("a type nests deeper than ", kMaxTypeDepth);
  EXPECT_EQ(load_type(sequences(kMaxTypeDepth)).kind, TypeInfo::Kind::kSequence);
  expect_type_error(sequences(kMaxTypeDepth + 1), kBad, {"value 'x'", limit});
  const auto deep = [](uint32_t field, uint32_t kind) {
    return PbWriter().raw(nested_deeply("", {field, kind}, 10'000));
  };
  const PbWriter sequence = deep(ElementTypeFields::kElemType, TypeFields::kSequence);
  expect_type_error(sequence, kBad, {limit});
  expect_type_error(deep(ElementTypeFields::kElemType, TypeFields::kOptional), kBad, {limit});
  expect_type_error(deep(MapTypeFields::kValueType, TypeFields::kMap), kBad, {limit});
  expect_attribute_error(attribute(Type::kTypeProto).message(A::kTp, sequence),
                         {"attribute 'a'", limit});
}

TEST(OnnxType, UnknownElementTypesAndHighRanksAreRefused) {
  PbWriter tensor;
  tensor.varint(TensorTypeFields::kElemType, 99);
  expect_type_error(PbWriter().message(TypeFields::kTensor, tensor), kBad, {"element type 99"});
  PbWriter shape;
  for (int i = 0; i <= kMaxRank; ++i) shape.message(ShapeFields::kDim, PbWriter());
  PbWriter wide;
  wide.message(TensorTypeFields::kShape, shape);
  expect_type_error(PbWriter().message(TypeFields::kTensor, wide), Code::kNotImplemented,
                    {"more than 16 dims"});
  EXPECT_EQ(load_type(tensor_type(DType::kUndefined)).dtype, DType::kUndefined);
}

}  // namespace
}  // namespace folio
