#include "core/formats/ort/ort_loader.h"

#include "tests/formats/ort_case.h"

namespace folio {
namespace {

using namespace ort_case;

TEST(OrtLoader, RefusesWhatHasNoIdentifier) {
  for (const char* text : {"", "ORTM", "\x08\0\0\0ORT", "\x08\0\0\0TFL3........"}) {
    expect_refused(text, Code::kInvalidProtobuf, {"not an ORT-format model", "\"ORTM\""});
  }
}

TEST(OrtLoader, LoadsEveryVersionThatItsHeaderNames) {
  OrtWriteOptions options;
  for (const char* version : {"1", "2", "3", "4", "5", "6", "1.4.0", "1.10.0"}) {
    options.ort_version = version;
    const ModelDef model = load_or_fail(write_ort(ort_add_model(2), options));
    EXPECT_EQ(model.graph.nodes.size(), 1U) << version;
  }
}

TEST(OrtLoader, RefusesNewerVersionsByNumber) {
  OrtWriteOptions options;
  for (const char* version : {"7", "7.1", "10", "99999999999999999999"}) {
    options.ort_version = version;
    expect_refused(write_ort(ort_add_model(2), options), Code::kNotImplemented,
                   {std::string("version ") + version + " of the ORT format", "1 to 6"});
  }
}

TEST(OrtLoader, RefusesVersionsThatAreNone) {
  OrtWriteOptions options;
  for (const char* version : {"", "0", "-1", "x", "6x", "6 ", ".6", "\xFF"}) {
    options.ort_version = version;
    expect_refused(write_ort(ort_add_model(2), options), Code::kInvalidGraph, {"is not a version"});
  }
}

TEST(OrtLoader, RefusesAMissingVersionModelOrGraph) {
  namespace schema = ort_schema;
  const auto finish = [](bool has_version, bool has_model) {
    flatbuffers::FlatBufferBuilder builder;
    std::vector<flatbuffers::Offset<schema::OperatorSetId>> ids = {
        schema::CreateOperatorSetId(builder, builder.CreateString(""), 14)};
    const auto opsets = builder.CreateVector(ids);
    const auto model = has_model ? schema::CreateModel(builder, 8, opsets) : 0;
    const auto version = has_version ? builder.CreateString("6") : 0;
    builder.Finish(schema::CreateInferenceSession(builder, version, model), "ORTM");
    return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                       builder.GetSize());
  };
  expect_refused(finish(false, true), Code::kInvalidGraph, {"no ort_version"});
  expect_refused(finish(true, false), Code::kInvalidGraph, {"no model"});
  expect_refused(finish(true, true), Code::kInvalidGraph, {"the model has no graph"});
}

TEST(OrtLoader, ReadsBytesAtOddAddresses) {
  const std::string bytes = write_ort(ort_add_model(2000));
  class OffsetSource final : public ByteSource {
   public:
    OffsetSource(const std::string& text, size_t shift)
        : store_(std::string(shift, '-') + text), shift_(shift) {}
    Bytes bytes() const override {
      const auto* data = reinterpret_cast<const uint8_t*>(store_.data());
      return Bytes(data + shift_, store_.size() - shift_);
    }
    const std::string& name() const override { return name_; }
    Result<Ref<ByteSource>> open_sibling(const std::string&) const override {
      return error(Code::kNoSuchFile, "none");
    }

   private:
    std::string store_;
    size_t shift_;
    std::string name_ = "<bytes>";
  };
  for (size_t shift = 0; shift < 8; ++shift) {
    Result<ModelDef> model = load_ort(make_ref<OffsetSource>(bytes, shift));
    ASSERT_TRUE(model.is_ok()) << shift << ": " << model.status().message();
    const InitializerDef& w = model.value().graph.initializers[0];
    ASSERT_TRUE(w.source);
    EXPECT_EQ(w.source->bytes().data() + w.offset, w.tensor.raw());
    float last = 0;
    std::memcpy(&last, w.tensor.raw() + 1999 * sizeof(float), sizeof(float));
    EXPECT_EQ(last, 1999.0F);
  }
}

TEST(OrtLoader, KeepsTheModelsProperties) {
  ModelDef model = ort_add_model(2);
  model.ir_version = 9;
  model.opsets = {{"ai.onnx", 17}, {"com.microsoft", 1}};
  model.producer_name = "maker";
  model.producer_version = "2.1";
  model.domain = "org.example";
  model.model_version = 5;
  model.doc_string = "model text";
  model.graph_doc_string = "graph text";
  model.metadata = {{"a", "1"}, {"b", std::string("\0\xFF", 2)}};
  const ModelDef out = load_or_fail(write_ort(model));
  EXPECT_EQ(out.format, "ort");
  EXPECT_EQ(out.ir_version, 9);
  ASSERT_EQ(out.opsets.size(), 2U);
  EXPECT_EQ(out.opsets[0].domain, "");
  EXPECT_EQ(out.opsets[0].version, 17);
  EXPECT_EQ(out.opsets[1].domain, "com.microsoft");
  EXPECT_EQ(out.producer_name, "maker");
  EXPECT_EQ(out.producer_version, "2.1");
  EXPECT_EQ(out.domain, "org.example");
  EXPECT_EQ(out.model_version, 5);
  EXPECT_EQ(out.doc_string, "model text");
  EXPECT_EQ(out.graph_doc_string, "graph text");
  EXPECT_EQ(out.metadata, model.metadata);
}

TEST(OrtLoader, KeepsNodesInTheirOrderWithAbsentInputs) {
  ModelDef model = ort_add_model(2);
  NodeDef clip;
  clip.name = "clip";
  clip.domain = "ai.onnx";
  clip.op_type = "Clip";
  clip.since_version = 13;
  clip.inputs = {"y", "", "w"};
  clip.outputs = {"z", ""};
  model.graph.nodes.insert(model.graph.nodes.begin(), clip);  // before the node it reads from
  const ModelDef out = load_or_fail(write_ort(model));
  ASSERT_EQ(out.graph.nodes.size(), 2U);
  const NodeDef& node = out.graph.nodes[0];
  EXPECT_EQ(node.name, "clip");
  EXPECT_EQ(node.domain, "");
  EXPECT_EQ(node.op_type, "Clip");
  EXPECT_EQ(node.since_version, 13);
  EXPECT_EQ(node.inputs, clip.inputs);
  EXPECT_EQ(node.outputs, clip.outputs);
  EXPECT_EQ(out.graph.nodes[1].op_type, "Add");
}

TEST(OrtLoader, KeepsAttributesOfEveryType) {
  const ModelDef in = rich_model();
  const ModelDef out = load_or_fail(rich_bytes());
  const auto& expected = in.graph.nodes[0].attributes;
  const auto& found = out.graph.nodes[0].attributes;
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(expected[i].name);
    EXPECT_EQ(found[i].name, expected[i].name);
    EXPECT_EQ(found[i].type, expected[i].type);
    EXPECT_EQ(found[i].floats, expected[i].floats);
    EXPECT_EQ(found[i].ints, expected[i].ints);
    EXPECT_EQ(found[i].strings, expected[i].strings);
    EXPECT_EQ(found[i].tensors.size(), expected[i].tensors.size());
    ASSERT_EQ(found[i].graphs.size(), expected[i].graphs.size());
    for (size_t g = 0; g < found[i].graphs.size(); ++g) {
      EXPECT_EQ(found[i].graphs[g]->outputs[0].name, expected[i].graphs[g]->outputs[0].name);
      EXPECT_EQ(found[i].graphs[g]->nodes[0].inputs[0], "x");
      EXPECT_EQ(found[i].graphs[g]->initializers[0].name,
                expected[i].graphs[g]->initializers[0].name);
    }
  }
  EXPECT_EQ(found[3].tensors[0].span<int64_t>()[1], 4);
  EXPECT_EQ(found[8].tensors[0].span<std::string>()[1], "v");
  EXPECT_EQ(found[8].tensors[1].rank(), 0);
}

TEST(OrtLoader, RefusesAttributesThatTheFormatCannotStore) {
  for (const int type : {0, 11, 12, 77}) {
    ModelDef model = ort_add_model(2);
    model.graph.nodes[0].attributes.push_back(attribute("a", static_cast<Type>(type)));
    expect_refused(write_ort(model), Code::kInvalidGraph,
                   {"node 'add' ('Add')", "attribute 'a'", "type " + std::to_string(type)});
  }
}

TEST(OrtLoader, RefusesAttributesWithoutTheirTensorOrGraph) {
  for (const Type type : {Type::kTensor, Type::kGraph}) {
    ModelDef model = ort_add_model(2);
    model.graph.nodes[0].attributes.push_back(attribute("a", type));
    expect_refused(write_ort(model), Code::kInvalidGraph, {"attribute 'a'", "is missing"});
  }
}

TEST(OrtLoader, TakesTypesFromNodeArgs) {
  ModelDef model = ort_add_model(2);
  ValueDef& x = model.graph.inputs[0];
  x.type.dims = {{DimDef::Kind::kParam, 0, "batch"},
                 {DimDef::Kind::kUnknown, 0, ""},
                 {DimDef::Kind::kValue, 3, ""},
                 {DimDef::Kind::kValue, -1, ""}};
  ValueDef no_rank = ort_float_value("no_rank", {});
  no_rank.type.has_shape = false;
  ValueDef map;
  map.name = "maps";
  map.type.kind = TypeInfo::Kind::kSequence;
  map.type.element = std::make_shared<TypeDef>();
  map.type.element->kind = TypeInfo::Kind::kMap;
  map.type.element->dtype = DType::kInt64;
  map.type.element->element = std::make_shared<TypeDef>(ort_float_value("", {}).type);
  model.graph.values = {no_rank, map, ort_float_value("scalar", {})};
  const ModelDef out = load_or_fail(write_ort(model));

  const TypeDef& in = out.graph.inputs[0].type;
  ASSERT_EQ(in.dims.size(), 4U);
  EXPECT_EQ(in.dtype, DType::kFloat);
  EXPECT_EQ(in.dims[0].kind, DimDef::Kind::kParam);
  EXPECT_EQ(in.dims[0].param, "batch");
  EXPECT_EQ(in.dims[1].kind, DimDef::Kind::kUnknown);
  EXPECT_EQ(in.dims[2].value, 3);
  EXPECT_EQ(in.dims[3].kind, DimDef::Kind::kUnknown);  // -1 is how some exporters say "any"
  EXPECT_EQ(out.graph.outputs[0].type.dims.size(), 1U);

  ASSERT_EQ(out.graph.values.size(), 5U);
  EXPECT_EQ(out.graph.values[0].name, "no_rank");
  EXPECT_FALSE(out.graph.values[0].type.has_shape);
  const TypeDef& maps = out.graph.values[1].type;
  ASSERT_EQ(maps.kind, TypeInfo::Kind::kSequence);
  ASSERT_EQ(maps.element->kind, TypeInfo::Kind::kMap);
  EXPECT_EQ(maps.element->dtype, DType::kInt64);
  EXPECT_EQ(maps.element->element->dtype, DType::kFloat);
  EXPECT_TRUE(out.graph.values[2].type.has_shape);
  EXPECT_TRUE(out.graph.values[2].type.dims.empty());
}

TEST(OrtLoader, RefusesAnInputWithoutType) {
  ModelDef model = ort_add_model(2);
  std::string bytes = write_ort(model);
  // Another name of the same length in node_args leaves the input without an entry.
  const auto* names = graph_in(&bytes)->node_args();
  const flatbuffers::String* shared = names->Get(0)->name();
  ASSERT_EQ(shared->str(), "x");
  // The name is shared with the input, so the entry is turned to the output's name instead.
  const auto* entry = reinterpret_cast<const uint8_t*>(names->Data());
  uint32_t second = flatbuffers::ReadScalar<uint32_t>(entry + 4) + 4;
  std::memcpy(const_cast<uint8_t*>(entry), &second, sizeof(second));
  expect_refused(bytes, Code::kInvalidGraph, {"graph input 'x'", "node_args"});
}

TEST(OrtLoader, RefusesUnknownElementTypesAndTooManyDims) {
  ModelDef model = ort_add_model(2);
  model.graph.inputs[0].type.dtype = static_cast<DType>(99);
  expect_refused(write_ort(model), Code::kInvalidGraph, {"value 'x'", "element type 99"});
  model = ort_add_model(2);
  model.graph.inputs[0].type.dims.resize(kMaxRank + 1);
  expect_refused(write_ort(model), Code::kNotImplemented, {"value 'x'", "17 dims"});
}

TEST(OrtLoader, RefusesTypesThatNestTooDeeply) {
  const auto nested = [](int levels) {
    ModelDef model = ort_add_model(2);
    TypeDef type = ort_float_value("", {}).type;
    for (int i = 1; i < levels; ++i) {
      TypeDef outer;
      outer.kind = TypeInfo::Kind::kSequence;
      outer.element = std::make_shared<TypeDef>(std::move(type));
      type = std::move(outer);
    }
    model.graph.inputs[0].type = std::move(type);
    return write_ort(model);
  };
  EXPECT_TRUE(load(nested(kMaxTypeDepth)).is_ok());
  expect_refused(nested(kMaxTypeDepth + 1), Code::kInvalidGraph, {"nests deeper than 16"});
  EXPECT_FALSE(load(nested(1000)).is_ok());
}

// A node with a subgraph with a node with a subgraph ..., made without recursion.
std::string nested_graphs(int levels) {
  namespace schema = ort_schema;
  flatbuffers::FlatBufferBuilder builder;
  auto graph = schema::CreateGraph(builder);
  const auto name = builder.CreateString("body");
  for (int i = 0; i < levels; ++i) {
    schema::AttributeBuilder body(builder);
    body.add_name(name);
    body.add_type(schema::AttributeType::GRAPH);
    body.add_g(graph);
    const auto attributes = builder.CreateVector(std::vector{body.Finish()});
    schema::NodeBuilder node(builder);
    node.add_op_type(name);
    node.add_attributes(attributes);
    const auto nodes = builder.CreateVector(std::vector{node.Finish()});
    schema::GraphBuilder outer(builder);
    outer.add_nodes(nodes);
    graph = outer.Finish();
  }
  const auto domain = builder.CreateString("");
  const auto opsets =
      builder.CreateVector(std::vector{schema::CreateOperatorSetId(builder, domain, 14)});
  const auto version = builder.CreateString("6");
  schema::ModelBuilder model(builder);
  model.add_opset_import(opsets);
  model.add_graph(graph);
  builder.Finish(schema::CreateInferenceSession(builder, version, model.Finish()), "ORTM");
  return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
}

TEST(OrtLoader, LimitsTheNestingOfSubgraphs) {
  EXPECT_TRUE(load(nested_graphs(kMaxSubgraphDepth)).is_ok());
  expect_refused(nested_graphs(kMaxSubgraphDepth + 1), Code::kInvalidGraph,
                 {"subgraphs nest deeper than 64"});
  EXPECT_FALSE(load(nested_graphs(5000)).is_ok());
}

TEST(OrtLoader, CountsNodesOfTheWholeModel) {
  LoadOptions limits;
  limits.max_nodes = 4;  // one, and one in each of three branches
  EXPECT_TRUE(load(rich_bytes(), limits).is_ok());
  limits.max_nodes = 3;
  expect_refused(rich_bytes(), Code::kInvalidGraph, {"more than 3 nodes"}, limits);
}

TEST(OrtLoader, RefusesNamesThatAreTooLongOrNotUtf8) {
  ModelDef model = ort_add_model(2);
  model.graph.nodes[0].inputs[0] = std::string(kMaxNameBytes + 1, 'n');
  expect_refused(write_ort(model), Code::kInvalidGraph, {"input name", "1048577", "1048576"});
  model.graph.nodes[0].inputs[0] = std::string(kMaxNameBytes, 'n');
  EXPECT_TRUE(load(write_ort(model)).is_ok());
  model.graph.nodes[0].inputs[0] = "\xC3(";
  expect_refused(write_ort(model), Code::kInvalidGraph, {"input name", "UTF-8"});
  model = ort_add_model(2);
  model.graph.nodes[0].op_type.clear();
  expect_refused(write_ort(model), Code::kInvalidGraph, {"op_type"});
  model = ort_add_model(2);
  model.graph.nodes[0].since_version = -1;
  expect_refused(write_ort(model), Code::kInvalidGraph, {"since_version is -1"});
  model = ort_add_model(2);
  model.opsets[0].version = 0;
  expect_refused(write_ort(model), Code::kInvalidGraph, {"opset_import", "version 0"});
  model.opsets.clear();
  expect_refused(write_ort(model), Code::kInvalidGraph, {"imports no operator set"});
}

TEST(OrtLoader, RefusesAFileThatUnfoldsToFarMoreThanItself) {
  // One name of 1 MiB, used 1000 times: 4 KiB of offsets that would become 1 GiB.
  ModelDef model = ort_add_model(2);
  model.graph.nodes[0].inputs.assign(1000, std::string(kMaxNameBytes, 'n'));
  expect_refused(write_ort(model), Code::kInvalidGraph, {"node 'add'", "the whole file has"});
}

}  // namespace
}  // namespace folio
