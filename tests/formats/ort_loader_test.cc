#include "core/formats/ort/ort_loader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/formats/ort/ort_schema_generated.h"
#include "tests/fuzz/model_walk.h"
#include "tests/support/test_source.h"
#include "tests/support/ort_writer.h"

namespace folio {
namespace {

using Type = AttributeDef::Type;

Result<ModelDef> load(std::string_view bytes, const LoadOptions& options = {}) {
  return load_ort(make_ref<TestSource>(bytes, "m.ort"), options);
}

ModelDef load_or_fail(std::string_view bytes) {
  Result<ModelDef> model = load(bytes);
  EXPECT_TRUE(model.is_ok()) << model.status().message();
  return model.is_ok() ? std::move(model).take() : ModelDef{};
}

// Expects a load to fail with `code` and a message that holds every one of `parts`.
void expect_refused(std::string_view bytes, Code code, const std::vector<std::string>& parts,
                    const LoadOptions& options = {}) {
  const Result<ModelDef> model = load(bytes, options);
  ASSERT_FALSE(model.is_ok());
  const std::string message(model.status().message());
  EXPECT_EQ(model.status().code(), code) << message;
  EXPECT_EQ(message.find("m.ort: "), 0U) << message;
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
  }
}

Tensor raw_tensor(DType dtype, const Shape& shape, const std::string& bytes) {
  Tensor tensor = allocate_tensor(dtype, shape).take();
  EXPECT_EQ(tensor.bytes(), bytes.size());
  if (!bytes.empty()) std::memcpy(tensor.raw_mut(), bytes.data(), bytes.size());
  return tensor;
}

Tensor int64_tensor(const std::vector<int64_t>& values, const Shape& shape) {
  return make_int64_tensor(values, shape).take();
}

Tensor string_tensor(const std::vector<std::string>& values) {
  Tensor tensor = allocate_tensor(DType::kString, {static_cast<int64_t>(values.size())}).take();
  std::copy(values.begin(), values.end(), tensor.data_mut<std::string>());
  return tensor;
}

InitializerDef initializer(std::string name, Tensor tensor) {
  InitializerDef out;
  out.name = std::move(name);
  out.tensor = std::move(tensor);
  return out;
}

AttributeDef attribute(std::string name, Type type) {
  AttributeDef out;
  out.name = std::move(name);
  out.type = type;
  return out;
}

// A model whose one initializer is `tensor`.
ModelDef constant_model(Tensor tensor) {
  ModelDef model = ort_add_model(2);
  model.graph.initializers[0].tensor = std::move(tensor);
  return model;
}

std::shared_ptr<GraphDef> branch(const std::string& output) {
  auto graph = std::make_shared<GraphDef>();
  graph->outputs = {ort_float_value(output, {2})};
  NodeDef node;
  node.op_type = "Identity";
  node.inputs = {"x"};
  node.outputs = {output};
  graph->nodes.push_back(node);
  graph->initializers.push_back(initializer("c_" + output, ort_float_tensor({1, 2}, {2})));
  return graph;
}

// Has everything that the format can say, in a few KiB.
ModelDef rich_model() {
  ModelDef model = ort_add_model(2);
  NodeDef& node = model.graph.nodes[0];
  node.inputs = {"x", "", "w"};
  AttributeDef a = attribute("f", Type::kFloat);
  a.floats = {1.5F};
  node.attributes.push_back(a);
  a = attribute("i", Type::kInt);
  a.ints = {-7};
  node.attributes.push_back(a);
  a = attribute("s", Type::kString);
  a.strings = {std::string("\xFF\0z", 3)};
  node.attributes.push_back(a);
  a = attribute("t", Type::kTensor);
  a.tensors = {int64_tensor({3, 4}, {2})};
  node.attributes.push_back(a);
  a = attribute("g", Type::kGraph);
  a.graphs = {branch("inner")};
  node.attributes.push_back(a);
  a = attribute("fs", Type::kFloats);
  a.floats = {1, 2, 3};
  node.attributes.push_back(a);
  a = attribute("is", Type::kInts);
  a.ints = {1, -2, int64_t{1} << 40};
  node.attributes.push_back(a);
  a = attribute("ss", Type::kStrings);
  a.strings = {"p", "", "q"};
  node.attributes.push_back(a);
  a = attribute("ts", Type::kTensors);
  a.tensors = {string_tensor({"u", "v"}), ort_float_tensor({9}, {})};
  node.attributes.push_back(a);
  a = attribute("gs", Type::kGraphs);
  a.graphs = {branch("left"), branch("right")};
  node.attributes.push_back(a);
  model.metadata = {{"k", "v"}};
  return model;
}

OrtWriteOptions rich_options() {
  OrtWriteOptions options;
  options.with_runtime_optimizations = true;
  options.sparse_initializers.push_back(
      {"sp", ort_float_tensor({5, 6}, {2}), int64_tensor({1, 3}, {2}), {2, 2}});
  return options;
}

std::string rich_bytes() { return write_ort(rich_model(), rich_options()); }

ort_schema::Graph* graph_in(std::string* bytes) {
  return const_cast<ort_schema::Graph*>(
      ort_schema::GetInferenceSession(bytes->data())->model()->graph());
}

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

TEST(OrtLoader, RefusesAFileCutShort) {
  const std::string bytes = rich_bytes();
  for (size_t size = 0; size + 1 < bytes.size(); ++size) {
    const Result<ModelDef> model = load(bytes.substr(0, size));
    // The last bytes may be padding or the terminator of a string that is not read.
    if (size + 8 < bytes.size()) EXPECT_FALSE(model.is_ok()) << "cut at " << size;
  }
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

TEST(OrtLoader, UsesLargePayloadsInPlaceAndCopiesSmallOnes) {
  constexpr int64_t kSmall = static_cast<int64_t>(kSmallTensorBytes / sizeof(float)) - 1;
  for (const size_t alignment : {4, 64}) {
    for (const int64_t count : {kSmall, kSmall + 1}) {
      OrtWriteOptions options;
      options.payload_alignment = alignment;
      auto source = make_ref<TestSource>(write_ort(ort_add_model(count), options));
      Result<ModelDef> model = load_ort(source);
      ASSERT_TRUE(model.is_ok()) << model.status().message();
      const InitializerDef& w = model.value().graph.initializers[0];
      const bool in_place = count > kSmall;
      EXPECT_EQ(source->contains(w.tensor.raw()), in_place) << count;
      EXPECT_EQ(static_cast<bool>(w.source), in_place);
      EXPECT_EQ(w.tensor.buffer()->kind(),
                in_place ? Buffer::Kind::kConstant : Buffer::Kind::kHeap);
      if (in_place) {
        EXPECT_EQ(w.tensor.raw(), source->bytes().data() + w.offset);
        EXPECT_EQ(w.offset % alignment, 0U);
      }
      float last = 0;
      std::memcpy(&last, w.tensor.raw() + (count - 1) * sizeof(float), sizeof(float));
      EXPECT_EQ(last, static_cast<float>(count - 1));
    }
  }
}

TEST(OrtLoader, PayloadsKeepTheSourceAlive) {
  Tensor tensor;
  {
    ModelDef model = load_or_fail(write_ort(ort_add_model(5000)));
    tensor = model.graph.initializers[0].tensor;
  }
  float last = 0;
  std::memcpy(&last, tensor.raw() + 4999 * sizeof(float), sizeof(float));
  EXPECT_EQ(last, 4999.0F);
}

TEST(OrtLoader, ReadsEveryElementType) {
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    if (dtype == DType::kString) continue;
    uint64_t bytes = 0;
    ASSERT_TRUE(dtype_bytes(dtype, 3, &bytes));
    std::string payload;
    for (uint64_t i = 0; i < bytes; ++i) payload.push_back(static_cast<char>(i + 1));
    const ModelDef out = load_or_fail(write_ort(constant_model(raw_tensor(dtype, {3}, payload))));
    ASSERT_EQ(out.graph.initializers.size(), 1U) << number;
    const Tensor& tensor = out.graph.initializers[0].tensor;
    EXPECT_EQ(tensor.dtype(), dtype);
    EXPECT_EQ(tensor.shape(), Shape({3}));
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes()), payload);
  }
}

TEST(OrtLoader, ReadsStringsOfAnyBytes) {
  const std::vector<std::string> values = {"a", "", std::string("\0\xFF", 2)};
  const ModelDef out = load_or_fail(write_ort(constant_model(string_tensor(values))));
  const auto found = out.graph.initializers[0].tensor.span<std::string>();
  EXPECT_EQ(std::vector<std::string>(found.begin(), found.end()), values);
}

TEST(OrtLoader, RefusesTensorsWhoseFieldsDisagree) {
  const auto edited = [](const std::function<void(OrtTensorFields*)>& edit) {
    OrtWriteOptions options;
    options.edit_tensor = edit;
    return write_ort(ort_add_model(2), options);
  };
  const std::string where = "tensor 'w'";
  const auto code = Code::kInvalidGraph;
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.pop_back(); }), code,
                 {where, "float[2] takes 8 bytes", "holds 7"});
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.push_back('x'); }), code,
                 {where, "takes 8 bytes", "holds 9"});
  expect_refused(edited([](OrtTensorFields* t) { t->raw_data.clear(); }), code, {where, "holds 0"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {3}; }), code,
                 {where, "float[3] takes 12 bytes"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {-2}; }), code, {where, "[-2]"});
  expect_refused(edited([](OrtTensorFields* t) {
                   t->dims = {int64_t{1} << 33, int64_t{1} << 33};
                 }),
                 code, {where, "overflow"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims = {int64_t{1} << 62}; }), code,
                 {where, "64 bits"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 0; }), code, {where, "UNDEFINED"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 27; }), code,
                 {where, "element type 27"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = -1; }), code,
                 {where, "element type -1"});
  expect_refused(edited([](OrtTensorFields* t) { t->data_type = 8; }), code,
                 {where, "takes 2 strings", "holds 0"});
  expect_refused(edited([](OrtTensorFields* t) { t->name.clear(); }), code, {"no name"});
  expect_refused(edited([](OrtTensorFields* t) { t->dims.assign(17, 1); }), Code::kNotImplemented,
                 {where, "17 dims"});
}

TEST(OrtLoader, RefusesDataOutsideTheFile) {
  OrtWriteOptions options;
  options.edit_tensor = [](OrtTensorFields* tensor) { tensor->external_data_offset = 0; };
  expect_refused(write_ort(ort_add_model(2), options), Code::kNotImplemented,
                 {"tensor 'w'", "outside the file", "external_data_offset 0"});
}

TEST(OrtLoader, RoundsSubByteTypesUp) {
  const ModelDef model = constant_model(raw_tensor(DType::kInt4, {5}, "abc"));
  EXPECT_TRUE(load(write_ort(model)).is_ok());
  OrtWriteOptions options;
  options.edit_tensor = [](OrtTensorFields* tensor) { tensor->raw_data = "ab"; };
  expect_refused(write_ort(model, options), Code::kInvalidGraph, {"int4[5] takes 3 bytes"});
}

TEST(OrtLoader, ReadsScalarVectorsThatAreNotAligned) {
  // The verifier aligns the length of a vector, not its elements: dims at 4 modulo 8.
  std::string bytes = write_ort(ort_add_model(2));
  const auto* tensor = graph_in(&bytes)->initializers()->Get(0);
  const auto* dims = reinterpret_cast<const uint8_t*>(tensor->dims());
  const size_t dims_at = static_cast<size_t>(dims - reinterpret_cast<const uint8_t*>(bytes.data()));
  // A copy at the end of the file, four bytes further in than the writer would put it.
  std::string moved = bytes;
  while (moved.size() % 8 != 0) moved.push_back('\0');
  const size_t new_at = moved.size();
  moved.append(bytes.substr(dims_at, 4 + 8));
  moved.append(8, '\0');
  ASSERT_EQ((new_at + 4) % 8, 4U);
  // The field of the table that refers to dims: the only offset that ends there.
  size_t patched = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    if (value != 0 && at + value == dims_at) {
      value = static_cast<uint32_t>(new_at - at);
      std::memcpy(moved.data() + at, &value, 4);
      ++patched;
    }
  }
  ASSERT_EQ(patched, 1U);
  const ModelDef out = load_or_fail(moved);
  ASSERT_EQ(out.graph.initializers.size(), 1U);
  EXPECT_EQ(out.graph.initializers[0].tensor.shape(), Shape({2}));
}

std::string sparse_bytes(Tensor values, Tensor indices, std::vector<int64_t> dims) {
  OrtWriteOptions options;
  options.sparse_initializers.push_back(
      {"sp", std::move(values), std::move(indices), std::move(dims)});
  return write_ort(ort_add_model(2), options);
}

std::vector<float> dense_floats(const std::string& bytes) {
  const ModelDef model = load_or_fail(bytes);
  if (model.graph.initializers.size() != 2U) return {};
  EXPECT_EQ(model.graph.initializers[1].name, "sp");
  const auto values = model.graph.initializers[1].tensor.span<float>();
  return {values.begin(), values.end()};
}

TEST(OrtLoader, MakesSparseInitializersDense) {
  const std::vector<float> expected = {0, 5, 0, 0, 0, 6};
  const Tensor values = ort_float_tensor({5, 6}, {2});
  EXPECT_EQ(dense_floats(sparse_bytes(values, int64_tensor({1, 5}, {2}), {2, 3})), expected);
  EXPECT_EQ(dense_floats(sparse_bytes(values, int64_tensor({0, 1, 1, 2}, {2, 2}), {2, 3})),
            expected);
  const Tensor narrow = raw_tensor(DType::kInt8, {2}, "\x01\x05");
  EXPECT_EQ(dense_floats(sparse_bytes(values, narrow, {2, 3})), expected);
  const Tensor none = ort_float_tensor({}, {0});
  EXPECT_EQ(dense_floats(sparse_bytes(none, int64_tensor({}, {0}), {3})),
            std::vector<float>({0, 0, 0}));
}

TEST(OrtLoader, RefusesSparseIndicesThatMakeNoSense) {
  const Tensor values = ort_float_tensor({5, 6}, {2});
  const auto refused = [&](const Tensor& indices, const char* part) {
    expect_refused(sparse_bytes(values, indices, {2, 3}), Code::kInvalidGraph,
                   {"sparse initializer 'sp'", part});
  };
  refused(int64_tensor({1, 6}, {2}), "index 6");
  refused(int64_tensor({-1, 2}, {2}), "index -1");
  refused(int64_tensor({0, 1, 1, 3}, {2, 2}), "outside axis 1");
  refused(int64_tensor({2, 1}, {2}), "not ascending");
  refused(int64_tensor({2, 2}, {2}), "not ascending");
  refused(int64_tensor({1, 2, 3}, {3}), "expected int64[2]");
  refused(int64_tensor({1, 2, 3, 4, 5, 5}, {2, 3}), "expected int64[2]");
  refused(ort_float_tensor({1, 2}, {2}), "indices are float");
}

TEST(OrtLoader, RefusesSparseTensorsAboveTheBudgetOfTheModel) {
  const Tensor values = ort_float_tensor({5, 6}, {2});
  const Tensor indices = int64_tensor({1, 5}, {2});
  const std::string dense = "the sparse tensors of a model may take ";
  expect_refused(sparse_bytes(values, indices, {int64_t{1} << 40}), Code::kInvalidGraph,
                 {dense + "1073741824"});
  expect_refused(sparse_bytes(values, indices, {int64_t{1} << 40, int64_t{1} << 40}),
                 Code::kInvalidGraph, {"overflow"});
  LoadOptions limits;
  limits.max_dense_bytes = 100;
  OrtWriteOptions options;
  for (int i = 0; i < 3; ++i) options.sparse_initializers.push_back({"s", values, indices, {10}});
  expect_refused(write_ort(ort_add_model(2), options), Code::kInvalidGraph,
                 {dense + "100 bytes, 80 are taken"}, limits);
}

std::string nested_graphs(int levels) {
  ModelDef model = ort_add_model(2);
  std::shared_ptr<GraphDef> inner = branch("leaf");
  for (int i = 1; i < levels; ++i) {
    auto outer = std::make_shared<GraphDef>();
    NodeDef node;
    node.op_type = "If";
    node.attributes.push_back(attribute("then_branch", Type::kGraph));
    node.attributes[0].graphs = {inner};
    outer->nodes.push_back(node);
    inner = outer;
  }
  model.graph.nodes[0].attributes.push_back(attribute("body", Type::kGraph));
  model.graph.nodes[0].attributes[0].graphs = {inner};
  return write_ort(model);
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

// Sets the first entry of `entries`, which stand in the file, to null.
template <typename T>
void clear_first(const flatbuffers::Vector<flatbuffers::Offset<T>>* entries) {
  ASSERT_NE(entries, nullptr);
  ASSERT_GT(entries->size(), 0U);
  std::memset(const_cast<uint8_t*>(entries->Data()), 0, sizeof(uint32_t));
}

TEST(OrtLoader, RefusesNullEntriesOfEveryVector) {
  using Graph = const ort_schema::Graph;
  const auto attribute_at = [](Graph* g, uint32_t i) {
    return g->nodes()->Get(0)->attributes()->Get(i);
  };
  const auto shape_of = [](Graph* g) {
    return g->node_args()->Get(0)->type()->value_as_tensor_type()->shape();
  };
  const std::vector<std::pair<const char*, std::function<void(Graph*)>>> cases = {
      {"initializer 0", [](Graph* g) { clear_first(g->initializers()); }},
      {"sparse initializer 0", [](Graph* g) { clear_first(g->sparse_initializers()); }},
      {"node_args entry 0", [](Graph* g) { clear_first(g->node_args()); }},
      {"node 0", [](Graph* g) { clear_first(g->nodes()); }},
      {"graph input 0", [](Graph* g) { clear_first(g->inputs()); }},
      {"graph output 0", [](Graph* g) { clear_first(g->outputs()); }},
      {"input name 0", [](Graph* g) { clear_first(g->nodes()->Get(0)->inputs()); }},
      {"output name 0", [](Graph* g) { clear_first(g->nodes()->Get(0)->outputs()); }},
      {"attribute 0", [](Graph* g) { clear_first(g->nodes()->Get(0)->attributes()); }},
      {"dim 0", [&](Graph* g) { clear_first(shape_of(g)->dim()); }},
      {"string 0", [&](Graph* g) { clear_first(attribute_at(g, 7)->strings()); }},
      {"tensor 0", [&](Graph* g) { clear_first(attribute_at(g, 8)->tensors()); }},
      {"string 0",
       [&](Graph* g) { clear_first(attribute_at(g, 8)->tensors()->Get(0)->string_data()); }},
      {"graph 0", [&](Graph* g) { clear_first(attribute_at(g, 9)->graphs()); }},
  };
  for (const auto& [what, clear] : cases) {
    SCOPED_TRACE(what);
    std::string bytes = rich_bytes();
    clear(graph_in(&bytes));
    expect_refused(bytes, Code::kInvalidGraph, {what, "is null"});
  }
  std::string bytes = rich_bytes();
  clear_first(ort_schema::GetInferenceSession(bytes.data())->model()->opset_import());
  expect_refused(bytes, Code::kInvalidGraph, {"opset_import entry 0 of 1 is null"});
  bytes = rich_bytes();
  clear_first(ort_schema::GetInferenceSession(bytes.data())->model()->metadata_props());
  expect_refused(bytes, Code::kInvalidGraph, {"metadata_props entry 0 of 1 is null"});
}

// A sanitizer build makes this a proof; elsewhere it is a smoke test.
TEST(OrtLoader, SurvivesEveryWordOfAFileBeingWrong) {
  const std::string bytes = rich_bytes();
  LoadOptions limits;
  limits.max_dense_bytes = 1 << 20;
  size_t refused = 0;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t original = 0;
    std::memcpy(&original, bytes.data() + at, 4);
    const uint32_t size = static_cast<uint32_t>(bytes.size());
    for (const uint32_t value :
         {0U, 1U, 4U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU, size, size - 4, original + 1,
          original - 1, original + 4, original - 4, original ^ 0x10000U, ~original}) {
      std::string damaged = bytes;
      std::memcpy(damaged.data() + at, &value, 4);
      const Result<ModelDef> model = load(damaged, limits);
      if (!model.is_ok()) {
        EXPECT_FALSE(model.status().message().empty());
        ++refused;
      } else {
        const volatile size_t sum = walk_graph(model.value().graph);
        static_cast<void>(sum);
      }
    }
  }
  EXPECT_GT(refused, bytes.size() / 4);  // most words are offsets and sizes
}

TEST(OrtLoader, SurvivesEveryByteBeingWrong) {
  const std::string bytes = rich_bytes();
  LoadOptions limits;
  limits.max_dense_bytes = 1 << 20;
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const Result<ModelDef> model = load(damaged, limits);
      if (model.is_ok()) {
        const volatile size_t sum = walk_graph(model.value().graph);
        static_cast<void>(sum);
      } else {
        EXPECT_FALSE(model.status().message().empty());
      }
    }
  }
}

}  // namespace
}  // namespace folio
