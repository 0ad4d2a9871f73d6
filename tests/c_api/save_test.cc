// ModelSave, and models that come back from what it wrote.
#include <cstring>

#include "tests/c_api/capi_support.h"
#include "tools/make_model/onnx_model.h"

namespace capi_test {
namespace {

using folio::testing::contents;

Model open(const std::string& path) {
  return make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                     static_cast<const FolioModelOptions*>(nullptr));
}

TEST(ModelSave, WritesWhatOpensAgain) {
  const TempFolder folder;
  const auto model = open(folder.write("add.onnx", add_model()));
  for (const char* format : {"onnx", "ort"}) {
    const std::string path = folder.path("saved." + std::string(format));
    auto saved = sized<FolioSaveInfo>();
    ASSERT_CALL(api().ModelSave(model.get(), path.c_str(), nullptr, &saved));
    EXPECT_EQ(saved.file_bytes, contents(path).size());
    EXPECT_EQ(saved.data_bytes, 0u);
    EXPECT_EQ(saved.node_count, 2u);
    EXPECT_EQ(saved.initializer_count, 1u);
    EXPECT_EQ(saved.initializer_bytes, 12u);
    const auto again = open(path);
    auto info = sized<FolioModelInfo>();
    ASSERT_CALL(api().ModelGetInfo(again.get(), &info));
    EXPECT_STREQ(info.format, format);
    EXPECT_EQ(info.node_count, 2u);
  }
}

TEST(ModelSave, OptionsAreChecked) {
  const TempFolder folder;
  const auto model = open(folder.write("add.onnx", add_model()));
  const std::string path = folder.path("saved.onnx");
  auto options = sized<FolioSaveOptions>();
  options.optimize = "most";
  EXPECT_TRUE(fails(api().ModelSave(model.get(), path.c_str(), &options, nullptr),
                    FOLIO_INVALID_ARGUMENT, {"none, basic, extended or all"}));
  options = sized<FolioSaveOptions>();
  options.format = "onnx";
  EXPECT_TRUE(fails(api().ModelSave(model.get(), path.c_str(), &options, nullptr),
                    FOLIO_INVALID_ARGUMENT, {"ONNX or ORT"}));
  options.size = 8;
  EXPECT_TRUE(fails(api().ModelSave(model.get(), path.c_str(), &options, nullptr),
                    FOLIO_INVALID_ARGUMENT, {"FolioSaveOptions"}));
  FolioSaveInfo small = {};
  EXPECT_TRUE(fails(api().ModelSave(model.get(), path.c_str(), nullptr, &small),
                    FOLIO_INVALID_ARGUMENT, {"FolioSaveInfo"}));
  EXPECT_TRUE(fails(api().ModelSave(nullptr, path.c_str(), nullptr, nullptr),
                    FOLIO_INVALID_ARGUMENT, {"model"}));
  EXPECT_TRUE(
      fails(api().ModelSave(model.get(), folder.path("no/m.onnx").c_str(), nullptr, nullptr),
            FOLIO_NO_SUCHFILE, {"no/m.onnx"}));
  EXPECT_EQ(contents(path), "") << "nothing was written";
}

TEST(ModelSave, ProgressCancels) {
  const TempFolder folder;
  const auto model = open(folder.write("add.onnx", add_model()));
  auto options = sized<FolioSaveOptions>();
  options.progress = [](void*, const char*, double) { return 1; };
  EXPECT_TRUE(fails(api().ModelSave(model.get(), folder.path("m.ort").c_str(), &options, nullptr),
                    FOLIO_CANCELLED, {"cancelled"}));
}

// y = x * w with w large enough to stay where the file has it.
TEST(OrtBytes, AreUsedDirectlyOnlyWhenAskedFor) {
  const TempFolder folder;
  constexpr int64_t kCount = 2048;
  model_writer::ModelWriter writer(8);
  writer.opset("", 17);
  writer.graph().input("x", model_writer::Type::tensor(model_writer::ElementType::kFloat, {1}));
  writer.graph().initializer(
      model_writer::f32_tensor("w", {kCount}, std::vector<float>(kCount, 2.0F)));
  writer.graph().node("Mul", {"x", "w"}, {"y"});
  writer.graph().output("y",
                        model_writer::Type::tensor(model_writer::ElementType::kFloat, {kCount}));
  const auto model = open(folder.write("mul.onnx", writer.serialize()));
  ASSERT_CALL(api().ModelSave(model.get(), folder.path("mul.ort").c_str(), nullptr, nullptr));
  const std::string original = contents(folder.path("mul.ort"));
  const float two = 2.0F;
  const float five = 5.0F;
  for (const bool directly : {false, true}) {
    std::string bytes = original;
    auto options = make<SessionOptions>(api().CreateSessionOptions);
    ASSERT_CALL(api().AddSessionConfigEntry(options.get(), "session.use_ort_model_bytes_directly",
                                            directly ? "1" : "0"));
    const auto session =
        make<Session>(api().CreateSessionFromArray, static_cast<const FolioEnv*>(nullptr),
                      static_cast<const void*>(bytes.data()), bytes.size(),
                      static_cast<const FolioSessionOptions*>(options.get()));
    std::vector<float> twos(kCount, two);
    const size_t at = bytes.find(std::string(reinterpret_cast<char*>(twos.data()), kCount * 4));
    ASSERT_NE(at, std::string::npos);
    for (int64_t i = 0; i < kCount; ++i) std::memcpy(&bytes[at + 4 * i], &five, sizeof five);
    const auto x = floats({1.0F}, {1});
    const char* input_names[] = {"x"};
    const char* output_names[] = {"y"};
    FolioValue* const inputs[] = {x.get()};
    FolioValue* output = nullptr;
    ASSERT_CALL(
        api().Run(session.get(), nullptr, input_names, inputs, 1, output_names, 1, &output));
    const Value y(output);
    EXPECT_EQ(floats_of(y.get())[0], directly ? five : two);
  }
}

}  // namespace
}  // namespace capi_test
