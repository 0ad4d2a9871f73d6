// Sessions that save what they optimized, and models loaded back with ONNX Runtime's keys.
#include "core/os/mapped_file.h"
#include "tests/support/model_tester.h"
#include "tests/support/temp_folder.h"

namespace folio {
namespace {

model_writer::ModelWriter relu_model() {
  auto writer = plain_model();
  writer.graph().input("x", f32_type({"n", 64}));
  writer.graph().output("y", f32_type({"n", 64}));
  writer.graph().initializer(f32_tensor("w", {64, 64}, std::vector<float>(4096, 0.5F)));
  writer.graph().initializer(f32_tensor("b", {64}, std::vector<float>(64, -1.0F)));
  writer.graph().node("MatMul", {"x", "w"}, {"product"});
  writer.graph().node("Identity", {"product"}, {"same"});
  writer.graph().node("Add", {"same", "b"}, {"sum"});
  writer.graph().node("Relu", {"sum"}, {"y"});
  return writer;
}

Result<Ref<Session>> open(const std::string& path, const ModelOptions& model,
                          const SessionOptions& session) {
  FOLIO_TRY(Ref<ModelFile> file, ModelFile::open(path, model));
  return Session::create(std::move(file), session);
}

std::vector<float> result_of(Session& session) {
  auto x = allocate_tensor(DType::kFloat, Shape{1, 64});
  for (int i = 0; i < 64; ++i) x.value().data_mut<float>()[i] = static_cast<float>(i) * 0.01F;
  const auto outputs = run_all(session, {{"x", Value(x.value())}});
  return outputs.is_ok() ? floats_of(outputs.value()[0]) : std::vector<float>();
}

class SessionSaving : public ::testing::Test {
 protected:
  void SetUp() override {
    source_ = folder_.write("model.onnx", relu_model().serialize());
    options_.saving.path = folder_.path("saved.ort");
  }
  testing::TempFolder folder_;
  std::string source_;
  SessionOptions options_;
};

TEST_F(SessionSaving, WritesWhatLoadsAndComputesTheSame) {
  options_.saving.external_file = "weights";
  options_.saving.path = folder_.path("saved.onnx");
  const auto first = open(source_, {}, options_);
  ASSERT_TRUE(first.is_ok()) << text_of(first.status());
  EXPECT_TRUE(std::filesystem::exists(folder_.path("weights")));
  const auto second = open(folder_.path("saved.onnx"), {}, {});
  ASSERT_TRUE(second.is_ok()) << text_of(second.status());
  EXPECT_EQ(second.value()->model().info().node_count, 3) << "the Identity is gone";
  EXPECT_EQ(result_of(*first.value()), result_of(*second.value()));
}

TEST_F(SessionSaving, SavesForEverySessionThatAsksThoughTheProgramIsShared) {
  auto file = ModelFile::open(source_, {});
  ASSERT_TRUE(file.is_ok());
  const auto first = Session::create(file.value(), {});
  ASSERT_TRUE(first.is_ok());
  const auto second = Session::create(file.value(), options_);
  ASSERT_TRUE(second.is_ok());
  EXPECT_TRUE(std::filesystem::exists(options_.saving.path));
}

TEST_F(SessionSaving, FollowsTheFormatKeyRatherThanTheName) {
  options_.saving.path = folder_.path("saved.bin");
  options_.saving.format = "ORT";
  ASSERT_TRUE(open(source_, {}, options_).is_ok());
  const auto loaded = ModelFile::open(options_.saving.path, {});
  ASSERT_TRUE(loaded.is_ok());
  EXPECT_EQ(loaded.value()->info().format, "ort");
}

TEST_F(SessionSaving, WithoutOptimizationKeepsTheNodes) {
  options_.optimize = Optimize::kOff;
  ASSERT_TRUE(open(source_, {}, options_).is_ok());
  const auto loaded = ModelFile::open(options_.saving.path, {});
  ASSERT_TRUE(loaded.is_ok());
  EXPECT_EQ(loaded.value()->info().node_count, 4);
}

TEST_F(SessionSaving, FailsTheSessionWhenTheFileCannotBeWritten) {
  options_.saving.path = folder_.path("no/saved.onnx");
  EXPECT_TRUE(
      fails_with(open(source_, {}, options_).status(), Code::kNoSuchFile, {"no/saved.onnx"}));
}

TEST_F(SessionSaving, RefusesToSavePacksWithPrepackingDisabled) {
  options_.saving.packs = true;
  options_.prepack = false;
  EXPECT_TRUE(fails_with(open(source_, {}, options_).status(), Code::kInvalidArgument,
                         {"session.disable_prepacking"}));
}

TEST_F(SessionSaving, RefusesLevelsThatOnlyFolioCanRun) {
  auto file = ModelFile::open(source_, {});
  ASSERT_TRUE(file.is_ok());
  InlineParallel threads;
  for (const Optimize level : {Optimize::kUnpacked, Optimize::kAll}) {
    const auto saved = file.value()->save(options_.saving, level, {}, {}, threads, nullptr);
    EXPECT_EQ(saved.status().code(), Code::kInvalidArgument);
  }
}

TEST_F(SessionSaving, OwnBytesOfAnOrtModelAreNotItsMapping) {
  ASSERT_TRUE(open(source_, {}, options_).is_ok());
  ModelOptions own;
  own.use_ort_bytes = false;
  const auto loading_of = [](const std::string& path, const ModelOptions& options) {
    const auto file = ModelFile::open(path, options);
    return file.is_ok() ? as_mapped_file(*file.value()->source())->loading() : FileLoading::kMap;
  };
  EXPECT_EQ(loading_of(options_.saving.path, own), FileLoading::kRead);
  EXPECT_EQ(loading_of(options_.saving.path, {}), FileLoading::kMap);
  EXPECT_EQ(loading_of(source_, own), FileLoading::kMap) << "the keys are for .ort";
}

TEST_F(SessionSaving, InitializersDoNotTakeTheModelsOwnName) {
  const auto file = ModelFile::open(source_, {}).take();
  InlineParallel threads;
  ModelSaving saving;
  const auto name = std::filesystem::path(source_).filename().string();
  saving.path = source_ + ".saved.onnx";
  saving.external_file = name;
  saving.external_min_bytes = 1;
  EXPECT_TRUE(fails_with(file->save(saving, Optimize::kBasic, {}, {}, threads, nullptr).status(),
                         Code::kInvalidArgument, {name, "is the model that is saved"}));
  EXPECT_TRUE(ModelFile::open(source_, {}).is_ok());
}

}  // namespace
}  // namespace folio
