// Files that change: what loads and runs say about them, and how a model is opened again.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/base/log.h"
#include "core/os/sigbus_guard.h"
#include "tests/support/changing_source.h"
#include "tests/support/model_tester.h"
#include "tests/support/ort_writer.h"
#include "tests/support/temp_folder.h"
#include "tools/make_model/kinds.h"

namespace folio {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int64_t kWidth = 512;  // weights of 1 MB each
const std::vector<NamedValue>& input() {
  static const std::vector<NamedValue> made{
      {"x", make_tensor<float>({1, kWidth}, std::vector<float>(kWidth, 0.5F))}};
  return made;
}

// Two layers with inline or external weights, in a folder that goes with the test.
class ModelOnDisk {
 public:
  explicit ModelOnDisk(const std::string& external = "", uint64_t seed = 1) {
    write(path(), external, seed);
  }
  void write(const std::string& path, const std::string& external, uint64_t seed) const {
    model_writer::MlpOptions mlp;
    mlp.layers = 2;
    mlp.width = kWidth;
    mlp.external = external;
    mlp.seed = seed;
    const auto written = model_writer::write_model_files(model_writer::build_mlp(mlp), path);
    EXPECT_TRUE(written.ok()) << written.error;
  }
  std::string path() const { return folder_.path("mlp.onnx"); }
  std::string in_folder(const std::string& name) const { return folder_.path(name); }

 private:
  testing::TempFolder folder_;
};

void overwrite_a_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(fs::file_size(path) / 2));
  file.put('\x11');
}

// Weights used in place, so that runs read the file.
SessionOptions in_place(OnFileChange on_change = OnFileChange::kError) {
  SessionOptions options;
  options.prepack = false;
  options.on_file_change = on_change;
  return options;
}

Ref<Session> session_of(const std::string& path) { return folio::session_of(path, in_place()); }

Status run_status(Session& session) { return run_all(session, input()).status(); }

// What runs say once the last look at the files is too old to count.
Status status_after_a_while(Session& session) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(FileWatch::kIntervalNs));
  return run_status(session);
}

std::atomic<int> g_warnings{0};
void count_warnings(void*, LogLevel, const char* text) {
  if (std::string(text).find("folio.on_file_change") != std::string::npos) ++g_warnings;
}

TEST(FileChange, AModelThatWasWrittenToGivesErrorsUntilItIsOpenedAgain) {
  const ModelOnDisk model;
  const Ref<Session> session = session_of(model.path());
  ASSERT_TRUE(session);
  EXPECT_TRUE(run_status(*session).is_ok());
  overwrite_a_byte(model.path());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(fails_with(status_after_a_while(*session), Code::kModelChanged, {model.path()}));
  }
  EXPECT_TRUE(fails_with(run_status(*session), Code::kModelChanged, {"written to"}))
      << "also at once, after it was found";
  SessionOptions other;  // a program of its own, and so a look at the bytes
  other.free_dims = {{"batch", 1}};
  EXPECT_EQ(Session::create(session->model_ref(), other).status().code(), Code::kModelChanged);
  EXPECT_EQ(Session::create(session->model_ref(), {}).status().code(), Code::kModelChanged)
      << "also where it takes what another session compiled";
  const Ref<Session> again = session_of(model.path());
  ASSERT_TRUE(again);
  EXPECT_TRUE(run_status(*again).is_ok());
  EXPECT_EQ(session->metrics().failed, 4U);
}

TEST(FileChange, AChangeIsFoundDuringARunToo) {
  const ModelOnDisk model;
  const Ref<Session> session = session_of(model.path());
  ASSERT_TRUE(session);
  EXPECT_TRUE(run_status(*session).is_ok());
  overwrite_a_byte(model.path());
  const auto start = std::chrono::steady_clock::now();
  Status status = run_status(*session);
  while (status.is_ok() && std::chrono::steady_clock::now() - start < milliseconds(5000)) {
    status = run_status(*session);
  }
  EXPECT_EQ(status.code(), Code::kModelChanged);
}

TEST(FileChange, ExternalDataCountAndAreNamed) {
  const ModelOnDisk model("weights.bin");
  const Ref<Session> session = session_of(model.path());
  ASSERT_TRUE(session);
  EXPECT_EQ(session->model().info().path, model.path());
  overwrite_a_byte(model.in_folder("weights.bin"));
  EXPECT_TRUE(fails_with(status_after_a_while(*session), Code::kModelChanged, {"weights.bin"}));
}

TEST(FileChange, WarnIsOneLinePerModelAndRunsGoOn) {
  const ModelOnDisk model("weights.bin");
  const Ref<Session> session = folio::session_of(model.path(), in_place(OnFileChange::kWarn));
  const auto other = Session::create(session->model_ref(), in_place(OnFileChange::kWarn));
  const auto strict = Session::create(session->model_ref(), in_place());
  ASSERT_TRUE(session && other.is_ok() && strict.is_ok());
  overwrite_a_byte(model.path());
  overwrite_a_byte(model.in_folder("weights.bin"));
  g_warnings = 0;
  set_log(count_warnings, nullptr, LogLevel::kWarning);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(status_after_a_while(*session).is_ok());
  EXPECT_TRUE(run_status(*other.value()).is_ok());
  set_log(nullptr, nullptr, LogLevel::kWarning);
  EXPECT_EQ(g_warnings, 1);
  EXPECT_EQ(run_status(*strict.value()).code(), Code::kModelChanged) << "warned, not excused";
}

TEST(FileChange, NewNamesLinksAndModesAreNoChange) {
  const ModelOnDisk model("weights.bin");
  const Ref<Session> session = session_of(model.path());
  ASSERT_TRUE(session);
  fs::create_hard_link(model.path(), model.in_folder("link.onnx"));
  EXPECT_TRUE(status_after_a_while(*session).is_ok());
  ASSERT_EQ(::chmod(model.path().c_str(), 0400), 0);
  EXPECT_TRUE(status_after_a_while(*session).is_ok());
  fs::create_directory(model.in_folder("new"));
  model.write(model.in_folder("new/mlp.onnx"), "weights.bin", 2);
  for (const char* name : {"mlp.onnx", "weights.bin"}) {
    fs::rename(model.in_folder(std::string("new/") + name), model.in_folder(name));
  }
  EXPECT_TRUE(status_after_a_while(*session).is_ok());
}

TEST(FileWatch, AsksTheFileSystemAtMostOnceInAnInterval) {
  const auto file = make_ref<testing::ChangingSource>("asked");
  FileWatch watch;
  watch.add(file);
  watch.add(file);
  EXPECT_EQ(watch.files().size(), 1U);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10000; ++i) EXPECT_TRUE(watch.check(OnFileChange::kError).is_ok());
  const auto intervals = (std::chrono::steady_clock::now() - start) / milliseconds(100);
  EXPECT_LE(file->times_asked, 1 + intervals);
  EXPECT_GE(file->times_asked, 1);
  EXPECT_TRUE(watch.check_now().is_ok());
  EXPECT_LE(file->times_asked, 2 + intervals);
}

TEST(FileWatch, DamageIsAnErrorEvenWhereChangesAreWarnings) {
  const auto file = make_ref<testing::ChangingSource>("asked");
  FileWatch watch;
  watch.add(file);
  file->is_gone = true;
  EXPECT_TRUE(fails_with(watch.check(OnFileChange::kWarn), Code::kModelChanged, {"asked"}));
  EXPECT_TRUE(fails_with(watch.check_now(), Code::kModelChanged, {"asked"}));
}

// Runs `what` in a child with the guard's handler; 0 from it is success.
void in_child(const std::function<int()>& what) {
  const pid_t child = fork();
  if (child == 0) _exit(what());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FileChange, ATruncatedModelIsAnErrorOfTheRunWhenTheGuardIsOn) {
  for (const auto on_change : {OnFileChange::kError, OnFileChange::kWarn}) {
    for (const char* external : {"", "weights.bin"}) {
      const ModelOnDisk model(external);
      in_child([&] {
        ModelOptions options;
        options.sigbus_guard = true;
        auto file = ModelFile::open(model.path(), options);
        if (!file.is_ok() || !sigbus_guard_is_on()) return 1;
        auto session = Session::create(std::move(file).take(), in_place(on_change));
        if (!session.is_ok() || !run_status(*session.value()).is_ok()) return 2;
        // At once: the last look at the file is younger than the interval.
        fs::resize_file(*external ? model.in_folder(external) : model.path(), 4096);
        for (int i = 0; i < 3; ++i) {
          if (run_status(*session.value()).code() != Code::kModelChanged) return 3;
        }
        return 0;
      });
    }
  }
}

TEST(FileChange, AModelTruncatedWhileItIsParsedIsAnErrorWhenTheGuardIsOn) {
  const testing::TempFolder folder;
  const std::string ort = write_ort(ort_add_model(100000));
  for (const bool is_ort : {false, true}) {
    for (int part = 0; part < 12; ++part) {
      const ModelOnDisk model;
      const std::string path = is_ort ? folder.write("add.ort", ort) : model.path();
      in_child([&] {
        ModelOptions options;
        options.sigbus_guard = true;
        options.progress = [&](float, const char*) {  // mapped, not yet read
          fs::resize_file(path, fs::file_size(path) * static_cast<uint64_t>(part) / 12);
          return true;
        };
        const auto file = ModelFile::open(path, options);
        return file.status().code() == Code::kModelChanged ? 0 : 1;
      });
    }
  }
}

TEST(FileChange, AModelTruncatedBeforeItsWeightsArePackedIsAnError) {
  const ModelOnDisk model;
  in_child([&] {
    SessionOptions options;  // packs
    options.sigbus_guard = true;
    auto file = ModelFile::open(model.path(), {});
    if (!file.is_ok()) return 1;
    fs::resize_file(model.path(), 4096);
    const auto session = Session::create(std::move(file).take(), options);
    return session.status().code() == Code::kModelChanged ? 0 : 2;
  });
}

std::vector<float> outputs_of(Session& session) {
  const auto outputs = run_all(session, input());
  EXPECT_TRUE(outputs.is_ok()) << text_of(outputs.status());
  return outputs.is_ok() ? floats_of(outputs.value()[0]) : std::vector<float>();
}

TEST(Reopen, AnUnchangedModelIsItself) {
  const ModelOnDisk model("weights.bin");
  ModelOptions options;
  options.format = "ONNX";
  const auto file = ModelFile::open(model.path(), options);
  ASSERT_TRUE(file.is_ok());
  const auto again = file.value()->reopen(nullptr);
  ASSERT_TRUE(again.is_ok()) << text_of(again.status());
  EXPECT_EQ(again.value(), file.value());
  const auto before = file.value()->watch().files();
  const auto after = again.value()->watch().files();
  ASSERT_EQ(before.size(), 2U);
  ASSERT_EQ(after.size(), 2U);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(before[i]->bytes().data(), after[i]->bytes().data());
  }
}

TEST(Reopen, GivesTheNewFileWhileOldSessionsGoOn) {
  const ModelOnDisk model;
  const Ref<Session> old_session = session_of(model.path());
  ASSERT_TRUE(old_session);
  const std::vector<float> old_outputs = outputs_of(*old_session);
  model.write(model.in_folder("new.onnx"), "", 2);
  fs::rename(model.in_folder("new.onnx"), model.path());
  const auto reopened = old_session->model().reopen(nullptr);
  ASSERT_TRUE(reopened.is_ok()) << text_of(reopened.status());
  const auto new_session = Session::create(reopened.value(), in_place());
  ASSERT_TRUE(new_session.is_ok());
  EXPECT_NE(outputs_of(*new_session.value()), old_outputs);
  EXPECT_EQ(outputs_of(*old_session), old_outputs);
  EXPECT_TRUE(status_after_a_while(*old_session).is_ok());
}

TEST(Reopen, BytesHaveNoPath) {
  const auto file = open_model(plain_model());
  ASSERT_TRUE(file.is_ok()) << text_of(file.status());
  EXPECT_TRUE(
      fails_with(file.value()->reopen(nullptr).status(), Code::kInvalidArgument, {"memory"}));
}

TEST(Reopen, KeepsTheOptions) {
  const ModelOnDisk model;
  ModelOptions options;
  options.read_into_memory = true;
  const auto file = ModelFile::open(model.path(), options);
  ASSERT_TRUE(file.is_ok());
  const auto again = file.value()->reopen(nullptr);
  ASSERT_TRUE(again.is_ok());
  fs::resize_file(model.path(), 100);
  const auto session = Session::create(again.value(), in_place());
  ASSERT_TRUE(session.is_ok()) << text_of(session.status());
  EXPECT_TRUE(run_status(*session.value()).is_ok()) << "a private copy knows of no change";
  EXPECT_FALSE(file.value()->reopen(nullptr).is_ok());
}

}  // namespace
}  // namespace folio
