// load_onnx as a whole: what a ModelDef holds, and damage of every kind.
#include "core/formats/onnx/onnx_loader.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/formats/onnx_case.h"

namespace folio {
namespace {

using M = ModelFields;
using G = GraphFields;

constexpr auto kBad = Code::kInvalidGraph;
constexpr auto kWire = Code::kInvalidProtobuf;
const char* const kNotAModel = "not an ONNX or ORT-format model";

PbWriter node_with_subgraph() {
  PbWriter body;
  body.bytes(G::kName, "then").message(G::kNode, node_of("Neg", {"x"}, {"y"}));
  body.message(G::kOutput, value_of("y", DType::kFloat, {2}));
  PbWriter branch = attribute_of("then_branch", static_cast<int64_t>(AttributeDef::Type::kGraph));
  branch.message(AttributeFields::kG, body);
  return node_of("If", {"c"}, {"z"}).message(NodeFields::kAttribute, branch);
}

PbWriter function() {
  PbWriter ref = attribute_of("axis", static_cast<int64_t>(AttributeDef::Type::kInt));
  ref.bytes(AttributeFields::kRefAttrName, "dim");
  PbWriter fallback = attribute_of("mode", static_cast<int64_t>(AttributeDef::Type::kString));
  fallback.bytes(AttributeFields::kS, "fast");
  PbWriter function;
  function.bytes(FunctionFields::kName, "Twice").bytes(FunctionFields::kDomain, "my.ops");
  function.bytes(FunctionFields::kOverload, "v2").bytes(FunctionFields::kInput, "a");
  function.bytes(FunctionFields::kOutput, "b").bytes(FunctionFields::kAttribute, "dim");
  function.message(FunctionFields::kAttributeProto, fallback);
  function.message(FunctionFields::kNode,
                   node_of("Softmax", {"a"}, {"b"}).message(NodeFields::kAttribute, ref));
  return function.message(FunctionFields::kOpsetImport, opset("ai.onnx", 17));
}

// One of everything. `payload` bytes of weights.
std::string rich_model(size_t payload) {
  PbWriter graph;
  graph.bytes(G::kName, "main").bytes(G::kDocString, "about it");
  graph.message(G::kNode, node_with_subgraph().bytes(NodeFields::kDomain, "ai.onnx"));
  PbWriter custom = node_of("Twice", {"z", ""}, {"out", ""});
  custom.bytes(NodeFields::kDomain, "my.ops").bytes(NodeFields::kOverload, "v2");
  custom.message(NodeFields::kAttribute, attribute_of("dim", 2).varint(AttributeFields::kI, -1));
  graph.message(G::kNode, custom);
  graph.message(G::kInitializer, raw_tensor("w", DType::kUint8, {static_cast<int64_t>(payload)},
                                            std::string(payload, 'w')));
  graph.message(G::kInitializer,
                tensor_header("i", DType::kInt64, {3})
                    .packed_varints<int64_t>(TensorFields::kInt64Data, {1, -1, 300}));
  graph.message(G::kInput, value_of("c", DType::kBool, {}));
  graph.message(G::kInput, value_of("x", DType::kFloat, {2}));
  graph.message(G::kOutput, value_of("out", DType::kFloat, {2}));
  graph.message(G::kValueInfo, value_of("z", DType::kFloat, {2}));
  PbWriter model;
  model.varint(M::kIrVersion, 10).bytes(M::kProducerName, "maker");
  model.bytes(M::kProducerVersion, "1.2").bytes(M::kDomain, "my.domain");
  model.varint(M::kModelVersion, 42).bytes(M::kDocString, "doc");
  model.message(M::kOpsetImport, opset("ai.onnx", 21)).message(M::kOpsetImport, opset("my.ops", 1));
  model.message(M::kMetadataProps, entry("key", "value"));
  model.message(M::kFunctions, function());
  return model.message(M::kGraph, graph).str();
}

TEST(OnnxLoader, ReadsTheModelAndItsGraph) {
  Result<ModelDef> loaded = load_bytes(rich_model(10));
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  const ModelDef& model = loaded.value();
  EXPECT_EQ(model.format, "onnx");
  EXPECT_EQ(model.ir_version, 10);
  EXPECT_EQ(model.producer_name, "maker");
  EXPECT_EQ(model.producer_version, "1.2");
  EXPECT_EQ(model.domain, "my.domain");
  EXPECT_EQ(model.model_version, 42);
  EXPECT_EQ(model.doc_string, "doc");
  EXPECT_EQ(model.graph_doc_string, "about it");
  ASSERT_EQ(model.opsets.size(), 2U);
  EXPECT_EQ(model.opsets[0].domain, "");  // "ai.onnx" is normalised
  EXPECT_EQ(model.opsets[0].version, 21);
  EXPECT_EQ(model.opsets[1].domain, "my.ops");
  ASSERT_EQ(model.metadata.size(), 1U);
  EXPECT_EQ(model.metadata[0], std::make_pair(std::string("key"), std::string("value")));
  EXPECT_EQ(model.graph.name, "main");
  EXPECT_EQ(model.graph.inputs.size(), 2U);
  EXPECT_EQ(model.graph.inputs[1].name, "x");
  EXPECT_EQ(model.graph.outputs.at(0).name, "out");
  EXPECT_EQ(model.graph.values.at(0).name, "z");
  EXPECT_EQ(model.graph.initializers.at(0).name, "w");
  EXPECT_EQ(model.graph.initializers.at(1).tensor.data<int64_t>()[2], 300);
}

TEST(OnnxLoader, ReadsNodesAndFunctions) {
  Result<ModelDef> loaded = load_bytes(rich_model(10));
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  const std::vector<NodeDef>& nodes = loaded.value().graph.nodes;
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].op_type, "If");
  EXPECT_EQ(nodes[0].domain, "");
  EXPECT_EQ(nodes[0].attributes.at(0).graphs.at(0)->name, "then");
  EXPECT_EQ(nodes[1].name, "Twice_0");
  EXPECT_EQ(nodes[1].domain, "my.ops");
  EXPECT_EQ(nodes[1].overload, "v2");
  EXPECT_EQ(nodes[1].inputs, std::vector<std::string>({"z", ""}));
  EXPECT_EQ(nodes[1].outputs, std::vector<std::string>({"out", ""}));
  ASSERT_EQ(loaded.value().functions.size(), 1U);
  const FunctionDef& function = loaded.value().functions[0];
  EXPECT_EQ(function.name, "Twice");
  EXPECT_EQ(function.domain, "my.ops");
  EXPECT_EQ(function.overload, "v2");
  EXPECT_EQ(function.inputs, std::vector<std::string>({"a"}));
  EXPECT_EQ(function.outputs, std::vector<std::string>({"b"}));
  EXPECT_EQ(function.attributes, std::vector<std::string>({"dim"}));
  EXPECT_EQ(function.attribute_defaults.at(0).strings.at(0), "fast");
  EXPECT_EQ(function.nodes.at(0).attributes.at(0).ref_attr_name, "dim");
  EXPECT_EQ(function.opsets.at(0).domain, "");
}

TEST(OnnxLoader, EveryIrVersionLoadsAndOthersAreRefused) {
  for (int64_t version = 1; version <= kMaxIrVersion; ++version) {
    Result<ModelDef> model = load_bytes(model_of(PbWriter(), version));
    ASSERT_TRUE(model.is_ok()) << version << ": " << model.status().message();
    EXPECT_EQ(model.value().ir_version, version);
  }
  expect_error(model_of(PbWriter(), 14), Code::kNotImplemented, {"ir_version is 14", "1 to 13"});
  expect_error(model_of(PbWriter(), 0), kBad, {"ir_version is 0"});
  expect_error(model_of(PbWriter(), -1), kBad, {"ir_version is -1"});
}

TEST(OnnxLoader, ModelsBeforeIrVersion3MayLeaveOutTheOpset) {
  const auto without = [](int64_t version) {
    return PbWriter().varint(M::kIrVersion, version).message(M::kGraph, PbWriter()).str();
  };
  Result<ModelDef> old = load_bytes(without(2));
  ASSERT_TRUE(old.is_ok()) << old.status().message();
  ASSERT_EQ(old.value().opsets.size(), 1U);
  EXPECT_EQ(old.value().opsets[0].version, 1);
  expect_error(without(3), kBad, {"imports no operator set"});
  PbWriter zero;
  zero.varint(M::kIrVersion, 8).message(M::kOpsetImport, opset("my.ops", 0));
  expect_error(zero.message(M::kGraph, PbWriter()).str(), kBad, {"'my.ops'", "version 0"});
}

TEST(OnnxLoader, UnknownFieldsAreSkipped) {
  PbWriter unknown;
  unknown.varint(100, 1).bytes(101, "abc").float32(102, 1).float64(103, 1);
  const PbWriter graph =
      PbWriter()
          .raw(unknown.str())
          .message(G::kNode, PbWriter().raw(unknown.str()).raw(node_of("Op", {}, {}).str()));
  Result<ModelDef> model = load_bytes(unknown.str() + model_of(graph) + unknown.str());
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  EXPECT_EQ(model.value().graph.nodes.at(0).op_type, "Op");
}

TEST(OnnxLoader, AGraphInPiecesIsMerged) {
  const std::string first =
      model_of(PbWriter().bytes(G::kName, "old").message(G::kNode, node_of("A", {}, {"x"})));
  PbWriter second;
  second.message(M::kGraph,
                 PbWriter().bytes(G::kName, "new").message(G::kNode, node_of("B", {"x"}, {"y"})));
  Result<ModelDef> model = load_bytes(first + second.str());
  ASSERT_TRUE(model.is_ok()) << model.status().message();
  EXPECT_EQ(model.value().graph.name, "new");
  ASSERT_EQ(model.value().graph.nodes.size(), 2U);
  EXPECT_EQ(model.value().graph.nodes[1].op_type, "B");
}

TEST(OnnxLoader, OtherFilesAreNoModels) {
  const std::string png("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16);
  const std::string zip("PK\3\4\x14\0\0\0\x08\0", 10);
  const std::string hdf5("\x89HDF\r\n\x1A\n\0\0", 10);
  for (const std::string& bytes :
       {std::string(), std::string("hello world\n"), std::string("Bonjour tout le monde"),
        std::string("{\"model\": 1}"), std::string("version https://git-lfs.github.com/spec/v1"),
        std::string("<html></html>"), std::string(64, '\0'), std::string(64, '\xFF'), png, zip,
        hdf5}) {
    expect_error(bytes, Code::kNoModel, {kNotAModel});
  }
  // Well-formed protobuf without a graph is none either.
  expect_error(PbWriter().varint(M::kIrVersion, 8).str(), kWire, {kNotAModel, "no graph"});
  expect_error(PbWriter().bytes(M::kProducerName, "x").str(), Code::kNoModel,
               {kNotAModel, "no graph"});
}

TEST(OnnxLoader, ContentDecidesTheFormat) {
  const std::string ort("\x10\0\0\0ORTM", 8);
  const auto sniff = [](const std::string& text) {
    return sniff_format({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  EXPECT_EQ(sniff(ort), ModelFormat::kOrt);
  EXPECT_EQ(sniff(ort.substr(0, 7)), ModelFormat::kOnnx);
  EXPECT_EQ(sniff("ORTM...."), ModelFormat::kOnnx);
  EXPECT_EQ(sniff(""), ModelFormat::kOnnx);
  LoadOptions options;
  options.format = ModelFormat::kOnnx;
  const Result<ModelDef> forced = load_bytes(ort, {}, options);
  ASSERT_FALSE(forced.is_ok());
  EXPECT_NE(forced.status().message().find(kNotAModel), std::string_view::npos);
}

TEST(OnnxLoader, WrongWireTypesOfKnownFieldsAreRefused) {
  const auto model_with = [](const PbWriter& field) {
    return PbWriter().varint(M::kIrVersion, 8).raw(field.str()).str();
  };
  expect_error(model_with(PbWriter().varint(M::kGraph, 1)), kWire,
               {"byte 2: ModelProto field 7", "varint", "expected length-delimited"});
  expect_error(model_with(PbWriter().bytes(M::kModelVersion, "x")), kWire,
               {"ModelProto field 5", "length-delimited", "expected varint"});
  expect_error(model_with(PbWriter().float64(M::kProducerName, 1)), kWire, {"64-bit"});
  expect_error(model_with(PbWriter().key(M::kGraph, 3)), kWire, {"byte 2: ModelProto"});  // group
  expect_error(model_with(PbWriter().key(M::kGraph, 4)), kWire, {"byte 2: ModelProto"});
  expect_error(model_with(PbWriter().key(M::kGraph, 7)), kWire, {"byte 2: ModelProto"});
  expect_error(model_with(PbWriter().varint(0, 1)), kWire, {"byte 2: ModelProto"});
  expect_tensor_error(PbWriter().float64(TensorFields::kFloatData, 1), kWire,
                      {"TensorProto field 4", "64-bit"});
  expect_tensor_error(PbWriter().float32(TensorFields::kInt64Data, 1), kWire,
                      {"TensorProto field 7", "32-bit"});
  expect_tensor_error(PbWriter().bytes(TensorFields::kFloatData, "12345"), kWire,
                      {"TensorProto field 4", "5 bytes", "multiple of 4"});
  expect_tensor_error(PbWriter().bytes(TensorFields::kInt64Data, "\x80"), kWire,
                      {"TensorProto field 7", "ends inside"});
  expect_graph_error(graph_of_attribute(PbWriter().varint(AttributeFields::kF, 1)), kWire,
                     {"AttributeProto field 2", "expected 32-bit"});
}

TEST(OnnxLoader, LyingLengthsAreRefused) {
  const auto model_with_length = [](uint64_t length) {
    PbWriter model;
    model.varint(M::kIrVersion, 8).key(M::kGraph, 2).raw_varint(length);
    return model.raw("abc").str();
  };
  expect_error(model_with_length(4), kWire, {"byte 2", "says 4 bytes", "only 3 are left"});
  // 2^32 + 3 must not be taken for 3.
  expect_error(model_with_length((uint64_t{1} << 32) + 3), kWire, {"says 4294967299 bytes"});
  expect_error(model_with_length(UINT64_MAX), kWire, {"says 18446744073709551615 bytes"});
  PbWriter long_varint;
  long_varint.varint(M::kIrVersion, 8).key(M::kGraph, 2).raw(std::string(12, '\xFF'));
  expect_error(long_varint.str(), kWire, {"byte 2", "damaged length"});
  PbWriter packed = tensor_header("w", DType::kInt64, {1});
  packed.bytes(TensorFields::kInt64Data, std::string(11, '\xFF') + '\1');
  expect_tensor_error(packed, kWire, {"tensor 'w'", "TensorProto field 7", "damaged packed value"});
}

TEST(OnnxLoader, NamesMustBeUtf8AndOfBoundedLength) {
  expect_graph_error(PbWriter().message(G::kNode, node_of("Op", {"a\xFFz"}, {})), kBad,
                     {"NodeProto.input is not valid UTF-8"});
  expect_graph_error(PbWriter().message(G::kInput, value_of("\xC0\x80", DType::kFloat, {})), kBad,
                     {"ValueInfoProto.name is not valid UTF-8"});
  expect_tensor_error(raw_tensor("\xED\xA0\x80", DType::kUint8, {0}, ""), kBad,
                      {"TensorProto.name is not valid UTF-8"});
  const std::string longest(kMaxNameBytes, 'n');
  EXPECT_EQ(load_tensor(raw_tensor(longest, DType::kUint8, {0}, "")).name, longest);
  expect_tensor_error(raw_tensor(longest + "n", DType::kUint8, {0}, ""), kBad,
                      {"TensorProto.name has 1048577 bytes", "at most 1048576"});
  EXPECT_EQ(load_graph(PbWriter().message(G::kNode, node_of("Op", {"äöü€😀"}, {})))
                .graph.nodes.at(0)
                .inputs.at(0),
            "äöü€😀");
}

TEST(OnnxLoader, LongNamesAreShortenedInMessages) {
  const std::string name(kMaxNameBytes, 'n');
  const Result<ModelDef> model =
      load_bytes(model_of(graph_of_tensor(raw_tensor(name, DType::kFloat, {1}, ""))));
  ASSERT_FALSE(model.is_ok());
  EXPECT_LT(model.status().message().size(), 1000U);
}

TEST(OnnxLoader, ShownTextsAreRepaired) {
  PbWriter model;
  model.varint(M::kIrVersion, 8).bytes(M::kDocString, "caf\xE9");
  model.message(M::kMetadataProps, entry("k", "\xFF"));
  model.message(M::kOpsetImport, opset("", 1)).message(M::kGraph, PbWriter());
  const Result<ModelDef> loaded = load_bytes(model.str());
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  EXPECT_EQ(loaded.value().doc_string, "caf\xEF\xBF\xBD");
  EXPECT_EQ(loaded.value().metadata.at(0).second, "\xEF\xBF\xBD");
}

TEST(OnnxLoader, NodesAreCountedOverAllGraphs) {
  const std::string bytes = rich_model(10);  // two nodes, one in a subgraph, one in a function
  LoadOptions options;
  options.max_nodes = 4;
  EXPECT_TRUE(load_bytes(bytes, {}, options).is_ok());
  options.max_nodes = 3;
  const Result<ModelDef> model = load_bytes(bytes, {}, options);
  ASSERT_FALSE(model.is_ok());
  EXPECT_EQ(model.status().code(), kBad);
  EXPECT_NE(model.status().message().find("more than 3 nodes"), std::string_view::npos);
}

TEST(OnnxLoader, NodesNeedAnOperator) {
  expect_graph_error(PbWriter().message(G::kNode, PbWriter().bytes(NodeFields::kName, "n")), kBad,
                     {"node 'n'", "no op_type"});
}

TEST(OnnxLoader, ProgressIsToldAndCancels) {
  PbWriter graph;
  for (int i = 0; i < 1000; ++i) graph.message(G::kNode, node_of("Op", {}, {}));
  const std::string bytes = model_of(graph);
  uint64_t last = 0;
  int calls = 0;
  LoadOptions options;
  options.on_progress = [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    EXPECT_LE(done, total);
    EXPECT_EQ(total, bytes.size());
    last = done;
    ++calls;
    return true;
  };
  EXPECT_TRUE(load_bytes(bytes, {}, options).is_ok());
  EXPECT_GT(calls, 10);
  options.on_progress = [](uint64_t done, uint64_t total) { return done < total / 2; };
  const Result<ModelDef> cancelled = load_bytes(bytes, {}, options);
  ASSERT_FALSE(cancelled.is_ok());
  EXPECT_EQ(cancelled.status().code(), Code::kModelLoadCancelled);
}

// A cut file is an error, or a smaller model where the cut falls between two top-level fields.
void check_cuts(const std::string& bytes, size_t step) {
  for (size_t cut = 0; cut < bytes.size(); cut += step) {
    const Result<ModelDef> model = load_bytes(std::string_view(bytes).substr(0, cut));
    if (model.is_ok()) continue;
    EXPECT_EQ(model.status().message().rfind("m.onnx: ", 0), 0U) << cut;
    const Code code = model.status().code();
    const bool shows_nothing = cut < 2 && code == Code::kNoModel;  // no whole field
    EXPECT_TRUE(shows_nothing || code == kWire || code == kBad)
        << cut << ": " << model.status().message();
  }
}

TEST(OnnxLoader, AModelCutAnywhereIsAnErrorUnlessItStillHasItsGraph) {
  const std::string bytes = rich_model(10);  // the graph comes last
  check_cuts(bytes, 1);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(load_bytes(std::string_view(bytes).substr(0, cut)).is_ok()) << cut;
  }
  expect_error(std::string_view(bytes).substr(0, bytes.size() - 1), kWire,
               {"ModelProto field 7", "truncated or damaged"});
}

TEST(OnnxLoader, ALargerModelCutAnywhereIsAnError) { check_cuts(rich_model(100'000), 1000); }

TEST(OnnxLoader, RandomDamageNeverCrashes) {
  const std::string original = rich_model(10);
  std::mt19937_64 random(20240601);
  int loaded = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = original;
    const uint64_t changes = 1 + random() % 4;
    for (uint64_t i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (random() % 8 == 0) bytes.erase(random() % bytes.size(), random() % 16);
    if (random() % 8 == 0) bytes.insert(random() % bytes.size(), random() % 16, '\x80');
    const Result<ModelDef> model = load_bytes(bytes);
    loaded += model.is_ok();
    EXPECT_NE(model.is_ok(), !model.status().message().empty());
  }
  // Damage in names and values leaves a model; if none or all loaded, this test would say nothing.
  EXPECT_GT(loaded, 100);
  EXPECT_LT(loaded, 19'000);
}

}  // namespace
}  // namespace folio
