// Model files that change: FOLIO_MODEL_CHANGED, the guard, ModelReload.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/c_api/capi_support.h"
#include "tools/make_model/kinds.h"

namespace capi_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWidth = 256;

std::string write_mlp(const TempFolder& folder, const std::string& name, uint64_t seed) {
  model_writer::MlpOptions mlp;
  mlp.layers = 2;
  mlp.width = kWidth;
  mlp.seed = seed;
  const auto written =
      model_writer::write_model_files(model_writer::build_mlp(mlp), folder.path(name));
  EXPECT_TRUE(written.ok()) << written.error;
  return folder.path(name);
}

// Null and a failed test when it cannot be opened.
Model open(const std::string& path, const char* guard = nullptr) {
  const auto options = make<ModelOptions>(api().CreateModelOptions);
  if (guard) {
    EXPECT_CALL(api().AddModelConfigEntry(options.get(), "folio.sigbus_guard", guard));
  }
  return make<Model>(api().OpenModel, static_cast<const FolioEnv*>(nullptr), path.c_str(),
                     options.get());
}

// Weights stay in the file, so that every run reads them there.
Session in_place(const Model& model) {
  const auto options = make<SessionOptions>(api().CreateSessionOptions);
  EXPECT_CALL(api().AddSessionConfigEntry(options.get(), "session.disable_prepacking", "1"));
  return make<Session>(api().CreateSessionFromModel, model.get(), options.get());
}

// The outputs, or none and `status`.
std::vector<float> run(const Session& session, FolioStatus** status) {
  const Value x = floats(std::vector<float>(kWidth, 0.5F), {1, kWidth});
  const char* const input = "x";
  const char* const output = "y";
  FolioValue* const inputs[] = {x.get()};
  FolioValue* y = nullptr;
  *status = api().Run(session.get(), nullptr, &input, inputs, 1, &output, 1, &y);
  if (*status) return {};
  const Value owned(y);
  const void* data = nullptr;
  EXPECT_CALL(api().GetTensorData(y, &data));
  const auto* first = static_cast<const float*>(data);
  return std::vector<float>(first, first + kWidth);
}

FolioErrorCode code_of_run(const Session& session) {
  FolioStatus* status = nullptr;
  run(session, &status);
  const FolioErrorCode code = status ? api().GetErrorCode(status) : FOLIO_OK;
  api().ReleaseStatus(status);
  return code;
}

// In a child: the guard is for the life of a process. The file is cut right after a run, when the
// library has looked at it less than its interval ago: it is the fault that the run survives.
int truncated_in_child(const char* guard) {
  const TempFolder folder;
  const std::string path = write_mlp(folder, "mlp.onnx", 1);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    const Model model = open(path, guard);
    const Session session = in_place(model);
    if (code_of_run(session) != FOLIO_OK) _exit(1);
    fs::resize_file(path, 4096);
    for (int i = 0; i < 3; ++i) {
      if (code_of_run(session) != FOLIO_MODEL_CHANGED) _exit(2);
    }
    _exit(7);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Files, ATruncatedModelIsAnErrorOfTheRunWithTheGuard) {
  const int status = truncated_in_child("1");
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(Files, TheGuardIsOffUnlessItIsAskedFor) {
  for (const char* guard : {static_cast<const char*>(nullptr), "0"}) {
    const int status = truncated_in_child(guard);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
  }
}

TEST(Files, AModelThatWasWrittenToIsNamed) {
  const TempFolder folder;
  const std::string path = write_mlp(folder, "mlp.onnx", 1);
  const Model model = open(path);
  const Session session = in_place(model);
  EXPECT_EQ(code_of_run(session), FOLIO_OK);
  std::ofstream(path, std::ios::app) << "more";
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  FolioStatus* status = nullptr;
  run(session, &status);
  EXPECT_TRUE(fails(status, FOLIO_MODEL_CHANGED, {path.c_str()}));
}

TEST(Files, ReloadOpensWhatIsThereNowWhileTheOldGoesOn) {
  const TempFolder folder;
  const std::string path = write_mlp(folder, "mlp.onnx", 1);
  const Model model = open(path);
  const Session session = in_place(model);
  FolioStatus* status = nullptr;
  const std::vector<float> before = run(session, &status);
  ASSERT_CALL(status);
  fs::rename(write_mlp(folder, "new.onnx", 2), path);
  auto reloaded = make<Model>(api().ModelReload, model.get());
  ASSERT_TRUE(reloaded);
  auto info = sized<FolioModelInfo>();
  ASSERT_CALL(api().ModelGetInfo(reloaded.get(), &info));
  EXPECT_EQ(info.path, path);
  const Session newer = in_place(reloaded);
  reloaded.reset();
  EXPECT_NE(run(newer, &status), before);
  ASSERT_CALL(status);
  EXPECT_EQ(run(session, &status), before);
  ASSERT_CALL(status);
}

TEST(Files, ReloadFailsAsOpenDoesAndForModelsFromMemory) {
  const TempFolder folder;
  const std::string path = folder.write("add.onnx", add_model());
  const Model model = open(path);
  fs::remove(path);
  FolioModel* out = nullptr;
  EXPECT_TRUE(fails(api().ModelReload(model.get(), &out), FOLIO_NO_SUCHFILE, {path.c_str()}));
  EXPECT_TRUE(fails(api().ModelReload(nullptr, &out), FOLIO_INVALID_ARGUMENT, {"model"}));
  EXPECT_TRUE(fails(api().ModelReload(model.get(), nullptr), FOLIO_INVALID_ARGUMENT, {"out"}));
  const std::string bytes = add_model();
  const auto memory =
      make<Model>(api().OpenModelFromMemory, static_cast<const FolioEnv*>(nullptr),
                  static_cast<const void*>(bytes.data()), bytes.size(),
                  static_cast<FolioReleaseFunction>(nullptr), static_cast<void*>(nullptr),
                  static_cast<const FolioModelOptions*>(nullptr));
  EXPECT_TRUE(fails(api().ModelReload(memory.get(), &out), FOLIO_INVALID_ARGUMENT, {"memory"}));
  EXPECT_EQ(out, nullptr);
}

}  // namespace
}  // namespace capi_test
