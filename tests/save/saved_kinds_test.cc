// Every kind of model that make_model knows, saved in every form, computes what it did before.
#include "tests/save/save_tester.h"

namespace folio::testing {
namespace {

namespace mw = model_writer;

struct Kind {
  const char* name;
  mw::ModelFiles (*build)();
  // True: a type or operator of it has no place in an .ort file.
  bool onnx_only = false;
};

mw::ModelFiles mlp(const std::string& external) {
  mw::MlpOptions options;
  options.width = 64;
  options.external = external;
  return mw::build_mlp(options);
}

const Kind kKinds[] = {
    {"mlp", [] { return mlp(""); }},
    {"mlp_external", [] { return mlp("weights.bin"); }},
    {"cnn", [] { return mw::build_cnn(1); }},
    {"control", [] { return mw::build_control(1); }},
    {"int4", [] { return mw::build_int4({}); }},
    {"fold", [] { return mw::build_fold({}); }},
    {"aliased", [] { return mw::build_aliased(1, "aliased.bin"); }},
    {"shapes", [] { return mw::build_shapes(1); }},
    {"types", [] { return mw::build_types(1, mw::TypeSet::kStandard); }},
    {"functions", [] { return mw::build_functions(1); }},
    {"sequences", [] { return mw::build_sequences(1, mw::SequenceOutputs::kTensors); }, true},
    {"deep", [] { return mw::build_deep(1, 5); }},
    {"many", [] { return mw::build_many(1, 50); }},
};

class SavedKind : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    source_ = folder_.path("model.onnx");
    ASSERT_EQ(mw::write_model_files(GetParam().build(), source_).error, "");
    auto expected = run_file(source_);
    ASSERT_TRUE(expected.is_ok()) << text_of(expected.status());
    expected_ = std::move(expected).take();
  }

  void expect_same(const std::string& name, Optimize level, const SaveOptions& options) {
    SCOPED_TRACE(cat(name, " level ", static_cast<int>(level)));
    std::filesystem::create_directories(folder_.path("out"));
    const std::string path = folder_.path("out/" + name);
    const auto saved = save_file(source_, path, level, options);
    if (GetParam().onnx_only && path.ends_with(".ort")) {
      EXPECT_TRUE(fails_with(saved.status(), Code::kNotImplemented, {path}));
      EXPECT_TRUE(files_in(folder_.path("out")).empty());
      return;
    }
    ASSERT_TRUE(saved.is_ok()) << text_of(saved.status());
    const auto found = run_file(path);
    ASSERT_TRUE(found.is_ok()) << text_of(found.status());
    EXPECT_TRUE(same_values(found.value(), expected_));
    std::filesystem::remove_all(folder_.path("out"));
  }

  TempFolder folder_;
  std::string source_;
  std::vector<Value> expected_;
};

TEST_P(SavedKind, ComputesTheSameAtEveryLevelAndInEveryForm) {
  for (const Optimize level : {Optimize::kOff, Optimize::kBasic, Optimize::kExtended}) {
    expect_same("inline.onnx", level, {});
    SaveOptions external;
    external.external_file = "inline.weights";
    external.external_min_bytes = 1;
    expect_same("external.onnx", level, external);
    expect_same("plain.ort", level, {});
    SaveOptions small;
    small.max_file_bytes = 1;
    expect_same("large.onnx", level, small);
    expect_same("large.ort", level, small);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SavedKind, ::testing::ValuesIn(kKinds),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace folio::testing
