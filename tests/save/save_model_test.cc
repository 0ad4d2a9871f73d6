#include "core/save/save_model.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/formats/ort/ort_data_file.h"
#include "core/os/memory_stats.h"
#include "tests/save/save_tester.h"

namespace folio::testing {
namespace {

namespace mw = model_writer;

// x [n, 64] -> MatMul(w) -> Relu -> y, with everything that a file says beside its graph.
mw::ModelWriter dressed_model() {
  mw::ModelWriter writer = plain_model();
  writer.graph().doc("of the graph");
  writer.graph().input("x", f32_type({"n", 64}));
  writer.graph().output("y", f32_type({"n", 64}));
  writer.graph().initializer(f32_tensor("w", {64, 64}, std::vector<float>(4096, 0.5F)));
  writer.graph().node("MatMul", {"x", "w"}, {"product"});
  writer.graph().node("Relu", {"product"}, {"y"});
  return writer;
}

class SaveModel : public ::testing::Test {
 protected:
  std::string write(const mw::ModelWriter& writer, const std::string& name = "model.onnx") {
    return folder_.write(name, writer.serialize());
  }
  TempFolder folder_;
};

TEST_F(SaveModel, KeepsWhatTheFileSaysBesideItsGraph) {
  const std::string source = write(dressed_model());
  for (const char* name : {"saved.onnx", "saved.ort"}) {
    SCOPED_TRACE(name);
    const std::string path = folder_.path(name);
    auto def = load_file(source);
    ASSERT_TRUE(def.is_ok());
    def.value().metadata = {
        {"key", "value"}, {"folio.content_id", "of the old file"}, {"empty", ""}};
    def.value().doc_string = "of the model";
    def.value().producer_name = "test";
    def.value().producer_version = "7";
    def.value().domain = "org.example";
    def.value().model_version = 3;
    const auto model = build_model(std::move(def).take(), {});
    ASSERT_TRUE(model.is_ok());
    ASSERT_TRUE(infer_shapes(model.value().get()).is_ok());
    const auto saved = save_model(*model.value(), test_evaluator(), path, {});
    ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
    const auto loaded = load_file(path);
    ASSERT_TRUE(loaded.is_ok()) << text_of(loaded.status());
    const ModelDef& out = loaded.value();
    const decltype(out.metadata) expected = {{"key", "value"}, {"empty", ""}};
    EXPECT_EQ(out.metadata, expected);
    EXPECT_EQ(out.doc_string, "of the model");
    EXPECT_EQ(out.graph_doc_string, "of the graph");
    EXPECT_EQ(out.producer_name + out.producer_version + out.domain, "test7org.example");
    EXPECT_EQ(out.model_version, 3);
    ASSERT_EQ(out.opsets.size(), 1u);
    EXPECT_EQ(out.opsets[0].version, 17);
    ASSERT_EQ(out.graph.inputs.size(), 1u);
    EXPECT_EQ(out.graph.inputs[0].type.dims.at(0).param, "n");
    EXPECT_EQ(out.graph.inputs[0].type.dims.at(1).value, 64);
  }
}

// Bytes by name of every initializer of the main graph.
std::map<std::string, std::string> bytes_of(const ModelDef& def) {
  std::map<std::string, std::string> out;
  for (const InitializerDef& each : def.graph.initializers) {
    std::string& text = out[each.name];
    text = cat(dtype_name(each.tensor.dtype()), each.tensor.shape().to_string());
    if (each.tensor.is_string()) {
      for (const std::string& one : each.tensor.span<std::string>()) text += one + ",";
    } else {
      text.append(reinterpret_cast<const char*>(each.tensor.raw()), each.tensor.bytes());
    }
  }
  return out;
}

TEST_F(SaveModel, KeepsTheBytesOfEveryElementType) {
  const std::string source = folder_.path("model.onnx");
  ASSERT_TRUE(mw::write_model_files(mw::build_types(1, mw::TypeSet::kAll), source).ok());
  auto def = load_file(source);
  ASSERT_TRUE(def.is_ok());
  const auto original = bytes_of(def.value());
  const auto model = build_model(std::move(def).take(), {});
  ASSERT_TRUE(model.is_ok());
  SaveOptions external;
  external.external_file = "weights";
  external.external_min_bytes = 1;
  for (const auto& [name, options] :
       {std::pair("a.onnx", SaveOptions()), std::pair("b.onnx", external),
        std::pair("c.ort", SaveOptions())}) {
    SCOPED_TRACE(name);
    const auto saved = save_model(*model.value(), test_evaluator(), folder_.path(name), options);
    ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
    const auto loaded = load_file(folder_.path(name));
    ASSERT_TRUE(loaded.is_ok()) << text_of(loaded.status());
    const auto found = bytes_of(loaded.value());
    EXPECT_GT(found.size(), 20u);
    for (const auto& [initializer, bytes] : found) {
      const auto at = original.find(initializer);
      ASSERT_NE(at, original.end()) << initializer;
      EXPECT_EQ(bytes, at->second) << initializer;
    }
  }
}

TEST_F(SaveModel, PutsLargeInitializersAtAlignedPlaces) {
  mw::ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({1}));
  std::vector<std::string> sum = {"x"};
  for (const int64_t count : {3, 300, 1500, 20000}) {
    sum.push_back(cat("w", count));
    writer.graph().initializer(f32_tensor(sum.back(), {count}, std::vector<float>(count, 1.0F)));
  }
  for (size_t i = 1; i < sum.size(); ++i) {
    writer.graph().node("Mul", {"x", sum[i]}, {"y" + sum[i]});
    writer.graph().output("y" + sum[i], f32_type({mw::Dim("k" + sum[i])}));
  }
  const std::string source = write(writer);
  SaveOptions external;
  external.external_file = "weights";
  for (const auto& [name, options] :
       {std::pair("a.onnx", external), std::pair("b.ort", SaveOptions())}) {
    SCOPED_TRACE(name);
    const auto saved = save_file(source, folder_.path(name), Optimize::kOff, options);
    ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
    const auto loaded = load_file(folder_.path(name));
    ASSERT_TRUE(loaded.is_ok()) << text_of(loaded.status());
    size_t in_place = 0;
    for (const InitializerDef& each : loaded.value().graph.initializers) {
      if (!each.source) continue;  // small: copied out of the file
      ++in_place;
      EXPECT_EQ(each.offset % (each.tensor.bytes() >= 65536 ? 4096 : 64), 0u) << each.name;
    }
    EXPECT_EQ(in_place, 2u);
  }
  // 12 bytes stay inside, 1200 and more do not.
  EXPECT_EQ(std::filesystem::file_size(folder_.path("weights")), 8192u + 80000u);
}

TEST_F(SaveModel, WritesSharedBytesOnce) {
  auto shared = allocate_tensor(DType::kFloat, Shape{64, 64});
  ASSERT_TRUE(shared.is_ok());
  std::fill_n(shared.value().data_mut<float>(), 4096, 0.25F);
  auto def = load_def(dressed_model().serialize());
  ASSERT_TRUE(def.is_ok());
  GraphDef& graph = def.value().graph;
  graph.initializers[0].tensor = shared.value();
  graph.initializers.push_back({"alias", shared.value(), nullptr, 0});
  graph.nodes[1].op_type = "MatMul";
  graph.nodes[1].inputs = {"product", "alias"};
  const auto model = build_model(std::move(def).take(), {});
  ASSERT_TRUE(model.is_ok());
  ASSERT_TRUE(infer_shapes(model.value().get()).is_ok());
  SaveOptions external;
  external.external_file = "weights";
  for (const auto& [name, options] :
       {std::pair("a.onnx", external), std::pair("b.ort", SaveOptions())}) {
    const auto saved = save_model(*model.value(), test_evaluator(), folder_.path(name), options);
    ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
    EXPECT_EQ(saved.value().initializers, 1u);
    EXPECT_EQ(saved.value().initializer_bytes, 16384u);
    const auto loaded = load_file(folder_.path(name));
    ASSERT_TRUE(loaded.is_ok());
    const auto& both = loaded.value().graph.initializers;
    ASSERT_EQ(both.size(), 2u);
    EXPECT_EQ(both[0].offset, both[1].offset);
    EXPECT_EQ(both[0].tensor.raw(), both[1].tensor.raw());
  }
}

TEST_F(SaveModel, RefusesOperatorsThatOnlyFolioHas) {
  const auto model = optimized(dressed_model(), Optimize::kOff);
  ASSERT_TRUE(model.is_ok());
  for (const char* domain : {"folio", "folio.nhwc"}) {
    model.value()->graph.nodes[1].domain = domain;
    const auto saved = save_model(*model.value(), test_evaluator(), folder_.path("m.onnx"), {});
    EXPECT_TRUE(fails_with(saved.status(), Code::kFail, {"m.onnx", "(Relu)", domain}));
    EXPECT_TRUE(files_in(folder_.path()).empty());
  }
}

TEST_F(SaveModel, RefusesNamesThatAreNoneOfAFileBesideTheModel) {
  const std::string source = write(dressed_model());
  for (const char* name : {"../w", "a/w", "/w", ".", "..", "m.onnx"}) {
    SaveOptions options;
    options.external_file = name;
    const auto saved = save_file(source, folder_.path("m.onnx"), Optimize::kOff, options);
    EXPECT_EQ(saved.status().code(), Code::kInvalidArgument) << name;
  }
  SaveOptions options;
  options.external_file = "w";
  EXPECT_EQ(save_file(source, folder_.path("m.ort"), Optimize::kOff, options).status().code(),
            Code::kInvalidArgument);
  EXPECT_TRUE(fails_with(save_file(source, folder_.path("no/m.onnx"), Optimize::kOff).status(),
                         Code::kNoSuchFile, {"no/m.onnx"}));
}

// The step of writing that fails next; steps that were made.
int steps_left = 0;
bool refuse_after(const char*) { return steps_left-- > 0; }

TEST_F(SaveModel, LeavesEverythingAsItWasWhereverTheDiskIsFull) {
  const std::string source = write(dressed_model());
  std::filesystem::create_directories(folder_.path("out"));
  for (const char* name : {"m.onnx", "m.ort"}) {
    SCOPED_TRACE(name);
    const std::string path = folder_.path(cat("out/", name));
    folder_.write(cat("out/", name), "old");
    SaveOptions options;
    options.max_file_bytes = 1;  // a data file too
    int steps = 0;
    for (; steps < 1000; ++steps) {
      steps_left = steps;
      NewFile::set_step_hook(refuse_after);
      const auto saved = save_file(source, path, Optimize::kOff, options);
      NewFile::set_step_hook(nullptr);
      if (saved.is_ok()) break;
      ASSERT_TRUE(fails_with(saved.status(), Code::kIo, {path, "No space left"}));
      ASSERT_EQ(contents(path), "old");
      ASSERT_EQ(files_in(folder_.path("out")), std::vector<std::string>{name});
    }
    EXPECT_GT(steps, 6);  // writes, two flushes, two links, two renames
    EXPECT_EQ(files_in(folder_.path("out")).size(), 2u);
    EXPECT_TRUE(run_file(path).is_ok());
    std::filesystem::remove_all(folder_.path("out"));
    std::filesystem::create_directories(folder_.path("out"));
  }
}

TEST_F(SaveModel, StopsWhenProgressSaysSo) {
  const std::string source = write(dressed_model());
  SaveOptions options;
  options.progress = [](uint64_t, uint64_t) { return false; };
  const auto saved = save_file(source, folder_.path("out.onnx"), Optimize::kOff, options);
  EXPECT_EQ(saved.status().code(), Code::kCancelled);
  EXPECT_EQ(files_in(folder_.path()), std::vector<std::string>{"model.onnx"});
}

TEST_F(SaveModel, CanReplaceTheFileThatItReads) {
  const std::string source = write(dressed_model());
  const auto expected = run_file(source);
  ASSERT_TRUE(expected.is_ok());
  SaveOptions options;
  options.external_file = "weights";
  for (int i = 0; i < 3; ++i) {  // the second time over its own external data
    ASSERT_TRUE(save_file(source, source, Optimize::kExtended, options).is_ok());
    const auto found = run_file(source);
    ASSERT_TRUE(found.is_ok()) << text_of(found.status());
    EXPECT_TRUE(same_values(found.value(), expected.value()));
  }
}

TEST_F(SaveModel, HoldsOneComputedConstantAtATime) {
  constexpr int64_t kSide = 2048;  // 16 MiB each
  constexpr int kConstants = 8;
  mw::ModelWriter writer = plain_model();
  writer.graph().input("x", f32_type({1, kSide}));
  const std::string bytes(kSide * kSide * 4, '\1');
  writer.graph().initializer(mw::TensorWriter("w", kF32, {kSide, kSide}).raw(bytes));
  std::string value = "x";
  for (int i = 0; i < kConstants; ++i) {
    const std::string name = cat("t", i);
    writer.graph().initializer(f32_tensor(cat("c", i), {1}, {static_cast<float>(i)}));
    writer.graph().node("Mul", {"w", cat("c", i)}, {name});
    writer.graph().node("MatMul", {value, name}, {cat("y", i)});
    value = cat("y", i);
  }
  writer.graph().output(value, f32_type({1, kSide}));
  const std::string source = write(writer);
  const auto anonymous = [] {
    const auto stats = read_memory_stats();
    return stats.is_ok() ? stats.value().anonymous : 0;
  };
  for (const char* name : {"out.onnx", "out.ort"}) {
    SCOPED_TRACE(name);
    auto def = load_file(source);
    ASSERT_TRUE(def.is_ok());
    const auto model = build_model(std::move(def).take(), {});
    ASSERT_TRUE(model.is_ok());
    ASSERT_TRUE(run_passes(model.value().get(), test_evaluator(), Optimize::kBasic).is_ok());
    const uint64_t before = anonymous();
    uint64_t most = 0;
    int calls = 0;
    SaveOptions options;
    options.progress = [&](uint64_t, uint64_t) {  // while the constant is still there
      most = std::max(most, anonymous() - before);
      ++calls;
      return true;
    };
    ASSERT_TRUE(save_model(*model.value(), test_evaluator(), folder_.path(name), options).is_ok());
    EXPECT_GE(calls, kConstants);
    EXPECT_LE(most, 2 * kSide * kSide * 4 / 1024 + 10 * 1024);
  }
}

TEST_F(SaveModel, KeepsVersionsThatOneOperatorSetCannotHoldOnlyInOrt) {
  auto def = load_def(dressed_model().serialize());
  ASSERT_TRUE(def.is_ok());
  NodeDef squeeze;
  squeeze.op_type = "Unsqueeze";
  squeeze.since_version = 11;  // axes is an attribute; from 13 on, an input
  squeeze.inputs = {"y"};
  squeeze.outputs = {"z"};
  AttributeDef axes;
  axes.name = "axes";
  axes.type = AttributeDef::Type::kInts;
  axes.ints = {0};
  squeeze.attributes = {axes};
  NodeDef again = squeeze;
  again.since_version = 0;
  again.attributes.clear();
  again.inputs = {"z", "axis"};
  again.outputs = {"u"};
  def.value().graph.nodes.push_back(squeeze);
  def.value().graph.nodes.push_back(again);
  auto axis = allocate_tensor(DType::kInt64, Shape{1});
  *axis.value().data_mut<int64_t>() = 0;
  def.value().graph.initializers.push_back({"axis", axis.value(), nullptr, 0});
  def.value().graph.outputs[0] = {"u", {}};
  const auto model = build_model(std::move(def).take(), {});
  ASSERT_TRUE(model.is_ok()) << text_of(model.status());
  ASSERT_TRUE(infer_shapes(model.value().get()).is_ok());
  const auto onnx = save_model(*model.value(), test_evaluator(), folder_.path("m.onnx"), {});
  EXPECT_TRUE(fails_with(onnx.status(), Code::kNotImplemented, {"Unsqueeze", "save as .ort"}));
  ASSERT_TRUE(save_model(*model.value(), test_evaluator(), folder_.path("m.ort"), {}).is_ok());
  const auto found = run_file(folder_.path("m.ort"));
  ASSERT_TRUE(found.is_ok()) << text_of(found.status());
  EXPECT_EQ(found.value()[0].tensor().rank(), 4);
}

class DataFile : public SaveModel {
 protected:
  void SetUp() override {
    const std::string source = write(dressed_model());
    SaveOptions options;
    options.max_file_bytes = 1;
    ASSERT_TRUE(save_file(source, path(), Optimize::kOff, options).is_ok());
    data_ = contents(path() + ".data");
    ASSERT_EQ(data_.size(), OrtDataFile::kHeaderBytes + 16384);
    ASSERT_TRUE(load_file(path()).is_ok());
  }
  std::string path() const { return folder_.path("m.ort"); }
  void expect(const std::string& data, const std::vector<std::string>& parts) {
    folder_.write("m.ort.data", data);
    EXPECT_TRUE(fails_with(load_file(path()).status(), Code::kInvalidGraph, parts));
  }
  std::string data_;
};

TEST_F(DataFile, IsRefusedWhenItIsNotTheModels) {
  std::filesystem::remove(path() + ".data");
  EXPECT_TRUE(fails_with(load_file(path()).status(), Code::kNoSuchFile, {"m.ort.data"}));
  expect(data_.substr(0, data_.size() - 1), {"m.ort.data", "20479", "20480"});
  std::string other = data_;
  other[24] = static_cast<char>(other[24] ^ 1);
  expect(other, {"m.ort.data", "another model"});
  other = data_;
  other[0] = 'X';
  expect(other, {"m.ort.data", "FOLIODAT"});
}

TEST_F(DataFile, DoesNotShowInTheModelsMetadata) {
  const auto loaded = load_file(path());
  ASSERT_TRUE(loaded.is_ok());
  EXPECT_TRUE(loaded.value().metadata.empty());
}

TEST(OrtDataBinding, RefusesTextThatIsNone) {
  const std::string digest(32, 'a');
  EXPECT_TRUE(OrtDataFile::parse_binding("a b.data 4096 " + digest).is_ok());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("x 4096"), "m.data 4095 " + digest,
        "m.data -1 " + digest, "m.data 4096 " + digest + "0",
        "m.data 4096 " + digest.substr(1) + "g", "../m.data 4096 " + digest, " 4096 " + digest,
        "m.data  " + digest}) {
    EXPECT_EQ(OrtDataFile::parse_binding(text).status().code(), Code::kInvalidGraph) << text;
  }
}

// x [2] -> Loop of two rounds -> y = x + 2 w. The body's state is called x too, and what it reads
// of the graph around it is w, or w's other name.
mw::ModelWriter shadowing_model(const std::string& state) {
  mw::ModelWriter writer = plain_model();
  mw::GraphWriter& graph = writer.graph();
  graph.input("x", f32_type({2}));
  graph.input("w", f32_type({2}));
  graph.output("y", f32_type({2}));
  graph.initializer(i64_tensor("rounds", {}, {2}));
  graph.node("Identity", {"w"}, {"same"});
  mw::GraphWriter body("body");
  body.input("round", mw::Type::tensor(kI64, {}));
  body.input("go", mw::Type::tensor(kBoolean, {}));
  body.input(state, f32_type({2}));
  body.node("Identity", {"go"}, {"still"});
  body.node("Add", {state, "same"}, {"next"});
  body.output("still", mw::Type::tensor(kBoolean, {}));
  body.output("next", f32_type({2}));
  graph.node("Loop", {"rounds", "", "x"}, {"y"}).attr_graph("body", body);
  return writer;
}

TEST_F(SaveModel, InputsOfSubgraphsKeepNamesThatValuesAroundThemHave) {
  for (const std::string state : {"x", "w"}) {
    const std::string source = write(shadowing_model(state));
    const auto expected = run_file(source);
    ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
    for (const Optimize level : {Optimize::kOff, Optimize::kExtended}) {
      for (const char* name : {"saved.onnx", "saved.ort"}) {
        SCOPED_TRACE(cat(state, " ", name, " level ", static_cast<int>(level)));
        const std::string path = folder_.path(name);
        const auto saved = save_file(source, path, level);
        ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
        const auto found = run_file(path);
        ASSERT_TRUE(found.is_ok()) << text_of(found.status());
        EXPECT_TRUE(same_values(found.value(), expected.value()));
        const auto def = load_file(path);
        ASSERT_TRUE(def.is_ok());
        const NodeDef& loop = def.value().graph.nodes.back();
        ASSERT_EQ(loop.op_type, "Loop");
        const std::string kept = loop.attributes[0].graphs[0]->inputs[2].name;
        // Without Identity the body reads the outer w itself.
        const bool must_go = state == "w" && level == Optimize::kExtended;
        EXPECT_EQ(kept == state, !must_go) << kept;
      }
    }
  }
}

}  // namespace
}  // namespace folio::testing
