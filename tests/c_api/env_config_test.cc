// FOLIO_CONFIG and FOLIO_PACK_STORE are read once: each test has a process of its own.
#include <stdlib.h>
#include <unistd.h>

#include "tests/c_api/capi_support.h"

namespace capi_test {
namespace {

// y = x @ w, w [64, 64]: large enough for a pack file.
std::string large_model() {
  model_writer::ModelWriter model(8);
  model.opset("", 17);
  model_writer::GraphWriter& graph = model.graph();
  graph.input("x", model_writer::Type::tensor(model_writer::ElementType::kFloat, {"batch", 64}));
  graph.initializer(model_writer::f32_tensor("w", {64, 64}, std::vector<float>(64 * 64, 0.5F)));
  graph.node("MatMul", {"x", "w"}, {"y"});
  graph.output("y", model_writer::Type::tensor(model_writer::ElementType::kFloat, {"batch", 64}));
  return model.serialize();
}

class EnvConfig : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  // Ends the child, which runs the test from its beginning and so has a folder of its own: 0 if
  // nothing failed in it.
  [[noreturn]] void end_child() {
    std::filesystem::remove_all(folder_.path(""));
    _exit(HasFailure() ? 1 : 0);
  }
  TempFolder folder_;
};

bool is_profiled(const FolioSession* session) {
  uint64_t start = 0;
  EXPECT_CALL(api().SessionGetProfilingStartTime(session, &start));
  return start != 0;
}

TEST_F(EnvConfig, IsWhereOptionsBegin) {
  EXPECT_EXIT(
      {
        const std::string config = " folio.packing = load ;; folio.profile=" + folder_.path("p");
        setenv("FOLIO_CONFIG", config.c_str(), 1);
        EXPECT_TRUE(is_profiled(session_of(add_model()).get())) << "without options";
        const auto options = make<SessionOptions>(api().CreateSessionOptions);
        EXPECT_TRUE(is_profiled(session_of(add_model(), options.get()).get()));
        EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "folio.profile", ""));
        EXPECT_FALSE(is_profiled(session_of(add_model(), options.get()).get()))
            << "the program's own word counts";
        end_child();
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(EnvConfig, ThatIsWrongIsAWarning) {
  EXPECT_EXIT(
      {
        const std::string config =
            "folio.pack_ing=load;nonsense;folio.profile=" + folder_.path("p");
        setenv("FOLIO_CONFIG", config.c_str(), 1);
        EXPECT_TRUE(is_profiled(session_of(add_model()).get()));
        end_child();
      },
      testing::ExitedWithCode(0), "FOLIO_CONFIG.*folio.packing(.|\n)*nonsense");
}

TEST_F(EnvConfig, ModelKeysServeModels) {
  EXPECT_EXIT(
      {
        setenv("FOLIO_CONFIG", "session.load_model_format=ORT", 1);
        const std::string path = folder_.write("m.onnx", add_model());
        FolioModel* model = nullptr;
        EXPECT_FALSE(is_ok(api().OpenModel(nullptr, path.c_str(), nullptr, &model)));
        const auto options = make<ModelOptions>(api().CreateModelOptions);
        EXPECT_FALSE(is_ok(api().OpenModel(nullptr, path.c_str(), options.get(), &model)));
        EXPECT_CALL(api().AddModelConfigEntry(options.get(), "session.load_model_format", "ONNX"));
        EXPECT_CALL(api().OpenModel(nullptr, path.c_str(), options.get(), &model));
        api().ReleaseModel(model);
        end_child();
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(EnvConfig, PackStoreIsUsedByEverySession) {
  EXPECT_EXIT(
      {
        const std::string store = folder_.path("store");
        std::filesystem::create_directory(store);
        std::filesystem::permissions(store, std::filesystem::perms::owner_all);
        setenv("FOLIO_PACK_STORE", store.c_str(), 1);
        const std::string path = folder_.write("m.onnx", large_model());
        FolioSession* raw = nullptr;
        EXPECT_CALL(api().CreateSession(nullptr, path.c_str(), nullptr, &raw));
        const Session session(raw);
        int32_t is_packed = 0;
        EXPECT_CALL(api().SessionWaitPacked(raw, -1, &is_packed));
        EXPECT_FALSE(std::filesystem::is_empty(store));
        end_child();
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace capi_test
