// Damaged .ort files: whatever is wrong, there is an error or a model, never a crash.
#include "tests/formats/ort_case.h"
#include "tests/fuzz/model_walk.h"

namespace folio {
namespace {

using namespace ort_case;

TEST(OrtDamage, RefusesAFileCutShort) {
  const std::string bytes = rich_bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<ModelDef> model = load(bytes.substr(0, size));
    // The last bytes may be padding or the terminator of a string that is not read.
    if (size + 8 < bytes.size()) {
      EXPECT_FALSE(model.is_ok()) << "cut at " << size;
    }
  }
}

// Sets the first entry of `entries`, which stand in the file, to null.
template <typename T>
void clear_first(const flatbuffers::Vector<flatbuffers::Offset<T>>* entries) {
  ASSERT_NE(entries, nullptr);
  ASSERT_GT(entries->size(), 0U);
  std::memset(const_cast<uint8_t*>(entries->Data()), 0, sizeof(uint32_t));
}

using Graph = const ort_schema::Graph;

TEST(OrtDamage, RefusesNullEntriesOfEveryVectorOfTables) {
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
      {"attribute 0", [](Graph* g) { clear_first(g->nodes()->Get(0)->attributes()); }},
      {"dim 0", [&](Graph* g) { clear_first(shape_of(g)->dim()); }},
      {"tensor 0", [&](Graph* g) { clear_first(attribute_at(g, 8)->tensors()); }},
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

// The verifier takes a null string for an empty one whose terminator is the byte behind the null.
TEST(OrtDamage, RefusesNullStringsThatTheVerifierLetsPass) {
  const auto session_with_null = [](int which) {
    namespace schema = ort_schema;
    using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;
    flatbuffers::FlatBufferBuilder builder;
    const auto text = builder.CreateString("text");
    // Built back to front: the length of the empty vector, zero, follows the null.
    builder.CreateVector(std::vector<uint32_t>{});
    const flatbuffers::Offset<Strings> null_string =
        builder.CreateVector(std::vector<uint32_t>{0}).o;
    const auto none = flatbuffers::Offset<Strings>();
    const auto pick = [&](int at) { return at == which ? null_string : none; };
    const auto dims = builder.CreateVector(std::vector<int64_t>{1});
    const auto tensors = builder.CreateVector(std::vector{
        schema::CreateTensor(builder, text, 0, dims, schema::TensorDataType::STRING, 0, pick(4))});
    schema::AttributeBuilder attribute(builder);
    attribute.add_name(text);
    attribute.add_type(schema::AttributeType::STRINGS);
    attribute.add_strings(pick(3));
    const auto attributes = builder.CreateVector(std::vector{attribute.Finish()});
    schema::NodeBuilder node(builder);
    node.add_op_type(text);
    node.add_inputs(pick(1));
    node.add_outputs(pick(2));
    node.add_attributes(attributes);
    const auto nodes = builder.CreateVector(std::vector{node.Finish()});
    schema::GraphBuilder graph(builder);
    if (which == 4) graph.add_initializers(tensors);
    graph.add_nodes(nodes);
    graph.add_inputs(pick(0));
    graph.add_outputs(pick(5));
    const auto main_graph = graph.Finish();
    const auto opsets =
        builder.CreateVector(std::vector{schema::CreateOperatorSetId(builder, text, 1)});
    const auto version = builder.CreateString("6");
    const auto model = schema::CreateModel(builder, 8, opsets, 0, 0, 0, 0, 0, main_graph);
    builder.Finish(schema::CreateInferenceSession(builder, version, model), "ORTM");
    return std::string(reinterpret_cast<const char*>(builder.GetBufferPointer()),
                       builder.GetSize());
  };
  const char* expected[] = {"graph input 0 of 1", "input name 0 of 1", "output name 0 of 1",
                            "string 0 of 1",      "string 0 of 1",     "graph output 0 of 1"};
  for (int which = 0; which < 6; ++which) {
    expect_refused(session_with_null(which), Code::kInvalidGraph, {expected[which], "is null"});
  }
  EXPECT_TRUE(load(session_with_null(-1)).is_ok());
}

// A sanitizer build makes this a proof; elsewhere it is a smoke test.

TEST(OrtDamage, SurvivesEveryWordOfAFileBeingWrong) {
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

TEST(OrtDamage, SurvivesEveryByteBeingWrong) {
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
