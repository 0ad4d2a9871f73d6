// Tests of the model writer. What it writes is read back by the small parser below, which knows the
// wire format from its description only and shares nothing with the writer.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temp_folder.h"
#include "tools/make_model/kinds.h"
#include "tools/make_model/model_file.h"
#include "tools/make_model/onnx_model.h"
#include "tools/make_model/proto_writer.h"
#include "tools/make_model/random_weights.h"

namespace model_writer {
namespace {

namespace fs = std::filesystem;

// ---- the parser ----

struct WireField {
  uint64_t number = 0;
  uint64_t wire_type = 0;
  uint64_t value = 0;      // wire types 0, 1 and 5
  std::string_view bytes;  // wire type 2
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) return fail();
      const uint8_t byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }

  uint64_t fixed(size_t bytes) {
    if (rest_.size() < bytes) return fail();
    uint64_t value = 0;
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }

  std::string_view take(uint64_t bytes) {
    if (rest_.size() < bytes) {
      fail();
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

  bool at_end() const { return rest_.empty(); }
  bool good() const { return good_; }

 private:
  uint64_t fail() {
    good_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool good_ = true;
};

// All fields of a message; a test failure if it is not one.
std::vector<WireField> fields_of(std::string_view bytes) {
  WireReader reader(bytes);
  std::vector<WireField> fields;
  while (!reader.at_end()) {
    const uint64_t tag = reader.varint();
    WireField field{tag >> 3, tag & 7, 0, {}};
    switch (field.wire_type) {
      case 0:
        field.value = reader.varint();
        break;
      case 1:
        field.value = reader.fixed(8);
        break;
      case 2:
        field.bytes = reader.take(reader.varint());
        break;
      case 5:
        field.value = reader.fixed(4);
        break;
      default:
        ADD_FAILURE() << "wire type " << field.wire_type << " in field " << field.number;
        return fields;
    }
    fields.push_back(field);
  }
  EXPECT_TRUE(reader.good()) << "a message ends in the middle of a field";
  return fields;
}

std::vector<WireField> fields_numbered(std::string_view message, uint64_t number) {
  std::vector<WireField> found;
  for (const WireField& field : fields_of(message)) {
    if (field.number == number) found.push_back(field);
  }
  return found;
}

// The one field of that number; a test failure if there is none or more.
WireField only(std::string_view message, uint64_t number) {
  const std::vector<WireField> found = fields_numbered(message, number);
  EXPECT_EQ(found.size(), 1u) << "field " << number;
  return found.empty() ? WireField{} : found[0];
}

// Empty where the field is absent.
std::string text(std::string_view message, uint64_t number) {
  const std::vector<WireField> found = fields_numbered(message, number);
  return found.empty() ? std::string() : std::string(found.back().bytes);
}

std::vector<std::string> texts(std::string_view message, uint64_t number) {
  std::vector<std::string> found;
  for (const WireField& field : fields_numbered(message, number)) found.emplace_back(field.bytes);
  return found;
}

std::vector<uint64_t> packed_varints(std::string_view bytes) {
  WireReader reader(bytes);
  std::vector<uint64_t> values;
  while (!reader.at_end()) values.push_back(reader.varint());
  EXPECT_TRUE(reader.good());
  return values;
}

// A model's graph; `model` must outlive the view.
std::string_view graph_of(const std::string& model) { return only(model, 7).bytes; }

// The initializer of that name in a graph.
std::string_view initializer_named(std::string_view graph, const std::string& name) {
  for (const WireField& field : fields_numbered(graph, 5)) {
    if (text(field.bytes, 8) == name) return field.bytes;
  }
  ADD_FAILURE() << "no initializer '" << name << "'";
  return {};
}

// external_data of a tensor by key.
std::string external_value(std::string_view tensor, const std::string& key) {
  for (const WireField& field : fields_numbered(tensor, 13)) {
    if (text(field.bytes, 1) == key) return text(field.bytes, 2);
  }
  return {};
}

// Every name a node reads is visible, no name is defined twice in a graph, every output is defined.
void expect_names_resolve(std::string_view graph, std::set<std::string> visible) {
  const std::string where = text(graph, 2);
  std::set<std::string> own;
  const auto define = [&](const std::string& name) {
    if (name.empty()) return;
    EXPECT_TRUE(own.insert(name).second) << where << ": '" << name << "' is defined twice";
    visible.insert(name);
  };
  std::set<std::string> inputs;  // of each, one initializer may be the default
  for (const WireField& input : fields_numbered(graph, 11)) {
    define(text(input.bytes, 1));
    inputs.insert(text(input.bytes, 1));
  }
  for (const WireField& tensor : fields_numbered(graph, 5)) {
    if (inputs.erase(text(tensor.bytes, 8)) == 0) define(text(tensor.bytes, 8));
  }
  for (const WireField& sparse : fields_numbered(graph, 15)) {
    define(text(only(sparse.bytes, 1).bytes, 8));
  }
  for (const WireField& node : fields_numbered(graph, 1)) {
    for (const std::string& name : texts(node.bytes, 1)) {
      EXPECT_TRUE(name.empty() || visible.count(name) == 1) << where << " reads '" << name << "'";
    }
    for (const WireField& attribute : fields_numbered(node.bytes, 5)) {
      for (const WireField& inner : fields_numbered(attribute.bytes, 6)) {
        expect_names_resolve(inner.bytes, visible);
      }
    }
    for (const std::string& name : texts(node.bytes, 2)) define(name);
  }
  for (const WireField& output : fields_numbered(graph, 12)) {
    EXPECT_EQ(visible.count(text(output.bytes, 1)), 1u) << where;
  }
}

struct NamedModel {
  std::string name;
  ModelFiles files;
};

std::vector<NamedModel> all_kinds(uint64_t seed) {
  MlpOptions mlp;
  mlp.seed = seed;
  mlp.width = 24;
  MlpOptions mlp_external = mlp;
  mlp_external.external = "weights.data";
  std::vector<NamedModel> models;
  models.push_back({"mlp", build_mlp(mlp)});
  models.push_back({"mlp external", build_mlp(mlp_external)});
  MlpOptions mlp_inputs = mlp;
  mlp_inputs.biases_as_inputs = true;
  models.push_back({"mlp with biases as inputs", build_mlp(mlp_inputs)});
  models.push_back({"cnn", build_cnn(seed)});
  models.push_back({"control", build_control(seed)});
  models.push_back({"int4", build_int4({seed, 64})});
  models.push_back({"fold", build_fold({seed, 16, 0})});
  models.push_back({"aliased", build_aliased(seed, "a.data")});
  models.push_back({"shapes", build_shapes(seed)});
  models.push_back({"types basic", build_types(seed, TypeSet::kBasic)});
  models.push_back({"types standard", build_types(seed, TypeSet::kStandard)});
  models.push_back({"types all", build_types(seed, TypeSet::kAll)});
  models.push_back({"functions", build_functions(seed)});
  models.push_back({"sequences", build_sequences(seed, SequenceOutputs::kSequences)});
  models.push_back({"deep", build_deep(seed, 6)});
  models.push_back({"many", build_many(seed, 20)});
  return models;
}

// Model and data without the metadata, which names the seed.
std::string weights_and_graph(const ModelFiles& files) {
  const std::string model = files.model.serialize();
  return std::string(graph_of(model)) + (files.data ? files.data->serialize() : "");
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "make_model_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  size_t file_count() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

// ---- protobuf ----

TEST(ProtoMessage, WritesTheExamplesOfTheProtobufDocumentation) {
  ProtoMessage number;
  number.put_varint(1, 150);
  EXPECT_EQ(number.serialize(), "\x08\x96\x01");
  ProtoMessage string;
  string.put_bytes(2, "testing");
  EXPECT_EQ(string.serialize(), "\x12\x07testing");
  ProtoMessage nested;
  nested.put_message(3, number);
  EXPECT_EQ(nested.serialize(), "\x1a\x03\x08\x96\x01");
  ProtoMessage packed;
  packed.put_packed_ints(6, {3, 270, 86942});
  EXPECT_EQ(packed.serialize(), "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
}

TEST(ProtoMessage, SignExtendsNegativeNumbersToTenBytes) {
  ProtoMessage message;
  message.put_int(1, -1);
  EXPECT_EQ(message.serialize(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(ProtoMessage, CountsTheBytesItWrites) {
  ProtoMessage inner;
  inner.put_payload(9, uniform_payload(1, 3000, -1, 1));
  inner.put_f64(2, 0.5);
  ProtoMessage outer;
  outer.put_bytes(1, std::string(5000, 'x'));
  outer.put_message(4, inner);
  outer.put_message(4, inner);
  outer.put_f32(5, 1.0f);
  const std::string bytes = outer.serialize();
  EXPECT_EQ(bytes.size(), outer.byte_count());
  const std::vector<WireField> inners = fields_numbered(bytes, 4);
  ASSERT_EQ(inners.size(), 2u);
  EXPECT_EQ(inners[0].bytes, inner.serialize());
  EXPECT_EQ(inners[1].bytes, inner.serialize());
}

TEST(ProtoMessage, NestsAHundredThousandLevels) {
  ProtoMessage message;
  message.put_varint(1, 7);
  constexpr int kLevels = 100000;
  for (int i = 0; i < kLevels; ++i) {
    ProtoMessage outer;
    outer.put_message(2, std::move(message));
    message = std::move(outer);
  }
  const std::string bytes = message.serialize();
  std::string_view level = bytes;
  for (int i = 0; i < kLevels; ++i) {
    WireReader reader(level);
    ASSERT_EQ(reader.varint(), 0x12u) << i;
    level = reader.take(reader.varint());
    ASSERT_TRUE(reader.good() && reader.at_end()) << i;
  }
  EXPECT_EQ(level, "\x08\x07");
}

TEST(Payload, IsFilledOrCutToItsAnnouncedSize) {
  const auto written = [](uint64_t announced, const std::string& given, bool& exact) {
    std::string out;
    const Payload payload{announced,
                          [&](const ByteSink& sink) { sink(given.data(), given.size()); }};
    exact = write_payload(payload, [&](const void* data, size_t bytes) {
      out.append(static_cast<const char*>(data), bytes);
    });
    return out;
  };
  bool exact = false;
  EXPECT_EQ(written(3, "abc", exact), "abc");
  EXPECT_TRUE(exact);
  EXPECT_EQ(written(2, "abc", exact), "ab");
  EXPECT_FALSE(exact);
  EXPECT_EQ(written(5, "abc", exact), std::string("abc\0\0", 5));
  EXPECT_FALSE(exact);
}

// ---- numbers ----

TEST(RandomWeights, AreThePublishedSplitmix64) {
  // The reference implementation's first outputs for these seeds.
  EXPECT_EQ(splitmix64_at(0, 0), 0xe220a8397b1dcdafull);
  EXPECT_EQ(splitmix64_at(1234567, 0), 6457827717110365317ull);
  EXPECT_EQ(splitmix64_at(1234567, 1), 3203168211198807973ull);
}

TEST(RandomWeights, HaveTheWantedRangeAndVariance) {
  constexpr uint64_t kFanIn = 300;
  const float scale = weight_scale(kFanIn);
  constexpr uint64_t kCount = 100000;
  double sum = 0;
  double squares = 0;
  for (const float value : uniform_values(7, kCount, -scale, scale)) {
    ASSERT_GE(value, -scale);
    ASSERT_LE(value, scale);
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  // Five standard deviations of the mean and of the mean square of that many uniform numbers.
  EXPECT_NEAR(sum / kCount, 0, 5 * scale / std::sqrt(3.0 * kCount));
  EXPECT_NEAR(squares / kCount * kFanIn, 1, 5 * std::sqrt(0.8 / kCount));
}

TEST(RandomWeights, AreTheSameStreamedAndAtOnce) {
  const std::vector<float> values = uniform_values(3, 40000, -2, 5);
  std::string streamed;
  ASSERT_TRUE(write_payload(uniform_payload(3, 40000, -2, 5), [&](const void* data, size_t bytes) {
    streamed.append(static_cast<const char*>(data), bytes);
  }));
  ASSERT_EQ(streamed.size(), values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(streamed.data(), values.data(), streamed.size()), 0);
}

TEST(F16Bits, RoundToNearestEven) {
  EXPECT_EQ(f16_bits(0.0f), 0x0000);
  EXPECT_EQ(f16_bits(-2.0f), 0xc000);
  EXPECT_EQ(f16_bits(1.0f + 0x1p-11f), 0x3c00);      // halfway, down to even
  EXPECT_EQ(f16_bits(1.0f + 0x1.8p-10f), 0x3c02);    // halfway, up to even
  EXPECT_EQ(f16_bits(65504.0f), 0x7bff);             // largest
  EXPECT_EQ(f16_bits(65519.0f), 0x7bff);             // below the halfway point to infinity
  EXPECT_EQ(f16_bits(65520.0f), 0x7c00);             // halfway
  EXPECT_EQ(f16_bits(0x1p-14f), 0x0400);             // least normal
  EXPECT_EQ(f16_bits(0x1p-14f - 0x1p-26f), 0x0400);  // rounds up from the subnormals
  EXPECT_EQ(f16_bits(0x1p-24f), 0x0001);             // least subnormal
  EXPECT_EQ(f16_bits(0x1p-25f), 0x0000);             // half of it, to even
  EXPECT_EQ(f16_bits(0x1.8p-25f), 0x0001);
  EXPECT_EQ(f16_bits(INFINITY), 0x7c00);
  EXPECT_EQ(f16_bits(NAN) & 0x7fff, 0x7e00);
}

// ---- ONNX ----

TEST(TensorWriter, WritesDimsTypeNameAndRawData) {
  const std::string bytes = f32_tensor("w", {2, 1}, {1.0f, -2.0f}).message().serialize();
  const std::vector<WireField> dims = fields_numbered(bytes, 1);
  ASSERT_EQ(dims.size(), 2u);
  EXPECT_EQ(dims[0].value, 2u);
  EXPECT_EQ(dims[1].value, 1u);
  EXPECT_EQ(only(bytes, 2).value, 1u);
  EXPECT_EQ(text(bytes, 8), "w");
  EXPECT_EQ(text(bytes, 9), std::string("\0\0\x80\x3f\0\0\0\xc0", 8));
}

TEST(TensorWriter, NamesExternalRanges) {
  const std::string bytes = TensorWriter("w", ElementType::kInt8, {4})
                                .external("d.bin", 4096, 4)
                                .external_entry("checksum", "ab")
                                .message()
                                .serialize();
  EXPECT_EQ(external_value(bytes, "location"), "d.bin");
  EXPECT_EQ(external_value(bytes, "offset"), "4096");
  EXPECT_EQ(external_value(bytes, "length"), "4");
  EXPECT_EQ(external_value(bytes, "checksum"), "ab");
  EXPECT_EQ(only(bytes, 14).value, 1u);
}

TEST(AttributeWriter, MarksEveryTypeAndUsesItsField) {
  const TensorWriter tensor = f32_tensor("t", {1}, {1.0f});
  const SparseTensorWriter sparse(tensor, i64_tensor("i", {1}, {0}), {4});
  const Type type = Type::sequence(Type::tensor(ElementType::kFloat, {1}));
  struct Row {
    AttributeWriter attribute;
    uint64_t type;
    uint64_t field;
    size_t count;
  };
  const std::vector<Row> rows = {
      {AttributeWriter::of_float("a", 1.5f), 1, 2, 1},
      {AttributeWriter::of_int("a", -3), 2, 3, 1},
      {AttributeWriter::of_string("a", "s"), 3, 4, 1},
      {AttributeWriter::of_tensor("a", tensor), 4, 5, 1},
      {AttributeWriter::of_graph("a", GraphWriter("g")), 5, 6, 1},
      {AttributeWriter::of_floats("a", {1, 2, 3}), 6, 7, 3},
      {AttributeWriter::of_ints("a", {1, -2}), 7, 8, 2},
      {AttributeWriter::of_strings("a", {"x", "", "z"}), 8, 9, 3},
      {AttributeWriter::of_tensors("a", {tensor, tensor}), 9, 10, 2},
      {AttributeWriter::of_graphs("a", {GraphWriter("g"), GraphWriter("h")}), 10, 11, 2},
      {AttributeWriter::of_sparse("a", sparse), 11, 22, 1},
      {AttributeWriter::of_sparses("a", {sparse, sparse}), 12, 23, 2},
      {AttributeWriter::of_type("a", type), 13, 14, 1},
      {AttributeWriter::of_types("a", {type, type}), 14, 15, 2},
      {AttributeWriter::of_reference("a", "r", AttributeType::kInt), 2, 21, 1},
  };
  for (const Row& row : rows) {
    const std::string bytes = row.attribute.message().serialize();
    EXPECT_EQ(text(bytes, 1), "a");
    EXPECT_EQ(only(bytes, 20).value, row.type);
    EXPECT_EQ(fields_numbered(bytes, row.field).size(), row.count) << "type " << row.type;
    EXPECT_EQ(fields_of(bytes).size(), row.count + 2) << "type " << row.type;
  }
}

TEST(ModelWriter, WritesVersionsMetadataAndFunctions) {
  ModelWriter model(9, "g");
  model.opset("", 17).opset("d", 2).metadata("k", "v").model_version(-4);
  FunctionWriter function("d", "F", {"x"}, {"y"});
  function.opset("", 17).attribute("alpha");
  function.attribute_default(AttributeWriter::of_int("n", 3));
  function.node("Elu", {"x"}, {"y"}).attr_ref("alpha", "alpha", AttributeType::kFloat);
  model.function(function);
  const std::string bytes = model.serialize();
  EXPECT_EQ(only(bytes, 1).value, 9u);
  EXPECT_EQ(static_cast<int64_t>(only(bytes, 5).value), -4);
  EXPECT_EQ(text(graph_of(bytes), 2), "g");
  const std::vector<WireField> opsets = fields_numbered(bytes, 8);
  ASSERT_EQ(opsets.size(), 2u);
  EXPECT_EQ(text(opsets[1].bytes, 1), "d");
  EXPECT_EQ(only(opsets[1].bytes, 2).value, 2u);
  EXPECT_EQ(text(only(bytes, 14).bytes, 2), "v");
  const std::string_view f = only(bytes, 25).bytes;
  EXPECT_EQ(text(f, 1), "F");
  EXPECT_EQ(text(f, 10), "d");
  EXPECT_EQ(texts(f, 6), std::vector<std::string>{"alpha"});
  EXPECT_EQ(text(only(f, 11).bytes, 1), "n");
  EXPECT_EQ(text(only(only(f, 7).bytes, 5).bytes, 21), "alpha");
}

TEST(ModelWriter, SerializesTwiceTheSame) {
  const ModelFiles files = build_control(5);
  EXPECT_EQ(files.model.serialize(), files.model.serialize());
}

// ---- files ----

TEST(WriteModelFile, WritesWhatSerializeGives) {
  const TemporaryFolder folder;
  const ModelFiles files = build_cnn(2);
  const fs::path path = folder.path() / "m.onnx";
  const WriteResult result = write_model_files(files, path.string());
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(folio::testing::contents(path), files.model.serialize());
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(WriteModelFile, PutsTheDataFileBesideTheModel) {
  const TemporaryFolder folder;
  const ModelFiles files = build_aliased(2, "a.data");
  const WriteResult result = write_model_files(files, (folder.path() / "m.onnx").string());
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(folio::testing::contents(folder.path() / "a.data"), files.data->serialize());
}

TEST(WriteModelFile, RefusesMoreThanProtobufHolds) {
  const TemporaryFolder folder;
  MlpOptions options;
  options.size_mb = 3000;
  const WriteResult result =
      write_model_files(build_mlp(options), (folder.path() / "m.onnx").string());
  EXPECT_NE(result.error.find("external data"), std::string::npos) << result.error;
  EXPECT_NE(result.error.find("2147483647"), std::string::npos) << result.error;
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(WriteModelFile, LeavesDevicesPipesAndFoldersAlone) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const ModelFiles files = build_many(1, 2);
  EXPECT_NE(write_model_files(files, pipe.string()).error.find("not a regular file"),
            std::string::npos);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_FALSE(write_model_files(files, folder.path().string()).ok());
}

TEST(WriteModelFile, LeavesNothingBehindWhenAPayloadFails) {
  const TemporaryFolder folder;
  ModelWriter model;
  model.graph().initializer(
      TensorWriter("w", ElementType::kInt8, {8}).raw(Payload{8, [](const ByteSink& sink) {
                                                               sink("abc", 3);
                                                             }}));
  const WriteResult result = write_model_file(model, (folder.path() / "m.onnx").string());
  EXPECT_NE(result.error.find("announced"), std::string::npos) << result.error;
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(ExternalLocation, MustLieInTheModelsFolder) {
  EXPECT_EQ(external_location_error("w.data", "/tmp/m.onnx"), "");
  EXPECT_EQ(external_location_error("sub/w.data", "m.onnx"), "");
  EXPECT_NE(external_location_error("", "m.onnx"), "");
  EXPECT_NE(external_location_error("/tmp/w.data", "m.onnx"), "");
  EXPECT_NE(external_location_error("sub/../../w.data", "m.onnx"), "");
  EXPECT_NE(external_location_error("./m.onnx", "/tmp/m.onnx"), "");
}

// ---- kinds ----

TEST(Kinds, DependOnNothingButTheSeed) {
  const std::vector<NamedModel> first = all_kinds(11);
  const std::vector<NamedModel> again = all_kinds(11);
  const std::vector<NamedModel> other = all_kinds(12);
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].files.model.serialize(), again[i].files.model.serialize()) << first[i].name;
    EXPECT_EQ(weights_and_graph(first[i].files), weights_and_graph(again[i].files))
        << first[i].name;
    EXPECT_NE(weights_and_graph(first[i].files), weights_and_graph(other[i].files))
        << first[i].name;
  }
}

TEST(Kinds, ReadOnlyNamesThatAreVisible) {
  for (const NamedModel& named : all_kinds(1)) {
    SCOPED_TRACE(named.name);
    const std::string model = named.files.model.serialize();
    expect_names_resolve(graph_of(model), {});
    for (const WireField& function : fields_numbered(model, 25)) {
      // A function has its inputs where a graph has typed ones; its nodes are field 7.
      std::set<std::string> visible;
      for (const std::string& name : texts(function.bytes, 4)) visible.insert(name);
      for (const WireField& node : fields_numbered(function.bytes, 7)) {
        for (const std::string& name : texts(node.bytes, 1)) EXPECT_EQ(visible.count(name), 1u);
        for (const std::string& name : texts(node.bytes, 2)) visible.insert(name);
      }
      for (const std::string& name : texts(function.bytes, 5)) EXPECT_EQ(visible.count(name), 1u);
    }
  }
}

TEST(Mlp, HitsTheWantedSizeToOneColumn) {
  for (const uint64_t layers : {1, 3, 8}) {
    MlpOptions options;
    options.layers = layers;
    options.size_mb = 2;
    const std::string model = build_mlp(options).model.serialize();
    uint64_t bytes = 0;
    uint64_t rows = 0;
    for (const WireField& tensor : fields_numbered(graph_of(model), 5)) {
      bytes += only(tensor.bytes, 9).bytes.size();
      rows = std::max(rows, fields_numbered(tensor.bytes, 1)[0].value);
    }
    EXPECT_LE(bytes, 2000000u) << layers;
    EXPECT_GT(bytes + 4 * (rows + 1), 2000000u) << layers;
  }
}

TEST(Mlp, PutsAlignedWeightsIntoTheDataFile) {
  MlpOptions options;
  options.width = 50;
  options.external = "w.data";
  options.external_alignment = 256;
  const ModelFiles external = build_mlp(options);
  options.external.clear();
  const std::string inline_model = build_mlp(options).model.serialize();
  const std::string model = external.model.serialize();
  const std::string data = external.data->serialize();
  ASSERT_EQ(data.size(), external.data->byte_count());
  for (const WireField& tensor : fields_numbered(graph_of(inline_model), 5)) {
    const std::string name = text(tensor.bytes, 8);
    const std::string_view other = initializer_named(graph_of(model), name);
    EXPECT_TRUE(fields_numbered(other, 9).empty());
    const uint64_t offset = std::stoull(external_value(other, "offset"));
    const uint64_t bytes = std::stoull(external_value(other, "length"));
    EXPECT_EQ(offset % 256, 0u) << name;
    ASSERT_LE(offset + bytes, data.size()) << name;
    EXPECT_EQ(data.substr(offset, bytes), text(tensor.bytes, 9)) << name;
  }
}

TEST(Mlp, StreamsAnyPartWithoutHoldingIt) {
  // Three gigabytes are announced and counted, not made.
  MlpOptions options;
  options.size_mb = 3000;
  options.external = "w.data";
  const ModelFiles files = build_mlp(options);
  EXPECT_GT(files.data->byte_count(), 2999000000u);
  EXPECT_LT(files.data->byte_count(), 3000100000u);
  EXPECT_LT(files.model.message().byte_count(), 10000u);
}

TEST(Aliased, SharesAndOverlapsRanges) {
  const ModelFiles files = build_aliased(1, "a.data");
  const std::string model = files.model.serialize();
  const auto offset = [&](const std::string& name) {
    return std::stoull(external_value(initializer_named(graph_of(model), name), "offset"));
  };
  const auto end = [&](const std::string& name) {
    return offset(name) +
           std::stoull(external_value(initializer_named(graph_of(model), name), "length"));
  };
  EXPECT_EQ(offset("first"), offset("same"));
  EXPECT_EQ(end("first"), end("same"));
  EXPECT_GT(offset("overlapping"), offset("first"));
  EXPECT_LT(offset("overlapping"), end("first"));
  EXPECT_GT(offset("inside") % 64, 0u);
  EXPECT_EQ(offset("as_bytes") % 2, 1u);
  for (const char* name : {"first", "same", "reshaped", "overlapping", "inside", "as_bytes"}) {
    EXPECT_LE(end(name), files.data->byte_count()) << name;
  }
}

// The values of int32_data and the like, as the bytes raw_data would hold.
std::string raw_of_typed(std::string_view tensor) {
  const uint64_t type = only(tensor, 2).value;
  std::string raw;
  for (const uint64_t field : {4, 10}) raw += text(tensor, field);  // fixed-size numbers
  size_t bytes = 8;                                                 // int64, uint64
  if (type == 6 || type == 12) bytes = 4;                           // int32, uint32
  if (type == 4 || type == 5 || type == 10 || type == 16) bytes = 2;
  if (type == 2 || type == 3 || type == 9 || type >= 17) bytes = 1;
  for (const uint64_t field : {5, 7, 11}) {
    for (const uint64_t value : packed_varints(text(tensor, field))) {
      raw.append(reinterpret_cast<const char*>(&value), bytes);
    }
  }
  return raw;
}

TEST(Types, HoldEqualValuesInBothStorages) {
  const std::string model = build_types(1, TypeSet::kAll).model.serialize();
  const std::string_view graph = graph_of(model);
  std::set<uint64_t> types;
  for (const WireField& tensor : fields_numbered(graph, 5)) {
    const std::string name = text(tensor.bytes, 8);
    types.insert(only(tensor.bytes, 2).value);
    if (name.size() < 4 || name.substr(name.size() - 4) != ".raw") continue;
    const std::string_view typed =
        initializer_named(graph, name.substr(0, name.size() - 4) + ".typed");
    EXPECT_EQ(only(typed, 2).value, only(tensor.bytes, 2).value) << name;
    EXPECT_TRUE(fields_numbered(typed, 9).empty()) << name;
    EXPECT_FALSE(text(tensor.bytes, 9).empty()) << name;
    EXPECT_EQ(raw_of_typed(typed), text(tensor.bytes, 9)) << name;
  }
  EXPECT_EQ(types.size(), 26u);  // 1 to 26: every element type there is
}

TEST(Types, KeepZeroBytesInStrings) {
  const std::string model = build_types(1, TypeSet::kBasic).model.serialize();
  const std::vector<std::string> strings =
      texts(initializer_named(graph_of(model), "string.typed"), 6);
  ASSERT_EQ(strings.size(), 6u);
  EXPECT_EQ(strings[0], "");
  EXPECT_EQ(strings[4], std::string("zero\0inside", 11));
}

TEST(Deep, NestsAsManySubgraphsAsWanted) {
  constexpr int kDepth = 3000;
  const std::string model = build_deep(1, kDepth).model.serialize();
  std::string_view graph = graph_of(model);
  int depth = 0;
  while (true) {
    const std::string_view node = only(graph, 1).bytes;
    const std::vector<WireField> attributes = fields_numbered(node, 5);
    if (attributes.empty()) break;
    ASSERT_EQ(attributes.size(), 2u);
    ASSERT_EQ(text(attributes[0].bytes, 1), "then_branch");
    graph = only(attributes[0].bytes, 6).bytes;
    ++depth;
  }
  EXPECT_EQ(depth, kDepth);
}

TEST(Many, HasAsManyNodesAsWanted) {
  for (const uint64_t nodes : {1, 2, 500}) {
    const std::string model = build_many(1, nodes).model.serialize();
    EXPECT_EQ(fields_numbered(graph_of(model), 1).size(), nodes);
  }
}

}  // namespace
}  // namespace model_writer
